"""Folds of the CPU target in parts that a second launch joins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride.targets.cpu import writers
from tests.crosses import in_turns, pairs_in_soak

SHAPES, OTHERS = [(100_000,), (5_003, 40), (9, 8, 7, 600)], [(40, 5_003), (17, 300, 70)]
_FIRST = """
struct candidate { T value; long long place; };
__device__ inline candidate earlier(candidate a, candidate b) {
    return a.value > b.value || (a.value == b.value && a.place < b.place) ? a : b;
}"""

_EXTENT = """
struct extent { T low, high; };
__device__ inline extent wider(extent a, extent b) {
    return extent{a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}"""


def small_numbers(shape: tuple[int, ...], dtype: str) -> Any:
    """Return integers below 9 of a dtype."""
    named = pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype
    return np.random.default_rng(2).integers(0, 9, shape).astype(named)


@pytest.fixture(autouse=True)
def joined(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Cut folds of few elements too; return how many parts they are cut into."""
    monkeypatch.setattr(writers, "_SHARED", 64)
    found: list[int] = []
    cut = writers._cut

    def noted(*arguments: Any) -> tuple[int, int]:
        part, parts = cut(*arguments)
        found.append(parts)
        return part, parts

    monkeypatch.setattr(writers, "_cut", noted)
    return found


@pytest.mark.parametrize(
    ("shape", "dtype"),
    in_turns([*SHAPES, (40, 5_003)], ["int8", "float64"])
    + pairs_in_soak([(17, 300, 70)], ["int8", "float64"]),
)
def test_sums(shape: tuple[int, ...], dtype: str, joined: list[int]) -> None:
    total = gs.ReductionKernel("T x", "double y", "x", "a + b", "y = a", "0", "total")
    x = np.random.default_rng(1).integers(-50, 50, shape).astype(dtype)
    for axis in (None, *range(len(shape))):
        np.testing.assert_array_equal(total(x, axis=axis), x.sum(axis, np.float64))
    assert max(joined) > 1


@pytest.mark.parametrize(
    ("shape", "dtype"),
    in_turns(SHAPES, ["float32", "float16", "bfloat16"])
    + pairs_in_soak(OTHERS, ["float32", "float16", "bfloat16"]),
)
def test_structures_without_an_identity(shape: tuple[int, ...], dtype: str, joined: list[int]) -> None:
    first = gs.ReductionKernel(
        "T x", "int64 k", "candidate{x, _J}", "earlier(a, b)", "k = a.place", None, "first", "candidate",
        preamble=_FIRST,
    )  # fmt: skip
    x = small_numbers(shape, dtype)
    for axis in (None, *range(len(shape))):
        np.testing.assert_array_equal(first(x, axis=axis), np.argmax(x, axis))
    assert max(joined) > 1


@pytest.mark.parametrize(
    ("shape", "dtype"),
    in_turns(SHAPES, ["float16", "bfloat16"]) + pairs_in_soak(OTHERS, ["float16", "bfloat16"]),
)
def test_structures_of_halves(shape: tuple[int, ...], dtype: str, joined: list[int]) -> None:
    extent = gs.ReductionKernel(
        "T x", "T y", "extent{x, x}", "wider(a, b)", "y = T(a.high - a.low)", None, "extent", "extent", preamble=_EXTENT
    )  # fmt: skip
    x = small_numbers(shape, dtype)
    for axis in (None, *range(len(shape))):
        np.testing.assert_array_equal(extent(x, axis=axis), x.max(axis) - x.min(axis))
    assert max(joined) > 1


@pytest.mark.parametrize("columns", [65, 513, 2000])
def test_rows_of_results_that_do_not_follow_each_other(columns: int, joined: list[int]) -> None:
    total = gs.ReductionKernel("T x", "int64 y", "x", "a + b", "y = a", "0", "total_of_rows")
    views: list[Callable[[Any], Any]] = [
        lambda whole: whole[:, :columns],
        lambda whole: whole[:, columns - 1 :: -1],
        lambda whole: whole[::-1, 70:],
    ]
    for count in (2, 5):
        x = np.random.default_rng(1).integers(0, 9, (count, 300, columns)).astype("int16")
        for view in views:
            whole, expected = np.full((2, count, columns + 70), -1)
            total(x, view(whole), axis=1)
            view(expected)[...] = x.sum(1)
            np.testing.assert_array_equal(whole, expected)
    assert max(joined) > 1
