"""Numbers as C++ spells them, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from gridstride._arguments.parameters import value_ctype
from gridstride._arguments.promotion import DType


def definition(name: str, value: Any, dtype: DType) -> str:
    """Return the definition of a constant, a NumPy scalar of a dtype."""
    return f"const {value_ctype(dtype)} {name} = {literal(value, dtype)};"


def literal(value: Any, dtype: DType) -> str:
    """Return a NumPy scalar of a dtype as text."""
    ctype = value_ctype(dtype)
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind in "iu":
        return f"static_cast<{ctype}>({int(value) % 2**64}ull)"
    if dtype.kind == "c":
        return f"{ctype}({_floating(value.real)}, {_floating(value.imag)})"
    return _floating(value) if dtype.itemsize > 2 else f"{ctype}({_floating(np.float32(value))})"


def _floating(value: Any) -> str:
    """Return a float by its bits, which are those of a NaN or an infinity too."""
    kind, bits = ("float", "u") if value.dtype.itemsize == 4 else ("double", "ull")
    return f"__builtin_bit_cast({kind}, 0x{int(value.view(f'u{value.dtype.itemsize}')):x}{bits})"
