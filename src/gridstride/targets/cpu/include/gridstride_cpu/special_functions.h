// CUDA's mathematical functions that the C library lacks: rsqrt, sinpi, norm3d, erfcx, normcdfinv, ...
//
// The double functions are written out; most float ones round the double result once.
#ifndef GRIDSTRIDE_CPU_SPECIAL_FUNCTIONS_H
#define GRIDSTRIDE_CPU_SPECIAL_FUNCTIONS_H

#include "math_functions.h"

#define GRIDSTRIDE_PI 3.14159265358979323846
#define GRIDSTRIDE_SQRT_PI 1.77245385090551602730
#define GRIDSTRIDE_SQRT_HALF 0.70710678118654752440
// What GRIDSTRIDE_SQRT_HALF leaves of the square root of one half.
#define GRIDSTRIDE_SQRT_HALF_TAIL (-4.8336466567264567e-17)

// `namef` and the overload `name(float)` by rounding `name(double)`.
#define GRIDSTRIDE_FLOAT_FROM_DOUBLE(name) \
    GRIDSTRIDE_DEVICE float name##f(float __x) { return static_cast<float>(name(static_cast<double>(__x))); } \
    GRIDSTRIDE_DEVICE float name(float __x) { return name##f(__x); }

// ---- reciprocal roots ----

GRIDSTRIDE_DEVICE double rsqrt(double __x) { return 1.0 / sqrt(__x); }
GRIDSTRIDE_DEVICE float rsqrtf(float __x) { return 1.0f / sqrtf(__x); }
GRIDSTRIDE_DEVICE float rsqrt(float __x) { return rsqrtf(__x); }
GRIDSTRIDE_DEVICE double rcbrt(double __x) { return 1.0 / cbrt(__x); }
GRIDSTRIDE_FLOAT_FROM_DOUBLE(rcbrt)

// ---- multiples of pi ----

// `__x` is reduced exactly, to a turn and then to [-1/4, 1/4] around a multiple of one half.
GRIDSTRIDE_DEVICE void sincospi(double __x, double* __sine, double* __cosine) {
    const double __turn = fmod(__x, 2.0);
    const double __halves = rint(2.0 * __turn);
    const double __angle = (__turn - 0.5 * __halves) * GRIDSTRIDE_PI;
    const int __quadrant = static_cast<int>(__halves) & 3;
    double __s, __c;
    sincos(__angle, &__s, &__c);
    const double __sine_here = __quadrant & 1 ? __c : __s;
    const double __cosine_here = __quadrant & 1 ? __s : __c;
    // A zero keeps the sign of the argument for the sine and is positive for the cosine.
    *__sine = __quadrant & 2 ? -__sine_here : __sine_here;
    if (*__sine == 0.0) *__sine = copysign(0.0, __x);
    *__cosine = (__quadrant + 1) & 2 ? -__cosine_here : __cosine_here;
    if (*__cosine == 0.0) *__cosine = 0.0;
}
GRIDSTRIDE_DEVICE double sinpi(double __x) {
    double __sine, __cosine;
    sincospi(__x, &__sine, &__cosine);
    return __sine;
}
GRIDSTRIDE_DEVICE double cospi(double __x) {
    double __sine, __cosine;
    sincospi(__x, &__sine, &__cosine);
    return __cosine;
}
GRIDSTRIDE_FLOAT_FROM_DOUBLE(sinpi)
GRIDSTRIDE_FLOAT_FROM_DOUBLE(cospi)
GRIDSTRIDE_DEVICE void sincospif(float __x, float* __sine, float* __cosine) {
    *__sine = sinpif(__x);
    *__cosine = cospif(__x);
}
GRIDSTRIDE_DEVICE void sincospi(float __x, float* __sine, float* __cosine) { sincospif(__x, __sine, __cosine); }

// ---- norms ----

// The exponent that brings the largest magnitude near one, so that squares neither overflow nor vanish.
GRIDSTRIDE_DEVICE int gridstride_norm_exponent(double __largest) {
    int __exponent = 0;
    frexp(__largest, &__exponent);
    return __largest == 0.0 || !isfinite(__largest) ? 0 : __exponent;
}

// The square root of the sum of squares is `root` times two to the `exponent`.
struct gridstride_norm { double root; int exponent; };

template <class __float>
GRIDSTRIDE_DEVICE gridstride_norm gridstride_norm_of(int __count, const __float* __values) {
    double __largest = 0.0;
    for (int __i = 0; __i < __count; ++__i) {
        if (isinf(__values[__i])) return gridstride_norm{__builtin_inf(), 0};
        __largest = fmax(__largest, fabs(static_cast<double>(__values[__i])));
    }
    const int __exponent = gridstride_norm_exponent(__largest);
    double __sum = 0.0;
    for (int __i = 0; __i < __count; ++__i) {
        const double __scaled = ldexp(static_cast<double>(__values[__i]), -__exponent);
        __sum = fma(__scaled, __scaled, __sum);
    }
    return gridstride_norm{sqrt(__sum), __exponent};
}
template <class __float>
GRIDSTRIDE_DEVICE double gridstride_length(int __count, const __float* __values) {
    const gridstride_norm __norm = gridstride_norm_of(__count, __values);
    return ldexp(__norm.root, __norm.exponent);
}
template <class __float>
GRIDSTRIDE_DEVICE double gridstride_reciprocal_length(int __count, const __float* __values) {
    const gridstride_norm __norm = gridstride_norm_of(__count, __values);
    return ldexp(1.0 / __norm.root, -__norm.exponent);
}

template <class __float>
GRIDSTRIDE_DEVICE __float gridstride_length(__float __a, __float __b, __float __c, __float __d) {
    const __float __values[] = {__a, __b, __c, __d};
    return static_cast<__float>(gridstride_length(4, __values));
}
template <class __float>
GRIDSTRIDE_DEVICE __float gridstride_reciprocal_length(__float __a, __float __b, __float __c, __float __d) {
    const __float __values[] = {__a, __b, __c, __d};
    return static_cast<__float>(gridstride_reciprocal_length(4, __values));
}

// The name with its suffix, and for float the overload without one as well.
#define GRIDSTRIDE_NORMS(type, suffix) \
    GRIDSTRIDE_DEVICE type norm##suffix(int __n, const type* __p) { return static_cast<type>(gridstride_length(__n, __p)); } \
    GRIDSTRIDE_DEVICE type rnorm##suffix(int __n, const type* __p) { return static_cast<type>(gridstride_reciprocal_length(__n, __p)); } \
    GRIDSTRIDE_DEVICE type norm3d##suffix(type __a, type __b, type __c) { return gridstride_length<type>(__a, __b, __c, 0); } \
    GRIDSTRIDE_DEVICE type rnorm3d##suffix(type __a, type __b, type __c) { return gridstride_reciprocal_length<type>(__a, __b, __c, 0); } \
    GRIDSTRIDE_DEVICE type norm4d##suffix(type __a, type __b, type __c, type __d) { return gridstride_length<type>(__a, __b, __c, __d); } \
    GRIDSTRIDE_DEVICE type rnorm4d##suffix(type __a, type __b, type __c, type __d) { return gridstride_reciprocal_length<type>(__a, __b, __c, __d); }

GRIDSTRIDE_NORMS(double, )
GRIDSTRIDE_NORMS(float, )
GRIDSTRIDE_NORMS(float, f)
#undef GRIDSTRIDE_NORMS
// Without an overload for float, as in NVIDIA's run-time compiler.
GRIDSTRIDE_DEVICE double rhypot(double __a, double __b) { return gridstride_reciprocal_length<double>(__a, __b, 0, 0); }
GRIDSTRIDE_DEVICE float rhypotf(float __a, float __b) { return gridstride_reciprocal_length<float>(__a, __b, 0, 0); }

// ---- error function: scaled complement, inverses ----

// exp(x * x), with the rounding error of the square put back.
GRIDSTRIDE_DEVICE double gridstride_exp_of_square(double __x) {
    const double __square = __x * __x;
    const double __scale = exp(__square);
    return isfinite(__scale) ? fma(__scale, fma(__x, __x, -__square), __scale) : __scale;
}

// __y * exp(x * x), which is in range where exp(x * x) alone may not be.
GRIDSTRIDE_DEVICE double gridstride_times_exp_of_square(double __y, double __x) {
    const double __square = __x * __x, __half = exp(0.5 * __square);
    const double __scaled = __y * __half * __half;
    return fma(__scaled, fma(__x, __x, -__square), __scaled);
}

// exp(x * x) * erfc(x).
GRIDSTRIDE_DEVICE double erfcx(double __x) {
    if (!(__x >= 10.0)) return gridstride_exp_of_square(__x) * erfc(__x);
    const double __step = 0.5 / __x / __x;
    double __term = 1.0, __sum = 1.0;
    for (int __k = 1; __k < 40 && fabs(__term) > 1e-17; __k += 2) {  // asymptotic series
        __term *= -__k * __step;
        __sum += __term;
    }
    return __sum / GRIDSTRIDE_SQRT_PI / __x;
}
GRIDSTRIDE_FLOAT_FROM_DOUBLE(erfcx)

// A start for Halley's iteration, right to a fraction of a percent: Winitzki's approximation of the inverse of erf.
GRIDSTRIDE_DEVICE double gridstride_erfinv_start(double __log_of_product) {
    const double __a = 0.147;
    const double __b = 2.0 / (GRIDSTRIDE_PI * __a) + 0.5 * __log_of_product;
    return sqrt(sqrt(fmax(__b * __b - __log_of_product / __a, 0.0)) - __b);
}

// The argument of erfc for a value in (0, 1].
GRIDSTRIDE_DEVICE double gridstride_erfcinv_of_tail(double __y) {
    double __x = gridstride_erfinv_start(log(__y) + log(2.0 - __y));
    for (int __i = 0; __i < 4; ++__i) {  // in the scaled function, which neither vanishes nor loses digits
        const double __ratio = (erfcx(__x) - gridstride_times_exp_of_square(__y, __x)) * (0.5 * GRIDSTRIDE_SQRT_PI);
        const double __step = __ratio / (1.0 - __x * __ratio);
        __x += __step;
        if (fabs(__step) < 1e-9 * __x) break;
    }
    return __x;
}

GRIDSTRIDE_DEVICE double erfinv(double __y) {
    const double __magnitude = fabs(__y);
    if (!(__magnitude < 1.0)) return __magnitude == 1.0 ? copysign(__builtin_inf(), __y) : __builtin_nan("");
    if (__magnitude < 1e-8) return __y * (0.5 * GRIDSTRIDE_SQRT_PI);
    if (__magnitude > 0.5) return copysign(gridstride_erfcinv_of_tail(1.0 - __magnitude), __y);
    double __x = gridstride_erfinv_start(log1p(-__y * __y));
    for (int __i = 0; __i < 3; ++__i) {
        const double __ratio = (erf(__x) - __magnitude) * gridstride_exp_of_square(__x) * (0.5 * GRIDSTRIDE_SQRT_PI);
        __x -= __ratio / (1.0 + __x * __ratio);
    }
    return copysign(__x, __y);
}
GRIDSTRIDE_FLOAT_FROM_DOUBLE(erfinv)

GRIDSTRIDE_DEVICE double erfcinv(double __y) {
    if (!(__y >= 0.0 && __y <= 2.0)) return __builtin_nan("");
    if (__y == 0.0 || __y == 2.0) return __y == 0.0 ? __builtin_inf() : -__builtin_inf();
    if (__y >= 0.5 && __y <= 1.5) return erfinv(1.0 - __y);
    return __y < 1.0 ? gridstride_erfcinv_of_tail(__y) : -gridstride_erfcinv_of_tail(2.0 - __y);
}
GRIDSTRIDE_FLOAT_FROM_DOUBLE(erfcinv)

// ---- normal distribution ----

GRIDSTRIDE_DEVICE double normcdf(double __x) {
    const double __scaled = -__x * GRIDSTRIDE_SQRT_HALF;
    const double __lost = fma(-__x, GRIDSTRIDE_SQRT_HALF, -__scaled) - __x * GRIDSTRIDE_SQRT_HALF_TAIL;
    const double __tail = erfc(__scaled);
    // The derivative of erfc brings back what rounding took from its argument.
    return 0.5 * (fabs(__scaled) < 27.3 ? fma(-2.0 / GRIDSTRIDE_SQRT_PI * __lost, exp(-__scaled * __scaled), __tail) : __tail);
}
GRIDSTRIDE_DEVICE double normcdfinv(double __y) { return -1.41421356237309504880 * erfcinv(2.0 * __y); }
GRIDSTRIDE_FLOAT_FROM_DOUBLE(normcdf)
GRIDSTRIDE_FLOAT_FROM_DOUBLE(normcdfinv)

// ---- modified Bessel functions of order 0 and 1 ----

// The power series, all of whose terms are positive, and beyond it the asymptotic one.
GRIDSTRIDE_DEVICE double gridstride_bessel_i(int __order, double __x) {
    const double __magnitude = fabs(__x);
    double __term = 1.0, __sum = 1.0;
    if (__magnitude < 30.0) {
        const double __quarter = 0.25 * __x * __x;
        for (int __k = 1; __k < 100 && __term > 1e-17 * __sum; ++__k) {
            __term *= __quarter / (__k * (__k + __order));
            __sum += __term;
        }
        return __order == 0 ? __sum : 0.5 * __x * __sum;
    }
    if (!isfinite(__magnitude)) return __order == 0 ? __magnitude : __x;
    const double __squared_order = 4.0 * __order * __order;
    for (int __k = 1; __k < 40 && fabs(__term) > 1e-17; ++__k) {
        const double __odd = 2 * __k - 1;
        __term *= (__odd * __odd - __squared_order) / (8.0 * __k * __magnitude);
        __sum += __term;
    }
    const double __root = exp(0.5 * __magnitude);  // exp(x) alone overflows a little before the function does
    const double __value = __root * (__sum / sqrt(2.0 * GRIDSTRIDE_PI * __magnitude)) * __root;
    return __order == 0 ? __value : copysign(__value, __x);
}
GRIDSTRIDE_DEVICE double cyl_bessel_i0(double __x) { return gridstride_bessel_i(0, __x); }
GRIDSTRIDE_DEVICE double cyl_bessel_i1(double __x) { return gridstride_bessel_i(1, __x); }
GRIDSTRIDE_FLOAT_FROM_DOUBLE(cyl_bessel_i0)
GRIDSTRIDE_FLOAT_FROM_DOUBLE(cyl_bessel_i1)

#undef GRIDSTRIDE_FLOAT_FROM_DOUBLE
#undef GRIDSTRIDE_SQRT_HALF_TAIL
#undef GRIDSTRIDE_SQRT_HALF
#undef GRIDSTRIDE_SQRT_PI
#undef GRIDSTRIDE_PI

#endif
