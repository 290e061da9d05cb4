"""Pointers into memory: arithmetic, copies and fills."""

from __future__ import annotations

from ctypes import c_void_p
from operator import index
from typing import Any, NamedTuple, Protocol

import numpy as np

from gridstride import _native, arrays
from gridstride._runtime import tracking
from gridstride._runtime.current import on_device
from gridstride._runtime.device import Device, require_target
from gridstride._runtime.memory import (
    BaseMemory,
    ManagedMemory,
    MemoryAsync,
    checked_range,
    checked_size,
    require_held,
)
from gridstride._runtime.stream import get_current_stream, stream_handle
from gridstride.arrays import HOST, PINNED, UNKNOWN_DEVICE, ArrayView
from gridstride.targets.base import Access, CopyDirection, Target

_BYTE: np.dtype[Any] = np.dtype(np.uint8)
_HOST_PROTOCOL = "__array_interface__"


class PinnedPointer(Protocol):
    """Name what a pointer to pinned memory offers."""

    mem: BaseMemory
    owner: object
    ptr: int
    size: int


class MemoryPointer(_native.PointerRecord):
    """Point to a byte of a piece of memory, and copy from and to it.

    A pointer shows its bytes to array libraries as a uint8 array and can be passed for any pointer
    parameter of a kernel. Adding an integer moves it by bytes. Copies check their sizes; those named
    ``_async`` go to a stream, and what they read and write must live until it is done.

    Parameters
    ----------
    mem : BaseMemory, MemoryPointer or PinnedMemoryPointer
        It is kept alive. Over pinned memory the pointer stands for what devices see of it.
    offset : int
        Bytes from its beginning.
    size : int, optional
        Bytes from there; up to its end by default.
    owner : object, optional
        Also kept alive.

    Raises
    ------
    ValueError
        Where offset and size reach outside.
    """

    __slots__ = ("__weakref__",)

    mem: BaseMemory
    owner: object
    ptr: int
    size: int

    def __init__(
        self,
        mem: BaseMemory | MemoryPointer | PinnedPointer,
        offset: int,
        size: int | None = None,
        owner: object = None,
    ) -> None:
        if not isinstance(mem, BaseMemory) and not hasattr(mem, "mem"):
            raise TypeError(f"mem must be memory or a pointer to memory, got {type(mem).__name__}")
        offset, size = checked_range(mem, offset, size)
        if isinstance(mem, BaseMemory):
            self.mem, self.owner = mem, owner
        else:
            self.mem, self.owner = mem.mem, mem.owner if owner is None else owner
        self.ptr = mem.ptr + offset
        self.size = size

    def __int__(self) -> int:
        return self.ptr

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self, offset)

    __radd__ = __add__

    def __sub__(self, offset: int) -> MemoryPointer:
        start = self.ptr - self.mem.ptr - offset
        return MemoryPointer(self.mem, start, self.size + offset, self.owner)

    def __repr__(self) -> str:
        return f"<MemoryPointer to {self.size} bytes at {self.ptr:#x} on {self.device!r}>"

    def __gridstride_view__(self) -> ArrayView:
        require_held(self.mem)
        device_type = self.target.memory_device_type  # also of pinned memory, which devices see
        device = (
            UNKNOWN_DEVICE if self.mem.is_on_host else self.device_id
        )  # every device sees what the host does
        return ArrayView(self, self.ptr, _BYTE, (self.size,), None, device_type, device, False, "memory")

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._interface("__array_interface__")

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._interface("__cuda_array_interface__")

    @property
    def target(self) -> Target:
        """The target the memory belongs to."""
        return self.mem.target

    @property
    def device_id(self) -> int:
        """Index of the device it lies on."""
        return self.mem.device_id

    @property
    def device(self) -> Device:
        """The device it lies on."""
        return self.mem.device

    def copy_from_device(self, src: Any, size: int | None = None) -> None:
        """Copy bytes from other memory of the target.

        Parameters
        ----------
        src : MemoryPointer, BaseMemory or C-contiguous array on the target
        size : int, optional
            Bytes; all of `src` by default.

        Raises
        ------
        ValueError
            Where either side is smaller.
        TypeError
            For memory of another target.
        """
        self._copy_here(self._device_bytes(src), size, CopyDirection.DEVICE_TO_DEVICE, None)

    def copy_from_device_async(self, src: Any, size: int | None = None, stream: Any = None) -> None:
        """Copy as `copy_from_device`, in the order of a stream (the current one by default)."""
        handle = self._handle(stream)
        self._copy_here(self._device_bytes(src), size, CopyDirection.DEVICE_TO_DEVICE, handle)

    def copy_from_host(self, mem: Any, size: int | None = None) -> None:
        """Copy bytes from host memory.

        Parameters
        ----------
        mem : C-contiguous host array, object with a buffer, or ctypes.c_void_p
        size : int, optional
            Bytes; all of `mem` by default. What is behind a ``c_void_p`` has no size to check.

        Raises
        ------
        ValueError
            Where either side is smaller.
        """
        self._copy_here(_host_bytes(mem, written=False), size, CopyDirection.HOST_TO_DEVICE, None)

    def copy_from_host_async(self, mem: Any, size: int | None = None, stream: Any = None) -> None:
        """Copy as `copy_from_host`, in the order of a stream (the current one by default)."""
        handle = self._handle(stream)
        self._copy_here(_host_bytes(mem, written=False), size, CopyDirection.HOST_TO_DEVICE, handle)

    def copy_to_host(self, mem: Any, size: int | None = None) -> None:
        """Copy bytes to writable host memory.

        Parameters
        ----------
        mem : writable C-contiguous host array, object with a writable buffer, or ctypes.c_void_p
        size : int, optional
            Bytes; all of `mem` by default. What is behind a ``c_void_p`` has no size to check.

        Raises
        ------
        ValueError
            Where either side is smaller.
        """
        self._copy_out(_host_bytes(mem, written=True), size, None)

    def copy_to_host_async(self, mem: Any, size: int | None = None, stream: Any = None) -> None:
        """Copy as `copy_to_host`, in the order of a stream (the current one by default)."""
        handle = self._handle(stream)
        self._copy_out(_host_bytes(mem, written=True), size, handle)

    def memset(self, value: int, size: int | None = None) -> None:
        """Set bytes.

        Parameters
        ----------
        value : int
            0 to 255.
        size : int, optional
            Bytes; all from here on by default.

        Raises
        ------
        ValueError
            For another value, or more bytes than there are.
        """
        self._fill(value, size, None)

    def memset_async(self, value: int, size: int | None = None, stream: Any = None) -> None:
        """Set bytes as `memset`, in the order of a stream (the current one by default)."""
        self._fill(value, size, self._handle(stream))

    def _copy_here(
        self, source: _Bytes, size: int | None, direction: CopyDirection, stream: int | None
    ) -> None:
        count = self._count(size, source)
        here, there = self._access(count, written=True), source.access(count, written=False)
        with on_device(self.target, self.device_id):
            if source.device in (None, self.device_id):
                tracking.copy(self.target, self.device_id, here, there, count, direction, stream)
            else:
                tracking.copy_between_devices(
                    self.target, self.device_id, here, there, source.device, count, stream
                )

    def _copy_out(self, destination: _Bytes, size: int | None, stream: int | None) -> None:
        count = self._count(size, destination)
        here, there = self._access(count, written=False), destination.access(count, written=True)
        with on_device(self.target, self.device_id):
            tracking.copy(
                self.target, self.device_id, there, here, count, CopyDirection.DEVICE_TO_HOST, stream
            )

    def _fill(self, value: int, size: int | None, stream: int | None) -> None:
        if not 0 <= index(value) <= 255:
            raise ValueError(f"memset sets single bytes: the value must be 0 to 255, got {value}")
        count = self._count(size, _Bytes(self, self.ptr, self.size))
        with on_device(self.target, self.device_id):
            tracking.fill(
                self.target, self.device_id, self._access(count, written=True), value, count, stream
            )

    def _access(self, size: int, *, written: bool) -> Access:
        require_held(self.mem)
        return Access(self, self.ptr, size, written)

    def _count(self, size: int | None, other: _Bytes) -> int:
        """Return how many bytes to move; ValueError where one side has fewer."""
        known = self.size if other.size is None else other.size
        count = known if size is None else checked_size(size)
        if count > self.size:
            raise ValueError(f"{count} bytes asked for, and the pointer has {self.size}")
        if count > known:
            raise ValueError(f"{count} bytes asked for, and the other side has {known}")
        return count

    def _device_bytes(self, source: Any) -> _Bytes:
        if isinstance(source, BaseMemory | MemoryPointer):
            require_target("the source", source.target, self.target)
            require_held(source if isinstance(source, BaseMemory) else source.mem)
            return _Bytes(source, source.ptr, source.size, source.device_id)
        seen = _contiguous(source)
        if seen.device_type not in self.target.device_types:
            raise TypeError(f"a {seen.library} array is no memory of target {self.target.name!r}")
        device = None if seen.device_type == HOST or seen.device == UNKNOWN_DEVICE else seen.device
        return _Bytes(seen.owner, seen.address, seen.nbytes, device)

    def _handle(self, stream: Any) -> int:
        if stream is None:
            return get_current_stream(self.device_id, target=self.target).ptr
        return stream_handle(stream, self.target)

    def _interface(self, protocol: str) -> dict[str, Any]:
        if protocol != self.target.array_protocol and not (
            protocol == _HOST_PROTOCOL and self.mem.is_on_host
        ):
            raise AttributeError(f"memory of target {self.target.name!r} has no {protocol}")
        require_held(self.mem)
        return {
            "shape": (self.size,),
            "typestr": "|u1",
            "data": (self.ptr, False),
            "strides": None,
            "version": 3,
        }


