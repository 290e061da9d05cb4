"""Instantiate templates: one text, kernels for several types and sizes, a variable in constant memory."""

import numpy as np

import gridstride as gs

SOURCE = r"""
__constant__ float weights[8];

// The degree is known to the compiler, so it unrolls the loop.
template <typename T, int DEGREE>
__global__ void polynomial(const T* x, T* y, int n)
{
    static_assert(DEGREE < 8, "there are eight weights");
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        T value = weights[DEGREE];
        for (int k = DEGREE - 1; k >= 0; --k) {
            value = value * x[i] + T(weights[k]);
        }
        y[i] = value;
    }
}
"""


def main() -> None:
    # Name the instances that shall be compiled in. Any spelling of C++ finds them again.
    names = ["polynomial<float, 2>", "polynomial<double, 2>", "polynomial<double, 5>"]
    module = gs.RawModule(SOURCE, name_expressions=names)

    # A variable of the module is memory with the variable's size, filled here from the host.
    weights = np.arange(1, 9, dtype=np.float32)
    module.get_global("weights").copy_from_host(weights)

    n = 1000
    for name, dtype, degree in (
        (names[0], np.float32, 2),
        (names[1], np.float64, 2),
        (names[2], np.float64, 5),
    ):
        x = gs.linspace(-1, 1, n, dtype=dtype)
        y = gs.empty_like(x)
        module.get_function(name)((-(-n // 256),), (256,), (x, y, n))
        expected = np.polynomial.Polynomial(weights[: degree + 1])(gs.asnumpy(x))
        np.testing.assert_allclose(gs.asnumpy(y), expected, rtol=1e-5, atol=1e-5)
        print(f"{name:<24} y(1) = {float(y[-1])}")


if __name__ == "__main__":
    main()
