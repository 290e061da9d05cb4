"""Short rows that change places along two axes: the same calls on every target, compared with NumPy."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import gridstride as gs
from tests.array_values import Array, values
from tests.crosses import in_turns

NUMBERED = gs.ElementwiseKernel("T x, T y", "T z", "z = x + y + T(i % 5)", "exchanged_and_numbered")
ADD_TO = gs.ElementwiseKernel("T x, T y", "T z", "z += x - y", "exchanged_and_added")
BOTH = gs.ElementwiseKernel("T x", "T z, T w", "z = x; w = x + x", "exchanged_twice")

#: Rows of fewer bytes than a word and of more, boxes that end along either axis, and rows of one stretch.
SHAPES = (
    (91, 90, 3),
    (45, 47, 16),
    (3, 31, 33, 4),
    (3, 40, 51, 17),
    (5, 37, 41, 63),
    (33, 35, 101),
    (130, 2, 90),
)
ROOM = 32  # elements before and after an output


def exchanged(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the order in which the axes before the rows' have changed places."""
    *others, first, second, row = range(len(shape))
    return (*others, second, first, row)


@pytest.mark.parametrize(("shape", "dtype"), in_turns(SHAPES, ["int8", "float16", "float32", "float64"], 2))
def test_exchanged_rows(xp: ModuleType, dtype: str, shape: tuple[int, ...]) -> None:
    order, size = exchanged(shape), int(np.prod(shape))
    given = values((size + ROOM,), dtype, 1)
    turned = given[:size].reshape(shape).transpose(order)
    y = values(turned.shape, dtype, 2)
    numbers = (np.arange(size).reshape(turned.shape) % 5).astype(dtype)
    for start, out_start in ((0, 0), (1, 0), (3, 5)):
        x = xp.asarray(given)[start : start + size].reshape(shape).transpose(order)
        turned = given[start : start + size].reshape(shape).transpose(order)
        room = xp.zeros(size + 2 * ROOM, dtype)
        out = room[ROOM + out_start : ROOM + out_start + size].reshape(turned.shape)
        NUMBERED(x, xp.asarray(y), out)
        np.testing.assert_array_equal(gs.asnumpy(out), turned + y + numbers)
        ADD_TO(x, xp.asarray(y), out)
        np.testing.assert_array_equal(gs.asnumpy(out), turned + turned + numbers)
        assert untouched(gs.asnumpy(room), out_start, size)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_several_inputs_and_outputs(xp: ModuleType, dtype: str) -> None:
    shape = (41, 43, 7)
    x, y = values(shape, dtype, 1), values(shape, dtype, 2)
    given = [xp.asarray(each).transpose(1, 0, 2) for each in (x, y)]
    result = gs.asnumpy(NUMBERED(*given, xp.zeros(given[0].shape, dtype)))
    numbers = (np.arange(x.size).reshape(result.shape) % 5).astype(dtype)
    np.testing.assert_array_equal(result, (x + y).transpose(1, 0, 2) + numbers)
    z, w = (xp.zeros(x.size + 1, dtype)[start : start + x.size].reshape(result.shape) for start in (0, 1))
    BOTH(given[0], z, w)
    np.testing.assert_array_equal(gs.asnumpy(z), x.transpose(1, 0, 2))
    np.testing.assert_array_equal(gs.asnumpy(w), (x + x).transpose(1, 0, 2))


def untouched(room: Array, start: int, size: int) -> bool:
    """Return whether nothing was written around an output."""
    return not room[: ROOM + start].any() and not room[ROOM + start + size :].any()
