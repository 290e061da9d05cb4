"""The loops for blocks of threads, which GPUs have, run on the CPU target: the same texts, without a GPU."""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride import _native
from gridstride._compilation import functions
from gridstride.errors import CompileError
from gridstride.targets import registry
from gridstride.targets.block_loops import short_folds, writers
from gridstride.targets.walks import ElementWalk, Walked, axes_bytes
from tests.array_values import values
from tests.every_target import test_elementwise as elementwise
from tests.every_target import test_random_array_calls as random_calls
from tests.every_target import test_reduction as reduction
from tests.every_target.test_large_reductions import check_most_frequent
from tests.random_arrays import Draw, compare_examples


def in_soak(*cases: Any) -> list[Any]:
    """Return cases for long runs: loops for blocks of threads are slow on a CPU, above all to compile."""
    return [pytest.param(case, marks=pytest.mark.soak) for case in cases]


INTEGERS = gs.ReductionKernel("T x", "int64 y", "x", "a + b", "y = a", "0", "integer_total")
WIDE = gs.ReductionKernel("T x", "complex128 y", "x", "a + b", "y = a", "0", "wide_total")
DOT = gs.ReductionKernel("T x, U y", "float64 z", "double(x) * y", "a + b", "z = a", "0", "dot_of_two")
LOWEST = gs.ReductionKernel(
    "T x", "int64 y", "Lowest{x, _J}", "a.x < b.x || (a.x == b.x && a.at < b.at) ? a : b", "y = a.at", None, "lowest",
    reduce_type="Lowest", preamble="struct Lowest { T x; long long at; };",
)  # fmt: skip

SMALLEST = gs.ReductionKernel("T x", "T y", "x", "(b < a) ? b : a", "y = a", "5", "smallest_below_6")

BOTH = gs.ElementwiseKernel("T x, U y", "T z, U w", "z = x; w = y", "both_of_two")
NUMBERS_AS_ELEMENTS = gs.ElementwiseKernel("T x", "T y", "y = T(i % 101)", "numbers_as_elements")
ADD_TO = gs.ElementwiseKernel("T x", "T y", "y += x", "add_to")
MIXED_SUM = gs.ElementwiseKernel("A x, B y", "C z", "z = C(x + y)", "mixed_sum")
NUMBERED = gs.ElementwiseKernel("T x, T y", "T z", "z = x + y + T(i % 5)", "numbered_sum")


