"""Folds of rows of which one of each quarter is read in turn: each result is that of its own row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import gridstride as gs
from tests.cpu.test_guarded_operands import Array, guarded
from tests.crosses import in_turns

TOTAL = gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total_of_quarters")
WIDE = gs.ReductionKernel("T x", "int64 y", "x", "a + b", "y = a", "0", "wide_total_of_quarters")
DOT = gs.ReductionKernel("T x, T y", "T z", "x * y", "a + b", "z = a", "0", "dot_of_quarters")
NUMBERED = gs.ReductionKernel("T x", "int64 y", "x * i", "a + b", "y = a", "0", "numbered_quarters")

DTYPES = ["float32", "complex64", "float64", "int32"]
LENGTHS = [9, 33, 63, 64, 100, 255, 256, 511, 1000, 3001, 5000]
#: Batches have 256 rows, of which what four does not divide is left.
COUNTS = [1, 3, 5, 255, 257, 1000]


def numbers(shape: tuple[int, ...], dtype: str) -> Array:
    """Return numbers whose sums are exact in any order."""
    return np.random.default_rng(1).integers(-99, 99, shape).astype(dtype)


def between_words(x: Array) -> Array:
    made = np.zeros(x.nbytes + 1, "u1")[1:].view(x.dtype).reshape(x.shape)
    made[...] = x
    return made


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_row_has_its_result(dtype: str, length: int) -> None:
    x = numbers((max(COUNTS), length), dtype)
    expected = x.sum(1)
    for count in COUNTS:
        np.testing.assert_array_equal(TOTAL(x[:count], axis=1), expected[:count].astype(dtype))
        if dtype == "int32":
            np.testing.assert_array_equal(WIDE(x[:count], axis=1), expected[:count])


LAYOUTS: list[Callable[[Array], Array]] = [
    lambda x: x[::2],
    lambda x: x[::-1],
    lambda x: x[:, :-3],
    lambda x: x[:, 1:][::-3],
    lambda x: x[:, ::-1],
    between_words,
    lambda x: x.reshape(2, -1, x.shape[1])[:, 1:],
    lambda x: np.broadcast_to(x[:1], x.shape),
]


@pytest.mark.parametrize(("layout", "length"), in_turns(range(len(LAYOUTS)), [64, 255, 511, 3001]))
@pytest.mark.parametrize("dtype", DTYPES)
def test_layouts(dtype: str, length: int, layout: int) -> None:
    x = LAYOUTS[layout](numbers((1100, length), dtype))
    np.testing.assert_array_equal(TOTAL(x, axis=-1), x.sum(-1).astype(dtype))


@pytest.mark.parametrize(("length", "count"), in_turns([33, 64, 100, 255, 511, 1001], [4, 254, 256, 515]))
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int32"])
def test_nothing_is_read_outside(dtype: str, length: int, count: int) -> None:
    x = numbers((count, length), dtype)
    for at_end in (False, True):
        for step in (1, -1):
            made = guarded(x.shape, dtype, at_end)
            made[...] = x
            np.testing.assert_array_equal(TOTAL(made[::step], axis=1), x[::step].sum(1).astype(dtype))


@pytest.mark.parametrize("length", [64, 256, 257, 511, 1000, 3001])
def test_several_inputs(length: int) -> None:
    x, y = numbers((600, length), "float32"), numbers((600, length), "float32")[::-1]
    for other in (y, y[:1], y[:, :1]):
        np.testing.assert_array_equal(DOT(x, other, axis=1), (x * other).sum(1, dtype="f8"))


@pytest.mark.parametrize("length", [33, 64, 255, 511, 3001])
def test_elements_keep_their_numbers(length: int) -> None:
    x = numbers((600, length), "int32")
    expected = (x * np.arange(x.size).reshape(x.shape)).sum(1)
    np.testing.assert_array_equal(NUMBERED(x, axis=1), expected)


@pytest.mark.parametrize("length", [64, 255, 511, 1000, 3001])
def test_sums_are_as_accurate_as_numpys(length: int) -> None:
    x = (1e6 + np.random.default_rng(1).random((512, length))).astype("f4")
    exact = x.sum(1, dtype="f8")
    ours, numpys = (np.sqrt(np.mean((each - exact) ** 2)) for each in (TOTAL(x, axis=1), x.sum(1)))
    assert ours <= 1.25 * numpys
