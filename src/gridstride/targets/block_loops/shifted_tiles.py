"""The loop over tiles of small elements between words, which are shifted into words where they lie."""

from __future__ import annotations

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.planes import Plane
from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.walks import LARGEST_WORD, SECTOR, Loop

_HEADER = "gridstride/shifted_tiles.h"
#: Bytes of a row of a tile, best first, and of a line; bytes of elements at most.
_WIDTHS, _HEIGHT, _SMALL = (256, 128), 128, 2
#: How many times as many elements as a small plane has tiles may cover; and from which on others are better, where
#: there are several such planes.
_MOST_COVERED, _WASTED = 3, 1.04


def shifted_tiles(plane: Plane, limits: Limits) -> Loop | None:
    """Return the loop that shifts small elements into words, where each operand lies along a side."""
    operands, last = plane.walk.operands, plane.walk.operands[-1]
    size = last.itemsize
    if not last.written or max(map(len, plane.sides)) > 1 or size > _SMALL:
        return None
    if any(operand.itemsize != size for operand in operands) or not all(
        map(plane.lies_along_its_side, operands, plane.turned)
    ):
        return None
    height, count = _HEIGHT // size, sum(plane.turned)
    rooms = {
        bytes_ // size: count * _shared_bytes(min(height, plane.column), bytes_, size) for bytes_ in _WIDTHS
    }
    fits = [width for width, room in rooms.items() if room <= limits.shared_memory_per_block]
    if not fits:
        return None
    width = fits[0]
    is_small = plane.covered(width, height) > _MOST_COVERED * plane.row * plane.column
    if is_small and len(plane.walk.shape) > 2:
        return None
    kinds = ", ".join(
        str(plane.kind(operand, turned)) for operand, turned in zip(operands, plane.turned, strict=True)
    )
    sectors = plane._replace(length=SECTOR // size)
    return sectors.loop(_HEADER, f"shifted_tiles<{width}, {kinds}>", width, height, rooms[width])


def _shared_bytes(rows: int, width: int, itemsize: int) -> int:
    """Return the shared memory of an input, as ``shifted_shape::bytes`` does."""
    each = 4 // itemsize
    words = ceil_div(rows, each)
    return ceil_div(words * (each * (width + SECTOR) + 4), LARGEST_WORD) * LARGEST_WORD


def cover_badly(plane: Plane) -> bool:
    """Return whether tiles between words cover planes of small elements badly, of which there are several."""
    size = max(operand.itemsize for operand in plane.walk.operands)
    if len(plane.walk.shape) == 2 or size > _SMALL or max(map(len, plane.sides)) > 1:
        return False
    row, column = plane.row + SECTOR // size - 1, plane.column
    width, height = _WIDTHS[0] // size, _HEIGHT // size
    return (
        ceil_div(row, width) * width * ceil_div(column, height) * height > _WASTED * plane.row * plane.column
    )
