"""What NumPy's functions of elements are in C++, by the dtype of NumPy's loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gridstride import _dtypes

DType = np.dtype[Any]

HEADER = "gridstride/numpy_functions.h"
LARGEST_BFLOAT16 = 2.0**128 - 2.0**120

#: Of operands {0}, {1} in the dtype of the loop.
_FUNCTIONS = {
    "add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}", "divide": "{0} / {1}",
    "floor_divide": "gridstride::numpy::floor_divide({0}, {1})",
    "remainder": "gridstride::numpy::remainder_of({0}, {1})",
    "fmod": "fmod({0}, {1})", "power": "pow({0}, {1})", "float_power": "pow({0}, {1})", "negative": "-{0}",
    "positive": "{0}", "absolute": "gridstride::numpy::magnitude({0})", "fabs": "gridstride::numpy::magnitude({0})",
    "sign": "gridstride::numpy::sign({0})", "square": "{0} * {0}", "reciprocal": "1 / {0}", "sqrt": "sqrt({0})",
    "cbrt": "cbrt({0})", "exp": "exp({0})", "exp2": "exp2({0})", "expm1": "expm1({0})", "log": "log({0})",
    "log2": "log2({0})", "log10": "log10({0})", "log1p": "log1p({0})",
    "logaddexp": "gridstride::numpy::log_of_sum({0}, {1})", "logaddexp2": "gridstride::numpy::log2_of_sum({0}, {1})",
    "sin": "sin({0})", "cos": "cos({0})", "tan": "tan({0})", "arcsin": "asin({0})", "arccos": "acos({0})",
    "arctan": "atan({0})", "arctan2": "atan2({0}, {1})", "sinh": "sinh({0})", "cosh": "cosh({0})",
    "tanh": "tanh({0})", "arcsinh": "asinh({0})", "arccosh": "acosh({0})", "arctanh": "atanh({0})",
    "hypot": "hypot({0}, {1})", "maximum": "gridstride::numpy::maximum({0}, {1})",
    "minimum": "gridstride::numpy::minimum({0}, {1})", "fmax": "gridstride::numpy::larger({0}, {1})",
    "fmin": "gridstride::numpy::smaller({0}, {1})", "floor": "floor({0})", "ceil": "ceil({0})", "trunc": "trunc({0})",
    "rint": "rint({0})", "copysign": "copysign({0}, {1})", "nextafter": "nextafter({0}, {1})",
    "spacing": "gridstride::numpy::spacing({0})", "signbit": "signbit({0})",
    "ldexp": "gridstride::numpy::scaled({0}, {1})", "heaviside": "gridstride::numpy::step_of({0}, {1})",
    "deg2rad": "gridstride::numpy::times({0}, 0.017453292519943295)",
    "rad2deg": "gridstride::numpy::times({0}, 57.29577951308232)",
    "radians": "gridstride::numpy::times({0}, 0.017453292519943295)",
    "degrees": "gridstride::numpy::times({0}, 57.29577951308232)", "equal": "{0} == {1}", "not_equal": "{0} != {1}",
    "less": "{0} < {1}", "less_equal": "{0} <= {1}", "greater": "{0} > {1}", "greater_equal": "{0} >= {1}",
    "logical_and": "({0} != 0) && ({1} != 0)", "logical_or": "({0} != 0) || ({1} != 0)",
    "logical_xor": "({0} != 0) != ({1} != 0)", "logical_not": "{0} == 0", "bitwise_and": "{0} & {1}",
    "bitwise_or": "{0} | {1}", "bitwise_xor": "{0} ^ {1}", "invert": "~{0}",
    "bitwise_count": "gridstride::numpy::count_of_bits({0})", "gcd": "gridstride::numpy::divisor_of({0}, {1})",
    "lcm": "gridstride::numpy::multiple_of({0}, {1})", "left_shift": "gridstride::numpy::shifted_left({0}, {1})",
    "right_shift": "gridstride::numpy::shifted_right({0}, {1})", "isnan": "isnan({0})", "isinf": "isinf({0})",
    "isfinite": "isfinite({0})", "conjugate": "{0}",
}  # fmt: skip
_OF_COMPLEX = {
    "absolute": "abs({0})", "conjugate": "conj({0})", "sign": "gridstride::numpy::direction({0})",
    "reciprocal": "gridstride::numpy::reciprocal({0})", "rint": "gridstride::numpy::each_rounded({0})",
    "power": "gridstride::numpy::complex_power({0}, {1})", "float_power": "gridstride::numpy::complex_power({0}, {1})",
    "exp2": "gridstride::numpy::power_of_two({0})", "expm1": "gridstride::numpy::power_minus_one({0})",
    "log2": "gridstride::numpy::binary_log({0})", "log1p": "gridstride::numpy::log_of_one_plus({0})",
    "maximum": "gridstride::numpy::later({0}, {1})",
    "minimum": "gridstride::numpy::earlier({0}, {1})", "fmax": "gridstride::numpy::later_number({0}, {1})",
    "fmin": "gridstride::numpy::earlier_number({0}, {1})", "less": "gridstride::numpy::comes_before({0}, {1})",
    "greater": "gridstride::numpy::comes_before({1}, {0})",
    "less_equal": "gridstride::numpy::comes_before({0}, {1}) || {0} == {1}",
    "greater_equal": "gridstride::numpy::comes_before({1}, {0}) || {0} == {1}",
}  # fmt: skip
_OF_INTEGERS = {
    "power": "gridstride::numpy::integer_power({0}, {1})", "fmod": "gridstride::numpy::rest_of({0}, {1})",
    "floor": "{0}", "ceil": "{0}", "trunc": "{0}", "rint": "{0}", "isnan": "false", "isinf": "false",
    "isfinite": "true", "reciprocal": "gridstride::numpy::integer_reciprocal({0})",
}  # fmt: skip
_OF_BOOLS = {
    "invert": "!{0}", "add": "{0} || {1}", "multiply": "{0} && {1}", "maximum": "{0} || {1}",
    "minimum": "{0} && {1}", "fmax": "{0} || {1}", "fmin": "{0} && {1}", "absolute": "{0}",
    "isnan": "false", "isinf": "false", "isfinite": "true", "floor": "{0}", "ceil": "{0}", "trunc": "{0}",
    "conjugate": "{0}", "square": "{0}", "positive": "{0}",
}  # fmt: skip
_OF_UNSIGNED = {
    "absolute": "{0}",
    "negative": "0 - {0}",
    "sign": "{0} != 0",
    "bitwise_count": "gridstride::numpy::ones_of({0})",
}
#: For floats of two bytes these are not those of float rounded.
_OF_HALVES = {
    "float16": {
        "nextafter": "gridstride::numpy::neighbor_of<float16>({0}, {1}, {0})",
        "spacing": "gridstride::numpy::step_up_from<float16>({0})",
    },
    "bfloat16": {
        "nextafter": "gridstride::numpy::neighbor_of<bfloat16>({0}, {1}, {1})",
        "spacing": "copysign(gridstride::numpy::step_up_from<bfloat16>(fabsf({0})), {0})",
    },
}


def template(name: str, *dtypes: DType) -> str:
    """Return a function's text for the dtypes of its loop, one that NumPy has."""
    loop = dtypes[0]
    if {each.kind for each in dtypes} == {"i", "u"}:
        return _comparison_of_signs(_FUNCTIONS[name], dtypes)
    tables: list[Mapping[str, str]] = [_OF_HALVES.get(_dtypes.name_of_dtype(loop), {}), _FUNCTIONS]
    if loop.kind == "c":
        tables = [_OF_COMPLEX, _FUNCTIONS]
    if loop.kind in "iu":
        tables = [_OF_INTEGERS, _FUNCTIONS]
    if loop.kind == "u":
        tables = [_OF_UNSIGNED, *tables]
    if loop.kind == "b":
        tables = [_OF_BOOLS, _FUNCTIONS]
    return next(table[name] for table in tables if name in table)


def _comparison_of_signs(text: str, dtypes: Sequence[DType]) -> str:
    """Return a comparison of a signed with an unsigned integer, which NumPy compares as numbers and C++ does not."""
    signed = next(place for place, each in enumerate(dtypes) if each.kind == "i")
    below, above = ["0", "0"], ["{0}", "{1}"]
    below[signed] = "-1"
    above[signed] = f"static_cast<unsigned long long>({{{signed}}})"
    return f"{{{signed}}} < 0 ? {text.format(*below)} : {text.format(*above)}"


def is_known(name: str) -> bool:
    """Return whether there is a text for some dtype."""
    return name in _FUNCTIONS


def is_half(dtype: DType) -> bool:
    """Return whether a dtype is a float of two bytes, which is calculated with in float."""
    return _dtypes.name_of_dtype(dtype) in ("float16", "bfloat16")
