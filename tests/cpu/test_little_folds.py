"""The loop for folds that read little, which any layout can take."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride.targets import registry
from gridstride.targets.block_loops import writers
from gridstride.targets.walks import FoldWalk, Walked
from tests.array_values import values
from tests.cpu.test_block_loops import flat_view, forget_calls, in_soak

TOTAL = gs.ReductionKernel("T x", "int64 y", "x", "a + b", "y = a", "0", "total_of_little")
LOWEST = gs.ReductionKernel(
    "T x", "int64 y", "Lowest{x, _J}", "a.x < b.x || (a.x == b.x && a.at < b.at) ? a : b", "y = a.at", None,
    "lowest_of_little", reduce_type="Lowest", preamble="struct Lowest { T x; long long at; };",
)  # fmt: skip
#: The number of the heaviest element, its place and its weight.
HEAVIEST = gs.ReductionKernel(
    "T x, U weight", "int64 number, int64 place, U kept", "heavy{x * weight, i, _J, weight}",
    "a.x > b.x || (a.x == b.x && a.place < b.place) ? a : b", "number = a.number; place = a.place; kept = a.weight",
    None, "heaviest", "heavy", preamble="struct heavy { double x; long long number, place; U weight; };",
)  # fmt: skip
SHAPES = [
    (7, 5, 9),
    (1, 40, 3),
    (64, 1, 130),
    (3, 300, 17),
    (2, 3, 1025),
    *in_soak((33, 35, 37), (1000, 2, 5)),
]


@pytest.fixture(autouse=True)
def _block_loops(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(type(registry.get("cpu")), "writers", None)
    forget_calls(sys.modules[__name__])
    yield
    forget_calls(sys.modules[__name__])


@pytest.mark.parametrize("dtype", ["int8", "float32", *in_soak("float16", "int16", "float64")])
@pytest.mark.parametrize("shape", SHAPES)
def test_any_layout(shape: tuple[int, ...], dtype: str) -> None:
    whole: Any = values(shape, dtype, 1) % 7
    shifted = flat_view(shape, dtype, 1, 2)
    for x in (whole, whole.T, whole[:, ::-1], whole[..., ::2], shifted, np.broadcast_to(whole[:1], shape)):
        for axis in (None, 0, 1, 2, (0, 2), (0, 1), (1, 2)):
            expected = x.astype("i8").sum(axis)
            np.testing.assert_array_equal(TOTAL(x, axis=axis), expected)
        for axis in (0, 1, 2):
            np.testing.assert_array_equal(LOWEST(x, axis=axis), x.argmin(axis))


@pytest.mark.parametrize("shape", [(3, 5, 7), (2, 300, 61), (700, 2, 9), (1, 1, 90_001)])
def test_numbers_and_places_of_several_inputs(shape: tuple[int, ...]) -> None:
    draw = np.random.default_rng(1)
    whole = draw.integers(-100, 100, shape).astype("f4")
    for x in (whole, whole.T, whole[::-1, ..., ::-1], whole[:, 1:, ::2]):
        if not x.size:
            continue
        weight = draw.integers(1, 5, x.shape[1:]).astype("f8")
        numbers = np.arange(x.size).reshape(x.shape)
        for axes in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
            lines, of_lines, weights = (
                np.moveaxis(each, axes, range(len(axes))).reshape(-1, *np.delete(x.shape, axes))
                for each in (x * weight, numbers, np.broadcast_to(weight, x.shape))
            )
            number, place, kept = HEAVIEST(x, weight, axis=axes)
            expected = lines.argmax(0)
            np.testing.assert_array_equal(place, expected)
            np.testing.assert_array_equal(number, np.take_along_axis(of_lines, expected[None], 0)[0])
            np.testing.assert_array_equal(kept, np.take_along_axis(weights, expected[None], 0)[0])


def test_results_lie_anywhere() -> None:
    x = values((30, 20, 10), "int16", 1)
    totals = np.zeros((10, 30), "i8").T[::-1, ::1]
    TOTAL(x, totals, axis=1)
    np.testing.assert_array_equal(totals, x.sum(1))


def test_one_loop_whatever_the_layout() -> None:
    limits = registry.get("cpu").limits(0)._replace(multiprocessors=132)
    loops = []
    for kept, fold in (((6, 5), (7,)), ((6,), (7, 5)), ((700,), (9,)), ((3,), (70_000,)), ((70_000,), (3,))):
        for step, fold_step in ((4, 4 * kept[0]), (4 * fold[0], 4)):
            strides = tuple(step * 10**axis for axis in range(len(kept)))
            fold_strides = tuple(fold_step * 10**axis for axis in range(len(fold)))
            zeros = (0,) * len(kept)
            x = Walked(0, 4, strides, fold_strides)
            for in_structures in (False, True):
                walk = FoldWalk(
                    kept, fold, strides, fold_strides, (0,) * len(fold), zeros, (x,), (), in_structures
                )
                loops.append(writers.BlockLoops().reduction(walk, limits))
    assert len({loop.name for loop in loops}) == 1
    assert loops[0].name.startswith("fold_little")
    assert {loop.parts > 1 for loop in loops} == {False, True}
