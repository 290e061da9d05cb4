"""The shortest whole program: one kernel, called on arrays. Run it with ``python examples/saxpy.py``."""

import numpy as np

import gridstride as gs

# CUDA C++ as you would write it in a .cu file. It is compiled at the first call and then kept on disk.
saxpy = gs.RawKernel(
    r"""
    extern "C" __global__ void saxpy(float a, const float* x, float* y, int n)
    {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) {
            y[i] += a * x[i];
        }
    }
    """,
    "saxpy",
)


def main() -> None:
    n = 1_000_000
    # CuPy arrays where there is a GPU for them, NumPy arrays elsewhere. They decide where the kernel runs.
    x = gs.arange(n, dtype=np.float32)
    y = gs.ones(n, dtype=np.float32)

    threads = 256
    blocks = -(-n // threads)
    # The arguments are converted by the C++ signature: 2.5 is a float, n an int, both arrays are checked.
    saxpy((blocks,), (threads,), (2.5, x, y, n))

    expected = 1 + np.float32(2.5) * np.arange(n, dtype=np.float32)
    np.testing.assert_allclose(gs.asnumpy(y), expected, rtol=1e-6)
    print(f"y = 2.5 x + y for {n} elements on {type(y).__module__} arrays: the last is {float(y[-1])}")


if __name__ == "__main__":
    main()
