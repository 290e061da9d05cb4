// How the functions of loops become part of them, and what the compiler need not look at.
#ifndef GRIDSTRIDE_INLINING_H
#define GRIDSTRIDE_INLINING_H

#define GRIDSTRIDE_INLINED __device__ __forceinline__

// A condition that the template's arguments decide. The other branch has to compile, too: C++14 looks at both, and takes
// longer for it.
#ifdef __cpp_if_constexpr
#define GRIDSTRIDE_IF_KNOWN if constexpr
#else
#define GRIDSTRIDE_IF_KNOWN if
#endif

#endif
