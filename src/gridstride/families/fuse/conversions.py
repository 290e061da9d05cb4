"""How numbers become those of a dtype before a kernel is passed them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gridstride._arguments.promotion import DType

#: Below which float32 holds any float.
_SURE = 1e38

Convert = Callable[[Any, DType], Any]


def fitting(value: Any, dtype: DType) -> Any:
    """Return a number in a dtype; OverflowError where a Python integer does not fit."""
    kind = type(value)
    if (kind is float and (dtype.char == "d" or -_SURE < value < _SURE) and dtype.char in "df") or (
        kind is int and 0 <= value < 128 and dtype.kind in "iuf"
    ):
        return dtype.type(value)
    with np.errstate(all="ignore"):
        if issubclass(kind, np.generic):
            return value.astype(dtype)
        return np.asarray(value, dtype)[()]


def chosen(value: Any, dtype: DType) -> Any:
    """Return a number in a dtype as NumPy's `where` takes it."""
    if isinstance(value, int) and dtype.kind in "iu":
        return np.where(True, value, np.zeros((), dtype))[()]
    return fitting(value, dtype)


def clamped(value: Any, dtype: DType) -> Any:
    """Return an integer moved into the range of a dtype."""
    limits = np.iinfo(dtype)
    return dtype.type(min(max(value, limits.min), limits.max))


@dataclass(frozen=True)
class Limit:
    """Convert a limit of integers of a dtype: one that none of them is beyond becomes their own."""

    of: DType
    is_lower: bool

    def __call__(self, value: Any, dtype: DType) -> Any:
        limits = np.iinfo(self.of)
        return fitting(max(value, limits.min) if self.is_lower else min(value, limits.max), dtype)


def cast(value: Any, dtype: DType) -> Any:
    """Return a number in a dtype as arrays are converted; OverflowError where a Python integer does not fit."""
    if isinstance(value, int):
        return fitting(value, dtype)
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype)[()]


@dataclass(frozen=True)
class SideOf:
    """Return -1, 0 or 1 for an integer below, in or above the range of a dtype."""

    of: DType

    def __call__(self, value: Any, dtype: DType) -> Any:
        limits = np.iinfo(self.of)
        return np.int8((value > limits.max) - (value < limits.min))


def exponent(value: Any, dtype: DType) -> Any:
    """Return the exponent of an integer in a dtype; NumPy's error where it is negative."""
    if value < 0 and dtype.kind == "i":
        raise ValueError("Integers to negative integer powers are not allowed.")
    return fitting(value, dtype)
