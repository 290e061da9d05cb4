// Kernels whose threads never wait: the rows of the flat tier.
extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void axpy_grid_stride(float a, const float* x, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        y[i] = a * x[i] + y[i];
}

// Reaction and diffusion of two substances on a plane (Gray and Scott).
extern "C" __global__ void gray_scott(const float* u, const float* v, float* u_next, float* v_next, int width, int height,
                                      float diffusion_u, float diffusion_v, float feed, float kill, float step) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    int i = y * width + x;
    float here_u = u[i], here_v = v[i];
    float spread_u = u[i - 1] + u[i + 1] + u[i - width] + u[i + width] - 4.0f * here_u;
    float spread_v = v[i - 1] + v[i + 1] + v[i - width] + v[i + width] - 4.0f * here_v;
    float reaction = here_u * here_v * here_v;
    u_next[i] = here_u + step * (diffusion_u * spread_u - reaction + feed * (1.0f - here_u));
    v_next[i] = here_v + step * (diffusion_v * spread_v + reaction - (feed + kill) * here_v);
}

extern "C" __global__ void transcendental(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = expf(-x[i] * x[i]) * sinf(3.0f * x[i]) + logf(1.0f + x[i] * x[i]) + powf(fabsf(x[i]) + 0.1f, 1.5f);
}

// Accelerations of bodies that attract each other; w is the mass.
extern "C" __global__ void bodies(const float4* position, float4* acceleration, int n, float softening) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 here = position[i];
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int j = 0; j < n; ++j) {
        float4 other = position[j];
        float dx = other.x - here.x, dy = other.y - here.y, dz = other.z - here.z;
        float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
        float pull = other.w * inverse * inverse * inverse;
        ax += pull * dx;
        ay += pull * dy;
        az += pull * dz;
    }
    acceleration[i] = make_float4(ax, ay, az, 0.0f);
}

extern "C" __global__ void histogram(const unsigned char* data, unsigned* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[data[i]], 1u);
}

extern "C" __global__ void tiny(float* x) { x[threadIdx.x] += 1.0f; }
