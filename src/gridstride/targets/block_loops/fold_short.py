"""Folds by blocks of threads of short rows, one after another, which are brought to shared memory as they lie."""

from __future__ import annotations

from collections import Counter
from math import gcd

from gridstride.targets.block_loops.fold_loops import (
    fold_loop,
    fold_space_bytes,
    found_along,
    room_of,
    skips_sectors,
)
from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.walks import (
    LARGEST_WORD,
    LEAST_WORD,
    THREADS,
    WARP,
    FoldLoop,
    FoldWalk,
    axes_bytes,
    configuration,
    fits_a_word,
    flag,
    inputs_along,
)

_HEADER = "gridstride/fold_short.h"
#: Packets that a thread loads at once.
_AT_ONCE = 4
#: Bytes of a row from which on it is long, and results that are many.
_LONG_ROW, _MANY = 512, 4096
#: Elements of a row of whole words from which on they are many for a thread that takes one after another.
_MANY_ELEMENTS = 100
#: Elements of a row of which places are looked for in packets: a row takes as long to begin with as so many.
_LEAST_FOUND = 24
#: Bytes of a row of small numbers whose words begin where those of others do, from which on it is a line.
_LINE_OF_SMALL = 400
#: Bytes of neighboring rows that a block has room for, and of elements that are taken four bytes at a time.
_STRETCH_BYTES, _IN_FOURS = 18432, 2
#: Banks of shared memory, and bytes after which there is a gap, as in the header.
_BANKS, _BANK_ROW = 32, 128
#: Bytes of the words of two-byte and larger numbers in rows with gaps, which threads had better load themselves.
_WORDS_OF_NUMBERS = (4, 8)
#: Words between those that threads begin with which would meet in a bank, as in the header.
_WORDS_APART = 8
#: Bytes of a row in all inputs, of which no more than a warp takes one: so much of a block's room.
_LONGEST = _STRETCH_BYTES * WARP // THREADS
#: The same of numbers between words from which on a row is long, by the size of an element: threads of `fold_lines`
#: pick packets out of two words, and wait for those of other rows, which begin elsewhere in a word.
_LONG_ROWS_BETWEEN_WORDS = {2: _LONGEST, 4: _LONGEST // 2, 8: _LONGEST}


def has_short_rows(walk: FoldWalk) -> bool:
    """Return whether many short folds have their elements one after another in all inputs, perhaps with gaps."""
    if not walk.inputs or len(walk.fold) > 1 or len(walk.kept) > 1 or walk.kept[0] < _MANY:
        return False
    pitch = _pitch(walk)
    if pitch < walk.fold[0] or skips_sectors(walk, pitch - walk.fold[0], walk.fold[0]) or _are_lines(walk):
        return False
    if pitch > walk.fold[0] and _are_words(walk):
        return False
    sizes = [pitch * each.itemsize for each in walk.inputs]
    return (
        all(
            fits_a_word(each.itemsize) and each.fold_strides[0] == each.itemsize and each.strides[0] == size
            for each, size in zip(walk.inputs, sizes, strict=True)
        )
        and sum(sizes) <= _LONGEST
        and (max(sizes) < _LONG_ROW or _are_between_words(walk, sizes))
    )


def _are_words(walk: FoldWalk) -> bool:
    """Return whether rows are as long as one word, of a few numbers that are no bytes."""
    sizes = [each.itemsize for each in walk.inputs]
    return min(sizes) > 1 and max(sizes) * walk.fold[0] in _WORDS_OF_NUMBERS


def _pitch(walk: FoldWalk) -> int:
    """Return how many elements a row of the first input begins after the one before it."""
    return walk.inputs[0].strides[0] // walk.inputs[0].itemsize


def _are_between_words(walk: FoldWalk, sizes: list[int]) -> bool:
    """Return whether rows of numbers, of so many bytes, begin at several places of a word, and are not long."""
    if walk.in_structures or not any(size % LARGEST_WORD for size in sizes):
        return False
    largest = max(each.itemsize for each in walk.inputs)
    return sum(sizes) < _LONG_ROWS_BETWEEN_WORDS.get(largest, _LONG_ROW)


def _are_lines(walk: FoldWalk) -> bool:
    """Return whether rows begin with words, of so many elements that threads had better load them than pick them."""
    row, sizes = walk.fold[0], [each.itemsize for each in walk.inputs]
    if row < _MANY_ELEMENTS or (walk.in_structures and max(sizes) == 1) or found_along(walk):
        return False
    if any(_pitch(walk) * size % LARGEST_WORD for size in sizes):
        return False
    if not walk.in_structures and sizes == [2] and row * 2 >= _LINE_OF_SMALL:
        return True
    return all(
        row * each.itemsize >= _LONG_ROW // 2 and each.address % LARGEST_WORD == 0 for each in walk.inputs
    )


def fold_short(walk: FoldWalk) -> FoldLoop:
    """Return the fold of short rows, which blocks bring to shared memory as they lie."""
    row, pitch, results, capacity = walk.fold[0], _pitch(walk), walk.kept[0], room_of(walk)
    sizes = [each.itemsize for each in walk.inputs]
    size, stretch, group = pitch * sum(sizes), _STRETCH_BYTES, 1
    found = found_along(walk) if row >= _LEAST_FOUND else ""
    if len(sizes) == 1 and (found or sizes[0] <= _IN_FOURS) and THREADS * size > stretch:
        # A row a thread, in more room, though not for all threads: so elements are taken by words.
        stretch = stretch * 2 if sizes[0] <= _IN_FOURS else stretch // 3 * 4
        rows = min(THREADS, stretch // size)
    else:
        while THREADS // group * size > stretch:
            group *= 2
        step = THREADS // group
        rows = max(step, stretch // size // step * step)
    rows = _rows_brought(rows, pitch * max(sizes))
    inputs = inputs_along(walk, capacity)
    fold_axes, kept_axes = axes_bytes(row, (row,), capacity), axes_bytes(results, (results,), capacity)
    word = _word_of_rows(walk) if found else 0
    has_gaps = size // word % 2 == 0 if word else _has_gaps(pitch, sizes, group)
    turns = _turns(size) if group == 1 and len(sizes) == 1 and not has_gaps else group
    space = fold_space_bytes(walk, capacity, rows, 1, turns, kept_axes, fold_axes, walk.kept_numbers, pitch)
    how = configuration(ceil_div(results, rows), THREADS)
    name = f"fold_short<{flag(has_gaps)}, {stretch}, {flag(group == 1)}{f', {word}' if word else ''}>::"
    return fold_loop(
        (_HEADER, name + "fold"), walk, space, inputs, how, name + "shared_bytes", tells_places=True,
        finds_places=found,
    )  # fmt: skip


def _has_gaps(row: int, sizes: list[int], group: int) -> bool:
    """Return whether gaps between rows keep threads apart."""
    largest = max(sizes)
    if group == 1:  # rows of whole words would all begin in the same banks
        return any(row * itemsize % LARGEST_WORD == 0 for itemsize in sizes)
    # Threads of a row meet those of the next ones, unless it is gaps that make rows begin in the same banks.
    return largest < LEAST_WORD or _meeting(row, largest, group, largest) < 2 * _meeting(
        row, largest, group, 0
    )


def _meeting(row: int, size: int, group: int, gap: int) -> int:
    """Return how many threads of a warp meet in a bank, which take elements of rows with gaps of so many bytes."""
    together = _BANKS // max(1, size // LEAST_WORD)
    met: dict[int, set[int]] = {}
    for thread in range(together):
        byte = (thread // group * row + thread % group) * size
        word = (byte + byte // _BANK_ROW * gap) // LEAST_WORD
        met.setdefault(word % _BANKS, set()).add(word)
    return max(map(len, met.values()))


def _turns(row: int) -> int:
    """Return how many threads, each with a row of so many bytes, begin with words of their own so that few meet."""

    def most_met(turns: int) -> int:
        words = (thread * row // LEAST_WORD + thread % turns * _WORDS_APART for thread in range(_BANKS))
        return max(Counter(word % _BANKS for word in words).values())

    return min((1, 2, 4), key=most_met)


def _word_of_rows(walk: FoldWalk) -> int:
    """Return the bytes of the largest words of which all rows are made; 0 where these are no words."""
    lengths = walk.fold[0], _pitch(walk)
    sizes = (
        place
        for each in walk.inputs
        for length in lengths
        for place in (length * each.itemsize, each.address)
    )
    word = gcd(LARGEST_WORD, *sizes)
    return word if word >= LEAST_WORD else 0


def _rows_brought(rows: int, size: int) -> int:
    """Return how many rows of so many bytes to bring: fewer where a few threads alone would load once more."""
    at_once = _AT_ONCE * THREADS * LARGEST_WORD
    whole = rows * size // at_once * at_once
    return (whole - LARGEST_WORD) // size if rows * size // 16 * 15 < whole < rows * size else rows
