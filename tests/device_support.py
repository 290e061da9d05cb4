"""Evaluate C++ expressions element by element on a target."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

import gridstride as gs

CTYPES = {
    "int8": "signed char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short", "int32": "int",
    "uint32": "unsigned", "int64": "long long", "uint64": "unsigned long long", "float32": "float",
    "float64": "double", "bool": "bool",
}  # fmt: skip


def evaluate(
    xp: ModuleType, expressions: dict[str, str], result: str, *inputs: np.ndarray, preamble: str = "",
    options: tuple[str, ...] = (),
) -> dict[str, np.ndarray]:  # fmt: skip
    """Return the values of each expression of `a`, `b`, `c`, the elements of the inputs, as dtype `result`."""
    names = [f"expression_{index}" for index in range(len(expressions))]
    code = "\n".join(
        [
            preamble,
            *(_kernel(*item, result, inputs) for item in zip(names, expressions.values(), strict=True)),
        ]
    )
    module = gs.RawModule(code=code, options=options)
    arrays = [xp.asarray(array) for array in inputs]
    size = inputs[0].size
    results = {}
    for name, key in zip(names, expressions, strict=True):
        out = xp.zeros(size, result)
        module.get_function(name)(((size + 255) // 256,), (256,), (*arrays, out, np.int32(size)))
        results[key] = gs.asnumpy(out)
    return results


def distance_in_ulp(got: np.ndarray, expected: np.ndarray) -> np.ndarray[Any, Any]:
    """Return how many units in the last place of the expected values apart two arrays are.

    Values that are both NaN, or equal, are no distance apart; a finite and an infinite one are infinitely far apart.
    """
    expected = np.asarray(expected, np.longdouble)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        rounded = expected.astype(got.dtype)
        unit = np.spacing(np.abs(rounded))
        distance = np.abs(got.astype(np.longdouble) - expected) / unit
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return np.where(same, 0.0, np.where(np.isfinite(distance), distance, np.inf)).astype(float)


def _kernel(name: str, expression: str, result: str, inputs: tuple[np.ndarray, ...]) -> str:
    letters = "abc"[: len(inputs)]
    types = [CTYPES[array.dtype.name] for array in inputs]
    parameters = "".join(f"const {ctype}* {letter}s, " for letter, ctype in zip(letters, types, strict=True))
    values = " ".join(
        f"{ctype} {letter} = {letter}s[i];" for letter, ctype in zip(letters, types, strict=True)
    )
    return f"""
extern "C" __global__ void {name}({parameters}{CTYPES[result]}* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    {values}
    out[i] = {expression};
}}"""
