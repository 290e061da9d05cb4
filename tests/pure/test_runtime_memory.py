import ctypes
import gc
import sys

import numpy as np
import pytest
from fake_target import FakeTarget, make_default

from gridstride import arrays, cuda
from gridstride.targets import registry
from gridstride.targets.base import CopyDirection

pytestmark = pytest.mark.usefixtures("each_way")


@pytest.fixture
def fake(monkeypatch):
    target = FakeTarget()
    make_default(monkeypatch, target)
    return target


@pytest.fixture
def pointer(fake):
    made = cuda.alloc(16)
    made.copy_from_host(np.arange(16, dtype=np.uint8))
    fake.calls.clear()
    return made


def content(pointer):
    return list(np.asarray(pointer))


def test_memory_is_given_back_with_its_last_pointer(fake):
    pointer = cuda.MemoryPointer(cuda.Memory(1024), 0)
    assert (pointer.size, pointer.mem.size, len(fake.memory)) == (1024, 1024, 1)
    shown = np.asarray(pointer + 8)
    del pointer
    gc.collect()
    assert len(fake.memory) == 1
    del shown
    gc.collect()
    assert not fake.memory


def test_memory_lies_on_the_device_that_was_current(fake):
    with cuda.Device(1):
        pointer = cuda.alloc(8)
    assert (pointer.device, pointer.device_id) == (cuda.Device(1), 1)
    pointer.memset(0)
    assert fake.made("fill") == [("fill", 8, None, 1)]
    assert fake.current_device() == 0


def test_no_bytes_are_memory_too(fake):
    pointer = cuda.alloc(0)
    pointer.memset(0)
    pointer.copy_from_host(b"")
    assert (pointer.size, fake.made("free")) == (0, [])
    with pytest.raises(ValueError, match="negative"):
        cuda.alloc(-1)


def test_a_pointer_is_made_from_memory_or_a_pointer(pointer):
    for same in (
        cuda.MemoryPointer(pointer, 4, 8),
        cuda.MemoryPointer(pointer.mem, 4, 8),
        pointer + 4,
        4 + pointer,
    ):
        assert same.ptr == int(same) == pointer.ptr + 4
        assert same.mem is pointer.mem
    assert (pointer + 4).size == 12
    assert ((pointer + 12) - 2).size == 6
    assert cuda.MemoryPointer(cuda.MemoryPointer(pointer, 4, 8), 2).size == 6


@pytest.mark.parametrize(("offset", "size"), [(0, 17), (8, 9), (17, None), (-1, 4), (0, -1)])
def test_a_pointer_stays_inside(pointer, offset, size):
    with pytest.raises(ValueError, match=r"outside memory of 16 bytes|negative"):
        cuda.MemoryPointer(pointer, offset, size)


def test_moving_outside_is_refused(pointer):
    with pytest.raises(ValueError, match="outside"):
        pointer + 17
    with pytest.raises(ValueError, match="outside"):
        pointer - 1


def test_a_class_of_memory_of_ones_own(fake):
    class OfArray(cuda.BaseMemory):
        def __init__(self, array):
            super().__init__(array.nbytes)
            self.array, self.ptr = array, array.ctypes.data

    pointer = cuda.MemoryPointer(OfArray(np.arange(4, dtype=np.uint8)), 0)
    assert (content(pointer), pointer.device_id) == ([0, 1, 2, 3], 0)
    with cuda.using_allocator(lambda size: OfArray(np.zeros(size, np.uint8))):
        assert content(cuda.alloc(2)) == [0, 0]


def test_memory_of_others(fake):
    x = np.arange(4, dtype=np.uint8)
    memory = cuda.UnownedMemory(x.ctypes.data, 4, x)
    assert content(cuda.MemoryPointer(memory, 1)) == [1, 2, 3]
    del memory
    gc.collect()
    assert not fake.made("free")


def test_a_pointer_is_an_array_of_bytes(pointer):
    x = np.asarray(pointer)
    x[0] = 99
    assert content(pointer)[:2] == [99, 1]
    seen = arrays.view(pointer + 4)
    assert seen.owner.mem is pointer.mem
    assert seen[1:9] == (pointer.ptr + 4, np.uint8, (12,), None, arrays.HOST, 0, False, "memory")
    assert not hasattr(pointer, "__cuda_array_interface__")


def test_memory_of_a_gpu_is_shown_by_its_own_protocol(fake):
    fake.array_protocol, fake.memory_device_type = "__cuda_array_interface__", 2
    pointer = cuda.alloc(8)
    assert pointer.__cuda_array_interface__["data"] == (pointer.ptr, False)
    assert not hasattr(pointer, "__array_interface__")
    assert arrays.view(pointer).device_type == arrays.CUDA


def test_copies_from_and_to_the_host(fake, pointer):
    out = np.zeros(4, np.uint32)
    pointer.copy_to_host(out)
    assert out.tobytes() == bytes(range(16))
    pointer.copy_from_host(out[::-1].copy(), 8)
    assert content(pointer) == [12, 13, 14, 15, 8, 9, 10, 11, *range(8, 16)]
    (pointer + 2).copy_from_host(b"\xff\xfe")
    assert content(pointer)[:5] == [12, 13, 255, 254, 8]
    storage = bytearray(3)
    pointer.copy_to_host(storage)
    assert storage == bytes([12, 13, 255])
    assert [call[1:] for call in fake.made("copy")] == [
        (CopyDirection.DEVICE_TO_HOST, 16, None, 0),
        (CopyDirection.HOST_TO_DEVICE, 8, None, 0),
        (CopyDirection.HOST_TO_DEVICE, 2, None, 0),
        (CopyDirection.DEVICE_TO_HOST, 3, None, 0),
    ]


