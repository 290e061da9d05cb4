// Conversions between integers and floating point with a stated rounding: __float2int_rn, __ll2double_ru ...
//
// Out of range, they saturate as the GPU does. So do casts, which the source pass writes as `gridstride_cast`, and
// implicit conversions, which the compiler finds.
#ifndef GRIDSTRIDE_CPU_CONVERSIONS_H
#define GRIDSTRIDE_CPU_CONVERSIONS_H

#include "rounding.h"
#include "saturation.h"

// ---- floating point to integer ----

#define GRIDSTRIDE_TO_INTEGER(name, floating, rounded) \
    template <class __integer> \
    GRIDSTRIDE_DEVICE __integer name(floating __x) { return gridstride_to_integer<__integer>(rounded); }

GRIDSTRIDE_TO_INTEGER(gridstride_float_to_nearest, float, rint(__x))
GRIDSTRIDE_TO_INTEGER(gridstride_float_toward_zero, float, trunc(__x))
GRIDSTRIDE_TO_INTEGER(gridstride_float_upward, float, ceil(__x))
GRIDSTRIDE_TO_INTEGER(gridstride_float_downward, float, floor(__x))
GRIDSTRIDE_TO_INTEGER(gridstride_double_to_nearest, double, rint(__x))
GRIDSTRIDE_TO_INTEGER(gridstride_double_toward_zero, double, trunc(__x))
GRIDSTRIDE_TO_INTEGER(gridstride_double_upward, double, ceil(__x))
GRIDSTRIDE_TO_INTEGER(gridstride_double_downward, double, floor(__x))
#undef GRIDSTRIDE_TO_INTEGER

// The C library's names: they saturate, which the C library does not.
#define GRIDSTRIDE_ROUNDED_TO_INTEGER(integer, name, rounded) \
    GRIDSTRIDE_DEVICE integer name(double __x) { return gridstride_to_integer<integer>(rounded(__x)); } \
    GRIDSTRIDE_DEVICE integer name(float __x) { return gridstride_to_integer<integer>(rounded(__x)); } \
    GRIDSTRIDE_DEVICE integer name##f(float __x) { return gridstride_to_integer<integer>(rounded(__x)); }

GRIDSTRIDE_ROUNDED_TO_INTEGER(long, lrint, rint)
GRIDSTRIDE_ROUNDED_TO_INTEGER(long, lround, round)
GRIDSTRIDE_ROUNDED_TO_INTEGER(long long, llrint, rint)
GRIDSTRIDE_ROUNDED_TO_INTEGER(long long, llround, round)
#undef GRIDSTRIDE_ROUNDED_TO_INTEGER

#define __float2int_rn gridstride_float_to_nearest<int>
#define __float2int_rz gridstride_float_toward_zero<int>
#define __float2int_ru gridstride_float_upward<int>
#define __float2int_rd gridstride_float_downward<int>
#define __float2uint_rn gridstride_float_to_nearest<unsigned>
#define __float2uint_rz gridstride_float_toward_zero<unsigned>
#define __float2uint_ru gridstride_float_upward<unsigned>
#define __float2uint_rd gridstride_float_downward<unsigned>
#define __float2ll_rn gridstride_float_to_nearest<long long>
#define __float2ll_rz gridstride_float_toward_zero<long long>
#define __float2ll_ru gridstride_float_upward<long long>
#define __float2ll_rd gridstride_float_downward<long long>
#define __float2ull_rn gridstride_float_to_nearest<unsigned long long>
#define __float2ull_rz gridstride_float_toward_zero<unsigned long long>
#define __float2ull_ru gridstride_float_upward<unsigned long long>
#define __float2ull_rd gridstride_float_downward<unsigned long long>
#define __double2int_rn gridstride_double_to_nearest<int>
#define __double2int_rz gridstride_double_toward_zero<int>
#define __double2int_ru gridstride_double_upward<int>
#define __double2int_rd gridstride_double_downward<int>
#define __double2uint_rn gridstride_double_to_nearest<unsigned>
#define __double2uint_rz gridstride_double_toward_zero<unsigned>
#define __double2uint_ru gridstride_double_upward<unsigned>
#define __double2uint_rd gridstride_double_downward<unsigned>
#define __double2ll_rn gridstride_double_to_nearest<long long>
#define __double2ll_rz gridstride_double_toward_zero<long long>
#define __double2ll_ru gridstride_double_upward<long long>
#define __double2ll_rd gridstride_double_downward<long long>
#define __double2ull_rn gridstride_double_to_nearest<unsigned long long>
#define __double2ull_rz gridstride_double_toward_zero<unsigned long long>
#define __double2ull_ru gridstride_double_upward<unsigned long long>
#define __double2ull_rd gridstride_double_downward<unsigned long long>

