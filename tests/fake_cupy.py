"""A module with as much of CuPy's interface as the adapter uses, over host memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np


class Memory:
    __slots__ = ("device_id", "owner", "ptr", "size")  # CuPy's memory cannot be referred to weakly

    def __init__(self, ptr: int, size: int, owner: object, device_id: int) -> None:
        self.ptr, self.size, self.owner, self.device_id = ptr, size, owner, device_id


class Pointer:
    __slots__ = ("device_id", "mem", "ptr")

    def __init__(self, mem: Memory, offset: int) -> None:
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, mem.device_id


class Array:
    """Stands for ``cupy.ndarray``: attributes of a NumPy array, memory said to be on a device."""

    base: Array | None = None

    def __init__(
        self,
        shape: Any,
        dtype: Any = float,
        memptr: Pointer | None = None,
        strides: Any = None,
        order: str = "C",
    ) -> None:
        self._host = np.zeros(shape, dtype, order)  # type: ignore[call-overload]
        self.shape, self.dtype, self.size = self._host.shape, self._host.dtype, self._host.size
        self.strides = strides or self._host.strides
        self.flags = SimpleNamespace(c_contiguous=strides is None and self._host.flags.c_contiguous)
        self._c_contiguous = self.flags.c_contiguous
        owned = Memory(self._host.ctypes.data, self._host.nbytes, self._host, current_device())
        self.data = memptr or Pointer(owned, 0)


Array.__name__, Array.__module__ = "ndarray", "cupy"


class State:
    """What is current: CuPy keeps a device for the thread and a stream for each device."""

    device = 0
    streams: dict[int, Stream]
    blocks: dict[int, list[Stream]]
    devices_of_blocks: list[int]
    allocated_on: list[tuple[int, int]]
    hooks: list[Any]
    allocators: list[Any]


class Device:
    def __init__(self, device: int) -> None:
        self.id = device

    def __enter__(self) -> Device:
        self._previous, State.device = State.device, self.id
        return self

    def __exit__(self, *_: object) -> None:
        State.device = self._previous


class Stream:
    def __init__(self, ptr: int, device_id: int = -1) -> None:
        self.ptr, self.device_id = ptr, device_id

    def use(self) -> Stream:
        assert State.device == self.device_id or self.device_id < 0
        State.streams[State.device] = self
        return self

    def __enter__(self) -> Stream:
        self.use()
        State.blocks.setdefault(State.device, []).append(self)
        State.devices_of_blocks.append(State.device)
        return self

    def __exit__(self, *_: object) -> None:
        """Go back to the stream of the block around this one, whatever was used in between."""
        device = State.devices_of_blocks.pop()
        blocks = State.blocks[device]
        blocks.pop()
        State.streams[device] = blocks[-1] if blocks else Stream(0, device)


Stream.__module__ = "cupy.cuda.stream"


def current_device() -> int:
    return State.device


def get_current_stream(device_id: int = -1) -> Stream:
    device = State.device if device_id < 0 else device_id
    return State.streams.get(device, Stream(0, device))


class MemoryHook:
    """CuPy calls the hooks that are entered by keyword."""

    def __enter__(self) -> MemoryHook:
        State.hooks.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        State.hooks.remove(self)


class PooledMemory:
    __slots__ = ("_host", "device_id", "ptr", "size")

    def __init__(self, size: int) -> None:
        self.size, self.device_id = -(-size // 512) * 512, current_device()
        self._host = np.empty(self.size, np.uint8)
        self.ptr = self._host.ctypes.data

    def __del__(self) -> None:
        tell("free", mem_size=self.size, mem_ptr=self.ptr, pmem_id=id(self), device_id=self.device_id)


class MemoryPool:
    released = 0

    def malloc(self, size: int) -> Pointer:
        memory: Any = PooledMemory(size)
        known = {"device_id": memory.device_id, "mem_size": memory.size}
        tell("malloc", size=size, mem_ptr=memory.ptr, pmem_id=id(memory), **known)
        return Pointer(memory, 0)

    def free_all_blocks(self) -> None:
        self.released += 1

    def used_bytes(self) -> int:
        return 4242


class PinnedMemoryPool(MemoryPool):
    pass


def tell(event: str, **keywords: int) -> None:
    for hook in State.hooks:
        for when in ("preprocess", "postprocess"):
            getattr(hook, f"{event}_{when}")(**keywords)


@contextmanager
def using_allocator(allocator: Any = None) -> Iterator[None]:
    State.allocators.append(allocator)
    try:
        yield
    finally:
        State.allocators.pop()


def set_allocator(allocator: Any = None) -> None:
    State.allocators[0] = allocator


def empty(shape: Any, dtype: Any) -> Array:
    State.allocated_on.append((State.device, get_current_stream().ptr))
    return Array(shape, dtype)


def alloc(size: int) -> Pointer:
    State.allocated_on.append((State.device, get_current_stream().ptr))
    host = np.zeros(size, np.uint8)
    return Pointer(Memory(host.ctypes.data, size, host, current_device()), 0)


def make_module(available: bool = True) -> ModuleType:
    """Return a fresh module ``cupy``; put it into ``sys.modules`` with a monkeypatch."""
    State.device, State.streams, State.allocated_on = 0, {}, []
    State.blocks, State.devices_of_blocks = {}, []
    State.hooks, State.allocators = [], ["CuPy's own"]
    pool, pinned_pool = MemoryPool(), PinnedMemoryPool()
    module = ModuleType("cupy")
    module.ndarray = Array  # type: ignore[attr-defined]
    module.empty = empty  # type: ignore[attr-defined]
    module.is_available = lambda: available  # type: ignore[attr-defined]
    module.asnumpy = lambda a, *rest, **more: a._host.copy()  # type: ignore[attr-defined]
    module.get_default_memory_pool = lambda: pool  # type: ignore[attr-defined]
    module.get_default_pinned_memory_pool = lambda: pinned_pool  # type: ignore[attr-defined]
    module.cuda = SimpleNamespace(  # type: ignore[attr-defined]
        Device=Device,
        Stream=Stream,
        ExternalStream=Stream,
        get_current_stream=get_current_stream,
        UnownedMemory=Memory,
        MemoryPointer=Pointer,
        MemoryHook=MemoryHook,
        alloc=alloc,
        using_allocator=using_allocator,
        set_allocator=set_allocator,
        runtime=SimpleNamespace(getDevice=current_device),
        device=SimpleNamespace(get_cublas_handle=lambda: 77),
    )
    return module
