"""The pool of one device: segments, their blocks and the books.

A *segment* is memory that the pool took from the device, cut into *blocks* that are in use or free.
Free neighbors become one block again. Blocks belong to an *arena*: where work is asynchronous there
is one for each stream, so that memory which goes back while a kernel still works on it is used again
only behind that kernel.

Memory goes back through a list without a lock, because it may do so at any moment of the garbage
collector, also while the pool is at work; the next request, or question, takes it up.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from operator import index
from typing import Any, TypeVar, cast

from gridstride import _forks, _native, arrays
from gridstride._runtime import hooks, keeping
from gridstride._runtime.allocation import Allocator, is_out_of_memory, out_of_memory
from gridstride._runtime.arena import Arena, Block, Fragmentation
from gridstride._runtime.current import current_stream
from gridstride._runtime.hooks import Piece
from gridstride._runtime.memory import BaseMemory
from gridstride._runtime.pointer import MemoryPointer
from gridstride._runtime.pooled_memory import PooledMemory
from gridstride.errors import OutOfMemoryError
from gridstride.targets.base import EventFlags, Target

#: Bytes that sizes are rounded up to.
_GRANULARITY = 512

Value = TypeVar("Value")

_DEFAULT_STREAM = 0


class DevicePool(_native.DevicePoolRecord):
    """Hold the arenas and the books of one device: what `MemoryPool` and `PinnedMemoryPool` are made of."""

    __slots__ = (
        "_allocate", "_destroyed", "_is_working", "_lock", "_segments", "is_pinned", "limit", "total", "used",
    )  # fmt: skip

    target: Target
    device: int
    #: Blocks that were given back and are not taken up yet.
    returned: list[Block]
    _has_streams: bool
    _arenas: dict[int, Arena]

    def __init__(self, target: Target, device: int, allocate: Allocator, is_pinned: bool = False) -> None:
        self.target = target
        self.device = device
        #: Page-locked memory belongs to no stream, and hooks are not told of it.
        self.is_pinned = is_pinned
        self.limit = 0
        #: Bytes taken from the device, and handed out (not counting what waits in `returned`).
        self.total = self.used = 0
        self.returned = []
        self._allocate = allocate
        self._has_streams = "asynchronous" in target.features and not is_pinned
        self._arenas = {_DEFAULT_STREAM: Arena(_DEFAULT_STREAM)}
        #: Arenas of streams that are gone, maybe with work left.
        self._destroyed: list[Arena] = []
        #: By address. Held here, because the collector also finalizes what only garbage holds: the memory
        #: behind a block that a finalizer gives back would be gone.
        self._segments: dict[int, object] = {}
        self._lock = _forks.RLock()
        #: Set inside `_alone`.
        self._is_working = False

    def malloc(self, size: int) -> MemoryPointer:
        """Hand out memory.

        A block of the right size that was given back a moment ago needs no lock, and no change of the books.
        """
        if type(size) is not int:
            size = index(size)
        rounded = (size + _GRANULARITY - 1) & -_GRANULARITY
        if rounded <= 0:
            return self._nothing(size)
        stream = self._current_stream() if self._has_streams else _DEFAULT_STREAM
        arena = self._arenas.get(stream)
        returned = self.returned
        block = self._pop_returned() if returned else None
        if block is not None and (block.size != rounded or block.arena is not arena):
            returned.append(block)
            block = None
        if block is None:
            block = self._take(rounded, arena) or self._find(rounded, stream)
        memory = _new_memory(PooledMemory)
        memory.pool = self
        memory._block = block
        memory.ptr = address = block.ptr
        memory.size = block.size
        memory.device_id = self.device
        memory.target = self.target
        pointer = _new_pointer(MemoryPointer)
        pointer.mem = memory
        pointer.owner = None
        pointer.ptr = address
        pointer.size = size
        return pointer

    def _take(self, size: int, arena: Arena | None) -> Block | None:
        """Return a free block of exactly this size; None where there is none."""

        def take() -> Block | None:
            blocks = None if arena is None else arena.by_size.get(size)
            if not blocks:
                return None
            block, _ = blocks.popitem()
            block.is_free = False
            self.used += size
            return block

        return self._alone(take)

    def watched_malloc(self, size: int) -> MemoryPointer:
        """Hand out memory and tell the hooks."""
        size = index(size)
        rounded = (size + _GRANULARITY - 1) & -_GRANULARITY
        hooks.tell("malloc_preprocess", Piece(0, rounded, self.device, 0, size))
        pointer = self.malloc(size)
        memory = pointer.mem
        hooks.tell("malloc_postprocess", Piece(memory.ptr, memory.size, self.device, id(memory), size))
        return pointer

    def up_to_date(self) -> DevicePool:
        """Return the same with everything taken up that was given back."""
        keeping.sweep()
        self._alone(_nothing_more)
        return self

    def release(self, stream: int | None = None) -> None:
        """Give free segments back to the device, of all streams or of one."""

        def take_out() -> list[object]:
            arenas = self._all_arenas() if stream is None else self._arenas_of(stream)
            return [segment for arena in arenas for segment in self._without_segments(arena)]

        segments = self._alone(take_out) or []
        segments.clear()  # after the lock: what frees them may come here again

    def free_block_count(self) -> int:
        """Return how many free blocks there are."""
        return len(self._alone(self._free_blocks) or ())

    def fragmentation(self) -> Fragmentation:
        """Return how the memory is cut up."""
        free = [(block.size, block.is_whole) for block in self._alone(self._free_blocks) or ()]
        return Fragmentation(
            total_bytes=self.total,
            used_bytes=self.used,
            free_bytes=self.total - self.used,
            largest_free=max((size for size, _ in free), default=0),
            releasable_bytes=sum(size for size, is_whole in free if is_whole),
            segments=len(self._segments),
            free_blocks=len(free),
        )

    def forget_stream(self, stream: int) -> None:
        """Use the memory of a stream that is about to go for others once its work is done."""
        with self._lock:
            arena = self._arenas.pop(stream, None)
            if arena is not None:
                arena.end = self.target.create_event(EventFlags.NO_TIMING)
                self.target.record_event(arena.end, stream)
                self._destroyed.append(arena)

    def _current_stream(self) -> int:
        """Return the stream in whose order memory is handed out: CuPy's current one where it is loaded, or ours."""
        if "cupy" in sys.modules:
            return _cupy.current_stream(self.device) or _DEFAULT_STREAM
        ours = current_stream(self.target, self.device)
        return _DEFAULT_STREAM if ours is None else ours.ptr

    def _nothing(self, size: int) -> MemoryPointer:
        if size < 0:
            raise ValueError(f"a size in bytes cannot be negative, got {size}")
        return MemoryPointer(BaseMemory(0, 0, self.device, target=self.target), 0)

    def _alone(self, work: Callable[[], Value]) -> Value | None:
        """Take up what was given back, and do something with the arenas, which nobody else does meanwhile.

        A finalizer may come here in the middle of that, in the same thread: it gets None.
        """
        with self._lock:
            if self._is_working:
                return None
            self._is_working = True
            try:
                while (block := self._pop_returned()) is not None:
                    self.used -= block.size
                    arena = block.arena
                    (arena if arena.heir is None else arena.last_heir()).add(block)
                return work()
            finally:
                self._is_working = False

    def _pop_returned(self) -> Block | None:
        try:
            return self.returned.pop()
        except IndexError:  # nothing is left, or another thread was faster
            return None

    def _find(self, size: int, stream: int) -> Block:
        """Return a block that is in use, whatever it takes."""
        block = self._fit_or_grow(size, stream)
        if block is not None:
            return block
        for recover in self._recoveries(size):
            recover()
            self.release()
            block = self._fit_or_grow(size, stream) or self._cut(size, stream)
            if block is not None:
                return block
        raise self._out_of_memory(size)

    def _recoveries(self, size: int) -> Iterator[Callable[[], object]]:
        yield keeping.sweep
        yield gc.collect
        if not self.limit or self.total + size <= self.limit:  # else it is not the device that is full
            yield _release_of_libraries

    def _fit_or_grow(self, size: int, stream: int) -> Block | None:
        largest = size + size // 7 if self.limit else 2 * size
        return self._cut(size, stream, largest) or self._grow(size, stream)

    def _cut(self, size: int, stream: int, largest: int = sys.maxsize) -> Block | None:
        """Return the free block that fits best, cut to size unless little would be left over."""

        def cut() -> Block | None:
            arena = self._arena(stream)
            self._inherit(arena)
            block = arena.best_fit(size, largest)
            if block is not None:
                if block.size - size > block.size // 8:
                    arena.add(block.split(size))
                self.used += block.size
            return block

        return self._alone(cut)

    def _grow(self, size: int, stream: int) -> Block | None:
        """Return a new segment as a block; None where limit or device leave no room."""
        with self._lock:
            if self.limit and self.total + size > self.limit:
                return None
            self.total += size  # before the memory is there, so that two threads respect the limit
        try:
            segment = self._segment(size)
        except BaseException as error:
            with self._lock:
                self.total -= size
            if is_out_of_memory(error):
                return None
            raise
        with self._lock:
            self._segments[segment.ptr] = segment
            self.used += size
            return Block(segment.ptr, size, self._arena(stream), segment)

    def _segment(self, size: int) -> Any:
        if self.is_pinned or not hooks.entered:
            return self._allocate(size)
        hooks.tell("alloc_preprocess", Piece(0, size, self.device))
        segment = self._allocate(size)
        hooks.tell("alloc_postprocess", Piece(segment.ptr, size, self.device))
        return segment

    def _arena(self, stream: int) -> Arena:
        arena = self._arenas.get(stream)
        if arena is None:
            arena = self._arenas[stream] = Arena(stream)
        return arena

    def _inherit(self, arena: Arena) -> None:
        """Take over the blocks of streams that are gone and done."""
        for gone in list(self._destroyed):
            if self.target.event_done(gone.end):
                self.target.destroy_event(gone.end)
                self._destroyed.remove(gone)
                gone.heir = arena
                for block in gone.blocks():
                    gone.remove(block)
                    arena.add(block)

    def _all_arenas(self) -> list[Arena]:
        return [*self._arenas.copy().values(), *self._destroyed]

    def _arenas_of(self, stream: int) -> list[Arena]:
        return [arena for arena in self._all_arenas() if arena.stream == stream]

    def _without_segments(self, arena: Arena) -> list[object]:
        """Take the free segments out of an arena and return them."""
        segments = []
        for block in arena.blocks():
            if block.is_whole:
                arena.remove(block)
                self.total -= block.size
                segments.append(self._segments.pop(block.ptr))
        return segments

    def _free_blocks(self) -> list[Block]:
        return [block for arena in self._all_arenas() for block in arena.blocks()]

    def _out_of_memory(self, size: int) -> OutOfMemoryError:
        return out_of_memory(self.target, self.device, size, self.used, self.total - self.used, self.limit)


def _nothing_more() -> None:
    pass


def _release_of_libraries() -> None:
    """Ask the array libraries that are loaded to give back what they hold free."""
    for adapter in arrays.loaded_adapters():
        adapter.release_cached()


_new_memory, _new_pointer = PooledMemory.__new__, MemoryPointer.__new__
_cupy = cast(arrays.Adapter, arrays.adapter_of("cupy"))
