"""Folds of a few elements, some inputs of which lie along one axis of results (include/gridstride/fold_outer.h)."""

from __future__ import annotations

from math import gcd, prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.fold_loops import fold_loop, fold_space_bytes, room_of
from gridstride.targets.block_loops.sizes import ceil_div, power_of_two_up_to
from gridstride.targets.walks import (
    LARGEST_WORD,
    LEAST_WORD,
    THREADS,
    WARP,
    FoldLoop,
    FoldWalk,
    Ints,
    Walked,
    axes_bytes,
    by_results,
    configuration,
    fits_a_word,
    flag,
    inputs_along,
    power_of_two_from,
)

#: Elements of a result at most, registers for those of a thread's columns, and structures that it folds at once.
_LONGEST, _REGISTERS, _STRUCTURES = 16, 64, 4
#: Rows of a thread for each four elements of a result, since what it keeps of columns takes a while to load, and as
#: many times of bytes; bytes of a block's rows of inputs at most.
_ROWS, _TIMES_OF_BYTES, _MOST_BYTES = 16, 2, 24576
#: Threads next to each other, and where more than so many elements make a result; lines of the cache of a row
#: from which on these make a difference, and bytes of one.
_GROUP, _WIDE_GROUP, _FEW, _EVEN_ROWS, _LINE = 32, 64, 4, 16, 128
#: Blocks for each multiprocessor.
_BLOCKS = 16
#: How an input lies, as in the headers.
OF_COLUMNS, OF_ROWS, OF_BOTH = range(3)


def fold_outer(walk: FoldWalk, limits: Limits) -> FoldLoop | None:
    """Return the loop where results make an outer product of rows and columns; None where they do not."""
    if len(walk.kept) < 2 or len(walk.fold) != 1 or not 1 < walk.fold[0] <= _LONGEST or not walk.outputs:
        return None
    walk = by_results(walk)
    (length,), (columns, rows, *outer) = walk.fold, walk.kept
    how = [how_it_lies(each) for each in walk.inputs]
    if not {OF_COLUMNS, OF_ROWS} & set(how) or not all(fits_a_word(each.itemsize) for each in walk.inputs):
        return None
    size = max(each.itemsize for each in walk.outputs)
    word = _word(walk, how)
    if word < max(LEAST_WORD, size) or columns * size < word or not fits_a_word(size):
        return None
    across = word // size
    steps = [walk.outputs[0].address, *walk.outputs[0].strides[1:]]
    # Rows of a thread begin alike.
    alike = word // gcd(word, steps[1])
    widest = _GROUP if length <= _FEW else _WIDE_GROUP
    group = min(widest, THREADS // alike, ceil_div(columns, across))
    height = THREADS // group // alike * alike
    even = gcd(height * steps[1], _LINE if columns * size >= _EVEN_ROWS * _LINE else word) // size
    behind = tuple(step // size % even for step in steps)
    packets = ceil_div(columns + (even - 1) * any(behind), across)
    waiting = sum(_pitch(length * each.itemsize) for each in walk.inputs if each.strides[0] == 0)
    most = max(
        height, power_of_two_up_to(min(_rows_wanted(length, size, height), _MOST_BYTES // max(1, waiting)))
    )
    # As many rows as leave enough blocks.
    enough = packets * rows * prod(outer) // (_BLOCKS * group * limits.multiprocessors)
    part = max(height, min(most, enough, rows) // height * height)
    lengths = (ceil_div(packets, group), ceil_div(rows, part), *outer)
    blocks, capacity = prod(lengths), room_of(walk)
    is_large = max(columns, rows) >= 1 << 31 or most * waiting >= limits.shared_memory_per_block
    if is_large or not limits.multiprocessors <= blocks < 1 << 31:
        return None
    space = fold_space_bytes(
        walk,
        capacity,
        part,
        1,
        group,
        axes_bytes(blocks, lengths, capacity),
        axes_bytes(length, (columns, rows, even), capacity),
        walk.kept_numbers,
        height,
        positions=behind,
    )
    name = f"fold_outer<{length}, {across}, {most}, {flag(_are_words(walk, across))}, {', '.join(map(str, how))}>::"
    inputs, launch = inputs_along(walk, capacity), configuration(blocks, THREADS)
    return fold_loop(
        ("gridstride/fold_outer.h", name + "fold"), walk, space, inputs, launch, name + "shared_bytes"
    )


def how_it_lies(operand: Walked) -> int:
    """Return along which of the first two axes an input has elements of its own."""
    if operand.strides[0] == 0:
        return OF_ROWS
    return OF_BOTH if operand.strides[1] else OF_COLUMNS


def _rows_wanted(length: int, size: int, height: int) -> int:
    """Return how many rows a block had better have, of results of so many bytes, each of so many elements."""
    return _ROWS * max(1, power_of_two_from(length) // _FEW) * (_TIMES_OF_BYTES if size == 1 else 1) * height


def _pitch(size: int) -> int:
    """Return how far apart rows of so many bytes wait, as in the header."""
    return power_of_two_from(size) if size <= LARGEST_WORD else ceil_div(size, LARGEST_WORD) * LARGEST_WORD


def _word(walk: FoldWalk, how: list[int]) -> int:
    """Return how many bytes of results a thread stores at once: fewer where what it keeps for them takes registers."""
    size, word = max(each.itemsize for each in walk.outputs), LARGEST_WORD
    kept = walk.fold[0] * sum(
        max(LEAST_WORD, each.itemsize) for each, k in zip(walk.inputs, how, strict=True) if k == OF_COLUMNS
    )
    while word > size and kept * (word // size) > LEAST_WORD * _REGISTERS:
        word //= 2
    if walk.in_structures:
        word = min(word, _STRUCTURES * size)
    if walk.kept[0] * size < WARP * LARGEST_WORD:
        word = gcd(word, *(place for each in walk.outputs for place in (each.address, *each.strides[1:])))
    return word


def _are_words(walk: FoldWalk, across: int) -> bool:
    """Return whether packets of all outputs begin at words where those of the first one do."""
    first = _places(walk.outputs[0], across)
    return all(each.strides[0] == each.itemsize and _places(each, across) == first for each in walk.outputs)


def _places(operand: Walked, across: int) -> Ints:
    """Return which elements of packets the first ones along each axis are."""
    size = operand.itemsize
    return tuple(
        place // size % across if place % size == 0 else -1
        for place in (operand.address, *operand.strides[1:])
    )
