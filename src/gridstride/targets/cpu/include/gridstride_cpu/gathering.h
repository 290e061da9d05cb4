// Elements between memory and buffers in which they are consecutive.
#ifndef GRIDSTRIDE_CPU_GATHERING_H
#define GRIDSTRIDE_CPU_GATHERING_H

#include <gridstride_cpu/inlining.h>

namespace gridstride {

template <int __size, int __times>
GRIDSTRIDE_INLINED void gather_every(char* __to, const char* __from, int __count) {
    GRIDSTRIDE_INDEPENDENT
    for (long long __k = 0; __k < __count; ++__k)
        __builtin_memcpy(__to + __k * __size, __from + __k * __times * __size, __size);
}

#if defined(__SSSE3__)
typedef char picked_bytes __attribute__((vector_size(16)));

// Where the bytes of 16 bytes of elements are that lie a few times their size apart, by the vectors they are in.
template <int __size, int __times>
struct picked_places {
    alignas(16) signed char places[__times][16];
    constexpr picked_places() : places() {
        for (int __k = 0; __k < 16 * __times; ++__k) {
            const int __byte = __k % 16, __vector = __k / 16;
            const int __place = __byte / __size * __size * __times + __byte % __size - 16 * __vector;
            places[__vector][__byte] = static_cast<signed char>(0 <= __place && __place < 16 ? __place : -1);
        }
    }
};

// Pick small elements 16 bytes at once. Return how many they were; the last ones are left, behind which vectors may reach.
template <int __size, int __times>
GRIDSTRIDE_APART int pick_bytes(char* __to, const char* __from, int __count) {
    static constexpr picked_places<__size, __times> __picked_places;
    constexpr int __some = 16 / __size;
    int __done = 0;
    for (; __done + __some < __count; __done += __some) {
        picked_bytes __picked = {};
#pragma GCC unroll 4
        for (int __k = 0; __k < __times; ++__k) {
            picked_bytes __bytes, __places;
            __builtin_memcpy(&__bytes, __from + 16 * __k, 16);
            __builtin_memcpy(&__places, __picked_places.places[__k], 16);
            __picked |= __builtin_ia32_pshufb128(__bytes, __places);
        }
        __builtin_memcpy(__to, &__picked, 16);
        __to += 16;
        __from += 16 * __times;
    }
    return __done;
}
template <int __size, bool __is_small = (__size <= 2)>
struct picking {
    GRIDSTRIDE_INLINED static int run(char* __to, const char* __from, long long __step, int __count) {
        if (__step == 3 * __size) return pick_bytes<__size, 3>(__to, __from, __count);
        return __step == 4 * __size ? pick_bytes<__size, 4>(__to, __from, __count) : 0;
    }
};
#else
template <int __size, bool __is_small = false>
struct picking;
#endif
template <int __size>
struct picking<__size, false> {
    GRIDSTRIDE_INLINED static int run(char*, const char*, long long, int) { return 0; }
};

template <int __size>
GRIDSTRIDE_APART void gather_bytes(char* __to, const char* __from, long long __step, int __count) {
    switch (__step) {
    case -__size: return gather_every<__size, -1>(__to, __from, __count);
    case __size: __builtin_memcpy(__to, __from, (long long)__count * __size); return;
    case 2 * __size: return gather_every<__size, 2>(__to, __from, __count);
    }
    const int __done = picking<__size>::run(__to, __from, __step, __count);
    __count -= __done;
    __to += __done * __size;
    __from += __done * __step;
    for (; __count > 0; --__count, __to += __size, __from += __step) __builtin_memcpy(__to, __from, __size);
}
template <class __stored>
GRIDSTRIDE_INLINED void gather(__stored* __to, const char* __from, long long __step, int __count) {
    gather_bytes<sizeof(__stored)>(reinterpret_cast<char*>(__to), __from, __step, __count);
}
template <int __size>
GRIDSTRIDE_INLINED void repeat_bytes(char* __to, const char* __from, int __count) {
    char __same[__size];
    __builtin_memcpy(__same, __from, __size);
    GRIDSTRIDE_INDEPENDENT
    for (long long __k = 0; __k < __count; ++__k) __builtin_memcpy(__to + __k * __size, __same, __size);
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
    for (; __count > 0; --__count, __to += __step, __from += __size) __builtin_memcpy(__to, __from, __size);
}

}

#endif
