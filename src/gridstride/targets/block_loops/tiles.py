"""Loops over tiles of planes, in which operands that lie along another axis are turned.

The loops are those of include/gridstride/tiles.h, shifted_tiles.h, picked.h and permuted.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.permuted import filled, permuted_tiles
from gridstride.targets.block_loops.planes import Plane, Sides
from gridstride.targets.walks import LARGEST_WORD, LEAST_WORD, SECTOR, THREADS, ElementWalk, Ints, Loop, flag

_TILES, _PICKED, _SHIFTED = (f"gridstride/{name}.h" for name in ("tiles", "picked", "shifted_tiles"))
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
#: Width and height of picked tiles by the bytes of the largest element, and whether rows are parted at sectors rather
#: than words: of one input or smaller results, and of several.
_PICKED_SHAPES = {
    1: (None, (128, 128, True)),
    2: ((64, 128, True), (64, 64, False)),
    4: ((64, 64, True), (64, 32, True)),
    8: ((64, 32, True), (32, 32, True)),
}
#: Bytes of a row, best first, and of a line of shifted tiles, which are for elements of so many bytes at most.
_SHIFTED_WIDTHS, _SHIFTED_HEIGHT, _SMALL = (256, 128), 128, 2
#: Sides shorter than this are not worth turning in tiles, and than these not in tiles of one axis a side.
_SHORT, _MOST_ROWS = 16, 64
#: Rows from which on packets of large elements do without further axes.
_LONG = THREADS
#: How many times as many elements as a plane has tiles may cover, where sides of more axes have fewer outside; and
#: shifted tiles, where planes are small.
_MOST_COVERED, _MOST_COVERED_SPLIT, _MOST_COVERED_SMALL, _MOST_SHIFTED = 2.5, 1.5, 4, 3
#: The same from which on other tiles of small elements are better than those between words.
_WASTED = 1.04
#: Which part of what the first tiles cover smaller ones must, to be better: of elements of four bytes or less and sides
#: of one axis, and of others.
_FAR_FEWER, _FEWER = 0.5, 0.75
#: The longest side of planes of which boxes are made rather than tiles that begin between words.
_SMALL_PLANE = 128
#: Which part of tiles of any axes lies within the plane at least, of small elements and of others, or boxes are better.
_LEAST_FILLED = (0.65, 0.51)


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
                _TILES,
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
    is_small = max(operand.itemsize for operand in walk.operands) <= _SMALL
    if filled(walk) < _LEAST_FILLED[not is_small]:
        from gridstride.targets.block_loops.boxes import boxes

        if (loop := boxes(walk, limits)) is not None:
            return loop
    return permuted_tiles(walk, limits)


def _of_small_planes(plane: Plane, limits: Limits) -> Loop | None:
    """Return a loop over boxes of whole planes, where these are small and of small elements."""
    largest = max(operand.itemsize for operand in plane.walk.operands)
    if largest > _SMALL or max(plane.row, plane.column) > _SMALL_PLANE:
        return None
    from gridstride.targets.block_loops.boxes import LONG_RUN, boxes

    return boxes(plane.walk, limits, LONG_RUN)


def _instead_of_packets(plane: Plane, limits: Limits) -> Loop | None:
    """Return such a loop, where tiles of packets do not do as well."""
    largest, packets = max(operand.itemsize for operand in plane.walk.operands), plane.in_words()
    is_split = max(map(len, plane.sides)) > 1
    if len(plane.walk.shape) == 2:
        return None
    if is_split and (loop := permuted_tiles(plane.walk, limits, only_sectors=True)) is not None:
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
        if loop is None and not _are_covered_badly(whole):
            loop = _shifted_tiles(whole, limits) or _picked_tiles(whole, limits)
        elif loop is None and not plane.are_words(lines=True):
            loop = _instead_of_shifted(whole, limits) or _picked_tiles(whole, limits)
        if loop is not None:
            return loop
    is_split, words = max(map(len, sides)) > 1, plane.are_words(lines=True)
    rooms = {
        shape: sum(_tile_bytes(*shape, plane.length, operand.itemsize) for operand in plane.operands())
        for shape in _shapes(plane, length, is_split)
    }
    shapes = [shape for shape, room in rooms.items() if room <= limits.shared_memory_per_block]
    if not shapes:
        return None
    best, fewer = shapes[0], _FEWER if is_split or length < LARGEST_WORD // 4 else _FAR_FEWER
    for shape in shapes[1:]:
        if _covered(plane, shape) <= fewer * _covered(plane, best):
            best = shape
    most = (
        _MOST_COVERED_SPLIT if is_split else _MOST_COVERED_SMALL if length >= 8 and words else _MOST_COVERED
    )
    is_wasted = _covered(plane, best) > most * plane.row * plane.column
    is_short = best[0] * best[1] < THREADS * plane.length
    is_flat = not is_split and len(walk.shape) == 2
    if (is_wasted or is_short) and not is_flat and (loop := _of_any_axes(walk, limits)) is not None:
        return loop
    name = f"tiles<{flag(is_split)}, {flag(words)}, {plane.length}, {best[0]}, {best[1]}>"
    return plane.loop(_TILES, name, *best, rooms[best])


def _of_several_sizes(plane: Plane, limits: Limits) -> Loop | None:
    """Return a loop over tiles of any axes, where operands of several sizes are turned and begin between words."""
    sizes, words = {operand.itemsize for operand in plane.operands()}, plane.in_words()
    is_small = max(operand.itemsize for operand in plane.walk.operands) < LARGEST_WORD // 2
    if len(plane.operands()) == 1 or not is_small or (words.length > 1 and words.are_words(lines=True)):
        return None
    return permuted_tiles(plane.walk, limits) if sizes != {plane.walk.operands[-1].itemsize} else None


def _are_covered_badly(plane: Plane) -> bool:
    """Return whether tiles between words cover planes of small elements badly, of which there are several."""
    size = max(operand.itemsize for operand in plane.walk.operands)
    if len(plane.walk.shape) == 2 or size > _SMALL or max(map(len, plane.sides)) > 1:
        return False
    row, column = plane.row + SECTOR // size - 1, plane.column
    width, height = _SHIFTED_WIDTHS[0] // size, _SHIFTED_HEIGHT // size
    return -(-row // width) * width * -(-column // height) * height > _WASTED * plane.row * plane.column


def _instead_of_shifted(plane: Plane, limits: Limits) -> Loop | None:
    """Return a loop over tiles for planes of bytes that those between words cover badly, or over these."""
    if max(operand.itemsize for operand in plane.walk.operands) == 1:
        return permuted_tiles(plane.walk, limits)
    return _shifted_tiles(plane, limits)


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
    sectors = plane._replace(length=SECTOR // size)
    return sectors.loop(_SHIFTED, f"shifted_tiles<{width}, {kinds}>", width, height, rooms[width])


def _shifted_bytes(rows: int, width: int, itemsize: int) -> int:
    """Return the shared memory of an input, as ``shifted_shape::bytes`` does."""
    each = 4 // itemsize
    words = -(-rows // each)
    return -(-words * (each * (width + SECTOR) + 4) // LARGEST_WORD) * LARGEST_WORD


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
    if not all(map(plane.lies_along_its_side, operands, plane.turned)):
        return None
    if all(waiting) and len(waiting) > 1 and largest < 8 and plane.in_words().are_words(lines=True):
        return None
    one, several = _PICKED_SHAPES[largest]
    shapes = (one,) if len(waiting) <= 1 else (several,) if last.itemsize == largest else (one, several)
    loops = (_picked_by(plane, limits, *shape) for shape in shapes if shape is not None)
    return next((loop for loop in loops if loop is not None), None)


def _picked_by(plane: Plane, limits: Limits, width: int, height: int, parts_at_sectors: bool) -> Loop | None:
    """Return the loop by tiles of a shape, if there is room for them."""
    operands, last = plane.walk.operands, plane.walk.operands[-1]
    length = max(1, 4 // last.itemsize)
    # Sectors of small results are many elements, which are brought of large inputs for each row.
    phases = max(length, SECTOR // last.itemsize)
    if not parts_at_sectors or phases * max(operand.itemsize for operand in operands) > SECTOR:
        phases = length
    room = sum(
        _picked_bytes(
            width if operand.strides[plane.sides.x[0]] else 0, height, phases, operand.itemsize, turned
        )
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
        return -(-height * itemsize // LARGEST_WORD) * LARGEST_WORD
    if not turned:
        return -(-height * (width * itemsize + word) // LARGEST_WORD) * LARGEST_WORD
    lines = width + phases - 1
    gaps = lines // 32 + 1
    return -(-(lines * (height * itemsize + word) + gaps * word) // LARGEST_WORD) * LARGEST_WORD


def _covered(plane: Plane, shape: tuple[int, int]) -> int:
    """Return how many elements tiles of a shape have, those outside of the plane included."""
    return prod(
        -(-length // edge) * edge for length, edge in zip((plane.row, plane.column), shape, strict=True)
    )


def _tile_bytes(width: int, height: int, length: int, itemsize: int) -> int:
    """Return the shared memory of an operand, as ``tile_memory::bytes`` does."""
    row = width + length + (1 if length > 1 else 0)
    return -(-height * row * itemsize // LARGEST_WORD) * LARGEST_WORD
