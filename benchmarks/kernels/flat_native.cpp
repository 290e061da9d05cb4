// What a C++ programmer writes with OpenMP for the kernels of flat.cu.
#include <math.h>

struct alignas(16) float4 {
    float x, y, z, w;
};

extern "C" {

void native_axpy(float a, const float* x, float* y, int n) {
#pragma omp parallel for simd schedule(static)
    for (int i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}

void native_gray_scott(const float* __restrict u, const float* __restrict v, float* __restrict u_next,
                       float* __restrict v_next, int width, int height, float diffusion_u, float diffusion_v, float feed,
                       float kill, float step) {
#pragma omp parallel for schedule(static)
    for (int y = 1; y < height - 1; ++y) {
#pragma omp simd
        for (int x = 1; x < width - 1; ++x) {
            int i = y * width + x;
            float here_u = u[i], here_v = v[i];
            float spread_u = u[i - 1] + u[i + 1] + u[i - width] + u[i + width] - 4.0f * here_u;
            float spread_v = v[i - 1] + v[i + 1] + v[i - width] + v[i + width] - 4.0f * here_v;
            float reaction = here_u * here_v * here_v;
            u_next[i] = here_u + step * (diffusion_u * spread_u - reaction + feed * (1.0f - here_u));
            v_next[i] = here_v + step * (diffusion_v * spread_v + reaction - (feed + kill) * here_v);
        }
    }
}

void native_transcendental(const float* x, float* y, int n) {
#pragma omp parallel for simd
    for (int i = 0; i < n; ++i)
        y[i] = expf(-x[i] * x[i]) * sinf(3.0f * x[i]) + logf(1.0f + x[i] * x[i]) + powf(fabsf(x[i]) + 0.1f, 1.5f);
}

void native_bodies(const float4* position, float4* acceleration, int n, float softening) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        float ax = 0, ay = 0, az = 0;
        float4 here = position[i];
#pragma omp simd reduction(+ : ax, ay, az)
        for (int j = 0; j < n; ++j) {
            float4 other = position[j];
            float dx = other.x - here.x, dy = other.y - here.y, dz = other.z - here.z;
            float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + softening);
            float pull = other.w * inverse * inverse * inverse;
            ax += pull * dx;
            ay += pull * dy;
            az += pull * dz;
        }
        acceleration[i] = {ax, ay, az, 0};
    }
}

}
