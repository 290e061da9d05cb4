"""Loops that look at words and vectors of neighboring elements read nothing behind the last one."""

from __future__ import annotations

import ctypes
import mmap
import sys
from math import prod
from typing import Any

import numpy as np
import pytest

from tests.cpu.test_block_loops import taken_loops
from tests.crosses import in_turns
from tests.every_target import test_elementwise as elementwise
from tests.every_target.test_mixed_reductions import WIDE
from tests.every_target.test_places import kernel
from tests.every_target.test_reduction import TOTAL

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pages are protected as Linux does")

PAGE, PAGES, NOTHING = mmap.PAGESIZE, 64, 0


@pytest.fixture
def memory() -> memoryview:
    """Return memory behind which there is none."""
    mapped = mmap.mmap(-1, (PAGES + 1) * PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    assert protect(ctypes.c_void_p(address + PAGES * PAGE), ctypes.c_size_t(PAGE), NOTHING) == 0
    return memoryview(mapped)[: PAGES * PAGE]


def at_the_end(memory: memoryview, shape: tuple[int, ...], dtype: str) -> Any:
    size = prod(shape) * np.dtype(dtype).itemsize
    x = np.frombuffer(memory[len(memory) - size :], dtype).reshape(shape)
    x[...] = np.random.default_rng(1).integers(-90, 90, shape)
    return x


@pytest.mark.parametrize(
    ("folded", "dtype"),
    in_turns([((901, 5, 7), 1), ((40, 7, 9, 11), (1, 3)), ((91, 257), 1)], ["int8", "float32"]),
)
def test_sums(memory: memoryview, dtype: str, folded: tuple[tuple[int, ...], Any]) -> None:
    shape, axis = folded
    x = at_the_end(memory, shape, dtype)
    total = WIDE if dtype == "int8" else TOTAL
    np.testing.assert_array_equal(total(x, axis=axis), x.sum(axis, dtype="int64"))


@pytest.mark.parametrize(
    ("shape", "dtype"), in_turns([(901, 5, 7), (91, 257), (901, 16)], ["int8", "float32"])
)
def test_places(memory: memoryview, dtype: str, shape: tuple[int, ...]) -> None:
    x = at_the_end(memory, shape, dtype)
    places, best = kernel("argmax", "first")(x, axis=1)
    np.testing.assert_array_equal(places, x.argmax(1))
    np.testing.assert_array_equal(best, x.max(1))


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_every_second_element(memory: memoryview, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packets are made of the words of 16 bytes in which they lie, by the loops for blocks of threads."""
    x = at_the_end(memory, (4096,), dtype)
    with taken_loops(monkeypatch, "rows", elementwise) as taken:
        for each in (x[1::2], x[::-2]):
            np.testing.assert_array_equal(elementwise.COPY(each), each)
    assert {name.split("<")[0] for name in taken} <= {"rows", "long_rows"}
    assert taken
