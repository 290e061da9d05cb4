// Operators and intrinsics of 16-bit floating-point types, as friends that a type gets by deriving from these
// classes: only those that are used are ever instantiated.
//
// Arithmetic is that of float, rounded once per operation: exact for + - * / and sqrt, as float has more than
// twice the digits. `__a.__get()` is a half's float, `__h::__round(v)` the half nearest to a float.
#ifndef GRIDSTRIDE_CPU_HALF_OPERATIONS_H
#define GRIDSTRIDE_CPU_HALF_OPERATIONS_H

#include "half_formats.h"

#define GRIDSTRIDE_FRIEND friend inline __attribute__((always_inline))

#define GRIDSTRIDE_OPERATORS(type, add, subtract, multiply, divide, negate, one) \
    GRIDSTRIDE_FRIEND type operator+(const type& __a, const type& __b) { return add(__a, __b); } \
    GRIDSTRIDE_FRIEND type operator-(const type& __a, const type& __b) { return subtract(__a, __b); } \
    GRIDSTRIDE_FRIEND type operator*(const type& __a, const type& __b) { return multiply(__a, __b); } \
    GRIDSTRIDE_FRIEND type operator/(const type& __a, const type& __b) { return divide(__a, __b); } \
    GRIDSTRIDE_FRIEND type& operator+=(type& __a, const type& __b) { return __a = add(__a, __b); } \
    GRIDSTRIDE_FRIEND type& operator-=(type& __a, const type& __b) { return __a = subtract(__a, __b); } \
    GRIDSTRIDE_FRIEND type& operator*=(type& __a, const type& __b) { return __a = multiply(__a, __b); } \
    GRIDSTRIDE_FRIEND type& operator/=(type& __a, const type& __b) { return __a = divide(__a, __b); } \
    GRIDSTRIDE_FRIEND type operator+(const type& __a) { return __a; } \
    GRIDSTRIDE_FRIEND type operator-(const type& __a) { return negate(__a); } \
    GRIDSTRIDE_FRIEND type& operator++(type& __a) { return __a = add(__a, one); } \
    GRIDSTRIDE_FRIEND type& operator--(type& __a) { return __a = subtract(__a, one); } \
    GRIDSTRIDE_FRIEND type operator++(type& __a, int) { const type __old = __a; ++__a; return __old; } \
    GRIDSTRIDE_FRIEND type operator--(type& __a, int) { const type __old = __a; --__a; return __old; }

// A NaN differs from everything; pairs compare where both halves do.
#define GRIDSTRIDE_RELATIONS(type, equal, unequal, less, at_most, greater, at_least) \
    GRIDSTRIDE_FRIEND bool operator==(const type& __a, const type& __b) { return equal(__a, __b); } \
    GRIDSTRIDE_FRIEND bool operator!=(const type& __a, const type& __b) { return unequal(__a, __b); } \
    GRIDSTRIDE_FRIEND bool operator<(const type& __a, const type& __b) { return less(__a, __b); } \
    GRIDSTRIDE_FRIEND bool operator<=(const type& __a, const type& __b) { return at_most(__a, __b); } \
    GRIDSTRIDE_FRIEND bool operator>(const type& __a, const type& __b) { return greater(__a, __b); } \
    GRIDSTRIDE_FRIEND bool operator>=(const type& __a, const type& __b) { return at_least(__a, __b); }

// ---- one half ----

template <class __h>
struct gridstride_half_operations {
#define GRIDSTRIDE_HALF_1(name, expression) \
    GRIDSTRIDE_FRIEND __h name(const __h __a) { const float __x = __a.__get(); return __h::__round(expression); }
#define GRIDSTRIDE_HALF_2(name, expression) \
    GRIDSTRIDE_FRIEND __h name(const __h __a, const __h __b) { \
        const float __x = __a.__get(), __y = __b.__get(); \
        return __h::__round(expression); \
    }
#define GRIDSTRIDE_COMPARISON(name, operation, for_nan) \
    GRIDSTRIDE_FRIEND bool name(const __h __a, const __h __b) { \
        const float __x = __a.__get(), __y = __b.__get(); \
        return __x != __x || __y != __y ? for_nan : __x operation __y; \
    }

