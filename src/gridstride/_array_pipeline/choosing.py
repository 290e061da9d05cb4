"""Choose the loop of an elementwise call so that the texts of a kernel stay few: each loop is a text to compile."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import NamedTuple

from gridstride import _forks
from gridstride.targets.base import Limits
from gridstride.targets.walks import ElementWalk, Loop, LoopWriters

#: Loops that a kernel has at once, besides those for any layout.
_MOST_LOOPS = 2
#: How many caches full of bytes are little, and what one holds where a device does not say.
_CACHES, _USUAL_CACHE = 2, 32 << 20
#: The same along rows of fewer bytes, for which loops of their own make a larger difference.
_CACHES_OF_SHORT_ROWS, _SHORT_ROW = 1 / 4, 64

_lock = _forks.Lock()


class Choice(NamedTuple):
    """Hold a loop, and whether a call that comes again keeps it."""

    loop: Loop
    is_final: bool


@dataclass(slots=True)
class _Kernel:
    """What is known of a kernel: its own loops, how many calls moved much, and how many of them came again."""

    loops: set[tuple[str, int]] = field(default_factory=set)
    large: int = 0
    again: int = 0


def chosen_loop(
    kernel: Hashable, writers: LoopWriters, walk: ElementWalk, limits: Limits, came_again: bool = False
) -> Choice:
    """Return the loop that is made for a walk, or where a kernel has many the one for any.

    A loop of its own saves a call microseconds where little moves, and up to three quarters of its time where much
    does, and takes as long to compile as thousands of such calls. So little calls share loops, and large ones do
    until they come again, unless those before them did.

    Parameters
    ----------
    kernel : hashable
        All that texts depend on besides the loop.
    came_again : bool
        Whether the choice for the same call was not final, or nobody knows; without effect where little moves.
    """
    loop = writers.elementwise(walk, limits)
    is_large = _moves_much(walk, limits.attributes.get("L2CacheSize", _USUAL_CACHE))
    chosen = loop if _is_own(kernel, loop, is_large, came_again) else writers.any_elementwise(walk, limits)
    return Choice(chosen, came_again or not is_large)


def _is_own(kernel: Hashable, loop: Loop, is_large: bool, came_again: bool) -> bool:
    """Return whether a kernel has a loop, which it gets where it has few or large calls come again."""
    with _lock:
        known = _known(kernel)
        comes_again = came_again or 0 < known.large <= 2 * known.again
        if is_large:
            known.large += not came_again
            known.again += came_again
        if (is_large and comes_again) or len(known.loops) < _MOST_LOOPS:
            known.loops.add((loop.name, loop.capacity))
        return (loop.name, loop.capacity) in known.loops


def bytes_moved(walk: ElementWalk) -> int:
    """Return how many bytes a walk reads and writes at least."""
    return sum(_elements(operand.strides, walk) * operand.itemsize for operand in walk.operands)


def _moves_much(walk: ElementWalk, cache: int) -> bool:
    row = walk.shape[0] * max((operand.itemsize for operand in walk.operands), default=1)
    return bytes_moved(walk) > (_CACHES_OF_SHORT_ROWS if row < _SHORT_ROW else _CACHES) * cache


def _elements(strides: tuple[int, ...], walk: ElementWalk) -> int:
    return prod(length for stride, length in zip(strides, walk.shape, strict=True) if stride)


@lru_cache(maxsize=2048)
def _known(kernel: Hashable) -> _Kernel:
    return _Kernel()
