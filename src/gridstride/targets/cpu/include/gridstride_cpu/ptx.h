// What translated inline PTX stands on: registers are bits that an instruction reads and writes as its type.
#ifndef GRIDSTRIDE_CPU_PTX_H
#define GRIDSTRIDE_CPU_PTX_H

#include "prelude.h"

template <class __to, class __from, bool __same_size>
struct gridstride_ptx_bits {
    static __attribute__((always_inline)) __to of(const __from& __value) { return gridstride_bit_cast<__to>(__value); }
};
template <class __to, class __from>
struct gridstride_ptx_bits<__to, __from, false> {
    static __attribute__((always_inline)) __to of(const __from& __value) { return (__to)__value; }
};

template <class __to, class __from>
GRIDSTRIDE_INLINE __to gridstride_ptx_read(const __from& __value) {
    return gridstride_ptx_bits<__to, __from, sizeof(__to) == sizeof(__from)>::of(__value);
}
template <class __to, class __from>
GRIDSTRIDE_INLINE void gridstride_ptx_write(__to& __place, const __from& __value) {
    __place = gridstride_ptx_read<__to>(__value);
}

// Numbers of shared memory count from the arena's start, those of every other space are pointers.
template <class __type>
GRIDSTRIDE_INLINE __type* gridstride_ptx_shared(unsigned long long __number) {
    return static_cast<__type*>(__cvta_shared_to_generic(__number));
}
template <class __type>
GRIDSTRIDE_INLINE __type* gridstride_ptx_memory(unsigned long long __number) {
    return reinterpret_cast<__type*>(__number);
}

// An address: all of a pointer, or 32 bits without a sign.
template <class __type>
GRIDSTRIDE_INLINE unsigned long long gridstride_ptx_number(const __type& __value) {
    unsigned long long __number = 0;
    __builtin_memcpy(&__number, &__value, sizeof __value);
    return __number;
}

// `.ftz`: denormal numbers count as zeros of their sign.
GRIDSTRIDE_INLINE float gridstride_ptx_flushed(float __x) { return fabsf(__x) < 1.17549435e-38f ? copysignf(0.0f, __x) : __x; }

template <class __type>
GRIDSTRIDE_INLINE __type gridstride_ptx_bfe(__type __a, unsigned __start, unsigned __length) {
    const unsigned __bits = 8 * sizeof(__type);
    const bool __has_sign = __type(-1) < __type(0);
    __start &= 255, __length &= 255;
    if (__length == 0) return 0;
    const unsigned __end = __start + __length - 1 < __bits ? __start + __length - 1 : __bits - 1;
    const bool __sign = __has_sign && (static_cast<unsigned long long>(__a) >> __end & 1);
    unsigned long long __result = 0;
    for (unsigned __i = 0; __i < __bits; ++__i) {
        const bool __bit = __i < __length && __start + __i < __bits ? static_cast<unsigned long long>(__a) >> (__start + __i) & 1 : __sign;
        __result |= static_cast<unsigned long long>(__bit) << __i;
    }
    return static_cast<__type>(__result);
}
template <class __type>
GRIDSTRIDE_INLINE __type gridstride_ptx_bfi(__type __a, __type __b, unsigned __start, unsigned __length) {
    const unsigned __bits = 8 * sizeof(__type);
    __start &= 255, __length &= 255;
    for (unsigned __i = 0; __i < __length && __start + __i < __bits; ++__i) {
        const __type __bit = __type(1) << (__start + __i);
        __b = __a >> __i & 1 ? __b | __bit : __b & ~__bit;
    }
    return __b;
}
template <class __type>
GRIDSTRIDE_INLINE unsigned gridstride_ptx_bfind(__type __a) {
    const __type __b = __a < __type(0) ? ~__a : __a;
    return __b == 0 ? ~0u : 63u - unsigned(__builtin_clzll(static_cast<unsigned long long>(__b)));
}
GRIDSTRIDE_INLINE unsigned gridstride_ptx_lop3(unsigned __a, unsigned __b, unsigned __c, unsigned __table) {
    unsigned __result = 0;
    for (unsigned __i = 0; __i < 8; ++__i)
        if (__table >> __i & 1) __result |= (__i & 4 ? __a : ~__a) & (__i & 2 ? __b : ~__b) & (__i & 1 ? __c : ~__c);
    return __result;
}
// A byte whose selector has its top bit set is the sign of the byte it selects, eight times.
GRIDSTRIDE_INLINE unsigned gridstride_ptx_prmt(unsigned __a, unsigned __b, unsigned __selectors) {
    unsigned __result = __byte_perm(__a, __b, __selectors);
    for (unsigned __i = 0; __i < 4; ++__i)
        if (__selectors >> 4 * __i & 8) __result = (__result & ~(0xffu << 8 * __i)) | ((__result >> (8 * __i + 7) & 1 ? 0xffu : 0u) << 8 * __i);
    return __result;
}

// The lane that shfl.sync reads, by the bits of its third operand, and whether it is one of the segment.
struct gridstride_ptx_source {
    unsigned lane;
    bool is_inside;
};
GRIDSTRIDE_INLINE gridstride_ptx_source gridstride_ptx_shuffle_source(char __mode, unsigned __b, unsigned __c) {
    const unsigned __lane = gridstride_lane(), __segment = __c >> 8 & 31, __clamp = __c & 31;
    const unsigned __most = (__lane & __segment) | (__clamp & ~__segment);
    int __source = int((__lane & __segment) | (__b & 31 & ~__segment));
    if (__mode == 'u') __source = int(__lane) - int(__b & 31);
    if (__mode == 'd') __source = int(__lane + (__b & 31));
    if (__mode == 'b') __source = int(__lane ^ (__b & 31));
    const bool __is_inside = __mode == 'u' ? __source >= int(__most) : __source <= int(__most);
    return {__is_inside ? unsigned(__source) : __lane, __is_inside};
}
GRIDSTRIDE_INLINE unsigned gridstride_ptx_shuffle(unsigned __kind, unsigned __mask, unsigned __value, unsigned __lane, GRIDSTRIDE_SITE) {
    return gridstride_shuffle(__kind, __mask, __value, __lane, __file, __line);
}

extern "C" int clock_gettime(int, void*) noexcept;
GRIDSTRIDE_INLINE unsigned long long gridstride_ptx_globaltimer(GRIDSTRIDE_SITE) {
    long long __time[2];
    gridstride_spin_hint(__file, __line);
    clock_gettime(0, __time);
    return static_cast<unsigned long long>(__time[0]) * 1000000000ull + static_cast<unsigned long long>(__time[1]);
}

template <class __type>
GRIDSTRIDE_INLINE __type gridstride_ptx_volatile(const __type* __place, GRIDSTRIDE_SITE) {
    gridstride_spin_hint(__file, __line);
    return *static_cast<const volatile __type*>(__place);
}

#endif
