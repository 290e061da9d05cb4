"""Reductions of which some of the innermost axes are folded and others kept, in blocks of short rows."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from tests.array_values import values
from tests.crosses import in_turns
from tests.every_target.test_places import kernel
from tests.every_target.test_reduction import TOTAL

WIDE = gs.ReductionKernel("T x", "int64 y", "x", "a + b", "y = a", "0", "wide_mixed_total")
DOT = gs.ReductionKernel("T x, T y", "T z", "x * y", "a + b", "z = a", "0", "mixed_dot")
NUMBERED = gs.ReductionKernel(
    "T x", "int64 y", "x * ((i % 1009) + 7 * (_J % 13))", "a + b", "y = a", "0", "numbered"
)
COMPLEX = gs.ReductionKernel(
    "T x", "complex128 y", "complex<double>(x) * double(_J % 3)", "a + b", "y = a", "0", "complex_numbered"
)
#: Shapes and folded axes: whole blocks and pieces of them, rows that are folded as one and some left, several parts.
MIXED = [
    ((500, 5, 7), (0, 2)),
    ((77, 8, 6, 5, 9), (0, 2, 4)),
    ((20, 8, 6, 5, 9), (1, 3)),
    ((301, 8, 6, 5, 9), (0, 4)),
    ((40, 64, 7, 7), (0, 2, 3)),
    ((8, 16, 4, 16, 32), (0, 2, 4)),
    ((16, 6, 4, 16, 32), (1, 3)),
    ((13, 700, 11), 1),
    ((13, 700, 11), (0, 2)),
    ((20, 1200, 13), (0, 2)),
    ((30_001, 3), 0),
    ((5001, 17), 0),
    ((9, 2, 5, 1100), (0, 2)),
    ((4, 3, 2), (0, 2)),
    ((900, 5, 7), 1),
    ((901, 5, 3, 7), (1, 3)),
    ((300, 2, 2), 1),
    ((700, 6, 16), 1),
    ((100, 9, 30), 1),
    ((77, 3, 4, 2, 5), (1, 3)),
    ((50, 7, 9, 11), (1, 3)),
    ((51, 7, 9, 11), (1, 2)),
    ((70, 64, 3), 1),
    ((20, 31, 33), 1),
    ((90, 61, 2), 1),
    ((400, 3, 3), 1),
    ((400, 2, 3), 1),
    ((60, 49, 2, 100), (1, 3)),
]
#: How many axes the shapes have.
AXES = (2, 3, 4, 5)


def with_axes(count: int) -> list[tuple[tuple[int, ...], Any]]:
    return [(shape, axis) for shape, axis in MIXED if len(shape) == count]


def in_one_axis(x: Any, axis: Any) -> Any:
    axes = (axis,) if isinstance(axis, int) else axis
    moved = np.moveaxis(x, axes, range(-len(axes), 0))
    return moved.reshape(*moved.shape[: x.ndim - len(axes)], -1)


def test_no_shape_is_left() -> None:
    assert sum(len(with_axes(count)) for count in AXES) == len(MIXED)


@pytest.mark.parametrize(
    ("dtype", "axes"), in_turns(["int8", "float16", "float32", "float64", "complex64"], AXES, 2)
)
def test_sums(xp: ModuleType, dtype: str, axes: int) -> None:
    for shape, axis in with_axes(axes):
        x = values(shape, dtype, 1)
        for view in (x, x[::-1], x[..., 1:], np.asfortranarray(x)):
            total = WIDE if dtype == "int8" else TOTAL
            wide = {"int8": "int64", "float16": "float32"}.get(dtype, dtype)
            expected = view.sum(axis, dtype=wide)
            found = gs.asnumpy(total(xp.asarray(view), axis=axis))
            np.testing.assert_array_equal(found, expected.astype(found.dtype), str((shape, axis)))


@pytest.mark.parametrize(
    ("dtype", "kind"),
    in_turns(
        ["int8", "uint8", "float16", "float32", "float64"],
        [(*sought, axes) for sought in (("argmax", "first"), ("argmin", "last")) for axes in AXES],
        2,
    ),
)
def test_places(xp: ModuleType, dtype: str, kind: tuple[str, str, int]) -> None:
    kept, side, axes = kind
    find = kernel(kept, side)
    for shape, axis in with_axes(axes):
        x = np.random.default_rng(3).integers(0, 100, shape).astype(dtype)
        for view in (x, x[::-1], np.asfortranarray(x), x[..., 1:]):
            rows = in_one_axis(view, axis)
            wanted = getattr(rows, kept)(-1)
            if side == "last":
                wanted = rows.shape[-1] - 1 - getattr(rows[..., ::-1], kept)(-1)
            places, best = find(xp.asarray(view), axis=axis)
            np.testing.assert_array_equal(gs.asnumpy(places), wanted, str((shape, axis)))
            np.testing.assert_array_equal(
                gs.asnumpy(best), np.take_along_axis(rows, wanted[..., None], -1)[..., 0]
            )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_places_of_zeros_of_both_signs_and_of_infinities(xp: ModuleType, dtype: str) -> None:
    find = kernel("argmax", "first")
    x = np.random.default_rng(3).choice(np.array([0.0, -0.0, -1, -np.inf], dtype), (900, 5, 7))
    x[:100] = -np.inf
    places, best = find(xp.asarray(x), axis=1)
    np.testing.assert_array_equal(gs.asnumpy(places), x.argmax(1))
    expected = np.take_along_axis(x, x.argmax(1)[:, None], 1)[:, 0]
    np.testing.assert_array_equal(gs.asnumpy(best).view("u1"), expected.view("u1"))


def test_results_that_lie_apart(xp: ModuleType) -> None:
    for shape, axis in MIXED:
        x = values(shape, "float32", 1)
        expected = x.sum(axis)
        whole = xp.asarray(np.zeros((2, *expected.shape), "float32"))
        out = whole[0][..., ::-1] if expected.ndim == 1 or xp.__name__ == "numpy" else whole[0]
        TOTAL(xp.asarray(x), out, axis=axis)
        np.testing.assert_array_equal(gs.asnumpy(out), expected, str((shape, axis)))
        np.testing.assert_array_equal(gs.asnumpy(whole[1]), 0)


def test_numbers_of_elements_and_their_places(xp: ModuleType) -> None:
    for shape, axis in MIXED:
        x = np.random.default_rng(4).integers(-9, 9, shape)
        numbers = in_one_axis(np.arange(x.size).reshape(shape), axis)
        rows = in_one_axis(x, axis)
        expected = (rows * (numbers % 1009 + 7 * (np.arange(rows.shape[-1]) % 13))).sum(-1)
        np.testing.assert_array_equal(
            gs.asnumpy(NUMBERED(xp.asarray(x), axis=axis)), expected, str((shape, axis))
        )


def test_several_operands(xp: ModuleType) -> None:
    for shape, axis in MIXED:
        x, y = values(shape, "float64", 1), values(shape, "float64", 2)
        for other in (y, y[:1], np.asfortranarray(y)):
            found = gs.asnumpy(DOT(xp.asarray(x), xp.asarray(other), axis=axis))
            np.testing.assert_array_equal(found, (x * other).sum(axis), str((shape, axis)))


@pytest.mark.parametrize(("first", "axes"), in_turns(["all of them", "a repeated one"], AXES, 2))
def test_repeated_operands(xp: ModuleType, first: str, axes: int) -> None:
    others = {2: [((701, 40), 1), ((300, 5), 1), ((90, 200), 1)], 3: [((3, 250, 65), 2)]}
    for shape, axis in with_axes(axes) + others.get(axes, []):
        x, y = values(shape, "float32", 1), values(shape, "float32", 2)
        for k in range(len(shape)):
            one = (*[slice(None)] * k, slice(0, 1))
            alone = tuple(slice(None) if k == each else slice(0, 1) for each in range(len(shape)))
            for other in (y[one], y[alone], y[one][::-1, ..., ::-1]):
                operands = (x, other) if first == "all of them" else (other, x)
                found = gs.asnumpy(DOT(*map(xp.asarray, operands), axis=axis))
                np.testing.assert_array_equal(found, (x * other).sum(axis), str((shape, axis, other.shape)))


@pytest.mark.parametrize(
    ("dtype", "kept"),
    in_turns(
        ["int8", "int16", "uint16", "float16", "float32", "int32", "uint32", "float64", "int64", "uint64"],
        ["argmax", "argmin"],
    ),
)
def test_places_in_short_rows(xp: ModuleType, dtype: str, kept: str) -> None:
    draw = np.random.default_rng(5)
    for width in (2, 7, 8, 9, 16, 31, 32, 33, 48, 63, 64, 65, 255, 256, 257):
        x = draw.integers(0 if dtype.startswith("u") else -120, 120, (300, width + 3)).astype(dtype)
        for view in (x, x[:, 3:], x[:, :width], x[:, :width].copy(), x[::-1], x[:20]):
            places, _ = kernel(kept, "first")(xp.asarray(view), axis=1)
            np.testing.assert_array_equal(
                gs.asnumpy(places), getattr(view, kept)(1), str((width, view.strides))
            )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8"])
def test_places_of_extremes_in_short_rows(xp: ModuleType, dtype: str) -> None:
    low, high = (-np.inf, np.inf) if dtype.startswith("f") else (-128, 127)
    for width in (9, 33, 64, 100):
        for extreme, other in ((low, high), (high, low), (low, low)):
            x = np.full((200, width), extreme, dtype)
            x[:, width - 2] = other
            for kept in ("argmax", "argmin"):
                places, _ = kernel(kept, "first")(xp.asarray(x), axis=1)
                np.testing.assert_array_equal(gs.asnumpy(places), getattr(x, kept)(1))


def test_blocks_of_sums_much_larger_than_elements(xp: ModuleType) -> None:
    x = values((80, 64, 60), "int8", 1)
    places = np.arange(80 * 60).reshape(80, 1, 60) % 3
    result = gs.asnumpy(COMPLEX(xp.asarray(x), axis=(0, 2)))
    np.testing.assert_array_equal(result, (x.astype("float64") * places).sum((0, 2)))
