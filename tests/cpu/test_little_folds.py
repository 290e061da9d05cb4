"""The loop for any fold of few elements, run on the CPU target, and when it is taken."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride.targets import registry
from gridstride.targets.block_loops import writers
from gridstride.targets.block_loops.fold_little import fold_little
from gridstride.targets.walks import FoldLoop, FoldWalk, Walked

WEIGHED = gs.ReductionKernel(
    "T x", "int64 y", "x * (i % 7 + 1) + 3 * _J", "a + b", "y = a", "0", "weighed_by_numbers_and_places"
)
DEVICE = registry.get("cpu").limits(0)._replace(multiprocessors=132)


def weighed(x: np.ndarray[Any, Any], axes: tuple[int, ...]) -> Any:
    numbers = np.arange(x.size).reshape(x.shape)
    places = np.arange(np.prod([x.shape[axis] for axis in axes])).reshape(
        [length if axis in axes else 1 for axis, length in enumerate(x.shape)]
    )
    return (x.astype(np.int64) * (numbers % 7 + 1) + 3 * places).sum(axes)


@pytest.mark.parametrize(
    "shape", [(5, 7, 9), (60, 1, 41), (200, 33, 4), (3, 5, 2, 7, 4), (1000, 33), (8, 4000)]
)
def test_numbers_and_places_along_any_axes(
    block_folds: list[FoldLoop], monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]
) -> None:
    monkeypatch.setattr(writers, "is_small", lambda walk: False)
    monkeypatch.setattr(writers, "fold_little", lambda walk, limits: fold_little(walk, DEVICE))
    x = np.random.default_rng(1).integers(-9, 9, shape, "i4")
    for view in (x, x.T, x[::2], x[..., ::-1], x[:, ::2]):
        for count in range(1, x.ndim + 1):
            for axes in combinations(range(x.ndim), count):
                np.testing.assert_array_equal(WEIGHED(view, axis=axes), weighed(view, axes))
    assert {loop.name for loop in block_folds} == {"fold_little<4>"}
    assert {loop.parts > 1 for loop in block_folds} == {False, True} or x.size < 10_000


def rows(
    kept: int, folded: int, itemsize: int, address: int = 0, step: int | None = None, **more: Any
) -> FoldWalk:
    step = folded * itemsize if step is None else step
    inputs = (Walked(address, itemsize, (step,), (itemsize,)),)
    outputs = (Walked(0, 8, (8,), written=True),)
    return FoldWalk((kept,), (folded,), (folded,), (1,), (1,), (1,), inputs, outputs, **more)


@pytest.mark.parametrize(
    ("walk", "is_little"),
    [
        (rows(1 << 14, 512, 4), True),
        (rows(1 << 14, 513, 4), False),
        (rows(1 << 12, 512, 4), True),
        (rows(1 << 12, 516, 4), False),
        (rows(1 << 12, 513, 4), True),
        (rows(1 << 12, 516, 4, address=4), True),
        (rows(1 << 12, 1032, 2), False),
        (rows(1 << 12, 2064, 1), False),
        (rows(1 << 10, 2064, 1, in_structures=True), True),
        (rows(1 << 10, 4112, 1, in_structures=True), False),
        (rows(0, 512, 4), False),
        (rows(1 << 12, 511, 4, step=0), True),
        (rows(1 << 14, 256, 4, step=0), False),
        (rows(1, 1 << 21, 4, step=0), True),
    ],
)
def test_what_is_little(walk: FoldWalk, is_little: bool) -> None:
    assert writers.reads_little(walk) is is_little


@pytest.mark.parametrize(
    ("walk", "sharing", "parts"),
    [
        (rows(1, 1 << 20, 4), 256, 512),
        (rows(300, 32, 4), 8, 1),
        (rows(1 << 19, 16, 4), 2, 1),
        (rows(1 << 17, 64, 4), 4, 1),
        (rows(1 << 13, 1000, 4), 32, 1),
    ],
)
def test_how_many_threads_share_a_result(walk: FoldWalk, sharing: int, parts: int) -> None:
    loop = fold_little(walk, DEVICE)
    assert (loop.configuration.grid[0] * 256 // walk.kept[0] or 256, loop.parts) == (sharing, parts)
