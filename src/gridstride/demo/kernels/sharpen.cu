// Separable convolution with taps in constant memory, then an unsharp mask: add what the blur took away.

constexpr int RADIUS = 8;
__constant__ float taps[2 * RADIUS + 1];

enum Axis { ROWS, COLUMNS };

__device__ int clamped(int i, int size)
{
    return min(max(i, 0), size - 1);
}

// Convolve along rows (ROWS) or along columns (COLUMNS); edge pixels repeat outside.
template <Axis AXIS>
__global__ void convolve(const float4* __restrict__ image, float4* __restrict__ result, int height, int width)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) {
        return;
    }
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int k = -RADIUS; k <= RADIUS; ++k) {
        int from = AXIS == ROWS ? y * width + clamped(x + k, width) : clamped(y + k, height) * width + x;
        float4 other = image[from];
        float tap = taps[k + RADIUS];
        sum.x += tap * other.x;
        sum.y += tap * other.y;
        sum.z += tap * other.z;
        sum.w += tap * other.w;
    }
    result[y * width + x] = sum;
}

extern "C" __global__ void unsharp(const float4* image, const float4* blurred, float4* result, float amount,
                                   int pixels)
{
    int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel < pixels) {
        float4 sharp = image[pixel];
        float4 soft = blurred[pixel];
        // Scaling all components alike keeps the hue; a floor keeps dark pixels above zero.
        float wanted = fmaxf(0.25f * sharp.w, sharp.w + amount * (sharp.w - soft.w));
        float gain = sharp.w > 0.0f ? wanted / sharp.w : 1.0f;
        result[pixel] = make_float4(gain * sharp.x, gain * sharp.y, gain * sharp.z, gain * sharp.w);
    }
}