class _Bytes(NamedTuple):
    """The other side of a copy; device None: the host's, or one that is not known."""

    owner: object
    address: int
    size: int | None
    device: int | None = None

    def access(self, size: int, *, written: bool) -> Access:
        return Access(self.owner, self.address, size, written)


def malloc_managed(size: int) -> MemoryPointer:
    """Allocate memory that the host and all devices see at one address, on the default target.

    Parameters
    ----------
    size : int
        Bytes.
    """
    return MemoryPointer(ManagedMemory(size), 0)


def malloc_async(size: int) -> MemoryPointer:
    """Allocate memory in the order of the current stream of the default target; see `MemoryAsync`.

    Parameters
    ----------
    size : int
        Bytes.
    """
    return MemoryPointer(MemoryAsync(size), 0)


def _host_bytes(memory: Any, written: bool) -> _Bytes:
    if isinstance(memory, c_void_p):
        return _Bytes(memory, memory.value or 0, None)
    seen = _contiguous(memory)
    if seen.device_type not in (HOST, PINNED):
        raise TypeError(f"host memory is needed, got a {seen.library} array on a device")
    if written and seen.read_only:
        raise ValueError(f"a read-only {seen.library} array cannot be copied to")
    return _Bytes(seen.owner, seen.address, seen.nbytes)


def _contiguous(memory: Any) -> ArrayView:
    seen = arrays.view(memory)
    if seen is None:
        raise TypeError(
            f"memory must be an array, a buffer or a ctypes.c_void_p, got {type(memory).__name__}"
        )
    if not seen.c_contiguous:
        raise ValueError(f"memory must be C-contiguous, got strides {seen.strides} for shape {seen.shape}")
    return arrays.resolved(seen)
