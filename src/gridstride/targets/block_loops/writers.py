"""The loops of every target that has none of its own: for devices that run blocks of threads.

They are those of include/gridstride, valid on every target; what is chosen depends on the walk and on the
device's limits.
"""

from __future__ import annotations

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.exchanged import exchanged_rows
from gridstride.targets.block_loops.flat_rows import flat_rows, flat_rows_of_words
from gridstride.targets.block_loops.folds_across import fold_across
from gridstride.targets.block_loops.folds_along import fold_along
from gridstride.targets.block_loops.folds_of_planes import fold_of_planes
from gridstride.targets.block_loops.folds_turned import turned_fold
from gridstride.targets.block_loops.little_folds import little_fold, reads_little
from gridstride.targets.block_loops.outer import fold_outer
from gridstride.targets.block_loops.pairs import fold_of_pairs
from gridstride.targets.block_loops.rows import even_rows, packets_of_rows, rows
from gridstride.targets.block_loops.short_folds import (
    fold_of_few,
    has_few,
    has_short_rows,
    is_narrow,
    is_small,
    narrow_fold,
    short_fold,
    small_fold,
)
from gridstride.targets.block_loops.spaces import packet_length
from gridstride.targets.block_loops.strips import strip_loop
from gridstride.targets.block_loops.tiles import any_tiles, turned_tiles
from gridstride.targets.walks import ElementWalk, FoldLoop, FoldWalk, Loop


class BlockLoops:
    """Choose loops for blocks of threads."""

    def elementwise(self, walk: ElementWalk, limits: Limits) -> Loop:
        """Return packets of rows, or strips and tiles where operands lie along different axes."""
        length = packet_length([operand.itemsize for operand in walk.operands])
        return (
            exchanged_rows(walk, limits)
            or flat_rows(walk, length)
            or strip_loop(walk, length, limits)
            or turned_tiles(walk, length, limits)
            or even_rows(walk, length)
            or flat_rows_of_words(walk, length)
            or rows(walk, length, limits)
        )

    def any_elementwise(self, walk: ElementWalk, limits: Limits) -> Loop:
        """Return tiles where operands lie along different axes, else packets of rows."""
        length = packet_length([operand.itemsize for operand in walk.operands])
        return any_tiles(walk, length, limits) or packets_of_rows(walk, length)

    def reduction(self, walk: FoldWalk, limits: Limits) -> FoldLoop:
        """Return a fold along or across the innermost axis, in parts where results alone are too few."""
        return self._reduction(walk, limits, in_boxes=True)

    @staticmethod
    def _reduction(walk: FoldWalk, limits: Limits, in_boxes: bool) -> FoldLoop:
        if is_small(walk):
            return small_fold(walk)
        if reads_little(walk):
            return little_fold(walk, limits)
        if in_boxes and (planes := fold_of_planes(walk, limits)) is not None:
            return planes
        if is_narrow(walk):
            return narrow_fold(walk, limits)
        if (pairs := fold_outer(walk, limits) or fold_of_pairs(walk, limits)) is not None:
            return pairs
        if has_short_rows(walk):
            return fold_of_few(walk) if has_few(walk) else short_fold(walk)
        if (turned := turned_fold(walk, limits)) is not None:
            return turned
        return fold_across(walk, limits, in_boxes) or fold_along(walk, limits)

    def large_reduction(self, walk: FoldWalk, limits: Limits, size: int) -> FoldLoop:
        """Return a fold that has fewer values at once, or none in shared memory."""
        from gridstride.targets.block_loops.large_folds import large_fold

        loop = self._reduction(walk, limits, in_boxes=False)
        return loop if loop.largest is None or size <= loop.largest else large_fold(walk, limits)
