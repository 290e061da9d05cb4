"""What a call came to: its results, and what the compiled fast path needs to replay such calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gridstride import _dtypes, _native, arrays, config
from gridstride._arguments.elementwise import Bound, operand_strides
from gridstride._arguments.place import Place
from gridstride._array_pipeline.launching import Launched, PreparedCall, Step
from gridstride._array_pipeline.operands import Operand
from gridstride._launch.native_entry import dtype_code, is_settled, native_routine
from gridstride.targets import registry

if TYPE_CHECKING:
    from gridstride._arguments.reduction import BoundFold

_ADDRESS = -1
_WORD = 16


class FinishedCall(NamedTuple):
    """Hold a call that was made.

    Attributes
    ----------
    outputs : tuple of array
    form : int
        What the call returns: `NOTHING`, `ONE` or `TUPLE` of `_native`.
    bound : Bound or BoundFold
    place : Place
    stream : int
        Its raw handle.
    operands : tuple of Operand
    prepared : PreparedCall or None
        None: such calls are not replayed.
    launched : Launched or None
        None: there was nothing to launch.
    """

    outputs: tuple[Any, ...]
    form: int
    bound: Bound | BoundFold
    place: Place
    stream: int
    operands: tuple[Operand, ...] = ()
    prepared: PreparedCall | None = None
    launched: Launched | None = None

    @property
    def result(self) -> Any:
        """What the caller gets."""
        if self.form == _native.ONE:
            return self.outputs[0]
        return None if self.form == _native.NOTHING else self.outputs

    @property
    def workspace(self) -> int:
        """Address of the workspace; 0 where there is none."""
        return 0 if self.launched is None else self.launched.workspace

    def replayed_form(self) -> tuple[Any, ...]:
        """Return what the compiled fast path must come to for the same call."""
        launches: tuple[Any, ...] = ()
        if self.prepared is not None and self.launched is not None:
            launches = tuple(
                (how.grid, how.block, how.shared_mem, int(how.cooperative), packed)
                for (_, _, how, *_), packed in zip(self.prepared.steps, self.launched.packed, strict=True)
            )
        return self.place.target, self.stream, launches

    def native_record(self) -> _native.ArrayCall | None:
        """Return what the compiled fast path needs to replay such calls, or None where it cannot."""
        seen = [operand.view for operand in self.operands if operand.view is not None]
        if config.debug():
            return None  # every call is checked
        if self.prepared is None or not self.prepared.is_final:
            return None
        if not seen or not is_settled(self.place, seen[0].device_type):
            return None
        steps = [_step(step, self.operands) for step in self.prepared.steps]
        makings = self._makings()
        if None in steps or makings is None or len(steps) > _native.MOST_STEPS:
            return None
        declaration = self.bound.declaration
        return _native.ArrayCall(
            self.place.target,
            partial(registry.serving, seen[0].device_type),
            config.native_mode() == "verify",
            declaration.nin,
            self.form,
            declaration.nout,
            tuple(step for step in steps if step is not None),
            makings,
            tuple(_pairs(self.operands[: len(self.operands) - len(self.bound.made)], self.bound)),
        )

    def _makings(self) -> tuple[_native.Making, ...] | None:
        """Return how outputs and workspace are made; None where that takes more than a call of the library."""
        assert self.prepared is not None
        wanted = list(self.bound.made)
        starts = [_start(operand) for operand in self.operands[len(self.operands) - len(wanted) :]]
        if self.prepared.workspace:
            wanted.append((np.dtype(np.uint8), (self.prepared.workspace,)))
            starts.append(self.workspace % _WORD)
        if not wanted:
            return ()
        like = next(operand.view for operand in self.operands if operand.view is not None)
        adapter = arrays.adapter_of(like.library)
        if adapter is None or len(wanted) > _native.MOST_MADE:
            return None
        found = [adapter.allocation(like.owner, shape, dtype) for dtype, shape in wanted]
        return tuple(
            _native.Making(each, start) for each, start in zip(found, starts, strict=True) if each is not None
        ) if None not in found else None  # fmt: skip


def _start(operand: Operand) -> int:
    assert operand.view is not None
    return operand.view.address % _WORD


def _step(step: Step, operands: Sequence[Operand]) -> _native.ArrayStep | None:
    """Return a launch as the compiled fast path makes it; None for one that it cannot fill in."""
    routine = native_routine(step.function)
    how = step.configuration
    numbers = [(at, position, _number(operands[position])) for at, position in step.numbers]
    if (
        routine is None
        or len(step.packed) > _native.MOST_BYTES
        or any(dtype is None for *_, dtype in numbers)
    ):
        return None
    addresses = [(at, position, _ADDRESS) for at, position in step.addresses]
    workspace = [(at, len(operands), _ADDRESS) for at in step.workspace]
    patches = [*addresses, *workspace, *((at, k, dtype) for at, k, dtype in numbers if dtype is not None)]
    return _native.ArrayStep(
        *routine,
        step.function,
        how.grid,
        how.block,
        how.shared_mem,
        int(how.cooperative),
        step.packed,
        tuple(patches),
    )


def _number(operand: Operand) -> int | None:
    """Return the number of the dtype of an argument passed by value; None for structures and arrays."""
    dtype = operand.role.value
    if operand.view is not None or (dtype.names and not _dtypes.is_bfloat16(dtype)):
        return None
    return dtype_code(dtype) if _dtypes.name_of_dtype(dtype) in _native.DTYPES else None


def _pairs(operands: Sequence[Operand], bound: Bound | BoundFold) -> Iterator[_native.Pair]:
    """Yield which of the arguments must not share memory; an input of an elementwise call may be an output."""
    found = [k for k, each in enumerate(operands) if each.role.kind != "scalar" and each.view is not None]
    for k in found:
        for other in found:
            both_walked = operands[k].role.kind == operands[other].role.kind == "element"
            if operands[k].written and (not operands[other].written or (other < k and both_walked)):
                yield _pair(k, other, operands, bound, both_walked)


def _pair(
    k: int, other: int, operands: Sequence[Operand], bound: Bound | BoundFold, both_walked: bool
) -> _native.Pair:
    first, second = operands[k].view, operands[other].view
    assert first is not None
    assert second is not None
    may_be_same = (
        isinstance(bound, Bound)
        and both_walked
        and not operands[other].written
        and first.dtype.itemsize == second.dtype.itemsize
        and operand_strides(first, bound.shape) == operand_strides(second, bound.shape)
    )
    low, high = first.extent
    other_low, other_high = second.extent
    return _native.Pair(
        k, low - first.address, high - first.address,
        other, other_low - second.address, other_high - second.address, may_be_same,
    )  # fmt: skip
