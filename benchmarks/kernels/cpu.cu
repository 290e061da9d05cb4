// Kernels written as CUDA textbooks write them; `peers/` holds what each is compared with.

constexpr int TILE = 16;

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int n) {
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0.0f;
    for (int step = 0; step < n / TILE; ++step) {
        tile_a[y][x] = a[row * n + step * TILE + x];
        tile_b[y][x] = b[(step * TILE + y) * n + column];
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += tile_a[y][k] * tile_b[k][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

extern "C" __global__ void tree_sum(const float* x, float* sums, int n) {
    extern __shared__ float partial[];
    const unsigned thread = threadIdx.x;
    const int i = blockIdx.x * blockDim.x + thread;
    partial[thread] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (thread < half) partial[thread] += partial[thread + half];
        __syncthreads();
    }
    if (thread == 0) sums[blockIdx.x] = partial[0];
}

__device__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
    return value;
}

extern "C" __global__ void shuffle_sum(const float* x, float* sums, int n) {
    __shared__ float partial[32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float value = warp_sum(i < n ? x[i] : 0.0f);
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = warp_sum(lane < (int)blockDim.x / 32 ? partial[lane] : 0.0f);
        if (lane == 0) sums[blockIdx.x] = value;
    }
}

extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void grid_stride_axpy(float a, const float* x, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void gray_scott(const float* u, const float* v, float* next_u, float* next_v, int width,
                                      int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    const int i = y * width + x;
    const float spread_u = u[i - 1] + u[i + 1] + u[i - width] + u[i + width] - 4.0f * u[i];
    const float spread_v = v[i - 1] + v[i + 1] + v[i - width] + v[i + width] - 4.0f * v[i];
    const float reaction = u[i] * v[i] * v[i];
    next_u[i] = u[i] + 0.16f * spread_u - reaction + 0.04f * (1.0f - u[i]);
    next_v[i] = v[i] + 0.08f * spread_v + reaction - 0.1f * v[i];
}

extern "C" __global__ void functions(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = expf(x[i]) * sinf(x[i]) + logf(x[i]) * powf(x[i], 1.3f);
}

extern "C" __global__ void n_body(const float4* bodies, float4* forces, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float4 me = bodies[i];
    float x = 0.0f, y = 0.0f, z = 0.0f;
    for (int k = 0; k < n; ++k) {
        const float4 other = bodies[k];
        const float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
        const float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
        const float weight = other.w * inverse * inverse * inverse;
        x += weight * dx;
        y += weight * dy;
        z += weight * dz;
    }
    forces[i] = make_float4(x, y, z, 0.0f);
}

extern "C" __global__ void histogram(const int* values, unsigned* counts, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&counts[values[i]], 1u);
}

extern "C" __global__ void barriers(int count) {
    for (int k = 0; k < count; ++k) __syncthreads();
}
