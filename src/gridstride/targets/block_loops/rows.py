"""Loops over rows by blocks of threads, in packets of elements."""

from __future__ import annotations

from math import gcd, prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.element_loops import (
    BETWEEN_WORDS,
    ONE_FOR_A_ROW,
    begins_as,
    element_loop,
)
from gridstride.targets.block_loops.spaces import blocks_for
from gridstride.targets.block_loops.striped import striped_rows
from gridstride.targets.walks import (
    LARGEST_WORD,
    LEAST_WORD,
    THREADS,
    WARP,
    ElementWalk,
    Ints,
    Loop,
    Walked,
    flag,
)

_ELEMENTWISE = "gridstride/elementwise.h"
#: Packets from which on a row is long enough for a block of its own.
LONG_PACKETS = 2 * THREADS
#: Elements of a packet from which on packets of one row are taken once for several rows: for how many; and how such an
#: input lies, as the header is told.
_LEAST_REPEATED, _ROWS_AT_ONCE, _ONE_ROW = 8, 4, 3
#: Short rows that a thread takes a packet of, and how many of the threads of a block must have one.
_ROWS_OF_THREAD, _LEAST_BUSY = 2, 0.75
#: Steps of bytes from which on they are gathered by words.
_FAR = 4
#: Packets that a thread of a long row's block takes at most: few where every input is brought from memory, more where
#: some are read again and again, and most of bytes where all are: then what a block begins with takes longest.
_PACKETS_OF_THREAD, _PACKETS_OF_SOME, _PACKETS_OF_ALL = 2, 4, 8


def rows(walk: ElementWalk, length: int, limits: Limits) -> Loop:
    """Return the loop over packets of rows, by one text for long rows and one for short ones."""
    if (striped := striped_rows(walk)) is not None:
        return striped
    length = _gathered_length(walk, length)
    packets = packets_of_row(walk, length)
    outer = walk.shape[1:]
    total = packets * prod(outer)
    if packets < LONG_PACKETS and outer:
        return packets_of_rows(walk, length)
    is_read_again = _is_read_again(walk, limits)
    if not is_read_again and (again := repeated_rows(walk, length)) is not None:
        return again
    # Several packets for a thread, unless there are too few then for all multiprocessors.
    each = min(_packets_of_thread(walk, length), max(1, total // (16 * THREADS * limits.multiprocessors)))
    pieces = blocks_for(packets, each * THREADS)
    # Warps begin where lines of the caches do.
    width = blocks_for(packets, pieces * WARP) * WARP
    pieces = blocks_for(packets, width)
    sizes = (walk.shape[0], 1, width, prod(outer) if is_read_again else 0)
    name = f"long_rows<{length}, {flag(are_in_order(walk))}>"
    return element_loop(_ELEMENTWISE, name, walk, sizes, (pieces, *outer))


def packets_of_rows(walk: ElementWalk, length: int) -> Loop:
    """Return the loop whose threads take a packet each, of whichever rows."""
    packets, outer = packets_of_row(walk, length), walk.shape[1:]
    total = packets * prod(outer)
    index = "unsigned" if total < 2**31 else "unsigned long long"
    name, sizes = f"rows<{index}, {length}, {flag(are_in_order(walk))}>", (walk.shape[0], 1, 1, 0)
    return element_loop(_ELEMENTWISE, name, walk, sizes, (packets, *outer), blocks=blocks_for(total, THREADS))


def _gathered_length(walk: ElementWalk, length: int) -> int:
    """Return how long packets are: a word of bytes of which an input has few in a sector."""
    is_far = any(abs(operand.strides[0]) >= _FAR for operand in walk.operands if not operand.written)
    return LEAST_WORD if is_far and length == LARGEST_WORD else length


def _is_read_again(walk: ElementWalk, limits: Limits) -> bool:
    """Return whether rows are so long that one which is read for several has left the cache before the next one."""
    cache = limits.attributes.get("L2CacheSize", 0)
    return sum(operand.itemsize for operand in walk.operands) * walk.shape[0] > cache // 4 > 0 and any(
        operand.strides[0] != 0 and any(stride == 0 for stride in operand.strides[1:])
        for operand in walk.operands
    )


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
    lengths = (blocks_for(row // length, width), apart, blocks_for(rows, apart * _ROWS_AT_ONCE))
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


def _packets_of_thread(walk: ElementWalk, length: int) -> int:
    """Return how many packets a thread takes of a long row at most."""
    again = [
        operand.strides[0] == 0 or any(stride == 0 for stride in operand.strides[1:])
        for operand in walk.operands
        if not operand.written
    ]
    if not any(again):
        return _PACKETS_OF_THREAD
    return _PACKETS_OF_ALL if all(again) and length == LARGEST_WORD else _PACKETS_OF_SOME


def even_rows(walk: ElementWalk, length: int) -> Loop | None:
    """Return the loop for short rows of whole packets, along several axes, where each packet is a word."""
    row, *outer = walk.shape
    packets, rest = divmod(row, length)
    if len(outer) < 2 or rest or not 1 <= packets <= THREADS:
        return None
    rows = min(THREADS // packets, outer[0])
    if rows * packets < _LEAST_BUSY * THREADS or not all(
        _is_words(each, walk, length) for each in walk.operands
    ):
        return None
    pieces = (packets, blocks_for(outer[0], rows), blocks_for(outer[1], _ROWS_OF_THREAD), *outer[2:])
    blocks = prod(pieces[1:])
    if blocks >= 2**31:
        return None
    name, sizes = f"even_rows<{_ROWS_OF_THREAD}>", (row, outer[0], rows, outer[1])
    return element_loop("gridstride/even_rows.h", name, walk, sizes, pieces, count=blocks)


def _is_words(operand: Walked, walk: ElementWalk, length: int) -> bool:
    """Return whether each packet of whole rows is a word in memory."""
    word = length * operand.itemsize
    starts = (operand.address, *operand.strides[1:])
    return (
        operand.strides[0] == operand.itemsize
        and word <= LARGEST_WORD
        and word & (word - 1) == 0
        and all(each % word == 0 for each in starts)
    )


def are_in_order(walk: ElementWalk) -> bool:
    """Return whether rows of all operands are consecutive, or one element that is read again and again."""
    return all(
        operand.strides[0] == operand.itemsize or (operand.strides[0] == 0 and not operand.written)
        for operand in walk.operands
    )


def packets_of_row(walk: ElementWalk, length: int) -> int:
    """Return how many packets cover a row: one more where rows of the last operand start between two words."""
    row = walk.shape[0]
    if not walk.operands or length == 1:
        return -(-row // length)
    last = walk.operands[-1]
    word = length * last.itemsize
    starts_at_words = last.address % word == 0 and all(
        stride % word == 0 for stride, size in zip(last.strides[1:], walk.shape[1:], strict=True) if size > 1
    )
    if starts_at_words or last.strides[0] != last.itemsize:
        return -(-row // length)
    return -(-(row + length - 1) // length)
