// The names of cuComplex.h as operations on complex<float> and complex<double>, which may mix the precisions.
//
// Included before cuComplex.h it takes that header's place.
#ifndef GRIDSTRIDE_CUCOMPLEX_H
#define GRIDSTRIDE_CUCOMPLEX_H

#include <cupy/complex.cuh>

typedef complex<float> cuFloatComplex;
typedef complex<double> cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define GRIDSTRIDE_TRANSLATED(number, part, f) \
    __host__ __device__ static inline number make_##number(part __re, part __im) { return number(__re, __im); } \
    template <class __a> __host__ __device__ inline auto cuCreal##f(const __a& __z) { return __z.real(); } \
    template <class __a> __host__ __device__ inline auto cuCimag##f(const __a& __z) { return __z.imag(); } \
    template <class __a> __host__ __device__ inline __a cuConj##f(const __a& __z) { return conj(__z); } \
    template <class __a> __host__ __device__ inline auto cuCabs##f(const __a& __z) { return abs(__z); } \
    GRIDSTRIDE_TRANSLATED_OPERATOR(cuCadd##f, +) \
    GRIDSTRIDE_TRANSLATED_OPERATOR(cuCsub##f, -) \
    GRIDSTRIDE_TRANSLATED_OPERATOR(cuCmul##f, *) \
    GRIDSTRIDE_TRANSLATED_OPERATOR(cuCdiv##f, /) \
    template <class __a, class __b, class __c> \
    __host__ __device__ inline auto cuCfma##f(const __a& __x, const __b& __y, const __c& __z) { return __x * __y + __z; }
#define GRIDSTRIDE_TRANSLATED_OPERATOR(name, operation) \
    template <class __a, class __b> \
    __host__ __device__ inline auto name(const __a& __x, const __b& __y) { return __x operation __y; }
GRIDSTRIDE_TRANSLATED(cuFloatComplex, float, f)
GRIDSTRIDE_TRANSLATED(cuDoubleComplex, double, )
#undef GRIDSTRIDE_TRANSLATED_OPERATOR
#undef GRIDSTRIDE_TRANSLATED

__host__ __device__ static inline cuComplex make_cuComplex(float __re, float __im) { return cuComplex(__re, __im); }
template <class __a> __host__ __device__ inline cuDoubleComplex cuComplexFloatToDouble(const __a& __z) { return cuDoubleComplex(__z); }
template <class __a> __host__ __device__ inline cuFloatComplex cuComplexDoubleToFloat(const __a& __z) { return cuFloatComplex(__z); }

#endif
