"""How boxes of permuted axes are launched: what the loop of include/gridstride/boxes.h is told."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.walks import (
    IN_LAUNCH,
    LARGEST_WORD,
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
)

_HEADER = "gridstride/boxes.h"
#: Bytes of a line of banks.
_LINE = 128
#: Words of a line of the cache at most, and the fewest of a piece of a run; pieces of a box.
_LINE_WORDS, _PIECE, _PIECES = 32, 32, 8
#: Places that a thread writes at once, at most.
_MOST_WRITTEN = 24


#: How operands lie, as the header has it: in either order, or with elements again and again, the first such and others.
IN_ORDER_X, IN_ORDER_Y, REPEATED, REPEATED_ALIKE = range(4)


class Sides(NamedTuple):
    """Hold the axes in the orders of outputs and of turned inputs, inner ones first, and how operands lie."""

    x: Ints
    y: Ints
    kinds: Ints

    def of(self, operands: Sequence[Walked]) -> Iterator[tuple[Walked, Ints]]:
        """Return each operand that has one of the orders, with it."""
        for operand, kind in zip(operands, self.kinds, strict=True):
            if kind < REPEATED:
                yield operand, self.y if kind == IN_ORDER_Y else self.x

    def turned_of(self, operands: Sequence[Walked]) -> list[Walked]:
        """Return the operands that are turned."""
        return [operand for operand, order in self.of(operands) if order == self.y]

    @property
    def has_table(self) -> bool:
        """Whether there is a table of where repeated elements are."""
        return REPEATED in self.kinds


class Taken(NamedTuple):
    """Say how many boxes are taken at once, squares of words by a thread, by how many blocks of a multiprocessor."""

    layers: int
    squares: int
    blocks: int
    threads: int = THREADS


class Box(NamedTuple):
    """Say how a walk is cut into boxes.

    Attributes
    ----------
    extents : tuple of int
    taken : Taken
    layered : int
        The axis along which layers follow each other.
    distance : int
        From one to the next.
    """

    extents: Ints
    taken: Taken
    layered: int
    distance: int


class _Runs(NamedTuple):
    """``box_runs`` of the header."""

    unit: int
    rows: int
    cut: int
    axes: int
    length: int
    runs: int
    pieces: int
    piece: int
    multiplier: int
    shift: int

    def taken_by_words(self, words: int) -> _Runs:
        """Return the runs with so many pieces, which are words that threads take one by one."""
        multiplier, shift = multiplier_and_shift(max(1, words))
        return self._replace(pieces=max(1, words), piece=1, multiplier=multiplier, shift=shift)


def gap_of(walk: ElementWalk, sides: Sides, layers: int) -> int:
    """Return the cells of a line of banks, after which one is left out."""
    return _LINE // (layers * max(operand.itemsize for operand in sides.turned_of(walk.operands)))


def cut_of(shape: Ints, order: Ints, extents: Sequence[int]) -> int | None:
    """Return the first axis in an order along which a box is cut, with which its runs end."""
    return next((axis for axis in order if extents[axis] < shape[axis]), None)


def box_loop(walk: ElementWalk, sides: Sides, box: Box) -> Loop | None:
    """Return the loop over boxes; None where a side is in one box, or boxes, or their runs, are too many."""
    x_cut, y_cut = (cut_of(walk.shape, order, box.extents) for order in (sides.x, sides.y))
    if x_cut is None or y_cut is None:
        return None
    x, y = _with_cut_last(sides.x, x_cut, y_cut), _with_cut_last(sides.y, y_cut, x_cut)
    way = _way(walk.shape, box, (box.layered, x_cut, y_cut), x)
    x_runs = _runs(x, box.extents, way.axes, x_cut, y_cut, box.taken.layers)
    y_runs = _runs(y, box.extents, way.axes, y_cut, x_cut, box.taken.layers)
    if (layers := box.taken.layers) > 1:
        x_runs = x_runs.taken_by_words(x_runs.length // layers)
        y_runs = y_runs.taken_by_words(ceil_div(y_runs.length, layers) + 1)
        if y_runs.runs * y_runs.pieces > box.taken.squares * box.taken.threads:
            return None
    if (count := prod(way.boxes)) >= 2**31:
        return None
    capacity, gap = capacity_for(len(walk.shape)), gap_of(walk, sides, layers)
    how = configuration(count, box.taken.threads)
    return Loop(
        _HEADER,
        f"boxes<{layers}, {gap}, {box.taken.squares}, {', '.join(map(str, sides.kinds))}>",
        IN_LAUNCH,
        capacity,
        _space_bytes(walk, box, way, (x, y), (x_runs, y_runs), capacity),
        tuple(
            operand_bytes(each.address, 0, _ordered(each.strides, way.axes), capacity)
            for each in walk.operands
        ),
        how._replace(shared_mem=_shared_bytes(walk.operands, sides, box, gap, x_runs.length, y_runs.length)),
        "box_space",
    )


class _Way(NamedTuple):
    """Say in which order boxes are walked.

    Attributes
    ----------
    axes : tuple of int
        Of the walk; first those along which boxes are cut.
    cut : int
        How many these are.
    boxes : tuple of int
        Along each axis; of the layered one as many as are taken at once.
    residues : int
        How many boxes begin between a layer and the next.
    """

    axes: Ints
    cut: int
    boxes: Ints
    residues: int


def _way(shape: Ints, box: Box, first: Ints, x: Ints) -> _Way:
    """Return the way along some axes first, and then along others in order x."""
    extents = box.extents
    several = (axis for axis in x if extents[axis] < shape[axis])
    axes = tuple(dict.fromkeys((*first, *several, *x)))
    residues = box.distance // extents[box.layered]
    boxes = [ceil_div(shape[axis], extents[axis]) for axis in axes]
    boxes[0] = ceil_div(shape[box.layered], box.taken.layers * box.distance) * residues
    return _Way(axes, sum(extents[axis] < shape[axis] for axis in axes), tuple(boxes), residues)


def _ordered(values: Ints, axes: Ints) -> Ints:
    return tuple(values[axis] for axis in axes)


def _space_bytes(
    walk: ElementWalk, box: Box, way: _Way, sides: tuple[Ints, Ints], runs: tuple[_Runs, _Runs], capacity: int
) -> bytes:
    """Return ``box_space<capacity>``."""
    (x, y), (x_runs, y_runs), extents = sides, runs, box.extents
    count, elements = prod(way.boxes), prod(extents)

    def ints(values: Sequence[int]) -> bytes:
        return struct.pack(f"<{capacity}i", *values, *(0 for _ in range(capacity - len(values))))

    return (
        struct.pack(
            "<2q8i2I",
            prod(walk.shape),
            box.distance,
            way.residues.bit_length() - 1,
            count,
            way.cut,
            elements,
            _together(y_runs.length, walk.operands),
            *_parts(extents[x[0]], elements),
        )
        + struct.pack("<8i2I", *x_runs)
        + struct.pack("<8i2I", *y_runs)
        + ints(_ordered(walk.shape, way.axes))
        + ints(_ordered(extents, way.axes))
        + ints([prod(_ordered(extents, y[: y.index(axis)])) for axis in x])
        + ints([way.axes.index(axis) for axis in x])
        + ints([way.axes.index(axis) for axis in y])
        + axes_bytes(elements, _ordered(extents, x), capacity)
        + axes_bytes(elements, _ordered(extents, y), capacity)
        + axes_bytes(count, way.boxes, capacity)
        + numbering_bytes(0, _ordered(walk.numbers, way.axes), capacity)
    )


def _together(run: int, operands: Sequence[Walked]) -> int:
    """Return the logarithm of how many threads bring a run: each a few words, where it has so many."""
    words = run * max(operand.itemsize for operand in operands) // LARGEST_WORD
    return min(5, max(0, (words // 8).bit_length()))


def _parts(row: int, elements: int) -> Ints:
    """Return the parts of rows that threads write into the table: all, those of a row, how long, and how to divide."""
    parts = ceil_div(row, _MOST_WRITTEN)
    return elements // row * parts, parts, ceil_div(row, parts), *multiplier_and_shift(parts)


def _shared_bytes(
    operands: Sequence[Walked], sides: Sides, box: Box, gap: int, x_run: int, y_run: int
) -> int:
    """Return the shared memory of tables, of where runs begin, and of the cells of turned operands."""
    elements = prod(box.extents)
    shared = ceil_div(elements, 8) * 16 * (1 + sides.has_table)
    for operand, order in sides.of(operands):
        shared += (elements // (y_run if order == sides.y else x_run) + 1) // 2 * 16
        if order == sides.y:
            cells = ceil_div((elements + elements // gap + 1) * box.taken.layers * operand.itemsize, 16) * 16
            runs = elements // y_run * box.taken.layers * ((y_run * operand.itemsize + 30) // 16 * 16)
            shared += cells if box.taken.layers == 1 else max(cells, runs)
    return shared


def _with_cut_last(order: Ints, cut: int, other: int) -> Ints:
    """Return an order with the axis last along which the other order's runs end, unless runs have it."""
    if other in order[: order.index(cut) + 1]:
        return order
    return (*(axis for axis in order if axis != other), other)


def _runs(order: Ints, extents: Ints, way: Ints, cut: int, other: int, layers: int) -> _Runs:
    """Return the runs of a box in one order."""
    axes = order.index(cut) + 1
    run, runs = (prod(extents[axis] for axis in some) for some in (order[:axes], order[axes:]))
    words = ceil_div(run, layers) + _LINE_WORDS
    pieces = max(1, min(ceil_div(_PIECES, runs), words // _PIECE))
    piece = ceil_div(words, pieces * _PIECE) * _PIECE
    pieces = ceil_div(words, piece)
    rows = runs if other == cut else runs // extents[other]
    return _Runs(
        run // extents[cut],
        rows,
        way.index(cut),
        axes,
        run,
        runs,
        pieces,
        piece,
        *multiplier_and_shift(pieces),
    )
