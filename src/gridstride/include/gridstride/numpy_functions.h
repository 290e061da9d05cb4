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

#undef GRIDSTRIDE_FUNCTION

}

#endif
