"""Memory of a target: pieces that are given back with their objects."""

from __future__ import annotations

import sys
from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from gridstride import _native
from gridstride._runtime import capture
from gridstride._runtime.current import on_device
from gridstride._runtime.device import Device
from gridstride._runtime.stream import get_current_stream, stream_handle
from gridstride.targets import registry
from gridstride.targets.base import Target

_BYTE: np.dtype[Any] = np.dtype(np.uint8)
_HOST_PROTOCOL = "__array_interface__"


class BaseMemory(_native.MemoryRecord):
    """Say where a piece of memory is; the base of all classes of memory.

    Parameters
    ----------
    size : int
        Bytes.
    ptr : int
        Address of the first byte; a class of your own may set it later.
    device_id : int, optional
        The current device by default.
    target : Target, optional
        The default target unless given.

    Attributes
    ----------
    ptr, size, device_id : int
    target : Target
    """

    __slots__ = ("__weakref__",)

    #: Whether the host reads and writes it at the same address.
    is_on_host = False

    ptr: int
    size: int
    device_id: int
    target: Target

    def __init__(self, size: int, ptr: int = 0, device_id: int = -1, *, target: Target | None = None) -> None:
        target = registry.default() if target is None else target
        self.size = checked_size(size)
        self.ptr = ptr
        self.device_id = target.current_device() if device_id < 0 else device_id
        self.target = target

    def __int__(self) -> int:
        return self.ptr

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.size} bytes at {self.ptr:#x} on {self.device!r}>"

    @property
    def device(self) -> Device:
        """The device it lies on."""
        return Device(self.device_id, target=self.target)

    @property
    def was_given_back(self) -> bool:
        """Whether its pool has it again, so that others may get it."""
        return False


def require_held(memory: BaseMemory) -> None:
    """Raise ValueError where memory was given back to its pool."""
    if memory.was_given_back:
        raise ValueError(
            f"the {memory.size} bytes at {memory.ptr:#x} were given back to their pool by `free`: "
            "allocate other memory, or call `free` later"
        )


class Memory(BaseMemory):
    """Allocate memory on the current device; it is given back with the object.

    Parameters
    ----------
    size : int
        Bytes.
    target : Target, optional
        The default target unless given.
    """

    __slots__ = ()

    _is_held: bool

    _can_be_shared = True

    def __init__(self, size: int, *, target: Target | None = None) -> None:
        self._is_held = False
        size = checked_size(size)
        target = registry.default() if target is None else target
        device = target.current_device()
        super().__init__(size, self._allocate(target, size, device), device, target=target)
        self._is_held = size > 0

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if getattr(self, "_is_held", False) and not finalizing():
            self._is_held = False
            self._free()

    @property
    def ipc_handle(self) -> bytes:
        """What another process of the machine opens the memory with: ``InterprocessMemory(handle, size)``.

        Raises NotImplementedError for managed and asynchronous memory, and on a target that shares none.
        """
        if not self._can_be_shared:
            raise NotImplementedError(
                f"{type(self).__name__} cannot be opened by another process: share a `Memory`, "
                f"gridstride.cuda.Memory({self.size})"
            )
        return self.target.memory_handle(self.ptr)

    def _allocate(self, target: Target, size: int, device: int) -> int:
        return target.allocate(size, device)

    def _free(self) -> None:
        self.target.free(self.ptr, self.device_id)


class ManagedMemory(Memory):
    """Allocate memory that the host and all devices see at one address; it is given back with the object.

    Parameters
    ----------
    size : int
        Bytes.
    target : Target, optional
        The default target unless given.
    """

    __slots__ = ()

    is_on_host = True
    _can_be_shared = False

    def _allocate(self, target: Target, size: int, device: int) -> int:
        return target.allocate_managed(size, device)


class MemoryAsync(Memory):
    """Allocate memory in the order of a stream, and give it back with the object in the same order.

    Work in the stream may use it at once; work in another stream must come behind that (an event).
    In a stream that is being captured it is plain memory, which the graph keeps.

    Parameters
    ----------
    size : int
        Bytes.
    stream : Stream, int, CuPy or PyTorch stream, optional
        The current stream by default.
    pool : int
        Raw handle of a pool; 0: the device's own.
    target : Target, optional
        The default target unless given.
    """

    __slots__ = ()

    #: The handle of the stream in whose order it goes back; None: it is plain memory.
    _stream: int | None

    _can_be_shared = False

    def __init__(self, size: int, stream: Any = None, *, pool: int = 0, target: Target | None = None) -> None:
        self._is_held = False
        self.target = target = registry.default() if target is None else target
        self.size = size = checked_size(size)
        self.device_id = device = target.current_device()
        if stream is None:
            stream = get_current_stream(device, target=target)
            handle = stream.ptr
        else:
            handle = stream_handle(stream, target)
        if capture.is_capturing(target, handle):
            self._stream = None
            self.ptr = target.allocate(size, device)
            self._is_held = size > 0
            capture.keep(target, handle, self)
            return
        self._stream = handle
        self.ptr = 0
        if size:
            self.ptr = (
                target.allocate_from_pool(size, pool, handle) if pool else target.allocate_async(size, handle)
            )
            streams[self.ptr] = stream
            self._is_held = True

    def _free(self) -> None:
        target, device = self.target, self.device_id
        if self._stream is None:
            target.free(self.ptr, device)
            return
        stream = streams.pop(self.ptr)
        if target.current_device() == device:
            target.free_async(self.ptr, self._stream)
        else:
            with on_device(target, device):
                target.free_async(self.ptr, self._stream)
        del stream


#: The streams in whose order memory goes back, by its address. Held here, because the collector also
#: finalizes what only garbage holds: a stream would be gone before the memory.
streams: dict[int, object] = {}


class UnownedMemory(BaseMemory):
    """Stand for memory that somebody else allocated and gives back.

    Parameters
    ----------
    ptr : int
        Address of its first byte.
    size : int
        Bytes.
    owner : object
        Kept alive as long as this object.
    device_id : int, optional
        The current device by default.
    target : Target, optional
        The default target unless given.
    """

    __slots__ = ("owner",)

    def __init__(
        self, ptr: int, size: int, owner: object, device_id: int = -1, *, target: Target | None = None
    ) -> None:
        super().__init__(size, int(ptr), device_id, target=target)
        self.owner = owner


def checked_range(mem: Any, offset: int, size: int | None) -> tuple[int, int]:
    """Return an offset into memory and the bytes from there (None: all); ValueError where they reach outside."""
    offset = index(offset)
    rest = mem.size - offset
    if rest < 0:
        raise ValueError(f"offset {offset} is outside memory of {mem.size} bytes")
    size = rest if size is None else checked_size(size)
    if offset < 0 or size > rest:
        raise ValueError(f"{size} bytes from offset {offset} reach outside memory of {mem.size} bytes")
    return offset, size


def checked_size(size: int) -> int:
    size = index(size)
    if size < 0:
        raise ValueError(f"a size in bytes cannot be negative, got {size}")
    return size
