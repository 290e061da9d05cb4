// Elements that lie a few times their size apart are picked out of vectors.
#ifndef GRIDSTRIDE_CPU_PICKING_H
#define GRIDSTRIDE_CPU_PICKING_H

#include <gridstride_cpu/places.h>

namespace gridstride {

// Vectors of which a processor merges any elements of two by one instruction.
template <int __size> struct merged { static constexpr int most_times = 0; };
#if defined(__AVX512VBMI__)
template <> struct merged<1> {
    static constexpr int most_times = 8;
    typedef signed char vector __attribute__((vector_size(64)));
};
#endif
#if defined(__AVX512BW__)
template <> struct merged<2> {
    static constexpr int most_times = 8;
    typedef short vector __attribute__((vector_size(64)));
};
template <> struct merged<4> {
    static constexpr int most_times = 8;
    typedef int vector __attribute__((vector_size(64)));
};
#endif

// Elements that go backwards, by times below 0, are picked out of memory that ends with the first of them.
constexpr int without_sign(int __times) { return __times < 0 ? -__times : __times; }

// Which element of the vectors picked so far and the next one comes to a lane.
constexpr int picked_place(int __lane, int __lanes, int __times) {
    return (__times < 0 ? -__times * __lanes - 1 : 0) + __lane * __times;
}
constexpr int merged_place(int __lane, int __lanes, int __times, int __next) {
    const int __place = picked_place(__lane, __lanes, __times) - __next * __lanes;
    return __place >= __lanes ? __lane : __place >= 0 ? __lanes + __place : __next == 1 ? __place + __lanes : __lane;
}
template <int __times, int __next, class __vector, int... __k>
GRIDSTRIDE_INLINED __vector merge(__vector __picked, __vector __others, places<__k...>) {
#if defined(__clang__)
    return __builtin_shufflevector(__picked, __others, merged_place(__k, sizeof...(__k), __times, __next)...);
#else
    return __builtin_shuffle(__picked, __others, __vector{merged_place(__k, sizeof...(__k), __times, __next)...});
#endif
}
template <int __size, int __times, int __next>
struct picked_vector {
    typedef typename merged<__size>::vector vector;
    GRIDSTRIDE_INLINED static vector from(const char* __from) {
        vector __others;
        __builtin_memcpy(&__others, __from + (__next - 1) * 64, 64);
        return merge<__times, __next - 1>(picked_vector<__size, __times, __next - 1>::from(__from), __others,
                                          typename places_up_to<64 / __size>::type());
    }
};
template <int __size, int __times>
struct picked_vector<__size, __times, 1> {
    typedef typename merged<__size>::vector vector;
    GRIDSTRIDE_INLINED static vector from(const char* __from) {
        vector __first;
        __builtin_memcpy(&__first, __from, 64);
        return __first;
    }
};

// Where the memory begins out of which so many bytes of elements are picked.
template <int __size, int __times>
GRIDSTRIDE_INLINED const char* picked_from(const char* __first, int __bytes) {
    return __times < 0 ? __first + __size + __bytes * __times : __first;
}
// Pick as many elements as make whole vectors; the last vector may begin with elements of the one before. Return how
// many they were, all or none.
template <int __size, int __times>
GRIDSTRIDE_APART int pick_elements(char* __to, const char* __first, int __count) {
    constexpr int __some = 64 / __size, __several = without_sign(__times), __between = (__several - 1) * __size;
    if (__count < __some) return 0;
    const char* const __from = picked_from<__size, __times>(__first, 64);
    for (int __done = 0; __done + __some < __count; __done += __some) {
        const auto __picked = picked_vector<__size, __times, __several>::from(__from + __done * __times * __size);
        __builtin_memcpy(__to + __done * __size, &__picked, 64);
    }
    // Behind the last element there may be nothing.
    alignas(64) char __last[64 * __several];
    constexpr int __begin = __times < 0 ? __between : 0;
    __builtin_memcpy(__last + __begin, __from + (__count - __some) * __times * __size + __begin, 64 * __several - __between);
    const auto __picked = picked_vector<__size, __times, __several>::from(__last);
    __builtin_memcpy(__to + (__count - __some) * __size, &__picked, 64);
    return __count;
}
template <int __size, int __times, bool __is_merged = (without_sign(__times) <= merged<__size>::most_times)>
struct picking_every {
    GRIDSTRIDE_INLINED static int run(char* __to, const char* __from, int __count) {
        return pick_elements<__size, __times>(__to, __from, __count);
    }
};

#if defined(__SSSE3__)
typedef char picked_bytes __attribute__((vector_size(16)));

// Where the bytes of 16 bytes of elements are that lie a few times their size apart, by the vectors they are in.
template <int __size, int __times>
struct picked_places {
    static constexpr int vectors = without_sign(__times);
    alignas(16) signed char places[vectors][16];
    constexpr picked_places() : places() {
        for (int __k = 0; __k < 16 * vectors; ++__k) {
            const int __byte = __k % 16, __vector = __k / 16;
            const int __place = picked_place(__byte / __size, 16 / __size, __times) * __size + __byte % __size - 16 * __vector;
            places[__vector][__byte] = static_cast<signed char>(0 <= __place && __place < 16 ? __place : -1);
        }
    }
};

// Pick small elements 16 bytes at once. Return how many they were; the last ones are left, behind which vectors may reach.
template <int __size, int __times>
GRIDSTRIDE_APART int pick_bytes(char* __to, const char* __first, int __count) {
    static constexpr picked_places<__size, __times> __picked_places;
    constexpr int __some = 16 / __size;
    const char* __from = picked_from<__size, __times>(__first, 16);
    int __done = 0;
    for (; __done + __some < __count; __done += __some) {
        picked_bytes __picked = {};
#pragma GCC unroll 4
        for (int __k = 0; __k < without_sign(__times); ++__k) {
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
constexpr bool picks_bytes(int __size, int __times) { return __size <= 2 && without_sign(__times) <= 4; }
#else
constexpr bool picks_bytes(int, int) { return false; }
template <int __size, int __times>
int pick_bytes(char* __to, const char* __first, int __count);
#endif

template <int __size, int __times, bool __picks_bytes = picks_bytes(__size, __times)>
struct picking_few {
    GRIDSTRIDE_INLINED static int run(char* __to, const char* __from, int __count) {
        return pick_bytes<__size, __times>(__to, __from, __count);
    }
};
template <int __size, int __times>
struct picking_few<__size, __times, false> {
    GRIDSTRIDE_INLINED static int run(char*, const char*, int) { return 0; }
};
template <int __size, int __times>
struct picking_every<__size, __times, false> : picking_few<__size, __times> {};

// Pick elements that are a step of a few times their size apart; return how many of the first ones that were.
template <int __size>
GRIDSTRIDE_INLINED int pick(char* __to, const char* __from, long long __step, int __count) {
    switch (__step) {
    case -2 * __size: return picking_every<__size, -2>::run(__to, __from, __count);
    case -3 * __size: return picking_every<__size, -3>::run(__to, __from, __count);
    case -4 * __size: return picking_every<__size, -4>::run(__to, __from, __count);
    case 3 * __size: return picking_every<__size, 3>::run(__to, __from, __count);
    case 4 * __size: return picking_every<__size, 4>::run(__to, __from, __count);
    case 5 * __size: return picking_every<__size, 5>::run(__to, __from, __count);
    case 6 * __size: return picking_every<__size, 6>::run(__to, __from, __count);
    case 7 * __size: return picking_every<__size, 7>::run(__to, __from, __count);
    case 8 * __size: return picking_every<__size, 8>::run(__to, __from, __count);
    default: return 0;
    }
}

}

#endif
