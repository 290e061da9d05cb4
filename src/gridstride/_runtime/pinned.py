"""Page-locked host memory, which devices reach directly: copies to and from it need not wait."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from operator import index
from typing import Any

import numpy as np

from gridstride import _native
from gridstride._runtime import keeping
from gridstride._runtime.allocation import require_allocator
from gridstride._runtime.device_pool import DevicePool
from gridstride._runtime.memory import BaseMemory, checked_range, checked_size, require_held
from gridstride._runtime.pool import InstanceMethods, take_back
from gridstride._runtime.pooled_memory import PooledMemory
from gridstride.arrays import HOST, PINNED, UNKNOWN_DEVICE, ArrayView
from gridstride.targets import registry
from gridstride.targets.base import Target

_BYTE: np.dtype[Any] = np.dtype(np.uint8)


class PinnedMemory(BaseMemory):
    """Allocate page-locked host memory; it is given back with the object.

    On the CPU target it is plain memory.

    Parameters
    ----------
    size : int
        Bytes.
    flags : int
        Of no account: the memory is seen by all devices.
    target : Target, optional
        The default target unless given.
    """

    __slots__ = ("owner",)

    _is_held: bool

    is_on_host = True

    def __init__(self, size: int, flags: int = 0, *, target: Target | None = None) -> None:
        self._is_held = False
        size = checked_size(size)
        target = registry.default() if target is None else target
        super().__init__(size, target.allocate_pinned(size), target=target)
        self.owner: object = None
        self._is_held = size > 0

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if getattr(self, "_is_held", False) and not finalizing():
            self._is_held = False
            self.target.free_pinned(self.ptr)

    @classmethod
    def of_others(cls, ptr: int, size: int, owner: object, target: Target) -> PinnedMemory:
        """Return what stands for page-locked memory that somebody else gives back."""
        memory = cls(0, target=target)
        memory.ptr, memory.size, memory.owner = ptr, size, owner
        return memory


class PinnedMemoryPointer(_native.Buffer):
    """Point to a byte of page-locked memory.

    It is a writable buffer: ``np.frombuffer(pointer, dtype, count)`` and ``np.asarray(pointer)`` are
    arrays over the memory, and keep it alive. A `MemoryPointer` over it is what devices see of it.

    Parameters
    ----------
    mem : memory
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

    def __init__(self, mem: BaseMemory, offset: int, size: int | None = None, owner: object = None) -> None:
        if not isinstance(mem, BaseMemory):
            raise TypeError(f"mem must be pinned memory, got {type(mem).__name__}")
        offset, size = checked_range(mem, offset, size)
        self.mem = mem
        self.owner = owner
        self.ptr = mem.ptr + offset
        self.size = size
        self._show(self.ptr, size)

    def __int__(self) -> int:
        return self.ptr

    def __add__(self, offset: int) -> PinnedMemoryPointer:
        offset = index(offset)
        if offset > self.size:
            raise ValueError(f"offset {offset} is outside memory of {self.size} bytes")
        return PinnedMemoryPointer(self.mem, self.ptr - self.mem.ptr + offset, self.size - offset, self.owner)

    def __repr__(self) -> str:
        return f"<PinnedMemoryPointer to {self.size} bytes at {self.ptr:#x}>"

    def __gridstride_view__(self) -> ArrayView:
        require_held(self.mem)
        device_type = HOST if HOST in self.mem.target.device_types else PINNED
        return ArrayView(
            self, self.ptr, _BYTE, (self.size,), None, device_type, UNKNOWN_DEVICE, False, "memory"
        )

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {
            "shape": (self.size,),
            "typestr": "|u1",
            "data": (self.ptr, False),
            "strides": None,
            "version": 3,
        }


class PinnedMemoryPool(metaclass=InstanceMethods):
    """Keep page-locked memory that is given back, and hand it out again.

    Locking pages takes the system hundreds of microseconds; a pool does it once. Sizes are rounded up
    to 512 bytes. All methods may be called from any thread.

    Parameters
    ----------
    allocator : callable, optional
        Takes a size in bytes and returns a `PinnedMemoryPointer`: where the pool's memory comes from.
    target : Target, optional
        The default target unless given.
    """

    def __init__(
        self, allocator: Callable[[int], PinnedMemoryPointer] | None = None, *, target: Target | None = None
    ) -> None:
        self.target: Target = registry.default() if target is None else target
        require_allocator(allocator)
        allocate = partial(_from_system, self.target) if allocator is None else allocator
        self._pool = DevicePool(self.target, 0, allocate, is_pinned=True)

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not finalizing() and hasattr(self, "_pool"):
            self._pool.release()

    def malloc(self, size: int) -> PinnedMemoryPointer:
        """Hand out page-locked memory.

        Parameters
        ----------
        size : int
            Bytes.

        Raises
        ------
        OutOfMemoryError
            Where the system locks no more pages.
        """
        return PinnedMemoryPointer(self._pool.malloc(size).mem, 0, size)

    def free(self, mem: PinnedMemoryPointer | BaseMemory, size: int | None = None) -> None:
        """Take memory back before its last pointer goes; it must not be used any more.

        Parameters
        ----------
        mem : PinnedMemoryPointer or memory
            What `malloc` returned.
        size : int, optional
            Of no account.

        Raises
        ------
        ValueError
            For memory that is not this pool's, or was given back before.
        """
        take_back(mem, PinnedMemoryPointer, self._gave)

    def _gave(self, memory: object) -> bool:
        return isinstance(memory, PooledMemory) and memory.pool is self._pool

    def free_all_blocks(self) -> None:
        """Give all memory that the pool holds free back to the system."""
        keeping.sweep()
        self._pool.release()

    def n_free_blocks(self) -> int:
        """Return how many free blocks the pool holds."""
        return self._pool.free_block_count()


PinnedAllocator = Callable[[int], PinnedMemoryPointer]


def alloc_pinned_memory(size: int) -> PinnedMemoryPointer:
    """Allocate page-locked host memory, from the current pinned allocator: the default pool's unless chosen.

    Parameters
    ----------
    size : int
        Bytes.

    Raises
    ------
    OutOfMemoryError
        Where the system locks no more pages.
    """
    if _chosen:
        return _chosen[-1](size)
    pointer: PinnedMemoryPointer = get_default_pinned_memory_pool().malloc(size)
    return pointer


def set_pinned_memory_allocator(allocator: PinnedAllocator | None = None) -> None:
    """Choose where `alloc_pinned_memory` takes memory from, for the process.

    Parameters
    ----------
    allocator : callable, optional
        Takes a size in bytes and returns a `PinnedMemoryPointer`, such as ``PinnedMemoryPool().malloc``.
        Without it every allocation goes to the system.
    """
    require_allocator(allocator)
    _chosen[:] = [partial(_from_system, None) if allocator is None else allocator]


def get_default_pinned_memory_pool() -> Any:
    """Return the pool of pinned memory of the default target that is used unless another one is chosen.

    Returns
    -------
    PinnedMemoryPool
        Or what stands for CuPy's own pool, where CuPy allocates the target's memory.
    """
    target = registry.default()
    pool = _default_pools.get(target)
    if pool is None:
        from gridstride._runtime import library_pool

        pool = library_pool.find_pinned(target) or PinnedMemoryPool(target=target)
        pool = _default_pools.setdefault(target, pool)
    return pool


#: The allocator of the process; empty: the default pool's.
_chosen: list[PinnedAllocator] = []
_default_pools: dict[Target, Any] = {}


def _from_system(target: Target | None, size: int) -> PinnedMemoryPointer:
    return PinnedMemoryPointer(PinnedMemory(size, target=target), 0)
