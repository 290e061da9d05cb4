"""The places of the largest and the smallest of bytes, by the loops for blocks of threads, run on the CPU target."""

from __future__ import annotations

import numpy as np
import pytest

from gridstride.targets.walks import FoldLoop
from tests.crosses import in_turns
from tests.every_target.test_places import expected, kernel

pytestmark = pytest.mark.usefixtures("block_folds", "folds_of_much")

#: By loops: along lines, across rows, of few neighbors, of short rows, across a few rows, of narrow arrays, in planes.
SHAPES = {
    "fold_long_lines": ((3, 5003), 1),
    "fold_lines": ((3, 700), 1),
    "fold_long_lines in turns": ((2, 700_003), 1),
    "fold_columns": ((1200, 403), 0),
    "fold_few": ((4099, 16), 1),
    "fold_short": ((4099, 33), 1),
    "fold_few_rows": ((9, 1008), 0),
    "fold_narrow": ((5003, 13), 0),
    "fold_planes": ((40, 90, 3), 1),
}


@pytest.mark.parametrize(
    ("loop", "kind"),
    in_turns(
        SHAPES,
        [
            ("int8", "argmax", "first"),
            ("uint8", "argmin", "first"),
            ("int8", "argmin", "last"),
            ("uint8", "argmax", "last"),
        ],
    ),
)
def test_places(block_folds: list[FoldLoop], loop: str, kind: tuple[str, str, str]) -> None:
    (dtype, kept, side), (shape, axis) = kind, SHAPES[loop]
    limits = np.iinfo(dtype)
    find = kernel(kept, side)
    draw = np.random.default_rng(1)
    # Any numbers, a few of them, and nothing but the extremes: a byte of another row would be better, or as good.
    lowest, highest = int(limits.min), int(limits.max)
    for low, high in ((lowest, highest), (0, 5), (lowest, lowest), (highest, highest)):
        flat = draw.integers(low, high, np.prod(shape) + 32, dtype, endpoint=True)
        for start in (0, 5):
            x = flat[start : start + np.prod(shape)].reshape(shape)
            place, value = find(x, axis=axis)
            np.testing.assert_array_equal(place, expected(x, kept, side, axis), f"{low} {high} {start}")
            np.testing.assert_array_equal(
                value, np.take_along_axis(x, np.expand_dims(place, axis), axis).squeeze(axis)
            )
    assert all(each.tells_places for each in block_folds)
    assert block_folds[0].name.startswith(loop.split()[0])


@pytest.mark.parametrize(("dtype", "kept"), [("uint8", "argmax"), ("int8", "argmin")])
def test_the_last_of_nothing_but_the_worst(dtype: str, kept: str, block_folds: list[FoldLoop]) -> None:
    """Where boxes have one row."""
    limits = np.iinfo(dtype)
    x = np.full((80, 3, 2, 2, 2, 3), limits.min if kept == "argmax" else limits.max, dtype)
    place, value = kernel(kept, "last")(x, axis=(1, 3, 5))
    np.testing.assert_array_equal(place, np.full((80, 2, 2), 17))
    np.testing.assert_array_equal(value, x[:, 0, :, 0, :, 0])
    assert block_folds[0].name.startswith("fold_boxes<")
