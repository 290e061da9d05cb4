"""Folds by blocks of threads of which folded axes lie between kept ones: rows of boxes, each a stretch of memory."""

from __future__ import annotations

from math import gcd, prod
from typing import NamedTuple

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.fold_loops import (
    FOUND_ACROSS,
    fold_loop,
    fold_space_bytes,
    results_make_a_row,
)
from gridstride.targets.block_loops.sizes import (
    MOST_BYTE_ROWS,
    MOST_PARTS,
    MOST_ROWS,
    blocks_for,
    has_bytes,
    packet_length,
    parts_that_fill,
    power_of_two_up_to,
)
from gridstride.targets.walks import (
    LARGEST_WORD,
    LEAST_WORD,
    SECTOR,
    THREADS,
    WARP,
    FoldLoop,
    FoldWalk,
    Ints,
    Walked,
    axes_bytes,
    capacity_for,
    configuration,
    flag,
    folded_bytes,
)

_HEADER = "gridstride/fold_boxes.h"
#: Values of a box at most, as in the header; and where elements are large.
_VALUES, _VALUES_OF_LARGE = 4096, 2048
#: Rows from which on a thread takes several at once, and those that a part has at least.
_MANY_ROWS, _LEAST_ROWS = 4, 16
#: Words that a thread has on their way, if of 16 bytes; and packets of a row that it takes at once at most.
_AT_ONCE, _MOST_WIDE, _MOST_LOADS = 4, 8, 16
#: Bytes of the least words that are taken, by those of elements; packets between words are shifted.
_LEAST_WORDS = {1: 16, 2: 8, 4: 8}
#: Bytes that come soon after each other, so that what rows share of sectors is still there.
_SHORT_SPAN = 512
#: Axes along which rows are, at most.
_MOST_ROW_AXES = 3
#: Blocks that a multiprocessor holds at once; fewer where rows are along several axes, or begin between words.
_HELD, _FEWER_HELD, _FEWEST_HELD = 5, 4, 3
#: Places that there is room for, by the bytes in which they are kept.
_MOST_PLACES = {4: (1 << 24) - 2, 8: 1 << 31, 16: 1 << 31}
#: Rows of a part at most where two bytes say which place is of which, as in the header.
_MOST_HALF_ROWS = (1 << 15) - 1
#: Numbers behind which those of places stand, as in the header.
_NUMBERS = 4
#: Bytes that a box has at least.
_LEAST_BYTES = 1024


class _Axis(NamedTuple):
    """An axis of a walk: its stride in elements, its number among those that are kept, or folded, and places apart."""

    step: int
    length: int
    is_folded: bool
    number: int = 0
    place: int = 0


class _Boxes(NamedTuple):
    """Say how elements are cut into boxes of values.

    Attributes
    ----------
    rows, inside : tuple of _Axis
        The folded axes along which rows of boxes are, of elements, and those in a box, of values; the longest first.
    kept : tuple of int
        How far apart values are along the axes that are kept.
    values : int
        Of a box.
    segment, apart : int
        Elements of a row that are next to each other, and how far it is to the next ones.
    together : int
        Results that are next to each other, which blocks share.
    begins : int
        A number of elements of which segments begin at multiples, from the first one.
    last, last_rows : int
        Elements of a segment in the last rows, and how many of these there are.
    """

    rows: tuple[_Axis, ...]
    inside: tuple[_Axis, ...]
    kept: Ints
    values: int
    segment: int
    apart: int
    together: int
    begins: int
    last: int
    last_rows: int


