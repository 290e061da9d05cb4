"""The loop over short or uneven rows one after another, of which packets cover several.

It is that of include/gridstride/flat_rows.h.
"""

from __future__ import annotations

from math import gcd, prod
from typing import NamedTuple

from gridstride.targets.block_loops.element_loops import Steps, element_loop, lies_along
from gridstride.targets.block_loops.rows import LONG_PACKETS, packets_of_row
from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.walks import (
    LARGEST_WORD,
    LEAST_WORD,
    SECTOR,
    THREADS,
    ElementWalk,
    Ints,
    Loop,
    Walked,
    fits_a_word,
    multiplier_and_shift,
)

#: Elements of a row that is so short that packets cover several, and of one between words for which they better do; and
#: how many there must be of all.
_SHORT_ROW, _UNEVEN_ROW, _LEAST_FLAT = 24, 1024, 512
#: Elements of rows that others take whole.
_FEWEST = 4
#: How an operand lies, as the header has it.
_FLAT, _OF_ROWS, _GATHERED, _ONE_ROW, _COLUMN, _OF_PAIRS, _CLOSE, _OF_ONES, _SAME = 0, 1, 2, 3, 4, 5, 6, 7, 8
#: Axes of a row at most, and of one of repeated short rows; packets of all rows from which on no further axes are worth
#: it.
_MOST_INNER, _MOST_REPEATED, _MANY = 3, 2, 1024
#: Packets that a thread takes at most that cover the same elements: of inputs of which nothing is the same for all, of
#: others, and of small elements if nothing must be brought for each.
_DIFFERENT, _SOME, _ALL = 2, 4, 8
#: Which part of these must be there, and of how many blocks.
_LEAST_BUSY, _LEAST_BLOCKS = 0.75, 16
#: Bytes of what lies together of these at least.
_LEAST_BYTES = 512
#: Elements of a packet from which on several are better even if some inputs are elsewhere for each row.
_LEAST_SHARED = 8


class _Flat(NamedTuple):
    """Say how a walk is flattened.

    Attributes
    ----------
    inner : int
        How many axes make a row.
    times, packets, rows : int
        How many packets a thread takes that cover the same elements of rows, and how far apart these are.
    kinds : tuple of int
        How operands lie.
    rounds : int
        In how many rounds a thread takes these packets.
    are_all : bool
        Whether they are as many as are wanted.
    """

    inner: int
    times: int
    packets: int
    rows: int
    kinds: Ints
    rounds: int
    are_all: bool


def flat_rows(walk: ElementWalk, length: int) -> Loop | None:
    """Return the loop for short or uneven rows one after another, where no input needs to be turned."""
    found = _flattened(walk, length)
    if found is None and (shorter := _length_of_repeated(walk)) < length:
        found, length = _flattened(walk, shorter), shorter
    if found is None:
        return None
    if length == LARGEST_WORD and _GATHERED in found.kinds:
        by_words = _flattened(walk, LEAST_WORD)
        if by_words is not None and by_words.times > 1:
            found, length = by_words, LEAST_WORD
    return _loop(walk, found, length)


def _length_of_repeated(walk: ElementWalk) -> int:
    """Return the longest packets that go on in one further row at most, where an input repeats each short row."""
    longest = LARGEST_WORD
    if any(_repeats_rows(operand, walk) for operand in walk.operands):
        while longest > walk.shape[0] + 1:
            longest //= 2
    return longest


def _repeats_rows(operand: Walked, walk: ElementWalk) -> bool:
    """Return whether short rows one after another are repeated, each some times."""
    row, size = walk.shape[0], operand.itemsize
    return row <= _SHORT_ROW and operand.strides[:3] == (size, 0, row * size)


def flat_rows_of_words(walk: ElementWalk, length: int) -> Loop | None:
    """Return the loop with the longest packets of small elements that are no longer than a row."""
    if not _FEWEST < walk.shape[0] < length:
        return None
    size = max((operand.itemsize for operand in walk.operands), default=0)
    while length > walk.shape[0]:
        length //= 2
    found = _flattened(walk, length) if length * size >= LEAST_WORD else None
    return None if found is None else _loop(walk, found, length)


def _loop(walk: ElementWalk, found: _Flat, length: int) -> Loop:
    inner, times, packets, apart, kinds, rounds, _ = found
    row, rows = prod(walk.shape[:inner]), walk.shape[inner]
    axes = walk.shape[:inner] if inner > 1 else ()
    further = walk.shape[inner + 1 :]
    pieces = (packets, ceil_div(_packets(walk, inner, length), times * packets))
    total = prod(pieces) * prod(further)
    index = "unsigned" if max(total, row * rows) < 2**31 else "unsigned long long"

    def steps(strides: Ints) -> Steps:
        return strides[0], (
            strides[inner], times * apart * strides[inner], *strides[: len(axes)], *strides[inner + 1 :]
        )  # fmt: skip

    return element_loop(
        "gridstride/flat_rows.h",
        f"flat_rows<{index}, {times // rounds}, {rounds}, {len(axes)}, {length}, {', '.join(map(str, kinds))}>",
        walk,
        (row * rows, row, *multiplier_and_shift(row)),
        (*pieces, *axes, *further),
        steps,
        count=total,
        blocks=ceil_div(total, THREADS),
    )


