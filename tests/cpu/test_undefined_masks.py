"""What CUDA leaves undefined about masks, and kernels in use rely on."""

from __future__ import annotations

import numpy as np

import gridstride as gs


def test_a_mask_of_zero_stands_for_all_lanes():
    code = """extern "C" __global__ void k(float* out) {
        float v = threadIdx.x;
        for (unsigned step = 16; step; step /= 2) v += __shfl_down_sync(0, v, step);
        if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = v;
        if (__any_sync(0, threadIdx.x == 3)) out[2 + threadIdx.x / 32] = 1;
    }"""
    out = np.zeros(4, np.float32)
    gs.RawKernel(code, "k")((1,), (64,), (out,))
    assert out.tolist() == [496, 1520, 1, 0]
