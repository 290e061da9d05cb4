"""Inputs that share memory with an output otherwise than element for element are copied first, raw ones always."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gridstride._arguments.elementwise import Bound, operand_strides
from gridstride._arguments.place import Place
from gridstride._arguments.sharing import may_share
from gridstride._array_pipeline.copies import copied
from gridstride._array_pipeline.operands import Operand

if TYPE_CHECKING:
    from gridstride._arguments.reduction import BoundFold

Ints = tuple[int, ...]


def separated(
    kernel: str, operands: tuple[Operand, ...], bound: Bound | BoundFold, place: Place, stream: int
) -> tuple[Operand, ...]:
    """Return the operands with copies in place of inputs that overlap an output otherwise than element for element.

    They are the same object where nothing overlaps so. A raw array, and an input of a reduction, may not overlap an
    output at all: which elements are read when is not known. What two raw outputs share is the kernel's concern.

    Raises
    ------
    ValueError
        Where two outputs overlap.
    """
    found = [each for each in operands if each.role.kind != "scalar" and each.view is not None]
    spans = [each.view.extent for each in found if each.view is not None]
    if not _any_meet(found, spans):
        return operands
    outputs = [each for each in found if each.written]
    walked = [each for each in outputs if each.role.kind == "element"]
    for k, first in enumerate(walked):
        for second in walked[k + 1 :]:
            assert first.view is not None
            assert second.view is not None
            if may_share(first.view, second.view):
                names = f"{first.role.parameter.name!r} and {second.role.parameter.name!r}"
                raise ValueError(f"`{kernel}`: outputs {names} share memory: pass arrays that lie apart")
    shape = bound.shape if isinstance(bound, Bound) else None
    needed = [_needs_copy(each, outputs, shape) for each in operands]
    if not any(needed):
        return operands
    return tuple(
        each._replace(view=copied(kernel, each, place, stream)) if is_needed else each
        for each, is_needed in zip(operands, needed, strict=True)
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
    if operand.written or view is None or operand.role.kind == "scalar":
        return False
    for output in outputs:
        assert output.view is not None
        same = (
            shape is not None
            and operand.role.kind == output.role.kind == "element"
            and view.address == output.view.address
            and view.dtype.itemsize == output.view.dtype.itemsize
            and operand_strides(view, shape) == operand_strides(output.view, shape)
        )
        if not same and may_share(view, output.view):
            return True
    return False
