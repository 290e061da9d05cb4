"""Debug mode's check of reductions: the first elements are folded in several orders, which must give the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gridstride import _dtypes
from gridstride._arguments.place import Place
from gridstride._arguments.reduction import BoundFold
from gridstride._array_pipeline.folding import fold_walk
from gridstride._array_pipeline.launching import ParameterBlock, PreparedCall, execute, load_explained
from gridstride._array_pipeline.operands import Operand, make_scratch
from gridstride._runtime import tracking
from gridstride._source.reduction import ReductionSource, entry, reduction_form, reduction_program
from gridstride.arrays.view import ArrayView
from gridstride.targets.base import Access, CopyDirection
from gridstride.targets.block_loops.fold_loops import fold_space_bytes
from gridstride.targets.walks import (
    FoldLoop,
    FoldWalk,
    axes_bytes,
    configuration,
    folded_bytes,
    operand_bytes,
)

_CAPACITY = 4
_ELEMENTS = 4
#: The orders of include/gridstride/fold_orders.h.
_FORWARD, _NESTED, _BACKWARD, _ALONE, _BEHIND, _BEFORE = range(6)
#: With those of the other elements alone.
_ORDERS = 9
#: By which share of the largest result rounding may make results differ, whatever the type in which they are folded.
_ROUNDING = 0.02


class _Rule(NamedTuple):
    """A rule, the two orders that show whether it is kept, and how they are written."""

    text: str
    orders: tuple[int, int]
    written: tuple[str, str]


_RULES = (
    _Rule("associative", (_FORWARD, _NESTED), ("((x0, x1), x2), x3", "x0, (x1, (x2, x3))")),
    _Rule("commutative", (_FORWARD, _BACKWARD), ("((x0, x1), x2), x3", "((x3, x2), x1), x0")),
    _Rule("neutral", (_ALONE, _BEHIND), ("x0", "identity, x0")),
    _Rule("neutral", (_ALONE, _BEFORE), ("x0", "x0, identity")),
)


def check_rules(
    source: ReductionSource, bound: BoundFold, operands: Sequence[Operand], place: Place, stream: int
) -> None:
    """Raise ValueError where the order of the first elements of the first fold decides what they are folded to.

    Parameters
    ----------
    source : ReductionSource
    bound : BoundFold
    operands : sequence of Operand
        Of the call; its outputs are not touched.
    place : Place
    stream : int
        To whose end the call waits. While it records a graph nothing is checked.
    """
    is_walked = all(each.role.kind == "element" for each in operands if each.written)
    if not bound.fold_size or not is_walked or place.target.capture_of(stream):
        return
    found = _fold_in_orders(source, bound, operands, place, stream)
    is_rounded = any(each.role.value.kind in "fcV" for each in operands)
    for rule in _RULES:
        for parameter, results in zip(source.declaration.outputs, found, strict=True):
            first, second = (results[order] for order in rule.orders)
            if not _agree(first, second, results, is_rounded, rule.text != "neutral"):
                raise ValueError(_broken(source, rule, parameter.name, first, second))


def _fold_in_orders(
    source: ReductionSource, bound: BoundFold, operands: Sequence[Operand], place: Place, stream: int
) -> list[Any]:
    """Return the values of each output for each order."""
    name = source.declaration.name
    written = [each for each in operands if each.written]
    made = make_scratch(name, operands, [(each.role.stored, (_ORDERS,)) for each in written], place, stream)
    scratch = [each.view for each in made]
    for view in scratch:
        tracking.fill(place.target, place.device, _access(view), 0, view.nbytes, stream)
    views = iter(scratch)
    redirected = [each._replace(view=next(views)) if each.written else each for each in operands]
    prepared = _prepared(source, bound, operands, redirected, place)
    execute(name, prepared, redirected, place, stream)
    tracking.synchronize_stream(place.target, place.device, stream)
    return [_read(view, place) for view in scratch]


def _prepared(
    source: ReductionSource,
    bound: BoundFold,
    operands: Sequence[Operand],
    redirected: Sequence[Operand],
    place: Place,
) -> PreparedCall:
    walk = fold_walk(bound, operands)
    length = min(walk.fold[0], _ELEMENTS)
    how = configuration(1, 1)
    few = FoldWalk(
        (_ORDERS,), (length,), (0,), walk.fold_numbers[:1], walk.positions[:1], (1,), walk.inputs, ()
    )
    kept, fold = (axes_bytes(each, (each,), _CAPACITY) for each in (_ORDERS, length))
    space = fold_space_bytes(few, _CAPACITY, length, 1, 1, kept, fold, (0,))
    elements = [
        folded_bytes(each.address, each.fold_strides[0], (0,), (0,), _CAPACITY) for each in walk.inputs
    ]
    elements += [
        operand_bytes(each.view.address, each.view.dtype.itemsize, (0,), _CAPACITY)
        for each in redirected
        if each.written and each.view is not None
    ]
    loop = FoldLoop("gridstride/fold_orders.h", "fold_orders", "", _CAPACITY, space, tuple(elements), how)
    form = reduction_form(source, tuple(each.role for each in operands), bound.types.items(), loop, False)
    program = reduction_program(source, (form,), place.target.name)
    loaded = load_explained(program, source.sections(), bound.types, place)
    block = ParameterBlock()
    block.add(loop.space, 8)
    block.add_operands(redirected, range(len(operands)), loop.operands)
    return PreparedCall(program.text, (block.step(loaded, entry(source.declaration.name), how),))


def _access(view: ArrayView) -> Access:
    return Access(view.owner, view.address, view.nbytes, True)


def _read(view: ArrayView, place: Place) -> Any:
    host = np.zeros(_ORDERS, view.dtype)
    place.target.copy(
        host.ctypes.data, view.address, host.nbytes, CopyDirection.DEVICE_TO_HOST, None, (_access(view),)
    )
    return host


def _agree(first: Any, second: Any, results: Any, is_rounded: bool, may_overflow: bool) -> bool:
    """Return whether two results are the same but for rounding, which the largest result bounds, and overflow."""
    is_structure = results.dtype.names and not _dtypes.is_bfloat16(results.dtype)
    if is_structure or (results.dtype.kind in "biu" and not is_rounded):
        return bool(first == second)
    one, other, *rest = (complex(each) for each in (first, second, *results))
    if not (np.isfinite(one) and np.isfinite(other)):
        return bool(np.isnan(one) and np.isnan(other)) or one == other or may_overflow
    largest = max((abs(each) for each in rest if np.isfinite(each)), default=0.0)
    step = 1 if results.dtype.kind in "iu" else 0
    return abs(one - other) <= max(step, _ROUNDING * largest)


def _broken(source: ReductionSource, rule: _Rule, output: str, first: Any, second: Any) -> str:
    name = source.declaration.name
    one, other = rule.written
    if rule.text == "neutral":
        return (
            f"`{name}`: the identity `{source.identity}` is not neutral for reduce_expr `{source.reduce_expr}`: for "
            f"the first element x0 the output `{output}` is {first}, folded as ({other}) it is {second}. Write an "
            f"identity that changes nothing, or none"
        )
    return (
        f"`{name}`: reduce_expr `{source.reduce_expr}` is not {rule.text}: for the first elements, folded as ({one}), "
        f"the output `{output}` is {first}, as ({other}) it is {second}. Elements are folded in any order: write an "
        f"expression whose result does not depend on it"
    )
