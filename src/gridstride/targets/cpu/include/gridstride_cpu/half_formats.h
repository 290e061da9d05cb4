// The two 16-bit floating-point formats, as bits: encoding with one rounding, decoding.
#ifndef GRIDSTRIDE_CPU_HALF_FORMATS_H
#define GRIDSTRIDE_CPU_HALF_FORMATS_H

#include "prelude.h"

// ---- narrowing in two steps with one rounding ----

// The float next to `__x` whose last bit tells that something was cut off: rounding it again to 16 bits gives
// what one rounding would have given ("round to odd").
GRIDSTRIDE_DEVICE float gridstride_float_to_odd(double __x) {
    const float __near = static_cast<float>(__x);
    const unsigned __bits = __float_as_uint(__near);
    const unsigned __cut = __bits - (fabs(static_cast<double>(__near)) > fabs(__x));
    return static_cast<double>(__near) == __x || __x != __x ? __near : __uint_as_float(__cut | 1);
}

// The same from 64-bit integers to double.
GRIDSTRIDE_DEVICE double gridstride_double_to_odd(unsigned long long __x) {
    return static_cast<double>(__x >> 53 ? (__x >> 11 | ((__x & 0x7ff) != 0)) << 11 : __x);
}
GRIDSTRIDE_DEVICE double gridstride_double_to_odd(long long __x) {
    const unsigned long long __bits = static_cast<unsigned long long>(__x);
    return __x < 0 ? -gridstride_double_to_odd(0 - __bits) : gridstride_double_to_odd(__bits);
}

// __x * __y + __z, rounded to odd. The product of two 16-bit numbers is exact.
GRIDSTRIDE_DEVICE double gridstride_fma_to_odd(float __x, float __y, float __z) {
    const double __product = static_cast<double>(__x) * __y;
    const double __sum = __product + __z;
    const double __added = __sum - __product;
    const double __error = (__product - (__sum - __added)) + (__z - __added);
    const long long __bits = __double_as_longlong(__sum);
    const long long __outward = (__error > 0) == (__sum > 0) ? 1 : -1;
    const bool __is_odd = __error == 0 || (__bits & 1) || !isfinite(__sum) || __sum == 0;
    return __is_odd ? __sum : __longlong_as_double(__bits + __outward);
}

// ---- formats ----

// What the processor converts itself.
#if defined(__aarch64__)
typedef __fp16 gridstride_hardware_half;
#define GRIDSTRIDE_HARDWARE_HALF
#elif defined(__FLT16_MAX__) && defined(__F16C__)
typedef _Float16 gridstride_hardware_half;
#define GRIDSTRIDE_HARDWARE_HALF
#endif

// IEEE binary16: __half.
struct gridstride_binary16 {
    enum : int { __fraction_bits = 10, __smallest_exponent = -14, __infinity = 0x7c00, __not_a_number = 0x7fff };

#ifdef GRIDSTRIDE_HARDWARE_HALF
    static inline __attribute__((always_inline)) float __decode(unsigned short __bits) {
        gridstride_hardware_half __half;
        __builtin_memcpy(&__half, &__bits, sizeof __half);
        return static_cast<float>(__half);
    }
    static inline __attribute__((always_inline)) unsigned short __encode(float __x) {
        const gridstride_hardware_half __half = static_cast<gridstride_hardware_half>(__x);
        unsigned short __bits;
        __builtin_memcpy(&__bits, &__half, sizeof __bits);
        return __x != __x ? static_cast<unsigned short>(__not_a_number) : __bits;
    }
#else
    static inline __attribute__((always_inline)) float __decode(unsigned short __bits) {
        const unsigned __magnitude = (__bits & 0x7fffu) << 13;
        const float __scaled = __uint_as_float(__magnitude) * __uint_as_float(0x77800000u);  // times 2 to the 112
        const unsigned __special = (__bits & 0x7c00u) == 0x7c00u ? 0x7f800000u | __magnitude : __float_as_uint(__scaled);
        return __uint_as_float(__special | (__bits & 0x8000u) << 16);
    }
    static inline __attribute__((always_inline)) unsigned short __encode(float __x) {
        const unsigned __bits = __float_as_uint(__x), __magnitude = __bits & 0x7fffffffu;
        // Adding a number whose last place is the smallest denormal rounds denormals in hardware.
        const unsigned __denormal = __float_as_uint(__uint_as_float(__magnitude) + 0.5f) - 0x3f000000u;
        const unsigned __normal = (__magnitude - 0x38000000u + 0xfff + (__magnitude >> 13 & 1)) >> 13;
        const unsigned __finite = __magnitude < 0x38800000u ? __denormal : __normal;
        const unsigned __bounded = __magnitude >= 0x477ff000u ? static_cast<unsigned>(__infinity) : __finite;
        return static_cast<unsigned short>(__x != __x ? static_cast<unsigned>(__not_a_number) : __bounded | (__bits >> 16 & 0x8000u));
    }
#endif
};

// The upper half of a float: __nv_bfloat16.
struct gridstride_brain16 {
    enum : int { __fraction_bits = 7, __smallest_exponent = -126, __infinity = 0x7f80, __not_a_number = 0x7fff };

    static inline __attribute__((always_inline)) float __decode(unsigned short __bits) {
        return __uint_as_float(static_cast<unsigned>(__bits) << 16);
    }
    static inline __attribute__((always_inline)) unsigned short __encode(float __x) {
        const unsigned __bits = __float_as_uint(__x);
        const unsigned __rounded = (__bits + 0x7fff + (__bits >> 16 & 1)) >> 16;
        return static_cast<unsigned short>(__x != __x ? static_cast<unsigned>(__not_a_number) : __rounded);
    }
};

// ---- encoding in a stated direction ----

enum gridstride_half_rounding : unsigned { GRIDSTRIDE_HALF_RZ, GRIDSTRIDE_HALF_RU, GRIDSTRIDE_HALF_RD };

// Scales by the last place of the result, cuts there, and goes one place outward where the direction says so.
template <class __format>
GRIDSTRIDE_DEVICE unsigned short gridstride_encode(double __x, gridstride_half_rounding __rounding) {
    const unsigned short __sign = signbit(__x) ? 0x8000 : 0;
    if (__x != __x) return __format::__not_a_number;
    if (isinf(__x)) return static_cast<unsigned short>(__sign | __format::__infinity);
    const double __magnitude = fabs(__x);
    const int __exponent = __magnitude == 0 ? __format::__smallest_exponent : max(ilogb(__magnitude), static_cast<int>(__format::__smallest_exponent));
    const int __last_place = __exponent - __format::__fraction_bits;
    const double __places = trunc(ldexp(__magnitude, -__last_place));
    const bool __is_cut = ldexp(__places, __last_place) != __magnitude;
    const bool __outward = __rounding == GRIDSTRIDE_HALF_RU ? !__sign : __rounding == GRIDSTRIDE_HALF_RD && __sign;
    const unsigned __biased = static_cast<unsigned>(__exponent - __format::__smallest_exponent) << __format::__fraction_bits;
    // The leading bit of a normal number adds one to the exponent, and so does a carry.
    const unsigned __bits = __biased + static_cast<unsigned>(__places) + (__is_cut && __outward);
    const unsigned __largest = static_cast<unsigned>(__format::__infinity - !__outward);
    return static_cast<unsigned short>(__sign | min(__bits, __largest));
}

#endif
