"""The loop over short rows that change places, which GPUs have, run on the CPU target, and when it is chosen."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gridstride.targets import registry
from gridstride.targets.block_loops import writers
from gridstride.targets.walks import Ints
from tests.cpu.test_block_loops import taken_loops
from tests.cpu.test_boxes import permuted_walk
from tests.crosses import in_turns
from tests.every_target import test_exchanged_rows as every_target


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    with taken_loops(monkeypatch, "exchanged_rows", every_target) as names:
        yield names


@pytest.mark.parametrize(
    ("shape", "dtype"), in_turns([(91, 90, 3), (3, 40, 51, 17)], ["int8", "float16", "float32"])
)
def test_exchanged_rows(dtype: str, shape: Ints, taken: list[str]) -> None:
    every_target.test_exchanged_rows(np, dtype, shape)
    assert taken


def test_several_inputs_and_outputs(taken: list[str]) -> None:
    every_target.test_several_inputs_and_outputs(np, "int8")
    assert taken


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
def test_choices(itemsize: int) -> None:
    limits = registry.get("cpu").limits(0)._replace(multiprocessors=132)

    def name(shape: Ints, order: Ints) -> str:
        walk = permuted_walk(shape, order, 1 << 28, itemsize)
        return writers.BlockLoops().elementwise(walk, limits).name.split("<")[0]

    for row in (3, 5, 7):
        assert name((501, 1, row), (1, 0, 2)) == "exchanged_rows"
    expected = "exchanged_rows" if itemsize < 4 else "flat_rows"
    assert name((1, 63, 255, 63), (0, 2, 1, 3)) == expected
    assert name((501, 1, 201), (1, 0, 2)) == expected
    assert name((64, 256, 1, 64), (0, 2, 1, 3)) == "even_rows"
    for row in (16, 32, 48, 64):  # of whole words, which are not turned as large elements are
        assert itemsize * 24 < row or name((501, 1, row // itemsize), (1, 0, 2)) == "exchanged_rows"
