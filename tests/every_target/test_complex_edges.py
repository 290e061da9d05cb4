"""Functions of complex numbers at the edges of their ranges: values, signs of zeros, infinities and NaN are NumPy's."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from tests.array_values import Array

#: By their names in CUDA C++.
NAMES = {
    "exp": "exp", "log": "log", "log10": "log10", "sqrt": "sqrt", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
    "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh",
    "acosh": "arccosh", "atanh": "arctanh",
}  # fmt: skip
PARTS = [0, 1e-20, 1e-5, 0.5, 1, np.pi / 2, 3, 11.9, 19.9, 25, 50, 1e10, np.inf, np.nan]
#: About where exponentials leave the range.
BORDERS = {
    "complex64": [80.1, 85, 88.5, 89, 100, 160, 193],
    "complex128": [699, 709.5, 710, 720, 1410, 1454, 1e5],
}
ULPS = 64


def parts(dtype: str) -> Array:
    limits = np.finfo(dtype)
    root = float(np.sqrt(limits.max))
    extremes = [float(limits.smallest_subnormal), float(limits.tiny), root, 4 * root, float(limits.max) / 4]
    positive = [*PARTS, *BORDERS[dtype], *extremes, float(limits.max)]
    return np.array([*positive, *(-each for each in positive)], limits.dtype)


def numbers(dtype: str) -> Array:
    """Return all pairs of parts."""
    both = parts(dtype)
    found = np.empty((both.size, both.size), dtype)
    found.real, found.imag = both[:, None], both
    return found.ravel()


def same_part(got: Array, expected: Array, is_sign_open: Array) -> Array:
    limits = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        near = abs(got - expected) <= ULPS * limits.eps * np.maximum(abs(expected), limits.tiny)
        equal = (got == expected) | (near & np.isfinite(got) & np.isfinite(expected))
        opposite = is_sign_open & (got == -expected)
    same_sign = np.signbit(got) == np.signbit(expected)
    return (np.isnan(got) & np.isnan(expected)) | (equal & (same_sign | is_sign_open)) | opposite


def compare(name: str, z: Array, got: Any, expected: Array) -> None:
    """Compare both parts; signs are open where a part is NaN, and after an imaginary part without a phase."""
    got = gs.asnumpy(got)
    assert got.dtype == expected.dtype
    no_phase = np.isnan(z) | (~np.isfinite(z.imag) & (expected == 0))
    good = same_part(got.real, expected.real, np.isnan(expected.imag) | no_phase)
    good &= same_part(got.imag, expected.imag, np.isnan(expected.real) | no_phase)
    bad = np.flatnonzero(~good)[:5]
    assert not bad.size, f"{name} of {z[bad]} is {got[bad]}, in NumPy {expected[bad]}"


@pytest.mark.parametrize("dtype", BORDERS)
def test_functions(xp: ModuleType, dtype: str) -> None:
    z = numbers(dtype)
    kernel = gs.ElementwiseKernel(
        f"{dtype} z",
        ", ".join(f"{dtype} of_{name}" for name in NAMES),
        "; ".join(f"of_{name} = {name}(z)" for name in NAMES),
        "complex_functions",
    )
    for (name, of_numpy), got in zip(NAMES.items(), kernel(xp.asarray(z)), strict=True):
        with np.errstate(all="ignore"):
            compare(name, z, got, getattr(np, of_numpy)(z))


@pytest.mark.parametrize("dtype", BORDERS)
def test_division(xp: ModuleType, dtype: str) -> None:
    z = numbers(dtype)
    w = np.random.default_rng(0).permutation(z)
    got = gs.asnumpy(
        gs.ElementwiseKernel("T z, T w", "T q", "q = z / w", "quotient")(xp.asarray(z), xp.asarray(w))
    )
    with np.errstate(all="ignore"):
        expected = z / w
        atol = 8 * np.finfo(dtype).eps * abs(expected)  # a part may be what is left of a difference
        apart = [
            abs(part - wanted) for part, wanted in ((got.real, expected.real), (got.imag, expected.imag))
        ]
    for part, wanted, distance in zip(
        (got.real, got.imag), (expected.real, expected.imag), apart, strict=True
    ):
        good = (
            (part == wanted) | (np.isnan(part) & np.isnan(wanted)) | (np.isfinite(part) & (distance <= atol))
        )
        bad = np.flatnonzero(~good)[:5]
        assert not bad.size, f"{z[bad]} / {w[bad]} is {got[bad]}, in NumPy {expected[bad]}"


def exponential_minus_one(z: Array) -> Array:
    """Return NumPy's; the exponential where NumPy's overflows before the result does, and of a real NaN."""
    return np.where(np.isinf(np.exp(z.real)) | (z.imag == 0) & np.isnan(z), np.exp(z), np.expm1(z))


def log_of_one_plus(z: Array) -> Array:
    """Return what NumPy's should be: near 0 it loses digits, and far from it the radius overflows."""
    x, y = z.real.astype(np.longdouble), z.imag.astype(np.longdouble)
    beyond_one = x * (2 + x) + y * y
    expected = np.log(1 + z)
    near = abs(beyond_one) < 0.5
    expected.real[near] = (np.log1p(beyond_one[near]) / 2).astype(expected.real.dtype)
    return expected


