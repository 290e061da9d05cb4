// The same work as the kernels beside this file, as a C++ programmer would write it with OpenMP.
#include <cstddef>

extern "C" void native_matmul(const float *a, const float *b, float *c, int n) {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) c[i * n + j] = 0.0f;
        for (int k = 0; k < n; ++k) {
            const float factor = a[i * n + k];
            for (int j = 0; j < n; ++j) c[i * n + j] += factor * b[k * n + j];
        }
    }
}

extern "C" float native_sum(const float *x, ptrdiff_t n) {
    float total = 0.0f;
#pragma omp parallel for simd reduction(+ : total) schedule(static)
    for (ptrdiff_t i = 0; i < n; ++i) total += x[i];
    return total;
}

extern "C" void native_axpy(float a, const float *x, float *y, ptrdiff_t n) {
#pragma omp parallel for simd schedule(static)
    for (ptrdiff_t i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}
