"""The loop over short rows of whole words along several axes."""

from __future__ import annotations

from math import prod

from gridstride.targets.block_loops.element_loops import element_loop
from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.walks import LARGEST_WORD, THREADS, ElementWalk, Loop, Walked

#: Short rows that a thread takes a packet of, and how many of the threads of a block must have one.
_ROWS_OF_THREAD, _LEAST_BUSY = 2, 0.75


def even_rows(walk: ElementWalk, length: int) -> Loop | None:
    """Return the loop for short rows of whole packets, along several axes, where each packet is a word."""
    row, *outer = walk.shape
    packets, rest = divmod(row, length)
    if len(outer) < 2 or rest or not 1 <= packets <= THREADS:
        return None
    rows = min(THREADS // packets, outer[0])
    if rows * packets < _LEAST_BUSY * THREADS or not all(_is_words(each, length) for each in walk.operands):
        return None
    pieces = (packets, ceil_div(outer[0], rows), ceil_div(outer[1], _ROWS_OF_THREAD), *outer[2:])
    blocks = prod(pieces[1:])
    if blocks >= 2**31:
        return None
    name, sizes = f"even_rows<{_ROWS_OF_THREAD}>", (row, outer[0], rows, outer[1])
    return element_loop("gridstride/even_rows.h", name, walk, sizes, pieces, count=blocks)


def _is_words(operand: Walked, length: int) -> bool:
    """Return whether each packet of whole rows is a word in memory."""
    word = length * operand.itemsize
    starts = (operand.address, *operand.strides[1:])
    return (
        operand.strides[0] == operand.itemsize
        and word <= LARGEST_WORD
        and word & (word - 1) == 0
        and all(each % word == 0 for each in starts)
    )
