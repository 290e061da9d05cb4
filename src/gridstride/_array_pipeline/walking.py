"""The fewest axes that walk a call's arrays, in the order in which memory lies."""

from __future__ import annotations

from collections.abc import Sequence

from gridstride._arguments import axes
from gridstride._arguments.elementwise import operand_strides
from gridstride._array_pipeline.operands import Operand
from gridstride.targets.walks import ElementWalk, FoldWalk, Walked

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


def walk_of(
    shape: Ints,
    folded: Sequence[int],
    inputs: Sequence[Walked],
    outputs: Sequence[Walked],
    has_numbers: bool,
    has_positions: bool,
) -> FoldWalk:
    """Return the fewest axes that walk a fold: those that are kept and those that are folded apart.

    Inputs have a stride along each axis, outputs along each that is kept. Where elements have no numbers, or no
    positions in the fold, these are all 0.
    """
    kept = [axis for axis in range(len(shape)) if axis not in folded]
    kept_shape, fold_shape = (tuple(shape[axis] for axis in each) for each in (kept, folded))
    numbers = axes.c_strides(shape, int(has_numbers))
    all_strides = [each.strides for each in inputs]
    in_kept = [tuple(each[axis] for axis in kept) for each in (numbers, *all_strides)]
    in_fold = [tuple(each[axis] for axis in folded) for each in (numbers, *all_strides)]
    results = axes.c_strides(kept_shape, 1)
    stored = [each.strides for each in outputs]
    positions = axes.c_strides(fold_shape, int(has_positions))
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
            each._replace(strides=own, fold_strides=folded_strides)
            for each, own, folded_strides in zip(inputs, kept_walked[2:split], fold_walked[2:], strict=True)
        ),
        tuple(each._replace(strides=own) for each, own in zip(outputs, kept_walked[split:], strict=True)),
    )