    // arithmetic
    GRIDSTRIDE_HALF_2(__hadd, __x + __y)
    GRIDSTRIDE_HALF_2(__hsub, __x - __y)
    GRIDSTRIDE_HALF_2(__hmul, __x * __y)
    GRIDSTRIDE_HALF_2(__hdiv, __x / __y)
    GRIDSTRIDE_HALF_2(__hadd_rn, __x + __y)
    GRIDSTRIDE_HALF_2(__hsub_rn, __x - __y)
    GRIDSTRIDE_HALF_2(__hmul_rn, __x * __y)
    GRIDSTRIDE_HALF_2(__hadd_sat, __saturatef(__x + __y))
    GRIDSTRIDE_HALF_2(__hsub_sat, __saturatef(__x - __y))
    GRIDSTRIDE_HALF_2(__hmul_sat, __saturatef(__x * __y))
    GRIDSTRIDE_FRIEND __h __hfma(const __h __a, const __h __b, const __h __c) {
        return __h::__round(gridstride_float_to_odd(gridstride_fma_to_odd(__a.__get(), __b.__get(), __c.__get())));
    }
    GRIDSTRIDE_FRIEND __h __hfma_sat(const __h __a, const __h __b, const __h __c) {
        return __h::__round(__saturatef(__hfma(__a, __b, __c).__get()));
    }
    GRIDSTRIDE_FRIEND __h __hfma_relu(const __h __a, const __h __b, const __h __c) {
        return __hmax_nan(__hfma(__a, __b, __c), __h::__round(0.0f));
    }

    // sign, which is all that negation and absolute value touch, also of a NaN
    GRIDSTRIDE_FRIEND __h __hneg(const __h __a) { return __h::__of_bits(__a.__bits() ^ 0x8000); }
    GRIDSTRIDE_FRIEND __h __habs(const __h __a) { return __h::__of_bits(__a.__bits() & 0x7fff); }

    // extrema: a NaN yields the other operand, or wins where the name says so
    GRIDSTRIDE_HALF_2(__hmax, fmaxf(__x, __y))
    GRIDSTRIDE_HALF_2(__hmin, fminf(__x, __y))
    GRIDSTRIDE_HALF_2(__hmax_nan, __x != __x || __y != __y ? __builtin_nanf("") : fmaxf(__x, __y))
    GRIDSTRIDE_HALF_2(__hmin_nan, __x != __x || __y != __y ? __builtin_nanf("") : fminf(__x, __y))

    // comparisons: ordered, and unordered (with a final u), which hold for a NaN
    GRIDSTRIDE_COMPARISON(__heq, ==, false)
    GRIDSTRIDE_COMPARISON(__hne, !=, false)
    GRIDSTRIDE_COMPARISON(__hlt, <, false)
    GRIDSTRIDE_COMPARISON(__hle, <=, false)
    GRIDSTRIDE_COMPARISON(__hgt, >, false)
    GRIDSTRIDE_COMPARISON(__hge, >=, false)
    GRIDSTRIDE_COMPARISON(__hequ, ==, true)
    GRIDSTRIDE_COMPARISON(__hneu, !=, true)
    GRIDSTRIDE_COMPARISON(__hltu, <, true)
    GRIDSTRIDE_COMPARISON(__hleu, <=, true)
    GRIDSTRIDE_COMPARISON(__hgtu, >, true)
    GRIDSTRIDE_COMPARISON(__hgeu, >=, true)
    GRIDSTRIDE_FRIEND bool __hisnan(const __h __a) { return isnan(__a.__get()); }
    GRIDSTRIDE_FRIEND int __hisinf(const __h __a) {
        const float __x = __a.__get();
        return isinf(__x) ? (__x < 0 ? -1 : 1) : 0;
    }

