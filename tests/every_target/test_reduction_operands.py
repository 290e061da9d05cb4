"""Reductions of several inputs, of which some are the same for all rows or columns, and of parts of arrays."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import gridstride as gs
from tests.array_values import values
from tests.crosses import cases_in_soak, in_soak, in_turns, pairs_in_soak
from tests.every_target.test_reduction import LARGEST, NUMBERS, PLACE, TOTAL

WEIGHTED = gs.ReductionKernel(
    "T x, U w", "float64 y", "double(x) * double(w)", "a + b", "y = a", "0", "weighted"
)
DISTANCE = gs.ReductionKernel(
    "T x, T center", "float64 y", "double(x - center) * double(x - center)", "a + b", "y = a", "0", "distance"
)
FLOAT_SUM = gs.ReductionKernel("T x", "float32 y", "x", "a + b", "y = a", "0", "float_sum")
OF_FIVE = gs.ReductionKernel(
    "T p, T q, T r, T s, T t",
    "T y",
    "p + 2 * q + 3 * r + 4 * s + 5 * t",
    "a + b",
    "y = a",
    "0",
    "weights_of_five",
)
WIDE = gs.ReductionKernel("T x", "complex128 y", "x", "a + b", "y = a", "0", "wide_sum")
WHOLE = gs.ReductionKernel("T x", "int64 y", "x", "a + b", "y = a", "0", "whole_sum")
WITH_INSIDES = [(6, 9, 205), (40, 13, 15), (5, 4, 17, 3), (3, 5, 2, 600)]
ADDED = gs.ReductionKernel("T x", "float32 y", "x", "a + b", "y = y + a", "0", "added_to_what_is_there")


@pytest.mark.parametrize(
    ("shape", "dtype"),
    in_turns([(300, 1000), (7, 3001), (90, 1030), (3, 40, 70)], ["int8", "float16", "float32", "float64"]),
)
def test_one_weight_for_a_row_or_a_column(xp: ModuleType, dtype: str, shape: tuple[int, ...]) -> None:
    x = values(shape, dtype, 1)
    for weights in (
        (shape[-1],),
        (shape[0], *(1 for _ in shape[1:])),
        (shape[-2], 1),
        (*(1 for _ in shape),),
        shape,
    ):
        w = values(weights, "float32", 2)
        for axis in range(len(shape)):
            np.testing.assert_array_equal(
                gs.asnumpy(WEIGHTED(xp.asarray(x), xp.asarray(w), axis=axis)),
                (x.astype("f8") * w).sum(axis),
                str((weights, axis)),
            )


@pytest.mark.parametrize(("dimensions", "dtype"), in_turns([2, 3, 5], ["int16", "float32", "float64"]))
def test_distances_of_points(xp: ModuleType, dtype: str, dimensions: int) -> None:
    x = values((5003, dimensions), dtype, 1)
    for center in (x[0], x[7:8], x[::-1]):
        np.testing.assert_array_equal(
            gs.asnumpy(DISTANCE(xp.asarray(x), xp.asarray(center), axis=1)),
            ((x.astype("f8") - center) ** 2).sum(1),
        )
    some, others = x[:70, None], x[None, 100:171]
    np.testing.assert_array_equal(
        gs.asnumpy(DISTANCE(xp.asarray(some), xp.asarray(others), axis=2)),
        ((some.astype("f8") - others) ** 2).sum(2),
    )


@pytest.mark.parametrize(
    ("shape", "dtype"),
    in_turns(WITH_INSIDES, ["int8", "float16", "float64"], others=["float32", "complex128"]),
)
def test_what_is_inside_of_an_array(xp: ModuleType, dtype: str, shape: tuple[int, ...]) -> None:
    whole = values(shape, dtype, 1)
    inner = tuple(slice(1, -1) if length > 2 else slice(None) for length in shape)
    for x in (whole, whole[inner], whole[inner][..., ::-1], whole[..., ::2]):
        for axes in (None, (0, len(shape) - 1), tuple(range(1, len(shape)))):
            numbers = np.arange(x.size).reshape(x.shape)
            np.testing.assert_array_equal(gs.asnumpy(NUMBERS(xp.asarray(x), axis=axes)), numbers.sum(axes))
            np.testing.assert_array_equal(
                gs.asnumpy(TOTAL(xp.asarray(x), axis=axes)), x.sum(axes, dtype=dtype), str(axes)
            )
            if dtype != "complex128":
                np.testing.assert_array_equal(gs.asnumpy(LARGEST(xp.asarray(x), axis=axes)), x.max(axes))


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        *in_turns([(3, 5003), (9, 2, 35), (20, 37, 3)], ["int8", "int16", "float32"], others=["float64"]),
        *in_turns([(7, 4002), (5, 9, 334)], ["uint8", "int8"], others=["int16", "uint16"]),
        *pairs_in_soak([(4, 3, 1007)], ["int8", "int16", "float32", "float64"]),
        *pairs_in_soak([(3, 16, 1003)], ["int8", "uint8", "int16", "uint16"]),
    ],
)
def test_a_few_rows_that_begin_anywhere(xp: ModuleType, dtype: str, shape: tuple[int, ...]) -> None:
    axis = len(shape) - 2
    x = values((*shape[:-1], shape[-1] + 3), dtype, 1)
    for view in (x[..., 2:-1], x[..., 2:-1].copy(), x[..., ::3]):
        place, largest = PLACE(xp.asarray(view), axis=axis)
        np.testing.assert_array_equal(gs.asnumpy(place), view.argmax(axis))
        np.testing.assert_array_equal(gs.asnumpy(largest), view.max(axis))
        if view.dtype.kind != "f":
            whole = WHOLE(xp.asarray(view), axis=axis)
            np.testing.assert_array_equal(gs.asnumpy(whole), view.sum(axis, dtype="i8"))
        there = values(largest.shape, "float32", 3)
        out = xp.asarray(there.copy())
        ADDED(xp.asarray(view), out, axis=axis)
        np.testing.assert_array_equal(gs.asnumpy(out), there + view.sum(axis, dtype="f4"))


@pytest.mark.parametrize("dtype", ["uint8", "int16", *in_soak("int8", "uint16")])
def test_sums_of_small_integers_as_floats_are_exact(xp: ModuleType, dtype: str) -> None:
    """Up to 2**24 of the smallest and of the largest, which floats hold, in whichever order they are added."""
    for extreme in (np.iinfo(dtype).min, np.iinfo(dtype).max):
        for shape in ((16_000,), (70, 130), (20_000, 3), (3, 20_000), (500, 33), (3, 40, 65), (9, 700)):
            x = np.full(shape, extreme, dtype)
            for axis in (None, *range(len(shape))):
                expected = x.sum(axis, dtype="f8")
                np.testing.assert_allclose(
                    gs.asnumpy(FLOAT_SUM(xp.asarray(x), axis=axis)), expected, rtol=1e-6
                )


@pytest.mark.usefixtures("folds_of_much")
@pytest.mark.parametrize(
    ("length", "dtype"),
    [
        *in_turns([255, 333, 511, 600], ["float16", "int8"]),
        *in_turns([130, 255, 287], ["float32", "int32"]),
        *in_turns([65, 127, 251], ["float64", "complex64"]),
        *pairs_in_soak([300, 1151], ["float16", "int8"]),
        *cases_in_soak((133, "float32"), (133, "int32"), (144, "float64"), (144, "complex64")),
    ],
)
def test_many_rows_of_some_length(xp: ModuleType, dtype: str, length: int) -> None:
    """Which begin at any place of a word, or all at the same."""
    rows = values((4097, length), dtype, length)
    for start in (0, 1):
        flat = np.empty(rows.size + start, dtype)
        x = flat[start:].reshape(rows.shape)
        x[...] = rows
        given = xp.asarray(flat)[start:].reshape(rows.shape)
        np.testing.assert_array_equal(gs.asnumpy(WIDE(given, axis=1)), x.sum(1, dtype="c16"))
        exact = x.sum(1, dtype={"i": "i8", "f": "f8", "c": "c16"}[x.dtype.kind])
        np.testing.assert_array_equal(gs.asnumpy(TOTAL(given, axis=1)), exact.astype(dtype))
        if x.dtype.kind != "c":
            place, largest = PLACE(given, axis=1)
            np.testing.assert_array_equal(gs.asnumpy(place), x.argmax(1))
            np.testing.assert_array_equal(gs.asnumpy(largest), x.max(1))
            np.testing.assert_array_equal(gs.asnumpy(LARGEST(given, axis=1)), x.max(1))


@pytest.mark.usefixtures("folds_of_much")
@pytest.mark.parametrize("length", [100, 115, 116, 127])
def test_many_rows_of_five_arrays(xp: ModuleType, length: int) -> None:
    """Whose elements of one result take more room than a warp's share of a block's."""
    arrays = [values((4100, length), "float32", seed) for seed in range(5)]
    expected = sum(weight * x for weight, x in enumerate(arrays, 1)).sum(1)
    result = OF_FIVE(*map(xp.asarray, arrays), axis=1)
    np.testing.assert_array_equal(gs.asnumpy(result), expected)
