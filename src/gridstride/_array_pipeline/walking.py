"""The fewest axes that walk a call's arrays, in the order in which memory lies."""

from __future__ import annotations

from collections.abc import Sequence

from gridstride._arguments import axes
from gridstride._arguments.elementwise import operand_strides
from gridstride._array_pipeline.operands import Operand
from gridstride.targets.walks import ElementWalk, Walked

Ints = tuple[int, ...]


def element_walk(operands: Sequence[Operand], shape: Ints, are_numbered: bool) -> ElementWalk:
    """Return the fewest axes that walk a shape, ordered by the strides of the outputs, then of the inputs.

    Unless elements are numbered, axes are walked so that they go forwards where elements are closest.
    """
    elements = [
        operand for operand in operands if operand.role.kind == "element" and operand.view is not None
    ]
    views = [operand.view for operand in elements if operand.view is not None]
    strides = [operand_strides(view, shape) for view in views]
    addresses = [view.address for view in views]
    numbers = axes.c_strides(shape, 1) if are_numbered else (0,) * len(shape)
    for axis, length in enumerate(shape):
        if not are_numbered and length > 1 and _is_backwards(elements, strides, axis):
            addresses = [at + each[axis] * (length - 1) for at, each in zip(addresses, strides, strict=True)]
            strides = [(*each[:axis], -each[axis], *each[axis + 1 :]) for each in strides]
    written = [each for each, operand in zip(strides, elements, strict=True) if operand.written]
    read = [each for each, operand in zip(strides, elements, strict=True) if not operand.written]
    lengths, (walked_numbers, *walked) = axes.collapse(shape, [numbers, *strides], [*written, *read, numbers])
    return ElementWalk(
        lengths,
        walked_numbers,
        tuple(
            Walked(at, view.dtype.itemsize, each, (), operand.written)
            for at, view, operand, each in zip(addresses, views, elements, walked, strict=True)
        ),
    )


def _is_backwards(operands: Sequence[Operand], strides: Sequence[Ints], axis: int) -> bool:
    """Return whether elements go backwards along an axis where they are closest, of results before those of inputs."""
    steps = [
        (abs(each[axis]) / operand.view.dtype.itemsize, not operand.written, each[axis] < 0)
        for each, operand in zip(strides, operands, strict=True)
        if each[axis] and operand.view is not None
    ]
    return min(steps)[2] if steps else False
