// Stores past the caches, for results that are larger than these: memory is not read first where whole lines are
// written, and what others need stays in the caches.
#ifndef GRIDSTRIDE_CPU_STREAMING_H
#define GRIDSTRIDE_CPU_STREAMING_H

#include <gridstride_cpu/gathering.h>
#include <gridstride_cpu/shares.h>

namespace gridstride {

#if defined(__clang__) || defined(__SSE2__)
constexpr bool can_stream = true;
#else
constexpr bool can_stream = false;
#endif

GRIDSTRIDE_INLINED void store_past_caches(char* __to, longest_vector __value) {
#if defined(__clang__)
    __builtin_nontemporal_store(__value, reinterpret_cast<longest_vector*>(__to));
#elif defined(__AVX512F__)
    __builtin_ia32_movntdq512(reinterpret_cast<longest_vector*>(__to), __value);
#elif defined(__AVX__)
    __builtin_ia32_movntdq256(reinterpret_cast<longest_vector*>(__to), __value);
#elif defined(__SSE2__)
    __builtin_ia32_movntdq(reinterpret_cast<longest_vector*>(__to), __value);
#else
    __builtin_memcpy(__to, &__value, sizeof(__value));
#endif
}

// Make what was stored past the caches come before whatever this thread stores later.
GRIDSTRIDE_INLINED void finish_streams() {
#if defined(__SSE2__)
    asm volatile("sfence" ::: "memory");
#endif
}

// The last line of a stretch of results, which waits for what lies behind it: memory that is written in parts of lines
// is read first, and nothing else is stored until it came.
struct unfinished_line {
    char* line;      // null: none
    int first, end;  // which bytes of it are known
};

GRIDSTRIDE_APART void finish(unfinished_line& __last, const char* __bytes) {
    if (__last.line) copy_short(__last.line + __last.first, __bytes + __last.first, __last.end - __last.first);
    __last.line = nullptr;
}

// Where in `buffer`, that begins as a line does, the results for `to` shall come; those before them are brought there.
GRIDSTRIDE_INLINED int go_on(unfinished_line& __last, const char* __bytes, char* __buffer, char* __to) {
    const int __at = int(reinterpret_cast<unsigned long>(__to) % line_bytes);
    if (__last.line != __to - __at || __last.end != __at) {
        if (__last.line) finish(__last, __bytes);
        __last.first = __at;
    }
    __builtin_memcpy(__buffer, __bytes, line_bytes);
    return __at;
}

// Store so many bytes past the caches, as far as lines are whole.
GRIDSTRIDE_INLINED void stream(unfinished_line& __last, char* __bytes, const char* __buffer, char* __to, long long __count) {
    const int __begun = int(reinterpret_cast<unsigned long>(__to) % line_bytes);
    const long long __end = __begun + __count;
    char* const __line = __to - __begun;
    long long __at = 0;
    if (__last.first && __end >= line_bytes) {
        copy_short(__line + __last.first, __buffer + __last.first, line_bytes - __last.first);
        __at = line_bytes;
        __last.first = 0;
    }
    for (; __at + line_bytes <= __end; __at += line_bytes) {
#pragma GCC unroll 4
        for (int __k = 0; __k < line_bytes; __k += sizeof(longest_vector)) {
            longest_vector __some;
            __builtin_memcpy(&__some, __buffer + __at + __k, sizeof(__some));
            store_past_caches(__line + __at + __k, __some);
        }
    }
    __last.line = __at < __end ? __line + __at : nullptr;
    __last.end = int(__end - __at);
    __builtin_memcpy(__bytes, __buffer + __at, line_bytes);
}

}

#endif
