// Elementary functions of float as plain arithmetic in double: exp, log, pow, sin, cos, tanh and their kin.
//
// The C library's are calls, so loops with them stay scalar; and where a compiler has vector versions, they give
// other results, so that a number would depend on its place in the array. These are the same operations for
// one number as for a vector of them, with every compiler: straight-line code, in which double takes care of the
// accuracy. Errors are below 0.51 units in the last place.
#ifndef GRIDSTRIDE_CPU_ELEMENTARY_FUNCTIONS_H
#define GRIDSTRIDE_CPU_ELEMENTARY_FUNCTIONS_H

#include "bits.h"

#define GRIDSTRIDE_LN2 0.6931471805599453
#define GRIDSTRIDE_LOG2_E 1.4426950408889634
// Added to a small number and taken away, it rounds to an integer, which is meanwhile in the lowest bits.
#define GRIDSTRIDE_ROUNDER 6755399441055744.0

// One rounding where the processor can; never left to the compiler, which might do it here and not there.
#if defined(__FMA__) || defined(__aarch64__)
GRIDSTRIDE_DEVICE double gridstride_multiply_add(double __x, double __y, double __z) { return __builtin_fma(__x, __y, __z); }
#else
GRIDSTRIDE_DEVICE double gridstride_multiply_add(double __x, double __y, double __z) {
#if defined(__clang__)
#pragma clang fp contract(off)
#endif
    return __x * __y + __z;
}
#endif

// Limits a number to a range; a NaN stays one.
GRIDSTRIDE_DEVICE double gridstride_limited(double __x, double __lowest, double __highest) {
    const double __above = __x < __lowest ? __lowest : __x;
    return __above > __highest ? __highest : __above;
}

// A choice without a branch, which compilers would lead past the arithmetic and then make no vectors of.
GRIDSTRIDE_DEVICE float gridstride_choose(bool __condition, float __if_true, float __if_false) {
    const int __mask = -static_cast<int>(__condition);
    return __int_as_float((__float_as_int(__if_true) & __mask) | (__float_as_int(__if_false) & ~__mask));
}
GRIDSTRIDE_DEVICE double gridstride_choose(bool __condition, double __if_true, double __if_false) {
    const long long __mask = -static_cast<long long>(__condition);
    return __longlong_as_double((__double_as_longlong(__if_true) & __mask) | (__double_as_longlong(__if_false) & ~__mask));
}

// ---- powers ----

// exp(x) for a magnitude of at most ln(2) / 2.
GRIDSTRIDE_DEVICE double gridstride_exp_near_zero(double __x) {
    double __p = 0.00019907702175735054;
    __p = gridstride_multiply_add(__p, __x, 0.0013948697984710072);
    __p = gridstride_multiply_add(__p, __x, 0.008333283339034426);
    __p = gridstride_multiply_add(__p, __x, 0.0416662165210468);
    __p = gridstride_multiply_add(__p, __x, 0.16666666787028753);
    __p = gridstride_multiply_add(__p, __x, 0.5000000108377728);
    __p = gridstride_multiply_add(__p, __x, 0.999999999995473);
    return gridstride_multiply_add(__p, __x, 0.9999999999592369);
}

// 2 to the power of an integer, which is given with the rounder added.
GRIDSTRIDE_DEVICE double gridstride_two_to(double __rounded) {
    const unsigned long long __bits = static_cast<unsigned long long>(__double_as_longlong(__rounded)) << 52;
    return __longlong_as_double(static_cast<long long>(__bits + 0x3ff0000000000000ull));
}

// 2 to the power of x, which is limited to where the result is a float other than 0 or infinity, or a little beyond.
GRIDSTRIDE_DEVICE double gridstride_exp2(double __x) {
    const double __rounded = __x + GRIDSTRIDE_ROUNDER;
    const double __rest = __x - (__rounded - GRIDSTRIDE_ROUNDER);
    return gridstride_exp_near_zero(__rest * GRIDSTRIDE_LN2) * gridstride_two_to(__rounded);
}

