"""Loops for blocks of threads touch no page but those of their operands, wherever these begin and end."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride._array_pipeline import launching
from gridstride._array_pipeline.choosing import Choice
from gridstride.targets import registry
from gridstride.targets.base import Limits
from gridstride.targets.block_loops import fold_little, writers
from gridstride.targets.walks import ElementWalk, FoldLoop, FoldWalk
from tests.crosses import cases_in_soak, in_soak
from tests.own_loops import own_loop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pages are protected as Linux does")

Array = np.ndarray[Any, Any]
PAGE, NOTHING = mmap.PAGESIZE, 0

# Other tests have loops of these kinds with all that compilers make of them: here they are compiled in a moment.
QUICK = ("-O1",)
COPY = gs.ElementwiseKernel("T x", "T y", "y = x", "copy_of_guarded", options=QUICK)
SUM = gs.ElementwiseKernel("T x, T y", "T z", "z = x + y", "sum_of_guarded", options=QUICK)
TOTAL = gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total_of_guarded", options=QUICK)
DOT = gs.ReductionKernel("T x, T y", "T z", "x * y", "a + b", "z = a", "0", "dot_of_guarded", options=QUICK)
PLACE = gs.ReductionKernel(
    "T x", "int64 k", "kept{x, _J}", "a.x > b.x || (a.x == b.x && a.at < b.at) ? a : b", "k = a.at", None,
    "place_of_guarded", "kept", preamble="struct kept { T x; long long at; };", options=QUICK,
)  # fmt: skip


def guarded(shape: tuple[int, ...], dtype: Any, at_end: bool) -> Array:
    """Return an array of zeros with a page before and one behind it that nobody may read or write.

    Its first byte or its last one is next to one of them.
    """
    size = prod(shape) * np.dtype(dtype).itemsize
    pages = -(-size // PAGE)
    mapped = mmap.mmap(-1, (pages + 2) * PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    for page in (0, pages + 1):
        assert protect(ctypes.c_void_p(address + page * PAGE), ctypes.c_size_t(PAGE), NOTHING) == 0
    first = (pages + 1) * PAGE - size if at_end else PAGE
    return np.frombuffer(memoryview(mapped)[first : first + size], dtype).reshape(shape)


def like(x: Array, at_end: bool) -> Array:
    """Return a copy of an array that is guarded."""
    made = guarded(x.shape, x.dtype, at_end)
    made[...] = x
    return made


def numbers(shape: tuple[int, ...], dtype: str) -> Array:
    return np.random.default_rng(1).integers(-9, 9, shape).astype(dtype)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let calls take loops for blocks of threads, also those for many elements; return these loops' names."""
    names: list[str] = []
    choose_fold = writers.BlockLoops.reduction

    def loop_of(
        kernel: Any, chooser: writers.BlockLoops, walk: ElementWalk, limits: Limits, *rest: bool
    ) -> Choice:
        choice = own_loop(kernel, chooser, walk, limits._replace(multiprocessors=2), *rest)
        names.append(choice.loop.name.split("<")[0])
        return choice

    def fold_of(self: writers.BlockLoops, walk: FoldWalk, limits: Limits) -> FoldLoop:
        loop = choose_fold(self, walk, limits._replace(multiprocessors=2))
        names.append(loop.name.split("<")[0])
        return loop

    monkeypatch.setattr(type(registry.get("cpu")), "writers", None)
    monkeypatch.setattr(launching, "chosen_loop", loop_of)
    monkeypatch.setattr(writers.BlockLoops, "reduction", fold_of)
    monkeypatch.setattr(fold_little, "_LITTLE", 0)
    for kernel in (COPY, SUM, TOTAL, DOT, PLACE):
        kernel._known.clear()
    return names


#: A loop, and elements that it moves to the order in which they are seen.
MOVED = [
    ("boxes", "int8", (7, 16, 17), lambda x: x.transpose(0, 2, 1)),
    ("deinterleaved", "int8", (21, 64, 3), lambda x: x[:, ::-1].transpose(2, 0, 1)),
    ("flat_rows", "int8", (1001, 3), lambda x: x[:, ::-1]),
    ("interleaved", "int8", (7, 16, 17), lambda x: x.transpose(1, 2, 0)),
    ("permuted_tiles", "int8", (245, 277), lambda x: x.T),
    *cases_in_soak(
        ("deinterleaved", "int8", (1001, 3), lambda x: x.T),
        ("even_rows", "float64", (7, 5, 3, 20), lambda x: x.transpose(1, 0, 2, 3)),
        ("exchanged_rows", "float32", (7, 16, 17), lambda x: x.transpose(1, 0, 2)),
        ("permuted_tiles", "float32", (7, 16, 17), lambda x: x.transpose(2, 1, 0)),
        ("picked_strips", "float32", (1000, 3), lambda x: x.T),
        ("picked_tiles", "float32", (35, 33), lambda x: x.T),
        ("strips", "float64", (1000, 3), lambda x: x.T),
        ("tiles", "int8", (48, 80), lambda x: x.T),
    ),
]


@pytest.mark.parametrize(("loop", "dtype", "shape", "seen"), MOVED)
def test_moved_elements(
    taken: list[str], loop: str, dtype: str, shape: tuple[int, ...], seen: Callable[[Array], Array]
) -> None:
    x = numbers(shape, dtype)
    for at_end in (False, True):
        y = guarded(seen(x).shape, dtype, at_end)
        np.testing.assert_array_equal(COPY(seen(like(x, at_end)), y), seen(x))
    assert set(taken) == {loop}


