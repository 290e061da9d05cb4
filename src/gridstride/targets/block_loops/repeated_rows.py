"""The loop over long rows between words, where an input is one row again and again."""

from __future__ import annotations

from math import gcd

from gridstride.targets.block_loops.element_loops import (
    BETWEEN_WORDS,
    ONE_FOR_A_ROW,
    are_in_order,
    begins_as,
    element_loop,
)
from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.walks import LARGEST_WORD, THREADS, ElementWalk, Ints, Loop, Walked

#: Elements of a packet from which on packets of one row are taken once for several rows: for how many; and how such an
#: input lies, as the header is told.
_LEAST_REPEATED, _ROWS_AT_ONCE, _ONE_ROW = 8, 4, 3


def repeated_rows(walk: ElementWalk, length: int) -> Loop | None:
    """Return the loop for rows of small elements between words, where an input is one row again and again."""
    last = walk.operands[-1] if walk.operands else None
    if last is None or not last.written or len(walk.shape) != 2 or length < _LEAST_REPEATED:
        return None
    if not are_in_order(walk) or any(operand.itemsize != last.itemsize for operand in walk.operands):
        return None
    kinds = [_kind_of_rows(operand, last, walk.shape) for operand in walk.operands]
    row, rows = walk.shape
    apart = LARGEST_WORD // gcd(LARGEST_WORD, last.strides[1])
    if _ONE_ROW not in kinds or apart == 1 or not apart * _ROWS_AT_ONCE <= rows < 2**31:
        return None
    width = length // _LEAST_REPEATED * THREADS
    lengths = (ceil_div(row // length, width), apart, ceil_div(rows, apart * _ROWS_AT_ONCE))
    name = f"repeated_rows<{_ROWS_AT_ONCE}, {', '.join(map(str, kinds))}>"
    return element_loop("gridstride/repeated_rows.h", name, walk, (row, rows, width, 0), lengths)


def _kind_of_rows(operand: Walked, last: Walked, shape: Ints) -> int:
    """Return how an operand lies, as ``repeated_rows`` is told."""
    if operand.strides[0] == 0:
        return ONE_FOR_A_ROW
    return (
        _ONE_ROW
        if operand.strides[1] == 0
        else BETWEEN_WORDS + begins_as(operand, last, shape, LARGEST_WORD // last.itemsize)
    )
