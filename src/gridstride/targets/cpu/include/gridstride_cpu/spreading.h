// Short pieces of memory that lie apart are written by vectors, of which a mask leaves out what lies between them: that
// may be others', who write it at the same time.
#ifndef GRIDSTRIDE_CPU_SPREADING_H
#define GRIDSTRIDE_CPU_SPREADING_H

#include <gridstride_cpu/shares.h>

namespace gridstride {

#if defined(__AVX512VBMI2__) && defined(__AVX512BW__)
typedef char spread_vector __attribute__((vector_size(64)));
GRIDSTRIDE_INLINED void store_spread(char* __to, const char* __from, unsigned long long __mask) {
    spread_vector __some;
    __builtin_memcpy(&__some, __from, sizeof(__some));
#if defined(__clang__)
    __some = (spread_vector)__builtin_ia32_expandqi512_mask(__some, spread_vector{}, __mask);
    __builtin_ia32_storedquqi512_mask(reinterpret_cast<spread_vector*>(__to), __some, __mask);
#else
    __some = __builtin_ia32_expandqi512_maskz(__some, spread_vector{}, __mask);
    __builtin_ia32_storedquqi512_mask(__to, __some, __mask);
#endif
}

// Put so many pieces, behind which there is room for a vector, to where they lie apart, while what is ahead is fetched.
// Return how many they were: all, or none where a vector would hold but one.
GRIDSTRIDE_APART int spread(char* __to, long long __apart, const char* __from, long long __bytes, int __pieces, long long __ahead) {
    if (__bytes >= __apart || __apart > 32) return 0;
    const int __group = int(64 / __apart);
    unsigned long long __mask = 0;
    for (int __k = 0; __k < __group; ++__k) __mask |= ((1ull << __bytes) - 1) << (__k * __apart);
    int __left = __pieces;
    for (; __left >= __group; __left -= __group, __to += __group * __apart, __from += __group * __bytes) {
        __builtin_prefetch(__to + __ahead, 1);
        store_spread(__to, __from, __mask);
    }
    if (__left) store_spread(__to, __from, __mask & ((1ull << (__left * __apart)) - 1));
    return __pieces;
}
#else
GRIDSTRIDE_INLINED int spread(char*, long long, const char*, long long, int, long long) { return 0; }
#endif

}

#endif
