"""Which walks of the CPU target are folded in blocks of short rows."""

from __future__ import annotations

from itertools import accumulate
from math import prod

import numpy as np
import pytest

import gridstride as gs
from gridstride.targets.cpu.mixed_folds import Block, block_of
from gridstride.targets.walks import FoldWalk, Walked


def walk(lengths: tuple[int, ...], kinds: str, itemsize: int = 4, in_structures: bool = False) -> FoldWalk:
    """Return the walk of an array in order, of axes that are kept or folded, innermost first."""
    steps = list(accumulate(lengths[:-1], int.__mul__, initial=1))
    kept, fold = ([k for k, kind in enumerate(kinds) if kind == each] for each in "kf")
    numbers = [tuple(steps[k] for k in each) for each in (kept, fold)]
    strides = [tuple(step * itemsize for step in each) for each in numbers]
    inputs = (Walked(0, itemsize, *strides),)
    positions = tuple(prod(lengths[j] for j in fold if j < k) for k in fold)
    shapes = [tuple(lengths[k] for k in each) for each in (kept, fold)]
    results = tuple(accumulate(shapes[0][:-1], int.__mul__, initial=1))
    return FoldWalk(*shapes, *numbers, positions, results, inputs, (), in_structures)


@pytest.mark.parametrize(
    ("lengths", "kinds", "block"),
    [
        ((7, 5, 9000), "fkf", Block(1, 5, (0,), 117, 35)),
        ((9, 5, 6, 8, 9000), "fkfkf", Block(2, 8, (0, 1), 1, 2160)),
        ((9, 5, 6, 8, 9000), "kfkfk", Block(2, 6, (0, 1), 1, 2160)),
        ((9, 5, 6, 30, 9000), "kfkfk", Block(2, 6, (0,), 3, 270)),
        ((7, 5, 9000), "kfk", Block(2, 117, (0,), 1, 4095)),
        ((13, 630, 4096), "fkf", Block(1, 315, (0,), 1, 4095)),
        ((49, 64, 9000), "fkf", Block(1, 64, (0,), 1, 3136)),
        ((64, 33, 100, 158), "kfkf", Block(1, 64, (0,), 1, 2112)),
        ((200, 5, 9000), "kfk", Block(2, 4, (0,), 1, 4000)),
    ],
)
def test_blocks_of_short_rows(lengths: tuple[int, ...], kinds: str, block: Block) -> None:
    assert block_of(walk(lengths, kinds)) == block


@pytest.mark.parametrize(
    ("lengths", "kinds"),
    [
        ((16, 9000), "fk"),
        ((16, 9000), "kf"),
        ((5, 7, 9000), "fkk"),
        ((3136, 334, 32), "fkf"),
        ((256, 2000, 64), "kfk"),
        ((7, 5, 0), "fkf"),
    ],
)
def test_others(lengths: tuple[int, ...], kinds: str) -> None:
    assert block_of(walk(lengths, kinds)) is None


def test_short_rows_of_structures_are_folded_as_one() -> None:
    assert block_of(walk((16, 9000), "kf", 1, in_structures=True)) == Block(1, 16, (), 96, 16)
    assert block_of(walk((100, 9000), "kf", 1, in_structures=True)) is None


@pytest.mark.parametrize(("lengths", "columns"), [((7, 5, 9000), 350), ((60, 8, 9000), 1440)])
def test_few_whole_folds_of_structures_make_a_block(lengths: tuple[int, ...], columns: int) -> None:
    found = block_of(walk(lengths, "kfk", 8, in_structures=True))
    assert found is not None
    assert (found.fold, found.columns) == ((0,), columns)


@pytest.mark.parametrize(
    ("lengths", "itemsize", "is_whole"),
    [
        ((33, 31, 9000), 1, True),
        ((33, 31, 9000), 4, False),
        ((7, 5, 9000), 4, True),
        ((33, 8, 9000), 2, True),
    ],
)
def test_places_of_many_neighbors_are_folded_across(
    lengths: tuple[int, ...], itemsize: int, is_whole: bool
) -> None:
    found = block_of(walk(lengths, "kfk", itemsize, in_structures=True)._replace(keeps_places=True))
    assert bool(found and found.fold) == is_whole


