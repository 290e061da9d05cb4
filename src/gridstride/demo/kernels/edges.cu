// Sobel edges of the luminance, again with a halo in shared memory (dynamic this time), at any block shape.

extern "C" __global__ void edges(const float4* image, float* strength, int height, int width)
{
    extern __shared__ float tile[];  // (blockDim.y + 2) rows of (blockDim.x + 2)
    int pitch = blockDim.x + 2;
    int padded = pitch * (blockDim.y + 2);
    for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < padded; i += blockDim.x * blockDim.y) {
        int y = (int)(blockIdx.y * blockDim.y) + i / pitch - 1;
        int x = (int)(blockIdx.x * blockDim.x) + i % pitch - 1;
        tile[i] = image[min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1)].w;
    }
    __syncthreads();

    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        const float* above = tile + threadIdx.y * pitch + threadIdx.x;
        const float* level = above + pitch;
        const float* below = level + pitch;
        float across = (above[2] + 2.0f * level[2] + below[2]) - (above[0] + 2.0f * level[0] + below[0]);
        float down = (below[0] + 2.0f * below[1] + below[2]) - (above[0] + 2.0f * above[1] + above[2]);
        strength[y * width + x] = sqrtf(across * across + down * down);
    }
}
