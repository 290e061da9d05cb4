"""Sum an array: warp shuffles, shared memory, and one atomic addition for each block."""

import numpy as np

import gridstride as gs

add_up = gs.RawKernel(
    r"""
    __device__ double warp_sum(double value)
    {
        // Lane k gets the value of lane k + distance; after five steps lane 0 holds the sum of all 32.
        for (int distance = 16; distance > 0; distance /= 2) {
            value += __shfl_down_sync(0xffffffff, value, distance);
        }
        return value;
    }

    extern "C" __global__ void add_up(const float* x, double* sum, int n)
    {
        // Each thread walks over the array in strides of the whole grid, so any grid covers any n.
        double value = 0.0;
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
            value += x[i];
        }

        // One number for each warp goes through shared memory, then the first warp adds those.
        __shared__ double of_warp[32];
        value = warp_sum(value);
        if (threadIdx.x % 32 == 0) {
            of_warp[threadIdx.x / 32] = value;
        }
        __syncthreads();
        if (threadIdx.x < 32) {
            value = warp_sum(threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : 0.0);
        }
        if (threadIdx.x == 0) {
            atomicAdd(sum, value);
        }
    }
    """,
    "add_up",
)


def main() -> None:
    n = 1_000_000
    values = np.random.default_rng(0).random(n, dtype=np.float32)
    x = gs.asarray(values)
    total = gs.zeros(1)

    add_up((64,), (256,), (x, total, n))

    exact = values.sum(dtype=np.float64)
    np.testing.assert_allclose(gs.asnumpy(total), exact, rtol=1e-12)
    print(f"the sum of {n} numbers is {float(total[0]):.6f}; NumPy says {exact:.6f}")


if __name__ == "__main__":
    main()