GRIDSTRIDE_DEVICE double gridstride_exp(double __x) {
    const double __rounded = gridstride_multiply_add(__x, GRIDSTRIDE_LOG2_E, GRIDSTRIDE_ROUNDER);
    const double __rest = gridstride_multiply_add(-(__rounded - GRIDSTRIDE_ROUNDER), GRIDSTRIDE_LN2, __x);
    return gridstride_exp_near_zero(__rest) * gridstride_two_to(__rounded);
}

GRIDSTRIDE_DEVICE float expf(float __x) { return static_cast<float>(gridstride_exp(gridstride_limited(__x, -104.0, 89.0))); }
GRIDSTRIDE_DEVICE float exp2f(float __x) { return static_cast<float>(gridstride_exp2(gridstride_limited(__x, -151.0, 129.0))); }
GRIDSTRIDE_DEVICE float exp10f(float __x) {
    const double __limited = gridstride_limited(__x, -46.0, 39.0);
    const double __rounded = gridstride_multiply_add(__limited, 3.321928094887362, GRIDSTRIDE_ROUNDER);
    const double __rest = gridstride_multiply_add(-(__rounded - GRIDSTRIDE_ROUNDER), 0.3010299956639812, __limited);
    return static_cast<float>(gridstride_exp_near_zero(__rest * 2.302585092994046) * gridstride_two_to(__rounded));
}

// From exp(-2|x|); close to zero, where that would cancel, from the series.
GRIDSTRIDE_DEVICE float tanhf(float __x) {
    const double __magnitude = __x < 0.0f ? -static_cast<double>(__x) : static_cast<double>(__x);
    const double __shrunk = gridstride_exp(gridstride_limited(-2.0 * __magnitude, -40.0, 0.0));
    const double __far = (1.0 - __shrunk) / (1.0 + __shrunk);
    const double __square = __magnitude * __magnitude;
    double __series = gridstride_multiply_add(__square, -17.0 / 315.0, 2.0 / 15.0);
    __series = gridstride_multiply_add(__series, __square, -1.0 / 3.0);
    __series = gridstride_multiply_add(__series * __square, __magnitude, __magnitude);
    const float __value = gridstride_choose(
        __builtin_fabsf(__x) < 0.04f, static_cast<float>(__series), static_cast<float>(__far));
    return __builtin_copysignf(__value, __x);
}

// ---- logarithms ----

// A positive finite float is 2^exponent times a number between the roots of 1/2 and 2, whose natural logarithm is `rest`.
struct gridstride_log_parts {
    double exponent, rest;
};

GRIDSTRIDE_DEVICE gridstride_log_parts gridstride_log(float __x) {
    const bool __is_small = __x < 1.1754943508222875e-38f;  // the smallest normal number
    const int __bits = __float_as_int(__is_small ? __x * 8388608.0f : __x);
    const int __exponent = (__bits - 0x3f3504f3) >> 23;
    const double __f = static_cast<double>(__int_as_float(__bits - __exponent * 0x800000)) - 1.0;
    const double __s = __f / (__f + 2.0), __z = __s * __s;
    double __p = 2.0 / 17.0;
    __p = gridstride_multiply_add(__p, __z, 2.0 / 15.0);
    __p = gridstride_multiply_add(__p, __z, 2.0 / 13.0);
    __p = gridstride_multiply_add(__p, __z, 2.0 / 11.0);
    __p = gridstride_multiply_add(__p, __z, 2.0 / 9.0);
    __p = gridstride_multiply_add(__p, __z, 2.0 / 7.0);
    __p = gridstride_multiply_add(__p, __z, 2.0 / 5.0);
    __p = gridstride_multiply_add(__p, __z, 2.0 / 3.0);
    __p = gridstride_multiply_add(__p, __z, 2.0);
    return gridstride_log_parts{static_cast<double>(__is_small ? __exponent - 23 : __exponent), __s * __p};
}

// The logarithm of a float that need not be positive or finite, where `__log` is right if it is.
GRIDSTRIDE_DEVICE float gridstride_any_log(float __x, double __log) {
    const float __finite = gridstride_choose(__x < __builtin_inff(), static_cast<float>(__log), __x);  // or NaN
    const float __of_zero = gridstride_choose(__x == 0.0f, -__builtin_inff(), __finite);
    return gridstride_choose(__x < 0.0f, __builtin_nanf(""), __of_zero);
}

