"""Folds by blocks of threads across rows: of stretches of columns, each or a few of which are a result."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.fold_loops import (
    counter_of,
    fold_loop,
    fold_space_bytes,
    found_across,
    has_words,
    room_of,
)
from gridstride.targets.block_loops.sizes import (
    HELD,
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
    LARGEST_WORD,
    THREADS,
    WARP,
    FoldLoop,
    FoldWalk,
    Loop,
    Walked,
    axes_bytes,
    configuration,
    flag,
    folded_bytes,
    inputs_across,
    power_of_two_from,
    walk_of_parts,
)

_HEADER = "gridstride/fold_columns.h"
#: Packets of a row from which on blocks take stretches of it.
_STRETCH = 16
#: Which part of neighboring threads' columns must be those of whole results.
_LEAST_USED = 0.7
#: Rounds of the blocks that a device holds at once, at least, where blocks share the rows of a result.
_ROUNDS = 2
#: Rows on their way to a thread at once, as in the loops' names below.
_AT_ONCE = 4


def fold_columns(walk: FoldWalk, limits: Limits) -> FoldLoop:
    """Return the fold of a stretch of columns by each block."""
    length = packet_length(walk.inputs)
    row, *outer = walk.kept
    group = _group(walk, 0, ceil_div(row, length))
    width = group * length - most_before(walk, length)
    stretches = ceil_div(row, width)
    # As many parts wherever the first row begins.
    alike = group * length - most_before(walk, length, with_address=False)
    part = _part(walk, ceil_div(row, alike) * prod(outer), walk.fold[0], THREADS // group, limits)
    capacity = room_of(walk)
    kept_axes = axes_bytes(stretches * prod(outer), (stretches, *outer), capacity)
    fold_axes = axes_bytes(walk.fold[0], walk.fold, capacity)
    parts = max(1, ceil_div(walk.fold[0], part))
    space = fold_space_bytes(
        walk, capacity, part, parts, group, kept_axes, fold_axes, (0, *walk.kept_numbers[1:]), width
    )
    how = configuration(stretches * prod(outer), THREADS, parts)
    wide = group if walk.in_structures else 0
    repeats = any(each.strides[0] == 0 for each in walk.inputs)
    always = flag(_always_has_words(walk, length, THREADS // group))
    return fold_loop(
        (_HEADER, f"fold_columns<{_AT_ONCE}, {always}, {wide}, {counter_of(walk)}, {flag(repeats)}>"),
        walk,
        space,
        inputs_across(walk, capacity),
        how,
        "columns_bytes",
        _values(length),
        joining_of_rows,
        tells_places=True,
    )


def has_stretches(walk: FoldWalk) -> bool:
    """Return whether rows are so long that blocks take stretches of them."""
    length = packet_length(walk.inputs)
    return walk.kept[0] >= _STRETCH * length and _has_room(walk.inputs, walk.fold[0])


def fold_stacked(walk: FoldWalk, limits: Limits, least: int) -> FoldLoop | None:
    """Return the fold of neighboring columns, a few of which make a result, across so many rows a thread at least."""
    length = packet_length(walk.inputs)
    if not _are_stacked(walk, length):
        return None
    (inner, rows), (results, *outer) = walk.fold, walk.kept
    used, group = max(
        ((group - 1) * length // inner * inner / (group * length), group)
        for group in (16, 32, 64)
        if _rows_alike(walk, 1) <= THREADS // group or group == 16
    )
    height = THREADS // group
    if used < _LEAST_USED or rows < least * height or results * inner < _STRETCH * length:
        return None
    width = (group - (not begins_with_words(walk, 1))) * length // inner
    stretches = ceil_div(results, width)
    blocks = ceil_div(results, (group - 1) * length // inner) * prod(outer)
    part = _part(walk, blocks, rows, height, limits)
    parts = ceil_div(rows, part)
    capacity = room_of(walk)
    space = fold_space_bytes(
        walk,
        capacity,
        part,
        parts,
        group,
        axes_bytes(stretches * prod(outer), (stretches, *outer), capacity),
        axes_bytes(rows, (rows,), capacity),
        (0, *walk.kept_numbers[1:]),
        width,
    )
    inputs = tuple(
        folded_bytes(each.address, each.itemsize, each.fold_strides[1:], (0, *each.strides[1:]), capacity)
        for each in walk.inputs
    )
    how = configuration(stretches * prod(outer), THREADS, parts)
    return fold_loop(
        (_HEADER, f"fold_stacked<{_AT_ONCE}>"),
        walk,
        space,
        inputs,
        how,
        "columns_bytes",
        _values(length),
        joining_of_rows,
        tells_places=True,
        finds_places=found_across(walk),
    )


def _are_stacked(walk: FoldWalk, length: int) -> bool:
    """Return whether the elements of a result are neighbors in many rows, and those of the next result follow them."""
    if len(walk.fold) != 2 or not all(walk.fold) or not _has_room(walk.inputs, walk.fold[1]) or length == 1:
        return False
    return bool(walk.inputs) and all(
        each.fold_strides[0] == each.itemsize and each.strides[0] == walk.fold[0] * each.itemsize
        for each in walk.inputs
    )


def _has_room(inputs: Sequence[Walked], rows: int) -> bool:
    """Return whether parts may be so short that words have room for the sums of bytes."""
    return all(each.itemsize > 1 for each in inputs) or rows <= MOST_PARTS * MOST_BYTE_ROWS


def _group(walk: FoldWalk, axis: int, packets: int) -> int:
    """Return how many threads take neighboring packets: rows that the others are apart begin alike."""
    is_short = packets <= WARP // 2
    return WARP // 2 if is_short or _rows_alike(walk, axis) > THREADS // WARP else WARP


def _always_has_words(walk: FoldWalk, length: int, height: int) -> bool:
    """Return whether rows that are so many apart begin at the same places of words, those of all inputs alike."""
    rows = [each for each in walk.inputs if each.strides[0] != 0]
    are_alike = len(rows) == 1 or has_words(walk._replace(inputs=tuple(rows)), length, along=False)
    return are_alike and all(
        each.strides[0] == each.itemsize
        and LARGEST_WORD % (length * each.itemsize) == 0
        and each.fold_strides[0] * height % (length * each.itemsize) == 0
        and not any(place % each.itemsize for place in (each.address, *each.fold_strides, *each.strides[1:]))
        for each in rows
    )


def _rows_alike(walk: FoldWalk, axis: int) -> int:
    """Return how many rows along a folded axis begin at different places of words."""
    return max(LARGEST_WORD // gcd(each.fold_strides[axis], LARGEST_WORD) for each in walk.inputs)


def most_before(walk: FoldWalk, length: int, with_address: bool = True) -> int:
    """Return how many elements of a row's first word lie before the row at most."""
    steps = [
        (
            length * each.itemsize,
            each.itemsize,
            each.address * with_address,
            each.fold_strides[0],
            *each.strides[1:],
        )
        for each in walk.inputs
    ]
    return max(ceil_div(step[0] - gcd(step[0], *step[2:]), step[1]) for step in steps)


