"""The loop over rows where inputs are neighbors of each other (include/gridstride/stacked_rows.h)."""

from __future__ import annotations

from math import prod

from gridstride.targets.block_loops.element_loops import Steps, are_in_order, element_loop
from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.walks import WARP, ElementWalk, Ints, Loop, Walked

#: Inputs that are neighbors of each other at least.
_FEWEST = 3
#: Elements of a row at least.
_SHORTEST = 64
#: Threads of a block, and rows that it takes.
_THREADS, _ROWS = 128, 4


def stacked_rows(walk: ElementWalk) -> Loop | None:
    """Return the loop that takes some rows at once, where inputs are neighbors of each other; not for bytes."""
    if len(walk.shape) == 1 or not _SHORTEST <= walk.shape[0] < 1 << 31:
        return None
    if (
        any(each.itemsize == 1 for each in walk.operands)
        or not are_in_order(walk)
        or not _are_neighbors(walk)
    ):
        return None
    row, rows, *outer = walk.shape
    pieces = ceil_div(row, _THREADS)
    lengths = (pieces, ceil_div(rows, _ROWS), *outer)
    if prod(lengths) >= 1 << 31:
        return None

    def steps(strides: Ints) -> Steps:
        return strides[1], (strides[0], _ROWS * strides[1], *strides[2:])

    return element_loop(
        "gridstride/stacked_rows.h",
        f"stacked_rows<{_ROWS}>",
        walk,
        (row, rows, 0, 0),
        lengths,
        steps,
        threads=ceil_div(ceil_div(row, pieces), WARP) * WARP,
    )


def _are_neighbors(walk: ElementWalk) -> bool:
    """Return whether so many inputs are the same array's, each some elements or rows beside another."""
    inputs = [operand for operand in walk.operands if not operand.written and operand.strides[0]]
    return any(sum(_is_neighbor(walk, one, each) for each in inputs) >= _FEWEST for one in inputs)


def _is_neighbor(walk: ElementWalk, one: Walked, other: Walked) -> bool:
    span = sum((length - 1) * abs(step) for length, step in zip(walk.shape, one.strides, strict=True))
    return one.strides == other.strides and abs(one.address - other.address) < span
