"""Bind the arguments of elementwise kernels: arity, dtypes, shapes and outputs. Pure: no memory is touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gridstride import _dtypes
from gridstride._arguments.axes import (
    Ints,
    broadcast_shapes,
    broadcast_strides,
    strides_of,
)
from gridstride._arguments.parameters import Declaration, ParameterInfo, vector_of
from gridstride._arguments.promotion import DType, Given, bind_placeholders, weak_of
from gridstride._arguments.sharing import may_overlap_itself
from gridstride._arguments.slot import Slot
from gridstride.arrays.view import HOST, ArrayView
from gridstride.errors import ArgumentTypeError
from gridstride.targets.base import CType, Parameter


class Passed(NamedTuple):
    """Hold one argument: what was passed for a parameter, or None for an output that is to be made.

    Attributes
    ----------
    parameter : ParameterInfo
    position : int
    value : object
    view : ArrayView or None
        Of an array; None for a number.
    is_output : bool
    """

    parameter: ParameterInfo
    position: int
    value: Any
    view: ArrayView | None
    is_output: bool

    @property
    def by_value(self) -> bool:
        """Whether a number or one structure is passed: a host array without axes is one."""
        return self.view is None or (
            self.view.device_type == HOST
            and self.view.shape == ()
            and not self.parameter.raw
            and not self.is_output
        )

    @property
    def given(self) -> Given:
        """The dtype that takes part in promotion."""
        if self.view is not None:
            return self.view.dtype
        return weak_of(self.value) or np.asarray(self.value).dtype

    def wrong(self, kernel: str, expected: str, advice: str) -> ArgumentTypeError:
        """Return the TypeError for an argument of the wrong kind or dtype."""
        parameter = Parameter(self.parameter.name, CType("scalar", expected, 0, 0), 0)
        return Slot(kernel, self.position, parameter).wrong_type(self.value, advice)


class Bound(NamedTuple):
    """Say what a call means.

    Attributes
    ----------
    declaration : Declaration
    arguments : tuple of Passed
        One for each parameter that was passed, inputs first.
    dtypes : tuple of dtype
        In which the body sees each parameter.
    types : mapping of str to dtype
        What each placeholder stands for.
    shape : tuple of int
        Of the loop.
    made : tuple of (dtype, shape)
        The outputs that are to be made.
    """

    declaration: Declaration
    arguments: tuple[Passed, ...]
    dtypes: tuple[DType, ...]
    types: Mapping[str, DType]
    shape: Ints
    made: tuple[tuple[DType, Ints], ...]


def pair(
    declaration: Declaration, arguments: Sequence[Any], views: Sequence[ArrayView | None]
) -> tuple[Passed, ...]:
    """Give each argument its parameter.

    Raises
    ------
    TypeError
        For a wrong count, or something that is neither an array nor a number.
    """
    if len(arguments) not in (declaration.nin, declaration.nargs):
        inputs = ", ".join(f"{p.ctype} {p.name}" for p in declaration.inputs)
        outputs = ", ".join(f"{p.ctype} {p.name}" for p in declaration.outputs)
        raise ArgumentTypeError(
            f"`{declaration.name}` takes {_counted(declaration.nin, 'input')} ({inputs}), or these and "
            f"{_counted(declaration.nout, 'output')} ({outputs}); got {_counted(len(arguments), 'argument')}",
            kernel=declaration.name,
            expected=f"{declaration.nin} or {declaration.nargs}",
            got=str(len(arguments)),
        )
    passed = tuple(
        Passed(parameter, position, value, view, position >= declaration.nin)
        for position, (parameter, value, view) in enumerate(
            zip(declaration.parameters, arguments, views, strict=False)
        )
    )
    for each in passed:
        if each.view is None and (each.is_output or each.parameter.raw or not _is_number(each.value)):
            wanted = "an array" if each.is_output or each.parameter.raw else "an array or a number"
            raise each.wrong(declaration.name, each.parameter.ctype, f"Pass {wanted}")
    return passed


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def bind_elementwise(
    declaration: Declaration, arguments: Sequence[Any], views: Sequence[ArrayView | None], size: int | None
) -> Bound:
    """Return what a call of an elementwise kernel means.

    Parameters
    ----------
    declaration : Declaration
    arguments : sequence
        Inputs, or inputs and outputs.
    views : sequence of ArrayView or None
        One for each argument that is an array.
    size : int, optional
        Of the loop, where no array says it.

    Raises
    ------
    TypeError, ValueError
        It names kernel and parameter.
    """
    passed = pair(declaration, arguments, views)
    inputs, outputs = passed[: declaration.nin], passed[declaration.nin :]
    types = bind_placeholders(
        declaration.name,
        declaration.inputs,
        [each.given for each in inputs],
        declaration.outputs,
        [each.given for each in outputs],
    )
    dtypes = value_dtypes(declaration, passed, types)
    check_inputs(declaration.name, inputs, dtypes)
    check_outputs(declaration.name, outputs, dtypes[declaration.nin :])
    shape = _loop_shape(declaration, passed, size)
    for each in outputs:
        check_output_layout(declaration.name, each, shape)
    made: tuple[tuple[DType, Ints], ...] = ()
    if len(passed) < declaration.nargs:
        _check_made(declaration, size)
        made = tuple((dtype, shape) for dtype in dtypes[declaration.nin :])
    return Bound(declaration, passed, dtypes, types, shape, made)


def value_dtypes(
    declaration: Declaration, passed: Sequence[Passed], types: Mapping[str, DType]
) -> tuple[DType, ...]:
    """Return the dtype in which the body sees each parameter."""
    dtypes = []
    for position, parameter in enumerate(declaration.parameters):
        if parameter.is_placeholder:
            dtypes.append(_known(declaration.name, parameter, types[parameter.ctype]))
        elif parameter.dtype is not None:
            dtypes.append(parameter.dtype)
        elif position < len(passed):
            given = passed[position].given
            if not isinstance(given, np.dtype):
                raise passed[position].wrong(
                    declaration.name,
                    parameter.ctype,
                    "Pass an array or NumPy scalar: a type of a preamble does not say what a Python number becomes",
                )
            _check_vector(declaration.name, passed[position], given)
            dtypes.append(given)
        else:
            origin = "a vector" if vector_of(parameter.ctype) else "which a preamble declares"
            raise TypeError(
                f"`{declaration.name}`: output {parameter.name!r} of the type {parameter.ctype!r}, {origin}, cannot "
                f"be made, since arrays have no such dtype: pass it"
            )
    return tuple(dtypes)


def _check_vector(kernel: str, passed: Passed, given: DType) -> None:
    """Raise TypeError for elements that are no vectors of the type that a parameter has, where that is CUDA's."""
    vector = vector_of(passed.parameter.ctype)
    if vector is None:
        return
    component, count = vector
    found: Mapping[str, Any] = given.fields or {}
    fields = [found[name][0] for name in given.names or ()]
    is_complex = count == 2 and given.kind == "c" and given.itemsize == 2 * component.itemsize
    if fields != [component] * count and not (is_complex and component.kind == "f"):
        names = ", ".join("xyzw"[:count])
        raise passed.wrong(
            kernel,
            passed.parameter.ctype,
            f"Pass an array of structures whose fields {names} are {component.name}: x.view(dtype)",
        )


