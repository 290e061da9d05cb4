"""The loop over tiles between words, from which elements are picked as they lie in shared memory."""

from __future__ import annotations

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.planes import Plane
from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.walks import LARGEST_WORD, SECTOR, Loop

_HEADER = "gridstride/picked_tiles.h"
#: Width and height of tiles by the bytes of the largest element, and whether rows are parted at sectors rather
#: than words: of one input or smaller results, and of several.
_SHAPES = {
    1: (None, (128, 128, True)),
    2: ((64, 128, True), (64, 64, False)),
    4: ((64, 64, True), (64, 32, True)),
    8: ((64, 32, True), (32, 32, True)),
}


def picked_tiles(plane: Plane, limits: Limits) -> Loop | None:
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
    if not last.written or max(map(len, plane.sides)) > 1 or largest not in _SHAPES:
        return None
    if not all(map(plane.lies_along_its_side, operands, plane.turned)):
        return None
    if all(waiting) and len(waiting) > 1 and largest < 8 and plane.in_words().are_words(lines=True):
        return None
    one, several = _SHAPES[largest]
    shapes = (one,) if len(waiting) <= 1 else (several,) if last.itemsize == largest else (one, several)
    loops = (_tiles_of(plane, limits, *shape) for shape in shapes if shape is not None)
    return next((loop for loop in loops if loop is not None), None)


def _tiles_of(plane: Plane, limits: Limits, width: int, height: int, parts_at_sectors: bool) -> Loop | None:
    """Return the loop by tiles of a shape, if there is room for them."""
    operands, last = plane.walk.operands, plane.walk.operands[-1]
    length = max(1, 4 // last.itemsize)
    # Sectors of small results are many elements, which are brought of large inputs for each row.
    phases = max(length, SECTOR // last.itemsize)
    if not parts_at_sectors or phases * max(operand.itemsize for operand in operands) > SECTOR:
        phases = length
    room = sum(
        _shared_bytes(
            width if operand.strides[plane.sides.x[0]] else 0, height, phases, operand.itemsize, turned
        )
        for operand, turned in zip(operands, plane.turned, strict=True)
        if not operand.written
    )
    if room > limits.shared_memory_per_block:
        return None
    name = f"picked_tiles<{length}, {phases}, {width}, {height}>"
    return plane._replace(length=phases).loop(_HEADER, name, width, height, room)


def _shared_bytes(width: int, height: int, phases: int, itemsize: int, turned: bool) -> int:
    """Return the shared memory of an input, as ``picked`` has it."""
    word = max(4, itemsize)
    if width == 0:
        return ceil_div(height * itemsize, LARGEST_WORD) * LARGEST_WORD
    if not turned:
        return ceil_div(height * (width * itemsize + word), LARGEST_WORD) * LARGEST_WORD
    lines = width + phases - 1
    gaps = lines // 32 + 1
    return ceil_div(lines * (height * itemsize + word) + gaps * word, LARGEST_WORD) * LARGEST_WORD
