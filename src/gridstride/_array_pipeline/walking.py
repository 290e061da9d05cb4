"""The fewest axes that walk a call's arrays, in the order in which memory lies."""

from __future__ import annotations

from collections.abc import Sequence

from gridstride._arguments import axes
from gridstride._arguments.elementwise import operand_strides
from gridstride._array_pipeline.operands import Operand
from gridstride.targets.walks import ElementWalk, Walked

Ints = tuple[int, ...]


def element_walk(operands: Sequence[Operand], shape: Ints) -> ElementWalk:
    """Return the fewest axes that walk a shape, ordered by the strides of the outputs, then of the inputs."""
    elements = [
        operand for operand in operands if operand.role.kind == "element" and operand.view is not None
    ]
    strides = [operand_strides(operand.view, shape) for operand in elements if operand.view is not None]
    numbers = axes.c_strides(shape, 1)
    written = [each for each, operand in zip(strides, elements, strict=True) if operand.written]
    read = [each for each, operand in zip(strides, elements, strict=True) if not operand.written]
    lengths, (walked_numbers, *walked) = axes.collapse(shape, [numbers, *strides], [*written, *read, numbers])
    return ElementWalk(
        lengths,
        walked_numbers,
        tuple(
            Walked(operand.view.address, operand.view.dtype.itemsize, each, (), operand.written)
            for operand, each in zip(elements, walked, strict=True)
            if operand.view is not None
        ),
    )
