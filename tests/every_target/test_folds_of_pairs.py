"""Folds of each row of one array with each row of another: the same calls on every target, compared with NumPy."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import gridstride as gs
from tests.array_values import Array, values

SQUARES = gs.ReductionKernel(
    "T x, T y", "float64 z", "(x - y) * (x - y)", "a + b", "z = a", "0", "squares_of_pairs"
)
OWN_SQUARES = gs.ReductionKernel(
    "T x, T y", "T z", "(x - y) * (x - y)", "a + b", "z = a", "0", "own_squares_of_pairs"
)
LARGEST = gs.ReductionKernel(
    "T x, U y", "T z", "x < T(y) ? T(y) - x : x - T(y)", "a > b ? a : b", "z = a", None, "largest_of_pairs"
)
WEIGHTED = gs.ReductionKernel(
    "T x, T y, T w", "T z", "w * (x - y) + T(i % 3) + T(_J % 2)", "a + b", "z += a", "0", "weighted_pairs"
)
FARTHEST = gs.ReductionKernel(
    "T x, T y", "int64 k, T v", "Place{x - y, _J}", "a.v > b.v || (a.v == b.v && a.j < b.j) ? a : b",
    "k = a.j; v = a.v", None, "farthest_of_pairs", reduce_type="Place", preamble="struct Place { T v; long long j; };",
)  # fmt: skip


def rows(count: int, length: int, dtype: str, seed: int) -> Array:
    return values((count, length), dtype, seed) % (7 if dtype == "int8" else 20)


@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
@pytest.mark.parametrize("shape", [(150, 170, 11), (33, 300, 70), (300, 129, 9), (20, 520, 30)], ids=str)
def test_folds_of_pairs(xp: ModuleType, dtype: str, shape: tuple[int, int, int]) -> None:
    n, m, k = shape
    x, y = rows(n, k, dtype, 1), rows(m, k, dtype, 2)
    wide = x[:, None].astype("float64"), y[None].astype("float64")
    for given, other in (
        (xp.asarray(x), xp.asarray(y)),
        (xp.asarray(x.T.copy()).T, xp.asarray(y)[::-1][::-1]),
    ):
        result = gs.asnumpy(SQUARES(given[:, None], other[None], axis=2))
        expected = ((wide[0] - wide[1]) ** 2).sum(2)
        np.testing.assert_array_equal(result, expected)
    result = gs.asnumpy(LARGEST(xp.asarray(x)[:, None], xp.asarray(y)[None], axis=2))
    np.testing.assert_array_equal(result, np.abs(wide[0] - wide[1]).max(2).astype(dtype))


def test_outputs_and_numbers_and_weights(xp: ModuleType) -> None:
    n, m, k = 60, 145, 35
    x, y, w = (values((length, k), "int32", seed) % 20 for seed, length in ((1, n), (2, m), (3, 1)))
    numbers, places = np.arange(n * m * k).reshape(n, m, k) % 3, np.arange(k) % 2
    expected = (w[0] * (x[:, None] - y[None]) + numbers + places).sum(2)
    room = xp.zeros((n + 2, m + 3), "int32") + 5
    WEIGHTED(xp.asarray(x)[:, None], xp.asarray(y)[None], xp.asarray(w)[None], room[1:-1, 1:-2], axis=2)
    around = np.full((n + 2, m + 3), 5, "int32")
    around[1:-1, 1:-2] += expected
    np.testing.assert_array_equal(gs.asnumpy(room), around)


def test_several_planes_of_pairs(xp: ModuleType) -> None:
    x, y = values((3, 70, 1, 19), "float32", 1) % 20, values((3, 1, 90, 19), "float32", 2) % 20
    result = gs.asnumpy(SQUARES(xp.asarray(x), xp.asarray(y), axis=3))
    np.testing.assert_array_equal(result, ((x - y) ** 2).sum(3))


def test_long_rows_of_pairs_of_two_bytes(xp: ModuleType) -> None:
    x, y = rows(64, 2, "int8", 1), rows(20_000, 2, "int8", 2)
    result = gs.asnumpy(SQUARES(xp.asarray(x)[:, None], xp.asarray(y)[None], axis=2))
    np.testing.assert_array_equal(result, ((x[:, None].astype("float64") - y[None]) ** 2).sum(2))


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        ("int8", (72, 2101, 3)),
        ("float32", (140, 1031, 8)),
        ("float16", (90, 2050, 2)),
        ("int8", (4000, 3, 3)),
    ],
    ids=str,
)
def test_few_elements_of_pairs(xp: ModuleType, dtype: str, shape: tuple[int, int, int]) -> None:
    n, m, k = shape
    x, y = rows(n, k, dtype, 1), rows(m, k, dtype, 2)
    expected = ((x[:, None].astype("float64") - y[None]) ** 2).sum(2).astype(dtype)
    own, other = xp.asarray(x)[:, None], xp.asarray(y)[None]
    for to in (xp.zeros((n, m), dtype), xp.zeros((n + 1, m + 2), dtype)[1:, 1:-1], xp.zeros((m, n), dtype).T):
        OWN_SQUARES(own, other, to, axis=2)
        np.testing.assert_array_equal(gs.asnumpy(to), expected)


def test_places_in_pairs_of_short_rows(xp: ModuleType) -> None:
    # Rows of few results, of which one output's begin between words of the other, and longer ones.
    for rows, columns in ((9001, 30), (70, 291)):
        x, y = values((rows, 1, 5), "int16", 1) % 20, values((1, columns, 5), "int16", 2) % 20
        places, largest = FARTHEST(xp.asarray(x), xp.asarray(y), axis=2)
        np.testing.assert_array_equal(gs.asnumpy(places), (x - y).argmax(2))
        np.testing.assert_array_equal(gs.asnumpy(largest), (x - y).max(2))


def test_short_rows_of_all_pairs_and_of_some(xp: ModuleType) -> None:
    shapes = (2, 40, 1, 3), (2, 1, 93, 3), (2, 40, 93, 3)
    x, y, w = (values(shape, "int32", seed) % 20 for seed, shape in enumerate(shapes))
    numbers, places = np.arange(w.size).reshape(w.shape) % 3, np.arange(3) % 2
    room = xp.zeros((2, 41, 95), "int32")
    WEIGHTED(*map(xp.asarray, (x, y, w)), room[:, 1:, 1:-1], axis=3)
    expected = np.zeros((2, 41, 95), "int32")
    expected[:, 1:, 1:-1] = (w * (x - y) + numbers + places).sum(3)
    np.testing.assert_array_equal(gs.asnumpy(room), expected)
