"""Memory of a target, and pointers into it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from ctypes import c_void_p
from operator import index
from typing import Any, NamedTuple, Protocol

import numpy as np

from gridstride import _native, arrays
from gridstride._runtime import capture, tracking
from gridstride._runtime.current import on_device
from gridstride._runtime.device import Device, require_target
from gridstride._runtime.stream import get_current_stream, stream_handle
from gridstride.arrays import HOST, PINNED, UNKNOWN_DEVICE, ArrayView
from gridstride.targets import registry
from gridstride.targets.base import Access, CopyDirection, Target

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
        if self._is_held and not finalizing():
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
        offset = index(offset)
        rest = mem.size - offset
        if rest < 0:
            raise ValueError(f"offset {offset} is outside memory of {mem.size} bytes")
        size = rest if size is None else checked_size(size)
        if offset < 0 or size > rest:
            raise ValueError(f"{size} bytes from offset {offset} reach outside memory of {mem.size} bytes")
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
        return ArrayView(
            self, self.ptr, _BYTE, (self.size,), None, device_type, self.device_id, False, "memory"
        )

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


def checked_size(size: int) -> int:
    size = index(size)
    if size < 0:
        raise ValueError(f"a size in bytes cannot be negative, got {size}")
    return size
