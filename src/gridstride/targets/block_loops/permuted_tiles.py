"""The loop over tiles of permuted axes, whose sides are any number of axes (include/gridstride/permuted_tiles.h)."""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.element_loops import element_loop, lies_along, reads_one
from gridstride.targets.block_loops.planes import Sides
from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.walks import (
    LARGEST_WORD,
    LEAST_WORD,
    SECTOR,
    THREADS,
    ElementWalk,
    Ints,
    Loop,
    Walked,
)

#: Width and height of tiles by the bytes of the largest element.
_SHAPES = {1: (128, 256), 2: (128, 128), 4: (64, 64), 8: (64, 32), 16: (32, 16)}
#: The same where several arrays are read, and where one of them lies along neither side.
_SHAPES_OF_SEVERAL = {**_SHAPES, 1: (128, 128), 2: (128, 64)}
_SHAPES_OF_ANYWHERE = {1: (64, 32), 2: (64, 32), 4: (64, 32), 8: (32, 32), 16: (16, 16)}
#: The same of blocks of more threads, for sides that fill these, and how many such tiles a multiprocessor must have.
_LARGE_SHAPES = {2: (128, 256), 4: (128, 64), 8: (64, 64)}
_LARGE_THREADS, _LEAST_LARGE, _MOST_COVERED = 2 * THREADS, 8, 1.15
#: The same and their threads where all rows begin at sectors, for elements so small that packets are no better.
_OF_SECTORS = {1: (256, 256, 2 * THREADS), 2: (128, 128, THREADS)}
#: Heights of tiles of shorter sides, and the largest width of those.
_HEIGHTS, _MOST_WIDTH = (16, 24, 32, 40, 48, 64, 96, 128, 192, 256), 512
#: How much longer what wider tiles cover may be.
_MOST_WIDENED = 1.04
#: Which part of tiles lies within the plane at least where other loops do well, too.
_LEAST_FILLED = 0.6
#: Bytes of shared memory that a block needs for itself.
_RESERVED = 1024
#: Shorter sides are not worth a tile, and sides of so many tiles need no further axis.
_SHORT, _ENOUGH = 16, 16
#: How an operand lies, as the header has it.
_ALONG_X, _ALONG_Y, _ANYWHERE = range(3)


def permuted_tiles(
    walk: ElementWalk, limits: Limits, only_sectors: bool = False, only_large: bool = False
) -> Loop | None:
    """Return the loop over tiles of the axes along which outputs, and along which an input, are consecutive.

    Only where rows begin at sectors and tiles are not mostly empty, or where small elements fill large tiles, if that
    is said.
    """
    if not _are_elements(walk.operands):
        return None
    largest = max(operand.itemsize for operand in walk.operands)
    sides = _sides(walk, _SHAPES[largest])
    if sides is None or (only_large and largest not in _OF_SECTORS):
        return None
    phases = _phases(walk, sides)
    if only_sectors and (phases > 1 or filled(walk) < _LEAST_FILLED):
        return None
    kinds = [_kind(operand, walk.shape, sides) for operand in walk.operands]
    if any(operand.written and kind for operand, kind in zip(walk.operands, kinds, strict=True)):
        return None
    row, column = (prod(walk.shape[axis] for axis in side) for side in sides)

    def shared(width: int, height: int) -> int:
        return height * 4 + sum(
            _shared_bytes(width + (phases if phases > 1 else 0), height, operand.itemsize, kind)
            for operand, kind in zip(walk.operands, kinds, strict=True)
        )

    is_moved = reads_one(walk)
    width, height, threads = _large_shape(largest, phases == 1, is_moved)
    room = limits.shared_memory_per_block_optin // 2 - _RESERVED
    if not _fills(walk, (row, column), (width, height), limits) or shared(width, height) > room:
        if only_large:
            return None
        shape = _shape(largest, is_moved, _ANYWHERE in kinds)
        threads, (width, height) = THREADS, _tile(row + phases - 1, column, largest, shape)
        while shared(width, height) > limits.shared_memory_per_block and height >= _SHORT:
            height //= 2
        if height < _SHORT:
            return None
    numbers = (threads, phases, width, height, *map(len, sides), *kinds)
    name = f"permuted_tiles<{', '.join(map(str, numbers))}>"
    tiles = (ceil_div(column, height), ceil_div(row + phases - 1, width))
    return _loop(walk, sides, name, tiles, (row, column), shared(width, height), threads)


