"""Choose the loop of an elementwise call so that the texts of a kernel stay few: each loop is a text to compile."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from math import prod

from gridstride import _forks
from gridstride.targets.base import Limits
from gridstride.targets.walks import ElementWalk, Loop, LoopWriters

#: Loops that a kernel has for calls that move little, besides those for any layout.
_MOST_LOOPS = 2
#: Rows of fewer bytes are short: loops for them make a larger difference, so there is one more where more than such a
#: part of a cache moves.
_SHORT_ROW, _CACHES_OF_SHORT_ROWS = 64, 1 / 4
#: How many caches full of bytes are little, and what one holds where a device does not say.
_CACHES, _USUAL_CACHE = 2, 32 << 20

_lock = _forks.Lock()


def chosen_loop(kernel: Hashable, writers: LoopWriters, walk: ElementWalk, limits: Limits) -> Loop:
    """Return the loop that is made for a walk, or where a kernel has many the one for any.

    Where little moves, a loop of its own saves a call some microseconds, and takes as long to compile as thousands of
    such calls.

    Parameters
    ----------
    kernel : hashable
        All that texts depend on besides the loop.
    """
    loop = writers.elementwise(walk, limits)
    moved, cache = bytes_moved(walk), limits.attributes.get("L2CacheSize", _USUAL_CACHE)
    more = moved > _CACHES_OF_SHORT_ROWS * cache and _has_short_rows(walk)
    if moved > _CACHES * cache or _is_own(kernel, loop, _MOST_LOOPS + more):
        return loop
    return writers.any_elementwise(walk, limits)


def _is_own(kernel: Hashable, loop: Loop, most: int) -> bool:
    """Return whether a kernel has a loop among so many at most, which it gets where there are fewer."""
    with _lock:
        loops = _loops_of(kernel)
        if len(loops) < most:
            loops.add((loop.name, loop.capacity))
        return (loop.name, loop.capacity) in loops


def bytes_moved(walk: ElementWalk) -> int:
    """Return how many bytes a walk reads and writes at least."""
    return sum(_elements(operand.strides, walk) * operand.itemsize for operand in walk.operands)


def _has_short_rows(walk: ElementWalk) -> bool:
    return walk.shape[0] * max((operand.itemsize for operand in walk.operands), default=1) < _SHORT_ROW


def _elements(strides: tuple[int, ...], walk: ElementWalk) -> int:
    return prod(length for stride, length in zip(strides, walk.shape, strict=True) if stride)


@lru_cache(maxsize=2048)
def _loops_of(kernel: Hashable) -> set[tuple[str, int]]:
    return set()
