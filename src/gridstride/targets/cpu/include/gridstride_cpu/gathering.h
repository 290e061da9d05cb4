// Elements between memory and buffers in which they are consecutive.
#ifndef GRIDSTRIDE_CPU_GATHERING_H
#define GRIDSTRIDE_CPU_GATHERING_H

#include <gridstride_cpu/picking.h>
#include <gridstride_cpu/spreading.h>

namespace gridstride {

// As much as one instruction stores.
#if defined(__AVX512F__)
typedef long long longest_vector __attribute__((vector_size(64)));
#elif defined(__AVX__)
typedef long long longest_vector __attribute__((vector_size(32)));
#else
typedef long long longest_vector __attribute__((vector_size(16)));
#endif

template <int __size, int __times>
GRIDSTRIDE_INLINED void gather_every(char* __to, const char* __from, int __count) {
    GRIDSTRIDE_INDEPENDENT
    for (long long __k = 0; __k < __count; ++__k)
        __builtin_memcpy(__to + __k * __size, __from + __k * __times * __size, __size);
}

template <int __size>
GRIDSTRIDE_INLINED void repeat_bytes(char* __to, const char* __from, int __count) {
    char __same[__size];
    __builtin_memcpy(__same, __from, __size);
    GRIDSTRIDE_INDEPENDENT
    for (long long __k = 0; __k < __count; ++__k) __builtin_memcpy(__to + __k * __size, __same, __size);
}

template <int __size>
__attribute__((noinline)) void gather_bytes(char* __to, const char* __from, long long __step, int __count) {
    switch (__step) {
    case 0: return repeat_bytes<__size>(__to, __from, __count);
    case -__size: return gather_every<__size, -1>(__to, __from, __count);
    case __size: __builtin_memcpy(__to, __from, (long long)__count * __size); return;
    case 2 * __size: return gather_every<__size, 2>(__to, __from, __count);
    }
    const int __done = pick<__size>(__to, __from, __step, __count);
    __count -= __done;
    __to += __done * __size;
    __from += __done * __step;
    for (; __count > 0; --__count, __to += __size, __from += __step) __builtin_memcpy(__to, __from, __size);
}
#define GRIDSTRIDE_GATHERING(start, size) start template void gather_bytes<size>(char*, const char*, long long, int);
GRIDSTRIDE_LINKED(GRIDSTRIDE_GATHERING)
template <class __stored>
GRIDSTRIDE_INLINED void gather(__stored* __to, const char* __from, long long __step, int __count) {
    gather_bytes<sizeof(__stored)>(reinterpret_cast<char*>(__to), __from, __step, __count);
}
// Copy as many bytes as a word has, or up to twice as many.
template <class __word>
GRIDSTRIDE_INLINED void copy_ends(char* __to, const char* __from, long long __bytes) {
    __word __first, __last;
    __builtin_memcpy(&__first, __from, sizeof(__word));
    __builtin_memcpy(&__last, __from + __bytes - sizeof(__word), sizeof(__word));
    __builtin_memcpy(__to, &__first, sizeof(__word));
    __builtin_memcpy(__to + __bytes - sizeof(__word), &__last, sizeof(__word));
}
// Copy a few bytes without a call.
GRIDSTRIDE_INLINED void copy_short(char* __to, const char* __from, long long __bytes) {
    typedef long long __vector __attribute__((vector_size(16)));
    if (__bytes < 16) {
        if (__bytes >= 8) return copy_ends<long long>(__to, __from, __bytes);
        if (__bytes >= 4) return copy_ends<int>(__to, __from, __bytes);
        if (__bytes >= 2) return copy_ends<short>(__to, __from, __bytes);
        if (__bytes) *__to = *__from;
        return;
    }
    __vector __some;
    for (long long __k = 0; __k + 16 < __bytes; __k += 16) {
        __builtin_memcpy(&__some, __from + __k, 16);
        __builtin_memcpy(__to + __k, &__some, 16);
    }
    __builtin_memcpy(&__some, __from + __bytes - 16, 16);
    __builtin_memcpy(__to + __bytes - 16, &__some, 16);
}
template <int __size>
GRIDSTRIDE_INLINED void scatter_bytes(char* __to, long long __step, const char* __from, int __count) {
    const int __done = spread(__to, __step, __from, __size, __count, bytes_ahead);
    __to += __done * __step;
    __from += __done * __size;
    for (__count -= __done; __count > 0; --__count, __to += __step, __from += __size) __builtin_memcpy(__to, __from, __size);
}

}

#endif