def _flattened(walk: ElementWalk, length: int) -> _Flat | None:
    """Return how a walk is flattened, if it is: so that a thread takes many packets of which much is the same."""
    if not walk.operands or not walk.operands[-1].written:
        return None
    found = []
    for inner in range(1, min(_MOST_INNER, _contiguous(walk) - 1) + 1):
        if (kinds := _kinds(walk, inner, length)) is None:
            break
        if inner == 1 and not _are_flat(walk, kinds, length):
            return None
        share = _shared(walk, inner, length, kinds)
        is_long = inner == 1 or (inner == _MOST_REPEATED and _GATHERED in kinds)
        if share.times > 1 or (is_long and prod(walk.shape[: inner + 1]) >= _LEAST_FLAT):
            found.append(share)
    return max(found, key=lambda each: _worth(walk, each, length), default=None)


def _worth(walk: ElementWalk, flat: _Flat, length: int) -> tuple[bool, bool, int, int]:
    """Return what speaks for a way: all packets, few outside of rows, and what is the same for those of a thread."""
    is_whole = _are_whole(walk, prod(walk.shape[: flat.inner + 1]), length)
    has_few_ends = is_whole or _packets(walk, flat.inner, length) >= _MANY
    same = sum(kind >= _SAME or kind == _ONE_ROW for kind in flat.kinds)
    return flat.are_all, has_few_ends, same, flat.times


def _contiguous(walk: ElementWalk) -> int:
    """Return along how many axes outputs are one after another."""
    outputs = [operand for operand in walk.operands if operand.written]
    count, reached = 0, 1
    for axis, length in enumerate(walk.shape):
        if any(operand.strides[axis] != operand.itemsize * reached for operand in outputs):
            break
        count, reached = count + 1, reached * length
    return count


def _are_flat(walk: ElementWalk, kinds: Ints, length: int) -> bool:
    """Return whether rows are short or uneven, or some inputs are repeated."""
    row = walk.shape[0]
    if row <= _SHORT_ROW or (row <= _UNEVEN_ROW and row * walk.operands[-1].itemsize % LARGEST_WORD):
        return row > 1
    are_repeated = _OF_PAIRS in kinds or _OF_ONES in kinds
    return are_repeated and row < LONG_PACKETS * length and (length >= _LEAST_SHARED or not _is_read(walk))


def _is_read(walk: ElementWalk) -> bool:
    """Return whether an input has an element for each result."""
    return any(not operand.written and all(operand.strides) for operand in walk.operands)


def _kinds(walk: ElementWalk, inner: int, length: int) -> Ints | None:
    """Return how operands lie where so many axes make a row, if none needs to be turned."""
    row = walk.shape[0]
    are_whole = _are_whole(walk, row, length)
    kinds = []
    for operand in walk.operands:
        size, step = operand.itemsize, operand.strides[0]
        if not fits_a_word(size):
            return None
        if lies_along(operand, walk.shape, range(inner + 1)):
            kinds.append(_FLAT)
        elif operand.written:
            return None
        elif row >= length and step in (0, size):
            within = (_FLAT, _OF_ONES) if are_whole else (_OF_ROWS, _OF_PAIRS)
            kinds.append(within[step == 0])
        elif _can_be_gathered(operand, walk, inner, length):
            kinds.append(_GATHERED)
        else:
            return None
    return tuple(kinds)


def _can_be_gathered(operand: Walked, walk: ElementWalk, inner: int, length: int) -> bool:
    """Return whether elements that lie otherwise are close enough to each other."""
    if inner > 1:
        goes_on_once = inner == _MOST_REPEATED and walk.shape[0] >= length - 1
        return (goes_on_once and _repeats_rows(operand, walk)) or _is_close(operand, walk, inner, length)
    step = abs(operand.strides[0])
    return operand.strides[0] == operand.itemsize or step <= (SECTOR if walk.shape[0] <= _SHORT_ROW else 0)


def _are_whole(walk: ElementWalk, row: int, length: int) -> bool:
    """Return whether packets never cover two rows of so many elements."""
    last = walk.operands[-1]
    starts = (last.address, *last.strides[1:])
    word = length * last.itemsize
    return row % length == 0 and all(each % word == 0 or abs(each) < row * last.itemsize for each in starts)


