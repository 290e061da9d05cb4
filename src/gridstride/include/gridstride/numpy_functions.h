// What NumPy's functions do where C++'s operators and functions do otherwise: for kernels made of Python functions.
#ifndef GRIDSTRIDE_NUMPY_FUNCTIONS_H
#define GRIDSTRIDE_NUMPY_FUNCTIONS_H

namespace gridstride {

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

// A NaN is larger and smaller than any number.
GRIDSTRIDE_FUNCTION __t maximum(__t __a, __t __b) { return __a >= __b || __a != __a ? __a : __b; }
GRIDSTRIDE_FUNCTION __t minimum(__t __a, __t __b) { return __a <= __b || __a != __a ? __a : __b; }

GRIDSTRIDE_FUNCTION __t sign(__t __a) { return __a != __a ? __a : __t((__a > __t(0)) - (__a < __t(0))); }
GRIDSTRIDE_FUNCTION __t magnitude(__t __a) { return __a < __t(0) ? __t(__t(0) - __a) : __a; }
__host__ __device__ inline float magnitude(float __a) { return ::fabsf(__a); }
__host__ __device__ inline double magnitude(double __a) { return ::fabs(__a); }

// Of integers, by squaring.
GRIDSTRIDE_FUNCTION __t integer_power(__t __base, __t __exponent) {
    __t __result = 1;
    for (unsigned long long __rest = static_cast<unsigned long long>(__exponent); __rest; __rest >>= 1) {
        if (__rest & 1) __result = static_cast<__t>(__result * __base);
        __base = static_cast<__t>(__base * __base);
    }
    return __result;
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
GRIDSTRIDE_FUNCTION __t at_least_zero(__t __a) { return __a > __t(0) ? __a : __t(0); }
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
    return __a.real() < __b.real() || (__a.real() == __b.real() && __a.imag() < __b.imag());
}
GRIDSTRIDE_FUNCTION bool has_nan(const __t& __a) { return __a.real() != __a.real() || __a.imag() != __a.imag(); }
GRIDSTRIDE_FUNCTION __t later(const __t& __a, const __t& __b) {
    return has_nan(__a) || (!has_nan(__b) && !comes_before(__a, __b)) ? __a : __b;
}
GRIDSTRIDE_FUNCTION __t earlier(const __t& __a, const __t& __b) {
    return has_nan(__a) || (!has_nan(__b) && !comes_before(__b, __a)) ? __a : __b;
}
GRIDSTRIDE_FUNCTION __t later_number(const __t& __a, const __t& __b) {
    return has_nan(__a) ? __b : has_nan(__b) || !comes_before(__a, __b) ? __a : __b;
}
GRIDSTRIDE_FUNCTION __t earlier_number(const __t& __a, const __t& __b) {
    return has_nan(__a) ? __b : has_nan(__b) || !comes_before(__b, __a) ? __a : __b;
}
GRIDSTRIDE_FUNCTION __t direction(const __t& __a) {
    const auto __length = ::hypot(__a.real(), __a.imag());
    if (__length == 0) return __t(0, 0);
    return __t(__a.real() / __length, __a.imag() / __length);
}
GRIDSTRIDE_FUNCTION __t reciprocal(const __t& __a) { return __t(1, 0) / __a; }
GRIDSTRIDE_FUNCTION __t each_rounded(const __t& __a) { return __t(::rint(__a.real()), ::rint(__a.imag())); }

#undef GRIDSTRIDE_FUNCTION

}

#endif
