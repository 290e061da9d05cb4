"""Folds by blocks of threads of a few elements for each result, of which a thread takes several results."""

from __future__ import annotations

from math import gcd

from gridstride.targets.block_loops.fold_loops import fold_loop, fold_space_bytes, room_of
from gridstride.targets.block_loops.sizes import ceil_div, power_of_two_up_to
from gridstride.targets.walks import (
    LARGEST_WORD,
    THREADS,
    FoldLoop,
    FoldWalk,
    Walked,
    axes_bytes,
    configuration,
    inputs_along,
)

_HEADER = "gridstride/fold_few.h"
#: Elements of a row, if they are no word, of which a thread takes neighboring ones, and bytes of those.
_FEW, _FEW_BYTES = 8, 144
#: Words of those that a thread loads itself, as in the header.
_MOST_OWN_WORDS = 3


def has_few(walk: FoldWalk) -> bool:
    """Return whether the elements of short rows are so few and small that neighboring results are in a few words."""
    row, results = walk.fold[0], _results_of_few(walk)
    size = row * max(each.itemsize for each in walk.inputs)
    is_small = size <= LARGEST_WORD and (row <= _FEW or size == LARGEST_WORD)
    return (
        row > 1
        and all(each.strides[0] == row * each.itemsize for each in walk.inputs)
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


def fold_few(walk: FoldWalk) -> FoldLoop:
    """Return the fold of a few elements for each result, of which a thread takes several."""
    row, results, capacity = walk.fold[0], walk.kept[0], room_of(walk)
    each = _results_of_few(walk)
    size = row * each * max(one.itemsize for one in walk.inputs)
    count = 4 if size <= 16 else 2 if size <= 32 else 1
    inputs = inputs_along(walk, capacity)
    fold_axes, kept_axes = axes_bytes(row, (row,), capacity), axes_bytes(results, (results,), capacity)
    space = fold_space_bytes(walk, capacity, 1, 1, 1, kept_axes, fold_axes, walk.kept_numbers)
    how = configuration(ceil_div(results // each, THREADS * count), THREADS)
    name = f"fold_few<{row}, {each}>::"
    return fold_loop(
        (_HEADER, name + "fold"), walk, space, inputs, how, name + "shared_bytes", tells_places=True
    )
