"""The two loops for folds that read little, which any layout can take."""

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


def test_few_loops_whatever_the_layout() -> None:
    limits = registry.get("cpu").limits(0)
    names = set()
    for kept, fold in (((6, 5), (7,)), ((6,), (7, 5)), ((700,), (9,)), ((3,), (70_000,)), ((70_000,), (3,))):
        for step, fold_step in ((4, 4 * kept[0]), (4 * fold[0], 4)):
            strides = tuple(step * 10**axis for axis in range(len(kept)))
            fold_strides = tuple(fold_step * 10**axis for axis in range(len(fold)))
            zeros = (0,) * len(kept)
            x = Walked(0, 4, strides, fold_strides)
            walk = FoldWalk(kept, fold, strides, fold_strides, (0,) * len(fold), zeros, (x,), ())
            loop = writers.BlockLoops().reduction(walk, limits)
            names.add(loop.name.split("<")[0])
    assert names == {"fold_rows", "fold_across"}
