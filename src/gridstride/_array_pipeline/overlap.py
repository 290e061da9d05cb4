"""Inputs that share memory with an output otherwise than element for element are copied first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gridstride._arguments import axes
from gridstride._arguments.elementwise import Bound, Passed, operand_strides
from gridstride._arguments.place import Place
from gridstride._array_pipeline.launching import execute, prepare_elements
from gridstride._array_pipeline.operands import Operand, make_outputs
from gridstride._source.elementwise import (
    copy_source,
)
from gridstride._source.types import Role
from gridstride.arrays.view import ArrayView

if TYPE_CHECKING:
    from gridstride._arguments.reduction import BoundFold

Ints = tuple[int, ...]


def separated(
    kernel: str, operands: tuple[Operand, ...], bound: Bound | BoundFold, place: Place, stream: int
) -> tuple[Operand, ...]:
    """Return the operands with copies in place of inputs that overlap an output otherwise than element for element.

    They are the same object where nothing overlaps so. An input of a reduction may not overlap an output at all.

    Raises
    ------
    ValueError
        Where two outputs overlap.
    """
    walked = [each for each in operands if each.role.kind == "element" and each.view is not None]
    spans = [each.view.extent for each in walked if each.view is not None]
    outputs = [each for each in walked if each.written]
    if not _any_meet(walked, spans):
        return operands
    for k, first in enumerate(outputs):
        for second in outputs[k + 1 :]:
            assert first.view is not None
            assert second.view is not None
            if axes.may_share(first.view, second.view):
                names = f"{first.role.parameter.name!r} and {second.role.parameter.name!r}"
                raise ValueError(f"`{kernel}`: outputs {names} share memory: pass arrays that lie apart")
    shape = bound.shape if isinstance(bound, Bound) else None
    copied = [_needs_copy(each, outputs, shape) for each in operands]
    if not any(copied):
        return operands
    return tuple(
        each._replace(view=_copied(kernel, each, place, stream)) if needed else each
        for each, needed in zip(operands, copied, strict=True)
    )


def _any_meet(operands: Sequence[Operand], spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether the stretch of memory of an output meets that of another operand."""
    for k, (operand, (low, high)) in enumerate(zip(operands, spans, strict=True)):
        if operand.written and any(
            low < other_high and other_low < high for j, (other_low, other_high) in enumerate(spans) if j != k
        ):
            return True
    return False


def _needs_copy(operand: Operand, outputs: Sequence[Operand], shape: Ints | None) -> bool:
    view = operand.view
    if operand.written or view is None or operand.role.kind != "element":
        return False
    for output in outputs:
        assert output.view is not None
        same = (
            shape is not None
            and view.address == output.view.address
            and view.dtype.itemsize == output.view.dtype.itemsize
            and operand_strides(view, shape) == operand_strides(output.view, shape)
        )
        if not same and axes.may_share(view, output.view):
            return True
    return False


def _copied(kernel: str, operand: Operand, place: Place, stream: int) -> ArrayView:
    """Return a C-contiguous copy of an array, made in stream order."""
    view = operand.view
    assert view is not None
    (made,) = make_outputs(kernel, [view], [operand.passed.value], [(view.dtype, view.shape)], place, stream)
    source = copy_source()
    parameter, target = source.declaration.parameters
    given = Passed(parameter, 0, operand.passed.value, view, False)
    taken = Passed(target, 1, made.array, made.view, True)
    operands = (
        Operand(Role(parameter, "element", view.dtype, view.dtype), given, view, False),
        Operand(Role(target, "element", view.dtype, view.dtype), taken, made.view, True),
    )
    bound = Bound(source.declaration, (), (view.dtype,) * 2, {"T": view.dtype}, view.shape, ())
    execute(kernel, prepare_elements(source, bound, operands, place), operands, place, stream)
    return made.view