    // functions
    GRIDSTRIDE_HALF_1(hsqrt, sqrtf(__x))
    GRIDSTRIDE_HALF_1(hrsqrt, gridstride_float_to_odd(1.0 / sqrt(static_cast<double>(__x))))
    GRIDSTRIDE_HALF_1(hrcp, 1.0f / __x)
    GRIDSTRIDE_HALF_1(hexp, expf(__x))
    GRIDSTRIDE_HALF_1(hexp2, exp2f(__x))
    GRIDSTRIDE_HALF_1(hexp10, exp10f(__x))
    GRIDSTRIDE_HALF_1(hlog, logf(__x))
    GRIDSTRIDE_HALF_1(hlog2, log2f(__x))
    GRIDSTRIDE_HALF_1(hlog10, log10f(__x))
    GRIDSTRIDE_HALF_1(hsin, sinf(__x))
    GRIDSTRIDE_HALF_1(hcos, cosf(__x))
    GRIDSTRIDE_HALF_1(htanh, tanhf(__x))
    GRIDSTRIDE_HALF_1(htanh_approx, tanhf(__x))
    GRIDSTRIDE_HALF_1(hceil, ceilf(__x))
    GRIDSTRIDE_HALF_1(hfloor, floorf(__x))
    GRIDSTRIDE_HALF_1(htrunc, truncf(__x))
    GRIDSTRIDE_HALF_1(hrint, rintf(__x))

    GRIDSTRIDE_OPERATORS(__h, __hadd, __hsub, __hmul, __hdiv, __hneg, __h::__round(1.0f))
    GRIDSTRIDE_RELATIONS(__h, __heq, __hneu, __hlt, __hle, __hgt, __hge)

#undef GRIDSTRIDE_COMPARISON
#undef GRIDSTRIDE_HALF_2
#undef GRIDSTRIDE_HALF_1
};

// ---- two halves: each operation on the lower ones and on the upper ones ----

