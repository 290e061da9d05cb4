"""Folds of so few elements that one block of threads loads all of them at once."""

from __future__ import annotations

from math import prod

from gridstride.targets.block_loops.fold_loops import fold_loop, fold_space_bytes, room_of
from gridstride.targets.block_loops.sizes import packet_length
from gridstride.targets.walks import (
    THREADS,
    FoldLoop,
    FoldWalk,
    axes_bytes,
    configuration,
    fits_a_word,
    flag,
    inputs_along,
)

_HEADER = "gridstride/fold_small.h"
#: Packets that a thread loads at once.
_AT_ONCE = 4


def is_small(walk: FoldWalk) -> bool:
    """Return whether one block can load all elements at once; where they lie makes no difference."""
    if not walk.inputs or len(walk.fold) > 1 or prod(walk.kept) > 1:
        return False
    packets, rest = divmod(walk.fold[0], packet_length(walk.inputs))
    return rest == 0 and 0 < packets <= _AT_ONCE * THREADS


def fold_small(walk: FoldWalk) -> FoldLoop:
    """Return the fold of so few elements that one block loads all of them at once."""
    capacity = room_of(walk)
    length = packet_length(walk.inputs)
    packets = walk.fold[0] // length
    are_words = all(
        fits_a_word(each.itemsize)
        and each.fold_strides[0] == each.itemsize
        and each.address % (length * each.itemsize) == 0
        for each in walk.inputs
    )
    inputs = inputs_along(walk, capacity)
    fold_axes, kept_axes = axes_bytes(packets, (packets,), capacity), axes_bytes(1, walk.kept, capacity)
    space = fold_space_bytes(walk, capacity, packets, 1, THREADS, kept_axes, fold_axes, walk.kept_numbers)
    name = f"fold_small<{flag(are_words)}, {_AT_ONCE}>"
    return fold_loop((_HEADER, name), walk, space, inputs, configuration(1, THREADS))
