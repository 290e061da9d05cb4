// thrust::complex<float> and thrust::complex<double>: arithmetic with real numbers of any type, and functions.
//
// A number is two components next to each other, aligned to both. An operation on two precisions has the
// wider one; an integer takes the precision of the complex number.
#ifndef GRIDSTRIDE_COMPLEX_H
#define GRIDSTRIDE_COMPLEX_H

#define GRIDSTRIDE_BOTH __host__ __device__ inline
#define GRIDSTRIDE_TEMPLATE template <class __t> __host__ __device__ inline

namespace thrust {

template <class __t>
struct alignas(2 * sizeof(__t)) complex {
    typedef __t value_type;

    __host__ __device__ constexpr complex(const __t& __re = __t(), const __t& __im = __t()) : __x(__re), __y(__im) {}
    template <class __u>
    __host__ __device__ constexpr complex(const complex<__u>& __z) : __x(__z.real()), __y(__z.imag()) {}

    __host__ __device__ constexpr __t real() const { return __x; }
    __host__ __device__ constexpr __t imag() const { return __y; }
    __host__ __device__ void real(__t __re) { __x = __re; }
    __host__ __device__ void imag(__t __im) { __y = __im; }

    template <class __u> __host__ __device__ complex& operator+=(const __u& __z) { return *this = *this + __z; }
    template <class __u> __host__ __device__ complex& operator-=(const __u& __z) { return *this = *this - __z; }
    template <class __u> __host__ __device__ complex& operator*=(const __u& __z) { return *this = *this * __z; }
    template <class __u> __host__ __device__ complex& operator/=(const __u& __z) { return *this = *this / __z; }

