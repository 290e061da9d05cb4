"""Loops over tiles of planes, in which operands that lie along another axis are turned.

The loop is that of include/gridstride/tiles.h, or where others do better than it: shifted_tiles.py, picked_tiles.py,
permuted_tiles.py and boxes.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.element_loops import reads_one
from gridstride.targets.block_loops.permuted_tiles import (
    are_at_sectors,
    are_small_planes,
    filled,
    moved_by_sectors,
    permuted_tiles,
    rows_go_on,
)
from gridstride.targets.block_loops.picked_tiles import picked_tiles
from gridstride.targets.block_loops.planes import Plane, Sides
from gridstride.targets.block_loops.shifted_tiles import cover_badly, shifted_tiles
from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.walks import LARGEST_WORD, LEAST_WORD, SECTOR, THREADS, ElementWalk, Ints, Loop, flag

_HEADER = "gridstride/tiles.h"
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
#: The one that comes first where a side has two axes, and packets of elements of two bytes are 8 bytes.
_OF_HALF_WORDS = (64, 128)
#: Width and height of tiles of large elements one by one.
_SHAPES_OF_ANY = ((64, 64), (32, 32), (16, 16))
#: Bytes of small elements at most, and of wide ones.
_SMALL, _WIDE = 2, 8
#: Sides shorter than this are not worth turning in tiles, and than these not in tiles of one axis a side.
_SHORT, _MOST_ROWS = 16, 64
#: Rows from which on packets of large elements do without further axes.
_LONG = THREADS
#: How many times as many elements as a plane has tiles may cover, where sides of more axes have fewer outside: in
#: general, where sides are of two axes already, and of small elements in words.
_MOST_COVERED, _MOST_COVERED_SPLIT, _MOST_COVERED_SMALL = 2.5, 1.5, 4
#: Which part of what the first tiles cover smaller ones must, to be better: of elements of four bytes or less and sides
#: of one axis, and of others.
_FAR_FEWER, _FEWER = 0.5, 0.75
#: How many times as long as lines rows are, of which tiles of any axes are better, of large elements between words.
_SHORTER = 2
#: The longest side of planes of small elements of which boxes are made rather than tiles that begin between words, and
#: how many elements planes have of which boxes are better than any tiles.
_SMALL_PLANE, _FEW_OF_PLANE = 128, 8192
#: Where several arrays are read: the longest shorter side of which tiles of any axes are better, of two-byte elements
#: between words, and how many elements planes of others have.
_SHORTER_SIDE, _FEW_OF_SEVERAL = 1024, 1 << 17
#: Which part of tiles of any axes lies within the plane at least, of small elements and of others, or boxes are better.
_LEAST_FILLED = (0.6, 0.51)


def turned_tiles(walk: ElementWalk, length: int, limits: Limits) -> Loop | None:
    """Return a loop over tiles, where operands lie along different axes; packets have a length."""
    if not walk.operands or any(operand.itemsize > LARGEST_WORD for operand in walk.operands):
        return None
    sides = sides_of_tiles(walk)
    return _of_any_axes(walk, limits) if sides is None else _tiles(walk, sides, length, limits)


def any_tiles(walk: ElementWalk, length: int, limits: Limits) -> Loop | None:
    """Return a loop over tiles of which there is one for most walks; None where operands lie along the same axis."""
    sizes = [operand.itemsize for operand in walk.operands]
    if not sizes or max(sizes) > LARGEST_WORD:
        return None
    sides = sides_of_tiles(walk)
    if sides is None or max(map(len, sides)) > 1:
        return None
    if are_large := min(sizes) >= LEAST_WORD:
        length = 1
    plane = Plane(_with_a_further_axis(walk), sides, _turned(walk, sides), length)
    if are_large and not plane.are_words(lines=True):
        return None
    for shape in _SHAPES_OF_ANY if are_large else _SHAPES[length]:
        rooms = [_tile_bytes(*shape, length, size) for size in sizes]
        if sum(rooms[1:]) <= limits.shared_memory_per_block:
            name = f"tiles<false, {flag(are_large)}, {length}, {shape[0]}, {shape[1]}>"
            return plane.loop(
                _HEADER,
                name,
                *shape,
                sum(_tile_bytes(*shape, length, each.itemsize) for each in plane.operands()),
            )
    return None


def _with_a_further_axis(walk: ElementWalk) -> ElementWalk:
    """Return a walk of three axes or more, for which structures have the same room as for several more."""
    if len(walk.shape) > 2:
        return walk
    operands = tuple(each._replace(strides=(*each.strides, 0)) for each in walk.operands)
    return ElementWalk((*walk.shape, 1), (*walk.numbers, 0), operands)


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


def _turned(walk: ElementWalk, sides: Sides) -> tuple[bool, ...]:
    """Return which operands lie along the second side."""
    x, y = sides.x[0], sides.y[0]
    return tuple(
        operand.strides[y] != 0 and abs(operand.strides[y]) < abs(operand.strides[x])
        for operand in walk.operands
    )


def _of_any_axes(walk: ElementWalk, limits: Limits) -> Loop | None:
    """Return a loop whose sides are any number of axes: over tiles, or where these are not filled, over boxes."""
    loop = (
        _boxes_of_small_planes(walk, limits)
        or moved_by_sectors(walk, limits)
        or _beside_repeated(walk, limits)
    )
    if loop is not None:
        return loop
    is_small = max(operand.itemsize for operand in walk.operands) <= _SMALL
    if filled(walk) < _LEAST_FILLED[not is_small]:
        from gridstride.targets.block_loops.boxes import boxes

        if (loop := boxes(walk, limits)) is not None:
            return loop
    return permuted_tiles(walk, limits)


def _boxes_of_small_planes(walk: ElementWalk, limits: Limits) -> Loop | None:
    """Return a loop over boxes of whole planes, where these are so small that tiles are cut by their ends."""
    largest = max(operand.itemsize for operand in walk.operands)
    if largest > _WIDE or not are_small_planes(walk, _FEW_OF_PLANE):
        return None
    from gridstride.targets.block_loops.boxes import LONG_RUN, boxes

    loop = moved_by_sectors(walk, limits) if largest == LEAST_WORD else None
    return loop or _beside_repeated(walk, limits) or boxes(walk, limits, LONG_RUN)


def _beside_repeated(walk: ElementWalk, limits: Limits) -> Loop | None:
    """Return a loop over tiles of any axes, where inputs repeat elements and rows of results begin at sectors."""
    are_repeated = any(0 in operand.strides for operand in walk.operands)
    is_byte = max(operand.itemsize for operand in walk.operands) == 1
    return permuted_tiles(walk, limits) if are_repeated and not is_byte and are_at_sectors(walk) else None


def _of_small_planes(plane: Plane, limits: Limits) -> Loop | None:
    """Return a loop over boxes of whole planes, where these are small, or larger and of small elements."""
    if (loop := _boxes_of_small_planes(plane.walk, limits)) is not None:
        return loop
    largest = max(operand.itemsize for operand in plane.walk.operands)
    if largest > _SMALL or max(plane.row, plane.column) > _SMALL_PLANE:
        return None
    from gridstride.targets.block_loops.boxes import LONG_RUN, boxes

    return moved_by_sectors(plane.walk, limits) or boxes(plane.walk, limits, LONG_RUN)


def _instead_of_packets(plane: Plane, limits: Limits) -> Loop | None:
    """Return such a loop, where tiles of packets do not do as well."""
    largest, packets = max(operand.itemsize for operand in plane.walk.operands), plane.in_words()
    is_split = max(map(len, plane.sides)) > 1
    if len(plane.walk.shape) == 2:
        return None
    if (
        is_split
        and (loop := permuted_tiles(plane.walk, limits, only_sectors=True, only_large=True)) is not None
    ):
        return loop
    if 1 < packets.length > plane.length // 4 and packets.are_words(lines=True):
        are_sectors = plane._replace(length=SECTOR // largest).are_words(lines=True)
        if not is_split or largest < LARGEST_WORD // 2 or are_sectors or plane.row < _LONG // 2:
            return None
    elif not is_split and min(plane.row, plane.column) > _MOST_ROWS:
        return None
    return _of_any_axes(plane.walk, limits)


def _tiles(walk: ElementWalk, sides: Sides, length: int, limits: Limits) -> Loop | None:
    whole = Plane(walk, sides, _turned(walk, sides), length)
    if (loop := _instead_of_packets(whole, limits)) is not None:
        return loop
    plane = whole.in_words()
    if not whole.are_words(lines=True):
        loop = _of_small_planes(whole, limits) or _of_several_sizes(whole, limits)
        if loop is None:
            loop = _between_words(whole, limits)
        if loop is not None:
            return loop
    is_split, words = max(map(len, sides)) > 1, plane.are_words(lines=True)
    if (
        words
        and _are_halves_for_any_axes(plane)
        and (loop := permuted_tiles(walk, limits, only_sectors=True))
    ):
        return loop
    rooms = {
        shape: sum(_tile_bytes(*shape, plane.length, operand.itemsize) for operand in plane.operands())
        for shape in _shapes(plane, length, is_split)
    }
    shapes = [shape for shape, room in rooms.items() if room <= limits.shared_memory_per_block]
    if not shapes:
        return None
    best, fewer = shapes[0], _FEWER if is_split or length < LARGEST_WORD // 4 else _FAR_FEWER
    for shape in shapes[1:]:
        if plane.covered(*shape) <= fewer * plane.covered(*best):
            best = shape
    most = (
        _MOST_COVERED_SPLIT if is_split else _MOST_COVERED_SMALL if length >= 8 and words else _MOST_COVERED
    )
    is_wasted = plane.covered(*best) > most * plane.row * plane.column
    is_short = best[0] * best[1] < THREADS * plane.length
    is_flat = not is_split and len(walk.shape) == 2
    if (is_wasted or is_short) and not is_flat and (loop := _of_any_axes(walk, limits)) is not None:
        return loop
    name = f"tiles<{flag(is_split)}, {flag(words)}, {plane.length}, {best[0]}, {best[1]}>"
    return plane.loop(_HEADER, name, *best, rooms[best])


def _of_several_sizes(plane: Plane, limits: Limits) -> Loop | None:
    """Return a loop over tiles of any axes, where operands of several sizes are turned and begin between words."""
    sizes, words = {operand.itemsize for operand in plane.operands()}, plane.in_words()
    is_small = max(operand.itemsize for operand in plane.walk.operands) < LARGEST_WORD // 2
    if len(plane.operands()) == 1 or not is_small or (words.length > 1 and words.are_words(lines=True)):
        return None
    return permuted_tiles(plane.walk, limits) if sizes != {plane.walk.operands[-1].itemsize} else None


def _between_words(plane: Plane, limits: Limits) -> Loop | None:
    """Return a loop over tiles whose rows and lines may begin between words; None where smaller words do better."""
    walk, is_small = plane.walk, max(operand.itemsize for operand in plane.walk.operands) <= _SMALL
    if cover_badly(plane) and plane.in_words().are_words(lines=True):
        return moved_by_sectors(walk, limits) or (permuted_tiles(walk, limits) if rows_go_on(walk) else None)
    if _are_of_any_axes(plane, is_small):
        loop = permuted_tiles(walk, limits)
    elif cover_badly(plane):
        loop = _instead_of_shifted(plane, limits)
    else:
        loop = shifted_tiles(plane, limits)
    return loop or picked_tiles(plane, limits)


def _are_of_any_axes(plane: Plane, is_small: bool) -> bool:
    """Return whether tiles of any axes are better for planes between words."""
    if reads_one(plane.walk):
        return is_small or plane.row > _SHORTER * plane.column or rows_go_on(plane.walk, only_sectors=True)
    if len(plane.walk.shape) == 2:
        largest = max(operand.itemsize for operand in plane.walk.operands)
        return largest == _SMALL and min(plane.row, plane.column) <= _SHORTER_SIDE
    return plane.row * plane.column <= _FEW_OF_SEVERAL


def _instead_of_shifted(plane: Plane, limits: Limits) -> Loop | None:
    """Return a loop over tiles for planes of bytes that those between words cover badly, or over these."""
    if max(operand.itemsize for operand in plane.walk.operands) == 1:
        return permuted_tiles(plane.walk, limits)
    return shifted_tiles(plane, limits)


def _are_halves_for_any_axes(plane: Plane) -> bool:
    """Return whether packets are words of two-byte elements, and some lines begin between sectors, or rows go on."""
    sectors = plane._replace(length=2 * plane.length)
    if plane.length != LARGEST_WORD // _SMALL:
        return False
    return not sectors.are_words(lines=True) or (not reads_one(plane.walk) and rows_go_on(plane.walk))


def _shapes(plane: Plane, length: int, is_split: bool) -> tuple[tuple[int, int], ...]:
    """Return the shapes of tiles whose packets could have a length, best ones first."""
    shapes = _SHAPES[length]
    if is_split and (length, plane.length) == (8, 4) and plane.are_words(lines=True):
        return (_OF_HALF_WORDS, *shapes)
    if plane.length != length or not plane.are_words(lines=True) or (length >= 8 and is_split):
        return shapes
    if length == 2 and len(plane.operands()) > 1:
        return shapes
    # Between sectors long rows of tiles are better.
    if length == 8 and not plane._replace(length=2 * length).are_words(lines=True):
        return shapes
    return (*_OF_WORDS.get(length, ()), *shapes)


def _tile_bytes(width: int, height: int, length: int, itemsize: int) -> int:
    """Return the shared memory of an operand, as ``tile_memory::bytes`` does."""
    row = width + length + (1 if length > 1 else 0)
    return ceil_div(height * row * itemsize, LARGEST_WORD) * LARGEST_WORD
