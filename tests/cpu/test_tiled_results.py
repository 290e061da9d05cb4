"""Folds whose results lie in another order than the inputs, which the CPU target folds by tiles of them."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import gridstride as gs
from gridstride.targets.cpu import tiled_results
from gridstride.targets.cpu.tiled_results import in_long_rows, in_tiles
from gridstride.targets.walks import FoldWalk, Walked
from tests.array_values import values
from tests.crosses import in_soak
from tests.every_target.test_places import kernel


def walk(inputs: tuple[int, ...], folded: int, outputs: tuple[int, ...] = (8192, 8)) -> FoldWalk:
    """Return the walk of 2048 times 1024 results."""
    return FoldWalk(
        (2048, 1024), (16,), (0, 0), (0,), (0,), (1024, 1), (Walked(0, 1, inputs, (folded,)),),
        (Walked(0, 8, outputs, (), True),), False,
    )  # fmt: skip


def test_rows_of_neighboring_results_are_folded_one_after_another() -> None:
    tiled = in_tiles(walk((16, 32768), 1))
    assert (tiled.kept, tiled.results) == ((64, 2048, 16), (1, 1024, 64))
    assert tiled.inputs[0].strides == (32768, 16, 64 * 32768)
    assert tiled.outputs[0].strides == (8, 8192, 64 * 8)


def test_tiles_of_rows_that_are_folded_across_are_as_long_as_lines() -> None:
    tiled = in_tiles(walk((1, 2048), 1 << 21))
    assert (tiled.kept, tiled.results) == ((64, 1024, 32), (1024, 1, 64 * 1024))


@pytest.mark.parametrize("outputs", [(8, 16384), (32, 2048 * 32)])
def test_results_that_lie_as_the_inputs_do(outputs: tuple[int, ...]) -> None:
    assert in_tiles(walk((16, 32768), 1, outputs)) == walk((16, 32768), 1, outputs)


def test_short_rows_of_inputs_give_way_to_longer_ones_of_results() -> None:
    """Of two neighbors in memory a row of two would be made, for every five elements that are folded."""
    short = FoldWalk(
        (2, 1000, 4099), (5,), (0, 0, 0), (0,), (0,), (1000, 1, 2000),
        (Walked(0, 1, (1, 2, 10000), (2000,)),), (Walked(0, 1, (1000, 1, 2000), (), True),), False,
    )  # fmt: skip
    tiled = in_tiles(short)
    assert (tiled.kept, tiled.results) == ((250, 2, 4099, 4), (1, 1000, 2000, 250))
    assert tiled.inputs[0].strides == (2, 1, 10000, 500)


@pytest.mark.parametrize(
    ("kept", "folded", "expected"),
    [
        ((2, 1 << 20), 1, (256, 2, 4096)), ((3, 1021, 5), 1, (1021, 3, 5)), ((3, 1021, 5), 128, (1021, 3, 5)),
        ((8, 1 << 20), 1, (8, 1 << 20)), ((7,), 1, (7,)), ((3, 15), 1, (3, 15)), ((3, 1021, 5), 129, (3, 1021, 5)),
    ],
    ids=str,
)  # fmt: skip
def test_rows_that_are_too_short_for_a_loop(
    kept: tuple[int, ...], folded: int, expected: tuple[int, ...]
) -> None:
    strides = tuple(np.cumprod((1, *kept))[: len(kept)].tolist())
    walk = FoldWalk(
        kept,
        (folded,),
        strides,
        (0,),
        (0,),
        strides,
        (Walked(0, 1, strides, (0,)),),
        (Walked(0, 1, strides, (), True),),
        False,
    )
    assert in_long_rows(walk).kept == expected


@pytest.mark.parametrize("dtype", ["int8", *in_soak("float16", "float32", "complex64")])
@pytest.mark.parametrize(
    "shape",
    [(7, 1024, 3), (9, 70, 3), *in_soak((19, 511, 4), (3, 5000, 1), (40, 100, 6), (5, 257, 3), (5, 65, 5))],
)
def test_many_short_rows_make_each_of_many_results(shape: tuple[int, ...], dtype: str) -> None:
    total = gs.ReductionKernel("T x", "complex128 y", "x", "a + b", "y = a", "0", "short_rows_in_batches")
    around = values((*shape[:2], shape[2] + 1), dtype, 1)
    for x in (around[..., :-1], np.ascontiguousarray(around[..., 1:]), around[..., ::-1]):
        np.testing.assert_allclose(total(x, axis=1), x.sum(1, dtype="c16"), 1e-12)


def test_values_of_short_rows() -> None:
    total = gs.ReductionKernel("T x", "float64 y", "x", "a + b", "y = a", "0", "short_rows_total")
    numbered = gs.ReductionKernel(
        "T x", "float64 y", "x * (i % 7)", "a + b", "y = a", "0", "short_rows_numbers"
    )
    for shape, seen in (
        ((200, 1, 4), lambda x: x[..., :3]), ((83, 1, 3), lambda x: x[..., ::2]),
        ((40, 9, 3, 2), lambda x: x.transpose(1, 3, 0, 2)),
        ((20, 5, 300, 2), lambda x: x.transpose(0, 3, 2, 1)), ((3, 40, 2, 7), lambda x: x[::-1, :, :, 1:]),
    ):  # fmt: skip
        x = seen(values(shape, "int8", 1))
        numbers = np.arange(x.size).reshape(x.shape) % 7
        for axis in range(x.ndim):
            np.testing.assert_array_equal(total(x, axis=axis), x.sum(axis, dtype="f8"))
            np.testing.assert_array_equal(numbered(x, axis=axis), (x * numbers).sum(axis, dtype="f8"))


def test_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiled_results, "_MANY", 1)
    total = gs.ReductionKernel("T x", "float64 y", "x", "a + b", "y = a", "0", "tiled_total")
    numbered = gs.ReductionKernel("T x", "float64 y", "x * (i % 7)", "a + b", "y = a", "0", "tiled_numbers")
    find = kernel("argmax", "first")
    for shape in ((64, 130, 20), (47, 128, 70)):
        for order in permutations(range(3)):
            x = values(shape, "int8", 1).transpose(order)
            numbers = np.arange(x.size).reshape(x.shape) % 7
            for axis in range(3):
                np.testing.assert_array_equal(total(x, axis=axis), x.sum(axis, dtype="f8"))
                np.testing.assert_array_equal(numbered(x, axis=axis), (x * numbers).sum(axis, dtype="f8"))
                places, best = find(x, axis=axis)
                np.testing.assert_array_equal(places, x.argmax(axis), str((shape, order, axis)))
                np.testing.assert_array_equal(best, x.max(axis))
