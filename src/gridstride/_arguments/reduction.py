"""Bind the arguments of reductions: arity, dtypes, axes and outputs. Pure: no memory is touched."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gridstride import _dtypes
from gridstride._arguments.axes import Ints, broadcast_shapes, elements
from gridstride._arguments.elementwise import (
    Passed,
    can_cast,
    check_inputs,
    check_output_layout,
    check_outputs,
    pair,
    spelled_dtype,
    value_dtypes,
)
from gridstride._arguments.parameters import Declaration
from gridstride._arguments.promotion import DType, bind_placeholders
from gridstride.arrays.view import ArrayView


class BoundFold(NamedTuple):
    """Say what a call of a reduction means.

    Attributes
    ----------
    declaration : Declaration
    arguments : tuple of Passed
        One for each parameter that was passed, inputs first.
    dtypes : tuple of dtype
        In which the expressions see each parameter.
    types : mapping of str to dtype
        What each placeholder stands for.
    shape : tuple of int
        To which the inputs broadcast.
    axes : tuple of int
        The folded ones, in ascending order.
    result : tuple of int
        The shape of the outputs.
    made : tuple of (dtype, shape)
        The outputs that are to be made.
    """

    declaration: Declaration
    arguments: tuple[Passed, ...]
    dtypes: tuple[DType, ...]
    types: Mapping[str, DType]
    shape: Ints
    axes: Ints
    result: Ints
    made: tuple[tuple[DType, Ints], ...]

    @property
    def fold_size(self) -> int:
        """Number of elements that are folded into each result."""
        return elements([self.shape[axis] for axis in self.axes])


def bind_reduction(
    declaration: Declaration,
    arguments: Sequence[Any],
    views: Sequence[ArrayView | None],
    axis: Any,
    keepdims: bool,
    dtype: Any,
    has_identity: bool,
) -> BoundFold:
    """Return what a call of a reduction means.

    Parameters
    ----------
    declaration : Declaration
    arguments : sequence
        Inputs, or inputs and outputs.
    views : sequence of ArrayView or None
        One for each argument that is an array.
    axis : int, tuple of int or None
    keepdims : bool
    dtype : dtype or None
        Of the first output, where it is a placeholder's.
    has_identity : bool
        Whether no elements have a result.

    Raises
    ------
    TypeError, ValueError
        It names kernel and parameter.
    """
    name = declaration.name
    passed = pair(declaration, arguments, views)
    inputs, outputs = passed[: declaration.nin], passed[declaration.nin :]
    chosen = None if dtype is None else _checked_dtype(declaration, dtype)
    types = bind_placeholders(
        name,
        declaration.inputs,
        [each.given for each in inputs],
        declaration.outputs,
        [each.given for each in outputs],
        chosen,
    )
    dtypes = value_dtypes(declaration, passed, types)
    if chosen is None:
        check_inputs(name, inputs, dtypes)
    else:
        _check_chosen(name, inputs, dtypes)
    check_outputs(name, outputs, dtypes[declaration.nin :])
    shape = _shape_of_inputs(name, inputs)
    folded = normalized_axes(name, axis, len(shape))
    result = tuple(
        1 if k in folded else length for k, length in enumerate(shape) if keepdims or k not in folded
    )
    for each in outputs:
        check_output_layout(name, each, result)
    made: tuple[tuple[DType, Ints], ...] = ()
    if not outputs:
        made = tuple((each, result) for each in dtypes[declaration.nin :])
    bound = BoundFold(declaration, passed, dtypes, types, shape, folded, result, made)
    if not has_identity and bound.fold_size == 0 and elements(result):
        raise ValueError(
            f"`{name}`: zero-size array to a reduction that has no identity (shape {shape}, axis {axis})"
        )
    return bound


def _shape_of_inputs(kernel: str, inputs: Sequence[Passed]) -> Ints:
    """Return the shape to which inputs broadcast; ValueError where none says one."""
    walked = [
        each for each in inputs if each.view is not None and not each.parameter.raw and not each.by_value
    ]
    if not walked:
        if any(each.parameter.raw for each in inputs):
            raise ValueError(
                f"`{kernel}`: loop size undecided: no input array but raw ones; pass one that is not"
            )
        return ()
    return broadcast_shapes(kernel, [(each.parameter.name, each.view.shape) for each in walked if each.view])


def plain_axes(kernel: str, axis: Any) -> Ints | None:
    """Return the axes that an argument names; None for all. TypeError for what names none."""
    if axis is None:
        return None
    try:
        return (_index(axis),)
    except TypeError:
        try:
            return tuple(map(_index, axis))
        except TypeError:
            raise TypeError(
                f"`{kernel}`: axis must be an int, a tuple of ints or None, got {axis!r}"
            ) from None


def plain_flag(kernel: str, keepdims: Any) -> bool:
    """Return whether reduced axes are kept. TypeError for what is neither a bool nor an int."""
    if isinstance(keepdims, np.bool_):
        return bool(keepdims)
    try:
        return bool(operator.index(keepdims))
    except TypeError:
        raise TypeError(f"`{kernel}`: keepdims must be True or False, got {keepdims!r}") from None


def normalized_axes(kernel: str, axis: Any, ndim: int) -> Ints:
    """Return the axes that an argument means, in ascending order.

    Raises
    ------
    numpy.exceptions.AxisError
        A ValueError, for an axis that does not exist.
    ValueError
        For one that is named twice.
    """
    given = plain_axes(kernel, axis)
    if given is None:
        return tuple(range(ndim))
    found = []
    for each in given:
        if not -ndim <= each < ndim:
            raise np.exceptions.AxisError(
                f"`{kernel}`: axis {each} is out of bounds for arrays of {ndim} dimensions"
            )
        found.append(each % ndim)
    if len(set(found)) < len(found):
        raise ValueError(f"`{kernel}`: duplicate axis in {axis!r}")
    return tuple(sorted(found))


def _index(axis: Any) -> int:
    """Return the number of an axis; TypeError for what is none, and for booleans, as in NumPy."""
    if isinstance(axis, bool | np.bool_):
        raise TypeError
    return operator.index(axis)


def _checked_dtype(declaration: Declaration, dtype: Any) -> DType:
    try:
        wanted = _dtypes.dtype_of(dtype)
    except TypeError as error:
        raise TypeError(f"`{declaration.name}`: dtype={dtype!r} is none: {error}") from None
    first = declaration.outputs[0]
    if not first.is_placeholder and first.dtype != wanted:
        raise TypeError(
            f"`{declaration.name}`: dtype={wanted} cannot be chosen: output {first.name!r} is always {first.ctype}"
        )
    return wanted


def _check_chosen(kernel: str, inputs: Sequence[Passed], dtypes: Sequence[DType]) -> None:
    for each, dtype in zip(inputs, dtypes, strict=False):
        if each.view is not None and not each.by_value and not can_cast(each.view.dtype, dtype, "same_kind"):
            name = spelled_dtype(dtype)
            raise each.wrong(
                kernel, name, f"dtype= makes it {name}, which loses more than precision: cast it first"
            )
