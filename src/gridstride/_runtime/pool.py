"""Memory pools: memory of a device, kept when it is given back, for later requests."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from functools import partial
from operator import index
from typing import Any

from gridstride import _native
from gridstride._runtime import hooks, keeping, tracking
from gridstride._runtime.allocation import Allocator, require_allocator
from gridstride._runtime.arena import Fragmentation
from gridstride._runtime.device_pool import DevicePool
from gridstride._runtime.memory import BaseMemory, Memory
from gridstride._runtime.pointer import MemoryPointer
from gridstride._runtime.pooled_memory import PooledMemory
from gridstride.targets import registry
from gridstride.targets.base import Target


class InstanceMethods(type):
    """Explain a method that is called on the class instead of a pool."""

    def __getattribute__(cls, name: str) -> Any:
        value = super().__getattribute__(name)
        if name.startswith("_") or not callable(value):
            return value
        return _instance_method(cls, name, value)


def take_back(mem: Any, pointer: type[Any], gave: Callable[[object], bool]) -> None:
    """Take memory back before its last pointer goes; `gave` tells whether it comes from the pool that is asked."""
    memory = mem.mem if isinstance(mem, pointer) else mem
    if not gave(memory):
        raise ValueError(f"{mem!r} does not come from this pool")
    if not memory.free():
        raise ValueError(f"{mem!r} was given back to its pool before")


class MemoryPool(_native.PoolRecord, metaclass=InstanceMethods):
    """Keep memory that is given back, and hand it out again.

    A request is served by the free block that fits best. A block is not cut for a request of less
    than half its size, and under a limit not at all, as long as the pool can grow; where little would
    be left over it is handed out whole. Sizes are rounded up to 512 bytes. Before a request fails the
    pool gives back what it holds free, collects garbage, and asks CuPy and PyTorch to give back what
    they hold free.

    The numbers are those of the current device. All methods may be called from any thread. Memory
    goes back to the pool when the last pointer to it goes, and no earlier than work that other
    streams were given on it is done.

    `gridstride.get_default_memory_pool` returns the pool that is used unless another one is chosen.

    Parameters
    ----------
    allocator : callable, optional
        Takes a size in bytes and returns a `MemoryPointer`: where the pool's memory comes from. From
        the device by default; `malloc_managed` makes a pool of managed memory.
    target : Target, optional
        The default target unless given.

    Examples
    --------
    >>> import gridstride as gs
    >>> pool = gs.cuda.MemoryPool()
    >>> pointer = pool.malloc(1000)
    >>> pool.used_bytes(), pool.total_bytes()
    (1024, 1024)
    >>> del pointer
    >>> pool.used_bytes(), pool.free_bytes()
    (0, 1024)
    >>> pool.free_all_blocks()
    >>> pool.total_bytes()
    0
    """

    target: Target
    _devices: dict[int, DevicePool]

    def __init__(self, allocator: Allocator | None = None, *, target: Target | None = None) -> None:
        self.target = registry.default() if target is None else target
        require_allocator(allocator)
        self._allocator = partial(_from_device, self.target) if allocator is None else allocator
        self._devices = {}
        _pools.add(self)

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not finalizing():
            for pool in getattr(self, "_devices", {}).values():
                pool.release()

    def __repr__(self) -> str:
        return f"<MemoryPool: {self.used_bytes()} of {self.total_bytes()} bytes in use>"

    @_native.shortcut
    def malloc(self, size: int) -> MemoryPointer:
        """Hand out memory of the current device.

        Parameters
        ----------
        size : int
            Bytes.

        Raises
        ------
        OutOfMemoryError
            With the numbers of the pool, where neither limit nor device leave room.
        """
        device = self.target.current_device()
        pool = self._devices.get(device) or self._of_device(device)
        return pool.watched_malloc(size) if hooks.entered else pool.malloc(size)

    def free(self, mem: MemoryPointer | BaseMemory, size: int | None = None) -> None:
        """Take memory back before its last pointer goes; it must not be used any more.

        Parameters
        ----------
        mem : MemoryPointer or memory
            What `malloc` returned.
        size : int, optional
            Of no account.

        Raises
        ------
        ValueError
            For memory that is not this pool's, or was given back before.
        """
        take_back(mem, MemoryPointer, self._gave)

    def _gave(self, memory: object) -> bool:
        return isinstance(memory, PooledMemory) and memory.pool is self._devices.get(memory.device_id)

    def free_all_blocks(self, stream: Any = None) -> None:
        """Give all memory that the pool holds free back to the device, as far as whole segments are free.

        Parameters
        ----------
        stream : Stream, optional
            Only what was used in this stream.
        """
        keeping.sweep()
        self._current().release(None if stream is None else int(stream.ptr))

    def free_all_free(self) -> None:
        """Do what `free_all_blocks` does; an older name of it."""
        self.free_all_blocks()

    def n_free_blocks(self) -> int:
        """Return how many free blocks the pool holds."""
        return self._current().free_block_count()

    def used_bytes(self) -> int:
        """Return the bytes that are handed out."""
        return self._current().up_to_date().used

    def free_bytes(self) -> int:
        """Return the bytes that the pool holds free."""
        pool = self._current().up_to_date()
        return pool.total - pool.used

    def total_bytes(self) -> int:
        """Return the bytes that the pool took from the device."""
        return self._current().total

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Set what the pool may take from the current device at most; without arguments: anything.

        Parameters
        ----------
        size : int, optional
            Bytes; 0: no limit.
        fraction : float, optional
            Of the device's memory, 0 to 1, instead.

        Raises
        ------
        ValueError
            For both, and for numbers outside these ranges; the limit stays what it was.
        """
        self._current().limit = limit_of(self.target, self.target.current_device(), size, fraction)

    def get_limit(self) -> int:
        """Return the limit in bytes; 0: there is none."""
        return self._current().limit

    def fragmentation(self) -> Fragmentation:
        """Return how the pool's memory is cut up."""
        return self._current().fragmentation()

    def _current(self) -> DevicePool:
        return self._of_device(self.target.current_device())

    def _of_device(self, device: int) -> DevicePool:
        found = self._devices.get(device)
        if found is None:  # filled in one step, so that two threads get the same one
            made = DevicePool(self.target, device, self._allocator)
            found = self._devices.setdefault(device, made)
        return found


