// Integer intrinsics on whole words: bits, bytes, funnel shifts, high products, dot products of bytes.
#ifndef GRIDSTRIDE_CPU_INTEGER_INTRINSICS_H
#define GRIDSTRIDE_CPU_INTEGER_INTRINSICS_H

#include "vectors.h"

// ---- bits ----

GRIDSTRIDE_DEVICE int __clz(int __x) { return __x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(__x)); }
GRIDSTRIDE_DEVICE int __clzll(long long __x) { return __x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(__x)); }
GRIDSTRIDE_DEVICE int __ffs(int __x) { return __builtin_ffs(__x); }
GRIDSTRIDE_DEVICE int __ffsll(long long __x) { return __builtin_ffsll(__x); }

// Counted in parallel within the word: `__builtin_popcount` is a library call on the oldest processors.
GRIDSTRIDE_DEVICE int __popcll(unsigned long long __x) {
#if defined(__POPCNT__) || defined(__aarch64__)
    return __builtin_popcountll(__x);
#else
    __x -= __x >> 1 & 0x5555555555555555ull;
    __x = (__x & 0x3333333333333333ull) + (__x >> 2 & 0x3333333333333333ull);
    __x = (__x + (__x >> 4)) & 0x0f0f0f0f0f0f0f0full;
    return static_cast<int>(__x * 0x0101010101010101ull >> 56);
#endif
}
GRIDSTRIDE_DEVICE int __popc(unsigned __x) { return __popcll(__x); }

GRIDSTRIDE_DEVICE unsigned __brev(unsigned __x) {
    __x = (__x >> 1 & 0x55555555u) | (__x & 0x55555555u) << 1;
    __x = (__x >> 2 & 0x33333333u) | (__x & 0x33333333u) << 2;
    __x = (__x >> 4 & 0x0f0f0f0fu) | (__x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(__x);
}
GRIDSTRIDE_DEVICE unsigned long long __brevll(unsigned long long __x) {
    return static_cast<unsigned long long>(__brev(static_cast<unsigned>(__x))) << 32 | __brev(static_cast<unsigned>(__x >> 32));
}

GRIDSTRIDE_DEVICE unsigned short __nv_bswap16(unsigned short __x) { return __builtin_bswap16(__x); }
GRIDSTRIDE_DEVICE unsigned __nv_bswap32(unsigned __x) { return __builtin_bswap32(__x); }
GRIDSTRIDE_DEVICE unsigned long long __nv_bswap64(unsigned long long __x) { return __builtin_bswap64(__x); }

// The `__n`-th set bit, counted from `__base` upward (or downward for a negative `__n`); all ones where there is none.
GRIDSTRIDE_DEVICE unsigned __fns(unsigned __mask, unsigned __base, int __n) {
    const int __step = __n < 0 ? -1 : 1;
    int __left = __n < 0 ? -__n : __n;
    if (__left == 0) return __base < 32 && (__mask >> __base & 1) ? __base : ~0u;
    for (long long __bit = __base; __bit >= 0 && __bit < 32; __bit += __step)
        if ((__mask >> __bit & 1) && --__left == 0) return static_cast<unsigned>(__bit);
    return ~0u;
}

// ---- bytes ----

GRIDSTRIDE_DEVICE unsigned __byte_perm(unsigned __low, unsigned __high, unsigned __selectors) {
    const unsigned long long __bytes = static_cast<unsigned long long>(__high) << 32 | __low;
    unsigned __result = 0;
    for (int __i = 0; __i < 4; ++__i) {
        const unsigned __place = __selectors >> 4 * __i & 7;
        __result |= (static_cast<unsigned>(__bytes >> 8 * __place) & 0xff) << 8 * __i;
    }
    return __result;
}

// ---- funnel shifts ----

GRIDSTRIDE_DEVICE unsigned __funnelshift_l(unsigned __low, unsigned __high, unsigned __shift) {
    const unsigned long long __both = static_cast<unsigned long long>(__high) << 32 | __low;
    return static_cast<unsigned>(__both << (__shift & 31) >> 32);
}
GRIDSTRIDE_DEVICE unsigned __funnelshift_r(unsigned __low, unsigned __high, unsigned __shift) {
    const unsigned long long __both = static_cast<unsigned long long>(__high) << 32 | __low;
    return static_cast<unsigned>(__both >> (__shift & 31));
}
GRIDSTRIDE_DEVICE unsigned __funnelshift_lc(unsigned __low, unsigned __high, unsigned __shift) {
    return __shift >= 32 ? __low : __funnelshift_l(__low, __high, __shift);
}
GRIDSTRIDE_DEVICE unsigned __funnelshift_rc(unsigned __low, unsigned __high, unsigned __shift) {
    return __shift >= 32 ? __high : __funnelshift_r(__low, __high, __shift);
}

// ---- products ----

GRIDSTRIDE_DEVICE int __mulhi(int __x, int __y) { return static_cast<int>(static_cast<long long>(__x) * __y >> 32); }
GRIDSTRIDE_DEVICE unsigned __umulhi(unsigned __x, unsigned __y) {
    return static_cast<unsigned>(static_cast<unsigned long long>(__x) * __y >> 32);
}
GRIDSTRIDE_DEVICE long long __mul64hi(long long __x, long long __y) {
    return static_cast<long long>(static_cast<__int128>(__x) * __y >> 64);
}
GRIDSTRIDE_DEVICE unsigned long long __umul64hi(unsigned long long __x, unsigned long long __y) {
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(__x) * __y >> 64);
}

