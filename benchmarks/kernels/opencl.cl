// The kernels of cpu.cu in OpenCL C.

__kernel void axpy(float a, __global const float *x, __global float *y, int n) {
    const int i = get_global_id(0);
    if (i < n) y[i] = a * x[i] + y[i];
}

__kernel void grid_stride_axpy(float a, __global const float *x, __global float *y, int n) {
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = a * x[i] + y[i];
}

__kernel void gray_scott(__global const float *u, __global const float *v, __global float *next_u,
                         __global float *next_v, int width, int height) {
    const int x = get_global_id(0), y = get_global_id(1);
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    const int i = y * width + x;
    const float spread_u = u[i - 1] + u[i + 1] + u[i - width] + u[i + width] - 4.0f * u[i];
    const float spread_v = v[i - 1] + v[i + 1] + v[i - width] + v[i + width] - 4.0f * v[i];
    const float reaction = u[i] * v[i] * v[i];
    next_u[i] = u[i] + 0.16f * spread_u - reaction + 0.04f * (1.0f - u[i]);
    next_v[i] = v[i] + 0.08f * spread_v + reaction - 0.1f * v[i];
}

__kernel void functions(__global const float *x, __global float *y, int n) {
    const int i = get_global_id(0);
    if (i < n) y[i] = exp(x[i]) * sin(x[i]) + log(x[i]) * pow(x[i], 1.3f);
}

__kernel void n_body(__global const float4 *bodies, __global float4 *forces, int n) {
    const int i = get_global_id(0);
    if (i >= n) return;
    const float4 me = bodies[i];
    float x = 0.0f, y = 0.0f, z = 0.0f;
    for (int k = 0; k < n; ++k) {
        const float4 other = bodies[k];
        const float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
        const float inverse = 1.0f / sqrt(dx * dx + dy * dy + dz * dz + 1e-3f);
        const float weight = other.w * inverse * inverse * inverse;
        x += weight * dx;
        y += weight * dy;
        z += weight * dz;
    }
    forces[i] = (float4)(x, y, z, 0.0f);
}

__kernel void matmul(__global const float *a, __global const float *b, __global float *c, int n) {
    __local float tile_a[16][16];
    __local float tile_b[16][16];
    const int x = get_local_id(0), y = get_local_id(1);
    const int row = get_group_id(1) * 16 + y, column = get_group_id(0) * 16 + x;
    float sum = 0.0f;
    for (int step = 0; step < n / 16; ++step) {
        tile_a[y][x] = a[row * n + step * 16 + x];
        tile_b[y][x] = b[(step * 16 + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 16; ++k) sum += tile_a[y][k] * tile_b[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}

__kernel void tree_sum(__global const float *x, __global float *sums, int n, __local float *partial) {
    const uint thread = get_local_id(0);
    const int i = get_global_id(0);
    partial[thread] = i < n ? x[i] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_size = get_local_size(0) / 2; half_size > 0; half_size /= 2) {
        if (thread < half_size) partial[thread] += partial[thread + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (thread == 0) sums[get_group_id(0)] = partial[0];
}

__kernel void histogram(__global const int *values, __global uint *counts, int n) {
    const int i = get_global_id(0);
    if (i < n) atomic_inc(&counts[values[i]]);
}
