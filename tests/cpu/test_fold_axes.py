"""Which axes of a fold are walked as one, where a kernel asks for numbers of elements or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride.targets.cpu.writers import CpuLoops
from gridstride.targets.walks import FoldWalk

X = (
    np.arange(6 * 5 * 4).reshape(5, 6, 4).transpose(1, 0, 2)
)  # of its rows, those of axes 0 and 2 follow each other


def walked(monkeypatch: pytest.MonkeyPatch, map_expr: str, preamble: str = "") -> tuple[FoldWalk, Any]:
    """Return the walk of a sum along axis 1 of X, and its result."""
    found: list[FoldWalk] = []
    choose = CpuLoops.reduction

    def noted(self: CpuLoops, walk: FoldWalk, limits: object) -> object:
        found.append(walk)
        return choose(self, walk, limits)

    monkeypatch.setattr(CpuLoops, "reduction", noted)
    kernel = gs.ReductionKernel("T x", "T y", map_expr, "a + b", "y = a", "0", "folded", preamble=preamble)
    result = kernel(X, axis=1)
    return found[-1], result


def test_axes_are_one_where_no_number_tells_them_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    walk, result = walked(monkeypatch, "x")
    assert (walk.kept, walk.fold) == ((24,), (5,))
    np.testing.assert_array_equal(result, X.sum(1))


def test_positions_alone_are_of_the_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    walk, result = walked(monkeypatch, "x * _J")
    assert (walk.kept, walk.fold, walk.positions) == ((24,), (5,), (1,))
    np.testing.assert_array_equal(result, (X * np.arange(5)[:, None]).sum(1))


@pytest.mark.parametrize(("map_expr", "preamble"), [("x * i", ""), ("TIMES(x)", "#define TIMES(x) x * i")])
def test_numbers_tell_axes_apart(monkeypatch: pytest.MonkeyPatch, map_expr: str, preamble: str) -> None:
    walk, result = walked(monkeypatch, map_expr, preamble)
    assert walk.kept == (4, 6)
    np.testing.assert_array_equal(result, (X * np.arange(120).reshape(6, 5, 4)).sum(1))