def _known(kernel: str, parameter: ParameterInfo, dtype: DType) -> DType:
    """Return the dtype of a placeholder; TypeError where it has no C++ counterpart."""
    known = ", ".join(_dtypes.SCALAR_NAMES)
    reason = ""
    for each in _dtypes.scalars_of(dtype):
        if _dtypes.name_of_dtype(each) not in _dtypes.SCALAR_NAMES:
            reason = f"{each} has no CUDA C++ counterpart. Pass one of {known}, or a structure of them"
    if not dtype.isnative:
        reason = "its bytes are swapped. Pass a dtype of the native order: dtype.newbyteorder('=')"
    elif _dtypes.has_shared_bytes(dtype):
        reason = "its fields share bytes. Declare the structure in a preamble, or pass fields that lie apart"
    if reason:
        raise ArgumentTypeError(
            f"`{kernel}`: parameter `{parameter.name}` (`{parameter.ctype}`) is to be of dtype {dtype}, but {reason}",
            kernel=kernel,
            parameter=parameter.name,
            expected=known,
            got=str(dtype),
        )
    return dtype


def check_inputs(kernel: str, inputs: Sequence[Passed], dtypes: Sequence[DType]) -> None:
    """Raise TypeError for arrays that cannot be read as their parameter's dtype."""
    for each, dtype in zip(inputs, dtypes, strict=False):
        if each.view is None or (each.by_value and not _is_structure(dtype)):
            continue
        casts = "no" if each.parameter.raw or _is_structure(dtype) else "safe"
        if not can_cast(each.view.dtype, dtype, casts):
            name = spelled_dtype(dtype)
            raise each.wrong(
                kernel,
                name,
                f"Pass {name} (`x.astype({name if _is_structure(dtype) else repr(name)})`), "
                f"or declare the parameter as `T x`",
            )


def check_outputs(kernel: str, outputs: Sequence[Passed], dtypes: Sequence[DType]) -> None:
    """Raise TypeError for outputs that cannot take their parameter's dtype or cannot be written."""
    for each, dtype in zip(outputs, dtypes, strict=False):
        assert each.view is not None
        casts = "no" if each.parameter.raw or _is_structure(dtype) else "same_kind"
        if not can_cast(dtype, each.view.dtype, casts):
            name = spelled_dtype(dtype)
            raise each.wrong(
                kernel, name, f"The result is {name}, which it cannot hold: pass an array of {name}"
            )
        if each.view.read_only:
            raise each.wrong(
                kernel, each.parameter.ctype, "It is read-only: pass an array that can be written"
            )
        if each.view.lazy:
            raise each.wrong(
                kernel,
                each.parameter.ctype,
                "It is a conjugate or negative view: pass resolve_conj().resolve_neg()",
            )


