"""Loops over planes in which operands that lie along another axis are turned in shared memory.

What is chosen depends on the walk and on the device's limits; the loops are those of include/gridstride/tiles.h and
strips.h.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.permuted import permuted_tiles
from gridstride.targets.walks import (
    IN_LAUNCH,
    THREADS,
    ElementWalk,
    Ints,
    Loop,
    Walked,
    axes_bytes,
    capacity_for,
    configuration,
    numbering_bytes,
    operand_bytes,
)

_TILES, _STRIPS, _PICKED = "gridstride/tiles.h", "gridstride/strips.h", "gridstride/picked.h"
_PICKED_STRIPS, _SHIFTED = "gridstride/picked_strips.h", "gridstride/shifted_tiles.h"
_WORD, _SECTOR = 16, 32
#: Width and height of tiles by how many elements have 16 bytes: the first one, unless another has far fewer outside.
_SHAPES = {
    16: ((256, 128), (128, 128), (64, 256), (32, 512), (64, 64)),
    8: ((128, 64), (64, 64), (64, 128), (32, 256), (32, 32)),
    4: ((64, 64), (64, 32), (32, 128), (16, 256), (32, 32)),
    2: ((32, 32), (16, 64), (16, 16)),
    1: ((32, 32), (16, 32), (16, 16)),
}
#: Those that come first where packets are whole words: of small elements, and of large ones if only one is turned.
_OF_WORDS = {16: ((128, 128),), 8: ((64, 128),), 2: ((64, 32), (32, 64))}
#: Width and height of picked tiles by the bytes of the largest element, and whether rows are parted at sectors rather
#: than words: of one input, and of several.
_PICKED_SHAPES = {
    1: (None, (128, 128, True)),
    2: ((64, 128, True), (64, 64, False)),
    4: ((64, 64, True), (64, 32, True)),
    8: ((64, 32, True), (32, 32, True)),
}
#: Bytes of a row, best first, and of a line of shifted tiles, which are for elements of so many bytes at most.
_SHIFTED_WIDTHS, _SHIFTED_HEIGHT, _SMALL = (256, 128), 128, 2
#: How operands lie, as headers are told: one element for a row; packets of rows between words or, one more, in words
#: where the last operand has whole ones; along the other side.
ONE_FOR_A_ROW, BETWEEN_WORDS, ALONG_Y = 0, 1, 3
#: Sides shorter than this are not worth turning in tiles.
_SHORT = 16
#: The longest sides for which a strip is better than tiles, which they would not fill.
_MOST_ROWS = 64
#: The longest sides for which elements of a word or less are better picked from a strip as it lies.
_FEW_ROWS = 4
#: How many times as many elements as a plane has tiles may cover, where sides of more axes have fewer outside; and
#: shifted tiles, where planes are small.
_MOST_COVERED, _MOST_SHIFTED = 1.5, 3
#: Bytes of what a block turns in a strip, and how long strips are at least.
_STRETCH, _LEAST_WIDTH, _LONG = 24576, 32, THREADS


class Sides(NamedTuple):
    """Hold the axes of the sides of a plane, inner ones first: `x` along packets, `y` along what is turned."""

    x: Ints
    y: Ints


class Plane(NamedTuple):
    """Say how a walk is cut into planes.

    Attributes
    ----------
    walk : ElementWalk
    sides : Sides
    turned : tuple of bool
        Which operands are.
    length : int
        Of packets.
    """

    walk: ElementWalk
    sides: Sides
    turned: tuple[bool, ...]
    length: int

    @property
    def row(self) -> int:
        """How long the side x is."""
        return prod(self.walk.shape[axis] for axis in self.sides.x)

    @property
    def column(self) -> int:
        """How long the side y is."""
        return prod(self.walk.shape[axis] for axis in self.sides.y)

    def operands(self) -> list[Walked]:
        """Return the operands that are turned."""
        return [operand for operand, turned in zip(self.walk.operands, self.turned, strict=True) if turned]

    def is_shifted(self) -> bool:
        """Return whether rows of the last operand begin between two words, so that parts are shifted to them."""
        last, shape = self.walk.operands[-1], self.walk.shape
        word = self.length * last.itemsize
        if self.length == 1 or self.turned[-1] or any(operand.written for operand in self.operands()):
            return False
        inner, *outer = self.sides.x
        if last.strides[inner] != last.itemsize or word & (word - 1):
            return False
        if any(last.strides[axis] != last.itemsize * shape[inner] for axis in outer):
            return False
        return bool(
            last.address % word
            or any(
                last.strides[axis] % word
                for axis in range(len(shape))
                if axis not in self.sides.x and shape[axis] > 1
            )
        )

    def in_words(self) -> Plane:
        """Return the plane with the longest packets that are words of four bytes or more; else as it is."""
        largest = max(operand.itemsize for operand in self.walk.operands)
        for length in (self.length, self.length // 2, self.length // 4):
            shorter = self._replace(length=length)
            if length * largest >= 4 and shorter.are_words(lines=True):
                return shorter
        return self

    def are_words(self, lines: bool) -> bool:
        """Return whether packets of rows are whole words in memory; those of lines that are turned too, if asked."""
        if self.row % self.length or (lines and self.column % self.length):
            return False
        return all(
            self._has_words(operand, self.sides.y if turned else self.sides.x)
            for operand, turned in zip(self.walk.operands, self.turned, strict=True)
            if lines or not turned
        )

    def _has_words(self, operand: Walked, side: Ints) -> bool:
        strides, shape, word = operand.strides, self.walk.shape, self.length * operand.itemsize
        inner, *outer = side
        if not operand.written and all(strides[axis] == 0 for axis in side):
            return True
        if word & (word - 1) or operand.address % word or strides[inner] != operand.itemsize:
            return False
        is_consecutive = all(strides[axis] == operand.itemsize * shape[inner] for axis in outer)
        if not is_consecutive and shape[inner] % self.length:
            return False
        others = [
            axis for axis in range(len(shape)) if axis != inner and not (is_consecutive and axis in outer)
        ]
        return all(strides[axis] % word == 0 for axis in others if shape[axis] > 1)

    def lies_along_its_side(self, operand: Walked, turned: bool) -> bool:
        """Return whether an operand is consecutive along its side, or one element for a row; turned ones are read."""
        size, strides = operand.itemsize, operand.strides
        if (
            size > _WORD
            or size & (size - 1)
            or operand.address % size
            or any(each % size for each in strides)
        ):
            return False
        if not operand.written and not turned and strides[self.sides.x[0]] == 0:
            return True
        return strides[(self.sides.y if turned else self.sides.x)[0]] == size and not (
            turned and operand.written
        )

    def kind(self, operand: Walked, turned: bool) -> int:
        """Return how an operand lies, as headers are told."""
        if turned:
            return ALONG_Y
        if operand.strides[self.sides.x[0]] == 0:
            return ONE_FOR_A_ROW
        return BETWEEN_WORDS + begins_as(
            operand, self.walk.operands[-1], self.walk.shape, _WORD // operand.itemsize
        )

    def loop(self, header: str, name: str, width: int, height: int, shared: int) -> Loop:
        """Return a loop whose blocks have parts of a width and a height."""
        x, y = self.sides
        shape, numbers = self.walk.shape, self.walk.numbers
        rest = [axis for axis in range(len(shape)) if axis not in (*x, *y)]
        shifted = self.is_shifted()
        across = -(-(self.row + (self.length - 1 if shifted else 0)) // width)
        lengths = (
            across,
            -(-self.column // height),
            shape[x[0]],
            shape[y[0]],
            *(shape[axis] for axis in rest),
        )
        blocks = prod(lengths[:2]) * prod(lengths[4:])
        capacity = capacity_for(len(lengths))

        def ordered(strides: Ints, turned: bool) -> Ints:
            x_outer, y_outer = (strides[side[1]] if len(side) > 1 else 0 for side in self.sides)
            return (strides[y[0]], x_outer, y_outer, int(turned), *(strides[axis] for axis in rest))

        return Loop(
            header,
            name,
            IN_LAUNCH,
            capacity,
            struct.pack("<5q", prod(shape), self.row, self.column, width, shifted)
            + axes_bytes(blocks, lengths, capacity)
            + numbering_bytes(numbers[x[0]], ordered(numbers, False), capacity),
            tuple(
                operand_bytes(
                    operand.address, operand.strides[x[0]], ordered(operand.strides, turned), capacity
                )
                for operand, turned in zip(self.walk.operands, self.turned, strict=True)
            ),
            configuration(blocks, THREADS)._replace(shared_mem=shared),
        )


def plane_loop(walk: ElementWalk, length: int, limits: Limits) -> Loop | None:
    """Return a loop over planes, where operands lie along different axes; packets have a length."""
    if any(operand.itemsize > _WORD for operand in walk.operands):
        return None
    strip = strip_of(walk, length)
    if strip is not None:
        from gridstride.targets.block_loops.interleaving import interleaving

        if (loop := interleaving(strip, limits)) is not None:
            return loop
    if strip is not None and (loop := _picked_strips(strip, limits) or _strips(strip, limits)) is not None:
        return loop
    sides = sides_of_tiles(walk)
    return permuted_tiles(walk, limits) if sides is None else _tiles(walk, sides, length, limits)


def begins_as(operand: Walked, last: Walked, shape: Ints, length: int) -> bool:
    """Return whether all packets of a length of an operand begin at the same place of a word as the last operand's."""
    size, last_size = operand.itemsize, last.itemsize
    pairs = zip(operand.strides, last.strides, shape, strict=True)
    return (operand.address // size - last.address // last_size) % length == 0 and all(
        (own // size - other // last_size) % length == 0 for own, other, count in pairs if count > 1
    )


# ---- tiles ----


def sides_of_tiles(walk: ElementWalk) -> Sides | None:
    """Return the sides of tiles, where an operand lies along another axis than the result."""
    x = _side(walk, range(len(walk.shape)))
    if x is None:
        return None
    for operand in walk.operands:
        order = sorted(
            (axis for axis, stride in enumerate(operand.strides) if stride),
            key=lambda k: abs(operand.strides[k]),
        )
        if not order or order[0] in x or abs(operand.strides[order[0]]) != operand.itemsize:
            continue
        y = _side(walk, [axis for axis in order if axis not in x])
        if y is not None and abs(operand.strides[x[0]]) > operand.itemsize:
            return Sides(x, y)
    return None


def _side(walk: ElementWalk, axes: Sequence[int]) -> Ints | None:
    """Return the first axis, with the next one where it is short; None where both are."""
    if not axes or walk.shape[axes[0]] >= _SHORT:
        return (axes[0],) if axes else None
    length = prod(walk.shape[axis] for axis in axes[:2])
    return tuple(axes[:2]) if _SHORT <= length < 2**31 else None


def _of_any_axes(plane: Plane, limits: Limits) -> Loop | None:
    """Return the loop whose sides are any number of axes, where tiles of packets do not do as well."""
    largest, packets = max(operand.itemsize for operand in plane.walk.operands), plane.in_words()
    is_split = max(map(len, plane.sides)) > 1
    if len(plane.walk.shape) == 2:
        return None
    if 1 < packets.length > plane.length // 4 and packets.are_words(lines=True):
        are_sectors = plane._replace(length=_SECTOR // largest).are_words(lines=True)
        if not is_split or largest < _WORD // 2 or are_sectors or plane.row < _LONG // 2:
            return None
    elif not is_split and min(plane.row, plane.column) > _MOST_ROWS:
        return None
    return permuted_tiles(plane.walk, limits)


def _tiles(walk: ElementWalk, sides: Sides, length: int, limits: Limits) -> Loop | None:
    x, y = sides.x[0], sides.y[0]
    turned = tuple(
        operand.strides[y] != 0 and abs(operand.strides[y]) < abs(operand.strides[x])
        for operand in walk.operands
    )
    whole = Plane(walk, sides, turned, length)
    if (loop := _of_any_axes(whole, limits)) is not None:
        return loop
    if not whole.are_words(lines=True):
        loop = _shifted_tiles(whole, limits) or _picked_tiles(whole, limits)
        if loop is not None:
            return loop
    plane = whole.in_words()
    is_split, words = max(map(len, sides)) > 1, plane.are_words(lines=True)
    rooms = {
        shape: sum(_tile_bytes(*shape, plane.length, operand.itemsize) for operand in plane.operands())
        for shape in _shapes(plane, length, is_split)
    }
    shapes = [shape for shape, room in rooms.items() if room <= limits.shared_memory_per_block]
    if not shapes:
        return None
    best = shapes[0]
    for shape in shapes[1:]:
        if _covered(plane, shape) < 0.75 * _covered(plane, best):
            best = shape
    is_wasted = _covered(plane, best) > _MOST_COVERED * plane.row * plane.column
    if is_split and is_wasted and (loop := permuted_tiles(walk, limits)) is not None:
        return loop
    name = f"tiles<{_flag(is_split)}, {_flag(words)}, {plane.length}, {best[0]}, {best[1]}>"
    return plane.loop(_TILES, name, *best, rooms[best])


def _shapes(plane: Plane, length: int, is_split: bool) -> tuple[tuple[int, int], ...]:
    """Return the shapes of tiles whose packets could have a length, best ones first."""
    shapes = _SHAPES[length]
    if plane.length != length or not plane.are_words(lines=True) or (length >= 8 and is_split):
        return shapes
    if length == 2 and len(plane.operands()) > 1:
        return shapes
    return (*_OF_WORDS.get(length, ()), *shapes)


def _shifted_tiles(plane: Plane, limits: Limits) -> Loop | None:
    """Return the loop that shifts small elements into words, where each operand lies along a side."""
    operands, last = plane.walk.operands, plane.walk.operands[-1]
    size = last.itemsize
    if not last.written or max(map(len, plane.sides)) > 1 or size > _SMALL:
        return None
    if any(operand.itemsize != size for operand in operands) or not all(
        map(plane.lies_along_its_side, operands, plane.turned)
    ):
        return None
    height, count = _SHIFTED_HEIGHT // size, sum(plane.turned)
    rooms = {
        bytes_ // size: count * _shifted_bytes(min(height, plane.column), bytes_, size)
        for bytes_ in _SHIFTED_WIDTHS
    }
    fits = [width for width, room in rooms.items() if room <= limits.shared_memory_per_block]
    if not fits:
        return None
    width = fits[0]
    is_small = _covered(plane, (width, height)) > _MOST_SHIFTED * plane.row * plane.column
    if is_small and len(plane.walk.shape) > 2:
        return None
    kinds = ", ".join(
        str(plane.kind(operand, turned)) for operand, turned in zip(operands, plane.turned, strict=True)
    )
    sectors = plane._replace(length=_SECTOR // size)
    return sectors.loop(_SHIFTED, f"shifted_tiles<{width}, {kinds}>", width, height, rooms[width])


def _shifted_bytes(rows: int, width: int, itemsize: int) -> int:
    """Return the shared memory of an input, as ``shifted_shape::bytes`` does."""
    each = 4 // itemsize
    words = -(-rows // each)
    return -(-words * (each * (width + _SECTOR) + 4) // _WORD) * _WORD


def _picked_tiles(plane: Plane, limits: Limits) -> Loop | None:
    """Return the loop that picks elements from words in shared memory, where each operand lies along a side.

    Several operands that are all turned, of small elements in words, are better off without.
    """
    operands, last = plane.walk.operands, plane.walk.operands[-1]
    largest, x = max(operand.itemsize for operand in operands), plane.sides.x[0]
    waiting = [
        turned
        for operand, turned in zip(operands, plane.turned, strict=True)
        if operand.strides[x] and not operand.written
    ]
    if not last.written or max(map(len, plane.sides)) > 1 or largest not in _PICKED_SHAPES:
        return None
    shape = _PICKED_SHAPES[largest][len(waiting) > 1]
    if shape is None or not all(map(plane.lies_along_its_side, operands, plane.turned)):
        return None
    if all(waiting) and len(waiting) > 1 and largest < 8 and plane.in_words().are_words(lines=True):
        return None
    width, height, parts_at_sectors = shape
    length = max(1, 4 // last.itemsize)
    # Sectors of small results are many elements, which are brought of large inputs for each row.
    phases = max(length, _SECTOR // last.itemsize)
    if not parts_at_sectors or phases * largest > _SECTOR:
        phases = length
    room = sum(
        _picked_bytes(width if operand.strides[x] else 0, height, phases, operand.itemsize, turned)
        for operand, turned in zip(operands, plane.turned, strict=True)
        if not operand.written
    )
    if room > limits.shared_memory_per_block:
        return None
    name = f"picked_tiles<{length}, {phases}, {width}, {height}>"
    return plane._replace(length=phases).loop(_PICKED, name, width, height, room)


def _picked_bytes(width: int, height: int, phases: int, itemsize: int, turned: bool) -> int:
    """Return the shared memory of an input, as ``picked`` has it."""
    word = max(4, itemsize)
    if width == 0:
        return -(-height * itemsize // _WORD) * _WORD
    if not turned:
        return -(-height * (width * itemsize + word) // _WORD) * _WORD
    lines = width + phases - 1
    gaps = lines // 32 + 1
    return -(-(lines * (height * itemsize + word) + gaps * word) // _WORD) * _WORD


def _covered(plane: Plane, shape: tuple[int, int]) -> int:
    """Return how many elements tiles of a shape have, those outside of the plane included."""
    return prod(
        -(-length // edge) * edge for length, edge in zip((plane.row, plane.column), shape, strict=True)
    )


def _flag(value: bool) -> str:
    return str(value).lower()


def _tile_bytes(width: int, height: int, length: int, itemsize: int) -> int:
    """Return the shared memory of an operand, as ``tile_memory::bytes`` does."""
    row = width + length + (1 if length > 1 else 0)
    return -(-height * row * itemsize // _WORD) * _WORD


# ---- strips ----


def strip_of(walk: ElementWalk, length: int) -> Plane | None:
    """Return the plane of a short side along which operands lie that lie along the other side as well."""
    if len(walk.shape) < 2 or any(
        operand.itemsize & (operand.itemsize - 1) or operand.address % operand.itemsize
        for operand in walk.operands
    ):
        return None
    for x, y in ((1, 0), *((0, axis) for axis in range(1, len(walk.shape)))):
        if not (2 <= walk.shape[y] <= _MOST_ROWS and walk.shape[x] >= _LONG):
            continue
        turned = tuple(_lies_along_both(operand, x, y, walk.shape[y]) for operand in walk.operands)
        has_short_rows = walk.shape[y] * max(operand.itemsize for operand in walk.operands) < 2 * _WORD
        is_needed = (
            x == 0
            or has_short_rows
            or any(operand.strides[x] == operand.itemsize for operand in walk.operands)
        )
        fits = all(
            each or operand.strides[x] in (0, operand.itemsize)
            for operand, each in zip(walk.operands, turned, strict=True)
        )
        if any(turned) and is_needed and fits:
            return Plane(walk, Sides((x,), (y,)), turned, length)
    return None


def _lies_along_both(operand: Walked, x: int, y: int, rows: int) -> bool:
    """Return whether an operand is consecutive along y and then along x, a few gaps aside where it is read."""
    pitch, rest = divmod(operand.strides[x], operand.itemsize)
    return (
        operand.strides[y] == operand.itemsize
        and rest == 0
        and rows <= pitch <= (rows if operand.written else 2 * rows)
    )


def _strips(plane: Plane, limits: Limits) -> Loop | None:
    pitches = [operand.strides[plane.sides.x[0]] for operand in plane.operands()]
    room = min(_STRETCH, limits.shared_memory_per_block // len(pitches) * 15 // 16)
    width = room // max(pitches) // _LEAST_WIDTH * _LEAST_WIDTH
    if width == 0:
        return None
    shared = sum(
        _strip_bytes((width + plane.length) * pitch, operand.itemsize)
        for pitch, operand in zip(pitches, plane.operands(), strict=True)
    )
    name = f"strips<{_flag(plane.are_words(lines=False))}, {plane.length}>"
    if shared > limits.shared_memory_per_block:
        return None
    return plane.loop(_STRIPS, name, width, plane.column, shared)


def _picked_strips(plane: Plane, limits: Limits) -> Loop | None:
    """Return the loop that picks elements from stretches in shared memory, where all inputs are turned."""
    walk, x = plane.walk, plane.sides.x[0]
    for operand, turned in zip(walk.operands, plane.turned, strict=True):
        if operand.written == turned or (operand.written and operand.strides[x] != operand.itemsize):
            return None
        if operand.itemsize > 4:
            return None
    last = walk.operands[-1]
    length = max(1, 4 // last.itemsize)
    pitches = [(operand.strides[x], max(4, operand.itemsize)) for operand in plane.operands()]
    threads = THREADS * length
    width = max(1, _STRETCH // max(pitches)[0] // len(pitches) // threads) * threads
    rooms = [(width + length) * pitch + word for pitch, word in pitches]
    shared = sum((room + room // 32 + 2 * _WORD) // _WORD * _WORD for room in rooms)
    if not last.written or shared > limits.shared_memory_per_block or plane.column > _FEW_ROWS:
        return None
    narrow = plane._replace(length=length)
    return narrow.loop(_PICKED_STRIPS, f"picked_strips<{length}>", width, plane.column, shared)


def _strip_bytes(stretch: int, itemsize: int) -> int:
    """Return the shared memory of an operand, as ``strip_memory::begin`` does."""
    gap = max(4, itemsize)
    room = stretch + _WORD
    return (room + room // (32 * gap) * gap + 2 * _WORD) // _WORD * _WORD