@pytest.mark.parametrize("dtype", BORDERS)
def test_functions_of_numpy_alone(xp: ModuleType, dtype: str) -> None:
    z = numbers(dtype)
    fused = gs.fuse(
        lambda z: (
            np.exp2(z),
            np.log2(z),
            np.expm1(z),
            np.log1p(z),
            np.reciprocal(z),
            np.sign(z),
            abs(z),
            np.sinh(z),
        ),
        kernel_name="of_numpy",
    )
    with np.errstate(all="ignore"):
        length = np.hypot(z.real, z.imag)
        signs = np.where(np.isinf(length) & np.isfinite(z), np.sign(z / 4), np.sign(z))
        expected = {
            "exp2": np.exp2(z), "log2": np.log2(z), "expm1": exponential_minus_one(z), "log1p": log_of_one_plus(z),
            "reciprocal": np.reciprocal(z), "sign": signs, "abs": abs(z), "sinh": np.sinh(z),
        }  # fmt: skip
    for (name, wanted), got in zip(expected.items(), fused(xp.asarray(z)), strict=True):
        if wanted.dtype.kind == "c":
            compare(name, z, got, wanted)
        else:  # the largest number may be rounded up
            fits = np.isinf(wanted) | ~(wanted > 0.99 * np.finfo(dtype).max)
            np.testing.assert_allclose(gs.asnumpy(got)[fits], wanted[fits], rtol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", BORDERS)
def test_order_and_powers(xp: ModuleType, dtype: str) -> None:
    z = numbers(dtype)
    w = np.random.default_rng(1).permutation(z)
    fused = gs.fuse(
        lambda z, w: (z < w, z >= w, np.fmin(z, w), np.fmax(z, w), np.minimum(z, w), np.maximum(z, w)),
        kernel_name="in_order",
    )
    with np.errstate(all="ignore"):
        expected = (z < w, z >= w, np.fmin(z, w), np.fmax(z, w), np.minimum(z, w), np.maximum(z, w))
    for got, wanted in zip(fused(xp.asarray(z), xp.asarray(w)), expected, strict=True):
        np.testing.assert_array_equal(gs.asnumpy(got), wanted)

    units = np.array([0, 1, -1, 1j, -1j, 1 + 1j, 0.5 - 2j], dtype)
    exponents = np.array([0, 1, 2, 3, 4, 7, -1, -3, 0.5, 1j, 2 - 1j, -1 + 1j], dtype)[:, None]
    powers = gs.asnumpy(
        gs.fuse(lambda z, w: z**w, kernel_name="powers")(xp.asarray(units), xp.asarray(exponents))
    )
    with np.errstate(all="ignore"):
        expected_powers = units**exponents
    rtol = ULPS * np.finfo(dtype).eps
    np.testing.assert_allclose(powers.real, expected_powers.real, rtol, rtol)
    np.testing.assert_allclose(powers.imag, expected_powers.imag, rtol, rtol)
    whole = (exponents.real == np.trunc(exponents.real)) & (exponents.imag == 0) & (abs(exponents) > 0)
    is_exact = whole & (units.real * units.imag == 0) & (units != 0)
    np.testing.assert_array_equal(powers[is_exact], expected_powers[is_exact])