GRIDSTRIDE_DEVICE float logf(float __x) {
    const gridstride_log_parts __parts = gridstride_log(__x);
    return gridstride_any_log(__x, gridstride_multiply_add(__parts.exponent, GRIDSTRIDE_LN2, __parts.rest));
}
GRIDSTRIDE_DEVICE float log2f(float __x) {
    const gridstride_log_parts __parts = gridstride_log(__x);
    return gridstride_any_log(__x, gridstride_multiply_add(__parts.rest, GRIDSTRIDE_LOG2_E, __parts.exponent));
}
GRIDSTRIDE_DEVICE float log10f(float __x) {
    const gridstride_log_parts __parts = gridstride_log(__x);
    const double __natural = gridstride_multiply_add(__parts.exponent, GRIDSTRIDE_LN2, __parts.rest);
    return gridstride_any_log(__x, __natural * 0.4342944819032518);
}

// ---- any power ----

GRIDSTRIDE_DEVICE float powf(float __x, float __y) {
    const float __base = __builtin_fabsf(__x), __infinity = __builtin_inff();
    const gridstride_log_parts __parts = gridstride_log(__base);
    const double __log = gridstride_multiply_add(__parts.rest, GRIDSTRIDE_LOG2_E, __parts.exponent);
    float __value = static_cast<float>(gridstride_exp2(gridstride_limited(__log * __y, -160.0, 160.0)));
    __value = gridstride_choose(__base == 0.0f, gridstride_choose(__y > 0.0f, 0.0f, __infinity), __value);
    __value = gridstride_choose(__base == __infinity, gridstride_choose(__y > 0.0f, __infinity, 0.0f), __value);
    const float __half = 0.5f * __y;
    const bool __is_integer = __builtin_rintf(__y) == __y, __is_even = __builtin_rintf(__half) == __half;
    float __of_negative = gridstride_choose(__is_even, __value, -__value);
    const float __of_no_integer = gridstride_choose(__base < __infinity && __base > 0.0f, __builtin_nanf(""), __value);
    __of_negative = gridstride_choose(__is_integer, __of_negative, __of_no_integer);
    __value = gridstride_choose(__float_as_int(__x) < 0, __of_negative, __value);
    __value = gridstride_choose(__x != __x || __y != __y, __x + __y, __value);
    __value = gridstride_choose(__x == -1.0f && __builtin_fabsf(__y) == __infinity, 1.0f, __value);
    return gridstride_choose(__y == 0.0f || __x == 1.0f, 1.0f, __value);
}

// ---- angles ----

// An angle as a number of quarter turns, of which only the last two bits count, and a rest of at most about an
// eighth turn, in radians.
struct gridstride_angle {
    int quarters;
    double rest;
};

// The constant for a size of the argument: below 2^49, 2^75, 2^101, and beyond.
GRIDSTRIDE_DEVICE double gridstride_for_size(double __size, double __a, double __b, double __c, double __d) {
    const double __two_to_49 = 562949953421312.0, __two_to_26 = 67108864.0;
    const double __two_to_75 = __two_to_49 * __two_to_26, __two_to_101 = __two_to_75 * __two_to_26;
    const double __large = gridstride_choose(__size < __two_to_101, __c, __d);
    return gridstride_choose(__size < __two_to_49, __a, gridstride_choose(__size < __two_to_75, __b, __large));
}

// What is left of a number of quarter turns without full turns.
GRIDSTRIDE_DEVICE double gridstride_without_full_turns(double __quarters) {
    const double __rounder = 4.0 * GRIDSTRIDE_ROUNDER;
    return __quarters - ((__quarters + __rounder) - __rounder);
}

