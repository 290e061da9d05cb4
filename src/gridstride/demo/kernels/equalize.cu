// Histogram equalization: atomics on shared and global memory, a scan, and a look-up per pixel.

constexpr int BINS = 256;

__device__ float bin_position(float luminance)
{
    return fminf(fmaxf(luminance, 0.0f), 1.0f) * (BINS - 1);
}

// Each block counts in shared memory, so that the atomics on global memory are few.
extern "C" __global__ void histogram(const float4* image, unsigned int* counts, int pixels)
{
    __shared__ unsigned int of_block[BINS];
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
        of_block[bin] = 0;
    }
    __syncthreads();
    for (int pixel = blockIdx.x * blockDim.x + threadIdx.x; pixel < pixels; pixel += gridDim.x * blockDim.x) {
        atomicAdd(&of_block[(int)bin_position(image[pixel].w)], 1u);
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
        atomicAdd(&counts[bin], of_block[bin]);
    }
}

// One block of BINS threads: an inclusive scan by doubling distances, between two halves of shared memory.
extern "C" __global__ void accumulate(const unsigned int* counts, float* curve)
{
    __shared__ unsigned int sums[2][BINS];
    int bin = threadIdx.x;
    int from = 0;
    sums[from][bin] = counts[bin];
    __syncthreads();
    for (int distance = 1; distance < BINS; distance *= 2) {
        sums[1 - from][bin] = sums[from][bin] + (bin >= distance ? sums[from][bin - distance] : 0);
        from = 1 - from;
        __syncthreads();
    }
    curve[bin] = (float)sums[from][bin] / (float)sums[from][BINS - 1];
}

// Move each luminance towards its rank in the picture; between two bins the curve is a straight line.
extern "C" __global__ void equalize(const float4* image, const float* curve, float4* result, float strength,
                                    int pixels)
{
    int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= pixels) {
        return;
    }
    float4 color = image[pixel];
    float position = bin_position(color.w);
    int bin = min((int)position, BINS - 2);
    float rank = curve[bin] + (position - bin) * (curve[bin + 1] - curve[bin]);
    float wanted = color.w + strength * (rank - color.w);
    float gain = color.w > 0.0f ? wanted / color.w : 0.0f;
    result[pixel] = make_float4(gain * color.x, gain * color.y, gain * color.z, gain * color.w);
}
