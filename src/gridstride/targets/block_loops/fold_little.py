"""Folds by blocks of threads of so few elements that any loop takes a moment: one text serves all layouts."""

from __future__ import annotations

from math import prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.fold_lines import has_long_lines
from gridstride.targets.block_loops.fold_loops import fold_loop, fold_space_bytes, folds_innermost, room_of
from gridstride.targets.block_loops.sizes import MOST_PARTS, ceil_div
from gridstride.targets.walks import (
    THREADS,
    FoldLoop,
    FoldWalk,
    Ints,
    axes_bytes,
    configuration,
    folded_bytes,
    power_of_two_from,
)

_HEADER = "gridstride/fold_little.h"
#: Elements that are little; the same of long lines of words, for which one more text takes as long as memory does, and
#: where elements of an input are read several times, for which others take less: of fewer, by some microseconds.
_LITTLE, _LITTLE_OF_OTHERS = 1 << 23, 1 << 21
#: Elements that a thread loads at once, how often it does before others share the work, and how often then: a second
#: launch takes as long as several turns.
_AT_ONCE, _MANY_TURNS, _TURNS = 4, 8, 2
#: Blocks that a multiprocessor is given where there are as many.
_HELD = 4
#: Room for axes, so that most walks have one text.
_LEAST_ROOM = 8
#: Neighboring threads that have neighboring results, and those that share one at least where each has several turns.
_NEIGHBORS, _LEAST_SHARING = 32, 4


def reads_little(walk: FoldWalk) -> bool:
    """Return whether so few elements are folded that layouts make no difference."""
    count = prod(walk.kept) * prod(walk.fold)
    if not 0 < count <= _LITTLE:
        return False
    return count <= _LITTLE_OF_OTHERS or not (has_long_lines(walk) or _reads_again(walk))


def _reads_again(walk: FoldWalk) -> bool:
    lengths = (*walk.kept, *walk.fold)
    return any(
        stride == 0 and length > 1
        for each in walk.inputs
        for stride, length in zip((*each.strides, *each.fold_strides), lengths, strict=True)
    )


def fold_little(walk: FoldWalk, limits: Limits) -> FoldLoop:
    """Return the loop for any fold: others would save a few microseconds, and take long to compile."""
    results, total, capacity = prod(walk.kept), prod(walk.fold), room_of(walk, _LEAST_ROOM)
    is_across = not folds_innermost(walk)
    held = _HELD * limits.multiprocessors
    sharing = _sharing(results, total, is_across, held)
    blocks = ceil_div(results * sharing, THREADS)
    turns, parts = ceil_div(total, sharing * _AT_ONCE), 1
    if turns > _MANY_TURNS and 2 * blocks <= held:
        parts = min(held // blocks, ceil_div(turns, _TURNS), MOST_PARTS)
    part = ceil_div(total, parts)
    parts = ceil_div(total, part)
    group = THREADS // sharing if is_across else sharing
    told = walk._replace(
        fold_numbers=_beyond(walk.fold_numbers, walk.fold), positions=_beyond(walk.positions, walk.fold)
    )
    space = fold_space_bytes(
        told, capacity, part, parts, group,
        axes_bytes(results, walk.kept, capacity), axes_bytes(total, walk.fold, capacity), walk.kept_numbers,
        int(is_across),
    )  # fmt: skip
    inputs = tuple(
        folded_bytes(
            each.address, each.itemsize, _beyond(each.fold_strides, walk.fold), each.strides, capacity
        )
        for each in walk.inputs
    )
    how = configuration(blocks, THREADS, parts)
    # One text for calls in parts and others.
    loop = fold_loop(
        (_HEADER, f"fold_little<{_AT_ONCE}>"), walk, space, inputs, how, capacity=capacity, always_joins=True
    )
    return loop._replace(joining=loop.joining and loop.joining._replace(name="fold_little_parts"))


def _sharing(results: int, total: int, is_across: bool, held: int) -> int:
    """Return how many threads share a result: fewer have more to load, and less to join."""
    sharing = min(THREADS, power_of_two_from(ceil_div(total, _AT_ONCE)))
    if results * sharing > held * THREADS:
        enough = power_of_two_from(ceil_div(held * THREADS, results))
        sharing = min(power_of_two_from(ceil_div(total, 2 * _AT_ONCE)), max(_LEAST_SHARING, enough))
    if is_across:
        return max(THREADS // power_of_two_from(results), min(sharing, THREADS // _NEIGHBORS), 1)
    return sharing


def _beyond(strides: Ints, shape: Ints) -> Ints:
    """Return by how much a step along each axis is more than one along all of the axis before."""
    before = (0, *(stride * length for stride, length in zip(strides, shape, strict=True)))
    return tuple(stride - whole for stride, whole in zip(strides, before, strict=False))
