"""Barriers that not all threads reach end the launch with an error; on a GPU they may hang."""

from __future__ import annotations

import numpy as np
import pytest

import gridstride as gs


def test_p98_a_barrier_in_a_loop_of_unequal_trip_counts():
    code = """extern "C" __global__ void rows(int* out, int n) {
        for (int i = threadIdx.x; i < n; i += blockDim.x) {
            out[i] = i;
            __syncthreads();
        }
        __syncwarp();
    }"""
    out = np.zeros(256, np.int32)
    with pytest.raises(gs.LaunchError, match="no thread of block") as caught:
        gs.RawKernel(code, "rows")((1,), (64,), (out, np.int32(65)))
    message = str(caught.value)
    assert "`rows`" in message
    assert "waiting at __syncthreads, rows.cu:4: (0, 0, 0)" in message
    assert (
        "31 threads waiting in __syncwarp with mask 0xffffffff, rows.cu:6: (1, 0, 0) to (31, 0, 0)" in message
    )
    gs.RawKernel(code, "rows")((1,), (64,), (out, np.int32(64)))
    np.testing.assert_array_equal(out[:64], np.arange(64))


def test_p98_a_barrier_for_the_first_warp_alone():
    code = """extern "C" __global__ void some(int* out) {
        if (threadIdx.x < 32) {
            __syncthreads();
            out[threadIdx.x] = 1;
        }
        else __syncwarp(0xffffffffu);
        while (threadIdx.x >= 32 && __shfl_sync(1u << 1, 1, 1)) {}
    }"""
    with pytest.raises(gs.LaunchError, match="some"):
        gs.RawKernel(code, "some")((1,), (64,), (np.zeros(64, np.int32),))
    code = """extern "C" __global__ void some(int* out) {
        if (threadIdx.x < 32) {
            __syncthreads();
        } else {
            __syncthreads_count(1);
        }
        out[threadIdx.x] = 1;
    }"""
    out = np.zeros(64, np.int32)
    gs.RawKernel(code, "some")((1,), (64,), (out,))  # both are barriers of the whole block, as on a GPU
    assert out.all()
