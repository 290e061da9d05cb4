"""Folds by blocks of threads of all rows of a few columns, which are taken as they lie."""

from __future__ import annotations

from math import gcd, prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.fold_columns import joining_of_rows
from gridstride.targets.block_loops.fold_loops import (
    fold_loop,
    fold_space_bytes,
    found_across,
    has_words,
    room_of,
    skips_sectors,
)
from gridstride.targets.block_loops.sizes import (
    MOST_BYTE_ROWS,
    MOST_PARTS,
    MOST_ROWS,
    blocks_held,
    ceil_div,
    has_bytes,
    packet_length,
    parts_that_fill,
)
from gridstride.targets.walks import (
    THREADS,
    FoldLoop,
    FoldWalk,
    axes_bytes,
    configuration,
    fits_a_word,
    flag,
    inputs_across,
)

_HEADER = "gridstride/fold_narrow.h"
#: Columns that are still few, and results that are many, as elements are.
_MOST_COLUMNS, _MANY = 256, 4096
#: From how many columns on, those in gaps too, elements of two bytes are no longer taken as they lie.
_MOST_WITH_GAPS = 128
#: Bytes from which on there are twice as many blocks; where elements are bytes there always are.
_LARGE = 1 << 29


def is_narrow(walk: FoldWalk) -> bool:
    """Return whether rows of a few results lie one after another in all inputs, perhaps with gaps."""
    columns = walk.kept[0]
    if (
        not walk.inputs
        or len(walk.fold) > 1
        or not 1 < columns <= _MOST_COLUMNS
        or walk.fold[0] * columns < _MANY
    ):
        return False
    pitch, length = _pitch(walk), packet_length(walk.inputs)
    if not columns <= pitch <= _MOST_COLUMNS or skips_sectors(walk, pitch - columns, columns):
        return False
    if columns < pitch > _MOST_WITH_GAPS and any(each.itemsize == 2 for each in walk.inputs):
        return False
    # Words in which bytes are added have no room for more.
    if has_bytes(walk) and walk.fold[0] * pitch >= MOST_PARTS * MOST_BYTE_ROWS * THREADS:
        return False
    return _period(pitch, length) <= THREADS and all(
        fits_a_word(each.itemsize)
        and each.strides[0] == each.itemsize
        and each.fold_strides[0] == pitch * each.itemsize
        for each in walk.inputs
    )


def _pitch(walk: FoldWalk) -> int:
    """Return how many elements a row of the first input begins after the one before it."""
    return walk.inputs[0].fold_strides[0] // walk.inputs[0].itemsize


def _period(columns: int, length: int) -> int:
    """Return how many packets begin in different columns."""
    return columns // gcd(columns, length)


def _has_words(walk: FoldWalk, length: int) -> bool:
    """Return whether all packets are words: they follow one another, so the rows of all results begin with words."""
    stretches = walk._replace(inputs=tuple(each._replace(fold_strides=()) for each in walk.inputs))
    return has_words(stretches, length, along=False)


def fold_narrow(walk: FoldWalk, limits: Limits) -> FoldLoop:
    """Return the fold of all rows of a few columns, which threads take as they lie."""
    length, pitch = packet_length(walk.inputs), _pitch(walk)
    columns, *outer = walk.kept
    rows, group = walk.fold[0], _period(pitch, length)
    each_round = THREADS // group * group
    rounds = ceil_div(ceil_div((rows - 1) * pitch + columns, length), each_round)
    blocks = prod(outer)
    are_bytes = has_bytes(walk)
    is_large = prod(walk.kept) * rows * sum(each.itemsize for each in walk.inputs) >= _LARGE
    held = blocks_held(walk) * limits.multiprocessors
    wanted = parts_that_fill(blocks, held, 2 if is_large or are_bytes else 1)
    most = MOST_BYTE_ROWS if are_bytes else MOST_ROWS
    parts = max(1, min(wanted, rounds // 16, MOST_PARTS), ceil_div(rounds, most))
    part = max(1, ceil_div(rounds, parts))
    parts = ceil_div(rounds, part)
    capacity = room_of(walk)
    inputs = inputs_across(walk, capacity)
    fold_axes, kept_axes = (
        axes_bytes(rounds, (rows,), capacity),
        axes_bytes(prod(walk.kept), walk.kept, capacity),
    )
    space = fold_space_bytes(
        walk, capacity, part, parts, group, kept_axes, fold_axes, (0, *walk.kept_numbers[1:]), pitch
    )
    how = configuration(blocks, THREADS, parts)
    # Parts of many results, larger than what is read, are stored together.
    join = joining_of_rows if are_bytes and prod(walk.kept) >= _MANY else None
    has_gaps = ", true" if pitch > columns else ""
    name = f"fold_narrow<4, {flag(join is not None)}, {flag(_has_words(walk, length))}{has_gaps}>"
    return fold_loop(
        (_HEADER, name), walk, space, inputs, how, "narrow_bytes", join=join, tells_places=True,
        finds_places=found_across(walk),
    )  # fmt: skip