def fold_boxes(
    walk: FoldWalk, limits: Limits, in_words: bool = False, in_rows: bool = False
) -> FoldLoop | None:
    """Return the fold of rows of boxes; None where there are none, or where elements are told apart.

    `in_words`: None too where packets are no words, or would be none wherever the first begins; `in_rows`: where boxes
    have one row.
    """
    if not walk.inputs or any((*walk.kept_numbers, *walk.fold_numbers)):
        return None
    if any(walk.positions) and not _keeps_places(walk):
        return None
    if not prod(walk.kept) * prod(walk.fold) > 0 or max(prod(walk.kept), prod(walk.fold)) >= 1 << 31:
        return None
    axes = _axes_of(walk.inputs[0], walk)
    if not axes or any(_axes_of(each, walk) != axes for each in walk.inputs[1:]):
        return None
    kept = [each.number for each in axes if not each.is_folded]
    if kept != sorted(kept):
        return None
    sizes = [each.itemsize for each in walk.inputs]
    length, most = packet_length(walk.inputs), _most_values(walk)
    are_few = prod(each.length for each in axes[_fitting(axes, most) :] if each.is_folded) < _MANY_ROWS
    row = _rows_inside(axes[: _fitting(axes, most)], length, max(sizes)) if are_few else None
    for each in (row, None):
        boxes = _boxes(axes, len(walk.kept), length, most, each)
        if boxes.values * max(sizes) >= _LEAST_BYTES:
            is_other = (in_words and boxes.begins % length) or (in_rows and boxes.rows[0].length == 1)
            return None if is_other else _loop(walk, limits, boxes)
    return None


def _keeps_places(walk: FoldWalk) -> bool:
    """Return whether places are those of extremes, which are kept beside numbers."""
    return walk.keeps_places and walk.inputs[0].itemsize <= LARGEST_WORD // 2


def _bytes_kept(walk: FoldWalk) -> int:
    """Return the bytes of what is kept of values that have places: those of bytes are in one number."""
    if not _keeps_places(walk):
        return 0
    size = walk.inputs[0].itemsize
    return LEAST_WORD if size == 1 else max(8, 2 * size)


def _most_rows(walk: FoldWalk) -> int:
    """Return how many rows a part has at most: those of small elements are told in a byte, or in two."""
    if has_bytes(walk):
        return MOST_BYTE_ROWS
    return _MOST_HALF_ROWS if walk.keeps_places else MOST_ROWS


def _most_places(boxes: _Boxes, part: int) -> int:
    """Return the last place of a part, from its first one on."""
    return boxes.rows[0].place * (part - 1) + sum(each.place * (each.length - 1) for each in boxes.inside)


def _most_values(walk: FoldWalk) -> int:
    kept, largest = _bytes_kept(walk), max(each.itemsize for each in walk.inputs)
    are_large = max(kept, largest) > LARGEST_WORD // 2 or (largest > 1 and kept > 2 * largest)
    return _VALUES_OF_LARGE if are_large else _VALUES


