"""The loop over cubes of arrays that lie along three different axes (include/gridstride/cubes.h)."""

from __future__ import annotations

from math import prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.element_loops import Steps, element_loop
from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.walks import LARGEST_WORD, THREADS, ElementWalk, Ints, Loop, Walked

#: Elements along an edge, by the bytes of the largest element: runs of sectors on all sides.
_EDGES = {1: 32, 2: 16, 4: 16, 8: 8, 16: 8}
_MOST_AXIS = 1 << 30


def cubes(walk: ElementWalk, limits: Limits) -> Loop | None:
    """Return the loop over cubes, where outputs lie along the first axis and inputs along two others."""
    operands = walk.operands
    if (
        len(walk.shape) < 3
        or not operands
        or not all(map(_are_words, operands))
        or max(walk.shape) >= _MOST_AXIS
    ):
        return None
    along = [_axis_of(operand) for operand in operands]
    turned = tuple(dict.fromkeys(axis for axis in along if axis))
    if len(turned) != 2 or any(axis != 0 for axis, each in zip(along, operands, strict=True) if each.written):
        return None
    edge = _EDGES[max(operand.itemsize for operand in operands)]
    order = (0, *turned, *(axis for axis in range(1, len(walk.shape)) if axis not in turned))
    x, y, z, *further = (walk.shape[axis] for axis in order)
    kinds = [turned.index(axis) + 1 if axis else 0 for axis in along]
    shared = sum(
        _shared_bytes(edge, each.itemsize) for each, kind in zip(operands, kinds, strict=True) if kind
    )
    if min(x, y, z) < edge // 2 or shared > limits.shared_memory_per_block_optin:
        return None
    outer = (*(ceil_div(length, edge) for length in (x, y, z)), *further)
    if prod(outer) >= 1 << 31:
        return None

    def steps(strides: Ints) -> Steps:
        step, by_y, by_z, *others = (strides[axis] for axis in order)
        return step, (by_y, by_z, 0, *others)

    return element_loop(
        "gridstride/cubes.h",
        f"cubes<{edge}, {', '.join(map(str, kinds))}>",
        walk,
        (x, y, z, 0),
        outer,
        steps,
        shared=shared,
        threads=THREADS,
    )


def _are_words(operand: Walked) -> bool:
    """Return whether all elements are words in memory."""
    size = operand.itemsize
    return size in _EDGES and all(each % size == 0 for each in (operand.address, *operand.strides))


def _axis_of(operand: Walked) -> int | None:
    """Return the axis along which elements are next to each other; None where there is none."""
    axes = (axis for axis, stride in enumerate(operand.strides) if stride == operand.itemsize)
    return next(axes, None)


def _shared_bytes(edge: int, itemsize: int) -> int:
    """Return the shared memory of an operand that is turned, as ``cubed::take_memory`` takes it."""
    return ceil_div(edge * (edge * (edge + 1) + 1) * itemsize, LARGEST_WORD) * LARGEST_WORD