def check_output_layout(kernel: str, output: Passed, shape: Ints) -> None:
    """Raise ValueError for an output of another shape than the result's, or whose elements share memory."""
    view = output.view
    assert view is not None
    if output.parameter.raw:
        return
    if view.shape != shape:
        raise ValueError(
            f"`{kernel}`: non-broadcastable output: {output.parameter.name!r} has the shape {view.shape}, "
            f"the result {shape}: pass an array of that shape"
        )
    if view.strides is not None and may_overlap_itself(view.shape, view.strides, view.dtype.itemsize):
        raise ValueError(
            f"`{kernel}`: elements of output {output.parameter.name!r} share memory (strides {view.strides}): "
            f"pass an array whose elements lie apart"
        )


def operand_strides(view: ArrayView, shape: Ints) -> Ints:
    """Return an array's strides along the axes of the loop."""
    return broadcast_strides(view.shape, strides_of(view), shape)


def _loop_shape(declaration: Declaration, passed: Sequence[Passed], size: int | None) -> Ints:
    walked = [
        each for each in passed if each.view is not None and not each.parameter.raw and not each.by_value
    ]
    outputs = [each for each in walked if each.is_output]
    if size is not None:
        if walked:
            names = ", ".join(repr(each.parameter.name) for each in walked)
            raise ValueError(
                f"`{declaration.name}`: size is for calls whose arrays are all raw; {names} decide it"
            )
        return (_checked_size(declaration.name, size),)
    if not walked and (any(each.parameter.raw for each in passed) or all(p.raw for p in declaration.outputs)):
        raise ValueError(f"`{declaration.name}`: loop size undecided: no array but raw ones; pass size=")
    inputs = [(each.parameter.name, each.view.shape) for each in walked if not each.is_output and each.view]
    shape = broadcast_shapes(declaration.name, inputs) if inputs else ()
    if not inputs and outputs:
        assert outputs[0].view is not None
        return outputs[0].view.shape
    if outputs:  # inputs may broadcast to outputs, never the other way round
        first = outputs[0]
        assert first.view is not None
        if first.view.shape != shape:
            whole = broadcast_shapes(declaration.name, [*inputs, (first.parameter.name, first.view.shape)])
            shape = whole if whole == first.view.shape else shape
    return shape


def _check_made(declaration: Declaration, size: int | None) -> None:
    raw = [parameter.name for parameter in declaration.outputs if parameter.raw]
    if raw and size is None:
        raise ValueError(
            f"`{declaration.name}`: output {raw[0]!r} is raw, so nothing says its shape: pass it"
        )


def _checked_size(kernel: str, size: Any) -> int:
    if isinstance(size, bool) or not isinstance(size, int | np.integer):
        raise TypeError(f"`{kernel}`: size must be an int, got {size!r}")
    if size < 0:
        raise ValueError(f"`{kernel}`: size must not be negative, got {size}")
    if size >= 2**63:
        raise ValueError(f"`{kernel}`: size must be below 2**63, got {size}")
    return int(size)


def _is_number(value: Any) -> bool:
    """Return whether a value is a number, or one structure."""
    if isinstance(value, np.generic):
        return (
            value.dtype.kind in "biufc" or value.dtype.names is not None or _dtypes.is_bfloat16(value.dtype)
        )
    return isinstance(value, bool | int | float | complex)


def spelled_dtype(dtype: DType) -> str:
    """Return the name of a dtype as messages spell it."""
    return str(dtype) if _is_structure(dtype) else _dtypes.name_of_dtype(dtype)


def _is_structure(dtype: DType) -> bool:
    return dtype.names is not None and not _dtypes.is_bfloat16(dtype)


def can_cast(given: DType, wanted: DType, casts: Any) -> bool:
    """Return whether NumPy allows a cast, bfloat16 taken for a small float32."""
    if given == wanted:
        return True
    if _dtypes.is_bfloat16(given) or _dtypes.is_bfloat16(wanted):
        if _dtypes.is_bfloat16(given) and _dtypes.is_bfloat16(wanted):
            return True
        wide = np.dtype(np.float32)
        if casts == "no":
            return False
        if _dtypes.is_bfloat16(given):
            return np.can_cast(wide, wanted, casts)
        return _dtypes.fits_bfloat16(given) or (casts == "same_kind" and np.can_cast(given, wide, casts))
    return np.can_cast(given, wanted, casts)
