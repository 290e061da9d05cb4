"""Loops over rows by blocks of threads, in packets of elements."""

from __future__ import annotations

from math import prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.element_loops import are_in_order, element_loop
from gridstride.targets.block_loops.repeated_rows import repeated_rows
from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.block_loops.striped_rows import striped_rows
from gridstride.targets.walks import (
    LARGEST_WORD,
    LEAST_WORD,
    SECTOR,
    THREADS,
    WARP,
    ElementWalk,
    Loop,
    flag,
    power_of_two_from,
)

_HEADER = "gridstride/rows.h"
#: Packets from which on a row is long enough for a block of its own.
LONG_PACKETS = 2 * THREADS
#: Steps from which on bytes are gathered by words, and how many bytes of an input a packet of others spans at most.
_FAR, _SPAN = 4, 2 * SECTOR
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
    pieces = ceil_div(packets, each * THREADS)
    # Warps begin where lines of the caches do.
    width = ceil_div(packets, pieces * WARP) * WARP
    pieces = ceil_div(packets, width)
    sizes = (walk.shape[0], 1, width, prod(outer) if is_read_again else 0)
    name = f"long_rows<{length}, {flag(are_in_order(walk))}>"
    return element_loop(_HEADER, name, walk, sizes, (pieces, *outer))


def packets_of_rows(walk: ElementWalk, length: int, least_room: int = 1) -> Loop:
    """Return the loop whose threads take a packet each, of whichever rows."""
    packets, outer = packets_of_row(walk, length), walk.shape[1:]
    total = packets * prod(outer)
    index = "unsigned" if total < 2**31 else "unsigned long long"
    name, sizes = f"rows<{index}, {length}, {flag(are_in_order(walk))}>", (walk.shape[0], 1, 1, 0)
    blocks = ceil_div(total, THREADS)
    return element_loop(_HEADER, name, walk, sizes, (packets, *outer), blocks=blocks, least_room=least_room)


def _gathered_length(walk: ElementWalk, length: int) -> int:
    """Return how long packets are: shorter where an input has few of their elements in a sector.

    Then as few as lie in one or two, but words at least: neighboring threads fetch neighboring sectors at once.
    """
    step = max((abs(each.strides[0]) for each in walk.operands if not each.written), default=0)
    if step >= _FAR and length == LARGEST_WORD:
        return LEAST_WORD
    if length * step <= _SPAN:
        return length
    word = LEAST_WORD // max(each.itemsize for each in walk.operands)
    return min(length, max(1, word, power_of_two_from(ceil_div(SECTOR, step))))


def _is_read_again(walk: ElementWalk, limits: Limits) -> bool:
    """Return whether rows are so long that one which is read for several has left the cache before the next one."""
    cache = limits.attributes.get("L2CacheSize", 0)
    return sum(operand.itemsize for operand in walk.operands) * walk.shape[0] > cache // 4 > 0 and any(
        operand.strides[0] != 0 and any(stride == 0 for stride in operand.strides[1:])
        for operand in walk.operands
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


def packets_of_row(walk: ElementWalk, length: int) -> int:
    """Return how many packets cover a row: one more where rows of the last operand start between two words."""
    row = walk.shape[0]
    if not walk.operands or length == 1:
        return ceil_div(row, length)
    last = walk.operands[-1]
    word = length * last.itemsize
    starts_at_words = last.address % word == 0 and all(
        stride % word == 0 for stride, size in zip(last.strides[1:], walk.shape[1:], strict=True) if size > 1
    )
    if starts_at_words or last.strides[0] != last.itemsize:
        return ceil_div(row, length)
    return ceil_div(row + length - 1, length)
