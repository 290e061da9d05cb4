"""Memory in deferred mode, where work runs as late as it may."""

import gc

import numpy as np
import pytest
from native_support import follows_numpy

import gridstride as gs
from gridstride import cuda


@pytest.fixture(autouse=True)
def _deferred(monkeypatch):
    monkeypatch.setenv("GRIDSTRIDE_TARGET", "cpu")
    with cuda.asynchronous_cpu(seed=3):
        yield


def test_a_copy_to_pinned_memory_is_done_when_its_stream_is():
    """P54: the buffer that was given is filled, after the call has returned."""
    stream = cuda.Stream(non_blocking=True)
    device, pinned = cuda.alloc(16), cuda.alloc_pinned_memory(16)
    out = np.asarray(pinned)
    out[:] = 0
    device.memset_async(7, stream=stream)
    device.copy_to_host_async(pinned, stream=stream)
    assert not out.any()
    stream.synchronize()
    assert (out == 7).all()


def test_memory_waits_for_work_in_streams():
    """P52: what is dropped with work left is not handed out before."""
    pool = cuda.MemoryPool()
    reader = cuda.Stream(non_blocking=True)
    pointer, seen = pool.malloc(16), np.zeros(16, np.uint8)
    pointer.memset(5)
    pointer.copy_to_host_async(seen, stream=reader)
    address = pointer.ptr
    del pointer
    gc.collect()
    other = pool.malloc(16)
    other.memset(0)
    assert other.ptr != address
    reader.synchronize()
    assert (seen == 5).all()


def test_asynchronous_memory_goes_back_behind_its_work():
    stream, seen = cuda.Stream(non_blocking=True), np.zeros(16, np.uint8)
    pool = cuda.MemoryAsyncPool()
    with stream:
        pointer = pool.malloc(16)
        pointer.memset_async(9)
        pointer.copy_to_host_async(seen)
        del pointer
    gc.collect()
    assert pool.used_bytes() == 16
    stream.synchronize()  # runs the copy, which lets go of the memory
    stream.synchronize()  # runs its return
    assert pool.used_bytes() == 0
    assert (seen == 9).all()


@follows_numpy
def test_arrays_of_a_pool():
    pool = cuda.MemoryPool()
    add = gs.RawKernel('extern "C" __global__ void add(int* x) { x[threadIdx.x] += 1; }', "add")
    with cuda.using_allocator(pool.malloc):
        x = np.zeros(32, np.int32)
    add((1,), (32,), (x,), stream=cuda.Stream(non_blocking=True))
    del x
    gc.collect()
    assert pool.used_bytes() == 512
    cuda.synchronize()
    assert pool.used_bytes() == 0