@pytest.mark.parametrize(("dtype", "loop"), [("int8", "shifted_tiles"), ("int16", "permuted_tiles")])
@pytest.mark.parametrize("at_end", [False, True])
def test_turned_elements_beside_rows(taken: list[str], at_end: bool, dtype: str, loop: str) -> None:
    x, y, z = numbers((277, 245), dtype), numbers((245, 277), dtype), guarded((245, 277), dtype, at_end)
    np.testing.assert_array_equal(SUM(like(x, at_end).T, like(y, at_end), z), x.T + y)
    assert taken == [loop]


@pytest.mark.parametrize("at_end", [False, True])
def test_gaps_between_results(taken: list[str], at_end: bool) -> None:
    x, y = numbers((40, 16), "int8"), guarded((40, 17), "int8", at_end)
    part = y[:, 1:] if at_end else y[:, :-1]
    np.testing.assert_array_equal(COPY(like(x, at_end), part), x)
    assert not y[:, 0 if at_end else -1].any()
    assert taken == ["striped_rows"]


@pytest.mark.parametrize("at_end", [False, True])
def test_repeated_rows(taken: list[str], at_end: bool) -> None:
    x, row = numbers((9, 4100), "int16"), numbers((4100,), "int16")
    y = guarded(x.shape, "int16", at_end)
    np.testing.assert_array_equal(SUM(like(x, at_end), like(row, at_end), y), x + row)
    assert taken == ["repeated_rows"]


#: A loop, and elements of which it folds axes.
FOLDED = [
    ("fold_few_rows", "int8", (3, 1001), 0),
    ("fold_boxes", "int8", (40, 7, 9, 11), (0, 2)),
    ("fold_columns", "int8", (33, 259), 0),
    ("fold_planes", "int8", (17, 5, 7), 1),
    ("fold_rows", "int8", (17, 5, 7), (0, 2)),
    *cases_in_soak(
        ("fold_across", "int8", (17, 5, 7), 0),
        ("fold_boxes", "float32", (17, 5, 7), (0, 2)),
        ("fold_few", "int8", (4112, 3), 1),
        ("fold_lines", "int8", (17, 5, 7), 2),
        ("fold_long_lines", "float32", (17, 5, 7), None),
        ("fold_narrow", "int8", (4100, 3), 0),
        ("fold_planes", "int8", (40, 7, 9, 11), (1, 3)),
        ("fold_short", "float32", (4100, 5), 1),
        ("fold_small", "float32", (300, 9), None),
    ),
]


@pytest.mark.parametrize(("loop", "dtype", "shape", "axis"), FOLDED)
def test_sums(taken: list[str], loop: str, dtype: str, shape: tuple[int, ...], axis: Any) -> None:
    x = numbers(shape, dtype)
    expected = np.asarray(x.sum(axis, dtype=dtype))
    for at_end in (False, True):
        y = guarded(expected.shape, dtype, at_end)
        np.testing.assert_array_equal(TOTAL(like(x, at_end), y, axis=axis), expected)
    assert set(taken) == {loop}


@pytest.mark.parametrize(("loop", "axis"), [("fold_narrow", 0), ("fold_short", 1)])
@pytest.mark.parametrize("dtype", ["int8", *in_soak("float32")])
def test_sums_of_rows_with_gaps(taken: list[str], loop: str, dtype: str, axis: int) -> None:
    x = numbers((4100, 7), dtype)
    for at_end in (False, True):
        around = guarded((4100, 8), dtype, at_end)
        part = around[:, 1:] if at_end else around[:, :-1]
        part[...] = x
        y = guarded(x.sum(axis).shape, dtype, at_end)
        np.testing.assert_array_equal(TOTAL(part, y, axis=axis), x.sum(axis, dtype=dtype))
    assert set(taken) == {loop}


@pytest.mark.parametrize(
    ("dtype", "shape", "axis"),
    [
        ("int8", (901, 5, 7), 1),
        ("int16", (33, 259), 0),
        *cases_in_soak(
            *(
                (dtype, shape, axis)
                for dtype in ("int8", "int16")
                for shape, axis in (((4100, 25), 1), ((91, 257), 1), ((4100, 3), 0))
            )
        ),
    ],
)
def test_places(taken: list[str], dtype: str, shape: tuple[int, ...], axis: int) -> None:
    x = numbers(shape, dtype)
    expected = x.argmax(axis)
    for at_end in (False, True):
        y = guarded(expected.shape, "int64", at_end)
        np.testing.assert_array_equal(PLACE(like(x, at_end), y, axis=axis), expected)


#: A loop, and the inputs and axes of products that it adds.
PRODUCTS = [
    ("fold_turned", "int8", (65, 70), (70, 65), lambda x: x.T, 0),
    ("fold_outer", "float32", (40, 1, 3), (1, 51, 3), lambda x: x, 2),
    *cases_in_soak(
        ("fold_turned", "float32", (64, 68), (68, 64), lambda x: x.T, 0),
        ("fold_outer", "float32", (3, 40, 1), (3, 1, 51), lambda x: x, 0),
        ("fold_pairs", "int8", (40, 1, 17), (1, 51, 17), lambda x: x, 2),
    ),
]


@pytest.mark.parametrize(("loop", "dtype", "left", "right", "seen", "axis"), PRODUCTS)
def test_products(
    taken: list[str], loop: str, dtype: str, left: Any, right: Any, seen: Callable[[Array], Array], axis: int
) -> None:
    x, y = numbers(left, dtype), numbers(right, dtype)
    expected = (seen(x) * y).sum(axis, dtype=dtype)
    for at_end in (False, True):
        z = guarded(expected.shape, dtype, at_end)
        np.testing.assert_array_equal(DOT(seen(like(x, at_end)), like(y, at_end), z, axis=axis), expected)
    assert set(taken) == {loop}
