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

#endif
