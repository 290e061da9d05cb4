"""How elements that are folded in boxes are cut: into rows of boxes, each a stretch of memory, of so many values."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, prod
from typing import NamedTuple

from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.walks import LEAST_WORD, SECTOR, THREADS, FoldWalk, Ints, Walked

#: Rows from which on a thread takes several at once.
MANY_ROWS = 4
#: Bytes that come soon after each other, so that what rows share of sectors is still there.
_SHORT_SPAN = 512


class Axis(NamedTuple):
    """Hold an axis of a walk: its stride in elements, its number among those kept, or folded, and places apart."""

    step: int
    length: int
    is_folded: bool
    number: int = 0
    place: int = 0


class Boxes(NamedTuple):
    """Say how elements are cut into boxes of values.

    Attributes
    ----------
    rows, inside : tuple of Axis
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

    rows: tuple[Axis, ...]
    inside: tuple[Axis, ...]
    kept: Ints
    values: int
    segment: int
    apart: int
    together: int
    begins: int
    last: int
    last_rows: int


def ways_to_cut(walk: FoldWalk, length: int, most: int) -> Iterator[Boxes]:
    """Yield boxes of so many values at most, for packets of a length; none where inputs lie in different orders.

    Better ones first: those that have rows themselves, unless these are too small.
    """
    axes = _axes_of(walk.inputs[0], walk)
    if not axes or any(_axes_of(each, walk) != axes for each in walk.inputs[1:]):
        return
    kept = [each.number for each in axes if not each.is_folded]
    if kept != sorted(kept):
        return
    fitting, size = _fitting(axes, most), max(each.itemsize for each in walk.inputs)
    are_few = prod(each.length for each in axes[fitting:] if each.is_folded) < MANY_ROWS
    row = _rows_inside(axes[:fitting], length, size) if are_few else None
    for each in (row, None):
        yield _boxes(axes, len(walk.kept), length, most, each)


def _axes_of(operand: Walked, walk: FoldWalk) -> list[Axis] | None:
    """Return the axes of an input by their steps; None where these are no whole elements, or not forwards."""
    size = operand.itemsize
    kept = zip(operand.strides, walk.kept, strict=True)
    axes = [
        *(Axis(step, length, False, k) for k, (step, length) in enumerate(kept)),
        *(
            Axis(step, length, True, k, place)
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

    axis: Axis
    each: int


def _boxes(axes: list[Axis], kept: int, length: int, most: int, within: _RowsInside | None) -> Boxes:
    """Return boxes of so many values at most, for packets of so many elements, which may have rows along an axis."""
    count = _fitting(axes, most, within)
    are_few = within is not None or prod(each.length for each in axes[count:] if each.is_folded) < MANY_ROWS
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
            rows = [*rows[1:], Axis(unit * c, ceil_div(outer[0].length, c), True, place=place * c)]
            inside.append(Axis(unit, c, True, place=place))
        else:
            together *= outer[0].length
        values *= c
        begins = [unit * c, *(each.step for each in outer[1:])]
    segment, apart = values, 0
    if within:
        step, longest, each = within.axis.step, within.axis.length, within.each
        segment, apart = step * each, step * longest
        place = within.axis.place
        rows.append(Axis(segment, longest // each, True, place=place * each))
        inside.append(Axis(step, each, True, place=place))
        begins += [segment, apart]
    rows = rows or [Axis(0, 1, True)]
    own = {each.number: each for each in axes if not each.is_folded}
    return Boxes(
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


def _fitting(axes: list[Axis], most: int, within: _RowsInside | None = None) -> int:
    """Return how many axes there are next to each other of so many values at most, if one is that of rows."""
    step, values = 1, 1
    for k, each in enumerate(axes):
        values *= within.each if within and each == within.axis else each.length
        if each.step != step or values > most:
            return k
        step *= each.length
    return len(axes)


def _rows_inside(axes: list[Axis], length: int, size: int) -> _RowsInside | None:
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
    packets = ceil_div(segment, length) * length / segment if size < LEAST_WORD else 1
    words = 0 if size < LEAST_WORD else 0.1 * length / gcd(segment, span, length)
    sectors = (SECTOR / 2 if span * size <= _SHORT_SPAN else SECTOR) / (segment * size)
    are_few = 0.5 if way.axis.length < MANY_ROWS * way.each else 0
    return packets + words + sectors + are_few + _value_cost(size) * way.each / way.axis.length


def _value_cost(size: int) -> float:
    return 2 if size == 1 else 1.5 if size == 2 else 1.2


def _of_values(axis: Axis, within: _RowsInside | None) -> Axis:
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