def test_copies_behind_a_bare_address(pointer):
    out = np.zeros(16, np.uint8)
    pointer.copy_to_host(ctypes.c_void_p(out.ctypes.data))
    assert list(out) == list(range(16))
    pointer.copy_from_host(ctypes.c_void_p(out[8:].ctypes.data), 4)
    assert content(pointer)[:5] == [8, 9, 10, 11, 4]


def test_copies_between_pieces_of_memory(fake, pointer):
    other = cuda.alloc(8)
    other.copy_from_device(pointer + 4, 8)
    assert content(other) == list(range(4, 12))
    other.copy_from_device(np.full(2, 7, np.uint16))  # an array on the target
    assert content(other)[:5] == [7, 0, 7, 0, 8]
    cuda.MemoryPointer(other, 0).copy_from_device(pointer.mem, 2)
    assert content(other)[:3] == [0, 1, 7]
    assert {call[1] for call in fake.made("copy")} == {CopyDirection.DEVICE_TO_DEVICE}


def test_memset(pointer):
    (pointer + 2).memset(255, 3)
    assert content(pointer)[:6] == [0, 1, 255, 255, 255, 5]
    for wrong in (-1, 256):
        with pytest.raises(ValueError, match="0 to 255"):
            pointer.memset(wrong)
    with pytest.raises(ValueError, match="17 bytes asked for"):
        pointer.memset(0, 17)


def test_asynchronous_forms_go_to_a_stream(fake, pointer):
    other, host, stream = cuda.alloc(16), np.zeros(16, np.uint8), cuda.Stream()
    calls = [
        lambda **where: pointer.copy_from_host_async(host, 16, **where),
        lambda **where: pointer.copy_to_host_async(host, 16, **where),
        lambda **where: pointer.copy_from_device_async(other, 16, **where),
        lambda **where: pointer.memset_async(1, 16, **where),
    ]
    for call in calls:
        call()
        call(stream=stream)
        with stream:
            call()
        call(stream=5)
    streams = [call[-2] for call in fake.calls if call[0] in ("copy", "fill")]
    assert streams == [0, stream.ptr, stream.ptr, 5] * 4
    for call in calls:
        with pytest.raises(TypeError, match="belongs to target"):
            call(stream=cuda.Stream(target=FakeTarget()))


@pytest.mark.parametrize("size", [17, None])
def test_too_many_bytes_are_refused_by_number(pointer, size):
    big, small = np.zeros(17, np.uint8), np.zeros(3, np.uint8)
    for copy in (pointer.copy_from_host, pointer.copy_to_host, pointer.copy_from_device):
        with pytest.raises(ValueError, match="17 bytes asked for, and the pointer has 16"):
            copy(big, size)
        with pytest.raises(ValueError, match="4 bytes asked for, and the other side has 3"):
            copy(small, 4)
        with pytest.raises(ValueError, match="negative"):
            copy(small, -4)
    assert content(pointer) == list(range(16))


def test_what_cannot_be_copied_is_refused(pointer):
    read_only = np.zeros(4, np.uint8)
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        pointer.copy_to_host(read_only)
    with pytest.raises(ValueError, match="read-only"):
        pointer.copy_to_host(b"abcd")
    with pytest.raises(ValueError, match="C-contiguous"):
        pointer.copy_from_host(np.zeros((4, 4), np.uint8)[:, ::2])
    with pytest.raises(TypeError, match="c_void_p, got int"):
        pointer.copy_from_host(4096, 4)
    with pytest.raises(TypeError, match="belongs to target"):
        pointer.copy_from_device(cuda.MemoryPointer(cuda.Memory(4, target=FakeTarget()), 0))


def test_memory_on_a_gpu_is_no_host_memory(fake):
    fake.device_types, fake.memory_device_type = frozenset({2}), 2
    fake.array_protocol = "__cuda_array_interface__"
    pointer = cuda.alloc(8)
    with pytest.raises(TypeError, match="host memory is needed"):
        pointer.copy_from_host(cuda.alloc(8))
    with pytest.raises(TypeError, match="no memory of target"):
        pointer.copy_from_device(np.zeros(8, np.uint8))


@pytest.mark.parametrize("name", ["cpu", "null"])
def test_memory_of_other_processes_is_refused(name):
    target = registry.get(name)
    with pytest.raises(NotImplementedError, match=r"between processes|processes could share"):
        cuda.Memory(8, target=target).ipc_handle  # noqa: B018
    with pytest.raises(NotImplementedError, match=r"between processes|processes could share"):
        cuda.InterprocessMemory(bytes(64), 8, target=target)


def test_memory_that_was_given_back_is_neither_read_nor_written(fake):
    pool, other, host = cuda.MemoryPool(), cuda.alloc(16), np.zeros(16, np.uint8)
    pointer = pool.malloc(16)
    pool.free(pointer)
    for use in (
        lambda: pointer.memset(1),
        lambda: pointer.memset_async(1),
        lambda: pointer.copy_from_host(host),
        lambda: pointer.copy_to_host(host),
        lambda: pointer.copy_from_device(other),
        lambda: other.copy_from_device(pointer),
        lambda: other.copy_from_device(pointer.mem, 16),
        lambda: other.copy_from_device_async(pointer),
    ):
        with pytest.raises(ValueError, match="were given back to their pool by `free`"):
            use()


def test_a_class_of_memory_that_fails_to_begin_ends_quietly(fake, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.append(args.exc_value))

    def fail(self):
        raise KeyError("no")

    for base in (
        cuda.Memory,
        cuda.ManagedMemory,
        cuda.MemoryAsync,
        cuda.PinnedMemory,
        cuda.Stream,
        cuda.Event,
    ):
        with pytest.raises(KeyError):
            type("Mine", (base,), {"__init__": fail})()
        gc.collect()
    assert not told
