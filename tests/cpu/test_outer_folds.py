"""Folds of outer products on the CPU target, by the loop for any of few elements and by those for many."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

import gridstride as gs
from gridstride.targets.cpu import outer_folds, writers
from tests.array_values import Array, values
from tests.cpu.test_block_loops import forget_calls
from tests.crosses import in_soak
from tests.every_target import test_folds_of_pairs as every_target

#: Of folds: one loop is for all, and others are compiled for each.
LENGTHS, OWN_LENGTHS = (2, 3, 8, 9, 17, 25, 130), (3, 17)


@pytest.fixture(params=["any", "own"])
def names(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the loops that are taken, which are those for few or for many elements."""
    taken: list[str] = []
    choose = writers.outer_of

    def chosen(*args: object) -> outer_folds.Outer | None:
        outer = choose(*args)  # type: ignore[arg-type]
        taken.extend([outer.name] if outer else [])
        return outer

    monkeypatch.setattr(writers, "outer_of", chosen)
    monkeypatch.setattr(outer_folds, "_LITTLE", 1 << 40 if request.param == "any" else 0)
    forget_calls(every_target)
    yield taken
    forget_calls(every_target)
    assert taken
    assert {name == "any_outer" for name in taken} == {request.param == "any"}


def test_short_rows(names: list[str]) -> None:
    for dtype, shape in (("int8", (72, 2101, 3)), ("float16", (90, 2050, 2)), ("float32", (140, 1031, 8))):
        every_target.test_few_elements_of_pairs(np, dtype, shape)
    every_target.test_places_in_pairs_of_short_rows(np)
    every_target.test_short_rows_of_all_pairs_and_of_some(np)


def test_planes_outputs_and_long_rows_of_results(names: list[str]) -> None:
    every_target.test_folds_of_pairs(np, "int8", (150, 170, 11))
    every_target.test_outputs_and_numbers_and_weights(np)
    every_target.test_several_planes_of_pairs(np)
    every_target.test_long_rows_of_pairs_of_two_bytes(np)


def repeated(random_: random.Random, shape: tuple[int, ...], dtype: str) -> Array:
    """Return an array of which rows, columns or both are the same, in some order of memory."""
    own = tuple(
        1 if axis in random_.choice([(0,), (1,), (0, 1)]) else size for axis, size in enumerate(shape)
    )
    order = random_.sample(range(len(own)), len(own))
    x = np.floor(values(tuple(own[axis] for axis in order), dtype, random_.randrange(99)) % 11).astype(dtype)
    x = x.transpose(np.argsort(order))
    return np.broadcast_to(x[..., ::-1] if random_.random() < 0.5 else x, shape)


@pytest.mark.parametrize("dtype", ["int8", *in_soak("float32")])
def test_repeated_rows_and_columns(names: list[str], dtype: str) -> None:
    random_ = random.Random(dtype)
    total = gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total_of_repeated")
    weighted = gs.ReductionKernel(
        "T x, T w", "T y", "x * w + T(i % 7)", "a + b", "y = a", "0", "weighted_repeated"
    )
    for length in 3 * LENGTHS if outer_folds._LITTLE else OWN_LENGTHS:
        shape = random_.choice((9, 65, 130)), random_.choice((2, 33, 64, 200)), length
        x, w = repeated(random_, shape, dtype), repeated(random_, shape, dtype)
        numbers = np.arange(x.size).reshape(shape) % 7
        np.testing.assert_array_equal(total(x, axis=2), x.sum(2, dtype=dtype))
        expected = (x.astype("int64") * w.astype("int64") + numbers).sum(2)
        np.testing.assert_array_equal(weighted(x, w, axis=2), expected.astype(dtype))
