// Gray-Scott: two substances diffuse and react. The picture seeds them and sets how they are fed.

struct Reaction {
    float diffusion_u, diffusion_v;
    float feed_dark, feed_bright;
    float kill_dark, kill_bright;
};

constexpr int SPOT_DISTANCE = 12;
constexpr int SPOT_WIDTH = 4;

// One cell for `scale` x `scale` pixels: their mean luminance, and substance v in regular spots and along edges.
extern "C" __global__ void seed(const float4* image, const float* edges, float2* cells, float* light, int width,
                                int side, int scale)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= side || y >= side) {
        return;
    }
    float luminance = 0.0f;
    float edge = 0.0f;
    for (int dy = 0; dy < scale; ++dy) {
        for (int dx = 0; dx < scale; ++dx) {
            int pixel = (y * scale + dy) * width + x * scale + dx;
            luminance += image[pixel].w;
            edge += edges[pixel];
        }
    }
    float share = 1.0f / (scale * scale);
    bool spot = x % SPOT_DISTANCE < SPOT_WIDTH && y % SPOT_DISTANCE < SPOT_WIDTH;
    float v = fmaxf(spot ? 0.5f : 0.0f, 0.35f * fminf(share * edge, 1.0f));
    cells[y * side + x] = make_float2(1.0f - v, v);
    light[y * side + x] = share * luminance;
}

// One step of time; the field is a torus.
extern "C" __global__ void react(const float2* __restrict__ cells, float2* __restrict__ next,
                                 const float* __restrict__ light, Reaction reaction, int side)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= side || y >= side) {
        return;
    }
    int left = x > 0 ? x - 1 : side - 1;
    int right = x < side - 1 ? x + 1 : 0;
    int up = y > 0 ? y - 1 : side - 1;
    int down = y < side - 1 ? y + 1 : 0;
    float2 c = cells[y * side + x];
    float2 w = cells[y * side + left];
    float2 e = cells[y * side + right];
    float2 n = cells[up * side + x];
    float2 s = cells[down * side + x];
    float bright = light[y * side + x];
    float feed = reaction.feed_dark + bright * (reaction.feed_bright - reaction.feed_dark);
    float kill = reaction.kill_dark + bright * (reaction.kill_bright - reaction.kill_dark);
    float spread_u = w.x + e.x + n.x + s.x - 4.0f * c.x;
    float spread_v = w.y + e.y + n.y + s.y - 4.0f * c.y;
    float made = c.x * c.y * c.y;
    next[y * side + x] = make_float2(
        c.x + reaction.diffusion_u * spread_u - made + feed * (1.0f - c.x),
        c.y + reaction.diffusion_v * spread_v + made - (feed + kill) * c.y);
}
