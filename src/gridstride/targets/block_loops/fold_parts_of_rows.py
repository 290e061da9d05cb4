"""Folds by blocks of threads of several rows for each result, every one of which is a part of it."""

from __future__ import annotations

import struct

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.fold_columns import joining_of_rows
from gridstride.targets.block_loops.fold_lines import fold_lines
from gridstride.targets.block_loops.fold_loops import fold_space_bytes, room_of
from gridstride.targets.block_loops.fold_short import fold_short, has_short_rows
from gridstride.targets.walks import LARGEST_WORD, FoldLoop, FoldWalk, axes_bytes, walked_operands

_HEADER = "gridstride/fold_parts_of_rows.h"
#: Bytes of a row from which on a part of a result, stored and loaded again, takes little longer.
_LEAST_ROW = 256
#: Rows of all results that are many, and rows of one that are too many for those who join them.
_MANY, _TOO_MANY = 4096, 8192


def fold_parts_of_rows(walk: FoldWalk, limits: Limits) -> FoldLoop | None:
    """Return the fold of rows between words that lie one after another, those of a result as far apart as results are.

    None where they do not, where they take more blocks than a launch has, and where elements have numbers, which parts
    have not.
    """
    if not _has_parts(walk):
        return None
    (row, parts), (results,) = walk.fold, walk.kept
    rows = walk._replace(
        kept=(parts * results,),
        fold=(row,),
        kept_numbers=(0,),
        fold_numbers=(0,),
        positions=(0,),
        results=(1,),
        inputs=tuple(each._replace(fold_strides=each.fold_strides[:1]) for each in walk.inputs),
        outputs=(),
    )
    loop = fold_short(rows) if has_short_rows(rows) else fold_lines(rows, limits)
    if loop.parts > 1 or loop.configuration.grid[0] >= 1 << 31:
        return None
    capacity = room_of(walk)
    fold_axes, kept_axes = (
        axes_bytes(row * parts, walk.fold, capacity),
        axes_bytes(results, walk.kept, capacity),
    )
    return loop._replace(
        header=_HEADER,
        operands=(*loop.operands, *walked_operands(walk.outputs, capacity)),
        space=_counting_each(loop.space, parts),
        joined_space=fold_space_bytes(walk, capacity, 1, parts, 1, kept_axes, fold_axes, (0,)),
        parts=parts,
        parts_outermost=True,
        joining=joining_of_rows(results, parts, capacity),
    )


def _has_parts(walk: FoldWalk) -> bool:
    """Return whether all rows lie one after another, between words, and those of a result are many results apart."""
    if len(walk.fold) != 2 or len(walk.kept) != 1 or walk.in_structures or not walk.inputs:
        return False
    (row, parts), (results,) = walk.fold, walk.kept
    if not 1 < parts < _TOO_MANY or parts * results < _MANY:
        return False
    if any((*walk.kept_numbers, *walk.fold_numbers, *walk.positions)):
        return False
    return all(
        row * each.itemsize >= _LEAST_ROW
        and row * each.itemsize % LARGEST_WORD
        and each.fold_strides == (each.itemsize, results * row * each.itemsize)
        and each.strides == (row * each.itemsize,)
        for each in walk.inputs
    )


def _counting_each(space: bytes, parts: int) -> bytes:
    """Return ``fold_space`` of rows in which a row has as many elements as all those of a result."""
    (size,) = struct.unpack_from("<q", space)
    return struct.pack("<q", size * parts) + space[8:]
