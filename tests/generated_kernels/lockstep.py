"""Run the statements of a kernel for all threads of a block at once, one after another, in NumPy.

A thread is a place in each array. Programs without races leave the same memory in this order as in any other,
so what comes out is what every target must give. Races are errors here: each element of shared memory knows
who touched it since the last barrier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
WARP = 32
DTYPES = {
    "int": np.dtype("i4"), "unsigned": np.dtype("u4"), "long long": np.dtype("i8"),
    "unsigned long long": np.dtype("u8"), "float": np.dtype("f4"), "double": np.dtype("f8"),
    "bool": np.dtype("?"),
}  # fmt: skip
ATOMICS: dict[str, Any] = {
    "atomicAdd": np.add, "atomicMax": np.maximum, "atomicMin": np.minimum,
    "atomicXor": np.bitwise_xor, "atomicOr": np.bitwise_or, "atomicAnd": np.bitwise_and,
}  # fmt: skip


class Block:
    """A block of threads: what they hold, and which of them run.

    Attributes
    ----------
    threads, index, blocks : int
        Of this block; its place in the grid; how many blocks there are.
    memory : dict of numpy.ndarray
        Arrays that all blocks see.
    numbers : dict
        Parameters that are numbers.
    variables : dict of numpy.ndarray
        An element for each thread.
    tiles : dict of Tile
        Shared memory.
    running, active : numpy.ndarray of bool
        Threads that have not returned, and those that execute the present statement.
    """

    def __init__(
        self, threads: int, index: int, blocks: int, memory: dict[str, Array], numbers: dict[str, Any]
    ) -> None:
        self.threads, self.index, self.blocks = threads, index, blocks
        self.memory, self.numbers = memory, numbers
        self.variables: dict[str, Array] = {}
        self.tiles: dict[str, Tile] = {}
        self.place = np.arange(threads)
        self.lane, self.warp = self.place % WARP, self.place // WARP
        self.running = np.ones(threads, bool)
        self.active = self.running.copy()
        self._left, self._gone = self._nobody(), self._nobody()

    def assign(self, name: str, type_: str, value: Array) -> None:
        value = np.broadcast_to(np.asarray(value).astype(DTYPES[type_]), self.threads)
        before = self.variables.get(name, value)
        self.variables[name] = np.where(self.active, value, before)

    # ---- control flow ----

    def run(self, statements: Iterable[Statement]) -> None:
        for statement in statements:
            if not self.active.any():
                return
            statement.run(self)

    @contextmanager
    def only(self, chosen: Array) -> Iterator[None]:
        """Let only some of the active threads go on; those that did not leave are back afterwards."""
        before = self.active
        self.active = before & chosen
        yield
        self.active = before & self.running & ~self._gone

    def loop(
        self,
        test: Callable[[Block], Array],
        body: Callable[[Block], None],
        step: Callable[[Block], None],
        *,
        is_entered: bool = False,
    ) -> None:
        """Repeat a body for the threads whose test holds; with `is_entered` the first test is left out."""
        before, left, gone = self.active, self._left, self._gone
        inside, self._left = before, self._nobody()
        while True:
            self.active = inside
            if not is_entered:
                inside = inside & test(self)
            is_entered = False
            if not inside.any():
                break
            self.active, self._gone = inside, self._nobody()
            body(self)
            inside = inside & self.running & ~self._left
            self.active = inside
            step(self)
        self._left, self._gone = left, gone
        self.active = before & self.running & ~gone

    def leave_loop(self) -> None:
        self._left = self._left | self.active
        self.skip_step()

    def skip_step(self) -> None:
        self._gone = self._gone | self.active
        self.active = self._nobody()

    def leave_kernel(self) -> None:
        self.running = self.running & ~self.active
        self.active = self._nobody()

    def barrier(self) -> None:
        assert np.array_equal(self.active, self.running), "a barrier that not all threads reach"
        for tile in self.tiles.values():
            tile.forget()

    # ---- collectives ----

    def shuffled(self, value: Array, source: Array) -> Array:
        """Return the values of other threads of the block, which must take part."""
        assert self.active[source[self.active]].all(), "a value of a thread that takes no part"
        return value[source]

    def reduced(self, operation: Any, value: Array, group: Array, start: Any) -> Array:
        """Return for each thread what an operation makes of the values of the active threads of its group."""
        result = np.full(self.threads, start, value.dtype)
        operation.at(result, group[self.active], value[self.active])
        return result[group]

    def ballot(self, predicate: Array, group: Array) -> Array:
        bits = np.where(predicate, np.uint32(1) << self.lane.astype("u4"), np.uint32(0)).astype("u4")
        return self.reduced(np.bitwise_or, bits, group, 0)

    def matching(self, value: Array, group: Array) -> Array:
        """Return bits of the lanes whose value is the thread's own."""
        same = (value[:, None] == value) & (group[:, None] == group) & self.active
        return (same * (np.uint64(1) << self.lane.astype("u8"))).sum(axis=1).astype("u4")

    def _nobody(self) -> Array:
        return np.zeros(self.threads, bool)


class Expression(NamedTuple):
    """A value of each thread: its type, its text, and what computes it."""

    type: str
    text: str
    value: Callable[[Block], Array]


class Statement(NamedTuple):
    """Lines of a kernel, and what they do."""

    text: str
    run: Callable[[Block], None]


class _Accesses:
    """The first and the last of the threads that touched each element."""

    def __init__(self, size: int) -> None:
        self._first, self._last = np.full(size, np.iinfo("i8").max), np.full(size, -1)

    def note(self, index: Array, thread: Array) -> None:
        np.minimum.at(self._first, index, thread)
        np.maximum.at(self._last, index, thread)

    def by_others(self, index: Array, thread: Array) -> bool:
        return bool(((self._first[index] < thread) | (self._last[index] > thread)).any())


class Tile:
    """An array in shared memory."""

    def __init__(self, size: int, type_: str) -> None:
        self.values = np.zeros(size, DTYPES[type_])
        self.forget()

    def forget(self) -> None:
        """Start anew, after a barrier."""
        size = len(self.values)
        self._reads, self._writes, self._atomics = _Accesses(size), _Accesses(size), _Accesses(size)

    def read(self, block: Block, index: Array) -> Array:
        self._note(block, index, self._reads, (self._writes, self._atomics))
        return self.values[index]

    def write(self, block: Block, index: Array, value: Array) -> None:
        self._note(block, index, self._writes, (self._reads, self._writes, self._atomics))
        self.values[index[block.active]] = value[block.active]

    def change(self, block: Block, operation: Any, index: Array, value: Array) -> None:
        """Change elements atomically."""
        self._note(block, index, self._atomics, (self._reads, self._writes))
        operation.at(self.values, index[block.active], value[block.active])

    @staticmethod
    def _note(block: Block, index: Array, own: _Accesses, others: Iterable[_Accesses]) -> None:
        index, thread = index[block.active], block.place[block.active]
        own.note(index, thread)
        assert not any(each.by_others(index, thread) for each in others), "a race"
