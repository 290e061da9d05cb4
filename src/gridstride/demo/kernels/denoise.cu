// Stencil with a halo in shared memory: a bilateral filter averages over 5 x 5 pixels of similar luminance.

constexpr int TILE_X = 32;
constexpr int TILE_Y = 8;
constexpr int RADIUS = 2;
constexpr int PADDED_X = TILE_X + 2 * RADIUS;
constexpr int PADDED_Y = TILE_Y + 2 * RADIUS;

__device__ int clamped(int i, int size)
{
    return min(max(i, 0), size - 1);
}

extern "C" __global__ void denoise(const float4* __restrict__ image, float4* __restrict__ result, int height,
                                   int width, float spread, float noise)
{
    __shared__ float4 tile[PADDED_Y][PADDED_X];

    // The block loads its tile and a border of RADIUS pixels around it; edge pixels repeat outside.
    int left = blockIdx.x * TILE_X - RADIUS;
    int top = blockIdx.y * TILE_Y - RADIUS;
    for (int i = threadIdx.y * TILE_X + threadIdx.x; i < PADDED_X * PADDED_Y; i += TILE_X * TILE_Y) {
        int y = clamped(top + i / PADDED_X, height);
        int x = clamped(left + i % PADDED_X, width);
        tile[i / PADDED_X][i % PADDED_X] = image[y * width + x];
    }
    __syncthreads();

    int x = blockIdx.x * TILE_X + threadIdx.x;
    int y = blockIdx.y * TILE_Y + threadIdx.y;
    if (x >= width || y >= height) {
        return;
    }
    float here = tile[threadIdx.y + RADIUS][threadIdx.x + RADIUS].w;
    float similar = -0.5f / (noise * noise);
    float near = -0.5f / (spread * spread);
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float total = 0.0f;
    for (int dy = 0; dy <= 2 * RADIUS; ++dy) {
        for (int dx = 0; dx <= 2 * RADIUS; ++dx) {
            float4 other = tile[threadIdx.y + dy][threadIdx.x + dx];
            float difference = other.w - here;
            float distance = (dy - RADIUS) * (dy - RADIUS) + (dx - RADIUS) * (dx - RADIUS);
            float weight = expf(near * distance + similar * difference * difference);
            sum.x += weight * other.x;
            sum.y += weight * other.y;
            sum.z += weight * other.z;
            sum.w += weight * other.w;
            total += weight;
        }
    }
    result[y * width + x] = make_float4(sum.x / total, sum.y / total, sum.z / total, sum.w / total);
}
