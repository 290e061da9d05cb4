"""The loops of every target that has none of its own: for devices that run blocks of threads.

They are those of include/gridstride, valid on every target; what is chosen depends on the walk and on the
device's limits.
"""

from __future__ import annotations

from math import gcd, prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.cubes import cubes
from gridstride.targets.block_loops.even_rows import even_rows
from gridstride.targets.block_loops.exchanged_rows import exchanged_rows
from gridstride.targets.block_loops.flat_rows import flat_rows, flat_rows_of_words
from gridstride.targets.block_loops.fold_across import fold_across
from gridstride.targets.block_loops.fold_boxes import fold_boxes
from gridstride.targets.block_loops.fold_columns import fold_columns, fold_stacked, has_stretches
from gridstride.targets.block_loops.fold_few import fold_few, has_few
from gridstride.targets.block_loops.fold_few_rows import fold_few_rows, has_few_rows, has_few_rows_of_two_axes
from gridstride.targets.block_loops.fold_lines import fold_lines
from gridstride.targets.block_loops.fold_little import fold_little, reads_little
from gridstride.targets.block_loops.fold_loops import folds_innermost
from gridstride.targets.block_loops.fold_narrow import fold_narrow, is_narrow
from gridstride.targets.block_loops.fold_outer import fold_outer
from gridstride.targets.block_loops.fold_pairs import fold_pairs
from gridstride.targets.block_loops.fold_parts_of_rows import fold_parts_of_rows
from gridstride.targets.block_loops.fold_planes import fold_planes
from gridstride.targets.block_loops.fold_rows import fold_rows
from gridstride.targets.block_loops.fold_short import fold_short, has_short_rows
from gridstride.targets.block_loops.fold_small import fold_small, is_small
from gridstride.targets.block_loops.fold_turned import fold_turned
from gridstride.targets.block_loops.rows import packets_of_rows, rows
from gridstride.targets.block_loops.sizes import packet_length
from gridstride.targets.block_loops.stacked_rows import stacked_rows
from gridstride.targets.block_loops.strips import strip_loop
from gridstride.targets.block_loops.tiles import any_tiles, turned_tiles
from gridstride.targets.walks import LEAST_WORD, THREADS, WARP, ElementWalk, FoldLoop, FoldWalk, Loop

#: Axes for which loops for any walk have room at least.
_ROOM_OF_ANY = 8
#: Folds of so few elements leave a thread too little to do for one result.
_TINY = 8
#: Bytes of a row that is short.
_SHORT_ROW = 64
#: Rows of a thread that are many where a few columns make a result, and the fewest then.
_MANY_ROWS, _FEWEST_ROWS = 16, 2


class BlockLoops:
    """Choose loops for blocks of threads."""

    has_many_folds = True

    def elementwise(self, walk: ElementWalk, limits: Limits) -> Loop:
        """Return packets of rows, or strips and tiles where operands lie along different axes."""
        length = packet_length(walk.operands)
        return (
            exchanged_rows(walk, limits)
            or stacked_rows(walk)
            or cubes(walk, limits)
            or flat_rows(walk, length)
            or strip_loop(walk, length, limits)
            or turned_tiles(walk, length, limits)
            or even_rows(walk, length)
            or flat_rows_of_words(walk, length)
            or rows(walk, length, limits)
        )

    def any_elementwise(self, walk: ElementWalk, limits: Limits) -> Loop:
        """Return tiles where operands lie along different axes, else packets of rows."""
        length = packet_length(walk.operands)
        return any_tiles(walk, length, limits) or packets_of_rows(walk, length, _ROOM_OF_ANY)

    def reduction(self, walk: FoldWalk, limits: Limits) -> FoldLoop:
        """Return a fold along or across the innermost axis, in parts where results alone are too few."""
        return self._reduction(walk, limits, in_boxes=True)

    @staticmethod
    def _reduction(walk: FoldWalk, limits: Limits, in_boxes: bool) -> FoldLoop:
        if is_small(walk):
            return fold_small(walk)
        if reads_little(walk):
            return fold_little(walk, limits)
        if in_boxes and (planes := fold_planes(walk, limits)) is not None:
            return planes
        if is_narrow(walk):
            return fold_narrow(walk, limits)
        if (pairs := fold_outer(walk, limits) or fold_pairs(walk, limits)) is not None:
            return pairs
        if has_short_rows(walk):
            return fold_few(walk) if has_few(walk) else fold_short(walk)
        if (turned := fold_turned(walk, limits)) is not None:
            return turned
        if not folds_innermost(walk) or _is_tiny(walk):
            return _across(walk, limits, in_boxes)
        if len(walk.fold) == 1 or not all(walk.fold) or walk.fold[0] >= 1 << 31:
            return fold_lines(walk, limits)
        return _of_several_axes(walk, limits, in_boxes)

    def large_reduction(self, walk: FoldWalk, limits: Limits, size: int) -> FoldLoop:
        """Return a fold that has fewer values at once, or none in shared memory."""
        from gridstride.targets.block_loops.fold_large import fold_large

        loop = self._reduction(walk, limits, in_boxes=False)
        return loop if loop.largest is None or size <= loop.largest else fold_large(walk, limits)


def _across(walk: FoldWalk, limits: Limits, in_boxes: bool) -> FoldLoop:
    """Return a fold across rows, in which threads take packets of results."""
    if has_few_rows_of_two_axes(walk):
        return fold_few_rows(walk, limits)
    if len(walk.fold) > 1:
        return (fold_boxes(walk, limits) if in_boxes else None) or fold_across(walk, limits)
    if in_boxes and _has_odd_rows(walk) and (boxes := fold_boxes(walk, limits, in_rows=True)):
        return boxes
    if has_few_rows(walk, limits):
        return fold_few_rows(walk, limits)
    return fold_columns(walk, limits) if has_stretches(walk) else fold_across(walk, limits)


def _of_several_axes(walk: FoldWalk, limits: Limits, in_boxes: bool) -> FoldLoop:
    """Return a fold along several axes, of which elements lie closest along the innermost."""
    if walk.fold[0] >= WARP * packet_length(walk.inputs):
        return fold_parts_of_rows(walk, limits) or fold_rows(walk, limits)
    return (
        (fold_boxes(walk, limits, in_words=True) if in_boxes else None)
        or fold_stacked(walk, limits, _MANY_ROWS)
        or (fold_boxes(walk, limits) if in_boxes else None)
        or fold_stacked(walk, limits, _FEWEST_ROWS)
        or fold_rows(walk, limits)
    )


def _is_tiny(walk: FoldWalk) -> bool:
    """Return whether so few elements make each of many results that threads had better take several results."""
    return prod(walk.fold) <= _TINY and walk.kept[0] >= THREADS


def _has_odd_rows(walk: FoldWalk) -> bool:
    """Return whether rows are short, and made of words that are too small to load them one by one."""
    row, size = walk.kept[0], max((each.itemsize for each in walk.inputs), default=1)
    least = 2 if size == 1 else 2 * LEAST_WORD
    return len(walk.kept) > 1 and row * size < _SHORT_ROW and gcd(row * size, least) < least
