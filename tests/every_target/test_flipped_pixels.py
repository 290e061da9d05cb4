"""Pixels of which the lines go backwards while their parts change places: the same calls on every target."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from tests.array_values import values
from tests.crosses import in_turns

COPY = gs.ElementwiseKernel("T x", "U z", "z = U(x)", "flipped_pixels")
ADD_TO = gs.ElementwiseKernel("T x, T y", "T z", "z += x - y", "flipped_and_added")
NUMBERED = gs.ElementwiseKernel("T x", "T z", "z = x + T(i % 5)", "flipped_and_numbered")

#: Lines that end within words and parts of blocks, and pixels of a few parts and of many.
SHAPES = ((3, 1301, 3), (2, 2049, 2), (301, 4), (5, 259, 7), (4, 1000, 21), (2, 131, 97, 3), (37, 224, 3))
ROOM = 32  # elements before and after an output


def flipped(flat: Any, images: tuple[int, ...], lines: int, parts: int, to_planes: bool) -> Any:
    """Return pixels with their parts first and lines backwards, or planes with lines backwards as pixels."""
    *first, rows = (1, 1, *images)[-2:]
    if to_planes:
        return flat.reshape(*first, rows, lines, parts)[:, :, ::-1].transpose(0, 3, 1, 2)
    return flat.reshape(*first, parts, rows, lines)[..., ::-1].transpose(0, 2, 3, 1)


@pytest.mark.parametrize(("shape", "dtype"), in_turns(SHAPES, ["int8", "float16", "float32", "float64"], 2))
def test_flipped_pixels(xp: ModuleType, dtype: str, shape: tuple[int, ...]) -> None:
    size, (*images, lines, parts) = int(np.prod(shape)), shape
    given = values((size + ROOM,), dtype, 1)
    for start, out_start in ((0, 0), (1, 0), (3, 5)):
        there = xp.asarray(given)[start : start + size]
        here = given[start : start + size]
        for to_planes in (True, False):
            x, expected = (flipped(each, tuple(images), lines, parts, to_planes) for each in (there, here))
            y = values(expected.shape, dtype, 2)
            room = xp.zeros(size + 2 * ROOM, dtype)
            out = room[ROOM + out_start : ROOM + out_start + size].reshape(expected.shape)
            COPY(x, out)
            np.testing.assert_array_equal(gs.asnumpy(out), expected)
            ADD_TO(x, xp.asarray(y), out)
            np.testing.assert_array_equal(gs.asnumpy(out), expected + expected - y)
            ADD_TO(x, x, out)
            np.testing.assert_array_equal(gs.asnumpy(out), expected + expected - y)
            numbers = (np.arange(size).reshape(expected.shape) % 5).astype(dtype)
            NUMBERED(x, out)
            np.testing.assert_array_equal(gs.asnumpy(out), expected + numbers)
            around = gs.asnumpy(room)
            assert not around[: ROOM + out_start].any()
            assert not around[ROOM + out_start + size :].any()


@pytest.mark.parametrize("dtypes", [("uint8", "float32"), ("float32", "uint8"), ("float16", "float64")])
def test_flipped_pixels_of_another_size(xp: ModuleType, dtypes: tuple[str, str]) -> None:
    images = np.random.default_rng(1).integers(0, 100, (2, 5, 701, 3)).astype(dtypes[0])
    there = xp.asarray(images)
    for view in (
        lambda a: a[:, :, ::-1].transpose(0, 3, 1, 2),
        lambda a: a[:, ::-1, ::-1].transpose(0, 3, 1, 2),
    ):
        out = xp.zeros(view(images).shape, dtypes[1])
        COPY(view(there), out)
        np.testing.assert_array_equal(gs.asnumpy(out), view(images).astype(dtypes[1]))
        back = xp.zeros(images.shape, dtypes[1])
        planes = xp.asarray(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))
        COPY(planes[..., ::-1].transpose(0, 2, 3, 1), back)
        np.testing.assert_array_equal(gs.asnumpy(back), images[:, :, ::-1].astype(dtypes[1]))


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "complex64"])
def test_parts_of_images(xp: ModuleType, dtype: str) -> None:
    images = values((3, 41, 131, 3), dtype, 1)
    there, planes = xp.asarray(images), xp.asarray(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))
    for rows, columns in (
        (slice(2, -3), slice(5, -7)),
        (slice(None), slice(-4, 3, -1)),
        (slice(None, None, -1), slice(1, 130)),
    ):
        expected = images[:, rows, columns].transpose(0, 3, 1, 2)
        out, back = xp.zeros(expected.shape, dtype), xp.zeros(images[:, rows, columns].shape, dtype)
        COPY(there[:, rows, columns].transpose(0, 3, 1, 2), out)
        np.testing.assert_array_equal(gs.asnumpy(out), expected)
        ADD_TO(there[:, rows, columns].transpose(0, 3, 1, 2), xp.asarray(expected.copy()), out)
        np.testing.assert_array_equal(gs.asnumpy(out), expected)
        COPY(planes[..., rows, columns].transpose(0, 2, 3, 1), back)
        np.testing.assert_array_equal(gs.asnumpy(back), images[:, rows, columns])


def test_numbers_of_transposed_pixels(xp: ModuleType) -> None:
    """Elements are numbered by the arrays' axes, in whichever order they lie."""
    for given, view, lying in (
        (values((37, 224, 3), "int8", 1), lambda a: a[:, ::-1].transpose(2, 1, 0), (0, 2, 1)),
        (values((3, 37, 224), "int8", 1), lambda a: a[..., ::-1].transpose(2, 1, 0), (1, 0, 2)),
    ):
        expected = view(given)
        numbers = (np.arange(expected.size) % 5).astype("int8").reshape(expected.shape)
        out = xp.zeros(tuple(expected.shape[axis] for axis in lying), "int8").transpose(lying)
        NUMBERED(view(xp.asarray(given)), out)
        np.testing.assert_array_equal(gs.asnumpy(out), expected + numbers)
