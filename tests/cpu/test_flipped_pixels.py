"""The loops over pixels whose lines go backwards, which GPUs have, run on the CPU target, and when they are chosen."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gridstride.targets import registry
from gridstride.targets.block_loops import writers
from gridstride.targets.walks import ElementWalk, Ints, Walked
from tests.cpu.test_block_loops import taken_loops
from tests.crosses import in_turns, pairs_in_soak
from tests.every_target import test_flipped_pixels as every_target


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    with taken_loops(monkeypatch, "strip_loop", every_target) as names:
        yield names


@pytest.mark.parametrize(
    ("shape", "dtype"),
    in_turns([(37, 224, 3), (2, 131, 97, 3)], ["float16", "int8"], others=["float32"])
    + pairs_in_soak([(4, 1000, 21)], ["float16", "int8", "float32"]),
)
def test_flipped_pixels(dtype: str, shape: Ints, taken: list[str]) -> None:
    every_target.test_flipped_pixels(np, dtype, shape)
    assert {"interleaved", "deinterleaved"} <= {name.split("<")[0] for name in taken}


@pytest.mark.parametrize("dtypes", [("uint8", "float32"), ("float32", "uint8")])
def test_flipped_pixels_of_another_size(dtypes: tuple[str, str], taken: list[str]) -> None:
    every_target.test_flipped_pixels_of_another_size(np, dtypes)
    assert {"interleaved", "deinterleaved"} <= {name.split("<")[0] for name in taken}


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
def test_choices(itemsize: int) -> None:
    limits = registry.get("cpu").limits(0)._replace(multiprocessors=132)
    shape, pixels, lines = (9600, 1080, 3), (3, 28800, 1), (1, 9600, 1080 * 9600)

    def name(x: Ints, z: Ints, shape: Ints) -> str:
        operands = (
            Walked(1 << 20, itemsize, tuple(itemsize * each for each in x)),
            Walked(1 << 30, itemsize, tuple(itemsize * each for each in z), written=True),
        )
        return writers.BlockLoops().elementwise(ElementWalk(shape, (0,) * len(shape), operands), limits).name

    # Blocks have parts of long lines.
    assert name((-3, *pixels[1:]), lines, shape).startswith("deinterleaved<1, 3")
    shape, pixels, lines = (1920, 1080, 3), (3, 5760, 1), (1, 1920, 1080 * 1920)
    order = (2, 0, 1)
    to_pixels = [tuple(each[axis] for axis in order) for each in (lines, (-3, *pixels[1:]), shape)]
    assert name(*to_pixels).startswith("interleaved")
    assert (", 6, 2>" if itemsize == 1 else ", 4, 2>") in name(*to_pixels)
    shape, pixels, lines = (224, 224, 3), (3, 672, 1), (1, 224, 224 * 224)
    assert name((-3, *pixels[1:]), lines, shape).startswith("deinterleaved<1, 5")
    assert name((3, 800, 1), lines, shape).startswith("deinterleaved<1, 5")
    # Words of lines that begin between sectors begin before these.
    lines = (1, 224, 224 * 224 + 1)
    assert name((3, 800, 1), lines, shape).startswith(f"deinterleaved<{32 // itemsize}, 5")
    # Small elements of lines that end between words are shifted.
    shape, lines = (225, 224, 3), (1, 225, 224 * 225)
    assert name((-3, 675, 1), lines, shape).startswith(
        "deinterleaved<1, 7" if itemsize < 4 else "deinterleaved<1, 5"
    )


def test_numbers_of_transposed_pixels(taken: list[str]) -> None:
    every_target.test_numbers_of_transposed_pixels(np)


def test_parts_of_images(taken: list[str]) -> None:
    every_target.test_parts_of_images(np, "int8")
    assert {"interleaved", "deinterleaved"} <= {name.split("<")[0] for name in taken}
