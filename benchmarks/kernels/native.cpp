// The same work as the kernels beside this file, as a C++ programmer would write it with OpenMP.
#include <cmath>
#include <cstddef>
#include <cstring>

extern "C" void native_copy(const float *x, float *y, ptrdiff_t n) {
#pragma omp parallel for simd schedule(static)
    for (ptrdiff_t i = 0; i < n; ++i) y[i] = x[i];
}

extern "C" void native_axpy(float a, const float *x, float *y, ptrdiff_t n) {
#pragma omp parallel for simd schedule(static)
    for (ptrdiff_t i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}

extern "C" void native_gray_scott(const float *u, const float *v, float *next_u, float *next_v, int width, int height) {
#pragma omp parallel for schedule(static)
    for (int y = 1; y < height - 1; ++y) {
#pragma omp simd
        for (int x = 1; x < width - 1; ++x) {
            const int i = y * width + x;
            const float spread_u = u[i - 1] + u[i + 1] + u[i - width] + u[i + width] - 4.0f * u[i];
            const float spread_v = v[i - 1] + v[i + 1] + v[i - width] + v[i + width] - 4.0f * v[i];
            const float reaction = u[i] * v[i] * v[i];
            next_u[i] = u[i] + 0.16f * spread_u - reaction + 0.04f * (1.0f - u[i]);
            next_v[i] = v[i] + 0.08f * spread_v + reaction - 0.1f * v[i];
        }
    }
}

extern "C" void native_functions(const float *x, float *y, ptrdiff_t n) {
#pragma omp parallel for simd schedule(static)
    for (ptrdiff_t i = 0; i < n; ++i) y[i] = expf(x[i]) * sinf(x[i]) + logf(x[i]) * powf(x[i], 1.3f);
}

struct body {
    float x, y, z, w;
};

extern "C" void native_n_body(const body *bodies, body *forces, int n) {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < n; ++i) {
        const body me = bodies[i];
        float x = 0.0f, y = 0.0f, z = 0.0f;
        for (int k = 0; k < n; ++k) {
            const body other = bodies[k];
            const float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
            const float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
            const float weight = other.w * inverse * inverse * inverse;
            x += weight * dx;
            y += weight * dy;
            z += weight * dz;
        }
        forces[i] = {x, y, z, 0.0f};
    }
}

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

extern "C" void native_sum(const float *x, float *sum, ptrdiff_t n) {
    float total = 0.0f;
#pragma omp parallel for simd reduction(+ : total) schedule(static)
    for (ptrdiff_t i = 0; i < n; ++i) total += x[i];
    *sum = total;
}

extern "C" void native_histogram(const int *values, unsigned *counts, ptrdiff_t n) {
    memset(counts, 0, 256 * sizeof(unsigned));
#pragma omp parallel
    {
        unsigned mine[256] = {};
#pragma omp for schedule(static)
        for (ptrdiff_t i = 0; i < n; ++i) ++mine[values[i]];
#pragma omp critical
        for (int k = 0; k < 256; ++k) counts[k] += mine[k];
    }
}
