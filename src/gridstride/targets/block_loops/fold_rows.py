"""Folds by blocks of threads along several axes, of which elements lie closest along the innermost."""

from __future__ import annotations

from math import prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.fold_loops import (
    counter_of,
    fold_loop,
    fold_space_bytes,
    has_words,
    places_ascend,
    room_of,
)
from gridstride.targets.block_loops.sizes import (
    MOST_BLOCKS,
    MOST_PARTS,
    ceil_div,
    packet_length,
    power_of_two_up_to,
    threads_for,
)
from gridstride.targets.walks import (
    THREADS,
    WARP,
    FoldLoop,
    FoldWalk,
    axes_bytes,
    configuration,
    flag,
    inputs_along,
)

_HEADER, _FOUND_IN_ROWS = "gridstride/fold_rows.h", "gridstride/found_in_rows.h"
#: Axes of rows along which threads count on; along more they divide.
_COUNTED_AXES = 3
#: Packets that a thread loads at once.
_AT_ONCE = 4


def fold_rows(walk: FoldWalk, limits: Limits) -> FoldLoop:
    """Return the fold of packets along the innermost axis, counted on from row to row."""
    length = packet_length(walk.inputs)
    row, *outer = walk.fold
    are_words = row % length == 0 and has_words(walk, length, along=True)
    # Where places are looked for in packets of several elements, these are words, wherever rows begin.
    finds_places = (
        walk.keeps_places
        and places_ascend(walk)
        and row >= length > 2
        and walk.inputs[0].fold_strides[0] == walk.inputs[0].itemsize
    )
    packets = ceil_div(row + (length - 1 if finds_places and not are_words else 0), length)
    results = prod(walk.kept)
    total = packets * prod(outer)
    wanted, group = MOST_BLOCKS * limits.multiprocessors, min(WARP, threads_for(total))
    if results * group < wanted * THREADS:
        group = min(THREADS, power_of_two_up_to(total))
    blocks = ceil_div(results * group, THREADS)
    parts = max(1, min(ceil_div(wanted, blocks) if blocks < wanted else 1, total // (group * 16), MOST_PARTS))
    whole = group * _AT_ONCE
    part = (total + parts * whole - 1) // (parts * whole) * whole
    parts = ceil_div(total, part)
    fold_axes = axes_bytes(total, (packets, *outer), capacity := room_of(walk))
    kept_axes = axes_bytes(results, walk.kept, capacity)
    inputs = inputs_along(walk, capacity)
    space = fold_space_bytes(walk, capacity, part, parts, group, kept_axes, fold_axes, walk.kept_numbers)
    how = configuration(blocks, THREADS, parts)
    axes = len(outer) if len(outer) <= _COUNTED_AXES and max(outer) < 1 << 31 else 0
    name = f"fold_rows<{_AT_ONCE}, {flag(are_words)}, {axes}, {counter_of(walk)}>"
    return fold_loop(
        (_HEADER, name), walk, space, inputs, how, finds_places=_FOUND_IN_ROWS if finds_places else ""
    )
