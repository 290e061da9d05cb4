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

    Unless elements are numbered, axes along which neighbors lie backwards are walked so that they do not.
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
    """Return whether neighboring results go backwards along an axis, else of an input; or results that are apart."""
    along = [
        (each[axis], operand.view.dtype.itemsize if operand.view is not None else 0, operand.written)
        for each, operand in zip(strides, operands, strict=True)
    ]
    neighboring = [(not is_written, step) for step, size, is_written in along if abs(step) == size]
    if neighboring:
        return min(neighboring, key=lambda each: each[0])[1] < 0
    return next((step < 0 for step, _, is_written in along if is_written and step), False)
