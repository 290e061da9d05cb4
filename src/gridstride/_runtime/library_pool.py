"""The memory pools of array libraries, under the names of ours."""

from __future__ import annotations

from typing import Any

from gridstride import arrays
from gridstride._runtime.memory import UnownedMemory
from gridstride._runtime.pinned import PinnedMemory, PinnedMemoryPointer
from gridstride._runtime.pointer import MemoryPointer
from gridstride.targets.base import Target


class LibraryPool:
    """Stand for the memory pool of an array library.

    Its methods are those of `MemoryPool`; what the library's pool has besides is there too.

    Parameters
    ----------
    pool : object
        The library's.
    target : Target
        Whose memory it holds.
    """

    def __init__(self, pool: Any, target: Target) -> None:
        self.target = target
        self._pool = pool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def __repr__(self) -> str:
        return f"<LibraryPool of {self._pool!r}>"

    def malloc(self, size: int) -> MemoryPointer:
        """Hand out memory of the current device."""
        theirs = self._pool.malloc(size)
        memory = UnownedMemory(theirs.ptr, theirs.mem.size, theirs, theirs.device_id, target=self.target)
        return MemoryPointer(memory, 0, size)

    def free_all_free(self) -> None:
        """Give all memory that the pool holds free back to the device."""
        self._pool.free_all_blocks()


class PinnedLibraryPool(LibraryPool):
    """Stand for the pool of pinned memory of an array library."""

    def malloc(self, size: int) -> PinnedMemoryPointer:  # type: ignore[override]
        """Hand out page-locked memory."""
        theirs = self._pool.malloc(size)
        memory = PinnedMemory.of_others(theirs.ptr, size, theirs, self.target)
        return PinnedMemoryPointer(memory, 0, size)


def find(target: Target) -> LibraryPool | None:
    """Return the pool of the library that allocates memory of a target; None: no library has one."""
    for adapter in arrays.allocating_adapters(target.device_types):
        pool = adapter.default_pool()
        if pool is not None:
            return LibraryPool(pool, target)
    return None


def find_pinned(target: Target) -> PinnedLibraryPool | None:
    """Return the pool of pinned memory as `find` does."""
    for adapter in arrays.allocating_adapters(target.device_types):
        pool = adapter.default_pinned_pool()
        if pool is not None:
            return PinnedLibraryPool(pool, target)
    return None
