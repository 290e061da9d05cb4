"""Folds by blocks of threads of few elements for each result, and of all elements of a few columns."""

from __future__ import annotations

from math import gcd, prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.folds_across import joining_of_rows
from gridstride.targets.block_loops.spaces import (
    MOST_BYTE_ROWS,
    MOST_PARTS,
    MOST_ROWS,
    blocks_for,
    blocks_held,
    fold_loop,
    fold_space_bytes,
    found_across,
    found_along,
    has_bytes,
    packet_length,
    parts_that_fill,
    power_of_two_up_to,
    room_of,
)
from gridstride.targets.walks import (
    LARGEST_WORD,
    LEAST_WORD,
    THREADS,
    FoldLoop,
    FoldWalk,
    Walked,
    axes_bytes,
    configuration,
    fits_a_word,
    flag,
    inputs_across,
    inputs_along,
)

_SMALL = "gridstride/fold_small.h"
_FEW_ROWS = "gridstride/fold_few.h"
_SHORT_ROWS, _NARROW = "gridstride/fold_short.h", "gridstride/fold_narrow.h"
#: Packets that a thread loads at once, along a row.
_AT_ONCE = 4
#: Bytes from which on there are twice as many; those of bytes always are.
_LARGE = 1 << 29
#: Bytes of a row from which on it is long, results that are many, and columns that are still few.
_LONG_ROW, _MANY, _MOST_COLUMNS = 512, 4096, 256
#: Elements of a row of whole words from which on they are many for a thread that takes one after another.
_MANY_ELEMENTS = 100
#: Elements of a row, if they are no word, of which a thread takes neighboring ones, and bytes of those.
_FEW, _FEW_BYTES = 8, 144
#: Words of those that a thread loads itself, as in the header.
_MOST_OWN_WORDS = 3
#: Elements of a row of which places are looked for in packets: a row takes as long to begin with as so many.
_LEAST_FOUND = 24
#: Bytes of neighboring rows that a block has room for, and of elements that are taken four bytes at a time.
_STRETCH_BYTES, _IN_FOURS = 18432, 2


def is_small(walk: FoldWalk) -> bool:
    """Return whether one block can load all elements at once; where they lie makes no difference."""
    if not walk.inputs or len(walk.fold) > 1 or prod(walk.kept) > 1:
        return False
    packets, rest = divmod(walk.fold[0], packet_length([each.itemsize for each in walk.inputs]))
    return rest == 0 and 0 < packets <= _AT_ONCE * THREADS


def small_fold(walk: FoldWalk) -> FoldLoop:
    """Return the fold of so few elements that one block loads all of them at once."""
    capacity = room_of(walk)
    length = packet_length([each.itemsize for each in walk.inputs])
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
    return fold_loop((_SMALL, name), walk, space, inputs, configuration(1, THREADS))


def has_short_rows(walk: FoldWalk) -> bool:
    """Return whether many short folds have their elements one after another in all inputs."""
    row, results = walk.fold[0], walk.kept[0]
    if not walk.inputs or len(walk.fold) > 1 or len(walk.kept) > 1 or results < _MANY or _are_lines(walk):
        return False
    return all(
        fits_a_word(each.itemsize)
        and each.fold_strides[0] == each.itemsize
        and each.strides[0] == row * each.itemsize < _LONG_ROW
        for each in walk.inputs
    )


def _are_lines(walk: FoldWalk) -> bool:
    """Return whether rows are whole words of so many elements that threads had better load them than pick them."""
    row, sizes = walk.fold[0], [each.itemsize for each in walk.inputs]
    if row < _MANY_ELEMENTS or (walk.in_structures and max(sizes) == 1) or found_along(walk):
        return False
    return all(
        row * each.itemsize >= _LONG_ROW // 2
        and row * each.itemsize % LARGEST_WORD == each.address % LARGEST_WORD == 0
        for each in walk.inputs
    )


