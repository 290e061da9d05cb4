// CUDA's mathematical functions that the C library has: `sin`, `sinf` and the overload `sin(float)`. Those of float
// that kernels use most are in elementary_functions.h.
// The C library is declared, not included: its headers would cost more than the whole kernel.
#ifndef GRIDSTRIDE_CPU_MATH_FUNCTIONS_H
#define GRIDSTRIDE_CPU_MATH_FUNCTIONS_H

#include "bits.h"
#include "elementary_functions.h"

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

// ---- one argument, same type ----

#define GRIDSTRIDE_MATH_1(name) \
    extern "C" double name(double) noexcept; \
    extern "C" float name##f(float) noexcept; \
    GRIDSTRIDE_DEVICE float name(float __x) { return name##f(__x); }

GRIDSTRIDE_MATH_1(acos)
GRIDSTRIDE_MATH_1(acosh)
GRIDSTRIDE_MATH_1(asin)
GRIDSTRIDE_MATH_1(asinh)
GRIDSTRIDE_MATH_1(atan)
GRIDSTRIDE_MATH_1(atanh)
GRIDSTRIDE_MATH_1(cbrt)
GRIDSTRIDE_MATH_1(ceil)
GRIDSTRIDE_MATH_1(cosh)
GRIDSTRIDE_MATH_1(erf)
GRIDSTRIDE_MATH_1(erfc)
GRIDSTRIDE_MATH_1(expm1)
GRIDSTRIDE_MATH_1(fabs)
GRIDSTRIDE_MATH_1(floor)
GRIDSTRIDE_MATH_1(j0)
GRIDSTRIDE_MATH_1(j1)
GRIDSTRIDE_MATH_1(lgamma)
GRIDSTRIDE_MATH_1(log1p)
GRIDSTRIDE_MATH_1(logb)
GRIDSTRIDE_MATH_1(nearbyint)
GRIDSTRIDE_MATH_1(rint)
GRIDSTRIDE_MATH_1(round)
GRIDSTRIDE_MATH_1(sinh)
GRIDSTRIDE_MATH_1(sqrt)
GRIDSTRIDE_MATH_1(tan)
GRIDSTRIDE_MATH_1(tgamma)
GRIDSTRIDE_MATH_1(trunc)
GRIDSTRIDE_MATH_1(y0)
GRIDSTRIDE_MATH_1(y1)
#undef GRIDSTRIDE_MATH_1

// The float versions are ours.
#define GRIDSTRIDE_MATH_1_OWN(name) \
    extern "C" double name(double) noexcept; \
    GRIDSTRIDE_DEVICE float name(float __x) { return name##f(__x); }

GRIDSTRIDE_MATH_1_OWN(cos)
GRIDSTRIDE_MATH_1_OWN(exp)
GRIDSTRIDE_MATH_1_OWN(exp10)
GRIDSTRIDE_MATH_1_OWN(exp2)
GRIDSTRIDE_MATH_1_OWN(log)
GRIDSTRIDE_MATH_1_OWN(log10)
GRIDSTRIDE_MATH_1_OWN(log2)
GRIDSTRIDE_MATH_1_OWN(sin)
GRIDSTRIDE_MATH_1_OWN(tanh)
#undef GRIDSTRIDE_MATH_1_OWN

// ---- two arguments, same type ----

#define GRIDSTRIDE_MATH_2(name) \
    extern "C" double name(double, double) noexcept; \
    extern "C" float name##f(float, float) noexcept; \
    GRIDSTRIDE_DEVICE float name(float __x, float __y) { return name##f(__x, __y); }

GRIDSTRIDE_MATH_2(atan2)
GRIDSTRIDE_MATH_2(copysign)
GRIDSTRIDE_MATH_2(fdim)
GRIDSTRIDE_MATH_2(fmod)
GRIDSTRIDE_MATH_2(hypot)
GRIDSTRIDE_MATH_2(nextafter)
GRIDSTRIDE_MATH_2(remainder)
#undef GRIDSTRIDE_MATH_2

extern "C" double pow(double, double) noexcept;
GRIDSTRIDE_DEVICE float pow(float __x, float __y) { return powf(__x, __y); }

// An exponent that float cannot hold exactly would lose its parity.
GRIDSTRIDE_DEVICE float pow(float __x, int __n) {
    const float __power = static_cast<float>(__n);
    if (static_cast<double>(__power) == __n) return powf(__x, __power);
    return static_cast<float>(pow(static_cast<double>(__x), static_cast<double>(__n)));
}
GRIDSTRIDE_DEVICE double pow(double __x, int __n) { return pow(__x, static_cast<double>(__n)); }

// ---- integers in or out, results through pointers ----

extern "C" int ilogb(double) noexcept;
extern "C" int ilogbf(float) noexcept;
GRIDSTRIDE_DEVICE int ilogb(float __x) { return ilogbf(__x); }

#define GRIDSTRIDE_MATH_WITH(name, second) \
    extern "C" double name(double, second) noexcept; \
    extern "C" float name##f(float, second) noexcept; \
    GRIDSTRIDE_DEVICE float name(float __x, second __y) { return name##f(__x, __y); }

GRIDSTRIDE_MATH_WITH(frexp, int*)
GRIDSTRIDE_MATH_WITH(ldexp, int)
GRIDSTRIDE_MATH_WITH(scalbn, int)
GRIDSTRIDE_MATH_WITH(scalbln, long)
#undef GRIDSTRIDE_MATH_WITH

extern "C" double modf(double, double*) noexcept;
extern "C" float modff(float, float*) noexcept;
GRIDSTRIDE_DEVICE float modf(float __x, float* __whole) { return modff(__x, __whole); }

extern "C" double remquo(double, double, int*) noexcept;
extern "C" float remquof(float, float, int*) noexcept;
GRIDSTRIDE_DEVICE float remquo(float __x, float __y, int* __quotient) { return remquof(__x, __y, __quotient); }

extern "C" void sincos(double, double*, double*) noexcept;
GRIDSTRIDE_DEVICE void sincos(float __x, float* __sine, float* __cosine) { sincosf(__x, __sine, __cosine); }

extern "C" double jn(int, double) noexcept;
extern "C" float jnf(int, float) noexcept;
GRIDSTRIDE_DEVICE float jn(int __n, float __x) { return jnf(__n, __x); }
extern "C" double yn(int, double) noexcept;
extern "C" float ynf(int, float) noexcept;
GRIDSTRIDE_DEVICE float yn(int __n, float __x) { return ynf(__n, __x); }

extern "C" double nan(const char*) noexcept;
extern "C" float nanf(const char*) noexcept;

// ---- fused multiply and add ----

extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
GRIDSTRIDE_DEVICE float fma(float __x, float __y, float __z) { return fmaf(__x, __y, __z); }

// ---- classification ----

GRIDSTRIDE_DEVICE bool isnan(float __x) { return __builtin_isnan(__x); }
GRIDSTRIDE_DEVICE bool isnan(double __x) { return __builtin_isnan(__x); }
GRIDSTRIDE_DEVICE bool isinf(float __x) { return __builtin_isinf(__x); }
GRIDSTRIDE_DEVICE bool isinf(double __x) { return __builtin_isinf(__x); }
GRIDSTRIDE_DEVICE bool isfinite(float __x) { return __builtin_isfinite(__x); }
GRIDSTRIDE_DEVICE bool isfinite(double __x) { return __builtin_isfinite(__x); }
// By the bits: a loop of __builtin_signbitf of converted halves is more than g++ 12 can vectorize.
GRIDSTRIDE_DEVICE bool signbit(float __x) { return __float_as_int(__x) < 0; }
GRIDSTRIDE_DEVICE bool signbit(double __x) { return __double_as_longlong(__x) < 0; }

// The names behind them.
GRIDSTRIDE_DEVICE int __isnanf(float __x) { return __builtin_isnan(__x); }
GRIDSTRIDE_DEVICE int __isnan(double __x) { return __builtin_isnan(__x); }
GRIDSTRIDE_DEVICE int __isinff(float __x) { return __builtin_isinf(__x) != 0; }
GRIDSTRIDE_DEVICE int __isinf(double __x) { return __builtin_isinf(__x) != 0; }
GRIDSTRIDE_DEVICE int __finitef(float __x) { return __builtin_isfinite(__x); }
GRIDSTRIDE_DEVICE int __finite(double __x) { return __builtin_isfinite(__x); }
GRIDSTRIDE_DEVICE int __signbitf(float __x) { return signbit(__x); }
GRIDSTRIDE_DEVICE int __signbit(double __x) { return signbit(__x); }

// ---- minimum, maximum, absolute value ----

// As in PTX: a NaN yields the other argument, and the positive zero is the larger one. Written out, because
// compilers call the C library for `fmaxf` and then do not vectorize.
GRIDSTRIDE_DEVICE float fmaxf(float __x, float __y) {
    const float __larger = __y != __y ? __x : (__x > __y ? __x : __y);
    return __x == __y ? __int_as_float(__float_as_int(__x) & __float_as_int(__y)) : __larger;
}
GRIDSTRIDE_DEVICE float fminf(float __x, float __y) {
    const float __smaller = __y != __y ? __x : (__x < __y ? __x : __y);
    return __x == __y ? __int_as_float(__float_as_int(__x) | __float_as_int(__y)) : __smaller;
}
GRIDSTRIDE_DEVICE double fmax(double __x, double __y) {
    const double __larger = __y != __y ? __x : (__x > __y ? __x : __y);
    return __x == __y ? __longlong_as_double(__double_as_longlong(__x) & __double_as_longlong(__y)) : __larger;
}
GRIDSTRIDE_DEVICE double fmin(double __x, double __y) {
    const double __smaller = __y != __y ? __x : (__x < __y ? __x : __y);
    return __x == __y ? __longlong_as_double(__double_as_longlong(__x) | __double_as_longlong(__y)) : __smaller;
}
GRIDSTRIDE_DEVICE float fmax(float __x, float __y) { return fmaxf(__x, __y); }
GRIDSTRIDE_DEVICE float fmin(float __x, float __y) { return fminf(__x, __y); }

#define GRIDSTRIDE_MIN_MAX(result, first, second) \
    GRIDSTRIDE_DEVICE result max(first __x, second __y) \
    { return static_cast<result>(__x) > static_cast<result>(__y) ? static_cast<result>(__x) : static_cast<result>(__y); } \
    GRIDSTRIDE_DEVICE result min(first __x, second __y) \
    { return static_cast<result>(__x) < static_cast<result>(__y) ? static_cast<result>(__x) : static_cast<result>(__y); }

// The same pairs as on the GPU: one more here would compile what fails there.
#define GRIDSTRIDE_MIN_MAX_OF(integer) \
    GRIDSTRIDE_MIN_MAX(integer, integer, integer) \
    GRIDSTRIDE_MIN_MAX(unsigned integer, unsigned integer, unsigned integer) \
    GRIDSTRIDE_MIN_MAX(unsigned integer, integer, unsigned integer) \
    GRIDSTRIDE_MIN_MAX(unsigned integer, unsigned integer, integer)

GRIDSTRIDE_MIN_MAX_OF(int)
GRIDSTRIDE_MIN_MAX_OF(long)
GRIDSTRIDE_MIN_MAX_OF(long long)
#undef GRIDSTRIDE_MIN_MAX_OF
#undef GRIDSTRIDE_MIN_MAX

GRIDSTRIDE_DEVICE float max(float __x, float __y) { return fmaxf(__x, __y); }
GRIDSTRIDE_DEVICE float min(float __x, float __y) { return fminf(__x, __y); }
GRIDSTRIDE_DEVICE double max(double __x, double __y) { return fmax(__x, __y); }
GRIDSTRIDE_DEVICE double min(double __x, double __y) { return fmin(__x, __y); }
GRIDSTRIDE_DEVICE double max(float __x, double __y) { return fmax(static_cast<double>(__x), __y); }
GRIDSTRIDE_DEVICE double min(float __x, double __y) { return fmin(static_cast<double>(__x), __y); }
GRIDSTRIDE_DEVICE double max(double __x, float __y) { return fmax(__x, static_cast<double>(__y)); }
GRIDSTRIDE_DEVICE double min(double __x, float __y) { return fmin(__x, static_cast<double>(__y)); }

GRIDSTRIDE_DEVICE unsigned umax(unsigned __x, unsigned __y) { return max(__x, __y); }
GRIDSTRIDE_DEVICE unsigned umin(unsigned __x, unsigned __y) { return min(__x, __y); }
GRIDSTRIDE_DEVICE long long llmax(long long __x, long long __y) { return max(__x, __y); }
GRIDSTRIDE_DEVICE long long llmin(long long __x, long long __y) { return min(__x, __y); }
GRIDSTRIDE_DEVICE unsigned long long ullmax(unsigned long long __x, unsigned long long __y) { return max(__x, __y); }
GRIDSTRIDE_DEVICE unsigned long long ullmin(unsigned long long __x, unsigned long long __y) { return min(__x, __y); }

extern "C" int abs(int) noexcept;
extern "C" long labs(long) noexcept;
extern "C" long long llabs(long long) noexcept;
GRIDSTRIDE_DEVICE long abs(long __x) { return labs(__x); }
GRIDSTRIDE_DEVICE long long abs(long long __x) { return llabs(__x); }
GRIDSTRIDE_DEVICE float abs(float __x) { return fabsf(__x); }
GRIDSTRIDE_DEVICE double abs(double __x) { return fabs(__x); }

#endif
