"""The loop over rows whose outputs have gaps, by elements of whichever rows.

It is that of include/gridstride/striped_rows.h.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from gridstride.targets.block_loops.element_loops import Steps, along_rows, element_loop
from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.walks import (
    LARGEST_WORD,
    LEAST_WORD,
    SECTOR,
    THREADS,
    WARP,
    ElementWalk,
    Ints,
    Loop,
)

#: Elements that a thread has, and words of a few; elements of rows of which a block has whole ones.
_ELEMENTS, _WORDS, _LONGEST = 8, 4, 512
#: Which part of the rows that a block takes at once there are at least.
_LEAST_FILLED = 0.5
#: Elements of rows that are too few for packets.
_FEW = 4
#: Gaps between rows, and between elements.
_BETWEEN, _WITHIN = 1, 2
#: By how much the header shifts to find a thread's row.
_SHIFT = 20


def striped_rows(walk: ElementWalk) -> Loop | None:
    """Return the loop in which neighboring threads take neighboring elements, where outputs have gaps, or few."""
    row, *outer = walk.shape
    if row > _LONGEST:
        return _stripes(walk, (row, 1, 1), outer, along_rows) if _has_gaps(walk) else None
    if not outer or not (_has_gaps(walk) or _cuts_sectors(walk) or _has_few_bytes(walk)):
        return None
    width = row if row < LEAST_WORD and _are_words(walk) else 1
    return _stripes(
        walk, (outer[0], row, width), outer[1:], lambda strides: (strides[1], (strides[0], *strides[2:]))
    )


def _stripes(
    walk: ElementWalk, sizes: Ints, outer: Sequence[int], steps: Callable[[Ints], Steps]
) -> Loop | None:
    """Return the loop for so many rows of so many elements, of which a thread takes so many.

    None where a grid has no room for its blocks.
    """
    rows, row, width = sizes
    pieces, count = row // width, _ELEMENTS if width == 1 else _WORDS
    at_once = max(1, THREADS // pieces)
    if outer and _LEAST_FILLED * at_once > rows:
        return None
    lengths = (ceil_div(rows, count * at_once), *outer)
    if prod(lengths) >= 1 << 31:
        return None
    return element_loop(
        "gridstride/striped_rows.h",
        f"striped_rows<{width}, {count}, {_gaps(walk, row)}>",
        walk,
        (rows, row, at_once, (1 << _SHIFT) // pieces + 1),
        lengths,
        steps,
        threads=ceil_div(at_once * pieces, WARP) * WARP,
    )


def _gaps(walk: ElementWalk, row: int) -> int:
    """Return where outputs have gaps, as the header is told, beside elements that a block takes by rows of so many."""
    outputs = [operand for operand in walk.operands if operand.written]
    if any(abs(operand.strides[0]) != operand.itemsize for operand in outputs):
        return _WITHIN
    return _BETWEEN * any(
        row > 1 and abs(operand.strides[1]) != row * operand.itemsize for operand in outputs
    )


def _has_gaps(walk: ElementWalk) -> bool:
    """Return whether an output has gaps between the elements of a row."""
    return any(
        operand.written and operand.strides[0] != operand.itemsize <= LARGEST_WORD
        for operand in walk.operands
    )


def _cuts_sectors(walk: ElementWalk) -> bool:
    """Return whether an output has gaps between rows that begin or end within sectors."""
    row = walk.shape[0]
    return any(
        operand.written
        and operand.itemsize <= LARGEST_WORD
        and abs(operand.strides[1]) != row * operand.itemsize
        and any(each % SECTOR for each in (operand.address, operand.strides[1], row * operand.itemsize))
        for operand in walk.operands
    )


def _has_few_bytes(walk: ElementWalk) -> bool:
    """Return whether rows are so short that packets would cover several, and are no words."""
    row = walk.shape[0]
    return row <= _FEW and bool(walk.operands) and row * walk.operands[-1].itemsize % LEAST_WORD != 0


def _are_words(walk: ElementWalk) -> bool:
    """Return whether each row of the outputs is bytes of a word."""
    return all(
        operand.itemsize == 1 and abs(operand.strides[1]) == LEAST_WORD
        for operand in walk.operands
        if operand.written
    )
