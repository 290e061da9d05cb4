"""Rows of bfloat16 only, which processors take in words of two: any start and length, numbers of elements, NaNs."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import gridstride as gs

BRAIN = np.dtype(ml_dtypes.bfloat16)
LENGTHS = [0, 1, 2, 3, 7, 8, 15, 16, 17, 33, 255, 1001]


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSTRIDE_TARGET", "cpu")


def test_rows_of_any_start_and_length() -> None:
    increase = gs.ElementwiseKernel("T x, T y", "T z", "z = x * y + i", "increase")
    values = (np.random.default_rng(3).standard_normal(2048) * 4).astype(BRAIN)
    for length in LENGTHS:
        for start in (0, 1):
            x, y = values[start : start + length], values[1024 : 1024 + length]
            exact = x.astype("f4") * y.astype("f4") + np.arange(length, dtype="f4")
            np.testing.assert_array_equal(increase(x, y), exact.astype(BRAIN))


@pytest.mark.parametrize("pitch", [0, 1, 2])
def test_what_is_between_rows_stays(pitch: int) -> None:
    keep = gs.ElementwiseKernel("T x", "T y", "if (x > 0) y = x; else y = T(i)", "keep_positive")
    values = np.random.default_rng(4).standard_normal((5, 33)).astype(BRAIN)
    memory = np.full((5, 33 + pitch), -7, BRAIN)
    keep(values, memory[:, :33])
    expected = np.full((5, 33 + pitch), -7, BRAIN)
    numbers = np.arange(values.size).reshape(values.shape).astype(BRAIN)
    expected[:, :33] = np.where(values > 0, values, numbers)
    np.testing.assert_array_equal(memory, expected)


def test_an_array_over_itself() -> None:
    double = gs.ElementwiseKernel("T x", "T y", "y = x + x", "double_in_place")
    values = np.arange(101).astype(BRAIN)
    memory = values.copy()
    double(memory[1:100], memory[1:100])
    expected = values.copy()
    expected[1:100] += values[1:100]
    np.testing.assert_array_equal(memory, expected)


def test_every_pattern_of_bits() -> None:
    patterns = np.arange(2**16, dtype=np.uint16).view(BRAIN)
    add = gs.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add_brains")
    other = np.resize(np.array([0, 1, -0.5, 3e38, 1e-40, np.inf, np.nan]).astype(BRAIN), patterns.shape)
    with np.errstate(all="ignore"):
        expected = (patterns.astype("f4") + other.astype("f4")).astype(BRAIN)
    np.testing.assert_array_equal(add(patterns, other).astype("f4"), expected.astype("f4"))
