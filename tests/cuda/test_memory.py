"""Managed, pinned and asynchronous memory and pools, over the recording stub of the driver."""

import gc

import pytest
from fake_target import make_default

from gridstride._runtime.async_pool import MemoryAsyncPool
from gridstride._runtime.device import Device
from gridstride._runtime.graph import Graph
from gridstride._runtime.memory import ManagedMemory, MemoryAsync
from gridstride._runtime.pinned import PinnedMemory
from gridstride._runtime.pool import MemoryPool
from gridstride._runtime.stream import Stream
from gridstride.errors import CUDAError, OutOfMemoryError

ATTACH_GLOBAL = 1
PORTABLE_AND_MAPPED = 3
OUT_OF_MEMORY = 2
RELEASE_THRESHOLD, KEEP_ALL = 4, 2**64 - 1


def test_managed_memory(cuda, stub):
    memory = ManagedMemory(100, target=cuda)
    (call,) = stub.calls("cuMemAllocManaged")
    assert (call["size"], call["flags"]) == (100, ATTACH_GLOBAL)
    address = memory.ptr
    del memory
    assert stub.calls("cuMemFree_v2")[0]["address"] == address


def test_pinned_memory(cuda, stub):
    memory = PinnedMemory(100, target=cuda)
    (call,) = stub.calls("cuMemHostAlloc")
    assert (call["size"], call["flags"]) == (100, PORTABLE_AND_MAPPED)
    address = memory.ptr
    del memory
    assert stub.calls("cuMemFreeHost")[0]["address"] == address


def test_no_bytes_need_no_driver(cuda, stub):
    for memory in (ManagedMemory, PinnedMemory, MemoryAsync):
        assert memory(0, target=cuda).ptr == 0
    assert not stub.calls("cuMemAllocManaged", "cuMemHostAlloc", "cuMemAllocFromPoolAsync")
    cuda.free_pinned(0)
    assert not stub.calls("cuMemFreeHost")


def test_asynchronous_memory_comes_and_goes_in_its_stream(cuda, stub):
    gc.collect()
    stub.clear()
    elsewhere = cuda.pool_bytes(0, 0)  # what other tests left there
    with Device(1, target=cuda):
        stream = Stream(target=cuda)
        memory = MemoryAsync(100, stream, target=cuda)
    (call,) = stub.calls("cuMemAllocFromPoolAsync")
    assert (call["size"], call["stream"], call["device"]) == (100, stream.ptr, 1)
    assert cuda.pool_bytes(0, 1) == (100, 100)
    assert cuda.pool_bytes(0, 0) == elsewhere
    address = memory.ptr
    del memory
    (call,) = stub.calls("cuMemFreeAsync")
    assert (call["address"], call["stream"], call["device"]) == (address, stream.ptr, 1)
    assert cuda.pool_bytes(0, 1) == (0, 100)
    cuda.trim_pool(0, 1, 0)
    assert cuda.pool_bytes(0, 1) == (0, 0)


def test_an_asynchronous_pool(cuda, stub):
    pool = MemoryAsyncPool(target=cuda)
    pointer = pool.malloc(1000)
    (made,) = stub.calls("cuMemPoolCreate")
    assert (made["type"], made["location"]) == (1, [1, 0])
    (kept,) = stub.calls("cuMemPoolSetAttribute")
    assert (kept["attribute"], kept["value"]) == (RELEASE_THRESHOLD, KEEP_ALL)
    assert (pool.used_bytes(), pool.total_bytes()) == (1000, 1000)
    del pointer
    assert (pool.used_bytes(), pool.free_bytes()) == (0, 1000)
    pool.free_all_blocks()
    assert pool.total_bytes() == 0
    (allocated,) = stub.calls("cuMemAllocFromPoolAsync")
    del pool
    gc.collect()
    assert allocated["pool"] in {call["pool"] for call in stub.calls("cuMemPoolDestroy")}


def test_an_asynchronous_pool_tries_again_when_the_device_is_full(cuda, stub):
    pool = MemoryAsyncPool(target=cuda)
    stub.fail("cuMemAllocFromPoolAsync", OUT_OF_MEMORY)
    assert pool.malloc(8).size == 8
    assert stub.calls("cuMemPoolTrimTo")[0]["keep"] == 0
    stub.fail("cuMemAllocFromPoolAsync", 46)
    with pytest.raises(CUDAError) as caught:
        pool.malloc(8)
    assert caught.value.code == 46


def test_a_pool_takes_device_memory_once(cuda, stub):
    pool = MemoryPool(target=cuda)
    for _ in range(3):
        pool.malloc(1000)
    assert [call["size"] for call in stub.calls("cuMemAlloc_v2")] == [1024]
    stub.fail("cuMemAlloc_v2", OUT_OF_MEMORY)
    assert pool.malloc(5000).mem.size == 5120  # after what was cached went back
    assert len(stub.calls("cuMemFree_v2")) == 1


def test_a_full_device_is_an_error_with_the_numbers(cuda, stub, monkeypatch):
    pool = MemoryPool(target=cuda)
    kept = pool.malloc(512)

    def fail(size, device):
        raise CUDAError("CUDA_ERROR_OUT_OF_MEMORY", code=OUT_OF_MEMORY)

    monkeypatch.setattr(cuda, "allocate", fail)
    with pytest.raises(
        OutOfMemoryError, match=r"512 bytes in use .* 536870912 of 1073741824 bytes free"
    ) as caught:
        pool.malloc(1 << 30)
    assert (caught.value.size, caught.value.used) == (1 << 30, 512)
    del kept


def test_pools_keep_the_memory_of_streams_apart(cuda):
    pool = MemoryPool(target=cuda)
    first, second = Stream(target=cuda), Stream(target=cuda)
    with first:
        address = pool.malloc(512).ptr
    with second:
        assert pool.malloc(512).ptr != address
    with first:
        assert pool.malloc(512).ptr == address


def test_memory_that_another_stream_uses_is_not_handed_out_before(cuda, monkeypatch):
    """P52."""
    pool = MemoryPool(target=cuda)
    first, second = Stream(target=cuda), Stream(target=cuda)
    with first:
        pointer = pool.malloc(512)
    pointer.memset_async(1, stream=second)
    address = pointer.ptr
    monkeypatch.setattr(cuda, "event_done", lambda event: False)
    del pointer
    with first:
        assert pool.malloc(512).ptr != address
    monkeypatch.undo()
    assert pool.used_bytes() == 0
    with first:
        held = [pool.malloc(512), pool.malloc(512)]
    assert address in {each.ptr for each in held}


def test_a_graph_owns_what_is_allocated_in_its_capture(cuda, stub, monkeypatch):
    from gridstride.cuda import alloc

    make_default(monkeypatch, cuda)
    with Stream(target=cuda), Graph(target=cuda) as graph:
        address = alloc(512).ptr
        assert stub.calls("cuThreadExchangeStreamCaptureMode")
    assert address not in {call["address"] for call in stub.calls("cuMemFree_v2")}
    del graph
    gc.collect()
    assert address in {call["address"] for call in stub.calls("cuMemFree_v2")}
