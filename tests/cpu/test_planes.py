"""Loops for blocks of threads over many planes that are turned, run on the CPU target, and when they are chosen."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gridstride._array_pipeline import launching
from gridstride.targets import registry
from gridstride.targets.block_loops import writers
from gridstride.targets.walks import ElementWalk, Walked
from tests.array_values import values
from tests.cpu.test_block_loops import forget_calls
from tests.cpu.test_boxes import permuted_walk
from tests.every_target import test_elementwise as elementwise
from tests.own_loops import own_loop


@pytest.fixture
def _block_loops(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(type(registry.get("cpu")), "writers", None)
    monkeypatch.setattr(launching, "chosen_loop", own_loop)
    forget_calls()
    yield
    forget_calls()


@pytest.mark.usefixtures("_block_loops")
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32"])
@pytest.mark.parametrize("shape", [(7, 100, 60), (3, 180, 244), (2, 130, 250)], ids=str)
def test_planes_of_shorter_words(dtype: str, shape: tuple[int, ...]) -> None:
    x, y = values(shape, dtype, 1), values((shape[0], *shape[:0:-1]), dtype, 2)
    np.testing.assert_array_equal(elementwise.ADD(x.transpose(0, 2, 1), y), x.transpose(0, 2, 1) + y)
    flipped = x[:, ::-1].transpose(0, 2, 1)
    np.testing.assert_array_equal(elementwise.ADD(flipped, y), flipped + y)


@pytest.mark.parametrize(
    ("itemsize", "names"),
    [
        (
            1,
            {
                200: "tiles<false, true, 8, 256",
                300: "tiles<false, true, 4, 256",
                1000: "tiles<false, true, 8, 256",
            },
        ),
        (
            2,
            {
                100: "tiles<false, true, 4, 128",
                200: "tiles<false, true, 8, 128",
                1024: "tiles<false, true, 8, 64",
            },
        ),
        (
            4,
            {
                64: "tiles<false, true, 4, 64",
                100: "tiles<false, true, 4, 64",
                200: "tiles<false, true, 4, 64",
            },
        ),
    ],
)
def test_choices(itemsize: int, names: dict[int, str]) -> None:
    """Words of four or eight bytes are turned as such; other planes as ever."""
    limits = registry.get("cpu").limits(0)._replace(multiprocessors=132)

    def name(side: int) -> str:
        walk = permuted_walk((1, side, side), (0, 2, 1), 1 << 28, itemsize)
        return writers.BlockLoops().elementwise(walk, limits).name

    for side, expected in names.items():
        assert name(side).startswith(expected), (side, name(side))
    assert not name(1001).startswith("tiles<")


def test_turned_operands_of_several_sizes() -> None:
    limits = registry.get("cpu").limits(0)._replace(multiprocessors=132)

    def name(side: int, *sizes: int) -> str:
        *inputs, last = sizes
        operands = [Walked(0, size, (side * size, size)) for size in inputs]
        operands.append(Walked(0, last, (last, side * last), written=True))
        return (
            writers.BlockLoops().elementwise(ElementWalk((side, side), (0, 0), tuple(operands)), limits).name
        )

    for sizes in ((4, 1, 1), (2, 1, 2), (1, 4, 4), (1, 1, 4)):
        assert name(8191, *sizes).startswith("permuted_tiles<")
        assert name(8192, *sizes).startswith("tiles<")
    for sizes in ((4, 8, 8), (4, 1)):
        assert name(8191, *sizes).startswith("picked_tiles<")
