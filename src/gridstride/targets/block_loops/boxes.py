"""The loop over boxes of permuted axes, which are a few long runs on both sides (include/gridstride/boxes.h)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.box_space import (
    IN_ORDER_X,
    IN_ORDER_Y,
    REPEATED,
    REPEATED_ALIKE,
    Box,
    Sides,
    Taken,
    box_loop,
    cut_of,
    gap_of,
)
from gridstride.targets.block_loops.element_loops import lies_along
from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.walks import (
    LEAST_WORD,
    ElementWalk,
    Ints,
    Loop,
    Walked,
    fits_a_word,
)

#: Bytes of a cell.
_CELL = 8
#: Bytes of words of layers that a thread turns at once, and more, with fewer blocks, where boxes would be too small;
#: the squares of such words at most.
_TURNED, _MOST_TURNED, _MOST_SQUARES = 128, 192, 16
#: The largest place in shared memory that the table of places may name.
_MOST_PLACE = 1 << 16
#: Bytes of the shortest runs, as far as layers continue them, and of such with which the first box is taken.
_LEAST_RUN, LONG_RUN = 64, 256
#: Extents at which axes are cut are multiples of this, if they are longer, so that runs may begin at sectors.
_EVEN = 8
#: Blocks for which a multiprocessor has shared memory, also if elements are wide, or threads turn most, and what it
#: needs of that for itself and for where runs begin. Bytes of wide elements.
_BLOCKS, _BLOCKS_OF_WIDE, _BLOCKS_OF_MOST, _RESERVED, _WIDE = 5, 4, 3, 3072, 8
#: The same of large boxes, of so many elements, where layers have runs of fewer bytes than this, and have twice as long
#: ones then; the squares of which a thread turns words.
_LARGE_BLOCKS, _LARGE, _SHORT_RUN, _SQUARES = 2, 8192, 1024, 4
#: Elements of a box where there are few.
_FEW = 1024
#: Axes are shorter than this: places along them, and what lies a box behind their end, are `int`.
_LONGEST_AXIS = 1 << 30
#: What layers are worth that are farther from each other than a box, and how much better another axis for them must be.
_FAR, _BETTER = 0.9, 1.02


def boxes(walk: ElementWalk, limits: Limits, least: int = _LEAST_RUN) -> Loop | None:
    """Return the loop over boxes, where several planes are turned, and runs have so many bytes at least."""
    if len(walk.shape) == 2 or all(operand.strides[0] == operand.itemsize for operand in walk.operands):
        return None
    sides = _sides(walk)
    if sides is None or max(walk.shape) >= _LONGEST_AXIS:
        return None
    others = []
    for box in _boxes(walk, sides, limits):
        run = _shortest_run(walk, sides, box, box.taken.layers)
        loop = box_loop(walk, sides, box) if run >= least and _are_named(walk, sides, box) else None
        if loop is not None and run >= LONG_RUN:
            return _of_longer_runs(walk, sides, box, limits) or loop
        others += [] if loop is None else [loop]
    return others[0] if others else None


def _of_longer_runs(walk: ElementWalk, sides: Sides, box: Box, limits: Limits) -> Loop | None:
    """Return the loop over larger boxes, where runs of layers are short, and far longer then."""
    layers, run = box.taken.layers, _shortest_run(walk, sides, box, 1)
    if layers == 1 or run >= _SHORT_RUN:
        return None
    taken = Taken(layers, _SQUARES, _LARGE_BLOCKS, _LARGE // (_SQUARES * layers))
    extents = _extents(walk.shape, sides, _most_elements(walk, sides, taken, limits))
    larger = None if extents is None else _layered(walk, sides, extents, taken)
    if (
        larger is None
        or not _are_named(walk, sides, larger)
        or _shortest_run(walk, sides, larger, 1) < 2 * run
    ):
        return None
    loop = box_loop(walk, sides, larger)
    if loop is None or loop.configuration.grid[0] < 2 * _LARGE_BLOCKS * limits.multiprocessors:
        return None
    return loop


def _boxes(walk: ElementWalk, sides: Sides, limits: Limits) -> Iterator[Box]:
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


def _taken_at_once(walk: ElementWalk, sides: Sides) -> Iterator[Taken]:
    """Yield what may be taken at once, the best first."""
    largest = max(operand.itemsize for operand in sides.turned_of(walk.operands))
    for layers in _layers([operand for operand, _ in sides.of(walk.operands)]):
        if layers == 1:
            yield Taken(1, 1, _BLOCKS_OF_WIDE if largest >= _WIDE else _BLOCKS)
            continue
        for turned, blocks in ((_TURNED, _BLOCKS), (_MOST_TURNED, _BLOCKS_OF_MOST)):
            squares = _squares(walk, sides, layers, turned)
            if squares <= _MOST_SQUARES:
                yield Taken(layers, squares, blocks)


def _squares(walk: ElementWalk, sides: Sides, layers: int, turned: int) -> int:
    """Return of how many squares the words have so many bytes."""
    return turned // (layers * layers * max(operand.itemsize for operand in sides.turned_of(walk.operands)))


def _most_elements(walk: ElementWalk, sides: Sides, taken: Taken, limits: Limits) -> int:
    """Return how many elements a box may have: its cells and places are in shared memory, and the table names them."""
    room = limits.shared_memory_per_block_optin // taken.blocks - _RESERVED
    layers, places, gap = taken.layers, 2 * (1 + sides.has_table), gap_of(walk, sides, taken.layers)  # bytes
    cells = sum(ceil_div(layers * each.itemsize * (gap + 1), gap) for each in sides.turned_of(walk.operands))
    most = min(room // (places + cells), _MOST_PLACE * gap // (gap + 1))
    return most if layers == 1 else min(most, taken.squares * taken.threads * layers)


def _sides(walk: ElementWalk) -> Sides | None:
    """Return both sides, where outputs lie in one order, and each input in that or in another, or repeats elements."""
    operands = walk.operands
    if not operands or not operands[-1].written:
        return None
    repeats = [0 in operand.strides and not operand.written for operand in operands]
    if not _have_steps(operands, repeats) or not _are_alike(operands, repeats):
        return None
    x, kinds = _order(operands[-1]), []
    others = {
        _order(operand) for operand, is_repeated in zip(operands, repeats, strict=True) if not is_repeated
    } - {x}
    if len(others) != 1:
        return None
    for operand, is_repeated in zip(operands, repeats, strict=True):
        if is_repeated:
            kinds.append(REPEATED_ALIKE if REPEATED in kinds else REPEATED)
        else:
            kinds.append(IN_ORDER_X if _order(operand) == x else IN_ORDER_Y)
        if operand.written and kinds[-1] == IN_ORDER_Y:
            return None
    return Sides(x, others.pop(), tuple(kinds))


def _have_steps(operands: Sequence[Walked], repeats: Sequence[bool]) -> bool:
    """Return whether all elements are words in memory, and their steps forward, or none where they are repeated."""
    return all(
        fits_a_word(operand.itemsize)
        and all(each % operand.itemsize == 0 for each in (operand.address, *operand.strides))
        and (min(operand.strides) > 0 or (is_repeated and min(operand.strides) == 0))
        for operand, is_repeated in zip(operands, repeats, strict=True)
    )


def _are_alike(operands: Sequence[Walked], repeats: Sequence[bool]) -> bool:
    """Return whether all operands that repeat elements have the same steps."""
    steps = {
        tuple(stride // operand.itemsize for stride in operand.strides)
        for operand, is_repeated in zip(operands, repeats, strict=True)
        if is_repeated
    }
    return len(steps) <= 1


def _order(operand: Walked) -> Ints:
    return tuple(sorted(range(len(operand.strides)), key=lambda axis: operand.strides[axis]))


def _layers(operands: Sequence[Walked]) -> Ints:
    """Return how many boxes may be taken at once, the best first."""
    sizes = [operand.itemsize for operand in operands]
    if min(sizes) >= LEAST_WORD:
        return (1,)
    most = _CELL // max(sizes)
    return tuple(layers for layers in (most, most // 2) if layers * min(sizes) >= LEAST_WORD)


def _run(shape: Ints, order: Ints, extents: Sequence[int]) -> int:
    """Return how long runs are."""
    run = 1
    for axis in order:
        run *= extents[axis]
        if extents[axis] < shape[axis]:
            break
    return run


def _extents(shape: Ints, sides: Sides, most: int) -> Ints | None:
    """Return the extents of boxes of so many elements at most: runs grow in turns; None where one box is all."""
    extents, orders = [1] * len(shape), [sides.x, sides.y]
    while orders:
        order = min(orders, key=lambda each: _run(shape, each, extents))
        axis = cut_of(shape, order, extents)
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


def _are_named(walk: ElementWalk, sides: Sides, box: Box) -> bool:
    """Return whether a table can say where repeated elements are in a box."""
    return all(
        kind < REPEATED
        or sum(
            (extent - 1) * stride // operand.itemsize
            for extent, stride in zip(box.extents, operand.strides, strict=True)
        )
        < _MOST_PLACE
        for operand, kind in zip(walk.operands, sides.kinds, strict=True)
    )


def _layered(walk: ElementWalk, sides: Sides, extents: Ints, taken: Taken) -> Box | None:
    """Return the boxes with the axis along which layers waste least."""
    shape, layers, best, most = walk.shape, taken.layers, None, 0.0
    cuts = [cut_of(shape, order, extents) for order in (sides.y, sides.x)]
    for axis in dict.fromkeys((*cuts, *(axis for axis, extent in enumerate(extents) if extent == 1))):
        if axis is None or extents[axis] == shape[axis]:
            continue
        distance = extents[axis]
        while any(
            distance * each.strides[axis] // each.itemsize % layers for each, _ in sides.of(walk.operands)
        ):
            distance *= 2
        pitch = layers * distance
        filled = (
            shape[axis] / (ceil_div(shape[axis], pitch) * pitch) * (1 if distance == extents[axis] else _FAR)
        )
        if filled > _BETTER * most:
            best, most = Box(extents, taken, axis, distance), filled
    return best


def _shortest_run(walk: ElementWalk, sides: Sides, box: Box, layers: int) -> int:
    """Return the bytes of the shortest run of an operand, as far as so many layers continue it; 0 if there is none."""
    shape, extents, shortest = walk.shape, box.extents, 1 << 62
    for operand, order in sides.of(walk.operands):
        cut = cut_of(shape, order, extents)
        if cut is None or not lies_along(operand, shape, order[: order.index(cut) + 1]):
            return 0
        continued = layers if box.layered == cut else 1
        shortest = min(shortest, _run(shape, order, extents) * operand.itemsize * continued)
    return shortest
