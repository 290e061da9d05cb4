// Stores past the caches, for results that are larger than these: memory is not read first where whole lines are
// written, and what others need stays in the caches.
#ifndef GRIDSTRIDE_CPU_STREAMING_H
#define GRIDSTRIDE_CPU_STREAMING_H

#include <gridstride_cpu/gathering.h>

namespace gridstride {

constexpr int line_bytes = 64;
#if defined(__clang__) || defined(__SSE2__)
constexpr bool can_stream = true;
#else
constexpr bool can_stream = false;
#endif

typedef long long streamed_vector __attribute__((vector_size(16)));
GRIDSTRIDE_INLINED void store_past_caches(char* __to, streamed_vector __value) {
#if defined(__clang__)
    __builtin_nontemporal_store(__value, reinterpret_cast<streamed_vector*>(__to));
#elif defined(__SSE2__)
    __builtin_ia32_movntdq(reinterpret_cast<streamed_vector*>(__to), __value);
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

// Copy from a cache to memory. Lines that are not whole take the usual way: the rest of them comes soon.
GRIDSTRIDE_APART void stream(char* __to, const char* __from, long long __bytes) {
    const long long __ahead = -reinterpret_cast<unsigned long>(__to) % line_bytes;
    if (__bytes < __ahead + line_bytes) {
        copy_short(__to, __from, __bytes);
        return;
    }
    copy_short(__to, __from, __ahead);
    long long __at = __ahead;
    for (; __at + line_bytes <= __bytes; __at += line_bytes) {
#pragma GCC unroll 4
        for (int __k = 0; __k < line_bytes; __k += sizeof(streamed_vector)) {
            streamed_vector __some;
            __builtin_memcpy(&__some, __from + __at + __k, sizeof(__some));
            store_past_caches(__to + __at + __k, __some);
        }
    }
    copy_short(__to + __at, __from + __at, __bytes - __at);
}

}

#endif