@pytest.fixture(autouse=True)
def _block_loops(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(type(registry.get("cpu")), "writers", None)
    forget_calls()
    yield
    forget_calls()


def forget_calls() -> None:
    """Let the next calls choose their loops anew."""
    for module in (elementwise, reduction, random_calls, sys.modules[__name__]):
        for kernel in vars(module).values():
            if isinstance(kernel, gs.ElementwiseKernel | gs.ReductionKernel):
                kernel._known.clear()
    _native.targets_forgotten()


def check_loops_for_many(xp: ModuleType, check: Callable[..., None], draw: Draw) -> None:
    """Take the loops for many elements also for few."""
    check(xp, False, draw, draw.shape((1, 2, 3, 5, 17, 33), most=3))


@pytest.mark.parametrize(
    "check", [random_calls.check_layouts, random_calls.check_sums, random_calls.check_places]
)
def test_random_calls(check: Callable[..., None]) -> None:
    compare_examples(check, 150, np, False)


@pytest.mark.parametrize("check", [random_calls.check_sums, random_calls.check_places])
def test_random_calls_by_loops_for_many_elements(
    monkeypatch: pytest.MonkeyPatch, check: Callable[..., None]
) -> None:
    monkeypatch.setattr(short_folds, "_MANY", 1)
    compare_examples(check_loops_for_many, 150, np, check)


@pytest.mark.parametrize(
    "shape", [(5000, 3), (4099, 16), (6, 4099, 5), *in_soak((5000, 2), (4100, 33), (4096, 100))]
)
@pytest.mark.parametrize("dtype", ["int8", *in_soak("float16", "float32", "complex128")])
def test_narrow_arrays(shape: tuple[int, ...], dtype: str) -> None:
    x = values(shape, dtype, 1)
    for start in (0, 1):
        flat = np.empty(x.size + 1, dtype)
        flat[start : start + x.size] = x.reshape(-1)
        each = flat[start : start + x.size].reshape(shape)
        for axis in (0, len(shape) - 2, len(shape) - 1):
            np.testing.assert_array_equal(
                WIDE(each, axis=axis), each.sum(axis, dtype="c16"), err_msg=f"{start} {axis}"
            )
            first = np.argmin(each if dtype != "complex128" else each.real, axis)
            np.testing.assert_array_equal(
                LOWEST(each.real if dtype == "complex128" else each, axis=axis), first
            )


@pytest.mark.parametrize("dtype", ["int8", "float32", *in_soak("float16", "float64", "complex128")])
def test_folds_that_a_block_loads_at_once(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    small = writers.small_fold
    monkeypatch.setattr(writers, "small_fold", lambda walk: sizes.append(walk.fold[0]) or small(walk))
    for size in (16, 48, 1008, 1024, 4096):
        x, other = flat_view((size,), dtype, 0, 1), flat_view((size,), "int16", 0, 2)
        for each in (x, flat_view((size,), dtype, 1, 1), flat_view((size * 2,), dtype, 0, 3)[::2], x[1:]):
            np.testing.assert_array_equal(WIDE(each), each.sum(dtype="c16"))
        np.testing.assert_array_equal(reduction.NUMBERS(x), np.arange(size).sum())
        if dtype != "complex128":
            np.testing.assert_array_equal(LOWEST(x), np.argmin(x))
            np.testing.assert_array_equal(DOT(x, other), np.dot(x.astype("f8"), other.astype("f8")))
    assert {16, 1024} <= set(sizes)
    assert 15 not in sizes


@pytest.mark.parametrize("size", [64, 1000, 1024, 1027])
def test_small_sums_do_not_depend_on_where_elements_lie(size: int) -> None:
    x = np.random.default_rng(size).standard_normal(size).astype("f4")
    expected = reduction.TOTAL(flat_copy(x, 0))
    assert expected == reduction.TOTAL(flat_copy(x, 1)) == reduction.TOTAL(np.repeat(x, 2)[::2])


@pytest.mark.parametrize("shape", [(9, 7, 301), (2, 5, 20_003), (300, 3, 260)])
@pytest.mark.parametrize("dtype", ["int8", *in_soak("float32", "complex128")])
def test_folds_of_long_rows(shape: tuple[int, ...], dtype: str) -> None:
    x = values((*shape[:2], shape[2] + 3), dtype, 1)[:, :, 2:-1]
    for axis in ((0, 2), (1, 2), (0, 1, 2)):
        np.testing.assert_array_equal(WIDE(x, axis=axis), x.sum(axis, dtype="c16"))
        np.testing.assert_array_equal(
            reduction.NUMBERS(x, axis=axis), np.arange(x.size).reshape(shape).sum(axis)
        )
    if dtype != "complex128":
        np.testing.assert_array_equal(LOWEST(x), np.argmin(x))
    three = values((3, 2, 4, 2, shape[2]), dtype, 1)
    np.testing.assert_array_equal(WIDE(three, axis=(0, 2, 4)), three.sum((0, 2, 4), dtype="c16"))


@pytest.mark.parametrize("dtype", ["int8", "float32", *in_soak("float16", "float64", "complex128")])
@pytest.mark.parametrize("shape", [(301, 371), (140, 512), (3, 90, 262)])
def test_folds_across_rows_that_begin_anywhere(dtype: str, shape: tuple[int, ...]) -> None:
    axis = len(shape) - 2
    for start in (0, 1):
        x = flat_view(shape, dtype, start, 1)
        np.testing.assert_array_equal(WIDE(x, axis=axis), x.sum(axis, dtype="c16"), err_msg=str(start))
        numbers = np.arange(x.size).reshape(shape).sum(axis)
        np.testing.assert_array_equal(reduction.NUMBERS(x, axis=axis), numbers)
        for each in (x[..., ::2], x[..., 1:], x[..., ::-1, :]):
            np.testing.assert_array_equal(WIDE(each, axis=axis), each.sum(axis, dtype="c16"))
            if dtype != "complex128":
                np.testing.assert_array_equal(LOWEST(each, axis=axis), np.argmin(each, axis))


@pytest.mark.parametrize("dtype", ["int8", "float32", *in_soak("float16", "complex128")])
@pytest.mark.parametrize("shape", [(2, 1003), (5, 517), (3, 7, 333), (3, 5, 332), (21, 262)])
def test_folds_of_a_few_rows(dtype: str, shape: tuple[int, ...]) -> None:
    axis = len(shape) - 2
    for start in (0, 1):
        x = flat_view(shape, dtype, start, 1)
        out = np.zeros(np.delete(shape, axis), "c16")[..., ::-1]
        np.testing.assert_array_equal(WIDE(x, axis=axis), x.sum(axis, dtype="c16"))
        np.testing.assert_array_equal(WIDE(x, out, axis=axis), x.sum(axis, dtype="c16"))
        np.testing.assert_array_equal(
            reduction.NUMBERS(x, axis=axis), np.arange(x.size).reshape(shape).sum(axis)
        )
        if dtype != "complex128":
            np.testing.assert_array_equal(LOWEST(x, axis=axis), np.argmin(x, axis))


@pytest.mark.parametrize("dtype", ["int8", "float32", *in_soak("float16", "float64")])
@pytest.mark.parametrize("shape", [(70, 19, 13), (300, 40, 3), (2, 150, 21, 5)])
def test_folds_of_columns_that_make_a_result(dtype: str, shape: tuple[int, ...]) -> None:
    axes = (len(shape) - 3, len(shape) - 1)
    kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
    for start in (0, 1):
        x = flat_view(shape, dtype, start, 1)
        np.testing.assert_array_equal(WIDE(x, axis=axes), x.sum(axes, dtype="c16"), err_msg=str(start))
        folded_last = x.transpose(*kept, *axes).reshape(*(shape[axis] for axis in kept), -1)
        np.testing.assert_array_equal(LOWEST(x, axis=axes), np.argmin(folded_last, -1))
        np.testing.assert_array_equal(
            reduction.NUMBERS(x, axis=axes), np.arange(x.size).reshape(shape).sum(axes)
        )


@pytest.mark.parametrize("shape", [(301, 371), (140, 512), (9, 1003), (70, 40, 13), (30, 7, 333)])
def test_the_order_of_a_fold_does_not_depend_on_where_data_lie(shape: tuple[int, ...]) -> None:
    axes = (0, 2) if len(shape) == 3 else 0
    x = np.random.default_rng(1).standard_normal(shape).astype("f4")
    expected = reduction.TOTAL(x, axis=axes)
    for start in (1, 2, 3):
        other = flat_view(shape, "f4", start, 1)
        other[...] = x
        np.testing.assert_array_equal(reduction.TOTAL(other, axis=axes), expected)


@pytest.mark.parametrize("dtypes", [("int8", "float32"), ("float32", "int16")])
def test_folds_across_rows_of_several_dtypes(dtypes: tuple[str, str]) -> None:
    for shape in ((150, 262), (4, 262)):
        x, y = values(shape, dtypes[0], 1), values((shape[0], shape[1] + 1), dtypes[1], 2)[:, 1:]
        np.testing.assert_array_equal(DOT(x, y, axis=0), (x.astype("f8") * y).sum(0))


@pytest.mark.parametrize("dtype", ["float16", *in_soak("float32", "float64", "complex64")])
@pytest.mark.parametrize(
    "shape",
    [
        (5, 20_011),
        (40, 1999),
        (4099, 3),
        (4099, 16),
        (4099, 100),
        *in_soak((3, 100_003), (4097, 7), (5000, 2)),
    ],
)
def test_sums_do_not_depend_on_where_elements_lie(dtype: str, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    expected = reduction.TOTAL(flat_copy(x, 0), axis=1)
    np.testing.assert_allclose(expected, x.astype("c16").sum(1), rtol=1e-2, atol=1e-1)
    for start in (1, 2, 3):
        np.testing.assert_array_equal(reduction.TOTAL(flat_copy(x, start), axis=1), expected)
    with_gaps = np.repeat(x, 2, axis=1)[:, ::2]
    if with_gaps.itemsize * shape[1] >= 512:
        np.testing.assert_array_equal(reduction.TOTAL(with_gaps, axis=1), expected)


def flat_copy(x: np.ndarray[Any, Any], start: int) -> np.ndarray[Any, Any]:
    """Return the same elements so many into a word."""
    copy = flat_view(x.shape, str(x.dtype), start, 1)
    copy[...] = x
    return copy


@pytest.mark.parametrize("dtype", ["int8", "uint16", *in_soak("uint8", "int16")])
@pytest.mark.parametrize("shape", [(40_003,), (3000, 512), (20_000, 7), *in_soak((4, 20_001), (20_000, 32))])
def test_sums_of_small_integers(dtype: str, shape: tuple[int, ...]) -> None:
    limits = np.iinfo(dtype)
    random = np.random.default_rng(1)
    for x in (
        np.full(shape, limits.min, dtype),
        np.full(shape, limits.max, dtype),
        random.integers(limits.min, limits.max, shape, dtype, endpoint=True),
    ):
        for axis in (None, *range(len(shape))):
            np.testing.assert_array_equal(INTEGERS(x, axis=axis), x.sum(axis, dtype="i8"))
            np.testing.assert_array_equal(reduction.TOTAL(x, axis=axis), x.sum(axis, dtype=dtype))


@pytest.mark.parametrize("dtype", ["int8", "uint16", *in_soak("uint8", "int16")])
@pytest.mark.parametrize(
    "shape", [(9, 1999), (4099, 33), (4099, 7), (4101, 3), (4099, 16), *in_soak((2, 40_003), (4099, 100))]
)
def test_sums_of_small_integers_wherever_rows_begin(dtype: str, shape: tuple[int, int]) -> None:
    limits = np.iinfo(dtype)
    for start in (0, 1, 3, 6):
        x = flat_view(shape, dtype, start, 1)
        x[...] = np.random.default_rng(start).integers(limits.min, limits.max, shape, dtype, endpoint=True)
        for each in (x, x[:, 1:], x[:, 2:-1], x[:, ::2], x[::-1]):
            np.testing.assert_array_equal(INTEGERS(each, axis=1), each.sum(1, dtype="i8"))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    "shape",
    [
        (301, 371),
        (140, 512),
        (70, 19, 13),
        (4099, 3),
        (4099, 33),
        (4099, 16),
        (5, 517),
        *in_soak((5, 301, 1000), (2000, 300)),
    ],
)
def test_extremes_of_bytes(dtype: str, shape: tuple[int, ...]) -> None:
    limits = np.iinfo(dtype)
    axis = (0, 2) if shape[-1] == 13 else len(shape) - 2
    for start in (0, 1):
        x = flat_view(shape, dtype, start, 1)
        for low, high in (
            (limits.min, limits.max),
            (limits.min, limits.min + 3),
            (limits.max - 3, limits.max),
        ):
            x[...] = np.random.default_rng(start).integers(low, high, shape, dtype, endpoint=True)
            for each in (x, x[..., ::2], x[::-1]):
                np.testing.assert_array_equal(reduction.LARGEST(each, axis=axis), each.max(axis))
                np.testing.assert_array_equal(SMALLEST(each, axis=axis), np.minimum(each.min(axis), 5))
                np.testing.assert_array_equal(reduction.LARGEST(each, axis=-1), each.max(-1))
                np.testing.assert_array_equal(SMALLEST(each, axis=-1), np.minimum(each.min(-1), 5))


@pytest.mark.parametrize("dtype", ["int8", "float16", "float64", "complex128"])
def test_tiles(dtype: str) -> None:
    x, y = values((3, 77, 45), dtype, 1), values((3, 45, 77), dtype, 2)
    np.testing.assert_array_equal(elementwise.ADD(x.transpose(0, 2, 1), y), x.transpose(0, 2, 1) + y)
    out = np.empty((3, 77, 45), dtype).transpose(0, 2, 1)
    elementwise.ADD(x.transpose(0, 2, 1), y, out)
    np.testing.assert_array_equal(out, x.transpose(0, 2, 1) + y)


@pytest.mark.parametrize("dtype", ["int8", *in_soak("float16", "float32", "complex128")])
@pytest.mark.parametrize(
    "order", [(4, 1, 3, 0, 2), (2, 4, 0, 3, 1), *in_soak((3, 4, 2, 0, 1), (1, 0, 4, 3, 2))]
)
@pytest.mark.parametrize("shape", [(37, 5, 3, 20, 21), *in_soak((16, 4, 2, 32, 48))])
def test_tiles_of_two_axes_a_side(dtype: str, order: tuple[int, ...], shape: tuple[int, ...]) -> None:
    x = values(shape, dtype, 1)
    y = values(tuple(x.shape[axis] for axis in order), dtype, 2)
    np.testing.assert_array_equal(elementwise.ADD(x.transpose(order), y), x.transpose(order) + y)
    back = np.empty(x.shape, dtype)
    elementwise.ADD(x.transpose(order), y, back.transpose(order))
    np.testing.assert_array_equal(back, x + y.transpose(np.argsort(order)))
    numbers = gs.ElementwiseKernel("T x", "int64 k", "k = i", "numbers_of_tiles")(x.transpose(order))
    np.testing.assert_array_equal(numbers.reshape(-1), np.arange(x.size))


def flat_view(shape: tuple[int, ...], dtype: str, start: int, seed: int) -> np.ndarray[Any, Any]:
    """Return an array that starts so many elements into a word."""
    whole = values((int(np.prod(shape)) + 16,), dtype, seed)
    first = -whole.ctypes.data // whole.itemsize % (16 // whole.itemsize) + start
    return whole[first : first + int(np.prod(shape))].reshape(shape)


@pytest.mark.parametrize("dtype", ["int8", *in_soak("float16", "float32", "float64", "complex128")])
@pytest.mark.parametrize("shape", [(131, 259), (128, 272), *in_soak((300, 150), (40, 515), (700, 33))])
def test_tiles_that_start_between_two_words(dtype: str, shape: tuple[int, int]) -> None:
    for x_start, y_start, out_start in ((0, 0, 0), (1, 0, 0), (0, 1, 2), (3, 1, 1)):
        x, y = flat_view(shape, dtype, x_start, 1), flat_view(shape[::-1], dtype, y_start, 2)
        room = np.zeros(x.size + 32, dtype)
        out = room[16 + out_start : 16 + out_start + x.size].reshape(shape[::-1])
        elementwise.ADD(x.T, y, out)
        np.testing.assert_array_equal(out, x.T + y)
        assert not room[: 16 + out_start].any()
        assert not room[16 + out_start + x.size :].any()


@pytest.mark.parametrize("dtype", ["int8", "uint16", *in_soak("float16")])
@pytest.mark.parametrize("shape", [(270, 301), (1001, 70), *in_soak((259, 547), (64, 1000), (300, 17))])
def test_tiles_of_small_elements_between_words(dtype: str, shape: tuple[int, int]) -> None:
    for x_start, y_start, out_start in ((0, 0, 0), (1, 2, 3), (3, 0, 5)):
        x, y = flat_view(shape[::-1], dtype, x_start, 1), flat_view(shape, dtype, y_start, 2)
        out, other = flat_view(shape, dtype, out_start, 3), flat_view(shape, dtype, 1, 4)
        for left, right in ((x.T, y), (x.T, y[:, :1]), (x.T, x.T), (y, x.T)):
            elementwise.ADD(left, right, out)
            np.testing.assert_array_equal(out, left + right)
        BOTH(x.T, y, out, other)
        np.testing.assert_array_equal(out, x.T)
        np.testing.assert_array_equal(other, y)
        ADD_TO(x.T, out)
        np.testing.assert_array_equal(out, x.T + x.T)
        numbers = NUMBERS_AS_ELEMENTS(x.T, out)
        np.testing.assert_array_equal(numbers, (np.arange(x.size) % 101).reshape(shape))


@pytest.mark.parametrize("dtype", ["int8", *in_soak("uint16", "float16")])
@pytest.mark.parametrize("shape", [(130, 8301), *in_soak((67, 16_803), (259, 8194))])
def test_long_rows_between_words_with_one_again_and_again(dtype: str, shape: tuple[int, int]) -> None:
    for row_start, start, out_start in ((0, 0, 0), (1, 2, 3), (3, 0, 5)):
        row, x = flat_view(shape[1:], dtype, row_start, 1), flat_view(shape, dtype, start, 2)
        room = np.zeros(x.size + 32, dtype)
        out = room[16 + out_start : 16 + out_start + x.size].reshape(shape)
        for left, right in ((x, row), (row, x), (x[:, :1], row), (row, row)):
            elementwise.ADD(left, right, out)
            np.testing.assert_array_equal(out, np.broadcast_to(left + right, shape))
            assert not room[: 16 + out_start].any()
            assert not room[16 + out_start + x.size :].any()
        ADD_TO(row, out)
        np.testing.assert_array_equal(out, np.broadcast_to(row + row + row, shape))
        numbers = NUMBERS_AS_ELEMENTS(row, out)
        np.testing.assert_array_equal(numbers, (np.arange(x.size) % 101).reshape(shape))


@pytest.mark.parametrize("dtype", ["int8", "float32", *in_soak("float16", "float64", "complex128")])
@pytest.mark.parametrize(
    "axes",
    [
        ((23, 7, 5, 9, 11), (4, 1, 3, 0, 2)),
        ((7, 31, 67), (0, 2, 1)),
        *in_soak(((23, 7, 5, 9, 11), (4, 3, 2, 1, 0)), ((41, 7, 5, 17, 33), (2, 4, 0, 3, 1))),
    ],
    ids=str,
)
def test_permuted_axes_of_odd_sides(dtype: str, axes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    shape, order = axes
    turned = tuple(shape[axis] for axis in order)
    y, elsewhere = values(turned, dtype, 2), values(turned[::-1], dtype, 3).T
    numbers = np.arange(y.size).reshape(turned) % 5
    for x_start, out_start in ((0, 0), (1, 0), (3, 5)):
        x = flat_view(shape, dtype, x_start % (16 // np.dtype(dtype).itemsize), 1).transpose(order)
        room = np.zeros(x.size + 64, dtype)
        out = room[32 + out_start : 32 + out_start + x.size].reshape(turned)
        for other in (y, elsewhere, y[:1], y[..., :1]):
            NUMBERED(x, other, out)
            np.testing.assert_array_equal(out, x + other + numbers.astype(dtype))
        ADD_TO(x, out)
        np.testing.assert_array_equal(out, x + (x + y[..., :1] + numbers.astype(dtype)))
        assert not room[: 32 + out_start].any()
        assert not room[32 + out_start + x.size :].any()


def test_permuted_axes_of_many_operands() -> None:
    order = (4, 1, 3, 0, 2)
    each = [values((23, 7, 5, 9, 11), "i1", seed).transpose(order) for seed in range(4)]
    total = gs.ElementwiseKernel("T x, T y, T z, T v", "T w", "w = x + y + z + v", "total_of_four")
    np.testing.assert_array_equal(total(*each, np.zeros(each[0].shape, "i1")), sum(each))


@pytest.mark.parametrize("dtypes", [("int8", "float32"), ("float64", "int8"), ("int16", "float64")])
def test_permuted_axes_of_several_dtypes(dtypes: tuple[str, str]) -> None:
    shape, order = (23, 7, 5, 9, 11), (4, 1, 3, 0, 2)
    x = values(shape, dtypes[0], 1).transpose(order)
    y = values(x.shape[::-1], dtypes[1], 2).T
    z, w = np.zeros(x.shape, dtypes[0]), np.zeros(x.shape, dtypes[1])
    BOTH(x, y, z, w)
    np.testing.assert_array_equal(z, x)
    np.testing.assert_array_equal(w, y)


@pytest.mark.parametrize(
    "dtypes", [("int8", "float64"), ("float64", "int8"), ("float16", "int8"), ("int32", "int16")]
)
def test_tiles_of_several_dtypes_and_outputs(dtypes: tuple[str, str]) -> None:
    x, y = values((130, 70), dtypes[0], 1), values((70, 130), dtypes[1], 2)
    z, w = np.zeros((70, 130), dtypes[0]), np.zeros((130, 70), dtypes[1])
    BOTH(x.T, y, z, w.T)
    np.testing.assert_array_equal(z, x.T)
    np.testing.assert_array_equal(w.T, y)
    np.testing.assert_array_equal(elementwise.ADD(x[::-1].T, x.T[:, ::-1]), x[::-1].T + x[::-1].T)


def test_tiles_of_many_operands() -> None:
    each = [values((90, 70), "f4", seed) for seed in range(8)]
    text = " + ".join(f"x{k}" for k in range(8))
    total = gs.ElementwiseKernel(
        ", ".join(f"T x{k}" for k in range(8)), "T y", f"y = {text}", "total_of_many"
    )
    for turned in (1, 3, 7):
        of = [x.T if k < turned else x.reshape(70, 90) for k, x in enumerate(each)]
        np.testing.assert_array_equal(total(*of, np.zeros((70, 90), "f4")), sum(of))


@pytest.mark.parametrize("dtype", ["int8", *in_soak("float16", "float32", "float64", "complex128")])
@pytest.mark.parametrize("rows", [3, 16, *in_soak(2, 7)])
def test_strips(dtype: str, rows: int) -> None:
    """Arrays of which a short axis is the innermost one."""
    count = 1200 + rows % 16
    for x_start, y_start, out_start in ((0, 0, 0), (1, 0, 2), (0, 3, 1)):
        x, y = flat_view((count, rows), dtype, x_start, 1), flat_view((rows, count), dtype, y_start, 2)
        out, back = (
            flat_view((rows, count), dtype, out_start, 3),
            flat_view((count, rows), dtype, out_start, 3),
        )
        elementwise.ADD(x.T, y, out)
        np.testing.assert_array_equal(out, x.T + y)
        elementwise.ADD(x, y.T, back)
        np.testing.assert_array_equal(back, x + y.T)
        np.testing.assert_array_equal(elementwise.ADD(x[:, :1], x), x[:, :1] + x)
        np.testing.assert_array_equal(elementwise.ADD(x, x[:1]), x + x[:1])
        if rows > 2:
            np.testing.assert_array_equal(elementwise.ADD(x[:, :-1].T, y[1:]), x[:, :-1].T + y[1:])
            elementwise.ADD(x[:, 1:], y[:-1].T, back[:, 1:])
            np.testing.assert_array_equal(back[:, 1:], x[:, 1:] + y[:-1].T)
            np.testing.assert_array_equal(back[:, :1], x[:, :1] + y[:1].T)


@pytest.mark.parametrize("dtype", ["int8", "uint16", *in_soak("float16", "float32", "float64", "complex64")])
@pytest.mark.parametrize(
    "shape", [(8611, 3), (2100, 20), *in_soak((5003, 2), (2100, 12), (2100, 33), (1500, 64))]
)
def test_short_rows_and_lines(dtype: str, shape: tuple[int, int]) -> None:
    for x_start, y_start, out_start in ((0, 0, 0), (1, 2, 3), (3, 0, 1)):
        rows, lines = flat_view(shape, dtype, x_start, 1), flat_view(shape[::-1], dtype, y_start, 2)
        for x, y in ((rows, lines), (lines, rows)):
            room = np.zeros(x.size + 32, dtype)
            out = room[16 + out_start : 16 + out_start + x.size].reshape(y.shape)
            other = flat_view(y.shape, dtype, 1, 3)
            elementwise.ADD(x.T, y, out)
            np.testing.assert_array_equal(out, x.T + y)
            ADD_TO(x.T, out)
            np.testing.assert_array_equal(out, x.T + y + x.T)
            BOTH(x.T, y, out, other)
            np.testing.assert_array_equal(out, x.T)
            np.testing.assert_array_equal(other, y)
            assert not room[: 16 + out_start].any()
            assert not room[16 + out_start + x.size :].any()
            numbers = NUMBERS_AS_ELEMENTS(x.T, out)
            np.testing.assert_array_equal(numbers, (np.arange(x.size) % 101).reshape(y.shape))


@pytest.mark.parametrize(
    "dtypes",
    [
        ("int8", "float32", "float32"),
        ("float64", "int8", "float32"),
        *in_soak(
            ("float32", "int16", "int8"), ("int8", "float64", "int16"), ("float16", "float32", "float16")
        ),
    ],
)
@pytest.mark.parametrize("shape", [(3001, 3), *in_soak((2100, 20))])
def test_short_rows_and_lines_of_several_dtypes(dtypes: tuple[str, ...], shape: tuple[int, int]) -> None:
    for start in (0, 1):
        rows, lines = flat_view(shape, dtypes[0], start, 1), flat_view(shape[::-1], dtypes[0], start, 2)
        for x in (rows, lines):
            y, turned = flat_view(x.T.shape, dtypes[1], 1, 3), flat_view(x.shape, dtypes[1], 0, 4).T
            room = np.zeros(x.size + 32, dtypes[2])
            out = room[16 + start : 16 + start + x.size].reshape(y.shape)
            for other in (y, turned):
                MIXED_SUM(x.T, other, out)
                np.testing.assert_array_equal(out, (x.T + other).astype(dtypes[2]))
            assert not room[: 16 + start].any()
            assert not room[16 + start + x.size :].any()


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("rows", [3, 20])
def test_short_rows_and_lines_with_one_that_is_repeated(dtype: str, rows: int) -> None:
    for shape in ((rows, 4001), (4001, rows)):
        x = values(shape, dtype, 1)
        for other in (values((shape[1], 1), dtype, 2), values((1, shape[0]), dtype, 3)):
            expected = x.T + other + (np.arange(x.size) % 5).astype(dtype).reshape(shape[::-1])
            np.testing.assert_array_equal(NUMBERED(x.T, other), expected)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_strips_of_several_planes(dtype: str) -> None:
    x, y = values((3, 301, 5), dtype, 1), values((3, 5, 301), dtype, 2)
    np.testing.assert_array_equal(elementwise.ADD(x.transpose(0, 2, 1), y), x.transpose(0, 2, 1) + y)
    np.testing.assert_array_equal(elementwise.ADD(x, y.transpose(0, 2, 1)), x + y.transpose(0, 2, 1))
    numbers = gs.ElementwiseKernel("T x", "int64 k", "k = i", "numbers_of_strips")
    for each in (x.transpose(0, 2, 1), x.transpose(1, 0, 2), x.transpose(2, 1, 0)):
        np.testing.assert_array_equal(numbers(each).reshape(-1), np.arange(x.size))
    ADD_TO(x, y.transpose(0, 2, 1))
    np.testing.assert_array_equal(y.transpose(0, 2, 1), values((3, 5, 301), dtype, 2).transpose(0, 2, 1) + x)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32"])
def test_rows_with_broadcast_operands_and_steps(dtype: str) -> None:
    x, column, row = values((33, 67), dtype, 1), values((33, 1), dtype, 2), values((1, 67), dtype, 3)
    for each in (x, x[:, 1:], x[:, ::2], x[:, 1::2], x[:, ::-1], x[:, ::3]):
        np.testing.assert_array_equal(elementwise.ADD(each, column), each + column)
        np.testing.assert_array_equal(
            elementwise.ADD(each, row[:, : each.shape[1]]), each + row[:, : each.shape[1]]
        )
    np.testing.assert_array_equal(elementwise.ADD(column, row), column + row)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_long_rows_with_gaps_between_results(dtype: str) -> None:
    x, row = values((3, 5001), dtype, 1), values((1, 5001), dtype, 2)
    for gap in (2, -1):
        out = np.zeros((3, abs(gap) * 5001), dtype)
        NUMBERED(x, row, out[:, ::gap])
        expected = x + row + (np.arange(x.size) % 5).astype(dtype).reshape(x.shape)
        np.testing.assert_array_equal(out[:, ::gap], expected)
        assert gap == -1 or not out[:, 1::2].any()


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_a_row_that_is_read_for_several_while_it_is_in_the_cache(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = registry.get("cpu")
    limits = target.limits(0)._replace(attributes={"L2CacheSize": 1 << 12})
    monkeypatch.setattr(type(target), "limits", lambda self, device: limits)
    x, row = values((2, 3, 20_001), dtype, 1), values((2, 1, 20_001), dtype, 2)
    expected = x + row + (np.arange(x.size) % 5).astype(dtype).reshape(x.shape)
    np.testing.assert_array_equal(NUMBERED(x, np.broadcast_to(row, x.shape)), expected)


@pytest.mark.parametrize("dtype", ["int8", "float32", *in_soak("float16", "float64", "complex128")])
@pytest.mark.parametrize("shape", [(40, 3, 6, 5, 256), (70, 5, 64), (65, 9, 3, 128)])
def test_rows_of_whole_words_along_several_axes(dtype: str, shape: tuple[int, ...]) -> None:
    order = (*range(len(shape) - 1)[::-1], len(shape) - 1)
    x, y = (values(shape, dtype, seed).transpose(order) for seed in (1, 2))
    whole = np.zeros((x.shape[0] + 2, *x.shape[1:]), dtype)
    elementwise.ADD(x, y, whole[1:-1])
    np.testing.assert_array_equal(whole[1:-1], x + y)
    assert not whole[0].any()
    assert not whole[-1].any()
    ADD_TO(x[:, :1], whole[1:-1])
    np.testing.assert_array_equal(whole[1:-1], x + y + x[:, :1])
    numbers = gs.ElementwiseKernel("T x", "int64 k", "k = i", "numbers_of_even_rows")(x)
    np.testing.assert_array_equal(numbers.reshape(-1), np.arange(x.size))


@pytest.mark.parametrize("offset", range(5))
def test_rows_that_start_between_two_words(offset: int) -> None:
    whole = values((3, 101), "f4", 1)
    x, out = whole[:, offset:], np.zeros((3, 104), "f4")
    elementwise.ADD(x, x, out[:, 2 : 2 + x.shape[1]])
    np.testing.assert_array_equal(out[:, 2 : 2 + x.shape[1]], x + x)
    assert not out[:, :2].any()
    assert not out[:, 2 + x.shape[1] :].any()


@pytest.mark.parametrize("dtype", ["int8", "float32", "complex128"])
@pytest.mark.parametrize("offset", [0, 1, 3])
def test_pieces_of_long_rows(dtype: str, offset: int) -> None:
    x, out = values((3, 20_001), dtype, 1)[:, offset:], np.zeros((3, 20_010), dtype)
    column = values((3, 1), dtype, 2)
    elementwise.ADD(x, column, out[:, 2 : 2 + x.shape[1]])
    np.testing.assert_array_equal(out[:, 2 : 2 + x.shape[1]], x + column)
    assert not out[:, :2].any()
    assert not out[:, 2 + x.shape[1] :].any()


@pytest.mark.parametrize("dtype", ["int8", *in_soak("float16", "float32", "complex128")])
@pytest.mark.parametrize("row", [3, *in_soak(2, 7, 24)])
def test_short_rows_one_after_another(dtype: str, row: int) -> None:
    rows = 9000 // row
    x, wide = (
        flat_view((rows, row), dtype, 1 % (16 // np.dtype(dtype).itemsize), 1),
        values((rows, row + 1), dtype, 2),
    )
    for other in (x[:, :1], x[:1], wide[:, 1:], wide[:, :-1]):
        np.testing.assert_array_equal(elementwise.ADD(x, other), x + other)
    room = np.zeros(x.size + 9, dtype)
    out = room[3 : 3 + x.size].reshape(x.shape)
    elementwise.ADD(wide[:, 1:], x[:, :1], out)
    np.testing.assert_array_equal(out, wide[:, 1:] + x[:, :1])
    assert not room[:3].any()
    assert not room[3 + x.size :].any()
    numbers = gs.ElementwiseKernel("T x", "int64 k", "k = i", "numbers_of_short_rows")(wide[:, 1:])
    np.testing.assert_array_equal(numbers.reshape(-1), np.arange(x.size))
    planes = values((3, rows + 1, row), dtype, 3)[:, 1:]
    np.testing.assert_array_equal(elementwise.ADD(planes, x[:, :1]), planes + x[:, :1])


@pytest.mark.parametrize("dtypes", [("float32", "float32"), ("int8", "float64"), ("complex64", "int16")])
@pytest.mark.parametrize("starts", [(0, 0), (1, 0), (0, 1), (2, 3)])
def test_outputs_that_start_anywhere(dtypes: tuple[str, str], starts: tuple[int, int]) -> None:
    for shape in ((2, 10_001), (40, 131)):
        x, y = (values(shape, dtype, seed) for seed, dtype in enumerate(dtypes))
        rooms = [np.full((shape[0], shape[1] + 5), 77, dtype) for dtype in dtypes]
        z, w = (room[:, start : start + shape[1]] for room, start in zip(rooms, starts, strict=True))
        BOTH(x, y, z, w)
        ADD_TO(x, z)
        np.testing.assert_array_equal(z, x + x)
        np.testing.assert_array_equal(w, y)
        for room, start in zip(rooms, starts, strict=True):
            assert (room[:, :start] == 77).all()
            assert (room[:, start + shape[1] :] == 77).all()


@pytest.mark.parametrize("dtype", ["int8", "float16", *in_soak("float32", "complex128")])
@pytest.mark.parametrize("row", [17, 63, *in_soak(255)])
def test_rows_that_begin_anywhere_one_after_another(dtype: str, row: int) -> None:
    shape = (4, 3, 9000 // row, row)
    for x_start, out_start in ((0, 0), (1, 0), (3, 1)):
        x = flat_view(shape, dtype, x_start % (16 // np.dtype(dtype).itemsize), 1).transpose(1, 2, 0, 3)
        x = x.transpose(2, 0, 1, 3)[:, ::-1]
        room = np.zeros(x.size + 32, dtype)
        out = room[16 + out_start : 16 + out_start + x.size].reshape(x.shape)
        for other in (
            values(x.shape, dtype, 2),
            values((row,), dtype, 3),
            values((*x.shape[:-1], 1), dtype, 4),
        ):
            NUMBERED(x, other, out)
            numbers = np.arange(x.size).reshape(x.shape) % 5
            np.testing.assert_array_equal(out, x + other + numbers.astype(dtype))
        assert not room[: 16 + out_start].any()
        assert not room[16 + out_start + x.size :].any()


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_short_rows_with_steps(dtype: str) -> None:
    pixels = values((3001, 4), dtype, 1)
    for each in (pixels[:, ::-1], pixels[:, :3], pixels[:, ::2], pixels[:, 2::-1], pixels[:, :3][:, ::-1]):
        expected = each + (np.arange(each.size) % 5).astype(dtype).reshape(each.shape)
        np.testing.assert_array_equal(NUMBERED(each, np.zeros_like(each)), expected)


@pytest.mark.parametrize("dtype", ["int8", *in_soak("float16", "float32", "float64")])
def test_rows_that_are_repeated_and_rows_backwards(dtype: str) -> None:
    for shape in ((3, 20_001), (40, 131)):
        for x_start, row_start in ((0, 1), (1, 4), (2, 3), (3, 5)):
            x = flat_view(shape, dtype, x_start % (16 // np.dtype(dtype).itemsize), 1)
            row = flat_view(shape[1:], dtype, row_start % (16 // np.dtype(dtype).itemsize), 2)
            np.testing.assert_array_equal(elementwise.ADD(x, row), x + row)
            np.testing.assert_array_equal(elementwise.ADD(row, x[:, :1]), row + x[:, :1])
            np.testing.assert_array_equal(elementwise.ADD(x[::-1, ::-1], x), x[::-1, ::-1] + x)
            np.testing.assert_array_equal(elementwise.ADD(row[::-1], 1), row[::-1] + np.dtype(dtype).type(1))


@pytest.mark.parametrize("shape", [(20_011,), (129, 131), (5000, 3), (3, 5000), (8, 65, 66)])
def test_parts_of_large_folds(shape: tuple[int, ...]) -> None:
    x: Any = values(shape, "f4", 1)
    for axis in (None, *range(len(shape))):
        np.testing.assert_array_equal(reduction.TOTAL(x, axis=axis), x.sum(axis, dtype="f8").astype("f4"))
    mean, variance = reduction.MOMENTS(x)
    np.testing.assert_allclose(
        [float(mean), float(variance)], [x.mean(dtype="f8"), x.var(dtype="f8")], rtol=1e-10
    )


def test_many_shapes_compile_a_few_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    elementwise.test_a_thousand_shapes_and_twelve_layouts_compile_a_few_texts(np, monkeypatch)


def test_strides_that_reach_far() -> None:
    elementwise.check_far_strides(np)


def test_numbers_of_elements_are_wide_only_where_there_are_that_many() -> None:
    """Rows are counted in 32 bits, and indices divided by multiplying, unless there are 2**31."""
    limits = registry.get("cpu").limits(0)
    for rows, is_wide in ((2**31 - 1, False), (2**31, True)):
        walked = Walked(0, 1, (1, 32), (), True)
        walk = ElementWalk((16, rows), (1, 16), (walked._replace(written=False), walked))
        loop = writers.BlockLoops().elementwise(walk, limits)
        assert ("unsigned long long" in loop.name) is is_wide, loop.name
        count, ndim, wide = struct.unpack_from("<qii", axes_bytes(rows, (rows, 1), 4))
        assert (count, ndim, bool(wide)) == (rows, 2, is_wide)


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
@pytest.mark.parametrize("side", [16384, 16371])
def test_elements_that_rows_repeat_are_not_turned(side: int, itemsize: int) -> None:
    """An outer product and a column beside a square are rows, of which packets are stored as they are read."""
    limits = registry.get("cpu").limits(0)
    column, row, square = (
        Walked(0, itemsize, (x * itemsize, y * itemsize)) for x, y in ((0, 1), (1, 0), (1, side))
    )
    for inputs in ((column, row), (square, column), (square, row)):
        walk = ElementWalk((side, side), (1, side), (*inputs, square._replace(written=True)))
        loop = writers.BlockLoops().elementwise(walk, limits)
        assert loop.name.startswith(("long_rows<true>", "repeated_rows<")), loop.name


def test_raw_and_empty() -> None:
    np.testing.assert_array_equal(
        gs.ElementwiseKernel("", "raw float64 y", "y[i] = i", "raw_only")(size=5), np.arange(5.0)
    )
    assert float(reduction.TOTAL(np.zeros((0,), "f4"))) == 0


@pytest.mark.parametrize("shape", [(16, 16, 0), (0, 300), (300, 0, 3), (0, 2, 512), (512, 0, 512)])
def test_folds_of_nothing(shape: tuple[int, ...]) -> None:
    x: Any = np.zeros(shape, "f4")
    across = np.broadcast_to(np.ones(shape[-1], "f4"), shape)
    for operand in (x, x.T, across, across.T):
        for axis in (None, *range(len(shape)), (0, 1)):
            np.testing.assert_array_equal(reduction.TOTAL(operand, axis=axis), operand.sum(axis, dtype="f4"))


@pytest.mark.parametrize("bins", [44, 46, 126])
def test_large_structures_are_folded(bins: int) -> None:
    check_most_frequent(np, bins)


#: Sums in small numbers, which lose what does not fit, and sizes: texts to which another type would make a difference.
SMALL_SUMS = {
    "assigned": ("plus(a, b)", "__device__ Sum plus(Sum a, Sum b) { a.x += b.x; return a; }"),
    "cast": ("Sum{T(a.x + b.x), 0}", ""),
    "by a macro": ("PLUS", "#define PLUS Sum{T(a.x + b.x), 0}"),
    "by its size": ("a", ""),
}


@pytest.mark.parametrize("dtype", ["int8", "float16", *in_soak("uint8", "int16", "uint16")])
def test_small_numbers_are_widened_only_where_that_makes_no_difference(dtype: str) -> None:
    largest = 1 if dtype == "float16" else 2  # sums of halves are exact, those of integers are not
    x = np.random.default_rng(1).integers(-1, largest, (3, 20_000), endpoint=True).astype(dtype)
    for axis in (0, 1):
        np.testing.assert_array_equal(LOWEST(x, axis=axis), np.argmin(x, axis))
    declared = "enum T : int" if x.dtype.kind in "iu" else "as_float<float16> T"
    assert declared in LOWEST.cached_codes[np.dtype(dtype),]
    for name, (reduce_expr, preamble) in SMALL_SUMS.items():
        kernel = gs.ReductionKernel(
            "T x", "T y, int32 size", "Sum{x, sizeof(T)}" if "size" in name else "Sum{x, 0}", reduce_expr,
            "y = a.x; size = a.size", None, "small_sum", reduce_type="Sum",
            preamble=f"struct Sum {{ T x; int size; }};\n{preamble}",
        )  # fmt: skip
        total, size = kernel(x, axis=1)
        if "size" in name:
            np.testing.assert_array_equal(size, x.itemsize)
        else:
            np.testing.assert_array_equal(total, x.sum(1, dtype=dtype), err_msg=name)
        assert not re.search("enum T|as_float", kernel.cached_code), name


def test_what_was_refused_with_wider_numbers_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither for another layout nor in another run."""
    target, seen = registry.get("cpu"), []
    compile_ = target.compile

    def counted(program: Any, arch: str) -> Any:
        seen.append(program.text)
        return compile_(program, arch)

    monkeypatch.setattr(target, "compile", counted)
    x = np.ones((3, 20_000), np.int8)

    def compiled(axis: int) -> list[bool]:
        """Return for each text that was compiled whether its numbers were wider."""
        kernel = gs.ReductionKernel(
            "T x", "T y", "Sum{x, 0}", "plus(a, b)", "y = a.x", None, "refused_sum", reduce_type="Sum",
            preamble="""struct Sum { T x; int size; };
            __device__ Sum plus(Sum a, Sum b) { a.x += b.x; return a; }""",
        )  # fmt: skip
        seen.clear()
        np.testing.assert_array_equal(kernel(x, axis=axis), x.sum(axis, dtype=np.int8))
        return ["enum T" in text for text in seen]

    assert compiled(axis=1) == [True, False]
    assert compiled(axis=0) == [False]
    functions.forget_programs()
    assert compiled(axis=1) == []
    functions.forget_programs()
    monkeypatch.setenv("GRIDSTRIDE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("GRIDSTRIDE_FORBID_COMPILATION", "1")
    with pytest.raises(CompileError, match="forbidden"):
        compiled(axis=1)
    monkeypatch.delenv("GRIDSTRIDE_FORBID_COMPILATION")
    assert compiled(axis=1) == [True, False]
