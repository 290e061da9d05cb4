"""The loop over boxes of permuted axes, which are a few long runs on both sides (include/gridstride/boxes.h)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.element_loops import lies_along
from gridstride.targets.walks import (
    IN_LAUNCH,
    LARGEST_WORD,
    LEAST_WORD,
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
_CELL, _LINE = 8, 128
#: Words of a line of the cache at most, and the fewest of a piece of a run; pieces of a box.
_LINE_WORDS, _PIECE, _PIECES = 32, 32, 8
#: Bytes of words of layers that a thread turns at once, and more, with fewer blocks, where boxes would be too small;
#: the squares of such words at most.
_TURNED, _MOST_TURNED, _MOST_SQUARES = 128, 256, 16
#: The largest place in shared memory that the table of places may name.
_MOST_PLACE = 1 << 16
#: Places that a thread writes at once, at most.
_MOST_WRITTEN = 24
#: Bytes of the shortest runs, as far as layers continue them, and of such with which the first box is taken.
_LEAST_RUN, LONG_RUN = 64, 256
#: Extents at which axes are cut are multiples of this, if they are longer, so that runs may begin at sectors.
_EVEN = 8
#: Blocks for which a multiprocessor has shared memory, also if elements are wide, or threads turn most, and what it
#: needs of that for itself and for where runs begin. Bytes of wide elements.
_BLOCKS, _BLOCKS_OF_WIDE, _BLOCKS_OF_MOST, _RESERVED, _WIDE = 5, 4, 3, 3072, 8
#: Elements of a box where there are few.
_FEW = 1024
#: Axes are shorter than this: places along them, and what lies a box behind their end, are `int`.
_LONGEST_AXIS = 1 << 30
#: What layers are worth that are farther from each other than a box, and how much better another axis for them must be.
_FAR, _BETTER = 0.9, 1.02


class _Sides(NamedTuple):
    """Hold the axes in the orders of outputs and of turned inputs, inner ones first, and which operands are turned."""

    x: Ints
    y: Ints
    turned: tuple[bool, ...]

    def of(self, operands: Sequence[Walked]) -> Iterator[tuple[Walked, Ints]]:
        """Return each operand with its order."""
        for operand, turned in zip(operands, self.turned, strict=True):
            yield operand, self.y if turned else self.x

    def turned_of(self, operands: Sequence[Walked]) -> list[Walked]:
        """Return the operands that are turned."""
        return [operand for operand, order in self.of(operands) if order == self.y]


class _Taken(NamedTuple):
    """Say how many boxes are taken at once, squares of their words by a thread, and blocks by a multiprocessor."""

    layers: int
    squares: int
    blocks: int


class _Box(NamedTuple):
    """Say how a walk is cut into boxes.

    Attributes
    ----------
    extents : tuple of int
    layers, squares : int
        How many boxes are taken at once, and how many squares of their words a thread turns.
    layered : int
        The axis along which layers follow each other.
    distance : int
        From one to the next.
    """

    extents: Ints
    layers: int
    squares: int
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


def boxes(walk: ElementWalk, limits: Limits, least: int = _LEAST_RUN) -> Loop | None:
    """Return the loop over boxes, where several planes are turned, and runs have so many bytes at least."""
    if len(walk.shape) == 2 or all(operand.strides[0] == operand.itemsize for operand in walk.operands):
        return None
    sides = _sides(walk)
    if sides is None or max(walk.shape) >= _LONGEST_AXIS:
        return None
    others = []
    for box in _boxes(walk, sides, limits):
        run = _shortest_run(walk, sides, box)
        loop = _loop(walk, sides, box) if run >= least else None
        if loop is not None and run >= LONG_RUN:
            return loop
        others += [] if loop is None else [loop]
    return others[0] if others else None


def _boxes(walk: ElementWalk, sides: _Sides, limits: Limits) -> Iterator[_Box]:
    """Yield boxes, the better ones first unless their runs are short."""
    for taken in _taken_at_once(walk, sides):
        most = _most_elements(walk, sides, taken, limits)
        # Smaller boxes, so that each multiprocessor has two, where their runs are long enough; else the largest whose
        # runs end in no more squares than threads turn.
        two_for_each = prod(walk.shape) // (2 * taken.layers * limits.multiprocessors)
        for elements in dict.fromkeys((min(most, max(_FEW, two_for_each)), most, most * 7 // 8)):
            extents = _extents(walk.shape, sides, elements)
            box = None if extents is None else _layered(walk, sides, extents, taken)
            if box is not None:
                yield box


def _taken_at_once(walk: ElementWalk, sides: _Sides) -> Iterator[_Taken]:
    """Yield what may be taken at once, the best first."""
    largest = max(operand.itemsize for operand in sides.turned_of(walk.operands))
    for layers in _layers(walk.operands):
        if layers == 1:
            yield _Taken(1, 1, _BLOCKS_OF_WIDE if largest >= _WIDE else _BLOCKS)
            continue
        for turned, blocks in ((_TURNED, _BLOCKS), (_MOST_TURNED, _BLOCKS_OF_MOST)):
            squares = turned // (layers * layers * largest)
            if squares <= _MOST_SQUARES:
                yield _Taken(layers, squares, blocks)


def _gap(walk: ElementWalk, sides: _Sides, layers: int) -> int:
    """Return the cells of a line of banks, after which one is left out."""
    return _LINE // (layers * max(operand.itemsize for operand in sides.turned_of(walk.operands)))


def _most_elements(walk: ElementWalk, sides: _Sides, taken: _Taken, limits: Limits) -> int:
    """Return how many elements a box may have: its cells and places are in shared memory, and the table names them."""
    room = limits.shared_memory_per_block_optin // taken.blocks - _RESERVED
    layers, place, gap = taken.layers, 2, _gap(walk, sides, taken.layers)  # bytes of a place
    cells = sum(-(-layers * each.itemsize * (gap + 1) // gap) for each in sides.turned_of(walk.operands))
    most = min(room // (place + cells), _MOST_PLACE * gap // (gap + 1))
    return most if layers == 1 else min(most, taken.squares * THREADS * layers)


def _sides(walk: ElementWalk) -> _Sides | None:
    """Return both sides, where outputs lie in one order, and each input in that or in another."""
    operands = walk.operands
    if not operands or not operands[-1].written:
        return None
    if any(stride <= 0 or stride % each.itemsize for each in operands for stride in each.strides):
        return None
    orders = [_order(operand) for operand in operands]
    x, turned = orders[-1], tuple(order != orders[-1] for order in orders)
    others = {order for order in orders if order != x}
    if len(others) != 1 or any(
        each.written for each, is_turned in zip(operands, turned, strict=True) if is_turned
    ):
        return None
    return _Sides(x, others.pop(), turned)


def _order(operand: Walked) -> Ints:
    return tuple(sorted(range(len(operand.strides)), key=lambda axis: operand.strides[axis]))


def _layers(operands: Sequence[Walked]) -> Ints:
    """Return how many boxes may be taken at once, the best first; none where not all elements are words in memory."""
    sizes = [operand.itemsize for operand in operands]
    if any(size > LARGEST_WORD or size & (size - 1) for size in sizes):
        return ()
    if any(operand.address % operand.itemsize for operand in operands):
        return ()
    if min(sizes) >= LEAST_WORD:
        return (1,)
    most = _CELL // max(sizes)
    return tuple(layers for layers in (most, most // 2) if layers * min(sizes) >= LEAST_WORD)


def _cut(shape: Ints, order: Ints, extents: Sequence[int]) -> int | None:
    """Return the first axis in an order along which a box is cut, with which its runs end."""
    return next((axis for axis in order if extents[axis] < shape[axis]), None)


def _run(shape: Ints, order: Ints, extents: Sequence[int]) -> int:
    """Return how long runs are."""
    run = 1
    for axis in order:
        run *= extents[axis]
        if extents[axis] < shape[axis]:
            break
    return run


def _extents(shape: Ints, sides: _Sides, most: int) -> Ints | None:
    """Return the extents of boxes of so many elements at most: runs grow in turns; None where one box is all."""
    extents, orders = [1] * len(shape), [sides.x, sides.y]
    while orders:
        order = min(orders, key=lambda each: _run(shape, each, extents))
        axis = _cut(shape, order, extents)
        if axis is None:
            return None
        longer = min(shape[axis], 2 * extents[axis], most * extents[axis] // prod(extents))
        if longer <= extents[axis]:
            orders.remove(order)
        else:
            extents[axis] = longer
    return tuple(
        extent // _EVEN * _EVEN if _EVEN <= extent < length else extent
        for extent, length in zip(extents, shape, strict=True)
    )


def _layered(walk: ElementWalk, sides: _Sides, extents: Ints, taken: _Taken) -> _Box | None:
    """Return the boxes with the axis along which layers waste least."""
    shape, layers, best, most = walk.shape, taken.layers, None, 0.0
    cuts = [_cut(shape, order, extents) for order in (sides.y, sides.x)]
    for axis in dict.fromkeys((*cuts, *(axis for axis, extent in enumerate(extents) if extent == 1))):
        if axis is None or extents[axis] == shape[axis]:
            continue
        distance = extents[axis]
        while any(distance * each.strides[axis] // each.itemsize % layers for each in walk.operands):
            distance *= 2
        pitch = layers * distance
        filled = shape[axis] / (-(-shape[axis] // pitch) * pitch) * (1 if distance == extents[axis] else _FAR)
        if filled > _BETTER * most:
            best, most = _Box(extents, layers, taken.squares, axis, distance), filled
    return best


def _shortest_run(walk: ElementWalk, sides: _Sides, box: _Box) -> int:
    """Return the bytes of the shortest run of an operand, as far as layers continue it; 0 if there is none."""
    shape, extents, shortest = walk.shape, box.extents, 1 << 62
    for operand, order in sides.of(walk.operands):
        cut = _cut(shape, order, extents)
        if cut is None or not lies_along(operand, shape, order[: order.index(cut) + 1]):
            return 0
        continued = box.layers if box.layered == cut else 1
        shortest = min(shortest, _run(shape, order, extents) * operand.itemsize * continued)
    return shortest


def _loop(walk: ElementWalk, sides: _Sides, box: _Box) -> Loop | None:
    shape, ndim, extents, gap = walk.shape, len(walk.shape), box.extents, _gap(walk, sides, box.layers)
    x_cut, y_cut = (_cut(shape, order, extents) for order in (sides.x, sides.y))
    if x_cut is None or y_cut is None:
        return None
    x, y = _with_cut_last(sides.x, x_cut, y_cut), _with_cut_last(sides.y, y_cut, x_cut)
    several = (axis for axis in x if extents[axis] < shape[axis])
    way = tuple(dict.fromkeys((box.layered, x_cut, y_cut, *several, *x)))
    ways = sum(extents[axis] < shape[axis] for axis in way)
    residues = box.distance // extents[box.layered]
    counts = [-(-shape[axis] // extents[axis]) for axis in way]
    counts[0] = -(-shape[box.layered] // (box.layers * box.distance)) * residues
    count, elements = prod(counts), prod(extents)
    if count >= 2**31:
        return None
    x_runs = _runs(x, extents, way, x_cut, y_cut, box.layers)
    y_runs = _runs(y, extents, way, y_cut, x_cut, box.layers)
    if box.layers > 1:
        x_runs = x_runs.taken_by_words(x_runs.length // box.layers)
        y_runs = y_runs.taken_by_words(-(-y_runs.length // box.layers) + 1)
        if y_runs.runs * y_runs.pieces > box.squares * THREADS:
            return None
    capacity = capacity_for(ndim)

    def ordered(values: Ints) -> Ints:
        return tuple(values[axis] for axis in way)

    def ints(values: Sequence[int]) -> bytes:
        return struct.pack(f"<{capacity}i", *values, *(0 for _ in range(capacity - ndim)))

    def along(order: Ints) -> Ints:
        return tuple(extents[axis] for axis in order)

    space = (
        struct.pack(
            "<2q8i2I",
            prod(shape),
            box.distance,
            residues.bit_length() - 1,
            count,
            ways,
            elements,
            _together(y_runs.length, walk.operands),
            *_parts(extents[x[0]], elements),
        )
        + struct.pack("<8i2I", *x_runs)
        + struct.pack("<8i2I", *y_runs)
        + ints(ordered(shape))
        + ints(ordered(extents))
        + ints([prod(along(y[: y.index(axis)])) for axis in x])
        + ints([way.index(axis) for axis in x])
        + ints([way.index(axis) for axis in y])
        + axes_bytes(elements, along(x), capacity)
        + axes_bytes(elements, along(y), capacity)
        + axes_bytes(count, counts, capacity)
        + numbering_bytes(0, ordered(walk.numbers), capacity)
    )
    how = configuration(count, THREADS)
    return Loop(
        _HEADER,
        f"boxes<{box.layers}, {gap}, {box.squares}, {', '.join(str(int(turned)) for turned in sides.turned)}>",
        IN_LAUNCH,
        capacity,
        space,
        tuple(operand_bytes(each.address, 0, ordered(each.strides), capacity) for each in walk.operands),
        how._replace(shared_mem=_shared_bytes(walk.operands, sides, box, gap, x_runs.length, y_runs.length)),
        "box_space",
    )


def _together(run: int, operands: Sequence[Walked]) -> int:
    """Return the logarithm of how many threads bring a run: each a few words, where it has so many."""
    words = run * max(operand.itemsize for operand in operands) // LARGEST_WORD
    return min(5, max(0, (words // 8).bit_length()))


def _parts(row: int, elements: int) -> Ints:
    """Return the parts of rows that threads write into the table: all, those of a row, how long, and how to divide."""
    parts = -(-row // _MOST_WRITTEN)
    return elements // row * parts, parts, -(-row // parts), *multiplier_and_shift(parts)


def _shared_bytes(
    operands: Sequence[Walked], sides: _Sides, box: _Box, gap: int, x_run: int, y_run: int
) -> int:
    """Return the shared memory of places, of where runs begin, and of the cells of turned operands."""
    elements = prod(box.extents)
    shared = -(-elements // 8) * 16
    for operand, order in sides.of(operands):
        shared += (elements // (y_run if order == sides.y else x_run) + 1) // 2 * 16
        if order == sides.y:
            cells = -(-(elements + elements // gap + 1) * box.layers * operand.itemsize // 16) * 16
            runs = elements // y_run * box.layers * ((y_run * operand.itemsize + 30) // 16 * 16)
            shared += cells if box.layers == 1 else max(cells, runs)
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
    words = -(-run // layers) + _LINE_WORDS
    pieces = max(1, min(-(-_PIECES // runs), words // _PIECE))
    piece = -(-words // pieces // _PIECE) * _PIECE
    pieces = -(-words // piece)
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
