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
#: How many caches full of bytes are little; the same along rows of fewer bytes, for which loops of their own make a
#: larger difference; and what a cache holds where a device does not say.
_CACHES, _CACHES_OF_SHORT_ROWS, _SHORT_ROW, _USUAL_CACHE = 2, 1 / 4, 64, 32 << 20

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
    if bytes_moved(walk) > _little(walk) * limits.attributes.get("L2CacheSize", _USUAL_CACHE):
        return loop
    with _lock:
        loops = _loops_of(kernel)
        if len(loops) < _MOST_LOOPS:
            loops.add((loop.name, loop.capacity))
        is_own = (loop.name, loop.capacity) in loops
    return loop if is_own else writers.any_elementwise(walk, limits)


def bytes_moved(walk: ElementWalk) -> int:
    """Return how many bytes a walk reads and writes at least."""
    return sum(_elements(operand.strides, walk) * operand.itemsize for operand in walk.operands)


def _little(walk: ElementWalk) -> float:
    row = walk.shape[0] * max((operand.itemsize for operand in walk.operands), default=1)
    return _CACHES_OF_SHORT_ROWS if row < _SHORT_ROW else _CACHES


def _elements(strides: tuple[int, ...], walk: ElementWalk) -> int:
    return prod(length for stride, length in zip(strides, walk.shape, strict=True) if stride)


@lru_cache(maxsize=2048)
def _loops_of(kernel: Hashable) -> set[tuple[str, int]]:
    return set()