def _shared(walk: ElementWalk, inner: int, length: int, kinds: Ints) -> _Flat:
    """Return what threads take of packets that cover the same elements."""
    row, packets = prod(walk.shape[:inner]), _packets(walk, inner, length)
    told = [
        _shared_kind(operand, kind, walk, inner, length)
        for operand, kind in zip(walk.operands, kinds, strict=True)
    ]
    at_once, rounds = _times(walk, length, told)
    most = times = at_once * rounds
    # Packets of so many rows cover the same elements as those of the next.
    rows = length // gcd(length, row)
    alike = rows * row // length
    unit = LEAST_WORD if not {_COLUMN, _CLOSE}.isdisjoint(told) else 1
    fewest = _LEAST_BYTES // (length * walk.operands[-1].itemsize)
    widest, least = (ceil_div(each, alike * unit) * unit for each in (THREADS, fewest))
    while times > 1 and packets * prod(walk.shape[inner + 1 :]) >= _LEAST_BLOCKS * times * THREADS:
        further = widest
        while further >= least:
            covered = ceil_div(packets, times * further * alike) * times * further * alike
            if packets >= _LEAST_BUSY * covered:
                apart = further * alike, further * rows
                rounds = max(1, times // at_once)
                return _Flat(inner, times, *apart, tuple(told), rounds, times == most)
            further = further // 2 // unit * unit
        times //= 2
    return _Flat(inner, 1, packets, rows, kinds, 1, False)


def _shared_kind(operand: Walked, kind: int, walk: ElementWalk, inner: int, length: int) -> int:
    """Return how an operand lies of which a thread takes several packets that cover the same elements."""
    is_same, size = operand.strides[inner] == 0, operand.itemsize
    if kind in (_OF_ROWS, _OF_PAIRS, _OF_ONES) or (kind == _FLAT and is_same):
        return kind + _SAME * is_same
    if kind == _GATHERED and _is_close(operand, walk, inner, length):
        return _CLOSE
    if kind == _GATHERED and length * size == LARGEST_WORD:
        if is_same:
            return _ONE_ROW
        if length >= _LEAST_SHARED and operand.strides[:2] == (0, size) and walk.shape[0] > 2:
            return _COLUMN
    return kind


def _is_close(operand: Walked, walk: ElementWalk, inner: int, length: int) -> bool:
    """Return whether the bytes of any packet lie in three words, in neighboring short rows."""
    row, (step, further) = walk.shape[0], operand.strides[:2]
    if operand.itemsize != 1 or length != LEAST_WORD or row > _SHORT_ROW:
        return False
    if inner > 1 and not _are_whole(walk, walk.shape[0] * walk.shape[1], length):
        # As far as the rows that are repeated: as many bytes as a packet and two rows have.
        return inner == _MOST_REPEATED and _repeats_rows(operand, walk) and row >= length - 1
    for first in range(row):
        places = [at % row * step + at // row * further for at in range(first, first + LEAST_WORD)]
        if max(places) - min(places) > 2 * LEAST_WORD:
            return False
    return True


def _times(walk: ElementWalk, length: int, kinds: list[int]) -> tuple[int, int]:
    """Return how many packets a thread takes at once at most, of operands that lie so, and how many times."""
    inputs = {kind for operand, kind in zip(walk.operands, kinds, strict=True) if not operand.written}
    is_small, is_read = length >= _LEAST_SHARED, _is_read(walk)
    is_narrow = length * walk.operands[-1].itemsize < LARGEST_WORD and inputs <= {_FLAT}
    if (_GATHERED in inputs or is_narrow) and any(_repeats_rows(each, walk) for each in walk.operands):
        return (_ALL if walk.operands[-1].itemsize == 1 else _SOME), 1
    if _CLOSE in inputs:
        return (1, 1) if _GATHERED in inputs else (_ALL, 1)
    if walk.shape[0] < length or _GATHERED in inputs:
        if inputs.isdisjoint((_ONE_ROW, _COLUMN)) or (is_read and not is_small):
            return (_DIFFERENT if _ONE_ROW in inputs else 1), 1
        is_read = is_read or _GATHERED in inputs
        return (_SOME, 1) if is_read or not is_small else (_ALL, 2 if length == LARGEST_WORD else 1)
    if inputs <= {_FLAT}:
        return _DIFFERENT, 1
    if _OF_ROWS in inputs:
        return _DIFFERENT, 4
    if is_read and not is_small:
        return (_DIFFERENT if max(inputs) >= _SAME else 1), 1
    return (_SOME, 2 if is_read and _OF_PAIRS in inputs else 1) if is_read or not is_small else (_ALL, 1)


def _packets(walk: ElementWalk, inner: int, length: int) -> int:
    """Return how many packets cover all rows."""
    flat = walk._replace(
        shape=(prod(walk.shape[: inner + 1]), *walk.shape[inner + 1 :]),
        operands=tuple(
            each._replace(strides=(each.itemsize, *each.strides[inner + 1 :])) for each in walk.operands
        ),
    )
    return packets_of_row(flat, length)
