"""The fewest axes that walk a call's arrays, in the order in which memory lies."""

from __future__ import annotations

from collections.abc import Sequence

from gridstride._arguments import axes
from gridstride._arguments.elementwise import operand_strides
from gridstride._arguments.reduction import BoundFold
from gridstride._array_pipeline.operands import Operand
from gridstride.targets.walks import ElementWalk, FoldWalk, Walked

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


def fold_walk(bound: BoundFold, operands: Sequence[Operand]) -> FoldWalk:
    """Return the fewest axes that walk a fold: those that are kept and those that are folded apart."""
    elements = [
        operand for operand in operands if operand.role.kind == "element" and operand.view is not None
    ]
    inputs = [operand for operand in elements if not operand.written]
    outputs = [operand for operand in elements if operand.written]
    kept = [axis for axis in range(len(bound.shape)) if axis not in bound.axes]
    kept_shape = tuple(bound.shape[axis] for axis in kept)
    fold_shape = tuple(bound.shape[axis] for axis in bound.axes)
    all_strides = [
        operand_strides(operand.view, bound.shape) for operand in inputs if operand.view is not None
    ]
    numbers = axes.c_strides(bound.shape, 1)
    in_kept = [tuple(each[axis] for axis in kept) for each in (numbers, *all_strides)]
    in_fold = [tuple(each[axis] for axis in bound.axes) for each in (numbers, *all_strides)]
    results = axes.c_strides(kept_shape, 1)
    stored = [_kept_strides(operand, bound, kept) for operand in outputs]
    positions = axes.c_strides(fold_shape, 1)
    order = in_kept[1:] + stored + [results]
    kept_lengths, kept_walked = axes.collapse(kept_shape, [results, *in_kept, *stored], order)
    fold_lengths, fold_walked = axes.collapse(fold_shape, [positions, *in_fold], [*in_fold[1:], positions])
    split = 2 + len(inputs)
    return FoldWalk(
        kept_lengths,
        fold_lengths,
        kept_walked[1],
        fold_walked[1],
        fold_walked[0],
        kept_walked[0],
        tuple(
            Walked(operand.view.address, operand.view.dtype.itemsize, own, folded)
            for operand, own, folded in zip(inputs, kept_walked[2:split], fold_walked[2:], strict=True)
            if operand.view is not None
        ),
        tuple(
            Walked(operand.view.address, operand.view.dtype.itemsize, own, (), True)
            for operand, own in zip(outputs, kept_walked[split:], strict=True)
            if operand.view is not None
        ),
    )


def _kept_strides(operand: Operand, bound: BoundFold, kept: Sequence[int]) -> Ints:
    assert operand.view is not None
    strides = axes.strides_of(operand.view)
    return tuple(strides[axis] for axis in kept) if len(strides) == len(bound.shape) else strides
