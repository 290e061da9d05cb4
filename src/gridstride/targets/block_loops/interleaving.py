"""Loops over planes in which short rows lie one after another, as pixels do, and lines along the other side.

The loops are those of include/gridstride/interleaved.h and deinterleaved.h.
"""

from __future__ import annotations

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.element_loops import ALONG_Y, BETWEEN_WORDS, begins_as
from gridstride.targets.block_loops.planes import Plane
from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.walks import (
    LARGEST_WORD,
    LEAST_WORD,
    SECTOR,
    WARP,
    Loop,
    Walked,
    flag,
    power_of_two_from,
)

_INTERLEAVED, _DEINTERLEAVED = "gridstride/interleaved.h", "gridstride/deinterleaved.h"
_WARPS = 8
#: Elements of rows whose multiples let too many threads meet in banks.
_MEETING = 16
#: Lines of small elements at most of which a thread takes words of all.
_FEW = 20
#: Words of a thread in a line that is made of rows, as in the header.
_WORDS_TO_LINE = 4
#: How an input in planes lies, as the headers have it; the next number is for lines that go backwards, and the one
#: after it for rows that are shifted.
_IN_PLANES = ALONG_Y + 2
#: Bytes of elements, and of what a block has of an operand.
_SIZES, _STRETCH = (1, 2, 4, 8), 24576
#: Blocks of a multiprocessor at least where more than a block usually has is needed; and at most, unless elements are
#: bytes: more get in each other's way in memory. Bytes of shared memory that a block needs for itself.
_LEAST_SHARING, _MOST_SHARING, _RESERVED = 4, 5, 1024
#: Bytes by which planes lie farther from each other than they wait, as in the header.
_BESIDE = 48


def interleaving(plane: Plane, limits: Limits) -> Loop | None:
    """Return the loop for short rows made of lines, or for lines made of short rows."""
    if not _are_rows_and_lines(plane):
        return None
    return _interleaved(plane, limits) if plane.turned[-1] else _deinterleaved(plane, limits)


def _are_rows_and_lines(plane: Plane) -> bool:
    """Return whether outputs lie as the last operand, and all others as that or along the other side."""
    (x, y), last = (plane.sides.x[0], plane.sides.y[0]), plane.walk.operands[-1]
    if not last.written or any(operand.itemsize not in _SIZES for operand in plane.walk.operands):
        return False
    for operand, has_rows in zip(plane.walk.operands, plane.turned, strict=True):
        size = operand.itemsize
        if any(each % size for each in (operand.address, *operand.strides)):
            return False
        if operand.written and has_rows != plane.turned[-1]:
            return False
        steps = operand.strides[x], operand.strides[y]
        # What does not lie as outputs do may lie backwards.
        if has_rows != plane.turned[-1]:
            steps = abs(steps[0]), steps[1]
        if steps != (plane.column * size, size) if has_rows else steps[0] != size:
            return False
    return True