// ---- integer to floating point, double to float ----

GRIDSTRIDE_ROUNDED_1(float, gridstride_int_to_float, int, static_cast<float>(__x))
GRIDSTRIDE_ROUNDED_1(float, gridstride_uint_to_float, unsigned, static_cast<float>(__x))
GRIDSTRIDE_ROUNDED_1(float, gridstride_ll_to_float, long long, static_cast<float>(__x))
GRIDSTRIDE_ROUNDED_1(float, gridstride_ull_to_float, unsigned long long, static_cast<float>(__x))
GRIDSTRIDE_ROUNDED_1(double, gridstride_ll_to_double, long long, static_cast<double>(__x))
GRIDSTRIDE_ROUNDED_1(double, gridstride_ull_to_double, unsigned long long, static_cast<double>(__x))
GRIDSTRIDE_ROUNDED_1(float, gridstride_double_to_float, double, static_cast<float>(__x))

#define __int2float_rz gridstride_int_to_float<GRIDSTRIDE_TOWARD_ZERO>
#define __int2float_ru gridstride_int_to_float<GRIDSTRIDE_UPWARD>
#define __int2float_rd gridstride_int_to_float<GRIDSTRIDE_DOWNWARD>
#define __uint2float_rz gridstride_uint_to_float<GRIDSTRIDE_TOWARD_ZERO>
#define __uint2float_ru gridstride_uint_to_float<GRIDSTRIDE_UPWARD>
#define __uint2float_rd gridstride_uint_to_float<GRIDSTRIDE_DOWNWARD>
#define __ll2float_rz gridstride_ll_to_float<GRIDSTRIDE_TOWARD_ZERO>
#define __ll2float_ru gridstride_ll_to_float<GRIDSTRIDE_UPWARD>
#define __ll2float_rd gridstride_ll_to_float<GRIDSTRIDE_DOWNWARD>
#define __ull2float_rz gridstride_ull_to_float<GRIDSTRIDE_TOWARD_ZERO>
#define __ull2float_ru gridstride_ull_to_float<GRIDSTRIDE_UPWARD>
#define __ull2float_rd gridstride_ull_to_float<GRIDSTRIDE_DOWNWARD>
#define __ll2double_rz gridstride_ll_to_double<GRIDSTRIDE_TOWARD_ZERO>
#define __ll2double_ru gridstride_ll_to_double<GRIDSTRIDE_UPWARD>
#define __ll2double_rd gridstride_ll_to_double<GRIDSTRIDE_DOWNWARD>
#define __ull2double_rz gridstride_ull_to_double<GRIDSTRIDE_TOWARD_ZERO>
#define __ull2double_ru gridstride_ull_to_double<GRIDSTRIDE_UPWARD>
#define __ull2double_rd gridstride_ull_to_double<GRIDSTRIDE_DOWNWARD>
#define __double2float_rz gridstride_double_to_float<GRIDSTRIDE_TOWARD_ZERO>
#define __double2float_ru gridstride_double_to_float<GRIDSTRIDE_UPWARD>
#define __double2float_rd gridstride_double_to_float<GRIDSTRIDE_DOWNWARD>

GRIDSTRIDE_DEVICE float __int2float_rn(int __x) { return static_cast<float>(__x); }
GRIDSTRIDE_DEVICE float __uint2float_rn(unsigned __x) { return static_cast<float>(__x); }
GRIDSTRIDE_DEVICE float __ll2float_rn(long long __x) { return static_cast<float>(__x); }
GRIDSTRIDE_DEVICE float __ull2float_rn(unsigned long long __x) { return static_cast<float>(__x); }
GRIDSTRIDE_DEVICE float __double2float_rn(double __x) { return static_cast<float>(__x); }
GRIDSTRIDE_DEVICE double __int2double_rn(int __x) { return static_cast<double>(__x); }
GRIDSTRIDE_DEVICE double __uint2double_rn(unsigned __x) { return static_cast<double>(__x); }
GRIDSTRIDE_DEVICE double __ll2double_rn(long long __x) { return static_cast<double>(__x); }
GRIDSTRIDE_DEVICE double __ull2double_rn(unsigned long long __x) { return static_cast<double>(__x); }

#undef GRIDSTRIDE_ROUNDED
#undef GRIDSTRIDE_ROUNDED_3
#undef GRIDSTRIDE_ROUNDED_2
#undef GRIDSTRIDE_ROUNDED_1

#endif