def _from_device(target: Target, size: int) -> MemoryPointer:
    return MemoryPointer(Memory(size, target=target), 0)


def limit_of(target: Target, device: int, size: int | None, fraction: float | None) -> int:
    """Return a limit in bytes, 0 for none, from what ``set_limit`` takes; ValueError where it is none."""
    if fraction is not None:
        if size is not None:
            raise ValueError("a limit is a size or a fraction, not both")
        if not 0 <= fraction <= 1:
            raise ValueError(f"a fraction of the device's memory must be 0 to 1, got {fraction}")
        return int(fraction * target.memory_info(device)[1])
    size = 0 if size is None else index(size)
    if size < 0:
        raise ValueError(f"a limit in bytes cannot be negative, got {size}")
    return size


_pools: weakref.WeakSet[MemoryPool] = weakref.WeakSet()


def _forget_stream(target: Target, device: int, stream: int) -> None:
    for pool in list(_pools):
        of_device = pool._devices.get(device)
        if pool.target is target and of_device is not None:
            of_device.forget_stream(stream)


tracking.at_destroy_stream.append(_forget_stream)


def _instance_method(cls: type, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if not args or not isinstance(args[0], cls):
            raise TypeError(
                f"{cls.__name__}.{name}() is a method of a pool: call gs.get_default_memory_pool().{name}(...), "
                f"or make a pool with gs.cuda.{cls.__name__}()"
            )
        return method(*args, **kwargs)

    call.__name__, call.__doc__ = name, method.__doc__
    return call
