"""Threads that meet at the same memory: who runs them is tried out, what they do stays the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import gridstride as gs
from gridstride.targets.cpu.contention import contending_kernels

TEXT = r"""
extern "C" __global__ void histogram(const int* values, unsigned* counts, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&counts[values[i]], 1u);
}
extern "C" __global__ void uneven(unsigned* sum, unsigned* done, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned own = 0;
    for (int k = 0; k < (i >> 6); ++k) own += k ^ i;
    atomicAdd(sum, own);
    atomicMax(&done[blockIdx.x], i);
}
"""


@pytest.fixture(params=[1, 2, 3, 7])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = gs.get_num_threads()
    gs.set_num_threads(request.param)
    yield request.param
    gs.set_num_threads(before)


@pytest.mark.parametrize("tier", ["flat", "fibers"])
@pytest.mark.parametrize("bins", [1, 200])
def test_nothing_is_counted_twice_or_not_at_all(threads: int, bins: int, tier: str) -> None:
    values = np.random.default_rng(threads).integers(0, bins, 1_000_003, np.int32)
    counts = np.zeros(bins, np.uint32)
    kernel = gs.RawKernel(TEXT, "histogram", tier=tier)
    for times in (1, 2):
        kernel((-(-values.size // 256),), (256,), (values, counts, values.size))
        assert np.array_equal(counts, times * np.bincount(values, minlength=bins))


def test_blocks_that_take_longer_and_longer_all_run(threads: int) -> None:
    n = 100_000
    total, done = np.zeros(1, np.uint32), np.zeros(-(-n // 64), np.uint32)
    gs.RawKernel(TEXT, "uneven")((done.size,), (64,), (total, done, n))
    i = np.arange(n, dtype=np.uint64)
    expected = sum(int(((k ^ i[i >> 6 > k]) & 0xFFFFFFFF).sum()) for k in range(n >> 6))
    assert total[0] == expected % 2**32
    assert np.array_equal(done, np.minimum(64 * np.arange(1, done.size + 1), n) - 1)


def test_which_kernels_may_contend() -> None:
    text = """
    __device__ void add(int* x) { atomicAdd(x, 1); }
    template <class T> __device__ void twice(T* x) { add(x); add(x); }
    namespace a { __global__ void direct(int* x) { atomicMax(x, 2); } }
    __global__ void calls(int* x) { twice<int>(x); }
    __global__ void plain(int* x) { *x = 1; }
    """
    kernels = ("a::direct", "calls", "plain")
    assert contending_kernels(text, kernels) == {"a::direct", "calls"}
    assert contending_kernels("#define ADD(x) atomicAdd(x, 1)\n" + text, kernels) == set(kernels)
    assert not contending_kernels(text.replace("atomic", ""), kernels)
