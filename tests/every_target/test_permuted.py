"""Arrays whose axes come in another order, some of them short: results are NumPy's, and nothing else is written."""

from __future__ import annotations

from math import prod
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from tests.array_values import Array, values

#: Shapes and orders: axes shorter than vectors and longer, whole chunks of memory on both sides and several runs.
AXES = (
    ((29, 33, 35), (0, 2, 1)),
    ((21, 5, 7, 9, 11), (0, 4, 2, 1, 3)),
    ((40, 5, 7, 9, 2), (0, 4, 2, 1, 3)),
    ((13, 301, 11), (2, 1, 0)),
    ((13, 140, 3), (2, 1, 0)),
    ((9, 7, 5, 31, 33), (4, 1, 3, 0, 2)),
    ((700, 9), (1, 0)),
    ((300, 5, 7), (0, 2, 1)),
    ((1001, 2, 2), (0, 2, 1)),
    ((333, 3, 3), (0, 2, 1)),
    ((90, 2, 3, 4), (0, 3, 2, 1)),
    ((40, 16, 16), (0, 2, 1)),
    ((1, 17, 7), (0, 2, 1)),
    ((5, 3, 11), (0, 2, 1)),
)
DTYPES = ("int8", "float16", "float32", "complex64", "complex128")
TOTAL = gs.ElementwiseKernel("T x, T y, T z", "T w", "w = x + y - z", "total_of_three")
BOTH = gs.ElementwiseKernel("X x, Y y", "X z, Y w", "z = x; w = y", "both")


def part_of(whole: Any, shape: tuple[int, ...], start: int) -> Any:
    return whole[start : start + prod(shape)].reshape(shape)


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_order(xp: ModuleType, dtype: str, axes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    shape, order = axes
    memory = values((prod(shape) + 1,), dtype, 1)
    given, y, z = (xp.asarray(each) for each in (memory, values(shape, dtype, 2), values(shape, dtype, 3)))
    for start in (0, 1):
        x = part_of(memory, shape, start)
        room = xp.asarray(np.zeros(x.size + 64, dtype))
        out = part_of(room, tuple(shape[axis] for axis in order), 32 + start)
        TOTAL(part_of(given, shape, start).transpose(order), y.transpose(order), z.transpose(order), out)
        expected = (x + gs.asnumpy(y) - gs.asnumpy(z)).transpose(order)
        np.testing.assert_array_equal(gs.asnumpy(out), expected)
        assert np.count_nonzero(gs.asnumpy(room)) == np.count_nonzero(expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_parts_of_arrays(xp: ModuleType, dtype: str) -> None:
    def some(whole: Array) -> list[Any]:
        chunks = whole[1::2, :, 1:6]
        return [chunks.swapaxes(1, 3), chunks[:, ::-1].swapaxes(1, 3), chunks.transpose(2, 3, 0, 1)]

    whole = values((20, 11, 7, 13), dtype, 1)
    for x, given in zip(some(whole), some(xp.asarray(whole)), strict=True):
        room = xp.asarray(np.zeros((*x.shape[:2], x.shape[2] + 3, x.shape[3]), dtype))
        out = room[:, :, 2:-1]
        TOTAL(given, given, given, out)
        np.testing.assert_array_equal(gs.asnumpy(out), x)
        assert np.count_nonzero(gs.asnumpy(room)) == np.count_nonzero(x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 63, 1000])
def test_some_of_short_rows(xp: ModuleType, dtype: str, rows: int) -> None:
    def some(whole: Any) -> list[Any]:
        return [whole[:, :3], whole[:, ::-1], whole[::-1, 1:3], whole[:, ::2], whole[:, None, :].repeat(2, 1)]

    x = values((rows, 4), dtype, 1)
    for host, given in zip(some(x), some(xp.asarray(x)), strict=True):
        out = xp.asarray(np.zeros(host.shape, dtype))
        TOTAL(given, given, given, out)
        np.testing.assert_array_equal(gs.asnumpy(out), host)
    host, given = x[:, :, None], xp.asarray(x)[:, :, None]
    column = values((5,), dtype, 2)
    np.testing.assert_array_equal(gs.asnumpy(TOTAL(given, xp.asarray(column), given)), host + column - host)


@pytest.mark.parametrize("dtypes", [("int8", "int16"), ("int16", "float32"), ("float64", "int8")])
def test_several_dtypes(xp: ModuleType, dtypes: tuple[str, str]) -> None:
    for first, second in (dtypes, dtypes[::-1]):
        x, y = values((31, 9, 10, 11), first, 1), values((31, 9, 10, 11), second, 2)
        for order in ((0, 3, 2, 1), (3, 0, 2, 1), (2, 3, 1, 0)):
            z, w = BOTH(xp.asarray(x).transpose(order), xp.asarray(y).transpose(order))
            np.testing.assert_array_equal(gs.asnumpy(z), x.transpose(order))
            np.testing.assert_array_equal(gs.asnumpy(w), y.transpose(order))
            out = xp.asarray(np.zeros(z.shape, first)), xp.asarray(np.zeros(w.shape, second))
            BOTH(xp.asarray(x).transpose(order), xp.asarray(y).transpose(order), *out)
            np.testing.assert_array_equal(gs.asnumpy(out[0]), x.transpose(order))
            np.testing.assert_array_equal(gs.asnumpy(out[1]), y.transpose(order))
