// Reduction with warp shuffles: mean, variance and extremes of the luminance. A tone curve then uses them.

struct Statistics {
    float count, mean, squares;  // squares: sum of squared differences from the mean
    float least, greatest;
};

// Merge two sets of values (Chan's formula: no cancellation, unlike sums of squares).
__device__ Statistics merged(Statistics a, Statistics b)
{
    if (a.count == 0.0f || b.count == 0.0f) {
        return b.count == 0.0f ? a : b;
    }
    float count = a.count + b.count;
    float apart = b.mean - a.mean;
    Statistics both;
    both.count = count;
    both.mean = a.mean + apart * (b.count / count);
    both.squares = a.squares + b.squares + apart * apart * (a.count * (b.count / count));
    both.least = fminf(a.least, b.least);
    both.greatest = fmaxf(a.greatest, b.greatest);
    return both;
}

__device__ Statistics from_lane_below(Statistics s, int distance)
{
    Statistics other;
    other.count = __shfl_down_sync(0xffffffff, s.count, distance);
    other.mean = __shfl_down_sync(0xffffffff, s.mean, distance);
    other.squares = __shfl_down_sync(0xffffffff, s.squares, distance);
    other.least = __shfl_down_sync(0xffffffff, s.least, distance);
    other.greatest = __shfl_down_sync(0xffffffff, s.greatest, distance);
    return other;
}

__device__ Statistics over_warp(Statistics s)
{
    for (int distance = warpSize / 2; distance > 0; distance /= 2) {
        s = merged(s, from_lane_below(s, distance));
    }
    return s;
}

// Thread 0 gets the statistics of the whole block: first each warp's, then those of the warps.
__device__ Statistics over_block(Statistics s)
{
    __shared__ Statistics of_warp[32];
    int lane = threadIdx.x % warpSize;
    int warp = threadIdx.x / warpSize;
    s = over_warp(s);
    if (lane == 0) {
        of_warp[warp] = s;
    }
    __syncthreads();
    if (warp == 0) {
        s = over_warp(lane < blockDim.x / warpSize ? of_warp[lane] : Statistics{});
    }
    return s;
}

extern "C" __global__ void measure(const float4* image, Statistics* of_block, int pixels)
{
    Statistics s = {};
    for (int pixel = blockIdx.x * blockDim.x + threadIdx.x; pixel < pixels; pixel += gridDim.x * blockDim.x) {
        float luminance = image[pixel].w;
        s = merged(s, {1.0f, luminance, 0.0f, luminance, luminance});
    }
    s = over_block(s);
    if (threadIdx.x == 0) {
        of_block[blockIdx.x] = s;
    }
}

extern "C" __global__ void combine(const Statistics* of_block, Statistics* total, int blocks)
{
    Statistics s = over_block(threadIdx.x < blocks ? of_block[threadIdx.x] : Statistics{});
    if (threadIdx.x == 0) {
        *total = s;
    }
}

// Bring the mean to `middle`, roll bright pixels off, and encode for the screen.
extern "C" __global__ void expose(const float4* image, const Statistics* total, float4* result, float middle,
                                  int pixels)
{
    int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= pixels) {
        return;
    }
    const float tiny = 1e-6f;  // a black picture stays black
    float exposure = middle / fmaxf(total->mean, tiny);
    float deviation = sqrtf(total->squares / total->count);
    float white = exposure * fmaxf(fminf(total->greatest, total->mean + 4.0f * deviation), tiny);
    float4 color = image[pixel];
    float light = exposure * color.w;
    float toned = light * (1.0f + light / (white * white)) / (1.0f + light);
    float shown = powf(fminf(toned, 1.0f), 1.0f / 2.2f);
    float gain = color.w > 0.0f ? shown / color.w : 0.0f;
    result[pixel] = make_float4(gain * color.x, gain * color.y, gain * color.z, shown);
}
