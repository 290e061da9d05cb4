"""Whole programs: arrays made through the namespace, raw kernels launched on them, results looked at on the host."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

import gridstride as gs


@pytest.fixture(autouse=True)
def _namespace_of_the_target(target: object, xp: ModuleType) -> Iterator[None]:
    with gs.use_backend(xp.__name__):
        yield


def blocks_for(size: int, block: int) -> int:
    return -(-size // block)


PRODUCT = r"""
extern "C" __global__ void product(const float* left, const float* right, float* out, int rows, int columns, int inner)
{
    const int column = threadIdx.x + blockDim.x * blockIdx.x, row = threadIdx.y + blockDim.y * blockIdx.y;
    if (row >= rows || column >= columns) return;
    float total = 0;
    for (int k = 0; k < inner; ++k) total += left[inner * row + k] * right[columns * k + column];
    out[columns * row + column] = total;
}
"""


def test_a_product_of_matrices_on_a_grid_of_two_dimensions() -> None:
    rows, columns, inner = 130, 75, 90
    left = gs.random.rand(rows, inner, dtype=gs.float32)
    right = gs.random.rand(inner, columns, dtype=gs.float32)
    out = gs.zeros((rows, columns), dtype=gs.float32)
    grid = blocks_for(columns, 16), blocks_for(rows, 16)
    gs.RawKernel(PRODUCT, "product")(grid, (16, 16), (left, right, out, rows, columns, inner))
    expected = gs.asnumpy(left).astype(float) @ gs.asnumpy(right)
    np.testing.assert_allclose(gs.asnumpy(out), expected, rtol=1e-5)


TOTALS = r"""
extern "C" __global__ void totals(const float* x, float* of_block, int n) {
    extern __shared__ float part[];
    const int here = threadIdx.x, i = here + blockDim.x * blockIdx.x;
    part[here] = i < n ? x[i] : 0.f;
    for (int width = blockDim.x / 2; width; width /= 2) {
        __syncthreads();
        if (here < width) part[here] += part[here + width];
    }
    if (!here) of_block[blockIdx.x] = part[0];
}
"""


@pytest.mark.parametrize("n", [1, 256, 100_001])
def test_totals_of_blocks_through_dynamic_shared_memory(n: int) -> None:
    block = 256
    x = gs.random.rand(n, dtype=gs.float32)
    of_block = gs.zeros(blocks_for(n, block), dtype=gs.float32)
    gs.RawKernel(TOTALS, "totals")((of_block.size,), (block,), (x, of_block, x.size), shared_mem=4 * block)
    np.testing.assert_allclose(float(gs.sum(of_block)), gs.asnumpy(x).sum(dtype=float), rtol=1e-5)


LENGTHS = r"""
template <class Real> __device__ Real length(Real a, Real b) { return sqrt(a * a + b * b); }

extern "C" __global__ void lengths(const float* a, const float* b, float* out, int n) {
    const int i = threadIdx.x + blockDim.x * blockIdx.x;
    if (i < n) out[i] = length(a[i], b[i]);
}
"""


@pytest.mark.parametrize("options", [(), ("--std=c++14",), ("-O3", "--std=c++17")])
def test_a_template_of_a_device_function_with_options(options: tuple[str, ...]) -> None:
    n = 1000
    a, b = gs.random.rand(n, dtype=gs.float32), gs.random.rand(n, dtype=gs.float32)
    out = gs.zeros(n, dtype=gs.float32)
    gs.RawKernel(LENGTHS, "lengths", options=options)((blocks_for(n, 128),), (128,), (a, b, out, n))
    np.testing.assert_allclose(gs.asnumpy(out), np.hypot(gs.asnumpy(a), gs.asnumpy(b)), rtol=1e-6)


COUNT = r"""
extern "C" __global__ void count(const int* values, int* counts, int n, int kinds) {
    const int i = threadIdx.x + blockDim.x * blockIdx.x;
    if (i < n) atomicAdd(counts + values[i] % kinds, 1);
}
"""


def test_counts_of_integers_ask_for_those_that_the_kernel_takes() -> None:
    """An array library's integers have 64 bits: read as pairs of `int`, the counts would be wrong."""
    n, kinds = 100_000, 50
    count = gs.RawKernel(COUNT, "count")
    counts = gs.zeros(kinds, dtype=gs.int32)
    grid = (blocks_for(n, 256),)
    values = gs.random.randint(0, kinds, size=n)
    with pytest.raises(
        TypeError, match=r"`count`: argument 0, parameter `values` \(`const int \*`\), got an int64"
    ):
        count(grid, (256,), (values, counts, values.size, kinds))
    assert not gs.asnumpy(counts).any()
    values = gs.random.randint(0, kinds, size=n, dtype=gs.int32)
    count(grid, (256,), (values, counts, values.size, kinds))
    np.testing.assert_array_equal(gs.asnumpy(counts), np.bincount(gs.asnumpy(values), minlength=kinds))


TURN = r"""
extern "C" __global__ void turn(const float* x, float* y, int width, int height) {
    __shared__ float square[32][32];
    int column = threadIdx.x + 32 * blockIdx.x, row = threadIdx.y + 32 * blockIdx.y;
    if (column < width && row < height) square[threadIdx.y][threadIdx.x] = x[width * row + column];
    __syncthreads();
    column = threadIdx.x + 32 * blockIdx.y;
    row = threadIdx.y + 32 * blockIdx.x;
    if (column < height && row < width) y[height * row + column] = square[threadIdx.x][threadIdx.y];
}
"""


@pytest.mark.parametrize("shape", [(32, 32), (70, 45), (1, 100)])
def test_a_transposition_through_squares_of_shared_memory(shape: tuple[int, int]) -> None:
    height, width = shape
    x = gs.random.rand(height, width, dtype=gs.float32)
    y = gs.zeros((width, height), dtype=gs.float32)
    gs.RawKernel(TURN, "turn")(
        (blocks_for(width, 32), blocks_for(height, 32)), (32, 32), (x, y, width, height)
    )
    np.testing.assert_array_equal(gs.asnumpy(y), gs.asnumpy(x).T)


ROOTS = r"""
extern "C" __global__ void roots(const float* x, float* y, int n) {
    const int i = threadIdx.x + blockDim.x * blockIdx.x;
    if (i >= n) return;
    const float number = x[i];
    if (!isnan(number) && !isinf(number)) {
        y[i] = sqrt(number);
        return;
    }
    printf("number %d is %f\n", i, number);
    y[i] = 0;
}
"""


def test_what_is_no_number_is_printed_and_replaced(capfd: pytest.CaptureFixture[str]) -> None:
    n = 500
    host = np.random.default_rng(1).random(n, np.float32)
    host[[3, 77, 499]] = np.nan, np.inf, -np.inf
    x, y = gs.asarray(host), gs.ones(n, dtype=gs.float32)
    assert gs.RawKernel(ROOTS, "roots")((blocks_for(n, 64),), (64,), (x, y, n)) is None
    gs.cuda.synchronize()
    expected = np.sqrt(np.where(np.isfinite(host), host, 0))
    np.testing.assert_allclose(gs.asnumpy(y), expected, rtol=1e-6)
    printed = sorted(line.removeprefix("number ") for line in capfd.readouterr().out.splitlines())
    assert printed == ["3 is nan", "499 is -inf", "77 is inf"]
