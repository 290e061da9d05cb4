"""Loops over rows by blocks of threads, in packets of elements."""

from __future__ import annotations

import struct
from math import gcd, prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.planes import BETWEEN_WORDS, ONE_FOR_A_ROW, begins_as
from gridstride.targets.block_loops.spaces import blocks_for
from gridstride.targets.walks import (
    THREADS,
    ElementWalk,
    Ints,
    Loop,
    Walked,
    axes_bytes,
    capacity_for,
    configuration,
    multiplier_and_shift,
    numbering_bytes,
    operand_bytes,
    walked_operands,
)

_ELEMENTWISE = "gridstride/elementwise.h"
_REPEATED, _STRIPED = "gridstride/repeated_rows.h", "gridstride/striped_rows.h"
_WARP, _LARGEST_WORD, _SECTOR = 32, 16, 32
#: Packets from which on a row is long enough for a block of its own.
_LONG_PACKETS = 2 * THREADS
#: Elements of a packet from which on packets of one row are taken once for several rows: for how many; and how such an
#: input lies, as the header is told.
_LEAST_REPEATED, _ROWS_AT_ONCE, _ONE_ROW = 8, 4, 3
#: Elements of a row that is so short that packets cover several, and of one between words for which they better do; and
#: how many there must be of all.
_SHORT_ROW, _UNEVEN_ROW, _LEAST_FLAT = 24, 1024, 512
#: Packets of such rows that a thread takes; and how an operand lies, as the header has it.
_FLAT_PACKETS = 2
_FLAT, _OF_ROWS, _GATHERED, _ONE_ROW_OF_FLAT, _COLUMN = range(5)
_SHARED_PACKETS = 4
#: Short rows that a thread takes a packet of, and how many of the threads of a block must have one.
_ROWS_OF_THREAD, _LEAST_BUSY = 2, 0.75
#: Elements of a thread where outputs have gaps between elements, and of the shortest rows that are worth it.
_STRIPES, _LEAST_STRIPED = 8, 1024
#: Packets that a thread of a long row's block takes at most: few where every input is brought from memory, more where
#: some are read again and again, and most of bytes where all are: then what a block begins with takes longest.
_PACKETS_OF_THREAD, _PACKETS_OF_SOME, _PACKETS_OF_ALL = 2, 4, 8


