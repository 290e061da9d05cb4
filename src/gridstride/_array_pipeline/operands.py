"""The arguments of a call on their way into a launch, and the outputs that are made for it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gridstride import _dtypes, arrays
from gridstride._arguments.elementwise import Bound, Passed
from gridstride._arguments.parameters import Declaration, ParameterInfo
from gridstride._arguments.place import Place
from gridstride._arguments.scalars import scalar_bytes
from gridstride._arguments.slot import Slot
from gridstride._source.types import DType, Role
from gridstride.arrays.view import ArrayView
from gridstride.targets.base import Access, CType, Parameter

if TYPE_CHECKING:
    from gridstride._arguments.reduction import BoundFold

Ints = tuple[int, ...]


class Operand(NamedTuple):
    """Hold an argument on its way into a launch.

    Attributes
    ----------
    role : Role
    passed : Passed
    view : ArrayView or None
        Of the memory that the kernel gets, which may be a copy's.
    written : bool
    """

    role: Role
    passed: Passed
    view: ArrayView | None
    written: bool


class Made(NamedTuple):
    """Hold an output: the memory of its elements, and the library of which the caller gets an array."""

    array: Any
    view: ArrayView
    library: str

    @property
    def is_of_library(self) -> bool:
        """Whether the memory is the caller's array already."""
        return self.library == arrays.library_of(self.array)

    def handed_over(self) -> Any:
        """Return the caller's array, which may be a copy of the elements."""
        adapter = arrays.adapter_of(self.library)
        if adapter is None or self.is_of_library:
            return self.array
        return adapter.wrap(self.array, self.view.shape, self.view.dtype)


def handed_over(made: Sequence[Made], place: Place, stream: int) -> tuple[Any, ...]:
    """Return the caller's arrays of outputs that were written in a stream; what a library copies is waited for."""
    if not all(each.is_of_library for each in made):
        place.target.synchronize_stream(stream)
    return tuple(each.handed_over() for each in made)


def make_outputs(
    kernel: str,
    views: Sequence[ArrayView | None],
    arguments: Sequence[Any],
    wanted: Iterable[tuple[DType, Ints]],
    place: Place,
    stream: int,
) -> tuple[Made, ...]:
    """Return new arrays of the caller's library, in the order of a stream.

    The library is that of the first array that has one; without arrays, the one that the target's memory belongs to.
    """
    wanted = tuple(wanted)
    if not wanted:
        return ()
    library, like = _library_for_outputs(kernel, views, arguments, place)
    adapter = arrays.adapter_of(library)
    made = []
    for dtype, shape in wanted:
        try:
            assert adapter is not None
            array = adapter.allocate(like, shape, dtype, stream)
        except (AssertionError, TypeError, AttributeError) as error:
            reason = f": {error}" if isinstance(error, TypeError) else ""
            raise TypeError(
                f"`{kernel}`: no output of dtype {dtype} can be made beside an array of {library}{reason}"
            ) from None
        except ValueError as error:
            raise ValueError(
                f"`{kernel}`: no output of dtype {dtype} and shape {shape} can be made: {error}"
            ) from None
        view = arrays.view(array)
        assert view is not None
        made.append(Made(array, view, library))
    return tuple(made)


def make_scratch(
    kernel: str, operands: Sequence[Operand], wanted: Iterable[tuple[DType, Ints]], place: Place, stream: int
) -> tuple[Made, ...]:
    """Return memory that no caller sees, in the order of a stream: beside the first array that another can be made of.

    Where there is none it is of the library that the target's memory belongs to.
    """
    known = [
        (each.view, each.passed.value)
        for each in operands
        if each.view is not None and each.role.kind != "scalar" and arrays.makes_outputs(each.view.library)
    ]
    views, values = [view for view, _ in known], [value for _, value in known]
    return make_outputs(kernel, views, values, wanted, place, stream)


