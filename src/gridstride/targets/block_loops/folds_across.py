"""Folds by blocks of threads across rows, or along several axes of which the innermost is long."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.folds_boxed import boxed_fold
from gridstride.targets.block_loops.spaces import (
    HELD,
    MOST_BYTE_ROWS,
    MOST_PARTS,
    MOST_ROWS,
    blocks_held,
    counter_of,
    fold_loop,
    fold_space_bytes,
    folds_innermost,
    found_across,
    has_bytes,
    has_words,
    packet_length,
    parts_that_fill,
    places_ascend,
    power_of_two_up_to,
    results_make_a_row,
    room_of,
    threads_for,
)
from gridstride.targets.walks import (
    LARGEST_WORD,
    LEAST_WORD,
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
    inputs_along,
    power_of_two_from,
    walk_of_parts,
)

_REDUCTION = "gridstride/reduction.h"
_COLUMNS, _FEW = "gridstride/fold_columns.h", "gridstride/fold_few_rows.h"
_ROWS, _FOUND_IN_ROWS = "gridstride/fold_rows.h", "gridstride/found_in_rows.h"
#: Folds of so few elements leave a thread too little to do for one result.
_TINY = 8
#: Rows that one thread folds; and those where there are enough results for all threads of a device.
_FEW_ROWS, _SOME_ROWS, _MANY_PACKETS = 16, 128, 1024
#: The same of structures without an identity, which take registers.
_ROWS_OF_PLACES = 63
#: Packets of a row from which on blocks take stretches of it.
_STRETCH = 16
#: Blocks for each multiprocessor, at most: four times five, or five times four, which it holds at once.
_BLOCKS = 20
#: Those that share rows of results: what it holds at once, so many times.
_ROUNDS = 2
#: Words of results that a thread's packet of a row makes, where results are larger.
_MOST_STORED = 8
#: Packets of results of a thread, one after another, at most; fewer where words of many rows are under way already.
_PACKETS = 8
#: Bytes of a row that is short.
_SHORT_ROW = 64
#: Axes of rows along which threads count on; along more they divide.
_COUNTED_AXES = 3
#: Rows of a thread that are many where a few columns make a result, and the fewest then.
_MANY_ROWS, _FEWEST_ROWS = 16, 2
#: Rows on their way to a thread at once, as in the loops' names below.
_AT_ONCE = 4


def fold_across(walk: FoldWalk, limits: Limits, in_boxes: bool) -> FoldLoop | None:
    """Return the loop for a fold across rows or of several long ones; None where threads take packets along a row."""
    length = packet_length([each.itemsize for each in walk.inputs])
    is_tiny = prod(walk.fold) <= _TINY and walk.kept[0] >= THREADS
    if not folds_innermost(walk) or is_tiny:
        if len(walk.fold) > 1:
            return (in_boxes and boxed_fold(walk, limits)) or _across(walk, limits)
        if in_boxes and _has_odd_rows(walk) and (boxed := boxed_fold(walk, limits, in_rows=True)):
            return boxed
        if _has_few_rows(walk, limits):
            return _few(walk, limits)
        return _columns(walk, limits) if _has_stretches(walk, length) else _across(walk, limits)
    if len(walk.fold) == 1 or not all(walk.fold) or walk.fold[0] >= 1 << 31:
        return None
    is_long = walk.fold[0] >= WARP * length
    if is_long:
        return _rows(walk, limits)
    return (
        (in_boxes and boxed_fold(walk, limits, in_words=True))
        or _stacked(walk, limits, _MANY_ROWS)
        or (in_boxes and boxed_fold(walk, limits))
        or _stacked(walk, limits, _FEWEST_ROWS)
        or _rows(walk, limits)
    )


def _has_odd_rows(walk: FoldWalk) -> bool:
    """Return whether rows are short, and made of words that are too small to load them one by one."""
    row, size = walk.kept[0], max((each.itemsize for each in walk.inputs), default=1)
    least = 2 if size == 1 else 2 * LEAST_WORD
    return len(walk.kept) > 1 and row * size < _SHORT_ROW and gcd(row * size, least) < least


def _has_stretches(walk: FoldWalk, length: int) -> bool:
    return walk.kept[0] >= _STRETCH * length and _has_room(walk.inputs, walk.fold[0])


def _has_room(inputs: Sequence[Walked], rows: int) -> bool:
    """Return whether parts may be so short that words have room for the sums of bytes."""
    return all(each.itemsize > 1 for each in inputs) or rows <= MOST_PARTS * MOST_BYTE_ROWS


def _group(walk: FoldWalk, axis: int, packets: int) -> int:
    """Return how many threads take neighboring packets: rows that the others are apart begin alike."""
    is_short = packets <= WARP // 2
    return WARP // 2 if is_short or _rows_alike(walk, axis) > THREADS // WARP else WARP


def _has_few_rows(walk: FoldWalk, limits: Limits) -> bool:
    packets = prod(walk.kept) // _length_of_results(walk)
    most = _ROWS_OF_PLACES if walk.in_structures and not walk.has_identity else _SOME_ROWS
    return walk.fold[0] <= _FEW_ROWS or (
        walk.fold[0] <= most and packets >= _MANY_PACKETS * limits.multiprocessors
    )


def _length_of_results(walk: FoldWalk) -> int:
    return packet_length([each.itemsize for each in walk.operands])


def _few(walk: FoldWalk, limits: Limits) -> FoldLoop:
    stored = _length_of_results(walk)
    length = packet_length([each.itemsize for each in walk.inputs])
    row, *outer = walk.kept
    while length > stored and (length > _MOST_STORED * stored or row % length):
        length //= 2
    whole = length - _most_before(walk, length)
    are_rows = all(each.strides[0] == each.itemsize for each in walk.inputs)
    if whole < length and are_rows and whole * min(each.itemsize for each in walk.inputs) > LEAST_WORD:
        length, stored = whole, min(stored, whole)
    packets = -(-row // length)
    count = packets * prod(outer)
    fold_axes = axes_bytes(walk.fold[0], walk.fold, capacity := room_of(walk))
    kept_axes = axes_bytes(count, (packets, *outer), capacity)
    most = _PACKETS
    if _begins_with_words(walk, 0):
        most = min(most, _FEW_ROWS // max(1, walk.fold[0]))
    each = max(1, min(most, count // (THREADS * _BLOCKS * limits.multiprocessors)))
    kept_row = prod(walk.kept) if row % length == 0 and results_make_a_row(walk) else row
    space = fold_space_bytes(
        walk, capacity, each, 1, 1, kept_axes, fold_axes, (0, *walk.kept_numbers[1:]), kept_row=kept_row
    )
    grid = configuration(-(-count // (THREADS * each)), THREADS)
    are_words = has_words(walk, length, along=False)
    how = "words" if are_words else "between" if are_rows else "elements"
    name = f"few_rows<{length}, {stored}, gridstride::few_{how}>::"
    inputs = inputs_across(walk, capacity)
    return fold_loop(
        (_FEW, name + "fold"), walk, space, inputs, grid, name + "shared_bytes", tells_places=True,
        finds_places=found_across(walk),
    )  # fmt: skip


def _columns(walk: FoldWalk, limits: Limits) -> FoldLoop:
    length = packet_length([each.itemsize for each in walk.inputs])
    row, *outer = walk.kept
    group = _group(walk, 0, -(-row // length))
    width = group * length - _most_before(walk, length)
    stretches = -(-row // width)
    # As many parts wherever the first row begins.
    alike = group * length - _most_before(walk, length, with_address=False)
    part = _part(walk, -(-row // alike) * prod(outer), walk.fold[0], THREADS // group, limits)
    capacity = room_of(walk)
    kept_axes = axes_bytes(stretches * prod(outer), (stretches, *outer), capacity)
    fold_axes = axes_bytes(walk.fold[0], walk.fold, capacity)
    parts = max(1, -(-walk.fold[0] // part))
    space = fold_space_bytes(
        walk, capacity, part, parts, group, kept_axes, fold_axes, (0, *walk.kept_numbers[1:]), width
    )
    how = configuration(stretches * prod(outer), THREADS, parts)
    wide = group if walk.in_structures else 0
    repeats = any(each.strides[0] == 0 for each in walk.inputs)
    always = flag(_always_has_words(walk, length, THREADS // group))
    return fold_loop(
        (_COLUMNS, f"fold_columns<{_AT_ONCE}, {always}, {wide}, {counter_of(walk)}, {flag(repeats)}>"),
        walk,
        space,
        inputs_across(walk, capacity),
        how,
        "columns_bytes",
        _values(length),
        joining_of_rows,
        tells_places=True,
    )


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


def _most_before(walk: FoldWalk, length: int, with_address: bool = True) -> int:
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
    return max(-(-(step[0] - gcd(step[0], *step[2:])) // step[1]) for step in steps)


def _begins_with_words(walk: FoldWalk, axis: int) -> bool:
    return all(
        step % LARGEST_WORD == 0
        for each in walk.inputs
        for step in (each.address, each.fold_strides[axis], *each.strides[1:])
    )


def _values(length: int) -> int:
    """Return how many columns a thread takes at least, as in the header."""
    return -(-length // 4)


def _parts(blocks: int, rows: int, height: int, limits: Limits, held: int = HELD) -> int:
    wanted = parts_that_fill(blocks, held * limits.multiprocessors, _ROUNDS)
    return max(1, min(wanted, rows // (height * 16), MOST_PARTS), -(-rows // MOST_ROWS))


def _part(walk: FoldWalk, blocks: int, rows: int, height: int, limits: Limits) -> int:
    """Return how many rows a part has: where there are many, as many as a block takes at once, again and again.

    Where a fold starts with values of elements, these are of the rows that one packet of each thread covers.
    """
    are_bytes = has_bytes(walk)
    part = max(1, -(-rows // _parts(blocks, rows, height, limits, blocks_held(walk))))
    whole = height * _AT_ONCE
    if whole * 8 <= part < rows:
        starts = not walk.has_identity and (walk.in_structures or not are_bytes)
        part = -(-part // whole) * whole + height * starts
    return min(part, MOST_BYTE_ROWS * height) if are_bytes else part


def joining_of_rows(results: int, parts: int, capacity: int) -> Loop:
    """Return the fold of the parts of each result, where those of neighboring results lie next to each other."""
    walk = walk_of_parts(results, parts, parts_outermost=True)
    group = max(4, min(WARP, power_of_two_from(THREADS * 4 // parts)))
    stretches = -(-results // group)
    kept_axes = axes_bytes(stretches, (stretches,), capacity)
    fold_axes = axes_bytes(parts, (parts,), capacity)
    space = fold_space_bytes(walk, capacity, parts, 1, group, kept_axes, fold_axes, (0,), group)
    return Loop(
        _COLUMNS,
        f"fold_rows_of_parts<{_AT_ONCE}>",
        "parts_bytes",
        capacity,
        space,
        (),
        configuration(stretches, THREADS),
    )


def _stacked(walk: FoldWalk, limits: Limits, least: int) -> FoldLoop | None:
    """Return the fold of neighboring columns, a few of which make a result, across so many rows a thread at least."""
    if len(walk.fold) != 2 or not all(walk.fold) or not _has_room(walk.inputs, walk.fold[1]):
        return None
    (inner, rows), (results, *outer) = walk.fold, walk.kept
    length = packet_length([each.itemsize for each in walk.inputs])
    if (
        not walk.inputs
        or length == 1
        or not all(
            each.fold_strides[0] == each.itemsize and each.strides[0] == inner * each.itemsize
            for each in walk.inputs
        )
    ):
        return None
    is_aligned = _begins_with_words(walk, 1)
    used, group = max(
        ((group - 1) * length // inner * inner / (group * length), group)
        for group in (16, 32, 64)
        if _rows_alike(walk, 1) <= THREADS // group or group == 16
    )
    height = THREADS // group
    if used < 0.7 or rows < least * height or results * inner < _STRETCH * length:
        return None
    width = (group - (not is_aligned)) * length // inner
    stretches = -(-results // width)
    blocks = -(-results // ((group - 1) * length // inner)) * prod(outer)
    part = _part(walk, blocks, rows, height, limits)
    parts = -(-rows // part)
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
        (_COLUMNS, f"fold_stacked<{_AT_ONCE}>"),
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


def _rows(walk: FoldWalk, limits: Limits) -> FoldLoop:
    length = packet_length([each.itemsize for each in walk.inputs])
    row, *outer = walk.fold
    are_words = row % length == 0 and has_words(walk, length, along=True)
    # Where places are looked for in packets of several elements, these are words, wherever rows begin.
    finds_places = (
        walk.keeps_places
        and places_ascend(walk)
        and row >= length > 2
        and walk.inputs[0].fold_strides[0] == walk.inputs[0].itemsize
    )
    packets = -(-(row + (length - 1 if finds_places and not are_words else 0)) // length)
    results = prod(walk.kept)
    total = packets * prod(outer)
    wanted, group = _BLOCKS * limits.multiprocessors, min(WARP, threads_for(total))
    if results * group < wanted * THREADS:
        group = min(THREADS, power_of_two_up_to(total))
    blocks = -(-results * group // THREADS)
    parts = max(1, min(-(-wanted // blocks) if blocks < wanted else 1, total // (group * 16), MOST_PARTS))
    whole = group * _AT_ONCE
    part = (total + parts * whole - 1) // (parts * whole) * whole
    parts = -(-total // part)
    fold_axes = axes_bytes(total, (packets, *outer), capacity := room_of(walk))
    kept_axes = axes_bytes(results, walk.kept, capacity)
    inputs = inputs_along(walk, capacity)
    space = fold_space_bytes(walk, capacity, part, parts, group, kept_axes, fold_axes, walk.kept_numbers)
    how = configuration(blocks, THREADS, parts)
    axes = len(outer) if len(outer) <= _COUNTED_AXES and max(outer) < 1 << 31 else 0
    name = f"fold_rows<{_AT_ONCE}, {flag(are_words)}, {axes}, {counter_of(walk)}>"
    return fold_loop(
        (_ROWS, name), walk, space, inputs, how, finds_places=_FOUND_IN_ROWS if finds_places else ""
    )


def _across(walk: FoldWalk, limits: Limits) -> FoldLoop:
    length = packet_length([each.itemsize for each in walk.inputs])
    row, *outer = walk.kept
    packets = -(-row // length)
    columns = packets * prod(outer)
    total = prod(walk.fold)
    group = min(THREADS if total < 64 else 32, power_of_two_from(columns))
    height = THREADS // group
    blocks = -(-columns // group)
    parts = _parts(blocks, total, height, limits)
    part = max(1, -(-total // parts))
    parts = max(1, -(-total // part))
    fold_axes = axes_bytes(total, walk.fold, capacity := room_of(walk))
    kept_axes = axes_bytes(columns, (packets, *outer), capacity)
    inputs = inputs_across(walk, capacity)
    space = fold_space_bytes(
        walk, capacity, part, parts, group, kept_axes, fold_axes, (0, *walk.kept_numbers[1:])
    )
    how = configuration(blocks, THREADS, parts)
    return fold_loop((_REDUCTION, "fold_across<4>"), walk, space, inputs, how)
