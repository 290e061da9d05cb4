"""Folds by blocks of threads across rows that no other loop is there for: along any axes, of any columns."""

from __future__ import annotations

from math import prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.fold_columns import parts_of_rows
from gridstride.targets.block_loops.fold_loops import fold_loop, fold_space_bytes, room_of
from gridstride.targets.block_loops.sizes import ceil_div, packet_length
from gridstride.targets.walks import (
    THREADS,
    FoldLoop,
    FoldWalk,
    axes_bytes,
    configuration,
    inputs_across,
    power_of_two_from,
)

_HEADER = "gridstride/fold_across.h"


def fold_across(walk: FoldWalk, limits: Limits) -> FoldLoop:
    """Return the fold in which threads take packets of the innermost axis that is kept, from rows anywhere."""
    length = packet_length(walk.inputs)
    row, *outer = walk.kept
    packets = ceil_div(row, length)
    columns = packets * prod(outer)
    total = prod(walk.fold)
    group = min(THREADS if total < 64 else 32, power_of_two_from(columns))
    height = THREADS // group
    blocks = ceil_div(columns, group)
    parts = parts_of_rows(blocks, total, height, limits)
    part = max(1, ceil_div(total, parts))
    parts = max(1, ceil_div(total, part))
    fold_axes = axes_bytes(total, walk.fold, capacity := room_of(walk))
    kept_axes = axes_bytes(columns, (packets, *outer), capacity)
    inputs = inputs_across(walk, capacity)
    space = fold_space_bytes(
        walk, capacity, part, parts, group, kept_axes, fold_axes, (0, *walk.kept_numbers[1:])
    )
    how = configuration(blocks, THREADS, parts)
    return fold_loop((_HEADER, "fold_across<4>"), walk, space, inputs, how)