def _interleaved(plane: Plane, limits: Limits) -> Loop | None:
    rows, sizes = plane.column, _sizes(plane, of_rows=False)
    smallest, largest = min(sizes), max(sizes)
    if (
        smallest < LEAST_WORD
        and rows > _FEW
        and plane.are_words(lines=False)
        and _is_one_size(plane)
        and not plane.is_in_pieces()
    ):  # which strips take as packets
        return None
    lines, at_once, words = _lines(rows, smallest)
    width = _width(WARP * words * max(1, LEAST_WORD // smallest), rows * largest, plane, len(sizes), limits)
    has_gaps = rows % _MEETING == 0
    room = sum(_bytes(width, rows * size, size, has_gaps) for size in sizes)
    if room > limits.shared_memory_per_block:
        return None
    length = LARGEST_WORD // max(operand.itemsize for operand in plane.walk.operands)
    name = f"interleaved<{flag(has_gaps)}, {lines}, {at_once}, {words}, {_kinds(plane, length)}>"
    return plane.loop(_INTERLEAVED, name, width, rows, room)


def _sizes(plane: Plane, of_rows: bool) -> list[int]:
    """Return the itemsizes of the operands that lie in rows, or of the others."""
    return [
        operand.itemsize
        for operand, has_rows in zip(plane.walk.operands, plane.turned, strict=True)
        if has_rows == of_rows
    ]


def _is_one_size(plane: Plane) -> bool:
    return len({operand.itemsize for operand in plane.walk.operands}) == 1


def _lines(rows: int, size: int) -> tuple[int, int, int]:
    """Return what the header is told of lines, of how many a thread loads words at once, and how many words."""
    if size >= LEAST_WORD:
        return 0, 2, LARGEST_WORD // size
    if rows <= _FEW:
        return rows, 2, min(4, max(1, 16 // rows))
    if rows % 3 == 0:
        return 0, 3, 4
    if size > 1:
        return 0, 2, 4
    return (0, 4, 1) if rows % 4 == 0 else (0, 3, 2)


def _deinterleaved(plane: Plane, limits: Limits) -> Loop | None:
    size, rows = plane.walk.operands[-1].itemsize, plane.column
    are_words = size >= LEAST_WORD and plane.are_words(lines=False) and not plane.is_in_pieces()
    if _is_one_size(plane) and (rows % _MEETING == 0 or are_words):  # which strips take as packets
        return None
    length, sizes = max(1, LEAST_WORD // size), _sizes(plane, of_rows=True)
    if max(operand.itemsize for operand in plane.walk.operands) * length > LARGEST_WORD:
        return None
    chunk, sectors = WARP * _WORDS_TO_LINE * length, plane._replace(length=SECTOR // size)
    before = sectors.length if sectors.is_shifted() else 0
    width = _width(chunk, rows * max(sizes), plane, len(sizes), limits)
    room = sum(_bytes(width + before, rows * each, each, False) for each in sizes)
    lying = [
        _bytes_of_planes(plane, width + before, each)
        for each in plane.walk.operands
        if _is_shifted(plane, each)
    ]
    room, memory = room + sum(lying), limits.shared_memory_per_block_optin
    if room > max(limits.shared_memory_per_block, memory // _LEAST_SHARING):
        return None
    if size > 1:
        room = max(room, memory // _MOST_SHARING - _RESERVED)
    name = f"deinterleaved<{before or 1}, {_kinds(plane, length)}>"
    return sectors.loop(_DEINTERLEAVED, name, width, rows, room)


def _is_shifted(plane: Plane, operand: Walked) -> bool:
    """Return whether small elements in planes do not lie in words as they do if planes follow each other."""
    if len(plane.sides.x) == 1 or operand.itemsize >= LEAST_WORD or operand.written:
        return False
    inner, outer = plane.sides.x
    return (operand.strides[outer] - operand.strides[inner] * plane.walk.shape[inner]) % LARGEST_WORD != 0


def _bytes_of_planes(plane: Plane, count: int, operand: Walked) -> int:
    """Return the shared memory of planes that lie as in memory, as ``deinterleaved_planes`` has it."""
    touched = count // plane.walk.shape[plane.sides.x[0]] + 2
    return _bytes(count, plane.column * operand.itemsize, operand.itemsize, False) + touched * _BESIDE


def _kinds(plane: Plane, length: int) -> str:
    """Return how operands lie, as headers are told, of which packets have a length."""
    last = plane.walk.operands[-1]
    return ", ".join(
        str(BETWEEN_WORDS + begins_as(operand, last, plane.walk.shape, length))
        if has_rows == plane.turned[-1]
        else str(
            (_IN_PLANES if len(plane.sides.x) > 1 else ALONG_Y)
            + (plane.turned[-1] and operand.strides[plane.sides.x[0]] < 0)
            + 2 * (not plane.turned[-1] and _is_shifted(plane, operand))
        )
        for operand, has_rows in zip(plane.walk.operands, plane.turned, strict=True)
    )


def _width(chunk: int, pitch: int, plane: Plane, operands: int, limits: Limits) -> int:
    """Return how many rows a block has: as many as there is room for, or fewer that make as many blocks."""
    stretch = min(_STRETCH, limits.shared_memory_per_block // operands * 15 // 16)
    fits = stretch // pitch // chunk
    most = fits // _WARPS * _WARPS if fits >= _WARPS else max(1, power_of_two_from(fits + 1) // 2)
    chunks = ceil_div(plane.row, chunk)
    alike = ceil_div(chunks, ceil_div(chunks, most))
    return chunk * (alike if alike >= _WARPS else power_of_two_from(alike))


def _bytes(count: int, pitch: int, itemsize: int, has_gaps: bool) -> int:
    """Return the shared memory of rows, as ``row_memory::begin`` does."""
    word, room = max(LEAST_WORD, itemsize), count * pitch + 32
    return (room + has_gaps * (room // (32 * word)) * word + 15) // LARGEST_WORD * LARGEST_WORD
