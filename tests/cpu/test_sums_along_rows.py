"""How many roundings numbers of a row take part in on the CPU target, beside NumPy's pairwise sum."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gridstride as gs

TOTAL = gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total_of_rows")
#: The number of operations one after another is folded itself.
OPERATIONS = gs.ReductionKernel("T x", "T y", "x * 0", "fmaxf(a, b) + 1", "y = a", None, "operations_along")


def numpys_operations(length: int) -> int:
    """Return how many additions follow each other in NumPy: in lanes of up to 128 numbers, and of pairs of those."""
    if length < 128:
        return length // 8 - 1 + 3 + length % 8
    return 15 + 3 + math.ceil(math.log2(length / 128))


@pytest.mark.parametrize("length", [60, 100, 251, 300, 509, 1000, 4096, 20_000, 1 << 17, 1 << 19])
def test_numbers_take_part_in_few_operations(length: int) -> None:
    for step in (1, 2):
        x = np.ones((3, step * length), "f4")[:, ::step]
        assert 1 < OPERATIONS(x, axis=1).max() <= 1.15 * numpys_operations(length)


@pytest.mark.parametrize("shape", [(500, 160), (500, 251), (300, 1000), (40, 20_000), (20, 1 << 17)], ids=str)
def test_sums_of_nearly_equal_numbers_are_as_accurate_as_numpys(shape: tuple[int, int]) -> None:
    """Their roundings do not cancel each other."""
    x = (1e6 + np.random.default_rng(1).random(shape)).astype("f4")
    exact = x.sum(1, dtype="f8")
    ours, numpys = (np.sqrt(np.mean((each - exact) ** 2)) for each in (TOTAL(x, axis=1), x.sum(1)))
    assert ours <= 1.25 * numpys