def rows(walk: ElementWalk, length: int, limits: Limits) -> Loop:
    """Return the loop over packets of rows, by one text for long rows and one for short ones."""
    packets = _packets_of_row(walk, length)
    outer = walk.shape[1:]
    total = packets * prod(outer)
    order = str(are_in_order(walk)).lower()
    if _has_gaps(walk):
        return _striped_rows(walk)
    if packets < _LONG_PACKETS and outer:
        index = "unsigned" if total < 2**31 else "unsigned long long"
        return _loop_of_rows(
            walk,
            f"rows<{index}, {order}>",
            (packets, *outer),
            (1, 0),
            blocks_for(total, THREADS),
            total,
        )
    if (again := repeated_rows(walk, length)) is not None:
        return again
    # Several packets for a thread, unless there are too few then for all multiprocessors.
    each = min(_packets_of_thread(walk, length), max(1, total // (16 * THREADS * limits.multiprocessors)))
    pieces = blocks_for(packets, each * THREADS)
    # Warps begin where lines of the caches do.
    width = blocks_for(packets, pieces * _WARP) * _WARP
    pieces = blocks_for(packets, width)
    count = pieces * prod(outer)
    rows_first = prod(outer) if _is_read_again(walk, limits) else 0
    return _loop_of_rows(walk, f"long_rows<{order}>", (pieces, *outer), (width, rows_first), count, count)


def _is_read_again(walk: ElementWalk, limits: Limits) -> bool:
    """Return whether rows are so long that one which is read for several has left the cache before the next one."""
    cache = limits.attributes.get("L2CacheSize", 0)
    return sum(operand.itemsize for operand in walk.operands) * walk.shape[0] > cache // 4 > 0 and any(
        operand.strides[0] != 0 and any(stride == 0 for stride in operand.strides[1:])
        for operand in walk.operands
    )


def _has_gaps(walk: ElementWalk) -> bool:
    """Return whether an output has gaps between the elements of a long row."""
    return walk.shape[0] >= _LEAST_STRIPED and any(
        operand.written and operand.strides[0] != operand.itemsize <= _LARGEST_WORD
        for operand in walk.operands
    )


def _striped_rows(walk: ElementWalk) -> Loop:
    """Return the loop in which neighboring threads take neighboring elements."""
    pieces = blocks_for(walk.shape[0], _STRIPES * THREADS)
    count = pieces * prod(walk.shape[1:])
    return _loop_of_rows(
        walk, f"striped_rows<{_STRIPES}>", (pieces, *walk.shape[1:]), (0, 0), count, count, _STRIPED
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
    apart = _LARGEST_WORD // gcd(_LARGEST_WORD, last.strides[1])
    if _ONE_ROW not in kinds or apart == 1 or not apart * _ROWS_AT_ONCE <= rows < 2**31:
        return None
    width = length // _LEAST_REPEATED * THREADS
    lengths = (blocks_for(row // length, width), apart, blocks_for(rows, apart * _ROWS_AT_ONCE))
    capacity = capacity_for(len(lengths))
    return Loop(
        _REPEATED,
        f"repeated_rows<{_ROWS_AT_ONCE}, {', '.join(map(str, kinds))}>",
        "",
        capacity,
        struct.pack("<5q", prod(walk.shape), row, rows, width, 0)
        + axes_bytes(prod(lengths), lengths, capacity)
        + numbering_bytes(walk.numbers[0], (0, *walk.numbers[1:]), capacity),
        walked_operands(walk.operands, capacity),
        configuration(prod(lengths), THREADS),
    )


def _kind_of_rows(operand: Walked, last: Walked, shape: Ints) -> int:
    """Return how an operand lies, as ``repeated_rows`` is told."""
    if operand.strides[0] == 0:
        return ONE_FOR_A_ROW
    return (
        _ONE_ROW
        if operand.strides[1] == 0
        else BETWEEN_WORDS + begins_as(operand, last, shape, _LARGEST_WORD // last.itemsize)
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
    return _PACKETS_OF_ALL if all(again) and length == _LARGEST_WORD else _PACKETS_OF_SOME


def flat_rows(walk: ElementWalk, length: int) -> Loop | None:
    """Return the loop for short or uneven rows one after another, where no input needs to be turned."""
    if len(walk.shape) < 2 or not walk.operands or not walk.operands[-1].written:
        return None
    (row, rows, *outer), outputs = walk.shape, [operand for operand in walk.operands if operand.written]
    if not (2 <= row <= _longest_flat(walk) and row * rows >= _LEAST_FLAT):
        return None
    if any(operand.strides[:2] != (operand.itemsize, row * operand.itemsize) for operand in outputs):
        return None
    sizes = [operand.itemsize for operand in walk.operands]
    if any(size > _LARGEST_WORD or size & (size - 1) for size in sizes) or any(
        operand.strides[0] != operand.itemsize
        and abs(operand.strides[0]) > (_SECTOR if row <= _SHORT_ROW else 0)
        for operand in walk.operands
    ):
        return None
    flat = walk._replace(
        shape=(row * rows, *outer),
        operands=tuple(each._replace(strides=(each.itemsize, *each.strides[2:])) for each in walk.operands),
    )
    packets = _packets_of_row(flat, length)
    # Packets of so many rows cover the same elements as those of the next.
    alike = length // gcd(length, row)
    of_alike = alike * row // length
    times = blocks_for(packets, _FLAT_PACKETS * of_alike)
    is_long = row > _SHORT_ROW and packets >= _LEAST_BUSY * times * _FLAT_PACKETS * of_alike
    count = _FLAT_PACKETS if is_long else 1
    kinds = [_kind_of_flat(each, row, length) for each in walk.operands]
    shared = [_shared_kind(each, row, length, kind) for each, kind in zip(walk.operands, kinds, strict=True)]
    if row <= _SHORT_ROW and shared != kinds:
        further = blocks_for(THREADS, of_alike)
        if packets >= 16 * further * of_alike * _SHARED_PACKETS:
            kinds, count = shared, _SHARED_PACKETS
            alike, of_alike = alike * further, of_alike * further
            times = blocks_for(packets, count * of_alike)
    if count == 1:
        times, of_alike = 1, packets
    lengths = (of_alike, times, *outer)
    total = prod(lengths)
    index = "unsigned" if max(total, row * rows) < 2**31 else "unsigned long long"
    capacity = capacity_for(len(lengths))

    def strides(steps: Ints) -> Ints:
        return (steps[1], count * alike * steps[1], *steps[2:])

    return Loop(
        "gridstride/flat_rows.h",
        f"flat_rows<{index}, {count}, {', '.join(map(str, kinds))}>",
        "",
        capacity,
        struct.pack("<5q", prod(walk.shape), row * rows, row, *multiplier_and_shift(row))
        + axes_bytes(total, lengths, capacity)
        + numbering_bytes(walk.numbers[0], strides(walk.numbers), capacity),
        tuple(
            operand_bytes(each.address, each.strides[0], strides(each.strides), capacity)
            for each in walk.operands
        ),
        configuration(blocks_for(total, THREADS), THREADS),
    )


def _kind_of_flat(operand: Walked, row: int, length: int) -> int:
    """Return how an operand lies, as ``flat_rows`` is told."""
    size = operand.itemsize
    if operand.strides[:2] == (size, row * size):
        return _FLAT
    return _OF_ROWS if operand.strides[0] == size and row >= length else _GATHERED


def _shared_kind(operand: Walked, row: int, length: int, kind: int) -> int:
    """Return how an operand lies where a thread takes several packets that cover the same elements of rows."""
    if kind == _FLAT or operand.written or length * operand.itemsize != _LARGEST_WORD or operand.itemsize > 2:
        return kind
    if operand.strides[1] == 0:
        return _ONE_ROW_OF_FLAT
    return _COLUMN if operand.strides[0] == 0 and operand.strides[1] == operand.itemsize and row > 2 else kind


def _longest_flat(walk: ElementWalk) -> int:
    """Return how long rows may be that are taken as one: longer ones where each begins at another place of a word."""
    return _SHORT_ROW if walk.shape[0] * walk.operands[-1].itemsize % _LARGEST_WORD == 0 else _UNEVEN_ROW


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
    capacity = capacity_for(len(pieces))
    if blocks >= 2**31:
        return None
    return Loop(
        "gridstride/even_rows.h",
        f"even_rows<{_ROWS_OF_THREAD}>",
        "",
        capacity,
        struct.pack("<5q", prod(walk.shape), row, outer[0], rows, outer[1])
        + axes_bytes(blocks, pieces, capacity)
        + numbering_bytes(walk.numbers[0], (0, *walk.numbers[1:]), capacity),
        walked_operands(walk.operands, capacity),
        configuration(blocks, THREADS),
    )


def _is_words(operand: Walked, walk: ElementWalk, length: int) -> bool:
    """Return whether each packet of whole rows is a word in memory."""
    word = length * operand.itemsize
    starts = (operand.address, *operand.strides[1:])
    return (
        operand.strides[0] == operand.itemsize
        and word <= _LARGEST_WORD
        and word & (word - 1) == 0
        and all(each % word == 0 for each in starts)
    )


def are_in_order(walk: ElementWalk) -> bool:
    """Return whether rows of all operands are consecutive, or one element that is read again and again."""
    return all(
        operand.strides[0] == operand.itemsize or (operand.strides[0] == 0 and not operand.written)
        for operand in walk.operands
    )


def _loop_of_rows(
    walk: ElementWalk,
    name: str,
    lengths: Ints,
    sizes: tuple[int, int],
    blocks: int,
    count: int,
    header: str = _ELEMENTWISE,
) -> Loop:
    capacity = capacity_for(len(walk.shape))
    return Loop(
        header,
        name,
        "",
        capacity,
        struct.pack("<5q", prod(walk.shape), walk.shape[0], 1, *sizes)
        + axes_bytes(count, lengths, capacity)
        + numbering_bytes(walk.numbers[0], (0, *walk.numbers[1:]), capacity),
        walked_operands(walk.operands, capacity),
        configuration(blocks, THREADS),
    )


def _packets_of_row(walk: ElementWalk, length: int) -> int:
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
