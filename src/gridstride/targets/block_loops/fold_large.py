"""Folds of large values by blocks of threads: no thread has more than one, and shared memory holds none."""

from __future__ import annotations

from math import prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.fold_loops import WORKSPACE_AT, fold_space_bytes, room_of
from gridstride.targets.block_loops.sizes import MOST_PARTS, ceil_div
from gridstride.targets.walks import (
    THREADS,
    WARP,
    FoldLoop,
    FoldWalk,
    Loop,
    axes_bytes,
    configuration,
    inputs_along,
    walk_of_parts,
    walked_operands,
)

_HEADER, _NAME = "gridstride/fold_large.h", "fold_large"
#: Elements that a lane folds before another warp shares the work.
_ENOUGH = 16


def fold_large(walk: FoldWalk, limits: Limits) -> FoldLoop:
    """Return a fold in which a warp shares a result, or a thread has one where they are many or short."""
    results, total = prod(walk.kept), prod(walk.fold)
    wanted = limits.multiprocessors * THREADS
    group = 1 if results >= wanted or total < WARP else WARP
    parts = max(1, min(wanted // (results * group), total // (group * _ENOUGH), MOST_PARTS))
    part = max(1, ceil_div(total, parts))
    parts = max(1, ceil_div(total, part))
    capacity = room_of(walk)
    kept, fold = (axes_bytes(prod(each), each, capacity) for each in (walk.kept, walk.fold))
    space = fold_space_bytes(walk, capacity, part, parts, group, kept, fold, walk.kept_numbers)
    inputs = inputs_along(walk, capacity)
    outputs = walked_operands(walk.outputs, capacity)
    how = configuration(ceil_div(results * group, THREADS), THREADS, parts)
    joining = _joining(results, parts, capacity) if parts > 1 else None
    return FoldLoop(
        _HEADER, _NAME, "", capacity, space, (*inputs, *outputs), how, parts, WORKSPACE_AT, joining
    )


def _joining(results: int, parts: int, capacity: int) -> Loop:
    """Return the fold of the parts of each result by a warp."""
    walk = walk_of_parts(results, parts)
    kept, fold = (axes_bytes(each, (each,), capacity) for each in (results, parts))
    space = fold_space_bytes(walk, capacity, parts, 1, WARP, kept, fold, (0,))
    how = configuration(ceil_div(results * WARP, THREADS), THREADS)
    return Loop(_HEADER, _NAME, "", capacity, space, (), how)
