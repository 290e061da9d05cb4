"""Elementwise calls as people write them: images, batches of matrices, grids, particles, heads and series.

Operands are views of flat arrays, as those of `array_rows.py`. Bytes are those that must move: of inputs the elements
that are read at all, each once.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from array_rows import Layout, permuted

#: Elements of the smallest arrays.
_FEWEST = 1 << 20
_INNER, _BEFORE, _BEHIND = slice(1, -1), slice(None, -2), slice(2, None)


class Room:
    """Views of the first elements of flat arrays of n elements."""

    def __init__(self, x: Any, y: Any, z: Any, itemsize: int) -> None:
        self.n, self.itemsize = x.shape[0], itemsize
        self._x, self._y, self._z = x, y, z

    def given(self, *shape: int) -> Any:
        """Return an input."""
        return self._x[: prod(shape)].reshape(*shape)

    def other(self, *shape: int, start: int = 0) -> Any:
        """Return another input."""
        return self._y[start : start + prod(shape)].reshape(*shape)

    def out(self, *shape: int) -> Any:
        """Return an output."""
        return self._z[: prod(shape)].reshape(*shape)

    def row(self, name: str, operation: str, *operands: Any, elements: int, of_one: bool = False) -> Layout:
        """Return a row of which so many elements move, the inputs perhaps parts of one array."""
        return Layout(name, operation, operands, elements * self.itemsize, None, of_one=of_one)


def everyday_layouts(x: Any, y: Any, z: Any, itemsize: int) -> Iterator[Layout]:
    """Yield the rows; none for arrays that have no room for all."""
    if x.shape[0] < _FEWEST:
        return
    room = Room(x, y, z, itemsize)
    yield from _images(room)
    yield from _channels(room)
    yield from _repeated_pixels(room)
    yield from _matrices(room)
    yield from _grids(room)
    yield from _particles(room)
    yield from _series(room)


def _side(n: int, axes: int) -> int:
    """Return the side of a cube of at most n elements."""
    side = round(n ** (1 / axes))
    return side - (side**axes > n)


def _channels(room: Room) -> Iterator[Layout]:
    """Yield batches of images of several channels into pixels and back, alone and with a factor and a summand each."""
    for channels, pixels in (
        (3, 224 * 224),
        (64, 56 * 56),
        (64, 49),
        (256, 49),
        (100, 7),
        (17, 225),
        (10, 5),
    ):
        count = max(1, room.n // (channels * pixels))
        size, name = count * channels * pixels, f"{channels}x{pixels}"
        planes, in_pixels = room.given(count, channels, pixels), room.out(count, pixels, channels)
        yield room.row(f"to_pixels.{name}", "copy", permuted(planes, (0, 2, 1)), in_pixels, elements=2 * size)
        source = permuted(room.given(count, pixels, channels), (0, 2, 1))
        yield room.row(
            f"to_planes.{name}", "copy", source, room.out(count, channels, pixels), elements=2 * size
        )
        factor, summand = room.other(channels), room.other(channels, start=channels)
        yield room.row(
            f"affine_to_pixels.{name}", "affine", permuted(planes, (0, 2, 1)), factor, summand, in_pixels,
            elements=2 * size + 2 * channels,
        )  # fmt: skip
        factor, summand = (each.reshape(channels, 1) for each in (factor, summand))
        yield room.row(
            f"affine_planes.{name}", "affine", planes, factor, summand, room.out(count, channels, pixels),
            elements=2 * size + 2 * channels,
        )  # fmt: skip


def _images(room: Room) -> Iterator[Layout]:
    """Yield parts and borders of images, channels that are left out, and images that are turned."""
    height, width = (1080, 1920) if room.n >> 23 else (54, 96)
    for parts in (1, 3, 4):
        count = max(1, room.n // (height * width * parts))
        images = room.given(count, height, width, parts)
        lines, line = slice(height // 8, height * 7 // 8), slice(width // 8, width * 7 // 8 - 1)
        crop = images[:, lines, line]
        yield room.row(f"crop.{parts}", "copy", crop, room.out(*crop.shape), elements=2 * prod(crop.shape))
        smaller = room.given(count, height - 6, width - 6, parts)
        border = room.out(count, height, width, parts)[:, 3:-3, 3:-3]
        yield room.row(f"into_border.{parts}", "copy", smaller, border, elements=2 * prod(border.shape))
        half = images[:, ::2, ::2]
        yield room.row(
            f"every_second.{parts}", "copy", half, room.out(*half.shape), elements=2 * prod(half.shape)
        )
        turned = permuted(images, (0, 2, 1, 3))
        yield room.row(
            f"turned.{parts}", "copy", turned, room.out(*turned.shape), elements=2 * prod(turned.shape)
        )


def _repeated_pixels(room: Room) -> Iterator[Layout]:
    """Yield images of which each pixel becomes several."""
    height, width = (540, 960) if room.n >> 25 else (27, 48)
    for parts in (1, 3, 4):
        for times in (2, 3):
            count = max(1, room.n // (height * width * parts * times * times))
            pixels = room.given(count, height, 1, width, 1, parts)
            larger = room.out(count, height, times, width, times, parts)
            size = prod(pixels.shape) + prod(larger.shape)
            yield room.row(f"enlarged{times}.{parts}", "copy", pixels, larger, elements=size)


def _matrices(room: Room) -> Iterator[Layout]:
    """Yield batches of square matrices: turned, made symmetric, and with vectors."""
    for side in (3, 17, 64, 100, 127, 1001):
        count = max(1, room.n // (side * side))
        batch, out = room.given(count, side, side), room.out(count, side, side)
        size = count * side * side
        turned = permuted(batch, (0, 2, 1))
        yield room.row(f"matrices_turned.{side}", "copy", turned, out, elements=2 * size)
        yield room.row(
            f"matrices_symmetric.{side}", "add", batch, turned, out, elements=2 * size, of_one=True
        )
        vectors = room.other(count, side)
        rows, columns = vectors.reshape(count, 1, side), vectors.reshape(count, side, 1)
        yield room.row(
            f"matrices_by_rows.{side}", "multiply", batch, rows, out, elements=2 * size + count * side
        )
        yield room.row(
            f"matrices_by_columns.{side}", "multiply", batch, columns, out, elements=2 * size + count * side
        )
    heads = room.given(room.n >> 18, 256, 16, 64) if room.n >> 20 else room.given(4, 8, room.n >> 11, 64)
    for order in ((0, 2, 1, 3), (0, 2, 3, 1)):
        source = permuted(heads, order)
        name = f"heads{''.join(map(str, order))}"
        yield room.row(name, "copy", source, room.out(*source.shape), elements=2 * prod(source.shape))


def _grids(room: Room) -> Iterator[Layout]:
    """Yield stencils of a plane and of a volume, differences, and what neighbors exchange."""
    side = _side(room.n, 2)
    plane = room.given(side, side)
    places = (_INNER, _INNER), (_INNER, _BEFORE), (_INNER, _BEHIND), (_BEFORE, _INNER), (_BEHIND, _INNER)
    around, inner = [plane[place] for place in places], (side - 2) ** 2
    yield room.row(
        "stencil5", "stencil5", *around, room.out(side - 2, side - 2), elements=2 * inner, of_one=True
    )
    yield room.row(
        "stencil5_inside",
        "stencil5",
        *around,
        room.out(side, side)[_INNER, _INNER],
        elements=2 * inner,
        of_one=True,
    )
    side = _side(room.n, 3)
    volume = room.given(side, side, side)
    middle = (_INNER,) * 3
    moved = [(*middle[:axis], to, *middle[axis + 1 :]) for axis in range(3) for to in (_BEFORE, _BEHIND)]
    around, inner = [volume[place] for place in (middle, *moved)], (side - 2) ** 3
    yield room.row(
        "stencil7", "stencil7", *around, room.out(*(side - 2,) * 3), elements=2 * inner, of_one=True
    )
    yield room.row(
        "stencil7_inside",
        "stencil7",
        *around,
        room.out(side, side, side)[middle],
        elements=2 * inner,
        of_one=True,
    )
    for axis in range(3):
        ends = [(*middle[:axis], to, *middle[axis + 1 :]) for to in (_BEHIND, _BEFORE)]
        operands = [volume[place] for place in ends]
        yield room.row(
            f"gradient.{axis}",
            "subtract",
            *operands,
            room.out(*(side - 2,) * 3),
            elements=2 * inner,
            of_one=True,
        )
    yield room.row(
        "inside_volume", "copy", volume[middle], room.out(side, side, side)[middle], elements=2 * inner
    )
    orders = [permuted(volume, order) for order in ((0, 1, 2), (1, 2, 0), (2, 0, 1))]
    yield room.row(
        "symmetric_volume", "add3", *orders, room.out(side, side, side), elements=2 * side**3, of_one=True
    )


def _particles(room: Room) -> Iterator[Layout]:
    """Yield particles of a few numbers each: by number, some of these, and all differences."""
    for numbers in (3, 6, 10):
        count = room.n // numbers
        particles = room.given(count, numbers)
        by_number = permuted(particles, (1, 0))
        yield room.row(
            f"by_number.{numbers}", "copy", by_number, room.out(numbers, count), elements=2 * count * numbers
        )
        some = particles[:, 1:]
        yield room.row(
            f"without_first.{numbers}", "copy", some, room.out(*some.shape), elements=2 * prod(some.shape)
        )
        offset = room.other(1, numbers)
        yield room.row(
            f"moved.{numbers}",
            "add",
            particles,
            offset,
            room.out(count, numbers),
            elements=2 * count * numbers,
        )
    for numbers in (2, 3):
        count = _side(room.n // numbers, 2)
        points = room.given(count, numbers)
        operands = points.reshape(count, 1, numbers), points.reshape(1, count, numbers)
        yield room.row(
            f"differences.{numbers}",
            "subtract",
            *operands,
            room.out(count, count, numbers),
            elements=count * count * numbers,
            of_one=True,
        )


def _series(room: Room) -> Iterator[Layout]:
    """Yield differences along rows, means of neighbors, and rows and columns that are left out."""
    for length in (100, 365, 1001):
        count = room.n // length
        series = room.given(count, length)
        out = room.out(count, length - 1)
        yield room.row(
            f"steps.{length}",
            "subtract",
            series[:, 1:],
            series[:, :-1],
            out,
            elements=2 * count * length,
            of_one=True,
        )
    flat = room.given(room.n)
    around = flat[_BEFORE], flat[_INNER], flat[_BEHIND]
    yield room.row("mean3", "add3", *around, room.out(room.n - 2), elements=2 * room.n, of_one=True)
    for step in (2, 3, 8):
        some = flat[::step]
        yield room.row(f"every{step}", "copy", some, room.out(*some.shape), elements=2 * some.shape[0])
        yield room.row(
            f"into_every{step}",
            "copy",
            room.given(*some.shape),
            room.out(room.n)[::step],
            elements=2 * some.shape[0],
        )
