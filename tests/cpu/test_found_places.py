"""The places of extremes that loops for blocks of threads look for in packets and columns, run on the CPU target."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from gridstride.targets.walks import FoldLoop
from tests.crosses import in_turns, pairs_in_soak
from tests.every_target.test_places import expected, kernel

pytestmark = pytest.mark.usefixtures("block_folds", "folds_of_much")

#: By loops: along lines, in short rows by a thread each and several, in rows of several axes, across rows, in planes.
SHAPES: dict[str, list[tuple[tuple[int, ...], Any]]] = {
    "fold_long_lines": [((3, 5003), 1), ((2, 70_003), 1)],
    "fold_lines": [((3, 700), 1), ((4, 131), 1)],
    "fold_short": [((4099, 33), 1), ((4099, 150), 1)],
    "fold_rows": [((9, 7, 301), (0, 2)), ((5, 6, 7, 18), (0, 3)), ((9, 7, 3, 16), (0, 2, 3))],
    "fold_few_rows": [((9, 1008), 0), ((5, 333), 0)],
    "fold_narrow": [((5003, 13), 0), ((4099, 16), 0)],
    "fold_planes": [((40, 90, 3), 1), ((50, 7, 9, 11), (1, 3))],
    "fold_boxes": [((64, 9, 40), (0, 2))],
    "fold_stacked": [((2, 301, 21, 13), (1, 3))],
}
#: One loop for each way of looking: along lines, in rows of several axes, across narrow and wide ones; and the others.
WAYS = ("fold_lines", "fold_rows", "fold_narrow", "fold_boxes")
OTHERS = [loop for loop in SHAPES if loop not in WAYS]
KINDS = [
    ("int16", "argmax", "first"),
    ("float16", "argmin", "last"),
    ("float32", "argmax", "last"),
    ("int8", "argmax", "first"),
    ("uint16", "argmin", "last"),
    ("float16", "argmax", "first"),
    ("int64", "argmin", "last"),
    ("float64", "argmin", "first"),
    ("uint8", "argmin", "last"),
]
ZEROS = list(product(["float16", "float32", "float64"], ["first", "last"]))


def check(x: np.ndarray[Any, Any], kept: str, side: str, axis: Any) -> None:
    axes = axis if isinstance(axis, tuple) else (axis,)
    lines = np.moveaxis(x, axes, range(len(axes)))
    lines = lines.reshape(-1, *lines.shape[len(axes) :])
    wanted = expected(lines, kept, side, 0)
    place, value = kernel(kept, side)(x, axis=axis)
    np.testing.assert_array_equal(place, wanted)
    element = np.take_along_axis(lines, wanted[None], 0)[0]
    np.testing.assert_array_equal(value, element)
    if value.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(value), np.signbit(element))


@pytest.mark.parametrize(("loop", "kind"), in_turns(SHAPES, KINDS))
def test_places(block_folds: list[FoldLoop], loop: str, kind: tuple[str, str, str]) -> None:
    dtype, kept, side = kind
    draw = np.random.default_rng(1)
    limits = np.iinfo("int8" if np.dtype(dtype).kind == "f" else dtype)
    lowest, highest = int(limits.min), int(limits.max)
    for shape, axis in SHAPES[loop]:
        # Any numbers, a few of them, and nothing but the extremes: what is of another row would be better, or as good.
        for low, high in ((lowest, highest), (0, 2), (lowest, lowest), (highest, highest)):
            for start in (0, 1):
                flat = draw.integers(low, high, math.prod(shape) + 8, endpoint=True, dtype="i8").astype(dtype)
                x = flat[start : start + math.prod(shape)].reshape(shape)
                for each in (x, x[::-1, ..., ::-1], x[..., 1:]):
                    check(each, kept, side, axis)
    assert any(each.name.startswith(loop) for each in block_folds)


@pytest.mark.parametrize(
    ("loop", "dtype", "shape", "axis", "order"),
    [
        ("fold_planes", "float32", (20, 8, 6, 5, 9), (1, 3), (4, 3, 2, 1, 0)),
        ("fold_rows", "float16", (20, 8, 6, 5, 9), (1, 3), (0, 2, 3, 4, 1)),
        ("fold_rows", "int8", (40, 64, 7, 7), (0, 2, 3), (3, 2, 1, 0)),
    ],
)
def test_places_of_axes_in_another_order(
    block_folds: list[FoldLoop],
    loop: str,
    dtype: str,
    shape: tuple[int, ...],
    axis: tuple[int, ...],
    order: tuple[int, ...],
) -> None:
    """Places count along the axes as they are given, also where memory has them in another order."""
    lying = np.random.default_rng(2).integers(0, 40, [shape[k] for k in order]).astype(dtype)
    x = lying.transpose(np.argsort(order))
    for view in (x, x[:, ::-1]):
        check(view, "argmax", "first", axis)
        check(view, "argmin", "last", axis)
    assert any(each.name.startswith(loop) for each in block_folds)


@pytest.mark.parametrize(
    ("loop", "kind"),
    in_turns(WAYS, ZEROS) + pairs_in_soak(OTHERS, ZEROS),
)
def test_places_of_infinities_and_zeros(
    block_folds: list[FoldLoop], loop: str, kind: tuple[str, str]
) -> None:
    dtype, side = kind
    for shape, axis in SHAPES[loop]:
        x = np.full(shape, -np.inf, dtype)
        check(x, "argmax", side, axis)
        check(-x, "argmin", side, axis)
        # One zero is no larger than the other, but it is kept as it is.
        x = np.full(shape, -0.0, dtype)
        x.reshape(-1)[1::2] = 0
        for kept in ("argmax", "argmin"):
            check(x, kept, side, axis)


@pytest.mark.parametrize(("loop", "dtype"), in_turns(SHAPES, ["float16", "float32"]))
def test_what_is_no_number_has_a_place(block_folds: list[FoldLoop], loop: str, dtype: str) -> None:
    for shape, axis in SHAPES[loop]:
        place, value = kernel("argmax", "first")(np.full(shape, np.nan, dtype), axis=axis)
        axes = axis if isinstance(axis, tuple) else (axis,)
        assert 0 <= place.min() <= place.max() < math.prod(shape[each] for each in axes)
        assert np.isnan(value).all()
