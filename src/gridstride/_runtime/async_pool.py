"""The device's own pool, which takes and gives memory in stream order."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

from gridstride import _forks, _native
from gridstride._runtime import hooks, keeping, memory
from gridstride._runtime.allocation import is_out_of_memory, out_of_memory, require_allocator
from gridstride._runtime.hooks import Piece
from gridstride._runtime.memory import BaseMemory, MemoryAsync
from gridstride._runtime.pointer import MemoryPointer
from gridstride._runtime.pool import InstanceMethods, limit_of, take_back
from gridstride.errors import OutOfMemoryError
from gridstride.targets import registry
from gridstride.targets.base import Target

#: CuPy's words for pools that the device has.
_SHARED = ("current", "default")


class MemoryAsyncPool(_native.AsyncPoolRecord, metaclass=InstanceMethods):
    """Take memory from a pool of the driver and give it back, both in the order of the current stream.

    Every device has such a pool of its own for each object of this class. The driver lets later work
    of other streams use the memory only behind the work in front of its return. On the CPU target
    memory comes from the system, and the numbers are kept.

    Memory that another stream still uses is given back behind that use.

    Parameters
    ----------
    allocator : optional
        ``"current"`` or ``"default"``: use the pool that the device has, which other libraries may share. Otherwise
        of no account.
    target : Target, optional
        The default target unless given.
    """

    target: Target
    #: By device; of the pool, 0: the one that the device has.
    _handles: dict[int, int]
    _limits: dict[int, int]

    def __init__(self, allocator: Any = None, *, target: Target | None = None) -> None:
        self.target = registry.default() if target is None else target
        self._is_shared = isinstance(allocator, str) and allocator in _SHARED
        if not self._is_shared:
            require_allocator(allocator)
        self._handles = {}
        self._limits = {}
        self._lock = _forks.Lock()

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not finalizing():
            for pool in getattr(self, "_handles", {}).values():
                if pool:
                    self.target.destroy_pool(pool)

    @_native.shortcut
    def malloc(self, size: int) -> MemoryPointer:
        """Hand out memory of the current device, for the current stream.

        Parameters
        ----------
        size : int
            Bytes.

        Raises
        ------
        OutOfMemoryError
            Where neither limit nor device leave room.
        """
        device, handle = self._current()
        if hooks.entered:
            for event in ("malloc_preprocess", "alloc_preprocess"):
                hooks.tell(event, Piece(0, size, device, 0, size))
        pointer = MemoryPointer(self._allocate(size, device, handle), 0)
        if hooks.entered:
            piece = Piece(pointer.ptr, size, device, id(pointer.mem), size)
            for event in ("alloc_postprocess", "malloc_postprocess"):
                hooks.tell(event, piece)
        return pointer

    def free(self, mem: MemoryPointer | BaseMemory, size: int | None = None) -> None:
        """Take memory back, in stream order, before its last pointer goes; it must not be used any more.

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
        return isinstance(memory, AsyncPoolMemory) and memory.pool is self

    def free_all_blocks(self, stream: Any = None) -> None:
        """Give all memory that the pool holds free back to the device.

        What is given back in stream order is free once that work is done: synchronize first.

        Parameters
        ----------
        stream : optional
            Of no account.
        """
        keeping.sweep()
        device, handle = self._current()
        self.target.trim_pool(handle, device, 0)

    def free_all_free(self) -> None:
        """Do what `free_all_blocks` does; an older name of it."""
        self.free_all_blocks()

    def n_free_blocks(self) -> int:
        """Raise NotImplementedError: the driver does not say."""
        raise NotImplementedError("the driver does not count the free blocks of its pools; see free_bytes()")

    def used_bytes(self) -> int:
        """Return the bytes that are handed out."""
        keeping.sweep()
        return self._numbers()[0]

    def free_bytes(self) -> int:
        """Return the bytes that the pool holds free."""
        used, total = self._numbers()
        return total - used

    def total_bytes(self) -> int:
        """Return the bytes that the pool took from the device."""
        return self._numbers()[1]

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Set what may be handed out on the current device at most; without arguments: anything.

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
        device = self.target.current_device()
        limit = limit_of(self.target, device, size, fraction)
        if limit:
            self._limits[device] = limit
        else:
            self._limits.pop(device, None)

    def get_limit(self) -> int:
        """Return the limit in bytes; 0: there is none."""
        return self._limits.get(self.target.current_device(), 0)

    def _allocate(self, size: int, device: int, handle: int) -> AsyncPoolMemory:
        limit = self._limits.get(device, 0)
        if limit and self.target.pool_bytes(handle, device)[0] + size > limit:
            keeping.sweep()
            if self.target.pool_bytes(handle, device)[0] + size > limit:
                raise self._out_of_memory(size, device, handle)
        try:
            return AsyncPoolMemory(self, size, handle)
        except Exception as error:
            return self._after_failure(error, size, device, handle)

    def _after_failure(self, error: Exception, size: int, device: int, handle: int) -> AsyncPoolMemory:
        """Make room and try again, where the target had no memory; else raise."""
        for recover in (self.free_all_blocks, gc.collect):
            if not is_out_of_memory(error):
                raise error
            recover()
            try:
                return AsyncPoolMemory(self, size, handle)
            except Exception as again:
                error = again
        if not is_out_of_memory(error):
            raise error
        raise self._out_of_memory(size, device, handle) from error

    def _out_of_memory(self, size: int, device: int, handle: int) -> OutOfMemoryError:
        used, total = self.target.pool_bytes(handle, device)
        return out_of_memory(self.target, device, size, used, total - used, self.get_limit())

    def _current(self) -> tuple[int, int]:
        """Return the current device and the handle of its pool."""
        device = self.target.current_device()
        handle = self._handles.get(device)
        if handle is None:
            with self._lock:
                handle = self._handles.get(device)
                if handle is None:
                    handle = 0 if self._is_shared else self.target.create_pool(device)
                    self._handles[device] = handle
        return device, handle

    def _numbers(self) -> tuple[int, int]:
        device, handle = self._current()
        return self.target.pool_bytes(handle, device)


class AsyncPoolMemory(MemoryAsync):
    """Stand for memory of a pool; its return is told to hooks."""

    __slots__ = ()

    pool: MemoryAsyncPool

    def __init__(self, pool: MemoryAsyncPool, size: int, handle: int) -> None:
        self.pool = pool
        super().__init__(size, pool=handle, target=pool.target)

    @_native.shortcut
    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        super().__del__(finalizing)

    @property
    def was_given_back(self) -> bool:
        return self.size > 0 and not self._is_held

    def free(self) -> bool:
        """Give the memory back to its pool; return False where it was before."""
        if not self._is_held:
            return False
        self._is_held = False
        self._free()
        return True

    def _free(self) -> None:
        if not hooks.entered:
            super()._free()
            return
        piece = Piece(self.ptr, self.size, self.device_id, id(self))
        try:
            hooks.tell_all("free_preprocess", piece)
        finally:
            super()._free()
            hooks.tell_all("free_postprocess", piece)


_native.know_async_memory(AsyncPoolMemory, memory.streams)