template <class __p, class __h>
struct gridstride_half_pair_operations {
#define GRIDSTRIDE_PAIR_1(name, of_half) \
    GRIDSTRIDE_FRIEND __p name(const __p __a) { return __p(of_half(__a.x), of_half(__a.y)); }
#define GRIDSTRIDE_PAIR_2(name, of_half) \
    GRIDSTRIDE_FRIEND __p name(const __p __a, const __p __b) { return __p(of_half(__a.x, __b.x), of_half(__a.y, __b.y)); }
#define GRIDSTRIDE_PAIR_3(name, of_half) \
    GRIDSTRIDE_FRIEND __p name(const __p __a, const __p __b, const __p __c) \
    { return __p(of_half(__a.x, __b.x, __c.x), of_half(__a.y, __b.y, __c.y)); }
// As ones and zeros, as masks of 16 bits, and whether it holds for both.
#define GRIDSTRIDE_PAIR_COMPARISON(word) \
    GRIDSTRIDE_FRIEND __p __h##word##2(const __p __a, const __p __b) { \
        return __p(__h::__round(__h##word(__a.x, __b.x) ? 1.0f : 0.0f), __h::__round(__h##word(__a.y, __b.y) ? 1.0f : 0.0f)); \
    } \
    GRIDSTRIDE_FRIEND unsigned __h##word##2_mask(const __p __a, const __p __b) { \
        return (__h##word(__a.x, __b.x) ? 0xffffu : 0) | (__h##word(__a.y, __b.y) ? 0xffff0000u : 0); \
    } \
    GRIDSTRIDE_FRIEND bool __hb##word##2(const __p __a, const __p __b) \
    { return __h##word(__a.x, __b.x) && __h##word(__a.y, __b.y); }

    // arithmetic
    GRIDSTRIDE_PAIR_2(__hadd2, __hadd)
    GRIDSTRIDE_PAIR_2(__hsub2, __hsub)
    GRIDSTRIDE_PAIR_2(__hmul2, __hmul)
    GRIDSTRIDE_PAIR_2(__h2div, __hdiv)
    GRIDSTRIDE_PAIR_2(__hadd2_rn, __hadd_rn)
    GRIDSTRIDE_PAIR_2(__hsub2_rn, __hsub_rn)
    GRIDSTRIDE_PAIR_2(__hmul2_rn, __hmul_rn)
    GRIDSTRIDE_PAIR_2(__hadd2_sat, __hadd_sat)
    GRIDSTRIDE_PAIR_2(__hsub2_sat, __hsub_sat)
    GRIDSTRIDE_PAIR_2(__hmul2_sat, __hmul_sat)
    GRIDSTRIDE_PAIR_3(__hfma2, __hfma)
    GRIDSTRIDE_PAIR_3(__hfma2_sat, __hfma_sat)
    GRIDSTRIDE_PAIR_3(__hfma2_relu, __hfma_relu)
    GRIDSTRIDE_PAIR_1(__hneg2, __hneg)
    GRIDSTRIDE_PAIR_1(__habs2, __habs)
    GRIDSTRIDE_PAIR_2(__hmax2, __hmax)
    GRIDSTRIDE_PAIR_2(__hmin2, __hmin)
    GRIDSTRIDE_PAIR_2(__hmax2_nan, __hmax_nan)
    GRIDSTRIDE_PAIR_2(__hmin2_nan, __hmin_nan)

    // a complex product and sum of (real, imaginary)
    GRIDSTRIDE_FRIEND __p __hcmadd(const __p __a, const __p __b, const __p __c) {
        return __p(__hfma(__hneg(__a.y), __b.y, __hfma(__a.x, __b.x, __c.x)),
                   __hfma(__a.y, __b.x, __hfma(__a.x, __b.y, __c.y)));
    }

    // comparisons
    GRIDSTRIDE_PAIR_COMPARISON(eq)
    GRIDSTRIDE_PAIR_COMPARISON(ne)
    GRIDSTRIDE_PAIR_COMPARISON(lt)
    GRIDSTRIDE_PAIR_COMPARISON(le)
    GRIDSTRIDE_PAIR_COMPARISON(gt)
    GRIDSTRIDE_PAIR_COMPARISON(ge)
    GRIDSTRIDE_PAIR_COMPARISON(equ)
    GRIDSTRIDE_PAIR_COMPARISON(neu)
    GRIDSTRIDE_PAIR_COMPARISON(ltu)
    GRIDSTRIDE_PAIR_COMPARISON(leu)
    GRIDSTRIDE_PAIR_COMPARISON(gtu)
    GRIDSTRIDE_PAIR_COMPARISON(geu)
    GRIDSTRIDE_FRIEND __p __hisnan2(const __p __a) {
        return __p(__h::__round(__hisnan(__a.x) ? 1.0f : 0.0f), __h::__round(__hisnan(__a.y) ? 1.0f : 0.0f));
    }

    // functions
    GRIDSTRIDE_PAIR_1(h2sqrt, hsqrt)
    GRIDSTRIDE_PAIR_1(h2rsqrt, hrsqrt)
    GRIDSTRIDE_PAIR_1(h2rcp, hrcp)
    GRIDSTRIDE_PAIR_1(h2exp, hexp)
    GRIDSTRIDE_PAIR_1(h2exp2, hexp2)
    GRIDSTRIDE_PAIR_1(h2exp10, hexp10)
    GRIDSTRIDE_PAIR_1(h2log, hlog)
    GRIDSTRIDE_PAIR_1(h2log2, hlog2)
    GRIDSTRIDE_PAIR_1(h2log10, hlog10)
    GRIDSTRIDE_PAIR_1(h2sin, hsin)
    GRIDSTRIDE_PAIR_1(h2cos, hcos)
    GRIDSTRIDE_PAIR_1(h2tanh, htanh)
    GRIDSTRIDE_PAIR_1(h2tanh_approx, htanh_approx)
    GRIDSTRIDE_PAIR_1(h2ceil, hceil)
    GRIDSTRIDE_PAIR_1(h2floor, hfloor)
    GRIDSTRIDE_PAIR_1(h2trunc, htrunc)
    GRIDSTRIDE_PAIR_1(h2rint, hrint)

    // the halves themselves
    GRIDSTRIDE_FRIEND __p __lowhigh2highlow(const __p __a) { return __p(__a.y, __a.x); }
    GRIDSTRIDE_FRIEND float __low2float(const __p __a) { return __a.x.__get(); }
    GRIDSTRIDE_FRIEND float __high2float(const __p __a) { return __a.y.__get(); }

    GRIDSTRIDE_OPERATORS(__p, __hadd2, __hsub2, __hmul2, __h2div, __hneg2, __p(__h::__round(1.0f), __h::__round(1.0f)))
    GRIDSTRIDE_RELATIONS(__p, __hbeq2, __hbneu2, __hblt2, __hble2, __hbgt2, __hbge2)

#undef GRIDSTRIDE_PAIR_COMPARISON
#undef GRIDSTRIDE_PAIR_3
#undef GRIDSTRIDE_PAIR_2
#undef GRIDSTRIDE_PAIR_1
};

#undef GRIDSTRIDE_RELATIONS
#undef GRIDSTRIDE_OPERATORS
#undef GRIDSTRIDE_FRIEND

#endif
