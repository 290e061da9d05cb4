"""Arithmetic and conversions with a stated rounding, against fractions rounded once by integer arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from device_cases.case import Case
from device_cases.inputs import F32, F32_2, F32_3, F64, F64_2, F64_3, S32, S64, U32, U64, Array

DIRECTIONS = ("rn", "rz", "ru", "rd")
Exact = Callable[..., Fraction]
_FORMATS = {
    "float16": (11, -14, 15),
    "bfloat16": (8, -126, 127),
    "float32": (24, -126, 127),
    "float64": (53, -1022, 1023),
}

mp = mpmath.MPContext()
mp.dps = 80


def rounded(exact: Fraction, direction: str, dtype: str) -> float:
    """Round a fraction that is not zero to a floating-point type."""
    precision, lowest, highest = _FORMATS[dtype]
    sign, magnitude = (-1.0, -exact) if exact < 0 else (1.0, exact)
    exponent = max(_exponent(magnitude), lowest)
    places = magnitude / Fraction(2) ** (exponent - precision + 1)
    whole, is_cut = places.numerator // places.denominator, places.denominator != 1
    outward = direction == ("ru" if sign > 0 else "rd")
    if direction == "rn":
        rest = places - whole
        outward = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    whole += is_cut and outward
    value = Fraction(whole) * Fraction(2) ** (exponent - precision + 1)
    largest = (2 - Fraction(2) ** (1 - precision)) * Fraction(2) ** highest
    if value > largest:
        to_infinity = direction == "rn" or direction == ("ru" if sign > 0 else "rd")
        return sign * (math.inf if to_infinity else float(largest))
    return math.copysign(float(value), sign)


def _exponent(magnitude: Fraction) -> int:
    estimate = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return estimate if Fraction(2) ** estimate <= magnitude else estimate - 1


def _root(x: Fraction) -> Fraction:
    square = Fraction(math.isqrt(x.numerator), math.isqrt(x.denominator))
    return square if square * square == x else _fraction(mp.sqrt(mp.mpf(x.numerator) / x.denominator))


def _fraction(value: Any) -> Fraction:
    sign, mantissa, exponent, _ = value._mpf_
    return Fraction(-1 if sign else 1) * int(mantissa) * Fraction(2) ** int(exponent)


#: Operation: its exact form, the same on doubles for zeros, infinities and NaNs.
_OPERATIONS: dict[str, tuple[Exact, Callable[..., Any]]] = {
    "add": (lambda x, y: x + y, lambda x, y: x + y), "sub": (lambda x, y: x - y, lambda x, y: x - y),
    "mul": (lambda x, y: x * y, lambda x, y: x * y), "div": (lambda x, y: x / y, lambda x, y: x / y),
    "rcp": (lambda x: 1 / x, lambda x: 1 / x), "sqrt": (_root, np.sqrt), "rsqrt": (lambda x: _root(1 / x),
        lambda x: 1 / np.sqrt(x)),
    "fma": (lambda x, y, z: x * y + z, lambda x, y, z: x * y + z),
}  # fmt: skip


def _reference(operation: str, direction: str, dtype: str) -> Callable[..., Array]:
    exact, plain = _OPERATIONS[operation]

    def of(*row: float) -> float:
        wide = [np.float64(value) for value in row]
        if all(math.isfinite(value) for value in row) and not _is_plain(operation, row):
            value = exact(*map(Fraction, row))
            if value != 0:
                return rounded(value, direction, dtype)
            cancelled = operation in ("add", "sub", "fma") and not _same_zeros(operation, row)
            if cancelled:
                return -0.0 if direction == "rd" else 0.0
        return float(plain(*wide))

    def reference(*arrays: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.array(
                [of(*row) for row in zip(*(array.astype(float).tolist() for array in arrays), strict=True)]
            )

    return reference


def _is_plain(operation: str, row: tuple[float, ...]) -> bool:
    """Return whether IEEE arithmetic has a rule of its own for these operands."""
    if operation in ("sqrt", "rsqrt"):
        return row[0] <= 0
    return operation in ("div", "rcp") and row[-1] == 0


def _same_zeros(operation: str, row: tuple[float, ...]) -> bool:
    """Return whether a sum is one of two zeros of the same sign, which it then keeps."""
    if operation == "fma":
        product = math.copysign(1, row[0]) * math.copysign(1, row[1])
        return row[2] == 0 and 0 in row[:2] and product == math.copysign(1, row[2])
    second = row[1] if operation == "add" else -row[1]
    return row[0] == 0 and row[1] == 0 and math.copysign(1, row[0]) == math.copysign(1, second)


def _arithmetic() -> list[Case]:
    cases = []
    for letter, dtype, arrays in (
        ("f", "float32", (F32, F32_2, F32_3)),
        ("d", "float64", (F64, F64_2, F64_3)),
    ):
        for operation, (_, plain) in _OPERATIONS.items():
            inputs = arrays[plain.__code__.co_argcount - 1 if hasattr(plain, "__code__") else 0]
            inputs = inputs if isinstance(inputs, tuple) else (inputs,)
            stems = (
                [f"__{letter}{operation}"]
                if operation != "fma"
                else ["__fmaf", "__fmaf_ieee"]
                if letter == "f"
                else ["__fma"]
            )
            directions = ("rn",) if operation == "rsqrt" else DIRECTIONS
            if operation == "rsqrt" and letter == "d":
                continue
            for stem in stems:
                for direction in directions:
                    name = f"{stem}_{direction}"
                    call = f"{name}({', '.join('abc'[: len(inputs)])})"
                    cases.append(Case(name, call, dtype, inputs, _reference(operation, direction, dtype)))
    return cases


ROUNDING = _arithmetic()

# ---- conversions ----

_WHOLE = {"rn": np.rint, "rz": np.trunc, "ru": np.ceil, "rd": np.floor}
_INTEGERS = {"int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64"}


def _to_integer(direction: str, dtype: str, source: str) -> Callable[[Array], Array]:
    """Saturate; a NaN becomes zero between 32-bit types, else the top bit alone."""
    info = np.iinfo(dtype)
    of_nan = (
        0 if source == "float32" and info.bits == 32 else 2 ** (info.bits - 1) if info.min == 0 else info.min
    )

    def of(x: float) -> int:
        if math.isnan(x):
            return of_nan
        if math.isinf(x):
            return int(info.max if x > 0 else info.min)
        return min(max(int(_WHOLE[direction](x)), info.min), info.max)

    return lambda x: np.array([of(value) for value in x.astype(float).tolist()], dtype)


def _from_integer(direction: str, dtype: str) -> Callable[[Array], Array]:
    return lambda x: np.array(
        [rounded(Fraction(v), direction, dtype) if v else 0.0 for v in x.tolist()], dtype
    )


def _narrowed(direction: str) -> Callable[[Array], Array]:
    def of(x: float) -> float:
        return rounded(Fraction(x), direction, "float32") if x and math.isfinite(x) else x

    return lambda x: np.array([of(value) for value in x.tolist()], np.float32)


def _conversions() -> list[Case]:
    cases = []
    for direction in DIRECTIONS:
        for word, source, array in (("float", "float32", F32), ("double", "float64", F64)):
            for name, dtype in _INTEGERS.items():
                stem = f"__{word}2{name}_{direction}"
                cases.append(Case(stem, f"{stem}(a)", dtype, (array,), _to_integer(direction, dtype, source)))
        for name, array in (("int", S32[0]), ("uint", U32[0]), ("ll", S64[0]), ("ull", U64[0])):
            stem = f"__{name}2float_{direction}"
            cases.append(Case(stem, f"{stem}(a)", "float32", (array,), _from_integer(direction, "float32")))
            if direction == "rn" or name in ("ll", "ull"):
                stem = f"__{name}2double_{direction}"
                cases.append(
                    Case(stem, f"{stem}(a)", "float64", (array,), _from_integer(direction, "float64"))
                )
        stem = f"__double2float_{direction}"
        cases.append(Case(stem, f"{stem}(a)", "float32", (F64,), _narrowed(direction)))
    return cases


CASTS = [
    *_conversions(),
    Case("__float_as_int", "__float_as_int(a)", "int32", (F32,), lambda x: x.view(np.int32)),
    Case("__float_as_uint", "__float_as_uint(a)", "uint32", (F32,), lambda x: x.view(np.uint32)),
    Case("__int_as_float", "__float_as_int(__int_as_float(a))", "int32", S32[:1], lambda x: x),
    Case("__uint_as_float", "__float_as_uint(__uint_as_float(a))", "uint32", U32[:1], lambda x: x),
    Case("__double_as_longlong", "__double_as_longlong(a)", "int64", (F64,), lambda x: x.view(np.int64)),
    Case("__longlong_as_double", "__double_as_longlong(__longlong_as_double(a))", "int64", S64[:1], lambda x: x),
    Case("__double2hiint", "__double2hiint(a)", "int32", (F64,), lambda x: (x.view(np.int64) >> 32).astype(np.int32)),
    Case("__double2loint", "__double2loint(a)", "int32", (F64,), lambda x: x.view(np.int64).astype(np.int32)),
    Case("__hiloint2double", "__double_as_longlong(__hiloint2double(a, b))", "int64", S32[:2],
         lambda high, low: high.astype(np.int64) << 32 | low.view(np.uint32).astype(np.int64)),
]  # fmt: skip
