"""The loop over short or uneven rows one after another, of which packets cover several.

It is that of include/gridstride/flat_rows.h.
"""

from __future__ import annotations

from math import gcd, prod
from typing import NamedTuple

from gridstride.targets.block_loops.element_loops import Steps, element_loop
from gridstride.targets.block_loops.rows import packets_of_row
from gridstride.targets.block_loops.spaces import blocks_for
from gridstride.targets.walks import (
    LARGEST_WORD,
    SECTOR,
    THREADS,
    ElementWalk,
    Ints,
    Loop,
    Walked,
    multiplier_and_shift,
)

#: Elements of a row that is so short that packets cover several, and of one between words for which they better do; and
#: how many there must be of all.
_SHORT_ROW, _UNEVEN_ROW, _LEAST_FLAT = 24, 1024, 512
#: How an operand lies, as the header has it.
_FLAT, _OF_ROWS, _GATHERED, _ONE_ROW, _COLUMN = range(5)
#: Packets that a thread takes of uneven rows, of which so many must be there; and of short ones, if an input is the
#: same for all of these or has one element for each, and there are enough for so many blocks.
_OF_UNEVEN, _LEAST_BUSY, _OF_SHORT, _LEAST_BLOCKS = 2, 0.75, 4, 16
#: Elements of a packet from which on that is better even if other inputs are elsewhere for each row, and twice as many
#: packets are if there are no such.
_LEAST_SHARED = 8


class _Share(NamedTuple):
    """Say how many packets a thread takes, which cover the same elements of rows, and how far apart these are."""

    times: int
    packets: int
    rows: int


def flat_rows(walk: ElementWalk, length: int) -> Loop | None:
    """Return the loop for short or uneven rows one after another, where no input needs to be turned."""
    if not _are_flat(walk):
        return None
    row, rows, *outer = walk.shape
    flat = walk._replace(
        shape=(row * rows, *outer),
        operands=tuple(each._replace(strides=(each.itemsize, *each.strides[2:])) for each in walk.operands),
    )
    packets = packets_of_row(flat, length)
    kinds = [_kind(operand, row, length) for operand in walk.operands]
    shared = [_shared_kind(operand, row, length) for operand in walk.operands]
    share = _share(row, length, packets, _times(walk, length, shared))
    if share.times > 1:
        kinds = [other or kind for other, kind in zip(shared, kinds, strict=True)]
    lengths = (share.packets, blocks_for(packets, share.times * share.packets), *outer)
    total = prod(lengths)
    index = "unsigned" if max(total, row * rows) < 2**31 else "unsigned long long"

    def steps(strides: Ints) -> Steps:
        return strides[0], (strides[1], share.times * share.rows * strides[1], *strides[2:])

    return element_loop(
        "gridstride/flat_rows.h",
        f"flat_rows<{index}, {share.times}, {', '.join(map(str, kinds))}>",
        walk,
        (row * rows, row, *multiplier_and_shift(row)),
        lengths,
        steps,
        blocks=blocks_for(total, THREADS),
    )


def _are_flat(walk: ElementWalk) -> bool:
    """Return whether rows are short or uneven, of results one after another, and of elements close to each other."""
    if len(walk.shape) < 2 or not walk.operands or not walk.operands[-1].written:
        return False
    row, rows = walk.shape[:2]
    if not (2 <= row <= _longest(walk) and row * rows >= _LEAST_FLAT):
        return False
    for operand in walk.operands:
        size, step = operand.itemsize, operand.strides[0]
        if size > LARGEST_WORD or size & (size - 1):
            return False
        if operand.written and operand.strides[:2] != (size, row * size):
            return False
        if step != size and abs(step) > (SECTOR if row <= _SHORT_ROW else 0):
            return False
    return True


def _times(walk: ElementWalk, length: int, shared: list[int]) -> int:
    """Return how many packets of short rows a thread takes, of inputs that lie so."""
    inputs = [
        (operand, kind) for operand, kind in zip(walk.operands, shared, strict=True) if not operand.written
    ]
    are_read = any(all(operand.strides[:2]) for operand, _ in inputs)
    if not any(shared) or (length < _LEAST_SHARED and are_read):
        return 1
    return 2 * _OF_SHORT if length >= _LEAST_SHARED and all(kind for _, kind in inputs) else _OF_SHORT


def _share(row: int, length: int, packets: int, times: int) -> _Share:
    """Return what threads take of so many packets, and so many of short rows."""
    # Packets of so many rows cover the same elements as those of the next.
    rows = length // gcd(length, row)
    alike = rows * row // length
    if row > _SHORT_ROW:
        covered = blocks_for(packets, _OF_UNEVEN * alike) * _OF_UNEVEN * alike
        if packets >= _LEAST_BUSY * covered:
            return _Share(_OF_UNEVEN, alike, rows)
    elif times > 1:
        further = blocks_for(THREADS, alike)
        if packets >= _LEAST_BLOCKS * times * further * alike:
            return _Share(times, further * alike, further * rows)
    return _Share(1, packets, rows)


def _kind(operand: Walked, row: int, length: int) -> int:
    """Return how an operand lies, as the header is told."""
    size = operand.itemsize
    if operand.strides[:2] == (size, row * size):
        return _FLAT
    return _OF_ROWS if operand.strides[0] == size and row >= length else _GATHERED


def _shared_kind(operand: Walked, row: int, length: int) -> int:
    """Return how an operand lies of which threads have the same elements for several packets of short rows, else 0."""
    size, (step, further) = operand.itemsize, operand.strides[:2]
    if row > _SHORT_ROW or length * size != LARGEST_WORD:
        return 0
    if further == 0:
        return _ONE_ROW
    return _COLUMN if length >= _LEAST_SHARED and (step, further) == (0, size) and row > 2 else 0


def _longest(walk: ElementWalk) -> int:
    """Return how long rows may be that are taken as one: longer ones where each begins at another place of a word."""
    return _SHORT_ROW if walk.shape[0] * walk.operands[-1].itemsize % LARGEST_WORD == 0 else _UNEVEN_ROW
