"""Permuted axes of odd lengths in large tiles: the same calls on every target, compared with NumPy."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import gridstride as gs
from gridstride.targets.block_loops import permuted_tiles
from tests.array_values import values

NUMBERED = gs.ElementwiseKernel("T x, T y", "T z", "z = x + y + T(i % 5)", "permuted_and_numbered")
ROOM = 32  # elements before and after an output


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
def test_large_tiles(xp: ModuleType, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permuted_tiles, "_LEAST_LARGE", 0)
    check(xp, dtype, (25, 2, 5, 31, 33))


@pytest.mark.parametrize("dtype", ["int8"])
def test_large_tiles_of_sectors(xp: ModuleType, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permuted_tiles, "_LEAST_LARGE", 0)
    check(xp, dtype, (64, 2, 4, 31, 33))


def check(xp: ModuleType, dtype: str, shape: tuple[int, ...]) -> None:
    order = (4, 1, 3, 0, 2)
    size = int(np.prod(shape))
    given = values((size + ROOM,), dtype, 1)
    for start, out_start in ((0, 0), (3, 5)):
        turned = given[start : start + size].reshape(shape).transpose(order)
        x = xp.asarray(given)[start : start + size].reshape(shape).transpose(order)
        y = values(turned.shape, dtype, 2)
        room = xp.zeros(size + 2 * ROOM, dtype)
        out = room[ROOM + out_start : ROOM + out_start + size].reshape(turned.shape)
        NUMBERED(x, xp.asarray(y), out)
        numbers = (np.arange(size).reshape(turned.shape) % 5).astype(dtype)
        np.testing.assert_array_equal(gs.asnumpy(out), turned + y + numbers)
        written = gs.asnumpy(room)
        assert not written[: ROOM + out_start].any()
        assert not written[ROOM + out_start + size :].any()
