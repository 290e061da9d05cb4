// Floating-point numbers as integers: what does not fit becomes the nearest integer that does, as on the GPU.
#ifndef GRIDSTRIDE_CPU_SATURATION_H
#define GRIDSTRIDE_CPU_SATURATION_H

// Limits of an integer type, and the power of two just above its largest value.
template <class __integer>
struct gridstride_integer_range {
    static constexpr bool is_signed = static_cast<__integer>(-1) < static_cast<__integer>(0);
    static constexpr int bits = 8 * sizeof(__integer);
    static constexpr __integer lowest = is_signed ? static_cast<__integer>(1ull << (bits - 1)) : static_cast<__integer>(0);
    static constexpr __integer largest = static_cast<__integer>(~lowest);
    static constexpr double above = 2.0 * static_cast<double>(1ull << (bits - (is_signed ? 2 : 1)));
};

// What g++ takes for something else than a conversion. It makes `trunc(x)` of `(float)(int)x`, whose zero has the sign
// of x, unless something stands between; this generates no code.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define GRIDSTRIDE_KEPT(integer) __builtin_assoc_barrier(integer)
#else
#define GRIDSTRIDE_KEPT(integer) (integer)
#endif

// The integer nearest to the whole number `__x`, and `__for_nan` for a NaN.
template <class __integer, class __float>
constexpr __integer gridstride_saturated(__float __x, __integer __for_nan) {
    typedef gridstride_integer_range<__integer> __range;
    return __x != __x ? __for_nan
         : __x >= static_cast<__float>(__range::above) ? __range::largest
         : __x <= static_cast<__float>(__range::is_signed ? -__range::above : 0.0) ? __range::lowest
         : static_cast<__integer>(GRIDSTRIDE_KEPT(static_cast<__integer>(__x)));
}

// What a NaN becomes: zero between 32-bit types, the top bit alone where either side has 64 bits.
template <class __integer, class __float>
constexpr __integer gridstride_integer_from_nan() {
    return sizeof(__integer) == 8 || sizeof(__float) == 8
        ? static_cast<__integer>(1ull << (gridstride_integer_range<__integer>::bits - 1)) : static_cast<__integer>(0);
}

template <class __integer, class __float>
constexpr __integer gridstride_to_integer(__float __x) {
    return gridstride_saturated<__integer>(__x, gridstride_integer_from_nan<__integer, __float>());
}

#endif
