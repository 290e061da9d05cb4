// Kernels with barriers and warp shuffles, written as CUDA textbooks write them.

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

extern "C" __global__ void barriers(int count) {
    for (int k = 0; k < count; ++k) __syncthreads();
}
