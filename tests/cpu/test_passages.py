"""What kernels link instead of compiling it: how elements get to where they are consecutive."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride.targets.cpu import library, passages, toolchain

numbers = count()


@pytest.fixture(autouse=True)
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the arguments of all calls of the compiler, whose cache is empty at first."""
    library.runtime()
    monkeypatch.setenv("GRIDSTRIDE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(passages, "_known", {})
    found: list[list[str]] = []
    run = toolchain.Toolchain.run

    def recorded(self: toolchain.Toolchain, arguments: Sequence[str], *rest: Any) -> Any:
        found.append(list(arguments))
        return run(self, arguments, *rest)

    monkeypatch.setattr(toolchain.Toolchain, "run", recorded)
    return found


def turned(dtype: Any) -> None:
    """Compile a text of its own and compare results, also of layouts for which elements are moved."""
    kernel = gs.ElementwiseKernel("T x", "T y", f"y = x /* {next(numbers)} */", "assign")
    x = np.arange(120 * 90 * np.dtype(dtype).itemsize).astype("u1").view(dtype).reshape(120, 90)
    for array in (x, x.T, x[::-1, ::2]):
        np.testing.assert_array_equal(kernel(array, np.empty(array.shape, dtype)), array)


def linked(calls: list[list[str]]) -> list[int]:
    return [sum(argument.startswith("linked") for argument in call) for call in calls]


def test_they_are_compiled_once_for_each_size(calls: list[list[str]]) -> None:
    turned("u4")
    assert sorted(linked(calls)) == [0, 0, 1]  # the passages, the kernel, and linking both
    calls.clear()
    turned("i4")
    assert linked(calls) == [1]
    calls.clear()
    turned("u8")
    assert sorted(linked(calls)) == [0, 0, 1]


def test_the_next_process_finds_them(calls: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    turned("u2")
    calls.clear()
    monkeypatch.setattr(passages, "_known", {})
    turned("u2")
    assert linked(calls) == [1]


def test_kernels_are_compiled_whole_where_they_cannot_be(
    calls: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passages, "_SOURCE", "nowhere.cpp")
    turned("u4")
    assert not any(linked(calls))


def test_elements_of_other_sizes_are_compiled_with_a_kernel(calls: list[list[str]]) -> None:
    turned(np.dtype("u4,u4,u4"))
    assert linked(calls) == [0]


def test_folds_link_them_too(calls: list[list[str]]) -> None:
    total = gs.ReductionKernel("T x", "int64 y", "x", "a + b", f"y = a /* {next(numbers)} */", "0", "total")
    x = np.arange(300 * 7, dtype="i2").reshape(300, 7)
    for axis in (1, None):
        np.testing.assert_array_equal(total(x, axis=axis), x.sum(axis))
    # The passages of two and of eight bytes, a fold across rows, and linking all; the fold along rows.
    assert sorted(linked(calls)) == [0, 0, 0, 2, 2]