def short_fold(walk: FoldWalk) -> FoldLoop:
    """Return the fold of short rows, which blocks bring to shared memory as they lie."""
    row, results, capacity = walk.fold[0], walk.kept[0], room_of(walk)
    sizes = [each.itemsize for each in walk.inputs]
    size, stretch, group = row * sum(sizes), _STRETCH_BYTES, 1
    found = found_along(walk) if row >= _LEAST_FOUND else ""
    if len(sizes) == 1 and (found or size <= row * _IN_FOURS) and THREADS * size > stretch:
        # A row a thread, in more room, though not for all threads: so elements are taken by words.
        stretch = stretch * 2 if size <= row * _IN_FOURS else stretch // 3 * 4
        rows = min(THREADS, stretch // size)
    else:
        while THREADS // group * size > stretch:
            group *= 2
        step = THREADS // group
        rows = max(step, stretch // size // step * step)
    rows = _rows_brought(rows, row * max(sizes))
    inputs = inputs_along(walk, capacity)
    fold_axes, kept_axes = axes_bytes(row, (row,), capacity), axes_bytes(results, (results,), capacity)
    space = fold_space_bytes(walk, capacity, rows, 1, group, kept_axes, fold_axes, walk.kept_numbers)
    how = configuration(blocks_for(results, rows), THREADS)
    word = _word_of_rows(walk) if found else 0
    # Rows of whole words would all begin in the same banks, and threads of a row meet those of the next ones.
    has_gaps = group > 1 or any(row * itemsize % LARGEST_WORD == 0 for itemsize in sizes)
    if word:
        has_gaps = size // word % 2 == 0
    name = f"fold_short<{flag(has_gaps)}, {stretch}, {flag(group == 1)}{f', {word}' if word else ''}>::"
    return fold_loop(
        (_SHORT_ROWS, name + "fold"), walk, space, inputs, how, name + "shared_bytes", tells_places=True,
        finds_places=found,
    )  # fmt: skip


def _word_of_rows(walk: FoldWalk) -> int:
    """Return the bytes of the largest words of which all rows are made; 0 where these are no words."""
    sizes = (place for each in walk.inputs for place in (walk.fold[0] * each.itemsize, each.address))
    word = gcd(LARGEST_WORD, *sizes)
    return word if word >= LEAST_WORD else 0


def _rows_brought(rows: int, size: int) -> int:
    """Return how many rows of so many bytes to bring: fewer where a few threads alone would load once more."""
    at_once = _AT_ONCE * THREADS * LARGEST_WORD
    whole = rows * size // at_once * at_once
    return (whole - LARGEST_WORD) // size if rows * size // 16 * 15 < whole < rows * size else rows


def has_few(walk: FoldWalk) -> bool:
    """Return whether the elements of short rows are so few and small that neighboring results are in a few words."""
    row, results = walk.fold[0], _results_of_few(walk)
    size = row * max(each.itemsize for each in walk.inputs)
    is_small = size <= LARGEST_WORD and (row <= _FEW or size == LARGEST_WORD)
    return (
        row > 1
        and (is_small or size == row * 2 == 2 * LARGEST_WORD)
        and row * results * sum(each.itemsize for each in walk.inputs) <= _FEW_BYTES
        and all(_is_at_words_of_few(each, row * results * each.itemsize) for each in walk.inputs)
    )


def _is_at_words_of_few(operand: Walked, size: int) -> bool:
    """Return whether packets of so many bytes begin at their words, or those of a warp do, which hands them on."""
    own = gcd(LARGEST_WORD, size)
    return operand.address % (own if size // own <= _MOST_OWN_WORDS else LARGEST_WORD) == 0


def _results_of_few(walk: FoldWalk) -> int:
    """Return for how many results a thread takes elements: for a word of them, and of each output."""
    largest = max(each.itemsize for each in walk.outputs) if walk.outputs else 1
    row = walk.fold[0] * max(each.itemsize for each in walk.inputs)
    return min(power_of_two_up_to(max(1, LARGEST_WORD // largest)), LARGEST_WORD // gcd(LARGEST_WORD, row))


def fold_of_few(walk: FoldWalk) -> FoldLoop:
    """Return the fold of a few elements for each result, of which a thread takes several."""
    row, results, capacity = walk.fold[0], walk.kept[0], room_of(walk)
    each = _results_of_few(walk)
    size = row * each * max(one.itemsize for one in walk.inputs)
    count = 4 if size <= 16 else 2 if size <= 32 else 1
    inputs = inputs_along(walk, capacity)
    fold_axes, kept_axes = axes_bytes(row, (row,), capacity), axes_bytes(results, (results,), capacity)
    space = fold_space_bytes(walk, capacity, 1, 1, 1, kept_axes, fold_axes, walk.kept_numbers)
    how = configuration(blocks_for(results // each, THREADS * count), THREADS)
    name = f"fold_few<{row}, {each}>::"
    return fold_loop(
        (_FEW_ROWS, name + "fold"), walk, space, inputs, how, name + "shared_bytes", tells_places=True
    )


def is_narrow(walk: FoldWalk) -> bool:
    """Return whether rows of a few results lie one after another in all inputs."""
    columns = walk.kept[0]
    length = packet_length([each.itemsize for each in walk.inputs])
    if (
        not walk.inputs
        or len(walk.fold) > 1
        or not 1 < columns <= _MOST_COLUMNS
        or walk.fold[0] * columns < _MANY
    ):
        return False
    # Words in which bytes are added have no room for more.
    are_bytes = has_bytes(walk)
    if are_bytes and walk.fold[0] * columns >= MOST_PARTS * MOST_BYTE_ROWS * THREADS:
        return False
    return _period(columns, length) <= THREADS and all(
        fits_a_word(each.itemsize)
        and each.strides[0] == each.itemsize
        and each.fold_strides[0] == columns * each.itemsize
        for each in walk.inputs
    )


def _period(columns: int, length: int) -> int:
    """Return how many packets begin in different columns."""
    return columns // gcd(columns, length)


def narrow_fold(walk: FoldWalk, limits: Limits) -> FoldLoop:
    """Return the fold of all rows of a few columns, which threads take as they lie."""
    length = packet_length([each.itemsize for each in walk.inputs])
    columns, *outer = walk.kept
    rows, group = walk.fold[0], _period(columns, length)
    each_round = THREADS // group * group
    rounds = blocks_for(blocks_for(rows * columns, length), each_round)
    blocks = prod(outer)
    are_bytes = has_bytes(walk)
    is_large = prod(walk.kept) * rows * sum(each.itemsize for each in walk.inputs) >= _LARGE
    held = blocks_held(walk) * limits.multiprocessors
    wanted = parts_that_fill(blocks, held, 2 if is_large or are_bytes else 1)
    most = MOST_BYTE_ROWS if are_bytes else MOST_ROWS
    parts = max(1, min(wanted, rounds // 16, MOST_PARTS), -(-rounds // most))
    part = max(1, -(-rounds // parts))
    parts = -(-rounds // part)
    capacity = room_of(walk)
    inputs = inputs_across(walk, capacity)
    fold_axes, kept_axes = (
        axes_bytes(rounds, (rows,), capacity),
        axes_bytes(prod(walk.kept), walk.kept, capacity),
    )
    space = fold_space_bytes(
        walk, capacity, part, parts, group, kept_axes, fold_axes, (0, *walk.kept_numbers[1:])
    )
    how = configuration(blocks, THREADS, parts)
    # Parts of many results, larger than what is read, are stored together.
    join = joining_of_rows if are_bytes and prod(walk.kept) >= _MANY else None
    name = f"fold_narrow<4, {flag(join is not None)}>"
    return fold_loop(
        (_NARROW, name), walk, space, inputs, how, "narrow_bytes", join=join, tells_places=True,
        finds_places=found_across(walk),
    )  # fmt: skip