def moved_by_sectors(walk: ElementWalk, limits: Limits) -> Loop | None:
    """Return that loop where one array is read, and rows of results begin at sectors."""
    return permuted_tiles(walk, limits, only_sectors=True) if reads_one(walk) else None


def are_small_planes(walk: ElementWalk, most: int) -> bool:
    """Return whether there are several planes of so many elements at most, of which both sides are whole."""
    sides = _sides(walk, _SHAPES[LARGEST_WORD]) if _are_elements(walk.operands) else None
    lengths = () if sides is None else tuple(prod(walk.shape[axis] for axis in side) for side in sides)
    return bool(lengths) and prod(lengths) <= min(most, prod(walk.shape) - 1)


def are_at_sectors(walk: ElementWalk) -> bool:
    """Return whether there are tiles of which all rows of results begin at sectors."""
    sides = _sides(walk, _SHAPES[LARGEST_WORD]) if _are_elements(walk.operands) else None
    return sides is not None and _phases(walk, sides) == 1


def rows_go_on(walk: ElementWalk, only_sectors: bool = False) -> bool:
    """Return whether rows of results go on along further axes, and perhaps begin at sectors then."""
    sides = _sides(walk, _SHAPES[1]) if _are_elements(walk.operands) else None
    return sides is not None and len(sides.x) > 1 and (not only_sectors or _phases(walk, sides) == 1)


def _phases(walk: ElementWalk, sides: Sides) -> int:
    """Return at how many places of a sector rows of the last operand begin."""
    last = walk.operands[-1]
    strides = (stride for axis, stride in enumerate(last.strides) if axis not in sides.x)
    if last.address % LARGEST_WORD or any(stride % SECTOR for stride in strides):
        return SECTOR // last.itemsize
    return 1


def _fills(walk: ElementWalk, plane: tuple[int, int], tile: tuple[int, int], limits: Limits) -> bool:
    """Return whether there are as many tiles of a size as they should be, and sides fill them."""
    if prod(walk.shape) < _LEAST_LARGE * limits.multiprocessors * prod(tile):
        return False
    return all(
        edge > 0 and ceil_div(side, edge) * edge <= _MOST_COVERED * side
        for side, edge in zip(plane, tile, strict=True)
    )


def filled(walk: ElementWalk) -> float:
    """Return which part of the tiles of such a loop lies within the plane; 0 where there is none."""
    if not _are_elements(walk.operands):
        return 0.0
    largest = max(operand.itemsize for operand in walk.operands)
    sides = _sides(walk, _SHAPES[largest])
    if sides is None:
        return 0.0
    row, column = (prod(walk.shape[axis] for axis in side) for side in sides)
    shifted = row + _phases(walk, sides) - 1
    width, height = _tile(shifted, column, largest, _SHAPES[largest])
    return row * column / (ceil_div(shifted, width) * width * ceil_div(column, height) * height)


def _are_elements(operands: Sequence[Walked]) -> bool:
    """Return whether the last operand is an output, and all elements are words in memory."""
    return (
        bool(operands)
        and operands[-1].written
        and all(
            operand.itemsize in _SHAPES
            and all(each % operand.itemsize == 0 for each in (operand.address, *operand.strides))
            for operand in operands
        )
    )


def _sides(walk: ElementWalk, tile: tuple[int, int]) -> Sides | None:
    outputs = [operand for operand in walk.operands if operand.written]
    for operand in walk.operands:
        inner = _innermost(operand)
        if operand.written or not inner or not operand.strides[0]:  # a row may repeat an element
            continue
        x = _consecutive(walk, outputs, 0, _ENOUGH * tile[0], {inner})
        y = _consecutive(walk, [operand], inner, _ENOUGH * tile[1], x)
        lengths = [prod(walk.shape[axis] for axis in side) for side in (x, y)]
        return Sides(x, y) if min(lengths) >= _SHORT and max(lengths) < 2**30 else None
    return None


def _innermost(operand: Walked) -> int | None:
    """Return the axis along which neighboring elements are next to each other."""
    steps = enumerate(operand.strides)
    return next((axis for axis, stride in steps if stride == operand.itemsize), None)


