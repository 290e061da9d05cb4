"""Where memory comes from: the current allocator, which `alloc` and the array libraries use."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from gridstride import _native, arrays
from gridstride._runtime import capture
from gridstride._runtime.allocation import require_allocator
from gridstride._runtime.capture import Capture
from gridstride._runtime.memory import BaseMemory, Memory
from gridstride._runtime.pointer import MemoryPointer
from gridstride.targets import registry
from gridstride.targets.base import Target

Allocator = Callable[[int], MemoryPointer]
Leave = Callable[[], None]


def alloc(size: int) -> MemoryPointer:
    """Allocate memory on the current device of the default target, from the current allocator.

    Parameters
    ----------
    size : int
        Bytes.

    Raises
    ------
    OutOfMemoryError
        Where there is no room.
    TypeError
        Where the current allocator returns something else than a pointer.
    """
    allocated: Any = get_allocator()(size)
    if isinstance(allocated, MemoryPointer):
        return allocated
    if isinstance(allocated, BaseMemory):
        return MemoryPointer(allocated, 0)
    raise TypeError(f"an allocator returns a MemoryPointer, got {type(allocated).__name__}")


def get_allocator() -> Allocator:
    """Return the current allocator: that of the innermost `using_allocator` block of the thread, or the process's."""
    chosen = _threads.allocators[-1] if _threads.allocators else _process.allocator
    return _malloc_of_default_pool() if chosen is _DEFAULT else chosen


def set_allocator(allocator: Allocator | None = None) -> None:
    """Choose the allocator of the process.

    CuPy follows as a whole; NumPy follows in the calling thread or task.

    Parameters
    ----------
    allocator : callable, optional
        Takes a size in bytes and returns a `MemoryPointer`, such as ``MemoryPool().malloc``. Without
        it every allocation goes to the device.

    Raises
    ------
    ValueError
        Inside a `using_allocator` block.
    NotImplementedError
        Where the array library of the target cannot follow, with the reason.
    """
    if _threads.allocators:
        raise ValueError("the allocator of the process cannot be changed inside a using_allocator block")
    require_allocator(allocator)
    for adapter in _followers(_target_of(allocator)):
        adapter.set_allocator(allocator)
    _process.allocator = _from_device if allocator is None else allocator


class using_allocator:  # noqa: N801 - reads as a statement: with using_allocator(pool.malloc)
    """Choose the allocator of the calling thread inside a ``with`` block.

    The array library of the target follows: CuPy on a GPU, NumPy on the CPU target (through the
    compiled extension). Arrays made inside may be used after the block; their memory goes back to
    where it came from. Leaving puts back what was current on entry.

    Parameters
    ----------
    allocator : callable, optional
        Takes a size in bytes and returns a `MemoryPointer`. Without it every allocation goes to the
        device, and NumPy's to the system.

    Raises
    ------
    NotImplementedError
        On entry, where the array library of the target cannot follow, with the reason.

    Examples
    --------
    >>> import gridstride as gs
    >>> pool = gs.cuda.MemoryPool()
    >>> with gs.cuda.using_allocator(pool.malloc):
    ...     x = gs.zeros(1000)
    >>> pool.used_bytes()
    8192
    """

    def __init__(self, allocator: Allocator | None = None) -> None:
        require_allocator(allocator)
        self._allocator = allocator
        self._entries = _native.Entries()

    def __enter__(self) -> using_allocator:
        allocator = _from_device if self._allocator is None else self._allocator
        self._entries.push(_enter(allocator, self._allocator, _followers(_target_of(self._allocator))))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._entries.pop()()


def get_default_memory_pool() -> Any:
    """Return the memory pool of the default target that is used unless another one is chosen.

    Returns
    -------
    MemoryPool
        Or what stands for CuPy's own pool, where CuPy allocates the target's memory.
    """
    target = registry.default()
    return _default_pools.get(target) or _make_default_pool(target)


class _Threads(threading.local):
    def __init__(self) -> None:
        self.allocators: list[Any] = []


class _Process:
    def __init__(self) -> None:
        self.allocator: Any = _DEFAULT


_DEFAULT = object()
_threads = _Threads()
_process = _Process()
_default_pools: dict[Target, Any] = {}


def _enter(allocator: Allocator, for_libraries: Allocator | None, adapters: list[arrays.Adapter]) -> Leave:
    """Make an allocator the thread's, also for array libraries; calling the result puts back what was current."""
    leaves: list[Leave] = []

    def leave() -> None:
        while leaves:
            leaves.pop()()

    try:
        for adapter in adapters:
            leaves.append(adapter.enter_allocator(for_libraries))
    except BaseException:
        leave()
        raise
    current = _threads.allocators
    before = list(current)
    current.append(allocator)
    leaves.append(lambda: current.__setitem__(slice(None), before))
    return leave


def _from_device(size: int) -> MemoryPointer:
    return MemoryPointer(Memory(size), 0)


def _malloc_of_default_pool() -> Allocator:
    malloc: Allocator = get_default_memory_pool().malloc
    return malloc


def _make_default_pool(target: Target) -> Any:
    from gridstride._runtime import library_pool
    from gridstride._runtime.pool import MemoryPool

    pool = library_pool.find(target) or MemoryPool(target=target)
    return _default_pools.setdefault(target, pool)


def _target_of(allocator: Any) -> Target:
    """Return the target whose memory an allocator gives out, where it says so, or the default one."""
    owner = getattr(allocator, "__self__", allocator)
    target: Target | None = None if isinstance(owner, type) else getattr(owner, "target", None)
    return registry.default() if target is None else target


def _followers(target: Target) -> list[arrays.Adapter]:
    """Return the adapters of the array libraries that take memory of a target."""
    return [] if "no memory" in target.features else arrays.allocating_adapters(target.device_types)


def _give_pool_to_graph(recording: Capture) -> Leave:
    """Let what is allocated during a capture come from a pool that lives as long as the graph.

    Else its memory would be given out again while the graph goes on to use it.
    """
    from gridstride._runtime.pool import MemoryPool

    pool = MemoryPool(target=recording.target)
    recording.kept.append(pool)
    device_types = recording.target.device_types
    followers = [each for each in arrays.loaded_adapters() if each.allocation_device_type in device_types]
    return _enter(pool.malloc, pool.malloc, followers)


capture.at_begin.append(_give_pool_to_graph)
