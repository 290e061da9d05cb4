"""What the cases of single calls do not show: products and sums that must not be fused, norms of extreme numbers."""

from __future__ import annotations

import numpy as np
import pytest
from device_support import evaluate


def operands(dtype: str) -> list[np.ndarray]:
    scale = 12 if dtype == "float32" else 40
    random = np.random.default_rng(11)
    return [
        (random.normal(size=150) * 10.0 ** random.integers(-scale // 2, scale // 2, 150)).astype(dtype)
        for _ in range(3)
    ]


def test_norms_neither_overflow_nor_vanish(xp):
    x = np.array([3e300, 3e-300, np.inf, np.nan, 0.0])
    y = np.array([4e300, 4e-300, np.nan, 1.0, 0.0])
    got = evaluate(
        xp,
        {"norm": "norm3d(a, b, 0.0)", "rnorm": "rnorm3d(a, b, 0.0)", "hypot": "hypot(a, b)"},
        "float64",
        x,
        y,
    )
    np.testing.assert_allclose(got["norm"], [5e300, 5e-300, np.inf, np.nan, 0], rtol=1e-15)
    np.testing.assert_allclose(got["rnorm"], [2e-301, 2e299, 0, np.nan, np.inf], rtol=1e-15)
    np.testing.assert_allclose(got["hypot"], got["norm"], rtol=1e-15)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_cast_to_an_integer_and_back_has_no_negative_zero(xp, dtype):
    x = np.array([-0.5, -0.0, 0.25, -1.5], dtype)
    types = ("int", "long long", "unsigned", "short", "signed char")
    ctype = "float" if dtype == "float32" else "double"
    calls = {f"to{k}": f"1 / ({ctype})({type_})a" for k, type_ in enumerate(types)}
    got = evaluate(xp, calls, dtype, x)
    for k, type_ in enumerate(types):
        last = np.inf if type_ == "unsigned" else -1
        np.testing.assert_array_equal(got[f"to{k}"], np.array([np.inf, np.inf, np.inf, last], dtype), type_)


def test_products_and_sums_to_nearest_are_never_fused(xp):
    x, y, z = operands("float32")
    calls = {
        "mul": "__fmul_rn(a, b) + c", "add": "__fadd_rn(a * b, c)", "sub": "__fsub_rn(a * b, c)",
        "dmul": "(float)(__dmul_rn(a, b) + c)", "zero": "1.0f / __fmul_rn(a * 0.0f, fabsf(b))",
    }  # fmt: skip
    got = evaluate(xp, calls, "float32", x, y, z)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(got["mul"], x * y + z)
        np.testing.assert_array_equal(got["add"], x * y + z)
        np.testing.assert_array_equal(got["sub"], x * y - z)
        np.testing.assert_array_equal(got["zero"], np.copysign(np.float32(np.inf), x))
        np.testing.assert_array_equal(got["dmul"], (x.astype(float) * y + z).astype(np.float32))


def test_powers_of_whole_exponents(xp):
    x = np.array([0.5, -2.0, 3.0, 1.0, -0.0, np.inf])
    got = evaluate(xp, {"cube": "pow(a, 3)", "inverse": "pow(a, -2)"}, "float64", x)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(got["cube"], x**3)
        np.testing.assert_array_equal(got["inverse"], x**-2.0)