def _consecutive(
    walk: ElementWalk, operands: Sequence[Walked], inner: int, enough: int, without: Container[int]
) -> Ints:
    """Return the axes along which operands are consecutive, from an inner one on, until these are long enough."""
    side = [inner]
    while (length := prod(walk.shape[axis] for axis in side)) < enough:
        following = [
            axis
            for axis in range(len(walk.shape))
            if axis not in side
            and axis not in without
            and all(operand.strides[axis] == operand.itemsize * length for operand in operands)
        ]
        if not following:
            break
        side.append(following[0])
    return tuple(side)


def _kind(operand: Walked, shape: Ints, sides: Sides) -> int:
    if lies_along(operand, shape, sides.x):
        return _ALONG_X
    return _ALONG_Y if not operand.written and lies_along(operand, shape, sides.y) else _ANYWHERE


def _large_shape(largest: int, at_sectors: bool, is_moved: bool) -> tuple[int, int, int]:
    """Return the width and the height of large tiles, no elements where there are none, and the threads of a block."""
    if at_sectors and largest in _OF_SECTORS:
        return _OF_SECTORS[largest]
    has_large = is_moved or largest > LEAST_WORD
    return (*(_LARGE_SHAPES.get(largest, (0, 0)) if has_large else (0, 0)), _LARGE_THREADS)


def _shape(largest: int, is_moved: bool, has_others: bool) -> tuple[int, int]:
    """Return the width and the height of tiles that sides fill."""
    shapes = _SHAPES_OF_ANYWHERE if has_others else _SHAPES if is_moved else _SHAPES_OF_SEVERAL
    return shapes[largest]


def _tile(row: int, column: int, largest: int, shape: tuple[int, int]) -> tuple[int, int]:
    """Return the width and the height of tiles, which are as short as the sides are, and then longer the other way."""
    width, height = shape
    area, narrowest, highest = width * height, SECTOR, 256 // min(largest, 4)
    while width >= 2 * row and width > narrowest:
        width //= 2
    if column < height or (column <= height * 3 // 2 and column * width <= area):
        height = next((each for each in _HEIGHTS if each >= column), height)
    while 2 * width * height <= area and 2 * width <= min(row, _MOST_WIDTH):
        if _covered(row, 2 * width) > _MOST_WIDENED * _covered(row, width):
            break
        width *= 2
    while 2 * width * height <= area and 2 * height <= min(column, highest):
        height *= 2
    return width, height


def _covered(side: int, edge: int) -> int:
    """Return how long so many edges are that cover a side."""
    return ceil_div(side, edge) * edge


def _shared_bytes(lines: int, height: int, itemsize: int, kind: int) -> int:
    """Return the shared memory of an operand, as ``permuted::take_memory`` takes it."""
    places = 8 * ((kind != _ALONG_X) * lines + (kind != _ALONG_Y) * height)
    if kind != _ALONG_Y:
        return places
    if itemsize < LEAST_WORD:
        turned = height * (lines * itemsize // LEAST_WORD | 1) * LEAST_WORD + height // 32 * LEAST_WORD
        as_they_lie = lines * (ceil_div(height * itemsize, LARGEST_WORD) + 1) * LARGEST_WORD + LARGEST_WORD
        waiting = max(turned, as_they_lie)
    else:
        waiting = lines * (height | 1) * itemsize
    return places + (waiting + 23) // LARGEST_WORD * LARGEST_WORD


def _loop(
    walk: ElementWalk,
    sides: Sides,
    name: str,
    tiles: Ints,
    lengths: tuple[int, int],
    shared: int,
    threads: int,
) -> Loop | None:
    x, y = sides
    order = (*x, *y, *(axis for axis in range(len(walk.shape)) if axis not in (*x, *y)))
    outer = (*tiles, *(walk.shape[axis] for axis in order))
    blocks = prod(outer[:2]) * prod(outer[2 + len(x) + len(y) :])
    if blocks >= 2**31:
        return None

    def ordered(strides: Ints) -> Ints:
        return (0, 0, *(strides[axis] for axis in order))

    return element_loop(
        "gridstride/permuted_tiles.h",
        name,
        walk,
        (*lengths, 0, 0),
        outer,
        lambda strides: (0, ordered(strides)),
        [(operand.itemsize, ordered(operand.strides)) for operand in walk.operands],
        count=blocks,
        shared=shared,
        threads=threads,
    )
