// float16 and bfloat16 as elementwise and reduction kernels see them: numbers that are stored in two bytes and
// calculated with as float, so that every expression of floats takes them.
#ifndef GRIDSTRIDE_SMALL_FLOATS_H
#define GRIDSTRIDE_SMALL_FLOATS_H

#include <cuda_fp16.h>

namespace gridstride {

#ifdef GRIDSTRIDE_CPU_ABI_VERSION
// Without a branch and without an instruction for one number, so that a compiler makes vectors of it.
__host__ __device__ inline float half_to_float(unsigned short __bits) {
    // The sign is in the four upper bits, of which one is to stay.
    const unsigned __shifted = static_cast<unsigned>(static_cast<int>(static_cast<short>(__bits))) << 13;
    const unsigned __finite = __float_as_uint(__uint_as_float(__shifted & 0x8fffe000u) * __uint_as_float(0x77800000u));  // 2^112
    return __uint_as_float((__shifted & 0x0f800000u) == 0x0f800000u ? __finite | 0x7f800000u : __finite);
}
// To nearest, ties to even.
__host__ __device__ inline unsigned short float_to_half(float __value) {
    const unsigned __whole = __float_as_uint(__value), __magnitude = __whole & 0x7fffffffu;
    const unsigned __normal = (__magnitude - 0x38000000u + 0xfffu + (__magnitude >> 13 & 1u)) >> 13;
    // Adding 2^-1 leaves a small number's bits where those of a subnormal half are.
    const unsigned __small = __float_as_uint(__uint_as_float(__magnitude) + 0.5f) - 0x3f000000u;
    const unsigned __special = __magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    const unsigned __finite = __magnitude < 0x38800000u ? __small : __normal;
    const unsigned __half = __magnitude >= 0x47800000u ? __special : __finite;
    return static_cast<unsigned short>(__half | (__whole >> 16 & 0x8000u));
}
// What an assignment chooses of two variables is a number, not the memory of one of them, so that vectors are chosen.
#define GRIDSTRIDE_ASSIGNED(type) type& operator=(const type& __other) { __bits = __other.__bits; return *this; }
#else
#define GRIDSTRIDE_ASSIGNED(type)
__host__ __device__ inline float half_to_float(unsigned short __bits) { return __half2float(__ushort_as_half(__bits)); }
__host__ __device__ inline unsigned short float_to_half(float __value) {
    return __half_as_ushort(__float2half_rn(__value));
}
#endif

struct float16 {
    unsigned short __bits;

    float16() = default;
    GRIDSTRIDE_ASSIGNED(float16)
    __host__ __device__ float16(float __value) : __bits(float_to_half(__value)) {}
    __host__ __device__ float16(double __value) : __bits(__half_as_ushort(__double2half(__value))) {}
    template <class __integer> __host__ __device__ float16(__integer __value) : float16(static_cast<float>(__value)) {}
    __host__ __device__ operator float() const { return half_to_float(__bits); }
};

// Rounded to nearest, ties to even; a NaN stays one.
struct bfloat16 {
    unsigned short __bits;

    bfloat16() = default;
    GRIDSTRIDE_ASSIGNED(bfloat16)
    __host__ __device__ bfloat16(float __value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && !defined(GRIDSTRIDE_CPU_ABI_VERSION)
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(__bits) : "f"(__value));
#else
        const unsigned __whole = __float_as_uint(__value);
        const unsigned __rounded = __whole + 0x7fffu + (__whole >> 16 & 1u);
        __bits = static_cast<unsigned short>((__whole & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : __rounded >> 16);
#endif
    }
    __host__ __device__ bfloat16(double __value) : bfloat16(static_cast<float>(__value)) {}
    template <class __integer> __host__ __device__ bfloat16(__integer __value) : bfloat16(static_cast<float>(__value)) {}
    __host__ __device__ operator float() const {
#if defined(__CUDA_ARCH__) && !defined(GRIDSTRIDE_CPU_ABI_VERSION)
        float __value;  // one instruction, whichever half of a register the bits are in
        asm("mov.b32 %0, {0, %1};" : "=f"(__value) : "h"(__bits));
        return __value;
#else
        return __uint_as_float(static_cast<unsigned>(__bits) << 16);
#endif
    }
};

// A float that was one of these, for texts that only compare and copy.
template <class __small>
struct as_float {
    float __value;

    as_float() = default;
    __host__ __device__ explicit as_float(const __small& __from) : __value(__from) {}
    __host__ __device__ operator float() const { return __value; }
};

#define GRIDSTRIDE_COMPOUND(type, operation) \
    template <class __number> __host__ __device__ inline type& operator operation##=(type& __a, const __number& __b) { \
        return __a = type(static_cast<float>(__a) operation static_cast<float>(__b)); \
    }
#define GRIDSTRIDE_COMPOUNDS(type) \
    GRIDSTRIDE_COMPOUND(type, +) GRIDSTRIDE_COMPOUND(type, -) GRIDSTRIDE_COMPOUND(type, *) GRIDSTRIDE_COMPOUND(type, /)
GRIDSTRIDE_COMPOUNDS(float16)
GRIDSTRIDE_COMPOUNDS(bfloat16)
// CUDA has a function of this name that halves sums of ints, to which these would become ints.
__host__ __device__ inline float16 __hadd(float16 __a, float16 __b) { return float(__a) + float(__b); }
__host__ __device__ inline bfloat16 __hadd(bfloat16 __a, bfloat16 __b) { return float(__a) + float(__b); }
#undef GRIDSTRIDE_COMPOUNDS
#undef GRIDSTRIDE_COMPOUND
#undef GRIDSTRIDE_ASSIGNED

}

using gridstride::float16;
using gridstride::bfloat16;

#endif
