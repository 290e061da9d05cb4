"""How planes that are folded are cut into what blocks bring to shared memory, and results into what threads fold."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, hypot, log2, prod, sqrt
from typing import NamedTuple

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.sizes import ceil_div, power_of_two_up_to
from gridstride.targets.walks import LARGEST_WORD, LEAST_WORD, THREADS, WARP, FoldWalk

#: Blocks that a multiprocessor holds: as many as it has threads for, or fewer of more room; how much slower these are.
_MOST_HELD, _FEWER_HELD, _SLOWER = 8, 5, 1.1
#: Bytes of a block's shared memory for itself, and between words.
_RESERVED = 1152
#: Blocks for each multiprocessor, if there are planes enough; numbers of planes that are tried, about.
_LEAST_BLOCKS, _COUNTS = 2, 16
#: Bytes between planes in shared memory that would all begin in the same banks, as in the header.
_GAP = 16
#: Banks of shared memory, of words of four bytes; warps of which is asked how many threads wait for each other.
_BANKS, _WARPS = 32, 4
#: Instructions for an element, for a result, for two threads that join; how many more these are for structures.
_ELEMENT, _RESULT, _JOINING, _OF_STRUCTURES = 5, 45, 20, 2
#: Instructions for which there is time while a word comes out of a bank, and while a byte comes out of memory.
_WORD, _BYTE = 4, 8
#: Cycles until memory comes, and those of an element and of a result of a thread alone; lanes of a multiprocessor.
_LATENCY, _ELEMENT_TIME, _RESULT_TIME, _LANES = 2000, 10, 100, 128


class Cut(NamedTuple):
    """Say how planes are cut.

    Attributes
    ----------
    room, held : int
        Bytes that a block has room for, and how many blocks a multiprocessor holds then.
    planes : int
        That a block takes.
    group : int
        Threads that share a result.
    gap : int
        Bytes between planes in shared memory.
    """

    room: int
    held: int
    planes: int
    group: int
    gap: int


def best_cut(walk: FoldWalk, limits: Limits) -> Cut | None:
    """Return how planes are best cut; None where they are too large."""
    size = prod(walk.kept[:-1]) * prod(walk.fold) * _itemsizes(walk)
    rooms = [(room, held) for room, held in _rooms(limits) if size <= room]
    if not rooms:
        return None
    gaps = (0, _GAP) if _are_words(walk) else (0,)
    groups = [1 << k for k in range(min(WARP, walk.fold[-1]).bit_length())]
    enough = ceil_div(walk.kept[-1], _LEAST_BLOCKS * limits.multiprocessors)
    waiting = {(group, gap): _WORD * _meeting(walk, group, gap) for group in groups for gap in gaps}
    cuts = (
        Cut(room, held, planes, group, gap)
        for room, held in rooms
        for group, gap in waiting
        for planes in _counts(walk, min(room // (size + gap), enough))
    )
    return min(cuts, key=lambda cut: _cost(walk, cut, waiting[cut.group, cut.gap]), default=None)


def _itemsizes(walk: FoldWalk) -> int:
    return sum(each.itemsize for each in walk.inputs)


def _rooms(limits: Limits) -> Iterator[tuple[int, int]]:
    """Yield how many bytes a block has room for, and how many blocks a multiprocessor holds then."""
    for held in (_MOST_HELD, _FEWER_HELD):
        room = min(limits.shared_memory_per_block_optin // held, limits.shared_memory_per_block) - _RESERVED
        yield room // LARGEST_WORD * LARGEST_WORD, held


def _are_words(walk: FoldWalk) -> bool:
    """Return whether planes of a single input are whole words, so that gaps may be between them."""
    first, *others = walk.inputs
    return not others and first.address % LARGEST_WORD == first.strides[-1] % LARGEST_WORD == 0


def _counts(walk: FoldWalk, most: int) -> range:
    """Return how many planes a block may take: such that warps begin with sectors of results, if these are many."""
    unit = min(WARP // gcd(WARP, prod(walk.kept[:-1])), power_of_two_up_to(max(1, most // 8)))
    return range(most - most % unit, most // 2, -unit * max(1, most // (_COUNTS * unit)))


def _cost(walk: FoldWalk, cut: Cut, waiting: float) -> float:
    """Return about how long an element takes: more where less than what a multiprocessor has room for is on its way."""
    results, folded, longest = cut.planes * prod(walk.kept[:-1]), prod(walk.fold), walk.fold[-1]
    threads, joined = results * cut.group, log2(cut.group)
    # Threads of a group have as many elements as the first, and those of a warp as many results.
    idle = ceil_div(longest, cut.group) * cut.group / longest * ceil_div(threads, WARP) * WARP / threads
    own = (_ELEMENT + (_RESULT + _JOINING * joined) * cut.group / folded) * idle
    alone = _ELEMENT_TIME * folded / cut.group + _RESULT_TIME * (1 + joined / 3)
    held = cut.held * results * folded
    times = (
        own * (_OF_STRUCTURES if walk.in_structures else 1),
        waiting,
        _BYTE * _itemsizes(walk),
        (_LATENCY + alone * ceil_div(threads, THREADS)) * _LANES / held,
    )
    return hypot(*times) * (_SLOWER if cut.held < _MOST_HELD else 1) / sqrt(held)


def _meeting(walk: FoldWalk, group: int, gap: int) -> float:
    """Return how many words of one bank the threads of a warp ask for at once."""
    operand, total = max(walk.inputs, key=lambda each: each.itemsize), 0
    strides = (*operand.strides[:-1], operand.strides[-1] + gap)
    for warp in range(_WARPS):
        words: list[set[int]] = [set() for _ in range(_BANKS)]
        for thread in range(warp * WARP, (warp + 1) * WARP):
            result, byte = thread // group, thread % group * operand.fold_strides[-1]
            for length, stride in zip(walk.kept, strides, strict=True):
                byte += result % length * stride
                result //= length
            words[byte // LEAST_WORD % _BANKS].add(byte // LEAST_WORD)
        total += max(map(len, words))
    return total / _WARPS * max(1, operand.itemsize // LEAST_WORD)