// Multiplies with 2 / pi in three parts, of which the first two give exact products. A large float is an integer
// times a power of two; with 2 / pi times this power, quarter turns beyond full ones have left the constant already.
GRIDSTRIDE_DEVICE gridstride_angle gridstride_reduced_angle(float __angle) {
    const double __x = __angle, __size = __builtin_fabs(__x);
    const double __first = __x * gridstride_for_size(
        __size, 0.6366197764873505, 2.568255319523871e-08, 2.937095545806004e-16, 6.074026479468182e-24);
    const double __second = __x * gridstride_for_size(
        __size, -4.1197691924566016e-09, 7.166494965556909e-17, -5.434184209560394e-25, 1.0181664073134233e-32);
    const double __third = __x * gridstride_for_size(
        __size, 7.166494911215068e-17, -5.434184107743751e-25, 1.018166438749971e-32, 3.1436547554916045e-40);
    const double __large = gridstride_without_full_turns(__first), __small = gridstride_without_full_turns(__second);
    const double __rounded = (__large + __small) + GRIDSTRIDE_ROUNDER;
    const double __rest = ((__large - (__rounded - GRIDSTRIDE_ROUNDER)) + __small) + __third;
    return gridstride_angle{static_cast<int>(__double_as_longlong(__rounded)), __rest * 1.5707963267948966};
}

GRIDSTRIDE_DEVICE double gridstride_sine_near_zero(double __x) {
    const double __z = __x * __x;
    double __p = -1.0 / 39916800.0;
    __p = gridstride_multiply_add(__p, __z, 1.0 / 362880.0);
    __p = gridstride_multiply_add(__p, __z, -1.0 / 5040.0);
    __p = gridstride_multiply_add(__p, __z, 1.0 / 120.0);
    __p = gridstride_multiply_add(__p, __z, -1.0 / 6.0);
    return gridstride_multiply_add(__p * __z, __x, __x);
}
GRIDSTRIDE_DEVICE double gridstride_cosine_near_zero(double __x) {
    const double __z = __x * __x;
    double __p = 1.0 / 479001600.0;
    __p = gridstride_multiply_add(__p, __z, -1.0 / 3628800.0);
    __p = gridstride_multiply_add(__p, __z, 1.0 / 40320.0);
    __p = gridstride_multiply_add(__p, __z, -1.0 / 720.0);
    __p = gridstride_multiply_add(__p, __z, 1.0 / 24.0);
    __p = gridstride_multiply_add(__p, __z, -0.5);
    return gridstride_multiply_add(__p, __z, 1.0);
}

// The sine after some more quarter turns.
GRIDSTRIDE_DEVICE float gridstride_sine(const gridstride_angle __angle, int __more) {
    const int __quarters = __angle.quarters + __more;
    const float __value = gridstride_choose(
        __quarters & 1, static_cast<float>(gridstride_cosine_near_zero(__angle.rest)),
        static_cast<float>(gridstride_sine_near_zero(__angle.rest)));
    return gridstride_choose(__quarters & 2, -__value, __value);
}

GRIDSTRIDE_DEVICE float gridstride_if_finite(float __x, float __value) {
    return gridstride_choose(__builtin_fabsf(__x) < __builtin_inff(), __value, __builtin_nanf(""));
}

GRIDSTRIDE_DEVICE float sinf(float __x) {
    const float __sine = gridstride_if_finite(__x, gridstride_sine(gridstride_reduced_angle(__x), 0));
    return gridstride_choose(__x == 0.0f, __x, __sine);  // with its sign
}
GRIDSTRIDE_DEVICE float cosf(float __x) { return gridstride_if_finite(__x, gridstride_sine(gridstride_reduced_angle(__x), 1)); }
GRIDSTRIDE_DEVICE void sincosf(float __x, float* __sine, float* __cosine) {
    const gridstride_angle __angle = gridstride_reduced_angle(__x);
    *__sine = gridstride_choose(__x == 0.0f, __x, gridstride_if_finite(__x, gridstride_sine(__angle, 0)));
    *__cosine = gridstride_if_finite(__x, gridstride_sine(__angle, 1));
}

#undef GRIDSTRIDE_ROUNDER
#undef GRIDSTRIDE_LOG2_E
#undef GRIDSTRIDE_LN2

#endif
