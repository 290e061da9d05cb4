// How the compiler is asked to inline, and to make loops into vectors; what it finds compiled.
#ifndef GRIDSTRIDE_CPU_INLINING_H
#define GRIDSTRIDE_CPU_INLINING_H

#define GRIDSTRIDE_INLINED inline __attribute__((always_inline))
// Kernels of many operands share functions that stand apart, which keeps compiling short; what runs once in a launch
// is not worth more than a little code.
#define GRIDSTRIDE_APART inline __attribute__((noinline))
#if defined(__clang__)
#define GRIDSTRIDE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety) interleave(enable)")
#else
#define GRIDSTRIDE_INDEPENDENT _Pragma("GCC ivdep")
#endif
// A loop that runs a few times is to stay one.
#if defined(__clang__)
#define GRIDSTRIDE_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define GRIDSTRIDE_ROLLED _Pragma("GCC unroll 1")
#endif
// A short loop with a constant count is to become vectors, not a list of statements.
#if defined(__clang__)
#define GRIDSTRIDE_LANES GRIDSTRIDE_INDEPENDENT
#else
#define GRIDSTRIDE_LANES _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#endif

// What is compiled once for elements of these sizes, by templates/passages.cpp, where it is linked.
#if defined(GRIDSTRIDE_LINKS_PASSAGES)
#define GRIDSTRIDE_LINKED(declare) declare(extern, 1) declare(extern, 2) declare(extern, 4) declare(extern, 8) declare(extern, 16)
#else
#define GRIDSTRIDE_LINKED(declare)
#endif

#endif
