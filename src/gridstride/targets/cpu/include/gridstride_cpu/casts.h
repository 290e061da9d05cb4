// Casts to integers: the source pass writes `(int)x` as `gridstride_cast<int>(x)`.
//
// Floating-point numbers saturate as on the GPU, in 32 bits where the integer is smaller; everything else is
// cast as C++ does.
#ifndef GRIDSTRIDE_CPU_CASTS_H
#define GRIDSTRIDE_CPU_CASTS_H

#include "saturation.h"

template <class __integer, bool __is_narrow, bool __keeps_sign>
struct gridstride_register_of {
    typedef __integer type;
};
template <class __integer>
struct gridstride_register_of<__integer, true, true> {
    typedef int type;
};
template <class __integer>
struct gridstride_register_of<__integer, true, false> {
    typedef unsigned type;
};

template <class __integer, class __float>
__attribute__((always_inline)) constexpr __integer gridstride_cast_saturated(__float __x) {
    typedef typename gridstride_register_of<
        __integer, (sizeof(__integer) < sizeof(int)), gridstride_integer_range<__integer>::is_signed>::type __register;
    return static_cast<__integer>(gridstride_to_integer<__register>(__x));
}

template <class __integer>
__attribute__((always_inline)) constexpr __integer gridstride_cast(float __x) {
    return gridstride_cast_saturated<__integer>(__x);
}
template <class __integer>
__attribute__((always_inline)) constexpr __integer gridstride_cast(double __x) {
    return gridstride_cast_saturated<__integer>(__x);
}
template <class __integer, class __type>
__attribute__((always_inline)) constexpr __integer gridstride_cast(__type __x) {
    return (__integer)__x;
}

// ---- conversions that nobody wrote ----

template <class __type> struct gridstride_saturates { static constexpr bool value = false; };
#define GRIDSTRIDE_SATURATES(type) template <> struct gridstride_saturates<type> { static constexpr bool value = true; };
GRIDSTRIDE_SATURATES(char) GRIDSTRIDE_SATURATES(signed char) GRIDSTRIDE_SATURATES(unsigned char)
GRIDSTRIDE_SATURATES(short) GRIDSTRIDE_SATURATES(unsigned short)
GRIDSTRIDE_SATURATES(int) GRIDSTRIDE_SATURATES(unsigned)
GRIDSTRIDE_SATURATES(long) GRIDSTRIDE_SATURATES(unsigned long)
GRIDSTRIDE_SATURATES(long long) GRIDSTRIDE_SATURATES(unsigned long long)
#undef GRIDSTRIDE_SATURATES

template <class __to, bool __is_integer>
struct gridstride_conversion {
    template <class __from>
    static __attribute__((always_inline)) constexpr __to of(__from __x) { return gridstride_cast<__to>(__x); }
};
template <class __to>
struct gridstride_conversion<__to, false> {
    template <class __from>
    static __attribute__((always_inline)) constexpr __to of(__from __x) { return __to(__x); }
};

// A number that saturates in whatever integer it becomes.
template <class __number>
struct gridstride_implicitly {
    __number __value;
    template <class __to>
    __attribute__((always_inline)) constexpr operator __to() const {
        return gridstride_conversion<__to, gridstride_saturates<__to>::value>::of(__value);
    }
};
template <class __number>
__attribute__((always_inline)) constexpr gridstride_implicitly<__number> gridstride_implicit(__number __x) { return {__x}; }

// An integer that numbers are added to, and the like.
template <class __integer>
struct gridstride_placed {
    __integer& __place;
#define GRIDSTRIDE_COMPOUND(operation) \
    template <class __number> \
    __attribute__((always_inline)) __integer& operator operation##=(__number __x) const { \
        return __place = gridstride_implicit(__place operation __x); \
    }
    GRIDSTRIDE_COMPOUND(+)
    GRIDSTRIDE_COMPOUND(-)
    GRIDSTRIDE_COMPOUND(*)
    GRIDSTRIDE_COMPOUND(/)
#undef GRIDSTRIDE_COMPOUND
};
template <class __integer>
__attribute__((always_inline)) gridstride_placed<__integer> gridstride_place(__integer& __x) { return {__x}; }

#endif