def _library_for_outputs(
    kernel: str, views: Sequence[ArrayView | None], arguments: Sequence[Any], place: Place
) -> tuple[str, Any]:
    known = [(view, argument) for view, argument in zip(views, arguments, strict=True) if view is not None]
    placed = [each for each in known if each[0].device_type != arrays.HOST or each[0].shape != ()] or known
    making = [each for each in placed if arrays.makes_outputs(each[0].library)] or placed
    if making:
        return making[0][0].library, making[0][1]
    for adapter in arrays.allocating_adapters(place.target.device_types):
        return adapter.name, None
    raise TypeError(f"`{kernel}`: no array says of which library the outputs shall be: pass them")


def roles_of(bound: Bound | BoundFold) -> tuple[Role, ...]:
    """Return how each parameter enters the text."""
    roles = [
        _role(passed.parameter, passed.view, value, passed.by_value)
        for passed, value in zip(bound.arguments, bound.dtypes, strict=False)
    ]
    made = zip(bound.declaration.parameters[len(roles) :], bound.dtypes[len(roles) :], strict=True)
    # An output that is made is C-contiguous and has its parameter's dtype.
    return (
        *roles,
        *(
            Role(
                parameter,
                "raw" if parameter.raw else "element",
                dtype,
                dtype,
                len(shape) if parameter.raw else 0,
            )
            for (parameter, dtype), (_, shape) in zip(made, bound.made, strict=True)
        ),
    )


def _role(parameter: ParameterInfo, view: ArrayView | None, value: DType, by_value: bool) -> Role:
    if by_value:
        return Role(parameter, "scalar", value, value)
    assert view is not None
    if parameter.raw:
        return Role(parameter, "raw", view.dtype, value, len(view.shape), view.c_contiguous)
    return Role(parameter, "element", view.dtype, value)


def operands_of(
    declaration: Declaration,
    roles: Sequence[Role],
    arguments: Sequence[Any],
    views: Sequence[ArrayView | None],
    made: Sequence[Made],
) -> tuple[Operand, ...]:
    """Return the operands of a call in the order of the parameters."""
    nin = declaration.nin
    operands = []
    for position, (role, value, view) in enumerate(zip(roles, arguments, views, strict=False)):
        is_output = position >= nin
        passed = Passed(role.parameter, position, value, view, is_output)
        shown = view if view is None or not view.lazy else arrays.resolved(view)
        operands.append(Operand(role, passed, shown, is_output))
    for position, each in enumerate(made, nin):
        passed = Passed(roles[position].parameter, position, each.array, each.view, True)
        operands.append(Operand(roles[position], passed, each.view, True))
    return tuple(operands)


def value_bytes(kernel: str, operand: Operand) -> bytes:
    """Return the bytes of an argument that is passed by value, as its parameter's dtype."""
    dtype, passed = operand.role.value, operand.passed
    parameter = Parameter(
        passed.parameter.name, CType("scalar", passed.parameter.ctype, dtype.itemsize, 0, dtype), 0
    )
    slot = Slot(kernel, passed.position, parameter)
    view = operand.view
    if view is not None and (view.dtype == dtype or dtype.names):
        return ctypes.string_at(view.address, dtype.itemsize)
    if isinstance(passed.value, np.void) and passed.value.dtype == dtype:
        return passed.value.tobytes()
    if dtype.names and not _dtypes.is_bfloat16(dtype):
        raise slot.wrong_type(passed.value, f"Pass a structured scalar or array of dtype {dtype}")
    value = passed.value
    if view is not None:
        value = np.frombuffer(ctypes.string_at(view.address, view.dtype.itemsize), view.dtype)[0]
    return scalar_bytes(slot, parameter.type, value)


def accesses_of(operands: Sequence[Operand]) -> tuple[Access, ...]:
    """Return the memory that a launch touches."""
    found = []
    for operand in operands:
        if operand.view is None or operand.role.kind == "scalar":
            continue
        low, high = operand.view.extent
        found.append(Access(operand.view.owner, low, high - low, operand.written))
    return tuple(found)
