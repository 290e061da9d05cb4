// CUDA's complex numbers in C style: cuFloatComplex is a float2, cuDoubleComplex a double2.
#ifndef GRIDSTRIDE_CUCOMPLEX_H
#define GRIDSTRIDE_CUCOMPLEX_H

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

// Division is scaled, so that intermediate results do not overflow before the quotient does.
#define GRIDSTRIDE_CUCOMPLEX(complex, real, f) \
    __host__ __device__ static inline complex make_##complex(real __re, real __im) { \
        complex __z; \
        __z.x = __re; \
        __z.y = __im; \
        return __z; \
    } \
    __host__ __device__ static inline real cuCreal##f(complex __z) { return __z.x; } \
    __host__ __device__ static inline real cuCimag##f(complex __z) { return __z.y; } \
    __host__ __device__ static inline complex cuConj##f(complex __z) { return make_##complex(__z.x, -__z.y); } \
    __host__ __device__ static inline complex cuCadd##f(complex __a, complex __b) \
    { return make_##complex(__a.x + __b.x, __a.y + __b.y); } \
    __host__ __device__ static inline complex cuCsub##f(complex __a, complex __b) \
    { return make_##complex(__a.x - __b.x, __a.y - __b.y); } \
    __host__ __device__ static inline complex cuCmul##f(complex __a, complex __b) \
    { return make_##complex(__a.x * __b.x - __a.y * __b.y, __a.x * __b.y + __a.y * __b.x); } \
    __host__ __device__ static inline complex cuCdiv##f(complex __a, complex __b) { \
        const real __scale = real(1) / (fabs(__b.x) + fabs(__b.y)); \
        const real __ax = __a.x * __scale, __ay = __a.y * __scale, __bx = __b.x * __scale, __by = __b.y * __scale; \
        const real __norm = real(1) / (__bx * __bx + __by * __by); \
        return make_##complex((__ax * __bx + __ay * __by) * __norm, (__ay * __bx - __ax * __by) * __norm); \
    } \
    __host__ __device__ static inline real cuCabs##f(complex __z) { return hypot(__z.x, __z.y); } \
    __host__ __device__ static inline complex cuCfma##f(complex __a, complex __b, complex __c) { \
        return make_##complex(fma(-__a.y, __b.y, fma(__a.x, __b.x, __c.x)), fma(__a.y, __b.x, fma(__a.x, __b.y, __c.y))); \
    }

GRIDSTRIDE_CUCOMPLEX(cuFloatComplex, float, f)
GRIDSTRIDE_CUCOMPLEX(cuDoubleComplex, double, )
#undef GRIDSTRIDE_CUCOMPLEX

__host__ __device__ static inline cuComplex make_cuComplex(float __re, float __im) { return make_cuFloatComplex(__re, __im); }
__host__ __device__ static inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex __z) {
    return make_cuDoubleComplex(__z.x, __z.y);
}
__host__ __device__ static inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex __z) {
    return make_cuFloatComplex(static_cast<float>(__z.x), static_cast<float>(__z.y));
}

#endif