def _axes_of(operand: Walked, walk: FoldWalk) -> list[_Axis] | None:
    """Return the axes of an input by their steps; None where these are no whole elements, or not forwards."""
    size = operand.itemsize
    kept = zip(operand.strides, walk.kept, strict=True)
    axes = [
        *(_Axis(step, length, False, k) for k, (step, length) in enumerate(kept)),
        *(
            _Axis(step, length, True, k, place)
            for k, (step, length, place) in enumerate(
                zip(operand.fold_strides, walk.fold, walk.positions, strict=True)
            )
        ),
    ]
    axes = [each for each in axes if each.length > 1]
    if operand.address % size or any(each.step % size or each.step <= 0 for each in axes):
        return None
    return sorted(each._replace(step=each.step // size) for each in axes)


class _RowsInside(NamedTuple):
    """An axis in boxes along which they have rows themselves, each of so many of its elements."""

    axis: _Axis
    each: int


def _boxes(axes: list[_Axis], kept: int, length: int, most: int, within: _RowsInside | None) -> _Boxes:
    """Return boxes of so many values at most, for packets of so many elements, which may have rows along an axis."""
    count = _fitting(axes, most, within)
    are_few = within is not None or prod(each.length for each in axes[count:] if each.is_folded) < _MANY_ROWS
    dense, outer = axes[:count], axes[count:]
    unit = prod(each.length for each in dense)
    begins = [unit, *(each.step for each in outer)]
    rows = [each for each in outer if each.is_folded]
    inside = [each for each in dense if each.is_folded and not (within and each == within.axis)]
    together = prod(each.length for each in dense if not each.is_folded)
    values, last, last_rows = unit, 0, 0
    if within:
        values = unit // within.axis.length * within.each
    if outer and outer[0].step == unit and not (outer[0].is_folded and within):
        c = _of_next(outer[0].length, values, length, most if are_few else min(most, THREADS * length), most)
        if outer[0].is_folded:
            last = (outer[0].length - 1) % c * unit + unit
            # Rows of which the last have fewer elements come last.
            last_rows = prod(each.length for each in rows[1:])
            place = outer[0].place
            rows = [*rows[1:], _Axis(unit * c, -(-outer[0].length // c), True, place=place * c)]
            inside.append(_Axis(unit, c, True, place=place))
        else:
            together *= outer[0].length
        values *= c
        begins = [unit * c, *(each.step for each in outer[1:])]
    segment, apart = values, 0
    if within:
        step, longest, each = within.axis.step, within.axis.length, within.each
        segment, apart = step * each, step * longest
        place = within.axis.place
        rows.append(_Axis(segment, longest // each, True, place=place * each))
        inside.append(_Axis(step, each, True, place=place))
        begins += [segment, apart]
    rows = rows or [_Axis(0, 1, True)]
    own = {each.number: each for each in axes if not each.is_folded}
    return _Boxes(
        tuple(rows),
        tuple(
            sorted((_of_values(each, within) for each in inside), key=lambda each: (-each.length, each.step))
        ),
        tuple(_of_values(own[k], within).step if k in own else 0 for k in range(kept)),
        values,
        segment,
        apart,
        together,
        gcd(*begins),
        last or values,
        last_rows,
    )


def _fitting(axes: list[_Axis], most: int, within: _RowsInside | None = None) -> int:
    """Return how many axes there are next to each other of so many values at most, if one is that of rows."""
    step, values = 1, 1
    for k, each in enumerate(axes):
        values *= within.each if within and each == within.axis else each.length
        if each.step != step or values > most:
            return k
        step *= each.length
    return len(axes)


def _rows_inside(axes: list[_Axis], length: int, size: int) -> _RowsInside | None:
    """Return along which axis boxes had better have rows themselves, and so fewer values for as many elements."""
    ways = [
        _RowsInside(axis, each)
        for axis in axes
        for each in (range(1, axis.length // 2 + 1) if axis.is_folded else ())
        if axis.length % each == 0 and (size >= LEAST_WORD or axis.step * each >= length)
    ]
    best = min(ways, key=lambda way: _cost(way, length, size), default=None)
    return best if best and _cost(best, length, size) < 1 + _value_cost(size) else None


def _cost(way: _RowsInside, length: int, size: int) -> float:
    """Return about how long rows inside of boxes take, for as many bytes."""
    segment, span = way.axis.step * way.each, way.axis.step * way.axis.length
    # Packets of small elements are of 16 bytes wherever they begin, others as long as segments let them be.
    packets = blocks_for(segment, length) * length / segment if size < LEAST_WORD else 1
    words = 0 if size < LEAST_WORD else 0.1 * length / gcd(segment, span, length)
    sectors = (SECTOR / 2 if span * size <= _SHORT_SPAN else SECTOR) / (segment * size)
    are_few = 0.5 if way.axis.length < _MANY_ROWS * way.each else 0
    return packets + words + sectors + are_few + _value_cost(size) * way.each / way.axis.length


def _value_cost(size: int) -> float:
    return 2 if size == 1 else 1.5 if size == 2 else 1.2


def _of_values(axis: _Axis, within: _RowsInside | None) -> _Axis:
    """Return an axis of elements as one of values."""
    if not within or axis.step <= within.axis.step:
        return axis
    return axis._replace(step=axis.step // within.axis.length * within.each)


def _of_next(longest: int, values: int, length: int, wanted: int, most: int) -> int:
    """Return how many elements of the next axis a box has: so many that all boxes begin at words, if there is room.

    A few less where they are as many in all boxes then.
    """
    count, alike = max(1, min(longest, wanted // values)), length // gcd(values, length)
    if alike > count:
        return alike if alike * values <= most and alike <= longest else count
    count -= count % alike
    even = (each for each in range(count, (count - 1) // 2, -alike) if longest % each == 0)
    return next(even, count) if longest < 16 * count else count


def _loop(walk: FoldWalk, limits: Limits, boxes: _Boxes) -> FoldLoop | None:
    inside = tuple(each for each in boxes.inside if each.length > 1) or (_Axis(0, 1, True),)
    folded, count = prod(each.length for each in inside), prod(each.length for each in boxes.rows)
    of_box = boxes.values // folded
    together = blocks_for(boxes.together, of_box)
    blocks = together * (prod(walk.kept) // boxes.together)
    parts = parts_that_fill(blocks, _held(walk, boxes) * limits.multiprocessors, 2)
    parts = max(1, min(parts, count // _LEAST_ROWS, MOST_PARTS))
    part = blocks_for(count, parts)
    part = min(part, _most_rows(walk))
    parts, kept = blocks_for(count, part), _bytes_kept(walk)
    if parts > MOST_PARTS or len(boxes.rows) > _MOST_ROW_AXES:
        return None
    if kept and (len(boxes.rows) > 1 or _most_places(boxes, part) >= _MOST_PLACES[kept]):
        return None
    length, are_words = _packets(walk, boxes)
    high = _AT_ONCE if count >= _MANY_ROWS else 1
    of_row = blocks_for(boxes.segment, length)
    packets = boxes.values // boxes.segment * of_row
    wide = _wide(walk, length, high, packets)
    apart = blocks_for(packets, wide * blocks_for(packets, wide * THREADS))
    group = power_of_two_up_to(min(WARP, inside[0].length, max(1, THREADS // of_box)))
    axes = (_Axis(0, of_row, True), *boxes.rows, *inside)
    places = tuple(each.place for each in inside) if kept else ()
    capacity = capacity_for(max(len(walk.kept), len(axes), _NUMBERS + len(places)))
    placed = walk._replace(
        kept_numbers=(boxes.segment,),
        fold_numbers=(boxes.apart, *(each.place for each in boxes.rows), *(each.step for each in inside)),
        positions=(boxes.last,),
    )
    space = fold_space_bytes(
        placed,
        capacity,
        part,
        parts,
        group,
        axes_bytes(boxes.together, walk.kept, capacity),
        axes_bytes(count, [each.length for each in axes], capacity),
        boxes.kept,
        boxes.values,
        kept_row=prod(walk.kept) if results_make_a_row(walk) else None,
        fold_row=folded // inside[0].length,
        positions=(of_box, together, count - boxes.last_rows, apart, *places),
    )
    inputs = tuple(
        folded_bytes(
            each.address,
            each.itemsize,
            [row.step * each.itemsize for row in axes[: 1 + len(boxes.rows)]],
            each.strides,
            capacity,
        )
        for each in walk.inputs
    )
    how_kept = f", {kept}" if kept else ""
    name = f"fold_boxes<{length}, {wide}, {high}, {flag(are_words)}, {len(boxes.rows)}{how_kept}>::"
    values = _most_values(walk) // THREADS
    how = configuration(blocks, THREADS, parts)
    loop = fold_loop(
        (_HEADER, name + "fold"), walk, space, inputs, how, name + "shared_bytes", values, capacity=capacity,
        tells_places=kept > 0, finds_places=FOUND_ACROSS if kept > LEAST_WORD else "",
    )  # fmt: skip
    return loop._replace(largest=None) if kept else loop


def _held(walk: FoldWalk, boxes: _Boxes) -> int:
    """Return how many blocks a multiprocessor holds, wherever the first box begins."""
    size = max(each.itemsize for each in walk.inputs)
    if gcd(boxes.begins * size, LARGEST_WORD) < _LEAST_WORDS.get(size, 0):
        return _FEWEST_HELD if size == 1 else _FEWER_HELD
    return _HELD if len(boxes.rows) == 1 else _FEWER_HELD


def _packets(walk: FoldWalk, boxes: _Boxes) -> tuple[int, bool]:
    """Return how many elements a packet has, and whether packets are words: between words small ones are shifted."""
    sizes = [each.itemsize for each in walk.inputs]
    size, most = max(sizes), packet_length(walk.inputs)
    length = gcd(boxes.begins, *(each.address // each.itemsize for each in walk.inputs), most)
    are_short = size >= LEAST_WORD and boxes.segment < most
    return (most, False) if length * size < _LEAST_WORDS.get(size, 0) and not are_short else (length, True)


def _wide(walk: FoldWalk, length: int, high: int, packets: int) -> int:
    """Return how many packets of a row a thread takes at once: so many that it has 64 bytes on their way."""
    size = length * max(each.itemsize for each in walk.inputs)
    most = min(_MOST_LOADS // high, _MOST_WIDE, blocks_for(packets, THREADS))
    return power_of_two_up_to(max(1, min(most, _AT_ONCE * LARGEST_WORD // (size * high))))
