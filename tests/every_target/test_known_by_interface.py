"""Arrays that are known by their interface alone: what a call needs besides them is made without them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from tests.array_values import values
from tests.every_target.test_elementwise import ADD
from tests.every_target.test_reduction import TOTAL


class Shown:
    """An array of no library that is known."""

    def __init__(self, array: Any) -> None:
        self._array = array
        name = "__array_interface__" if isinstance(array, np.ndarray) else "__cuda_array_interface__"
        setattr(self, name, getattr(array, name))


def test_copies_of_what_overlaps(xp: ModuleType) -> None:
    x = values((500,), "f4", 1)
    given = xp.asarray(x.copy())
    ADD(Shown(given[::-1]), Shown(given), Shown(given))
    np.testing.assert_array_equal(gs.asnumpy(given), x[::-1] + x)


def test_copies_of_what_lies_unaligned(xp: ModuleType) -> None:
    x = values((500,), "c16", 2)
    shifted, out = (xp.zeros(8032, "u1")[9:8009].view("c16") for _ in range(2))
    shifted.view("u1")[...] = xp.asarray(x.view("u1"))
    ADD(Shown(shifted), Shown(shifted), Shown(out))
    np.testing.assert_array_equal(gs.asnumpy(out), x + x)


@pytest.mark.parametrize("debug", ["0", "1"])
def test_folds_in_parts(xp: ModuleType, debug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSTRIDE_DEBUG", debug)
    x = values((1_000_000,), "f8", 3)
    given, total = xp.asarray(x), xp.zeros(())
    for _ in range(3):
        TOTAL(Shown(given), Shown(total))
        assert float(total) == x.sum()
