"""Folds by blocks of threads across a few rows, of which a thread folds all."""

from __future__ import annotations

from math import gcd, prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.fold_columns import begins_with_words, most_before
from gridstride.targets.block_loops.fold_loops import (
    fold_loop,
    fold_space_bytes,
    found_across,
    has_words,
    results_make_a_row,
    room_of,
)
from gridstride.targets.block_loops.sizes import MOST_BLOCKS, ceil_div, packet_length
from gridstride.targets.walks import (
    LEAST_WORD,
    THREADS,
    FoldLoop,
    FoldWalk,
    axes_bytes,
    configuration,
    inputs_across,
)

_HEADER = "gridstride/fold_few_rows.h"
#: Rows that one thread folds; and those where there are enough results for all threads of a device.
_FEW_ROWS, _SOME_ROWS, _MANY_PACKETS = 16, 128, 1024
#: The same of structures without an identity, which take registers.
_ROWS_OF_PLACES = 63
#: Words of results that a thread's packet of a row makes, where results are larger.
_MOST_STORED = 8
#: Packets of results of a thread, one after another, at most; fewer where words of many rows are under way already.
_PACKETS = 8


def has_few_rows(walk: FoldWalk, limits: Limits) -> bool:
    """Return whether a thread may fold all rows: there are few, or results enough for all threads of a device."""
    packets = prod(walk.kept) // _length_of_results(walk)
    most = _ROWS_OF_PLACES if walk.in_structures and not walk.has_identity else _SOME_ROWS
    return walk.fold[0] <= _FEW_ROWS or (
        walk.fold[0] <= most and packets >= _MANY_PACKETS * limits.multiprocessors
    )


def has_few_rows_of_two_axes(walk: FoldWalk) -> bool:
    """Return whether a thread may fold all rows along two axes, as of what is averaged in squares of pixels."""
    if len(walk.fold) != 2 or prod(walk.fold) > _FEW_ROWS or walk.in_structures or not walk.inputs:
        return False
    are_rows = all(each.strides[0] == each.itemsize for each in walk.inputs)
    return are_rows and walk.kept[0] % packet_length(walk.inputs) == 0


def fold_few_rows(walk: FoldWalk, limits: Limits) -> FoldLoop:
    """Return the fold of a few rows, of which a thread takes a packet of results."""
    stored = _length_of_results(walk)
    length = packet_length(walk.inputs)
    row, *outer = walk.kept
    are_rows = all(each.strides[0] == each.itemsize for each in walk.inputs)
    while length > stored and (
        length > _MOST_STORED * stored or (row % length and not (are_rows and _has_small_parts(walk, length)))
    ):
        length //= 2
    whole = length - most_before(walk, length)
    if whole < length and are_rows and whole * min(each.itemsize for each in walk.inputs) > LEAST_WORD:
        length, stored = whole, min(stored, whole)
    are_words = has_words(walk, length, along=False)
    behind = _behind_words(walk, length) if are_rows and not are_words else None
    packets = ceil_div(row if behind is None else row + length - 1, length)
    count = packets * prod(outer)
    fold_axes = axes_bytes(prod(walk.fold), walk.fold, capacity := room_of(walk, 2))
    kept_axes = axes_bytes(count, (packets, *outer), capacity)
    most = _PACKETS
    if begins_with_words(walk, 0):
        most = min(most, _FEW_ROWS // max(1, prod(walk.fold)))
    each = max(1, min(most, count // (THREADS * MOST_BLOCKS * limits.multiprocessors)))
    is_one_row = row % length == 0 and behind is None and results_make_a_row(walk)
    kept_row, numbers = prod(walk.kept) if is_one_row else row, (0, *walk.kept_numbers[1:])
    space = fold_space_bytes(
        walk, capacity, each, 1, 1, kept_axes, fold_axes, numbers, behind or 0, kept_row=kept_row
    )
    grid = configuration(ceil_div(count, THREADS * each), THREADS)
    between = "between" if behind is None else "into_words"
    how = "words" if are_words else between if are_rows else "elements"
    has_further = ", true" if len(walk.fold) > 1 else ""
    name = f"fold_few_rows<{length}, {stored}, gridstride::few_{how}{has_further}>::"
    inputs = inputs_across(walk, capacity)
    return fold_loop(
        (_HEADER, name + "fold"), walk, space, inputs, grid, name + "shared_bytes", tells_places=True,
        finds_places=found_across(walk),
    )  # fmt: skip


def _behind_words(walk: FoldWalk, length: int) -> int | None:
    """Return how many elements behind a word of so many the first result lies; None where packets begin with rows."""
    places = {divmod(each.address, each.itemsize) for each in walk.outputs}
    behind = {(place % length, within) for place, within in places}
    is_long = walk.kept[0] >= 2 * length and length & (length - 1) == 0
    are_neighbors = all(each.strides[0] == each.itemsize for each in walk.outputs)
    if len(behind) != 1 or not (is_long and are_neighbors and results_make_a_row(walk)):
        return None
    ((place, within),) = behind
    return None if within else place


def _has_small_parts(walk: FoldWalk, length: int) -> bool:
    """Return whether parts of packets of which rows are made are so small that these had better lie between words."""
    size = max((each.itemsize for each in walk.inputs), default=1)
    return size < LEAST_WORD and gcd(walk.kept[0], length) * size <= LEAST_WORD


def _length_of_results(walk: FoldWalk) -> int:
    return packet_length(walk.operands)
