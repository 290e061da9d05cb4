"""Pinned memory, its pool, and arrays over it."""

import gc
import subprocess
import sys

import fake_cupy
import numpy as np
import pytest
from fake_target import FakeTarget, make_default
from native_support import shows_buffers

import gridstride as gs
from gridstride import arrays, cuda
from gridstride._native import stand_in
from gridstride._runtime import pinned as pinned_room


@pytest.fixture
def fake(monkeypatch):
    target = FakeTarget()
    make_default(monkeypatch, target)
    monkeypatch.setattr(pinned_room, "_chosen", [])
    return target


@shows_buffers
def test_a_pointer_is_a_writable_buffer(fake):
    pointer = cuda.alloc_pinned_memory(16)
    x = np.frombuffer(pointer, np.float32, 4)
    x[:] = [1, 2, 3, 4]
    assert pointer.ptr == int(pointer) == x.ctypes.data
    assert (np.frombuffer(pointer + 8, np.float32) == [3, 4]).all()
    assert (np.asarray(pointer).view(np.float32) == x).all()
    assert memoryview(pointer).nbytes == pointer.size == 16
    address = pointer.ptr
    del pointer
    gc.collect()
    assert gs.get_default_pinned_memory_pool().malloc(16).ptr != address  # as x still lives
    del x
    gc.collect()
    assert gs.get_default_pinned_memory_pool().malloc(16).ptr == address


@pytest.mark.parametrize(("offset", "size"), [(0, 17), (17, None), (-1, 2), (8, 9), (0, -1)])
def test_a_pointer_stays_inside(fake, offset, size):
    with pytest.raises(ValueError, match=r"outside memory of 16 bytes|negative"):
        cuda.PinnedMemoryPointer(cuda.PinnedMemory(16), offset, size)


def test_what_is_no_pinned_memory(fake):
    with pytest.raises(TypeError, match="mem must be pinned memory, got int"):
        cuda.PinnedMemoryPointer(5, 0)
    with pytest.raises(ValueError, match="offset 17 is outside memory of 16 bytes"):
        cuda.alloc_pinned_memory(16) + 17
    with pytest.raises(TypeError):
        cuda.alloc_pinned_memory(16) + "1"


def test_copies_to_and_from_pinned_memory(fake):
    device, pinned = cuda.alloc(16), cuda.alloc_pinned_memory(16)
    np.asarray(pinned)[:] = np.arange(16)
    device.copy_from_host_async(pinned)
    device.copy_from_host(b"\xff", 1)
    device.copy_to_host(pinned)
    assert list(np.asarray(pinned)) == [255, *range(1, 16)]
    cuda.MemoryPointer(pinned, 0, 16).copy_from_device(device + 8, 8)
    assert list(np.asarray(pinned))[:8] == list(range(8, 16))


@pytest.mark.parametrize("backend", ["numpy", "cupy"])
@pytest.mark.parametrize("is_gpu", [False, True])
def test_arrays_over_pinned_memory(fake, monkeypatch, backend, is_gpu):
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.make_module())
    if is_gpu:
        fake.device_types, fake.memory_device_type = frozenset({2}), 2
        fake.array_protocol = "__cuda_array_interface__"
    pinned = cuda.PinnedMemoryPointer(cuda.PinnedMemory(8000), 0, 8000, None)
    with gs.use_backend(backend):
        x = gs.ndarray((1000,), dtype=np.float64, memptr=cuda.MemoryPointer(pinned, 0, 8000))
        on_host = gs.ndarray((10, 100), dtype=np.float64, memptr=pinned)
    seen = arrays.view(x)
    assert (seen.address, seen.shape, seen.dtype) == (pinned.ptr, (1000,), np.float64)
    assert seen.library == ("cupy" if is_gpu and backend == "cupy" else "numpy")
    assert isinstance(on_host, np.ndarray)
    on_host[:] = 5
    address = pinned.ptr
    del pinned, on_host, seen
    gc.collect()
    assert address in fake.memory
    del x
    gc.collect()
    assert address not in fake.memory


def test_managed_memory_is_seen_by_the_host(fake):
    fake.device_types, fake.memory_device_type = frozenset({2}), 2
    fake.array_protocol = "__cuda_array_interface__"
    managed = cuda.malloc_managed(8)
    np.asarray(managed)[:] = 3
    assert bytes(np.asarray(managed)) == b"\3" * 8
    assert not hasattr(cuda.MemoryPointer(cuda.Memory(8), 0), "__array_interface__")


def test_the_pool_locks_pages_once(fake):
    pool = cuda.PinnedMemoryPool()
    first, second = pool.malloc(1000), pool.malloc(600)
    addresses = {first.ptr, second.ptr}
    del first
    pool.free(second)
    assert pool.n_free_blocks() == 2
    with pytest.raises(ValueError, match="before"):
        pool.free(second)
    with pytest.raises(ValueError, match="not come from this pool"):
        pool.free(cuda.alloc_pinned_memory(8))
    again = [pool.malloc(900), pool.malloc(900)]
    assert {pointer.ptr for pointer in again} == addresses
    again.clear()
    pool.free_all_blocks()
    assert pool.n_free_blocks() == 0
    assert not addresses & fake.memory.keys()


def test_the_allocator_can_be_chosen(fake):
    pool = cuda.PinnedMemoryPool()
    cuda.set_pinned_memory_allocator(pool.malloc)
    pointer = cuda.alloc_pinned_memory(8)
    assert pointer.mem.pool is pool._pool
    cuda.set_pinned_memory_allocator()
    assert type(cuda.alloc_pinned_memory(8).mem) is cuda.PinnedMemory
    with pytest.raises(TypeError, match="function of a size"):
        cuda.set_pinned_memory_allocator(5)
    own = cuda.PinnedMemoryPool(lambda size: cuda.PinnedMemoryPointer(cuda.PinnedMemory(2 * size), 0))
    assert own.malloc(8).size == 8
    with pytest.raises(TypeError, match=r"gs.cuda.PinnedMemoryPool"):
        cuda.PinnedMemoryPool.free_all_blocks()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python classes are buffers from 3.12 on")
def test_buffers_without_the_extension():
    x = np.arange(4, dtype=np.uint8)
    buffer = stand_in.Buffer()
    buffer._show(x.ctypes.data, 4)
    assert bytes(memoryview(buffer)) == x.tobytes()


def test_pinned_memory_without_the_extension():
    program = """
import sys
sys.modules["gridstride._native._launcher"] = None
import numpy as np
from gridstride import cuda
pointer = cuda.alloc_pinned_memory(16)
np.asarray(pointer)[:] = 7
device = cuda.alloc(16)
device.copy_from_host(pointer)
assert bytes(np.asarray(device)) == bytes([7]) * 16
"""
    environment = {"GRIDSTRIDE_TARGET": "cpu", "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-W", "error", "-c", program], env=environment, check=True)
