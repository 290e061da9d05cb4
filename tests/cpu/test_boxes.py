"""The loop over boxes of permuted axes, which GPUs have, run on the CPU target, and when it is chosen."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np
import pytest

import gridstride as gs
from gridstride._array_pipeline import launching
from gridstride.targets import registry
from gridstride.targets.block_loops import boxes, writers
from gridstride.targets.walks import ElementWalk, Ints, Loop, Walked
from tests.array_values import values
from tests.cpu.test_block_loops import ADD_TO, BOTH, NUMBERED, flat_view, forget_calls
from tests.crosses import in_turns
from tests.own_loops import own_loop

#: Shapes and orders of axes: boxes that end along either side or both, of one run or several.
AXES = (
    ((29, 33, 35), (0, 2, 1)),
    ((13, 301, 11), (2, 1, 0)),
    ((21, 5, 7, 9, 11), (0, 4, 2, 1, 3)),
    ((9, 7, 5, 31, 33), (3, 0, 4, 2, 1)),
    ((70, 16, 16), (0, 2, 1)),
    ((1000, 3, 5), (0, 2, 1)),
    ((9, 100, 60), (0, 2, 1)),
    ((40, 3, 30, 5), (2, 3, 1, 0)),
)
TOTAL = gs.ElementwiseKernel("T x, T y, T z", "T w", "w = x + y - z", "total_of_three")


@pytest.fixture(autouse=True)
def chosen(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Loop]]:
    """Let calls take loops for blocks of threads, above all boxes; return the boxes that are taken."""
    taken: list[Loop] = []
    usual = writers.BlockLoops.elementwise

    def elementwise(self: writers.BlockLoops, walk: ElementWalk, limits: writers.Limits) -> Loop:
        loop = boxes.boxes(walk, limits)
        taken.extend([] if loop is None else [loop])
        return loop or usual(self, walk, limits)

    monkeypatch.setattr(writers.BlockLoops, "elementwise", elementwise)
    monkeypatch.setattr(type(registry.get("cpu")), "writers", None)
    monkeypatch.setattr(launching, "chosen_loop", own_loop)
    forget_calls()
    TOTAL._known.clear()
    yield taken
    monkeypatch.undo()
    forget_calls()
    TOTAL._known.clear()


@pytest.mark.parametrize(
    ("axes", "dtype"),
    in_turns(AXES, ["int8", "uint16", "float32", "float16", "float64", "complex128"]),
)
def test_permuted_axes(dtype: str, axes: tuple[Ints, Ints], chosen: list[Loop]) -> None:
    shape, order = axes
    turned = tuple(shape[axis] for axis in order)
    y = values(turned, dtype, 2)
    numbers = (np.arange(y.size).reshape(turned) % 5).astype(dtype)
    for x_start, out_start in ((0, 0), (1, 0), (3, 5)):
        x = flat_view(shape, dtype, x_start % (16 // np.dtype(dtype).itemsize), 1).transpose(order)
        room = np.zeros(x.size + 64, dtype)
        out = room[32 + out_start : 32 + out_start + x.size].reshape(turned)
        NUMBERED(x, y, out)
        np.testing.assert_array_equal(out, x + y + numbers)
        ADD_TO(x, out)
        np.testing.assert_array_equal(out, x + (x + y + numbers))
        assert not room[: 32 + out_start].any()
        assert not room[32 + out_start + x.size :].any()
    assert chosen


@pytest.mark.parametrize("dtypes", [("int8", "int16"), ("int16", "float32"), ("float32", "float64")])
def test_several_dtypes_and_outputs(dtypes: tuple[str, str], chosen: list[Loop]) -> None:
    for first, second in (dtypes, dtypes[::-1]):
        x = values((31, 33, 35), first, 1).transpose(0, 2, 1)
        y = values((31, 33, 35), second, 2).transpose(0, 2, 1)
        z, w = np.zeros(x.shape, first), np.zeros(x.shape, second)
        BOTH(x, y, z, w)
        np.testing.assert_array_equal(z, x)
        np.testing.assert_array_equal(w, y)
    assert chosen


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_parts_of_arrays(dtype: str, chosen: list[Loop]) -> None:
    """Axes that are walked one by one have gaps: of the arrays, as far as runs do not go."""
    whole = values((6, 7, 5, 33, 35), dtype, 1)[1:, ::2]
    x, y, z = whole[:, 0].swapaxes(-1, -2), whole[:, 1].swapaxes(-1, -2), whole[:, 2].swapaxes(-1, -2).copy()
    out = np.zeros((9, *x.shape), dtype)[3]
    TOTAL(x, y, z, out)
    np.testing.assert_array_equal(out, x + y - z)
    assert chosen


@pytest.mark.parametrize("dtype", ["int8", "uint16"])
def test_larger_boxes(dtype: str, monkeypatch: pytest.MonkeyPatch, chosen: list[Loop]) -> None:
    """Where layers have short runs, boxes are larger, if they are enough for a device."""
    usual = boxes._of_longer_runs
    monkeypatch.setattr(
        boxes,
        "_of_longer_runs",
        lambda walk, sides, box, limits: usual(walk, sides, box, limits._replace(multiprocessors=1)),
    )
    x = values((13, 2345, 11), dtype, 1).transpose(2, 1, 0)
    y = values(x.shape, dtype, 2)
    numbers = (np.arange(y.size).reshape(y.shape) % 5).astype(dtype)
    out = np.zeros_like(y)
    NUMBERED(x, y, out)
    np.testing.assert_array_equal(out, x + y + numbers)
    threads = {1: 256, 2: 512}[np.dtype(dtype).itemsize]
    assert [(loop.name.split(", ")[2], loop.configuration.block[0]) for loop in chosen] == [("4", threads)]


@pytest.mark.parametrize("axes", AXES, ids=str)
def test_boxes_fill_shared_memory_at_most(axes: tuple[Ints, Ints]) -> None:
    limits = registry.get("cpu").limits(0)._replace(multiprocessors=132)
    for itemsize in (1, 2, 4, 8, 16):
        loop = boxes.boxes(permuted_walk(*axes, 500_000_000, itemsize), limits)
        assert loop is not None
        assert loop.configuration.shared_mem <= limits.shared_memory_per_block_optin // 3 - 1024


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
def test_choices(itemsize: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    limits = registry.get("cpu").limits(0)._replace(multiprocessors=132)

    def name(shape: Ints, order: Ints) -> str:
        walk = permuted_walk(shape, order, 1 << 28, itemsize)
        return writers.BlockLoops().elementwise(walk, limits).name.split("<")[0]

    for shape, order in (
        ((1, 33, 35), (0, 2, 1)),
        ((1, 5, 7, 9, 11), (0, 4, 2, 1, 3)),
        ((13, 1, 11), (2, 1, 0)),
        ((1, 16, 16), (0, 2, 1)),
        *([((1, 100, 60), (0, 2, 1))] if itemsize <= 2 else []),
    ):
        assert name(shape, order) == "boxes", (shape, order)
    assert name((1, 7, 5, 31, 33), (3, 0, 4, 2, 1)) == ("boxes" if itemsize < 4 else "permuted_tiles")
    assert name((1, 7, 5, 31, 33), (4, 1, 3, 0, 2)) == "permuted_tiles"
    if itemsize > 1:
        assert name((1, 4, 8, 2, 16), (4, 1, 3, 0, 2)) == "permuted_tiles"
    sectors = name((256, 8, 4, 32, 1024), (4, 1, 3, 0, 2))
    assert sectors == ("permuted_tiles" if itemsize <= 2 else "tiles")
    assert name((1, 64, 64), (0, 2, 1)) == "tiles"
    assert name((1, 63, 255, 63), (0, 2, 1, 3)) == ("flat_rows" if itemsize > 2 else "exchanged_rows")


def permuted_walk(shape: Ints, order: Ints, elements: int, itemsize: int) -> ElementWalk:
    """Return the walk of an array and its axes in another order, the one axis of 1 as long as elements suffice."""
    shape = tuple(length if length > 1 else elements // prod(shape) | 1 for length in shape)
    steps = [itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape))]
    own = tuple(shape[axis] for axis in order[::-1])
    numbers = tuple(prod(own[:axis]) for axis in range(len(own)))
    x = Walked(0, itemsize, tuple(steps[axis] for axis in order[::-1]))
    return ElementWalk(
        own, numbers, (x, Walked(0, itemsize, tuple(each * itemsize for each in numbers), (), True))
    )