GRIDSTRIDE_DEVICE int gridstride_low_24_bits(int __x) { return static_cast<int>(static_cast<unsigned>(__x) << 8) >> 8; }
GRIDSTRIDE_DEVICE int __mul24(int __x, int __y) {
    const unsigned __product = static_cast<unsigned>(gridstride_low_24_bits(__x)) * static_cast<unsigned>(gridstride_low_24_bits(__y));
    return static_cast<int>(__product);
}
GRIDSTRIDE_DEVICE unsigned __umul24(unsigned __x, unsigned __y) { return (__x & 0xffffff) * (__y & 0xffffff); }

// ---- sums and averages ----

GRIDSTRIDE_DEVICE unsigned __sad(int __x, int __y, unsigned __z) {
    const unsigned __difference = static_cast<unsigned>(__x) - static_cast<unsigned>(__y);
    return __z + (__x < __y ? 0u - __difference : __difference);
}
GRIDSTRIDE_DEVICE unsigned __usad(unsigned __x, unsigned __y, unsigned __z) { return __z + (__x < __y ? __y - __x : __x - __y); }
GRIDSTRIDE_DEVICE int __hadd(int __x, int __y) { return static_cast<int>((static_cast<long long>(__x) + __y) >> 1); }
GRIDSTRIDE_DEVICE int __rhadd(int __x, int __y) { return static_cast<int>((static_cast<long long>(__x) + __y + 1) >> 1); }
GRIDSTRIDE_DEVICE unsigned __uhadd(unsigned __x, unsigned __y) {
    return static_cast<unsigned>((static_cast<unsigned long long>(__x) + __y) >> 1);
}
GRIDSTRIDE_DEVICE unsigned __urhadd(unsigned __x, unsigned __y) {
    return static_cast<unsigned>((static_cast<unsigned long long>(__x) + __y + 1) >> 1);
}

// ---- dot products of four bytes, and of two bytes with two halves of a word ----

#define GRIDSTRIDE_DOT_PRODUCTS(word, byte, half, bytes, halves) \
    GRIDSTRIDE_DEVICE word __dp4a(word __x, word __y, word __sum) { \
        for (int __i = 0; __i < 4; ++__i) \
            __sum += static_cast<word>(static_cast<byte>(__x >> 8 * __i)) * static_cast<word>(static_cast<byte>(__y >> 8 * __i)); \
        return __sum; \
    } \
    GRIDSTRIDE_DEVICE word __dp2a_lo(word __x, word __y, word __sum) { \
        for (int __i = 0; __i < 2; ++__i) \
            __sum += static_cast<word>(static_cast<half>(__x >> 16 * __i)) * static_cast<word>(static_cast<byte>(__y >> 8 * __i)); \
        return __sum; \
    } \
    GRIDSTRIDE_DEVICE word __dp2a_hi(word __x, word __y, word __sum) { return __dp2a_lo(__x, __y >> 16, __sum); } \
    GRIDSTRIDE_DEVICE word __dp4a(bytes __x, bytes __y, word __sum) { \
        return __sum + word(__x.x) * word(__y.x) + word(__x.y) * word(__y.y) + word(__x.z) * word(__y.z) + word(__x.w) * word(__y.w); \
    } \
    GRIDSTRIDE_DEVICE word __dp2a_lo(halves __x, bytes __y, word __sum) \
    { return __sum + word(__x.x) * word(__y.x) + word(__x.y) * word(__y.y); } \
    GRIDSTRIDE_DEVICE word __dp2a_hi(halves __x, bytes __y, word __sum) \
    { return __sum + word(__x.x) * word(__y.z) + word(__x.y) * word(__y.w); }

GRIDSTRIDE_DOT_PRODUCTS(int, signed char, short, char4, short2)
GRIDSTRIDE_DOT_PRODUCTS(unsigned, unsigned char, unsigned short, uchar4, ushort2)
#undef GRIDSTRIDE_DOT_PRODUCTS

#endif
