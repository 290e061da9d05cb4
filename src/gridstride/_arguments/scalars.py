"""Numbers and small vectors passed by value."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np

from gridstride import _dtypes, arrays
from gridstride._arguments.slot import Slot
from gridstride.arrays.view import HOST
from gridstride.targets.base import CType

#: By the dtype's own text; they refuse finite numbers that would become infinite.
_FORMS = {
    text: struct.Struct(form)
    for text, form in {"<f4": "<f", "<f8": "<d", "<c8": "<2f", "<c16": "<2d"}.items()
}


def scalar_bytes(slot: Slot, ctype: CType, value: Any) -> bytes:
    """Return a number's bytes as the C++ type holds it.

    Integers are range-checked; floats go to floating and complex types only; a finite number that
    would become infinite is refused.

    Raises
    ------
    TypeError, OverflowError
    """
    assert ctype.dtype is not None
    if isinstance(value, np.generic) and value.dtype == ctype.dtype:
        return value.tobytes()
    number = python_number(value)
    if number is None:
        raise slot.wrong_type(value, f"Pass a number that `{ctype.name}` can hold")
    kind = number_kind(ctype.dtype)
    if kind == "complex":
        return _floating_bytes(slot, ctype.dtype, complex(number))
    if isinstance(number, complex):
        raise slot.wrong_type(value, "A complex number does not fit; pass its .real or .imag")
    if kind == "floating":
        return _floating_bytes(slot, ctype.dtype, _as_float(slot, number))
    if isinstance(number, float):
        raise slot.wrong_type(value, f"An integer type takes no float; pass int({number!r}) if that is meant")
    return _integer_bytes(slot, ctype.dtype, number)


def vector_bytes(slot: Slot, ctype: CType, value: Any) -> bytes:
    """Return the bytes of a built-in vector from its components: a sequence, an array, or a complex number."""
    assert ctype.dtype is not None
    components = _components(ctype, value)
    if components is None or len(components) != ctype.components:
        raise slot.wrong_type(value, f"Pass {ctype.components} numbers, for example a tuple")
    component = CType("scalar", ctype.dtype.name, ctype.dtype.itemsize, ctype.dtype.itemsize, ctype.dtype)
    packed = b"".join(scalar_bytes(slot, component, number) for number in components)
    return packed.ljust(ctype.size, b"\0")


def python_number(value: Any) -> int | float | complex | None:
    """Return the Python number of a Python, NumPy or ctypes scalar or a 0-d host array; None for the rest.

    An address is no number.
    """
    if isinstance(value, int | float | complex):
        return value
    if isinstance(value, ctypes._SimpleCData):
        if isinstance(value, ctypes.c_void_p):
            return None
        value = value.value
        return value if isinstance(value, int | float) else None
    if not isinstance(value, np.generic):
        view = arrays.view(value)
        if view is None or view.shape != () or view.device_type != HOST:
            return None
        value = np.asarray(value) if view.library == "numpy" else value
    number = value.item() if hasattr(value, "item") else None
    if isinstance(number, int | float | complex):
        return number
    try:
        return float(value)  # float16-like scalars of ml_dtypes hand out themselves
    except (TypeError, ValueError):
        return None


def number_kind(dtype: np.dtype[Any]) -> str:
    """Return "bool", "integer", "floating" or "complex"."""
    return {"b": "bool", "i": "integer", "u": "integer", "f": "floating", "c": "complex"}.get(
        dtype.kind, "floating"
    )


def _as_float(slot: Slot, number: int | float) -> float:
    try:
        return float(number)
    except OverflowError:
        raise slot.out_of_range(number, "beyond the largest float64") from None


def _floating_bytes(slot: Slot, dtype: np.dtype[Any], number: float | complex) -> bytes:
    if _dtypes.is_bfloat16(dtype):
        return _bfloat16_bytes(slot, float(number.real))
    form = _FORMS.get(dtype.str)
    if form is None:
        return _rounded_by_numpy(slot, dtype, number)
    try:
        return form.pack(number) if dtype.kind == "f" else form.pack(number.real, number.imag)
    except OverflowError:
        raise slot.out_of_range(number, f"beyond the largest {dtype.name}") from None


def _rounded_by_numpy(slot: Slot, dtype: np.dtype[Any], number: float | complex) -> bytes:
    with np.errstate(over="ignore"):
        stored = np.array(number).astype(dtype)
    if np.isfinite(number) and not np.isfinite(stored):
        raise slot.out_of_range(number, f"beyond the largest {dtype.name}")
    return stored.tobytes()


def _bfloat16_bytes(slot: Slot, number: float) -> bytes:
    """Round to the upper half of a float32, ties to even: ml_dtypes may not be installed."""
    with np.errstate(over="ignore"):
        bits = int(np.float32(number).view(np.uint32))
    if number != number:
        return b"\xc0\x7f"
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    if np.isfinite(number) and rounded & 0x7F80 == 0x7F80:
        raise slot.out_of_range(number, "beyond the largest bfloat16")
    return rounded.to_bytes(2, "little")


def _integer_bytes(slot: Slot, dtype: np.dtype[Any], number: int) -> bytes:
    bits = 1 if dtype.kind == "b" else 8 * dtype.itemsize
    low, high = (-1 << bits - 1, (1 << bits - 1) - 1) if dtype.kind == "i" else (0, (1 << bits) - 1)
    if not low <= number <= high:
        raise slot.out_of_range(number, f"it holds {low} to {high}")
    return int(number).to_bytes(dtype.itemsize, "little", signed=low < 0)


def _components(ctype: CType, value: Any) -> list[Any] | None:
    if isinstance(value, complex | np.complexfloating):
        return [value.real, value.imag]
    if isinstance(value, np.void) and value.dtype.names:
        return [value[name] for name in value.dtype.names]
    if isinstance(value, tuple | list):
        return list(value)
    view = arrays.view(value)
    if view is None or view.device_type != HOST:
        return None
    array = np.asarray(value)
    if array.dtype.names and array.size == 1:
        return _components(ctype, array.reshape(())[()])
    return list(array) if array.ndim == 1 else None
