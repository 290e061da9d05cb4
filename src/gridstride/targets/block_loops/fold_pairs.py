"""Folds of each row of some inputs with each row of others (include/gridstride/fold_pairs.h)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.fold_loops import fold_loop, fold_space_bytes, results_make_a_row, room_of
from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.walks import (
    LARGEST_WORD,
    THREADS,
    WARP,
    FoldLoop,
    FoldWalk,
    Ints,
    Walked,
    axes_bytes,
    configuration,
    fits_a_word,
    flag,
    inputs_along,
)

#: Columns of results that a thread has, unless more make a word; rows, and results, at most; and the fewest columns
#: that are worth it.
_ACROSS, _DOWN, _RESULTS, _LEAST_COLUMNS = 4, 8, 32, 24
#: Elements of rows at most: each result is folded by one thread.
_LONGEST = 1024
#: How many times as many results tiles may cover as the best ones do, and as there are.
_AS_GOOD, _MOST_COVERED = 1.15, 2
#: Elements of rows that wait in shared memory at once, and bytes of those at most, as in the header.
_CHUNK, _CHUNK_BYTES = 32, 128


def fold_pairs(walk: FoldWalk, limits: Limits) -> FoldLoop | None:
    """Return the loop where each input is the same along the columns of results, or along their rows."""
    if len(walk.kept) < 2 or len(walk.fold) != 1 or walk.in_structures or not 1 < walk.fold[0] <= _LONGEST:
        return None
    columns, rows, *outer = walk.kept
    if columns < _LEAST_COLUMNS or max(columns, rows) >= 1 << 31 or not _are_pairs(walk):
        return None
    stored = max((each.itemsize for each in walk.outputs), default=LARGEST_WORD)
    across = _own(columns, WARP, max(_ACROSS, LARGEST_WORD // stored))
    down = _own(rows, THREADS // WARP, min(_DOWN, _RESULTS // across))
    tiles = ceil_div(columns, WARP * across), ceil_div(rows, THREADS // WARP * down)
    blocks = prod(tiles) * prod(outer)
    is_wasted = prod(tiles) * THREADS * across * down > _MOST_COVERED * columns * rows
    if is_wasted or not limits.multiprocessors <= blocks < 1 << 31:
        return None
    if _shared_bytes(walk.inputs, across * WARP, down * THREADS // WARP) > limits.shared_memory_per_block:
        return None
    capacity = room_of(walk)
    space = fold_space_bytes(
        walk,
        capacity,
        columns,
        1,
        tiles[0],
        axes_bytes(blocks, (prod(tiles), rows, *outer), capacity),
        axes_bytes(walk.fold[0], walk.fold, capacity),
        walk.kept_numbers,
        rows,
        kept_row=prod(walk.kept) if results_make_a_row(walk) else None,
    )
    of_columns = (flag(each.strides[1] == 0) for each in walk.inputs)
    name = f"fold_pairs<{across}, {down}, {', '.join(of_columns)}>::"
    how = configuration(blocks, THREADS)
    return fold_loop(
        ("gridstride/fold_pairs.h", name + "fold"),
        walk,
        space,
        inputs_along(walk, capacity),
        how,
        name + "shared_bytes",
    )


def _are_pairs(walk: FoldWalk) -> bool:
    """Return whether there are inputs with a row for each column of results, and others with one for each row."""
    if not all(fits_a_word(each.itemsize) for each in walk.inputs):
        return False
    farthest = max(abs(step) for each in walk.inputs for step in (*each.strides[:2], *each.fold_strides))
    if farthest * _LONGEST >= 1 << 31:
        return False
    steps: list[Ints] = [each.strides[:2] for each in walk.inputs]
    return (
        all(0 in step for step in steps) and any(step[0] for step in steps) and any(step[1] for step in steps)
    )


def _shared_bytes(inputs: Sequence[Walked], columns: int, rows: int) -> int:
    """Return the shared memory of a block, as the header has it."""
    chunk = min(_CHUNK, _CHUNK_BYTES // max(each.itemsize for each in inputs))
    sides = ((columns if each.strides[1] == 0 else rows) * each.itemsize for each in inputs)
    return sum(chunk * (ceil_div(side, LARGEST_WORD) + 1) * LARGEST_WORD for side in sides)


def _own(length: int, apart: int, most: int) -> int:
    """Return how many results of a side a thread has: as many as waste about as little as fewer would."""
    counts = [1 << power for power in range(most.bit_length())]
    covered = {own: ceil_div(length, own * apart) * own * apart for own in counts}
    best = min(covered.values())
    return max(own for own in counts if covered[own] <= _AS_GOOD * best)
