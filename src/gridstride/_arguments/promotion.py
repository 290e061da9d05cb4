"""Dtypes of a call: what the placeholders stand for, by NumPy 2's rules of promotion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gridstride import _dtypes
from gridstride._arguments.parameters import ParameterInfo
from gridstride._arguments.scalars import number_kind
from gridstride.errors import with_article

DType = np.dtype[Any]

_WEAK_DTYPES = {bool: np.dtype(np.bool_), int: np.dtype(np.int64), float: np.dtype(np.float64),
                complex: np.dtype(np.complex128)}  # fmt: skip
_KINDS = ("bool", "integer", "floating", "complex")


class Weak(NamedTuple):
    """Stand for the dtype of a Python number, which gives way to that of any array of its kind or above.

    Attributes
    ----------
    type : type
        bool, int, float or complex.
    """

    type: type

    @property
    def kind(self) -> int:
        """Its place among bool, integer, floating, complex."""
        return rank_of(_WEAK_DTYPES[self.type])

    def __str__(self) -> str:
        return f"Python {self.type.__name__}"


Given = DType | Weak | None
_WEAK: dict[type, Weak] = {kind: Weak(kind) for kind in (bool, int, float, complex)}


def rank_of(dtype: DType) -> int:
    """Return the place of a dtype's kind among bool, integer, floating, complex."""
    return _KINDS.index(number_kind(dtype))


def weak_of(value: object) -> Weak | None:
    """Return the weak dtype of a Python number; None for anything else."""
    return _WEAK.get(type(value))


def promote(given: Sequence[DType | Weak]) -> DType:
    """Return the dtype that NumPy 2 gives to the result of an operation on such operands.

    Raises
    ------
    TypeError
        Where they have none in common.
    """
    strong = [dtype for dtype in given if not isinstance(dtype, Weak)]
    weak = [dtype for dtype in given if isinstance(dtype, Weak)]
    common = _common(strong) if strong else None
    if not weak:
        assert common is not None
        return common
    highest = max(weak, key=lambda each: each.kind)
    if common is None:
        return _WEAK_DTYPES[highest.type]
    if common.names and not _dtypes.is_bfloat16(common):
        raise TypeError(f"{common} and {with_article(str(highest))} have no dtype in common")
    if highest.kind <= rank_of(common):
        return common
    if _dtypes.is_bfloat16(common):
        return np.dtype(np.complex64)
    return np.result_type(common, highest.type(0))


def bind_placeholders(
    kernel: str,
    inputs: Sequence[ParameterInfo],
    given: Sequence[Given],
    outputs: Sequence[ParameterInfo] = (),
    out_given: Sequence[Given] = (),
    chosen: DType | None = None,
) -> dict[str, DType]:
    """Return the dtype of each placeholder: of the inputs that have it, else of the outputs that were passed.

    Parameters
    ----------
    kernel : str
        For messages.
    inputs, outputs : sequence of ParameterInfo
    given, out_given : sequence of dtype, Weak or None
        Of the arguments; None for outputs that are to be made.
    chosen : dtype, optional
        What the caller wants the first output to have.

    Raises
    ------
    TypeError
        Where arguments have no dtype in common, or a placeholder stands nowhere but in outputs to be made.
    """
    bound: dict[str, DType] = {}
    if chosen is not None and outputs and outputs[0].is_placeholder:
        bound[outputs[0].ctype] = chosen
    for parameters, dtypes in ((inputs, given), (outputs, out_given)):
        found: dict[str, list[DType | Weak]] = {}
        for parameter, dtype in zip(parameters, dtypes, strict=False):
            if parameter.is_placeholder and dtype is not None:
                found.setdefault(parameter.ctype, []).append(dtype)
        for letter, all_given in found.items():
            if letter not in bound:
                bound[letter] = _promoted(kernel, letter, all_given)
    for parameter in (*inputs, *outputs):
        if parameter.is_placeholder and parameter.ctype not in bound:
            raise TypeError(
                f"`{kernel}`: no argument says what {parameter.ctype} of parameter {parameter.name!r} is: "
                f"pass the output, or give it a dtype's name"
            )
    return bound


def _promoted(kernel: str, letter: str, given: list[DType | Weak]) -> DType:
    try:
        return promote(given)
    except TypeError:
        listing = ", ".join(str(dtype) for dtype in given)
        raise TypeError(
            f"`{kernel}`: the arguments of type {letter} have no dtype in common: {listing}"
        ) from None


def _common(dtypes: Iterable[DType]) -> DType:
    distinct = list(dict.fromkeys(dtypes))
    if len(distinct) == 1:
        return distinct[0]
    if not any(map(_dtypes.is_bfloat16, distinct)):
        return np.result_type(*distinct)
    # NumPy knows it only where ml_dtypes is installed, whose rules these are.
    beyond = [dtype for dtype in distinct if not _dtypes.fits_bfloat16(dtype)]
    return np.result_type(np.float32, *beyond) if beyond else _dtypes.bfloat16()
