"""Copies of arrays, made on the device in stream order."""

from __future__ import annotations

import numpy as np

from gridstride._arguments import axes
from gridstride._arguments.elementwise import Bound, Passed
from gridstride._arguments.place import Place
from gridstride._array_pipeline.launching import execute, prepare_elements
from gridstride._array_pipeline.operands import Operand, make_scratch
from gridstride._source.elementwise import copy_source
from gridstride._source.types import Role
from gridstride.arrays.view import ArrayView, strides_unless_contiguous

_BYTE = np.dtype(np.uint8)


def lies_aligned(operand: Operand, place: Place) -> bool:
    """Return whether a place reads and writes an array's elements where they lie."""
    view = operand.view
    alignment = operand.role.alignment
    if (
        view is None
        or operand.role.kind == "scalar"
        or alignment <= place.target.limits(place.device).largest_unaligned
    ):
        return True
    steps = [step for step, length in zip(axes.strides_of(view), view.shape, strict=True) if length > 1]
    return not view.size or not any(number % alignment for number in (view.address, *steps))


def copied(kernel: str, operand: Operand, place: Place, stream: int) -> ArrayView:
    """Return a copy of an array that repeats the elements that the array repeats, the others C-contiguous."""
    view = operand.view
    assert view is not None
    steps = axes.strides_of(view)
    shape = tuple(1 if step == 0 else length for length, step in zip(view.shape, steps, strict=True))
    (made,) = make_scratch(kernel, [operand], [(view.dtype, shape)], place, stream)
    own = axes.strides_of(made.view)
    repeated = tuple(0 if step == 0 else each for each, step in zip(own, steps, strict=True))
    strides = strides_unless_contiguous(view.shape, repeated, view.dtype.itemsize)
    copy(kernel, operand._replace(view=view._replace(shape=shape)), made.view, place, stream)
    return made.view._replace(shape=view.shape, strides=strides)


def copy(kernel: str, operand: Operand, to: ArrayView, place: Place, stream: int) -> None:
    """Copy an operand's elements to an array of the same dtype and shape, either of which may lie unaligned."""
    assert operand.view is not None
    target = operand._replace(view=to)
    views = [operand.view, to]
    if not (lies_aligned(operand, place) and lies_aligned(target, place)):
        views = [_bytes_of(view) for view in views]
    source = copy_source()
    dtype, shape = views[0].dtype, views[0].shape
    operands = tuple(
        Operand(
            Role(parameter, "element", dtype, dtype),
            Passed(parameter, position, view.owner, view, position == 1),
            view,
            position == 1,
        )
        for position, (parameter, view) in enumerate(zip(source.declaration.parameters, views, strict=True))
    )
    bound = Bound(source.declaration, (), (dtype, dtype), {"T": dtype}, shape, ())
    prepared = prepare_elements(source, bound, operands, place, came_again=True)
    execute(kernel, prepared, operands, place, stream)


def _bytes_of(view: ArrayView) -> ArrayView:
    shape, strides = (*view.shape, view.dtype.itemsize), (*axes.strides_of(view), 1)
    return view._replace(dtype=_BYTE, shape=shape, strides=strides_unless_contiguous(shape, strides, 1))
