// What stands in for CuPy's library calls while a stream is captured: random numbers and matrix products.
// Random numbers are those of Philox 4x32 with ten rounds (Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", 2011). `launches` counts the launches so far in memory, so that every replay draws new ones.

__device__ uint4 philox(uint4 counter, uint2 key)
{
    for (int round = 0; round < 10; ++round) {
        unsigned high0 = __umulhi(0xD2511F53u, counter.x), low0 = 0xD2511F53u * counter.x;
        unsigned high1 = __umulhi(0xCD9E8D57u, counter.z), low1 = 0xCD9E8D57u * counter.z;
        counter = make_uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
        key = make_uint2(key.x + 0x9E3779B9u, key.y + 0xBB67AE85u);
    }
    return counter;
}

__device__ uint4 draw(unsigned long long index, unsigned long long seed, const unsigned long long* launches)
{
    unsigned long long launch = *launches;
    return philox(make_uint4((unsigned)index, (unsigned)(index >> 32), (unsigned)launch, (unsigned)(launch >> 32)),
                  make_uint2((unsigned)seed, (unsigned)(seed >> 32)));
}

// From 0 inclusive to 1 exclusive, with all bits that the type holds there.
__device__ void to_unit(unsigned high, unsigned low, double& unit)
{
    unit = ((high >> 5) * 67108864.0 + (low >> 6)) * (1.0 / 9007199254740992.0);
}
__device__ void to_unit(unsigned high, unsigned, float& unit) { unit = (high >> 8) * (1.0f / 16777216.0f); }

template <typename T>
__global__ void uniform(T* out, long long n, unsigned long long seed, const unsigned long long* launches)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint4 bits = draw(i, seed, launches);
    to_unit(bits.x, bits.y, out[i]);
}

// The method of Box and Muller.
template <typename T>
__global__ void normal(T* out, long long n, unsigned long long seed, const unsigned long long* launches)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint4 bits = draw(i, seed, launches);
    double radius, angle;
    to_unit(bits.x, bits.y, radius);
    to_unit(bits.z, bits.w, angle);
    out[i] = (T)(sqrt(-2.0 * log(1.0 - radius)) * cos(6.283185307179586 * angle));
}

__global__ void advance(unsigned long long* launches) { ++*launches; }

template <typename T>
__global__ void matmul(const T* a, const T* b, T* c, int rows, int inner, int columns)
{
    const int SIDE = 16;
    __shared__ T left[SIDE][SIDE + 1], right[SIDE][SIDE + 1];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * SIDE + y, column = blockIdx.x * SIDE + x;
    T sum = 0;
    for (int start = 0; start < inner; start += SIDE) {
        bool is_left = row < rows && start + x < inner, is_right = start + y < inner && column < columns;
        left[y][x] = is_left ? a[(long long)row * inner + start + x] : T(0);
        right[y][x] = is_right ? b[(long long)(start + y) * columns + column] : T(0);
        __syncthreads();
        for (int k = 0; k < SIDE; ++k) sum += left[y][k] * right[k][x];
        __syncthreads();
    }
    if (row < rows && column < columns) c[(long long)row * columns + column] = sum;
}
