// Per pixel: camera bytes to linear light, with the lamp's tint taken out.

struct ColorMatrix {
    float row[3][3];
};

__device__ float linear(unsigned char level)
{
    float value = level / 255.0f;
    return value <= 0.04045f ? value / 12.92f : powf((value + 0.055f) / 1.055f, 2.4f);
}

// The fourth component carries the luminance through the whole pipeline.
extern "C" __global__ void develop(const uchar3* bytes, float4* image, ColorMatrix balance, int pixels)
{
    int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= pixels) {
        return;
    }
    uchar3 level = bytes[pixel];
    float camera[3] = {linear(level.x), linear(level.y), linear(level.z)};
    float color[3];
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        color[i] = fmaxf(0.0f, balance.row[i][0] * camera[0] + balance.row[i][1] * camera[1]
                                   + balance.row[i][2] * camera[2]);
    }
    float luminance = 0.2126f * color[0] + 0.7152f * color[1] + 0.0722f * color[2];
    image[pixel] = make_float4(color[0], color[1], color[2], luminance);
}
