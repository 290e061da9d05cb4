"""Columns of short rows, which the CPU target brings apart: of each size, up to the last byte of readable memory."""

from __future__ import annotations

import ctypes
import mmap
from functools import cache
from math import prod
from typing import Any

import numpy as np
import pytest

import gridstride as gs

PROT_NONE = 0
SIZES = ["i1", "i2", "i4", "i8", "c16"]
_held: list[mmap.mmap] = []


def at_the_end(content: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy behind which, and before whose pages, nothing can be read."""
    pages = -(-content.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, pages + 2 * mmap.PAGESIZE)
    _held.append(memory)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None).mprotect
    for page in (start, start + pages + mmap.PAGESIZE):
        assert protect(ctypes.c_void_p(page), ctypes.c_size_t(mmap.PAGESIZE), PROT_NONE) == 0
    copied: np.ndarray[Any, Any] = np.frombuffer(
        memory, content.dtype, prod(content.shape), mmap.PAGESIZE + pages - content.nbytes
    ).reshape(content.shape)
    copied[...] = content
    return copied


def numbered(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    return np.random.default_rng(prod(shape)).integers(-100, 100, shape).astype(dtype)


@cache
def total(result: str) -> gs.ReductionKernel:
    return gs.ReductionKernel("T x", f"{result} y", "x", "a + b", "y = a", "0", "total_of_columns")


@cache
def increment() -> gs.ElementwiseKernel:
    return gs.ElementwiseKernel("T x", "T y", "y = x + T(1)", "increment_of_columns")


@cache
def add() -> gs.ElementwiseKernel:
    return gs.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add_columns")


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("columns", [2, 3, 4, 5, 7, 8, 9, 15, 17])
def test_sums_of_short_rows(dtype: str, columns: int) -> None:
    sums = total("complex128" if dtype == "c16" else "int64")
    for rows in (64, 65, 127, 300, 1001):
        x = at_the_end(numbered((rows, columns), dtype))
        np.testing.assert_array_equal(sums(x, axis=1), x.astype(sums(x, axis=1).dtype).sum(1))
        part = x[:, : columns - 1]
        np.testing.assert_array_equal(sums(part, axis=1), part.astype(sums(part, axis=1).dtype).sum(1))


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("step", [2, 3, 4, 5, 6, 7, 8, 9])
def test_elements_a_few_apart(dtype: str, step: int) -> None:
    for rows in (1, 7, 8, 15, 31, 33, 64, 100, 1001):
        x = at_the_end(numbered((rows, step), dtype))
        for column in (0, step - 1):
            np.testing.assert_array_equal(increment()(x[:, column]), x[:, column] + x.dtype.type(1))


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("length", [2, 3, 5, 7, 9, 15])
def test_short_axes_in_another_order(dtype: str, length: int) -> None:
    for shape, order in (
        ((3, 19, length), (0, 2, 1)),
        ((17, 5, length), (2, 1, 0)),
        ((2, 3, 9, length), (3, 0, 1, 2)),
        ((50, 3, length), (0, 2, 1)),
    ):
        x = at_the_end(numbered(shape, dtype)).transpose(order)
        out = np.empty(x.shape, dtype)
        np.testing.assert_array_equal(increment()(x, out), x + x.dtype.type(1))


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("repeated", [3, 5, 49, 70])
def test_elements_that_rows_repeat(dtype: str, repeated: int) -> None:
    for rows in (2, 129, 5003):
        x, zeros = at_the_end(numbered((rows, 1), dtype)), np.zeros((rows, repeated), dtype)
        np.testing.assert_array_equal(add()(x, zeros), x + zeros)
        x = at_the_end(numbered((rows, 1, repeated), dtype))
        zeros = np.zeros((rows, 4, repeated), dtype)
        np.testing.assert_array_equal(add()(x, zeros), x + zeros)


def test_rows_far_apart_within_others() -> None:
    x = at_the_end(numbered((40, 30, 13), "i2"))
    np.testing.assert_array_equal(total("int64")(x, axis=(0, 2)), x.sum((0, 2)))
    np.testing.assert_array_equal(total("int64")(x[:, ::-1, 2:5], axis=(0, 2)), x[:, ::-1, 2:5].sum((0, 2)))


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "f4"])
def test_sums_of_short_rows_at_the_end_of_memory(dtype: str) -> None:
    wide = gs.ReductionKernel("T x", "int64 y", "x", "a + b", "y = a", "0", "wide_sum")
    for width in (32, 33, 63, 64, 65, 100, 128, 129, 255, 256, 1000, 2047, 2048, 2049):
        for rows in (1, 2, 9, 300):
            x = at_the_end(numbered((rows, width), dtype))
            for view in (x, x[::-1], x[:, : width - 1]):
                np.testing.assert_array_equal(wide(view, axis=1), view.sum(1, dtype="i8"), str((rows, width)))
