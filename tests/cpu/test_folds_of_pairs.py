"""The folds of pairs of rows, which GPUs have, run on the CPU target, and when they are chosen."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gridstride.targets import registry
from gridstride.targets.block_loops import writers
from gridstride.targets.walks import FoldWalk, Ints, Walked
from tests.cpu.test_block_loops import taken_loops
from tests.every_target import test_folds_of_pairs as every_target


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch, folds_of_much: None) -> Iterator[list[str]]:
    with taken_loops(monkeypatch, "fold_pairs", every_target) as names:
        yield names


@pytest.fixture
def outer(monkeypatch: pytest.MonkeyPatch, folds_of_much: None) -> Iterator[list[str]]:
    with taken_loops(monkeypatch, "fold_outer", every_target) as names:
        yield names


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("int8", (72, 2101, 3)), ("float32", (140, 1031, 8)), ("float16", (90, 2050, 2))],
    ids=str,
)
def test_few_elements_of_pairs(dtype: str, shape: tuple[int, int, int], outer: list[str]) -> None:
    every_target.test_few_elements_of_pairs(np, dtype, shape)
    assert len(outer) == 3


def test_places_and_outputs_of_short_rows(outer: list[str]) -> None:
    every_target.test_places_in_pairs_of_short_rows(np)
    every_target.test_short_rows_of_all_pairs_and_of_some(np)
    assert len(outer) == 2


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("shape", [(150, 170, 19), (33, 300, 70), (20, 520, 30)], ids=str)
def test_folds_of_pairs(dtype: str, shape: tuple[int, int, int], taken: list[str]) -> None:
    every_target.test_folds_of_pairs(np, dtype, shape)
    assert taken


def test_outputs_and_numbers_and_weights(taken: list[str]) -> None:
    every_target.test_outputs_and_numbers_and_weights(np)
    assert taken


def test_several_planes_of_pairs(taken: list[str]) -> None:
    every_target.test_several_planes_of_pairs(np)
    assert taken


@pytest.mark.parametrize(("size", "expected"), [(1, "16, 2"), (2, "8, 4"), (4, "4, 8"), (8, "4, 8")])
def test_choices(size: int, expected: str) -> None:
    limits = registry.get("cpu").limits(0)._replace(multiprocessors=132)

    def name(kept: Ints, fold: int, x: Ints, y: Ints) -> str:
        none = (0,) * len(kept)
        inputs = tuple(
            Walked(at << 30, size, tuple(size * step for step in steps), (size,))
            for at, steps in ((1, x), (2, y))
        )
        results = tuple(int(np.prod(kept[:axis])) for axis in range(len(kept)))
        output = Walked(3 << 30, size, tuple(size * step for step in results), written=True)
        walk = FoldWalk(kept, (fold,), none, (0,), (0,), results, inputs, (output,))
        return writers.BlockLoops().reduction(walk, limits).name.split(":")[0]

    for fold in (24, 64):
        assert name((8192, 8192), fold, (0, fold), (fold, 0)) == f"fold_pairs<{expected}, false, true>"
    assert name((300, 300, 700), 40, (0, 40, 12000), (40, 0, 12000)) == "fold_pairs<2, 8, false, true>"
    packet, rows = 16 // size, 256 if size == 1 else 128
    assert name((8192, 8192), 3, (0, 3), (3, 0)) == f"fold_outer<3, {packet}, {rows}, true, 1, 0>"
    assert (
        name((8192, 300, 90), 3, (3, 3 * 8192, 0), (3, 0, 0))
        == f"fold_outer<3, {packet}, {rows}, true, 2, 0>"
    )
    assert name((4, 1 << 22), 3, (0, 3), (3, 0)).startswith(f"fold_outer<3, {min(packet, 4)}, ")
    # Few results, few columns, long rows, and inputs of which one is elsewhere for each result.
    assert not name((300, 300), 64, (0, 64), (64, 0)).startswith("pairs")
    assert not name((10, 1 << 20), 30, (0, 30), (30, 0)).startswith("pairs")
    assert not name((8192, 8192), 5000, (0, 5000), (5000, 0)).startswith("pairs")
