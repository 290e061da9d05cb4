"""The loops for blocks of threads, which GPUs have, run on the CPU target: the same texts, without a GPU.

Folds are in test_block_folds.py.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride import _native
from gridstride._array_pipeline import choosing, launching
from gridstride.targets import registry
from gridstride.targets.base import Limits
from gridstride.targets.block_loops import flat_rows, fold_narrow, fold_short, writers
from gridstride.targets.walks import ElementWalk, Loop, Walked, axes_bytes
from tests.array_values import values
from tests.crosses import in_soak, in_turns, pairs_in_soak
from tests.every_target import test_elementwise as elementwise
from tests.every_target import test_permuted_axes as permuted_axes
from tests.every_target import test_random_array_calls as random_calls
from tests.every_target import test_reduction as reduction
from tests.own_loops import own_loop
from tests.random_arrays import Draw, compare_examples

BOTH = gs.ElementwiseKernel("T x, U y", "T z, U w", "z = x; w = y", "both_of_two")
NUMBERS_AS_ELEMENTS = gs.ElementwiseKernel("T x", "T y", "y = T(i % 101)", "numbers_as_elements")
ADD_TO = gs.ElementwiseKernel("T x", "T y", "y += x", "add_to")
MIXED_SUM = gs.ElementwiseKernel("A x, B y", "C z", "z = C(x + y)", "mixed_sum")
LESS = gs.ElementwiseKernel("T x, U y", "bool z", "z = x < y", "less_than")
NEIGHBORS = gs.ElementwiseKernel(
    "T x, T left, T right, T up, T down",
    "T z",
    "z = left + right + up + down - T(4) * x + T(i % 5)",
    "neighbors",
)
AFFINE = gs.ElementwiseKernel("T x, T s, T b", "T z", "z = s * x + b + T(i % 5)", "affine")
NUMBERED_COPY = gs.ElementwiseKernel("T x", "T z", "z = x + T(i % 5)", "numbered_copy")
OF_THREE = gs.ElementwiseKernel("T x, T y, T w", "T z", "z = x + y + w + T(i % 5)", "of_three")
NUMBERED = gs.ElementwiseKernel("T x, T y", "T z", "z = x + y + T(i % 5)", "numbered_sum")


@pytest.fixture(autouse=True)
def _block_loops(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(type(registry.get("cpu")), "writers", None)
    monkeypatch.setattr(launching, "chosen_loop", own_loop)
    forget_calls()
    yield
    forget_calls()


def forget_calls(*modules: ModuleType) -> None:
    """Let the next calls choose their loops anew, also those of the kernels of modules."""
    for module in (elementwise, reduction, random_calls, sys.modules[__name__], *modules):
        for kernel in vars(module).values():
            if isinstance(kernel, gs.ElementwiseKernel | gs.ReductionKernel):
                kernel._known.clear()
    _native.targets_forgotten()


@contextmanager
def taken_loops(monkeypatch: pytest.MonkeyPatch, chooser: str, module: ModuleType) -> Iterator[list[str]]:
    """Let calls take loops for blocks of threads; yield the names of those that one of the writers' functions made.

    They are chosen as on two multiprocessors, however many cores there are.
    """
    names: list[str] = []
    choose = getattr(writers, chooser)

    def chosen(*args: Any) -> Any:
        loop = choose(*(arg._replace(multiprocessors=2) if isinstance(arg, Limits) else arg for arg in args))
        names.extend([] if loop is None else [loop.name])
        return loop

    monkeypatch.setattr(writers, chooser, chosen)
    monkeypatch.setattr(type(registry.get("cpu")), "writers", None)
    monkeypatch.setattr(launching, "chosen_loop", own_loop)
    forget_calls(module)
    yield names
    forget_calls(module)


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
    monkeypatch.setattr(fold_short, "_MANY", 1)
    monkeypatch.setattr(fold_narrow, "_MANY", 1)
    compare_examples(check_loops_for_many, 150, np, check)


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


@pytest.mark.parametrize(
    ("shape", "dtype"),
    in_turns([(270, 301), (1001, 70)], ["int8", "uint16"], others=["float16"])
    + pairs_in_soak([(259, 547), (64, 1000), (300, 17)], ["int8", "uint16", "float16"]),
)
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


@pytest.mark.parametrize(
    ("axes", "dtype"),
    in_turns(
        [((23, 7, 5, 9, 11), (4, 1, 3, 0, 2)), ((7, 31, 67), (0, 2, 1))],
        ["int8", "float32"],
        others=["float16", "float64", "complex128"],
    )
    + pairs_in_soak(
        [((23, 7, 5, 9, 11), (4, 3, 2, 1, 0)), ((41, 7, 5, 17, 33), (2, 4, 0, 3, 1))],
        ["int8", "float32", "float16", "float64", "complex128"],
    ),
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


@pytest.mark.parametrize("dtype", ["int8", *in_soak("float16", "float32", "float64")])
def test_permuted_axes_in_large_tiles(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_calls(permuted_axes)
    permuted_axes.test_large_tiles(np, dtype, monkeypatch)
    forget_calls(permuted_axes)


def test_permuted_axes_in_large_tiles_of_sectors(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_calls(permuted_axes)
    permuted_axes.test_large_tiles_of_sectors(np, "int8", monkeypatch)
    forget_calls(permuted_axes)


def test_permuted_axes_of_many_operands() -> None:
    order = (4, 1, 3, 0, 2)
    each = [values((23, 7, 5, 9, 11), "i1", seed).transpose(order) for seed in range(4)]
    total = gs.ElementwiseKernel("T x, T y, T z, T v", "T w", "w = x + y + z + v", "total_of_four")
    np.testing.assert_array_equal(total(*each, np.zeros(each[0].shape, "i1")), sum(each))


@pytest.mark.parametrize("dtypes", [("int16", "float32"), *in_soak(("float64", "int8"), ("int8", "float32"))])
def test_permuted_axes_of_several_turned_dtypes(dtypes: tuple[str, str]) -> None:
    for first, second in (dtypes, dtypes[::-1]):
        x, y = (values((31, 9, 10, 11), dtype, 1).transpose(2, 3, 1, 0) for dtype in (first, second))
        copies = BOTH(x, y)
        np.testing.assert_array_equal(copies[0], x)
        np.testing.assert_array_equal(copies[1], y)


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


@pytest.mark.parametrize(
    "dtypes", [("float32", "float32", "int8"), *in_soak(("float16", "float32", "float16"))]
)
def test_uneven_tiles_of_smaller_results(dtypes: tuple[str, str, str]) -> None:
    x, y, out = (
        values((333, 201), dtypes[0], 1),
        values((201, 333), dtypes[1], 2),
        np.zeros((201, 333), dtypes[2]),
    )
    MIXED_SUM(x.T, y, out)
    np.testing.assert_array_equal(out, (x.T + y).astype(dtypes[2]))


@pytest.mark.parametrize("size", [3, 11, *in_soak(5, 6, 7, 9, 12, 13)])
def test_tiles_of_structures_of_any_size(size: int) -> None:
    dtype = np.dtype([("k", "i1"), ("rest", "u1", (size - 1,))])
    join = gs.ElementwiseKernel("P p, P q", "P r", "r = p; r.k = q.k", "join_of_sizes")
    for shape, order in (((130, 70), (1, 0)), ((7, 16, 17, 2), (3, 2, 1, 0)), ((33, 35, 90), (0, 2, 1))):
        x = np.frombuffer(values((int(np.prod(shape)) * size,), "u1", 1).tobytes(), dtype).reshape(shape)
        turned = x.transpose(order)
        y = np.zeros(turned.shape, dtype)
        y["k"] = values(turned.shape, "i1", 2)
        expected, back = turned.copy(), y.copy()
        expected["k"], back["k"] = y["k"], turned["k"]
        np.testing.assert_array_equal(join(turned, y), expected)
        np.testing.assert_array_equal(join(y, turned), back)


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


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        *in_turns([(8611, 3), (2100, 21)], ["int8", "uint16", "float16", "float32", "float64", "complex64"]),
        *pairs_in_soak(
            [(5003, 2), (2100, 12), (2100, 20), (2100, 33), (1500, 64)],
            ["int8", "uint16", "float16", "float32", "float64", "complex64"],
        ),
    ],
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
        ("float64", "int8", "float32"),
        *in_soak(
            ("int8", "float32", "float32"),
            ("float32", "int16", "int8"),
            ("int8", "float64", "int16"),
            ("float16", "float32", "float16"),
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
@pytest.mark.parametrize("rows", [3, 21])
def test_short_rows_and_lines_with_one_that_is_repeated(dtype: str, rows: int) -> None:
    for shape in ((rows, 4001), (4001, rows)):
        x = values(shape, dtype, 1)
        for other in (values((shape[1], 1), dtype, 2), values((1, shape[0]), dtype, 3)):
            expected = x.T + other + (np.arange(x.size) % 5).astype(dtype).reshape(shape[::-1])
            np.testing.assert_array_equal(NUMBERED(x.T, other), expected)


@pytest.mark.parametrize("dtype", ["int8", *in_soak("float32")])
def test_strips_of_several_planes(dtype: str) -> None:
    x, y = values((3, 301, 5), dtype, 1), values((3, 5, 301), dtype, 2)
    np.testing.assert_array_equal(elementwise.ADD(x.transpose(0, 2, 1), y), x.transpose(0, 2, 1) + y)
    np.testing.assert_array_equal(elementwise.ADD(x, y.transpose(0, 2, 1)), x + y.transpose(0, 2, 1))
    numbers = gs.ElementwiseKernel("T x", "int64 k", "k = i", "numbers_of_strips")
    for each in (x.transpose(0, 2, 1), x.transpose(1, 0, 2), x.transpose(2, 1, 0)):
        np.testing.assert_array_equal(numbers(each).reshape(-1), np.arange(x.size))
    ADD_TO(x, y.transpose(0, 2, 1))
    np.testing.assert_array_equal(y.transpose(0, 2, 1), values((3, 5, 301), dtype, 2).transpose(0, 2, 1) + x)


@pytest.mark.parametrize("dtype", ["int8", *in_soak("float16", "float32")])
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


@pytest.mark.parametrize("dtype", ["int8", "float32", "complex128"])
@pytest.mark.parametrize("row", [3, 5, 99])
def test_short_rows_with_gaps_between_them(dtype: str, row: int) -> None:
    x, other = values((2, 600, row), dtype, 1), values((600, 1), dtype, 2)
    expected = x + other + (np.arange(x.size) % 5).astype(dtype).reshape(x.shape)
    for step in (1, 2):
        room = np.zeros((2, 601, row * 2 + 3), dtype)
        for out in (room[:, :-1, 1 : 1 + row * step : step], room[:, :-1, row * step - step :: -step]):
            out = out[..., :row]
            NUMBERED(x, other, out)
            np.testing.assert_array_equal(out, expected)
            out[...] = 0
        assert not room.any()


@pytest.mark.parametrize(
    ("itemsize", "row", "apart", "name"),
    [(1, 3, 4, "striped_rows<3, 4, 1>"), (1, 4, 5, "striped_rows<1, 8, 1>"), (4, 99, 100, "striped_rows<1, 8, 1>"),
     (4, 48, 64, "rows<"), (4, 999, 1000, "rows<")],
)  # fmt: skip
def test_short_rows_are_striped_where_gaps_cut_sectors(
    itemsize: int, row: int, apart: int, name: str
) -> None:
    operands = [Walked(0, itemsize, (itemsize, each * itemsize), (), each == apart) for each in (row, apart)]
    limits = registry.get("cpu").limits(0)._replace(multiprocessors=132)
    loop = writers.BlockLoops().elementwise(ElementWalk((row, 1 << 20), (1, row), tuple(operands)), limits)
    assert loop.name.startswith(name), loop.name


@pytest.mark.parametrize(("step", "gaps"), [(2, 2), (-1, 0)])
def test_only_sectors_with_gaps_are_fetched(step: int, gaps: int) -> None:
    operands = Walked(0, 4, (4,)), Walked(0, 4, (4 * step,), (), True)
    limits = registry.get("cpu").limits(0)._replace(multiprocessors=132)
    loop = writers.BlockLoops().elementwise(ElementWalk((1 << 20,), (1,), operands), limits)
    assert loop.name == f"striped_rows<1, 8, {gaps}>"


@pytest.mark.parametrize(
    ("itemsize", "step", "length"),
    [(4, 2, 4), (4, 3, 4), (4, 5, 2), (4, 8, 1), (4, -8, 1), (8, 4, 2), (8, 5, 1), (16, 9, 1),
     (2, 4, 8), (2, 8, 2), (2, 99, 2), (1, 2, 16), (1, 4, 4), (1, 99, 4)],
)  # fmt: skip
def test_elements_far_apart_are_gathered_by_few_sectors(itemsize: int, step: int, length: int) -> None:
    operands = Walked(0, itemsize, (step * itemsize,)), Walked(0, itemsize, (itemsize,), (), True)
    limits = registry.get("cpu").limits(0)._replace(multiprocessors=132)
    loop = writers.BlockLoops().elementwise(ElementWalk((1 << 26,), (1,), operands), limits)
    assert loop.name == f"long_rows<{length}, false>"


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32"])
def test_elements_far_apart(dtype: str) -> None:
    room, row = values((3, 9 * 2503), dtype, 1), values((1, 2503), dtype, 2)
    for x in (room[:, ::9], room[:, 8::-9], room[:, ::9][:, :9]):
        np.testing.assert_array_equal(elementwise.ADD(x, row[:, : x.shape[1]]), x + row[:, : x.shape[1]])


def neighbors(x: Any) -> tuple[Any, ...]:
    """Return the inner elements of the last two axes, and those before and behind each along either."""
    inner, before, behind = slice(1, -1), slice(None, -2), slice(2, None)
    places = (inner, inner), (inner, before), (inner, behind), (before, inner), (behind, inner)
    return tuple(x[..., row, column] for row, column in places)


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(39, 303), (3, 8, 66), (2, 3, 6, 131)])
@pytest.mark.parametrize("has_gaps", [False, True])
def test_neighbors_of_elements(
    dtype: str, shape: tuple[int, ...], has_gaps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = values(shape, dtype, 1)
    inner, *around = operands = neighbors(x)
    numbers = (np.arange(inner.size).reshape(inner.shape) % 5).astype(dtype)
    room = np.full(shape if has_gaps else inner.shape, 77, dtype)
    out = neighbors(room)[0] if has_gaps else room
    with taken_loops(monkeypatch, "stacked_rows", sys.modules[__name__]) as names:
        NEIGHBORS(*operands, out)
    assert names == ["stacked_rows<4>"]
    np.testing.assert_allclose(out, sum(around) - 4 * inner + numbers, rtol=1e-2)
    assert (room == 77).sum() >= room.size - out.size


@pytest.mark.parametrize(
    ("itemsize", "row", "apart", "is_stacked"),
    [(4, 64, 4, True), (8, 8000, 8, True), (1, 8000, 1, False), (4, 63, 4, False), (4, 8000, 1 << 33, False)],
)
def test_rows_are_stacked_where_inputs_are_neighbors(
    itemsize: int, row: int, apart: int, is_stacked: bool
) -> None:
    pitch = (row + 2) * itemsize
    inputs = [Walked((1 << 20) + each * apart, itemsize, (itemsize, pitch)) for each in range(3)]
    out = Walked(1 << 19, itemsize, (itemsize, row * itemsize), (), True)
    limits = registry.get("cpu").limits(0)._replace(multiprocessors=132)
    for some, expected in ((inputs, is_stacked), (inputs[:2], False)):
        loop = writers.BlockLoops().elementwise(ElementWalk((row, 100), (1, row), (*some, out)), limits)
        assert (loop.name == "stacked_rows<4>") is expected, loop.name


@pytest.mark.parametrize("dtype", ["int8", "float16", *in_soak("float32", "float64"), "complex128"])
@pytest.mark.parametrize("side", [16, *in_soak(33), 70])
def test_arrays_along_three_axes(dtype: str, side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = values((side, side, side), dtype, 1)
    with taken_loops(monkeypatch, "cubes", sys.modules[__name__]) as names:
        result = OF_THREE(x, x.transpose(1, 2, 0), x.transpose(2, 0, 1))
    assert names[0].startswith("cubes<"), names
    numbers = (np.arange(x.size).reshape(x.shape) % 5).astype(dtype)
    np.testing.assert_allclose(result, x + x.transpose(1, 2, 0) + x.transpose(2, 0, 1) + numbers, rtol=1e-2)


@pytest.mark.parametrize("dtype", ["int8", "float16", *in_soak("float32", "float64", "complex128")])
@pytest.mark.parametrize("shape", [(999, 10, 5), (333, 100, 7), *in_soak((97, 17, 225)), (501, 12, 9)])
def test_boxes_beside_factors_of_channels(
    dtype: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, factor, summand = values(shape, dtype, 1), values(shape[1:2], dtype, 2), values(shape[1:2], dtype, 3)
    with taken_loops(monkeypatch, "turned_tiles", sys.modules[__name__]) as names:
        out = np.zeros((shape[0], shape[2], shape[1]), dtype)
        AFFINE(x.transpose(0, 2, 1), factor, summand, out)
    assert names[0].endswith(", 1, 2, 3, 0>"), names
    numbers = (np.arange(out.size).reshape(out.shape) % 5).astype(dtype)
    expected = factor * x.transpose(0, 2, 1) + summand + numbers
    np.testing.assert_allclose(out, expected, rtol=1e-2, atol=2e-2)


@pytest.mark.parametrize("dtype", ["int8", "float16", *in_soak("float32", "complex128")])
@pytest.mark.parametrize("parts", [2, 3, 4, 7])
@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("start", [0, 1])
def test_short_rows_that_are_repeated_each_some_times(dtype: str, parts: int, times: int, start: int) -> None:
    pixels = values((5, 1, 2400, 1, parts), dtype, 1)
    shape = 5, times, 2400, times, parts
    room = np.zeros(start + np.prod(shape), dtype)
    out = room[start:].reshape(shape)
    NUMBERED_COPY(pixels, out)
    numbers = (np.arange(out.size).reshape(shape) % 5).astype(dtype)
    np.testing.assert_array_equal(out, pixels + numbers)
    out = np.zeros(shape, dtype).transpose(1, 0, 3, 2, 4)  # of which numbers go another way
    NUMBERED_COPY(pixels.transpose(1, 0, 3, 2, 4), out)
    numbers = (np.arange(out.size).reshape(out.shape) % 5).astype(dtype)
    np.testing.assert_array_equal(out, pixels.transpose(1, 0, 3, 2, 4) + numbers)


def test_arrays_along_three_of_several_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    x, column = values((3, 20, 40, 35), "float32", 1), values((40, 1), "float32", 2)
    y = values((3, 20, 35, 40), "float32", 3).transpose(0, 1, 3, 2)
    w = values((40, 3, 35, 20), "float32", 4).transpose(1, 3, 0, 2)
    numbers = (np.arange(x.size).reshape(x.shape) % 5).astype("f4")
    with taken_loops(monkeypatch, "cubes", sys.modules[__name__]) as names:
        for first in (x, column):
            np.testing.assert_allclose(OF_THREE(first, y, w), first + y + w + numbers, rtol=1e-6)
    assert [name.partition("<")[0] for name in names] == ["cubes"] * 2


@pytest.mark.parametrize("gap", [1, 2])
def test_bytes_of_words_keep_their_neighbors(gap: int) -> None:
    pixels, out = values((2000, 4 - gap), "int8", 1), np.full((2000, 4), 77, "int8")
    elementwise.COPY(pixels, out[:, gap:])
    np.testing.assert_array_equal(out[:, gap:], pixels)
    assert (out[:, :gap] == 77).all()


@pytest.mark.parametrize("dtypes", [("int8", "int8"), ("float64", "float32"), *in_soak(("float32", "int8"))])
def test_comparisons(dtypes: tuple[str, str]) -> None:
    for shape in ((70, 333), (9000, 20), (40_000, 3)):
        x, y = values(shape, dtypes[0], 1), values(shape, dtypes[1], 2)
        for other in (y, y[:1], y[:, :1]):
            np.testing.assert_array_equal(LESS(x, other), x < other)
            room = np.zeros(x.size + 32, bool)
            out = room[17 : 17 + x.size].reshape(shape)
            LESS(x, other, out)
            np.testing.assert_array_equal(out, x < other)
            assert not room[:17].any()
            assert not room[17 + x.size :].any()


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


@pytest.mark.parametrize(
    ("shape", "dtype"),
    in_turns(
        [(40, 3, 6, 5, 256), (70, 5, 64), (65, 9, 3, 128)],
        ["int8", "float32"],
        others=["float16", "float64", "complex128"],
    ),
)
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


@pytest.mark.parametrize(
    ("starts", "dtypes"),
    in_turns(
        [(0, 0), (1, 0), (0, 1), (2, 3)],
        [("float32", "float32"), ("int8", "float64"), ("complex64", "int16")],
    ),
)
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


@pytest.mark.parametrize(
    ("row", "dtype"), in_turns([3, 20], ["int8", "float32"], others=["uint16", "float16", "complex64"])
)
def test_many_short_rows_with_a_row_and_a_column(dtype: str, row: int) -> None:
    count = 600_000 // row
    for x_start, out_start in ((0, 0), (1, 3)):
        x, column = flat_view((count, row), dtype, x_start, 1), flat_view((count, 1), dtype, 3, 2)
        room = np.zeros(x.size + 32, dtype)
        out = room[16 + out_start : 16 + out_start + x.size].reshape(x.shape)
        numbers = (np.arange(x.size) % 5).astype(dtype).reshape(x.shape)
        for left, right in ((x, column), (x, x[5:6]), (column, x[5:6])):
            NUMBERED(left, right, out)
            np.testing.assert_array_equal(out, left + right + numbers)
        assert not room[: 16 + out_start].any()
        assert not room[16 + out_start + x.size :].any()


@pytest.mark.parametrize(
    ("shape", "dtype"),
    in_turns(
        [(700, 5, 33), (500, 5, 7)],
        ["int8", "float32"],
        others=["uint16", "float16", "complex64"],
    )
    + pairs_in_soak(
        [(60, 3, 4, 50), (9, 40, 24), (900, 8, 8)], ["int8", "float32", "uint16", "float16", "complex64"]
    ),
)
def test_rows_of_several_axes_with_inputs_that_are_repeated(
    monkeypatch: pytest.MonkeyPatch, dtype: str, shape: tuple[int, ...]
) -> None:
    monkeypatch.setattr(flat_rows, "_LEAST_BLOCKS", 0)
    for x_start, out_start in ((0, 0), (1, 3)):
        x = flat_view(shape, dtype, x_start, 1)
        room = np.zeros(x.size + 32, dtype)
        out = room[16 + out_start : 16 + out_start + x.size].reshape(x.shape)
        numbers = (np.arange(x.size) % 5).astype(dtype).reshape(x.shape)
        for axes in range(1 << len(shape)):
            repeated = tuple(1 if axes >> k & 1 else length for k, length in enumerate(shape))
            other, few = flat_view(repeated, dtype, 3, 2), flat_view(shape[-1:], dtype, 1, 4)
            for left, right in ((x, other), (few, other)):
                NUMBERED(left, right, out)
                np.testing.assert_array_equal(out, left + right + numbers)
        assert not room[: 16 + out_start].any()
        assert not room[16 + out_start + x.size :].any()


@pytest.mark.parametrize(("start", "dtype"), in_turns([0, 1, 3], ["int8", "uint8"]))
def test_pixels_of_bytes(dtype: str, start: int) -> None:
    pixels = 110_003
    x = flat_view((pixels, 4), dtype, start, 1)
    room = np.zeros(pixels * 4 + 32, dtype)
    for view in (
        x[:, :3],
        x[:, 2::-1],
        x[:, ::-1],
        x[::-1, :3],
        x.ravel()[: pixels * 3].reshape(pixels, 3)[:, ::-1],
    ):
        out = room[16 + start : 16 + start + view.size].reshape(view.shape)
        numbers = (np.arange(view.size) % 5).astype(dtype).reshape(view.shape)
        for other in (view, view[7:8], view[:, :1]):
            NUMBERED(view, other, out)
            np.testing.assert_array_equal(out, view + other + numbers)
    assert not room[: 16 + start].any()
    assert not room[16 + start + pixels * 4 :].any()


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("shape", [(300, 64, 3), (200, 3, 100, 3), (300, 65, 3)])
def test_pixels_of_bytes_along_lines_backwards(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], start: int
) -> None:
    monkeypatch.setattr(flat_rows, "_LEAST_BLOCKS", 0)
    x = flat_view(shape, "uint8", 1, 1)
    room = np.zeros(x.size + 32, "uint8")
    out = room[16 + start : 16 + start + x.size].reshape(shape)
    numbers = (np.arange(x.size) % 5).astype("uint8").reshape(shape)
    for view in (x[..., ::-1, :], x[..., ::-1, ::-1], x[:, ::-1, ..., ::-1]):
        NUMBERED(view, x, out)
        np.testing.assert_array_equal(out, view + x + numbers)
    assert not room[: 16 + start].any()
    assert not room[16 + start + x.size :].any()


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
            for step in (2, -2):
                np.testing.assert_array_equal(
                    elementwise.ADD(x[:, ::step], row[::2]), x[:, ::step] + row[::2]
                )


def test_many_shapes_compile_a_few_texts(loaded_texts: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "chosen_loop", choosing.chosen_loop)
    elementwise.test_a_thousand_shapes_and_twelve_layouts_compile_a_few_texts(np, loaded_texts, 64, "int8")


def test_strides_that_reach_far() -> None:
    elementwise.check_far_strides(np)


def test_numbers_of_elements_are_wide_only_where_there_are_that_many() -> None:
    """Rows are counted in 32 bits, and indices divided by multiplying, unless there are 2**31."""
    limits = registry.get("cpu").limits(0)
    for rows, is_wide in ((2**31 - 1, False), (2**31, True)):
        walked = Walked(0, 1, (1, 64), (), True)
        walk = ElementWalk((32, rows // 2), (1, 32), (walked._replace(written=False), walked))
        loop = writers.BlockLoops().elementwise(walk, limits)
        assert ("unsigned long long" in loop.name) is is_wide, loop.name
        count, ndim, wide = struct.unpack_from("<qii", axes_bytes(rows, (rows, 1), 4))
        assert (count, ndim, bool(wide)) == (rows, 2, is_wide)


@pytest.mark.parametrize(("rows", "name"), [(2**31 - 1, "striped_rows<"), (2**31, "rows<unsigned long long")])
def test_blocks_are_as_many_as_a_grid_has(rows: int, name: str) -> None:
    walked = Walked(0, 1, (1, 5, 321), (), True)
    walk = ElementWalk((3, 64, rows), (1, 3, 192), (walked,))
    loop = writers.BlockLoops().elementwise(walk, registry.get("cpu").limits(0))
    assert loop.name.startswith(name)
    assert loop.configuration.grid[0] < 2**31


def test_few_rows_with_gaps_do_not_leave_blocks_idle() -> None:
    """Bytes in pairs of which eight are far from each other where they are read: a block would have sixteen bytes."""
    read, written = Walked(0, 1, (1, 26214400, 2, 8192)), Walked(0, 1, (1, 2, 16, 65536), (), True)
    walk = ElementWalk((2, 8, 4096, 3200), (1, 2, 16, 65536), (read, written))
    loop = writers.BlockLoops().elementwise(walk, registry.get("cpu").limits(0))
    assert loop.configuration.grid[0] * loop.configuration.threads <= 2 * 8 * 4096 * 3200, loop.name


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
        assert re.match(r"long_rows<\d+, true>|repeated_rows<", loop.name), loop.name


def _loop(shape: tuple[int, ...], *inputs: tuple[int, ...], itemsize: int) -> str:
    """Return the loop for inputs whose other axes are repeated, and contiguous results."""

    def walked(lengths: tuple[int, ...], written: bool = False) -> Walked:
        strides, reached = [], itemsize
        for length in reversed(lengths):
            strides.append(reached if length > 1 else 0)
            reached *= length
        return Walked(0, itemsize, tuple(strides), (), written)

    walk = ElementWalk(
        shape[::-1], (0,) * len(shape), (*(walked(each) for each in inputs), walked(shape, True))
    )
    limits = registry.get("cpu").limits(0)._replace(multiprocessors=132)
    return writers.BlockLoops().elementwise(walk, limits).name


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
def test_what_is_repeated_beside_rows_of_whole_words_is_brought_once(itemsize: int) -> None:
    n = 1 << 20
    for shape, *inputs in (
        ((n, 64), (n, 1), (1, 64)), ((n // 4, 64, 64), (n // 4, 64, 1), (n // 4, 1, 64)), ((n, 33), (n, 1), (1, 33)),
        ((n, 33), (n, 33), (n, 1)), ((n, 64, 49), (n, 64, 49), (1, 64, 1)), ((n, 10, 77), (n, 10, 77), (n, 1, 77)),
    ):  # fmt: skip
        if itemsize * shape[-1] % 16 or itemsize < 4 or len(inputs[0]) != len(shape):
            name = _loop(shape, *inputs, itemsize=itemsize)
            assert name.startswith("flat_rows<"), (shape, inputs, name)
    for shape in ((n, 8, 8), (n, 5, 7), (n, 50, 10)):  # rows shorter than packets of bytes
        assert _loop(shape, (n, shape[1], 1), (n, 1, shape[2]), itemsize=itemsize).startswith("flat_rows<")
    assert re.match("rows<|long_rows<", _loop((n, 4096), (n, 4096), (1, 4096), itemsize=itemsize))
    assert _loop((n, 64, 64), (n, 64, 64), (n, 1, 64), itemsize=itemsize).startswith("even_rows<")


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize(("shape", "order"), [((160, 170), (1, 0)), ((60, 70, 3), (1, 0, 2))])
def test_turned_arrays_take_the_same_loop_whichever_way_they_lie(
    monkeypatch: pytest.MonkeyPatch, dtype: str, shape: tuple[int, ...], order: tuple[int, ...]
) -> None:
    names = set()
    chosen = writers.BlockLoops.elementwise

    def recorded(self: writers.BlockLoops, walk: ElementWalk, limits: Limits) -> Loop:
        loop = chosen(self, walk, limits)
        names.add(loop.name)
        return loop

    monkeypatch.setattr(writers.BlockLoops, "elementwise", recorded)
    x = values(shape, dtype, 1)
    for each in (x, x[::-1], x[:, ::-1], x[::-1, ::-1]):
        out = np.zeros(tuple(shape[axis] for axis in order), dtype)
        elementwise.COPY(each.transpose(order), out)
        np.testing.assert_array_equal(out, each.transpose(order))
    assert len(names) == 1, names


def test_raw_and_empty() -> None:
    np.testing.assert_array_equal(
        gs.ElementwiseKernel("", "raw float64 y", "y[i] = i", "raw_only")(size=5), np.arange(5.0)
    )
    assert float(reduction.TOTAL(np.zeros((0,), "f4"))) == 0


def test_calls_without_elements_of_arrays() -> None:
    x, out = np.arange(9.0), np.zeros(9)
    gs.ElementwiseKernel("raw T x", "raw T y", "y[n - 1 - i] = x[i]", "scattered")(x, out, size=9)
    np.testing.assert_array_equal(out, x[::-1])
    np.testing.assert_array_equal(
        gs.ElementwiseKernel("", "raw float64 y", "y[i] = 1", "ones")(size=2), [1, 1]
    )
    assert reduction.DOT(3, 2, 1) == 6
