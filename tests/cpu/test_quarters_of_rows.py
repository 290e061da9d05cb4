"""Folds of rows of which one of each quarter is read in turn: each result is that of its own row."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import gridstride as gs
from tests.cpu.test_guarded_operands import Array, guarded
from tests.crosses import in_soak, in_turns

TOTAL = gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total_of_quarters")
WIDE = gs.ReductionKernel("T x", "int64 y", "x", "a + b", "y = a", "0", "wide_total_of_quarters")
DOT = gs.ReductionKernel("T x, T y", "T z", "x * y", "a + b", "z = a", "0", "dot_of_quarters")
NUMBERED = gs.ReductionKernel("T x", "int64 y", "x * i", "a + b", "y = a", "0", "numbered_quarters")

LENGTHS = [9, 33, 63, 64, 100, 255, 256, 511, 1000, 3001, 5000]
#: Batches have 256 rows, of which what four does not divide is left.
COUNTS = [3, 5, 255, 257, 1000]
#: Rows that caches may hold are read in order.
LARGER_THAN_CACHES = 1 << 24


@cache
def pool() -> Array:
    return np.random.default_rng(1).integers(-99, 99, 1 << 24, "int8")


def numbers(count: int, length: int, dtype: str, times: int = 1) -> Array:
    """Return numbers whose sums are exact in any order, in blocks of so many rows."""
    blocks = times * LARGER_THAN_CACHES // (count * length * np.dtype(dtype).itemsize) + 1
    shape = (blocks, count, length)
    return np.resize(pool(), shape).astype(dtype)


def between_words(x: Array) -> Array:
    made = np.zeros(x.nbytes + 1, "u1")[1:].view(x.dtype).reshape(x.shape)
    made[...] = x
    return made


@pytest.mark.parametrize(("length", "count"), in_turns(LENGTHS, COUNTS))
@pytest.mark.parametrize("dtype", ["float32", *in_soak("complex64", "float64", "int32")])
def test_every_row_has_its_result(dtype: str, length: int, count: int) -> None:
    x = numbers(count + 1, length, dtype, 2)[:, :count]
    np.testing.assert_array_equal(TOTAL(x, axis=2), x.sum(2).astype(dtype))
    if dtype == "int32":
        np.testing.assert_array_equal(WIDE(x, axis=2), x.sum(2))


LAYOUTS: list[Callable[[Array], Array]] = [
    lambda x: x[:, ::2],
    lambda x: x[:, ::-1],
    lambda x: x[..., :-3],
    lambda x: x[:, 1:][:, ::-3],
    lambda x: x[..., ::-1],
    between_words,
    lambda x: x.reshape(-1, x.shape[2]),
    lambda x: np.broadcast_to(x[:, :1], x.shape),
]


@pytest.mark.parametrize(("layout", "length"), in_turns(range(len(LAYOUTS)), [64, 255, 511, 3001]))
@pytest.mark.parametrize("dtype", ["complex64", *in_soak("float32", "float64", "int32")])
def test_layouts(dtype: str, length: int, layout: int) -> None:
    x = LAYOUTS[layout](numbers(1100, length, dtype, 4))
    np.testing.assert_array_equal(TOTAL(x, axis=-1), x.sum(-1).astype(dtype))


@pytest.mark.parametrize(("length", "count"), in_turns([64, 100, 255, 511, 1001], [5, 254, 256, 515]))
@pytest.mark.parametrize("dtype", ["int32", *in_soak("float32", "complex64")])
def test_nothing_is_read_outside(dtype: str, length: int, count: int) -> None:
    x = numbers(count, length, dtype)
    for at_end in (False, True):
        made = guarded(x.shape, dtype, at_end)
        made[...] = x
        for step in (1, -1):
            np.testing.assert_array_equal(TOTAL(made[:, ::step], axis=2), x[:, ::step].sum(2).astype(dtype))


@pytest.mark.parametrize("length", [64, 257, 511, *in_soak(256, 1000, 3001)])
def test_several_inputs(length: int) -> None:
    x = numbers(600, length, "float32")
    for other in (x[:, ::-1], x[:1, :1], x[..., :1]):
        np.testing.assert_array_equal(DOT(x, other, axis=2), (x * other).sum(2, dtype="f8"))


@pytest.mark.parametrize("length", [64, 511, *in_soak(33, 255, 3001)])
def test_elements_keep_their_numbers(length: int) -> None:
    x = numbers(600, length, "int32")
    expected = (x * np.arange(x.size).reshape(x.shape)).sum(2)
    np.testing.assert_array_equal(NUMBERED(x, axis=2), expected)


@pytest.mark.parametrize("length", [64, 255, 1000, *in_soak(511, 3001)])
def test_sums_are_as_accurate_as_numpys(length: int) -> None:
    x = (1e6 + np.random.default_rng(1).random((LARGER_THAN_CACHES // (4 * length) + 1, length))).astype("f4")
    exact = x.sum(1, dtype="f8")
    ours, numpys = (np.sqrt(np.mean((each - exact) ** 2)) for each in (TOTAL(x, axis=1), x.sum(1)))
    assert ours <= 1.25 * numpys


@pytest.mark.parametrize("length", [511, *in_soak(255, 3001)])
def test_a_sum_does_not_depend_on_the_rows_beside_it(length: int) -> None:
    """Which rows are read in quarters depends on how many a thread has."""
    x = np.random.default_rng(1).random((LARGER_THAN_CACHES // (4 * length) + 140, length)).astype("f4")
    whole = TOTAL(x, axis=1)
    for first in (1, 2, 3, 130):
        np.testing.assert_array_equal(TOTAL(x[first:], axis=1), whole[first:])
