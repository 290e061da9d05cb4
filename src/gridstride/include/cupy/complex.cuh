// `complex<float>` and `complex<double>` at global scope.
#ifndef GRIDSTRIDE_CUPY_COMPLEX_CUH
#define GRIDSTRIDE_CUPY_COMPLEX_CUH

#include <gridstride/complex.h>

using thrust::complex;

#endif