def begins_with_words(walk: FoldWalk, axis: int) -> bool:
    """Return whether rows along a folded axis, of all inputs, begin at the largest words."""
    return all(
        step % LARGEST_WORD == 0
        for each in walk.inputs
        for step in (each.address, each.fold_strides[axis], *each.strides[1:])
    )


def _values(length: int) -> int:
    """Return how many columns a thread takes at least, as in the header."""
    return ceil_div(length, 4)


def parts_of_rows(blocks: int, rows: int, height: int, limits: Limits, held: int = HELD) -> int:
    """Return into how many parts so many rows are cut, of which a block takes so many at once."""
    wanted = parts_that_fill(blocks, held * limits.multiprocessors, _ROUNDS)
    return max(1, min(wanted, rows // (height * 16), MOST_PARTS), ceil_div(rows, MOST_ROWS))


def _part(walk: FoldWalk, blocks: int, rows: int, height: int, limits: Limits) -> int:
    """Return how many rows a part has: where there are many, as many as a block takes at once, again and again.

    Where a fold starts with values of elements, these are of the rows that one packet of each thread covers.
    """
    are_bytes = has_bytes(walk)
    part = max(1, ceil_div(rows, parts_of_rows(blocks, rows, height, limits, blocks_held(walk))))
    whole = height * _AT_ONCE
    if whole * 8 <= part < rows:
        starts = not walk.has_identity and (walk.in_structures or not are_bytes)
        part = ceil_div(part, whole) * whole + height * starts
    return min(part, MOST_BYTE_ROWS * height) if are_bytes else part


def joining_of_rows(results: int, parts: int, capacity: int) -> Loop:
    """Return the fold of the parts of each result, where those of neighboring results lie next to each other."""
    walk = walk_of_parts(results, parts, parts_outermost=True)
    group = max(4, min(WARP, power_of_two_from(THREADS * 4 // parts)))
    stretches = ceil_div(results, group)
    kept_axes = axes_bytes(stretches, (stretches,), capacity)
    fold_axes = axes_bytes(parts, (parts,), capacity)
    space = fold_space_bytes(walk, capacity, parts, 1, group, kept_axes, fold_axes, (0,), group)
    return Loop(
        _HEADER,
        f"fold_rows_of_parts<{_AT_ONCE}>",
        "parts_bytes",
        capacity,
        space,
        (),
        configuration(stretches, THREADS),
    )
