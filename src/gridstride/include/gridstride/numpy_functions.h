// What NumPy's functions do where C++'s operators and functions do otherwise: for kernels made of Python functions.
// A namespace of their own: no overload of the loops, which are in the same text, is taken for one of them.
#ifndef GRIDSTRIDE_NUMPY_FUNCTIONS_H
#define GRIDSTRIDE_NUMPY_FUNCTIONS_H

namespace gridstride {
namespace numpy {

#define GRIDSTRIDE_FUNCTION template <class __t> __host__ __device__ inline

template <class __t> struct is_floating { static constexpr bool value = false; };
template <> struct is_floating<float> { static constexpr bool value = true; };
template <> struct is_floating<double> { static constexpr bool value = true; };

template <class __t, bool = is_floating<__t>::value>
struct rounded_down {  // of integers: towards minus infinity; division by zero gives zero
    __host__ __device__ static __t quotient(__t __a, __t __b) {
        if (__b == 0) return 0;
        if (__t(-1) < __t(0) && __b == __t(-1)) return static_cast<__t>(0ull - static_cast<unsigned long long>(__a));
        const __t __q = __a / __b;
        return __a % __b != 0 && ((__a < 0) != (__b < 0)) ? __q - 1 : __q;
    }
    __host__ __device__ static __t rest(__t __a, __t __b) {
        if (__b == 0 || (__t(-1) < __t(0) && __b == __t(-1))) return 0;
        const __t __r = __a % __b;
        return __r != 0 && ((__r < 0) != (__b < 0)) ? __r + __b : __r;
    }
};
template <class __t>
struct rounded_down<__t, true> {
    __host__ __device__ static __t quotient(__t __a, __t __b) {
        if (__b == 0) return __a / __b;
        const __t __r = ::fmod(__a, __b);
        __t __q = (__a - __r) / __b;
        if (__r != 0 && ((__b < 0) != (__r < 0))) __q -= 1;
        if (__q == 0) return ::copysign(__t(0), __a / __b);
        const __t __floor = ::floor(__q);
        return __q - __floor > __t(0.5) ? __floor + 1 : __floor;
    }
    __host__ __device__ static __t rest(__t __a, __t __b) {
        const __t __r = ::fmod(__a, __b);
        if (__b == 0) return __r;
        if (__r == 0) return ::copysign(__t(0), __b);
        return (__b < 0) != (__r < 0) ? __r + __b : __r;
    }
};

GRIDSTRIDE_FUNCTION __t floor_divide(__t __a, __t __b) { return rounded_down<__t>::quotient(__a, __b); }
GRIDSTRIDE_FUNCTION __t remainder_of(__t __a, __t __b) { return rounded_down<__t>::rest(__a, __b); }

// By PyTorch zeros have the sign of the dividend.
GRIDSTRIDE_FUNCTION __t rest_or_any_zero(__t __a, __t __b) {
    const __t __r = ::fmod(__a, __b);
    return __r != 0 && ((__b < 0) != (__r < 0)) ? __r + __b : __r;
}

// A NaN is larger and smaller than any number.
GRIDSTRIDE_FUNCTION __t maximum(__t __a, __t __b) { return __a >= __b || __a != __a ? __a : __b; }
GRIDSTRIDE_FUNCTION __t minimum(__t __a, __t __b) { return __a <= __b || __a != __a ? __a : __b; }

GRIDSTRIDE_FUNCTION __t sign(__t __a) { return __a != __a ? __a : __t((__a > __t(0)) - (__a < __t(0))); }
GRIDSTRIDE_FUNCTION __t magnitude(__t __a) { return __a < __t(0) ? __t(__t(0) - __a) : __a; }
__host__ __device__ inline float magnitude(float __a) { return ::fabsf(__a); }
__host__ __device__ inline double magnitude(double __a) { return ::fabs(__a); }

// Of integers, by squaring; one divided by them for negative exponents, rounded to zero, and zero of zero.
GRIDSTRIDE_FUNCTION __t integer_power(__t __base, __t __exponent) {
    __t __result = 1;
    if (__exponent < 0) {
        if (__base != 1 && __base != __t(-1)) return 0;
        __exponent = __t(__exponent & 1);
    }
    for (unsigned long long __rest = static_cast<unsigned long long>(__exponent); __rest; __rest >>= 1) {
        if (__rest & 1) __result = static_cast<__t>(__result * __base);
        __base = static_cast<__t>(__base * __base);
    }
    return __result;
}

// Powers with one exponent for all: roots have other edges, as of minus infinity.
GRIDSTRIDE_FUNCTION __t power_or_root(__t __a, __t __exponent) {
    return __exponent == __t(0.5) ? ::sqrt(__a) : ::pow(__a, __exponent);
}
GRIDSTRIDE_FUNCTION __t power_or_roots(__t __a, __t __exponent) {
    return __exponent == __t(-0.5) ? 1 / ::sqrt(__a) : power_or_root(__a, __exponent);
}

// Shifts by the width and more.
GRIDSTRIDE_FUNCTION __t shifted_left(__t __a, __t __b) {
    return static_cast<unsigned long long>(__b) < 8 * sizeof(__t) ? static_cast<__t>(static_cast<unsigned long long>(__a) << __b)
                                                                  : __t(0);
}
GRIDSTRIDE_FUNCTION __t shifted_right(__t __a, __t __b) {
    return static_cast<unsigned long long>(__b) < 8 * sizeof(__t) ? static_cast<__t>(__a >> __b) : __t(__a < 0 ? -1 : 0);
}

// As C's operators do; a rest of a division by zero is zero.
GRIDSTRIDE_FUNCTION __t rest_of(__t __a, __t __b) {
    return __b == 0 || (__t(-1) < __t(0) && __b == __t(-1)) ? __t(0) : __t(__a % __b);
}
GRIDSTRIDE_FUNCTION __t integer_reciprocal(__t __a) {
    if (__a == 0) return sizeof(__t) < 4 ? __t(0) : __t(__t(1) << (8 * sizeof(__t) - 1));
    return __t(1 / __a);
}
GRIDSTRIDE_FUNCTION unsigned char ones_of(__t __a) {
    return static_cast<unsigned char>(__popcll(static_cast<unsigned long long>(__a)));
}
GRIDSTRIDE_FUNCTION unsigned char count_of_bits(__t __a) {
    return ones_of(__a < 0 ? 0ull - static_cast<unsigned long long>(__a) : static_cast<unsigned long long>(__a));
}
GRIDSTRIDE_FUNCTION unsigned long long distance_from_zero(__t __a) {
    return __a < __t(0) ? 0ull - static_cast<unsigned long long>(__a) : static_cast<unsigned long long>(__a);
}
GRIDSTRIDE_FUNCTION __t divisor_of(__t __a, __t __b) {
    unsigned long long __x = distance_from_zero(__a), __y = distance_from_zero(__b);
    while (__y != 0) {
        const unsigned long long __rest = __x % __y;
        __x = __y;
        __y = __rest;
    }
    return static_cast<__t>(__x);
}
GRIDSTRIDE_FUNCTION __t multiple_of(__t __a, __t __b) {
    const unsigned long long __divisor = distance_from_zero(divisor_of(__a, __b));
    return __divisor == 0 ? __t(0) : static_cast<__t>(distance_from_zero(__a) / __divisor * distance_from_zero(__b));
}

// A NaN gives way to any number.
GRIDSTRIDE_FUNCTION __t larger(__t __a, __t __b) { return __a >= __b || __b != __b ? __a : __b; }
GRIDSTRIDE_FUNCTION __t smaller(__t __a, __t __b) { return __a <= __b || __b != __b ? __a : __b; }

GRIDSTRIDE_FUNCTION __t squared(__t __a) { return __a * __a; }
GRIDSTRIDE_FUNCTION __t at_least_zero(__t __a) { return __a < __t(0) ? __t(0) : __a; }
GRIDSTRIDE_FUNCTION __t times(__t __a, double __factor) { return __a * __t(__factor); }
GRIDSTRIDE_FUNCTION __t step_of(__t __a, __t __at_zero) {
    return __a != __a ? __a : __a == 0 ? __at_zero : __a < 0 ? __t(0) : __t(1);
}
GRIDSTRIDE_FUNCTION __t scaled(__t __a, long long __power) {
    return ::ldexp(__a, __power > 100000 ? 100000 : __power < -100000 ? -100000 : int(__power));
}
GRIDSTRIDE_FUNCTION __t fraction_of(__t __a) {
    int __power;
    return ::frexp(__a, &__power);
}
GRIDSTRIDE_FUNCTION int exponent_of(__t __a) {
    int __power = 0;
    if (::isfinite(__a)) ::frexp(__a, &__power);
    return __power;
}
GRIDSTRIDE_FUNCTION __t spacing(__t __a) {
    if (::isinf(__a)) return __a - __a;
    const __t __far = __a < 0 ? -__t(1) / __t(0) : __t(1) / __t(0);
    return ::nextafter(__a, __a < 0 ? -::fabs(__far) : ::fabs(__far)) - __a;
}
GRIDSTRIDE_FUNCTION __t log_of_sum(__t __a, __t __b) {
    if (__a == __b) return __a + __t(0.693147180559945309417232121458176568);
    const __t __apart = __a - __b;
    if (__apart > 0) return __a + ::log1p(::exp(-__apart));
    return __apart <= 0 ? __b + ::log1p(::exp(__apart)) : __apart;
}
GRIDSTRIDE_FUNCTION __t log2_of_sum(__t __a, __t __b) {
    const __t __log2_e = __t(1.442695040888963407359924681001892137);
    if (__a == __b) return __a + __t(1);
    const __t __apart = __a - __b;
    if (__apart > 0) return __a + __log2_e * ::log1p(::exp2(-__apart));
    return __apart <= 0 ? __b + __log2_e * ::log1p(::exp2(__apart)) : __apart;
}

// Of complex numbers, which are ordered by their real parts first.
GRIDSTRIDE_FUNCTION bool comes_before(const __t& __a, const __t& __b) {
    const bool __are_numbers = __a.imag() == __a.imag() && __b.imag() == __b.imag();
    return (__a.real() < __b.real() && __are_numbers) || (__a.real() == __b.real() && __a.imag() < __b.imag());
}
GRIDSTRIDE_FUNCTION bool has_nan(const __t& __a) { return __a.real() != __a.real() || __a.imag() != __a.imag(); }
GRIDSTRIDE_FUNCTION __t later(const __t& __a, const __t& __b) {
    return has_nan(__a) || (!has_nan(__b) && !comes_before(__a, __b)) ? __a : __b;
}
GRIDSTRIDE_FUNCTION __t earlier(const __t& __a, const __t& __b) {
    return has_nan(__a) || (!has_nan(__b) && !comes_before(__b, __a)) ? __a : __b;
}
GRIDSTRIDE_FUNCTION __t later_number(const __t& __a, const __t& __b) {
    return has_nan(__b) || (!has_nan(__a) && !comes_before(__a, __b)) ? __a : __b;
}
GRIDSTRIDE_FUNCTION __t earlier_number(const __t& __a, const __t& __b) {
    return has_nan(__b) || (!has_nan(__a) && !comes_before(__b, __a)) ? __a : __b;
}
GRIDSTRIDE_FUNCTION __t direction(const __t& __a) {
    const auto __length = ::hypot(__a.real(), __a.imag());
    if (__length == 0) return __t(0, 0);
    if (::isinf(__a.real()) != ::isinf(__a.imag()))
        return __t(::isinf(__a.real()) ? ::copysign(1.0f, __a.real()) : 0, ::isinf(__a.imag()) ? ::copysign(1.0f, __a.imag()) : 0);
    if (::isinf(__length) && !::isinf(__a.real())) return direction(__t(__a.real() / 4, __a.imag() / 4));
    return __t(__a.real() / __length, __a.imag() / __length);
}
GRIDSTRIDE_FUNCTION __t reciprocal(const __t& __a) {
    const bool __is_flat = ::fabs(__a.imag()) <= ::fabs(__a.real());
    const auto __large = __is_flat ? __a.real() : __a.imag(), __small = __is_flat ? __a.imag() : __a.real();
    const auto __ratio = __small / __large, __norm = __large + __small * __ratio;
    return __is_flat ? __t(1 / __norm, -__ratio / __norm) : __t(__ratio / __norm, -1 / __norm);
}
// By multiplication for small integers.
GRIDSTRIDE_FUNCTION __t complex_power(const __t& __base, const __t& __exponent) {
    const auto __whole = ::trunc(__exponent.real());
    if (__exponent == 0) return __t(1, 0);
    if (__base == 0) {
        const auto __zero = ::fabs(__base.real());
        return __exponent.real() > 0 ? __t(__zero, __zero) : __t(__zero / __zero, __zero / __zero);
    }
    if (__exponent.imag() != 0 || __whole != __exponent.real() || ::fabs(__whole) >= 100) return pow(__base, __exponent);
    if (__whole == 1) return __base;
    if (__whole == 3) return __base * __base * __base;
    __t __result = __whole == 2 ? __base : __t(1, 0), __power = __base;
    for (int __rest = __whole == 2 ? 1 : int(::fabs(__whole)); __rest; __rest >>= 1, __power = __power * __power)
        if (__rest & 1) __result = __result * __power;
    return __whole < 0 ? reciprocal(__result) : __result;
}
// The functions of `thrust` are found by their arguments.
GRIDSTRIDE_FUNCTION __t power_of_two(const __t& __a) {
    typedef typename __t::value_type __part;
    const __part __log_2 = __part(0.693147180559945309417232121458176568);
    return exp(__t(__a.real() * __log_2, __a.imag() * __log_2));
}
GRIDSTRIDE_FUNCTION __t binary_log(const __t& __a) {
    typedef typename __t::value_type __part;
    const __part __log2_e = __part(1.442695040888963407359924681001892137);
    const __t __log = log(__a);
    return __t(__log.real() * __log2_e, __log.imag() * __log2_e);
}
GRIDSTRIDE_FUNCTION __t power_minus_one(const __t& __a) {
    const auto __radius = ::exp(__a.real());
    if (::isinf(__radius)) return exp(__a);
    const auto __sine = ::sin(__a.imag() / 2);
    return __t(::expm1(__a.real()) * ::cos(__a.imag()) - 2 * __sine * __sine,
               __a.imag() == 0 ? __a.imag() : __radius * ::sin(__a.imag()));
}
GRIDSTRIDE_FUNCTION __t log_of_one_plus(const __t& __a) {
    const auto __beyond_one = __a.real() * (__a.real() + 2) + __a.imag() * __a.imag();  // of the square of the radius
    const __t __sum = __t(__a.real() + 1, __a.imag());
    const bool __is_near = __beyond_one > -0.75f && __beyond_one < 3;
    return __t(__is_near ? ::log1p(__beyond_one) / 2 : log(__sum).real(), arg(__sum));
}
GRIDSTRIDE_FUNCTION __t each_rounded(const __t& __a) { return __t(::rint(__a.real()), ::rint(__a.imag())); }

// Of floats of two bytes; where both are equal NumPy's libraries return one or the other, signs of zeros apart.
template <class __small>
__host__ __device__ inline __small neighbor_of(float __a, float __b, float __if_equal) {
    if (__a != __a || __b != __b) return __small(__a + __b);
    if (__a == __b) return __small(__if_equal);
    __small __next = __small(__a);
    if (__a == 0)
        __next.__bits = static_cast<unsigned short>(__b < 0 ? 0x8001 : 1);
    else
        __next.__bits = static_cast<unsigned short>(__next.__bits + ((__a > 0) == (__b > __a) ? 1 : -1));
    return __next;
}
template <class __small>
__host__ __device__ inline float step_up_from(float __a) {
    if (::isinf(__a)) return __a - __a;
    return static_cast<float>(neighbor_of<__small>(__a, __uint_as_float(0x7f800000u), __a)) - __a;
}

#undef GRIDSTRIDE_FUNCTION

}
}

#endif