  private:
    __t __x, __y;
};

// ---- the precision of a result ----

// `type` exists for a complex component __t and a built-in real type __u.
template <class __t, class __u> struct gridstride_promoted {};
template <> struct gridstride_promoted<float, float> { typedef float type; };
template <> struct gridstride_promoted<float, double> { typedef double type; };
template <> struct gridstride_promoted<double, float> { typedef double type; };
template <> struct gridstride_promoted<double, double> { typedef double type; };
#define GRIDSTRIDE_PROMOTED(integer) \
    template <class __t> struct gridstride_promoted<__t, integer> { typedef __t type; };
GRIDSTRIDE_PROMOTED(bool)
GRIDSTRIDE_PROMOTED(char)
GRIDSTRIDE_PROMOTED(signed char)
GRIDSTRIDE_PROMOTED(unsigned char)
GRIDSTRIDE_PROMOTED(short)
GRIDSTRIDE_PROMOTED(unsigned short)
GRIDSTRIDE_PROMOTED(int)
GRIDSTRIDE_PROMOTED(unsigned int)
GRIDSTRIDE_PROMOTED(long)
GRIDSTRIDE_PROMOTED(unsigned long)
GRIDSTRIDE_PROMOTED(long long)
GRIDSTRIDE_PROMOTED(unsigned long long)
#undef GRIDSTRIDE_PROMOTED

// ---- arithmetic ----

GRIDSTRIDE_TEMPLATE complex<__t> operator+(const complex<__t>& __z) { return __z; }
GRIDSTRIDE_TEMPLATE complex<__t> operator-(const complex<__t>& __z) { return complex<__t>(-__z.real(), -__z.imag()); }

GRIDSTRIDE_TEMPLATE complex<__t> gridstride_sum(const complex<__t>& __a, const complex<__t>& __b) {
    return complex<__t>(__a.real() + __b.real(), __a.imag() + __b.imag());
}
GRIDSTRIDE_TEMPLATE complex<__t> gridstride_difference(const complex<__t>& __a, const complex<__t>& __b) {
    return complex<__t>(__a.real() - __b.real(), __a.imag() - __b.imag());
}
GRIDSTRIDE_TEMPLATE complex<__t> gridstride_product(const complex<__t>& __a, const complex<__t>& __b) {
    return complex<__t>(__a.real() * __b.real() - __a.imag() * __b.imag(), __a.real() * __b.imag() + __a.imag() * __b.real());
}
GRIDSTRIDE_TEMPLATE complex<__t> gridstride_product(const complex<__t>& __a, __t __b) {
    return complex<__t>(__a.real() * __b, __a.imag() * __b);
}
GRIDSTRIDE_TEMPLATE complex<__t> gridstride_quotient(const complex<__t>& __a, __t __b) {
    return complex<__t>(__a.real() / __b, __a.imag() / __b);
}
// By Smith's method, as NumPy does: intermediate results do not overflow before the quotient does.
GRIDSTRIDE_TEMPLATE complex<__t> gridstride_quotient(const complex<__t>& __a, const complex<__t>& __b) {
    const bool __is_flat = ::fabs(__b.real()) >= ::fabs(__b.imag());
    const __t __large = __is_flat ? __b.real() : __b.imag(), __small = __is_flat ? __b.imag() : __b.real();
    if (__large == __t(0) && __small == __t(0)) return gridstride_quotient(__a, ::fabs(__large));
    const __t __ratio = __small / __large, __scale = __t(1) / (__large + __small * __ratio);
    return __is_flat ? complex<__t>((__a.real() + __a.imag() * __ratio) * __scale, (__a.imag() - __a.real() * __ratio) * __scale)
                     : complex<__t>((__a.real() * __ratio + __a.imag()) * __scale, (__a.imag() * __ratio - __a.real()) * __scale);
}

// `operation` of complex and complex, complex and real, real and complex; `with_real` says how a real second
// operand is passed on.
#define GRIDSTRIDE_OPERATOR(operation, function, with_real) \
    template <class __t, class __u> \
    GRIDSTRIDE_BOTH complex<typename gridstride_promoted<__t, __u>::type> operator operation( \
        const complex<__t>& __a, const complex<__u>& __b) { \
        typedef complex<typename gridstride_promoted<__t, __u>::type> __wide; \
        return function(__wide(__a), __wide(__b)); \
    } \
    template <class __t, class __u> \
    GRIDSTRIDE_BOTH complex<typename gridstride_promoted<__t, __u>::type> operator operation( \
        const complex<__t>& __a, const __u& __b) { \
        typedef typename gridstride_promoted<__t, __u>::type __scalar; \
        return function(complex<__scalar>(__a), with_real(static_cast<__scalar>(__b))); \
    } \
    template <class __t, class __u> \
    GRIDSTRIDE_BOTH complex<typename gridstride_promoted<__t, __u>::type> operator operation( \
        const __u& __a, const complex<__t>& __b) { \
        typedef typename gridstride_promoted<__t, __u>::type __scalar; \
        return function(complex<__scalar>(static_cast<__scalar>(__a)), complex<__scalar>(__b)); \
    }

GRIDSTRIDE_OPERATOR(+, gridstride_sum, complex<__scalar>)
GRIDSTRIDE_OPERATOR(-, gridstride_difference, complex<__scalar>)
GRIDSTRIDE_OPERATOR(*, gridstride_product, __scalar)
GRIDSTRIDE_OPERATOR(/, gridstride_quotient, __scalar)
#undef GRIDSTRIDE_OPERATOR

// ---- comparison ----

#define GRIDSTRIDE_COMPARISON(operation, join) \
    template <class __t, class __u> \
    GRIDSTRIDE_BOTH bool operator operation(const complex<__t>& __a, const complex<__u>& __b) \
    { return __a.real() operation __b.real() join __a.imag() operation __b.imag(); } \
    template <class __t, class __u, class = typename gridstride_promoted<__t, __u>::type> \
    GRIDSTRIDE_BOTH bool operator operation(const complex<__t>& __a, const __u& __b) \
    { return __a.real() operation __b join __a.imag() operation __t(0); } \
    template <class __t, class __u, class = typename gridstride_promoted<__t, __u>::type> \
    GRIDSTRIDE_BOTH bool operator operation(const __u& __a, const complex<__t>& __b) { return __b operation __a; }

GRIDSTRIDE_COMPARISON(==, &&)
GRIDSTRIDE_COMPARISON(!=, ||)
#undef GRIDSTRIDE_COMPARISON

// ---- parts ----

GRIDSTRIDE_TEMPLATE __t real(const complex<__t>& __z) { return __z.real(); }
GRIDSTRIDE_TEMPLATE __t imag(const complex<__t>& __z) { return __z.imag(); }
GRIDSTRIDE_TEMPLATE __t abs(const complex<__t>& __z) { return ::hypot(__z.real(), __z.imag()); }
GRIDSTRIDE_TEMPLATE __t arg(const complex<__t>& __z) { return ::atan2(__z.imag(), __z.real()); }
GRIDSTRIDE_TEMPLATE __t norm(const complex<__t>& __z) { return __z.real() * __z.real() + __z.imag() * __z.imag(); }
GRIDSTRIDE_TEMPLATE complex<__t> conj(const complex<__t>& __z) { return complex<__t>(__z.real(), -__z.imag()); }
GRIDSTRIDE_TEMPLATE complex<__t> polar(const __t& __radius, const __t& __angle = __t()) {
    return complex<__t>(__radius * ::cos(__angle), __radius * ::sin(__angle));
}
GRIDSTRIDE_TEMPLATE complex<__t> proj(const complex<__t>& __z) {
    if (!::isinf(__z.real()) && !::isinf(__z.imag())) return __z;
    const __t __zero = 0;
    return complex<__t>(__t(1) / __zero, ::copysign(__zero, __z.imag()));
}
GRIDSTRIDE_TEMPLATE bool isnan(const complex<__t>& __z) { return ::isnan(__z.real()) || ::isnan(__z.imag()); }
GRIDSTRIDE_TEMPLATE bool isinf(const complex<__t>& __z) { return ::isinf(__z.real()) || ::isinf(__z.imag()); }
GRIDSTRIDE_TEMPLATE bool isfinite(const complex<__t>& __z) { return ::isfinite(__z.real()) && ::isfinite(__z.imag()); }

// i * z and -i * z
GRIDSTRIDE_TEMPLATE complex<__t> gridstride_turned_left(const complex<__t>& __z) { return complex<__t>(-__z.imag(), __z.real()); }
GRIDSTRIDE_TEMPLATE complex<__t> gridstride_turned_right(const complex<__t>& __z) { return complex<__t>(__z.imag(), -__z.real()); }

// ---- exponential, logarithm, powers ----

// Infinite and missing parts give what C's annex G says, as far as NumPy follows it.

// Numbers below which exp does not overflow, and far enough from 0 that hyperbolic functions are exponentials.
template <class __t> struct gridstride_ranges;
template <> struct gridstride_ranges<float> {
    static constexpr float exponent = 80, far = 1e5f, up = 1099511627776.f, root_of_up = 1048576.f;
};
template <> struct gridstride_ranges<double> {
    static constexpr double exponent = 700, far = 1e10, up = 1152921504606846976., root_of_up = 1073741824.;
};

// exp(__x) * __factor, where only the product needs to be in range.
GRIDSTRIDE_TEMPLATE __t gridstride_grown(__t __x, __t __factor) {
    constexpr __t __step = gridstride_ranges<__t>::exponent;
    if (__factor == __t(0)) return __factor;
    for (int __k = 0; __k < 2 && __x > __step; ++__k, __x -= __step) __factor *= ::exp(__step);
    return ::exp(__x) * __factor;
}
// Whether parts are so large (-1) or so small (1) that they are scaled before they are squared.
GRIDSTRIDE_TEMPLATE int gridstride_scaling(const complex<__t>& __z) {
    const __t __x = ::fabs(__z.real()), __y = ::fabs(__z.imag());
    return __x > __t(1e30) || __y > __t(1e30) ? -1 : __x < __t(1e-30) && __y < __t(1e-30) ? 1 : 0;
}
GRIDSTRIDE_TEMPLATE complex<__t> exp(const complex<__t>& __z) {
    const __t __x = __z.real(), __y = __z.imag();
    if (__y == __t(0)) return complex<__t>(::exp(__x), __y);
    if (::isinf(__x) && !::isfinite(__y)) return __x < __t(0) ? complex<__t>(__t(0), __t(0)) : complex<__t>(__x, __y - __y);
    return complex<__t>(gridstride_grown(__x, ::cos(__y)), gridstride_grown(__x, ::sin(__y)));
}
// log(abs(__z)), also where the radius is out of range.
GRIDSTRIDE_TEMPLATE __t gridstride_log_of_radius(const complex<__t>& __z) {
    constexpr __t __up = gridstride_ranges<__t>::up;
    const int __way = gridstride_scaling(__z);
    const __t __scale = __way < 0 ? __t(0.0625) : __way > 0 ? __up : __t(1);
    const __t __x = ::fabs(__z.real()) * __scale, __y = ::fabs(__z.imag()) * __scale;
    const __t __radius = ::hypot(__x, __y);
    // Near the unit circle the logarithm of the rounded radius has lost its digits.
    if (__way == 0 && __radius > __t(0.5) && __radius < __t(2)) {
        const __t __large = __x > __y ? __x : __y, __small = __x > __y ? __y : __x;
        return ::log1p((__large - __t(1)) * (__large + __t(1)) + __small * __small) / __t(2);
    }
    return __way == 0 ? ::log(__radius) : ::log(__radius) - ::log(__scale);
}
GRIDSTRIDE_TEMPLATE complex<__t> log(const complex<__t>& __z) { return complex<__t>(gridstride_log_of_radius(__z), arg(__z)); }
GRIDSTRIDE_TEMPLATE complex<__t> log10(const complex<__t>& __z) { return log(__z) / __t(2.30258509299404568402); }
GRIDSTRIDE_TEMPLATE complex<__t> sqrt(const complex<__t>& __z) {
    if (__z.real() == __t(0) && __z.imag() == __t(0)) return complex<__t>(__t(0), __z.imag());
    if (::isinf(__z.imag())) return complex<__t>(::fabs(__z.imag()), __z.imag());
    // Scaled by a power of four where the radius would leave the range.
    constexpr __t __up = gridstride_ranges<__t>::up, __root_of_up = gridstride_ranges<__t>::root_of_up;
    const int __way = gridstride_scaling(__z);
    const __t __scale = __way < 0 ? __t(0.0625) : __way > 0 ? __up : __t(1);
    const __t __root_of_scale = __way < 0 ? __t(4) : __way > 0 ? __t(1) / __root_of_up : __t(1);
    const __t __x = __z.real() * __scale, __y = __z.imag() * __scale;
    const __t __root = ::sqrt((::fabs(__x) + ::hypot(__x, __y)) / __t(2));
    const __t __other = __y / (__t(2) * __root);
    if (__x >= __t(0)) return complex<__t>(__root * __root_of_scale, __other * __root_of_scale);
    return complex<__t>(::fabs(__other) * __root_of_scale, ::copysign(__root, __y) * __root_of_scale);
}

GRIDSTRIDE_TEMPLATE complex<__t> gridstride_power(const complex<__t>& __base, const complex<__t>& __exponent) {
    if (__base == __t(0)) return complex<__t>(__exponent == __t(0) ? __t(1) : __t(0));
    return exp(__exponent * log(__base));
}
template <class __t, class __u>
GRIDSTRIDE_BOTH complex<typename gridstride_promoted<__t, __u>::type> pow(const complex<__t>& __a, const complex<__u>& __b) {
    typedef complex<typename gridstride_promoted<__t, __u>::type> __wide;
    return gridstride_power(__wide(__a), __wide(__b));
}
template <class __t, class __u>
GRIDSTRIDE_BOTH complex<typename gridstride_promoted<__t, __u>::type> pow(const complex<__t>& __a, const __u& __b) {
    typedef typename gridstride_promoted<__t, __u>::type __scalar;
    return gridstride_power(complex<__scalar>(__a), complex<__scalar>(static_cast<__scalar>(__b)));
}
template <class __t, class __u>
GRIDSTRIDE_BOTH complex<typename gridstride_promoted<__t, __u>::type> pow(const __u& __a, const complex<__t>& __b) {
    typedef typename gridstride_promoted<__t, __u>::type __scalar;
    return gridstride_power(complex<__scalar>(static_cast<__scalar>(__a)), complex<__scalar>(__b));
}

// ---- hyperbolic and circular functions ----

// exp(abs(__x)) / 2 * __factor
GRIDSTRIDE_TEMPLATE __t gridstride_half_grown(__t __x, __t __factor) {
    constexpr __t __step = gridstride_ranges<__t>::exponent;
    return gridstride_grown(::fabs(__x) - __step, __factor * (::exp(__step) / __t(2)));
}
GRIDSTRIDE_TEMPLATE complex<__t> sinh(const complex<__t>& __z) {
    const __t __x = __z.real(), __y = __z.imag(), __cosine = ::cos(__y), __sine = ::sin(__y);
    if (!::isfinite(__y) && (__x == __t(0) || ::isinf(__x))) return complex<__t>(__x, __y - __y);
    if (::fabs(__x) > gridstride_ranges<__t>::exponent) {
        const __t __re = gridstride_half_grown(__x, __cosine);
        return complex<__t>(__x < __t(0) ? -__re : __re, gridstride_half_grown(__x, __sine));
    }
    return complex<__t>(::sinh(__x) * __cosine, __y == __t(0) ? __y : ::cosh(__x) * __sine);
}
GRIDSTRIDE_TEMPLATE complex<__t> cosh(const complex<__t>& __z) {
    const __t __x = __z.real(), __y = __z.imag(), __cosine = ::cos(__y), __sine = ::sin(__y);
    if (!::isfinite(__y) && ::isinf(__x)) return complex<__t>(::fabs(__x), __y - __y);
    if (::fabs(__x) > gridstride_ranges<__t>::exponent) {
        const __t __im = gridstride_half_grown(__x, __sine);
        return complex<__t>(gridstride_half_grown(__x, __cosine), __x < __t(0) ? -__im : __im);
    }
    const bool __is_real = __x == __t(0) || __y == __t(0);
    const __t __sign = ::copysign(__t(1), __x) * (::isfinite(__y) ? __sine : __t(1));
    return complex<__t>(::cosh(__x) * __cosine, __is_real ? ::copysign(__t(0), __sign) : ::sinh(__x) * __sine);
}
GRIDSTRIDE_TEMPLATE complex<__t> tanh(const complex<__t>& __z) {
    const __t __x = __z.real(), __y = __z.imag(), __sine = ::sin(__y), __cosine = ::cos(__y);
    if (::isinf(__x)) {
        return complex<__t>(::copysign(__t(1), __x), ::copysign(__t(0), ::isfinite(__y) ? __sine * __cosine : __y));
    }
    if (!::isfinite(__y)) return complex<__t>(__x == __t(0) ? __x : __y - __y, __y - __y);
    if (::fabs(__x) > __t(20)) {  // the hyperbolic functions could overflow
        return complex<__t>(::copysign(__t(1), __x), __t(4) * __sine * __cosine * ::exp(__t(-2) * ::fabs(__x)));
    }
    const __t __sinh = ::sinh(__x), __cosh = ::cosh(__x);
    const __t __norm = __sinh * __sinh + __cosine * __cosine;
    return complex<__t>(__sinh * __cosh / __norm, __y == __t(0) ? __y : __sine * __cosine / __norm);
}
GRIDSTRIDE_TEMPLATE complex<__t> sin(const complex<__t>& __z) { return gridstride_turned_right(sinh(gridstride_turned_left(__z))); }
GRIDSTRIDE_TEMPLATE complex<__t> cos(const complex<__t>& __z) { return cosh(gridstride_turned_left(__z)); }
GRIDSTRIDE_TEMPLATE complex<__t> tan(const complex<__t>& __z) { return gridstride_turned_right(tanh(gridstride_turned_left(__z))); }

// ---- their inverses, by Kahan's formulas, which keep the signs on the branch cuts ----

// Whether a number is so far from 0 that 1 is nothing beside its square; then the inverses are logarithms of twice it.
GRIDSTRIDE_TEMPLATE bool gridstride_is_far(const complex<__t>& __z) {
    return ::fmax(::fabs(__z.real()), ::fabs(__z.imag())) > gridstride_ranges<__t>::far;
}
GRIDSTRIDE_TEMPLATE __t gridstride_log_of_diameter(const complex<__t>& __z, __t __sign) {
    return ::copysign(gridstride_log_of_radius(__z) + __t(0.693147180559945309417232121458176568), __sign);
}
GRIDSTRIDE_TEMPLATE complex<__t> asin(const complex<__t>& __z) {
    const __t __x = __z.real(), __y = __z.imag();
    if (gridstride_is_far(__z)) return complex<__t>(::atan2(__x, ::fabs(__y)), gridstride_log_of_diameter(__z, __y));
    const complex<__t> __below = sqrt(complex<__t>(__t(1) - __x, -__y));
    const complex<__t> __above = sqrt(complex<__t>(__t(1) + __x, __y));
    return complex<__t>(
        __x == __t(0) ? __x : ::atan2(__x, (__below * __above).real()), ::asinh((conj(__below) * __above).imag()));
}
GRIDSTRIDE_TEMPLATE complex<__t> acos(const complex<__t>& __z) {
    const __t __x = __z.real(), __y = __z.imag();
    if (gridstride_is_far(__z)) return complex<__t>(::atan2(::fabs(__y), __x), gridstride_log_of_diameter(__z, -__y));
    if (__x == __t(0) && ::isnan(__y)) return complex<__t>(__t(1.57079632679489661923132169163975144), __y);
    const complex<__t> __below = sqrt(complex<__t>(__t(1) - __x, -__y));
    const complex<__t> __above = sqrt(complex<__t>(__t(1) + __x, __y));
    return complex<__t>(__t(2) * ::atan2(__below.real(), __above.real()), ::asinh((conj(__above) * __below).imag()));
}
GRIDSTRIDE_TEMPLATE complex<__t> acosh(const complex<__t>& __z) {
    const __t __x = __z.real(), __y = __z.imag();
    if (gridstride_is_far(__z)) return complex<__t>(gridstride_log_of_diameter(__z, __t(1)), ::atan2(__y, __x));
    if (__x == __t(0) && ::isnan(__y)) return complex<__t>(__y, __t(1.57079632679489661923132169163975144));
    const complex<__t> __below = sqrt(complex<__t>(__x - __t(1), __y));
    const complex<__t> __above = sqrt(complex<__t>(__x + __t(1), __y));
    return complex<__t>(::asinh((conj(__below) * __above).real()), __t(2) * ::atan2(__below.imag(), __above.real()));
}
GRIDSTRIDE_TEMPLATE complex<__t> atanh(const complex<__t>& __z) {
    const __t __x = ::fabs(__z.real()), __y = __z.imag(), __height = ::fabs(__y);
    const __t __large = ::fmax(__x, __height), __half_pi = __t(1.57079632679489661923132169163975144);
    __t __re, __im;
    if (::isinf(__large)) {
        __re = __t(0);
        __im = __y != __y ? __y : __half_pi;
    } else if (gridstride_is_far(__z)) {  // 1 / __z, and a quarter of a turn
        const __t __a = __x / __large, __b = __height / __large, __norm = __a * __a + __b * __b;
        __re = __a / __norm / __large;
        __im = __half_pi - __b / __norm / __large;
    } else {
        const __t __apart = __t(1) - __x;
        __re = __x == __t(1) && __height * gridstride_ranges<__t>::far < __t(10)
            ? (__t(0.693147180559945309417232121458176568) - ::log(__height)) / __t(2)
            : ::log1p(__t(4) * __x / (__apart * __apart + __height * __height)) / __t(4);
        __im = ::atan2(__t(2) * __height, __apart * (__t(1) + __x) - __height * __height) / __t(2);
    }
    return complex<__t>(__x == __t(0) ? __z.real() : ::copysign(__re, __z.real()), ::copysign(__im, __y));
}
GRIDSTRIDE_TEMPLATE complex<__t> asinh(const complex<__t>& __z) { return gridstride_turned_right(asin(gridstride_turned_left(__z))); }
GRIDSTRIDE_TEMPLATE complex<__t> atan(const complex<__t>& __z) { return gridstride_turned_right(atanh(gridstride_turned_left(__z))); }

}

#undef GRIDSTRIDE_TEMPLATE
#undef GRIDSTRIDE_BOTH

#endif
