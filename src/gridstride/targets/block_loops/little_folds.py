"""Folds by blocks of threads of so few elements that any loop takes a moment: one text serves all layouts."""

from __future__ import annotations

from math import prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.spaces import (
    MOST_PARTS,
    blocks_for,
    fold_loop,
    fold_space_bytes,
    folds_innermost,
    room_of,
)
from gridstride.targets.walks import (
    THREADS,
    FoldLoop,
    FoldWalk,
    axes_bytes,
    configuration,
    inputs_by_elements,
    power_of_two_from,
)

_HEADER = "gridstride/fold_little.h"
#: Elements that are little.
_LITTLE = 1 << 18
#: Elements that a thread loads at once, how often it does before others share the work, and how often then: a second
#: launch takes as long as several turns.
_AT_ONCE, _MANY_TURNS, _TURNS = 4, 8, 2
#: Neighboring threads that have neighboring results.
_NEIGHBORS = 32


def reads_little(walk: FoldWalk) -> bool:
    """Return whether so few elements are folded that layouts make no difference."""
    return 0 < prod(walk.kept) * prod(walk.fold) <= _LITTLE


def little_fold(walk: FoldWalk, limits: Limits) -> FoldLoop:
    """Return the loop for any fold: others would save a microsecond, and take long to compile."""
    results, total, capacity = prod(walk.kept), prod(walk.fold), room_of(walk)
    sharing = min(THREADS, power_of_two_from(blocks_for(total, _AT_ONCE)))
    is_across = not folds_innermost(walk)
    if is_across:
        sharing = max(THREADS // power_of_two_from(results), min(sharing, THREADS // _NEIGHBORS), 1)
    blocks = blocks_for(results * sharing, THREADS)
    turns, parts = blocks_for(total, sharing * _AT_ONCE), 1
    if turns > _MANY_TURNS and blocks < limits.multiprocessors:
        parts = max(1, min(limits.multiprocessors // blocks, blocks_for(turns, _TURNS), MOST_PARTS))
    part = blocks_for(total, parts)
    parts = blocks_for(total, part)
    group = THREADS // sharing if is_across else sharing
    space = fold_space_bytes(
        walk, capacity, part, parts, group,
        axes_bytes(results, walk.kept, capacity), axes_bytes(total, walk.fold, capacity), walk.kept_numbers,
        int(is_across),
    )  # fmt: skip
    inputs = inputs_by_elements(walk, capacity)
    how = configuration(blocks, THREADS, parts)
    return fold_loop((_HEADER, f"fold_little<{_AT_ONCE}>"), walk, space, inputs, how)
