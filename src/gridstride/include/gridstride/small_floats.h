// float16 and bfloat16 as elementwise and reduction kernels see them: numbers that are stored in two bytes and
// calculated with as float, so that every expression of floats takes them.
#ifndef GRIDSTRIDE_SMALL_FLOATS_H
#define GRIDSTRIDE_SMALL_FLOATS_H

#include <cuda_fp16.h>

namespace gridstride {

struct float16 {
    unsigned short __bits;

    float16() = default;
    __host__ __device__ float16(float __value) : __bits(__half_as_ushort(__float2half_rn(__value))) {}
    __host__ __device__ float16(double __value) : __bits(__half_as_ushort(__double2half(__value))) {}
    template <class __integer> __host__ __device__ float16(__integer __value) : float16(static_cast<float>(__value)) {}
    __host__ __device__ operator float() const { return __half2float(__ushort_as_half(__bits)); }
};

// Rounded to nearest, ties to even; a NaN stays one.
struct bfloat16 {
    unsigned short __bits;

    bfloat16() = default;
    __host__ __device__ bfloat16(float __value) {
        const unsigned __whole = __float_as_uint(__value);
        const unsigned __rounded = __whole + 0x7fffu + (__whole >> 16 & 1u);
        __bits = static_cast<unsigned short>((__whole & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : __rounded >> 16);
    }
    __host__ __device__ bfloat16(double __value) : bfloat16(static_cast<float>(__value)) {}
    template <class __integer> __host__ __device__ bfloat16(__integer __value) : bfloat16(static_cast<float>(__value)) {}
    __host__ __device__ operator float() const { return __uint_as_float(static_cast<unsigned>(__bits) << 16); }
};

#define GRIDSTRIDE_COMPOUND(type, operation) \
    template <class __number> __host__ __device__ inline type& operator operation##=(type& __a, const __number& __b) { \
        return __a = type(static_cast<float>(__a) operation static_cast<float>(__b)); \
    }
#define GRIDSTRIDE_COMPOUNDS(type) \
    GRIDSTRIDE_COMPOUND(type, +) GRIDSTRIDE_COMPOUND(type, -) GRIDSTRIDE_COMPOUND(type, *) GRIDSTRIDE_COMPOUND(type, /)
GRIDSTRIDE_COMPOUNDS(float16)
GRIDSTRIDE_COMPOUNDS(bfloat16)
#undef GRIDSTRIDE_COMPOUNDS
#undef GRIDSTRIDE_COMPOUND

}

using gridstride::float16;
using gridstride::bfloat16;

#endif