def test_results_that_lie_apart_are_of_one_row_at_most() -> None:
    results = Walked(0, 4, (4, 400), (), True)
    assert block_of(walk((7, 5, 9000), "kfk")._replace(outputs=(results,))) is None


def test_rows_that_are_not_in_order() -> None:
    apart = walk((9, 5, 6, 8, 9000), "fkfkf")
    (only,) = apart.inputs
    assert block_of(apart._replace(inputs=(only._replace(strides=(80, 1080)),))) is None
    assert block_of(apart._replace(inputs=(only, only._replace(strides=(80, 1080))))) is None


def test_inputs_that_lack_axes_are_repeated() -> None:
    mixed = walk((49, 64, 9000), "fkf")
    (only,) = mixed.inputs
    bias = only._replace(strides=(4,), fold_strides=(0, 0))
    assert block_of(mixed._replace(inputs=(bias, only))) == Block(1, 64, (0,), 1, 3136, 1)
    assert block_of(mixed._replace(inputs=(bias, bias))) is None
    assert block_of(mixed._replace(inputs=(only, *[bias] * 8))) is None
    columns = walk((16, 9000), "kf")
    (only,) = columns.inputs
    mean = only._replace(fold_strides=(0,))
    assert block_of(columns._replace(inputs=(only, mean))) == Block(1, 16, (), 256, 16)


@pytest.mark.parametrize("shape", [(300, 251, 7), (300, 61, 16)])
def test_sums_along_axes_of_prime_lengths_are_more_accurate_than_numpys(shape: tuple[int, ...]) -> None:
    """NumPy adds one after another there."""
    x = np.random.default_rng(1).random(shape, np.float32)
    total = gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "mixed_total")
    exact = x.sum(1, dtype="f8")
    ours, numpys = (np.abs(each - exact).mean() for each in (total(x, axis=1), x.sum(1)))
    assert ours < 0.7 * numpys


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_values_take_part_in_few_operations(dtype: str) -> None:
    """The number of operations one after another is folded itself."""
    count = gs.ReductionKernel(
        "T x", "T y", "x", "later(a, b)", "y = a", None, "operations",
        preamble="""
        __device__ float later(float a, float b) { return fmaxf(a, b) + 1; }
        template <class T> __device__ T later(T a, T b) { return T(fmaxf(a.real(), b.real()) + 1); }""",
    )  # fmt: skip
    for length in (31, 251, 509):
        x = np.zeros((100, length, 7), dtype)
        assert count(x, axis=1).real.max() <= length / 4 + 4
        assert count(x, axis=(0, 1)).real.max() <= length / 4 + 40


def test_rows_that_start_between_elements() -> None:
    memory = np.zeros(4 * 9000 * 35 + 1, np.int8)
    x = memory[1:].view(np.float32).reshape(9000, 5, 7)
    x[...] = np.random.default_rng(0).integers(-9, 9, x.shape)
    total = gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "mixed_total")
    np.testing.assert_array_equal(total(x, axis=(0, 2)), x.sum((0, 2)))


def test_stacks_have_room_where_many_inputs_are_repeated() -> None:
    x = np.random.default_rng(0).integers(-5, 5, (3000, 5, 9)).astype(np.float32)
    names = "xyzuvwpq"
    text = ", ".join(f"T {each}" for each in names), "float64 s", " + ".join(names), "a + b", "s = a", "0"
    operands = (x, *[x[:, :1]] * 4, *[x[..., :1]] * 3)
    found = gs.ReductionKernel(*text, "total_of_eight")(*operands, axis=(0, 2))
    expected = x + 4.0 * x[:, :1] + 3.0 * x[..., :1]
    np.testing.assert_array_equal(found, expected.sum((0, 2)))
