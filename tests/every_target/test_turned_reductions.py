"""Reductions of several operands, of which some lie along one axis and some along another."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from tests.array_values import values
from tests.crosses import in_soak

DOT = gs.ReductionKernel("T x, T y", "T z", "x * y", "a + b", "z = a", "0", "turned_dot")
MEAN = gs.ReductionKernel("T x, T y", "T z", "x - y", "a + b", "z = a / _fold_size", "0", "turned_mean")
NUMBERED = gs.ReductionKernel("T x, T y", "T z", "x * y * (i % 7)", "a + b", "z = a", "0", "turned_numbers")
PLACED = gs.ReductionKernel("T x, T y", "T z", "x * y * (_J % 5)", "a + b", "z = a", "0", "turned_places")
FARTHEST = gs.ReductionKernel("T x, T y", "T z", "x - y", "a > b ? a : b", name="turned_farthest")
SHAPES: list[tuple[tuple[int, ...], tuple[Any, ...]]] = [
    ((130, 70), (None, 0, 1)),
    ((1, 80), (None,)),
    ((701, 1300), (None, 0, 1)),
    ((3, 90, 700), (None, (1, 2), 1, 2, 0)),
    ((65, 90, 70), (None, (1, 2), (0, 2))),
]


@pytest.mark.parametrize("dtype", ["int8", "complex64", *in_soak("float32", "float64")])
def test_operands_along_different_axes(xp: ModuleType, dtype: str) -> None:
    for shape, axes in SHAPES:
        x, y = values(shape, dtype, 1), values(shape, dtype, 2)
        for axis in axes:
            for one, other in (
                (np.asfortranarray(x), y),
                (x, np.asfortranarray(y)),
                (x[..., ::-1], np.asfortranarray(y)),
            ):
                found = gs.asnumpy(DOT(xp.asarray(one), xp.asarray(other), axis=axis))
                wanted = (one.astype(complex) * other).sum(axis)
                if dtype == "int8":
                    wanted = (one.astype(int) * other).sum(axis).astype("int8")
                np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-2, err_msg=str((shape, axis)))


def test_what_is_asked_of_a_fold(xp: ModuleType) -> None:
    for shape, axes in SHAPES:
        x, y = values(shape, "float64", 1), np.asfortranarray(values(shape, "float64", 2))
        for axis in axes:
            both = xp.asarray(x), xp.asarray(y)
            np.testing.assert_allclose(gs.asnumpy(MEAN(*both, axis=axis)), (x - y).mean(axis), atol=1e-12)
            np.testing.assert_array_equal(gs.asnumpy(FARTHEST(*both, axis=axis)), (x - y).max(axis))
            numbers = np.arange(x.size).reshape(shape) % 7
            np.testing.assert_allclose(gs.asnumpy(NUMBERED(*both, axis=axis)), (x * y * numbers).sum(axis))
            if axis is None:
                places = np.arange(x.size).reshape(shape) % 5
                np.testing.assert_allclose(gs.asnumpy(PLACED(*both)), (x * y * places).sum())


def test_a_row_that_is_the_same_for_all(xp: ModuleType) -> None:
    for dtype in ("int8", "float16", "float32"):
        for width in (5, 9, 33, 40, 100, 300):
            x, y = values((777, width), dtype, 1), values((1, width), dtype, 2)
            found = gs.asnumpy(DOT(xp.asarray(x), xp.asarray(y), axis=1))
            wanted = (x.astype("f8") * y).sum(1)
            if dtype == "int8":
                np.testing.assert_array_equal(found, wanted.astype(int).astype("int8"))
            else:
                np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=1)
