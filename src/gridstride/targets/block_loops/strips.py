"""Loops over strips: planes of which a side is so short that what a block needs of a turned operand is one stretch.

The loops are those of include/gridstride/strips.h and picked_strips.h, and of interleaving.py.
"""

from __future__ import annotations

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.element_loops import reads_one
from gridstride.targets.block_loops.permuted_tiles import moved_by_sectors, permuted_tiles
from gridstride.targets.block_loops.planes import Plane, Sides
from gridstride.targets.walks import LARGEST_WORD, LEAST_WORD, THREADS, ElementWalk, Loop, Walked, flag

_STRIPS, _PICKED_STRIPS = "gridstride/strips.h", "gridstride/picked_strips.h"
#: The longest sides for which a strip is better than tiles, which they would not fill.
_MOST_ROWS = 64
#: The longest of sides whose rows begin between words, which tiles fill badly, too.
_MOST_BETWEEN_WORDS = 200
#: The longest sides for which elements of a word or less are better picked from a strip as it lies.
_FEW_ROWS = 4
#: Strips that are shorter do not fill blocks, of elements of so many bytes at most.
_SHORT, _SMALL = 2 * THREADS, 2
#: The fewest lines that fill tiles, and of bytes in words; how long lines in planes are that boxes do not take.
_FEWEST_LINES, _FEWEST_LINES_OF_WORDS, _LONG_PIECE = 20, 32, 1024
#: Bytes of what a block turns in a strip, and how long strips are at least.
_STRETCH, _LEAST_WIDTH = 24576, 32
#: Lines in planes are so long at least, of pixels of so many parts at most, and rows of so many bytes: of lines made of
#: them, and where it is results that are rows.
_LEAST, _PARTS, _LONGEST_PIECE = 32, 16, (24576, 8192)


def strip_loop(walk: ElementWalk, length: int, limits: Limits) -> Loop | None:
    """Return a loop over strips, where operands lie along different axes; packets have a length."""
    if not walk.operands or any(operand.itemsize > LARGEST_WORD for operand in walk.operands):
        return None
    from gridstride.targets.block_loops.boxes import boxes
    from gridstride.targets.block_loops.interleaving import interleaving

    is_moved = reads_one(walk)
    pieces = _pieces_of(walk, length)
    is_small = max((operand.itemsize for operand in walk.operands), default=1) <= _SMALL
    if pieces is not None:
        in_boxes = walk.shape[pieces.sides.x[0]] < _LONG_PIECE and (is_small or pieces.turned[-1])
        loop = (boxes(walk, limits) if is_moved and in_boxes else None) or interleaving(pieces, limits)
        if loop is not None:
            return loop
    strip = _strip_of(walk, length)
    if strip is None:
        return _of_more_rows(walk, length, limits) if is_moved else None
    if strip.row < _SHORT and is_small:
        loop = moved_by_sectors(walk, limits) or (boxes(walk, limits) if not _repeats_wide(walk) else None)
        if loop is not None:
            return loop
    loop = interleaving(strip, limits)
    if loop is not None or strip.is_backwards():
        return loop
    return _picked_strips(strip, limits) or _in_tiles(strip, limits) or _strips(strip, limits)


def _repeats_wide(walk: ElementWalk) -> bool:
    """Return whether an input repeats elements that are wider than bytes."""
    return any(0 in operand.strides and operand.itemsize > 1 for operand in walk.operands)


def _in_tiles(strip: Plane, limits: Limits) -> Loop | None:
    """Return the loop over tiles of any axes, where strips take longer."""
    largest, words = max(operand.itemsize for operand in strip.walk.operands), strip.are_words(lines=False)
    if not reads_one(strip.walk):
        is_short = largest == 1 and strip.column < _FEWEST_LINES
        return None if is_short else permuted_tiles(strip.walk, limits, only_sectors=True)
    if strip.turned[-1]:
        return moved_by_sectors(strip.walk, limits) if largest <= _SMALL else None
    if largest == 1 and words and strip.column > _FEWEST_LINES_OF_WORDS:
        return moved_by_sectors(strip.walk, limits)
    if strip.column < _FEWEST_LINES or (largest <= LEAST_WORD and words):
        return None
    return permuted_tiles(strip.walk, limits)


def _of_more_rows(walk: ElementWalk, length: int, limits: Limits) -> Loop | None:
    """Return the loop for more short rows made of lines, or lines made of them, where these begin between words."""
    from gridstride.targets.block_loops.interleaving import interleaving

    plane = _strip_of(walk, length, most=_MOST_BETWEEN_WORDS)
    if plane is None or plane.is_in_pieces():
        return None
    largest = max(operand.itemsize for operand in walk.operands)
    words = plane.in_words() if largest <= _SMALL else plane
    if largest > LEAST_WORD or words.are_words(lines=True):
        return None
    return interleaving(plane, limits)


def _pieces_of(walk: ElementWalk, length: int) -> Plane | None:
    """Return the plane of short lines, as of images that are flipped or cut out, that follow each other in results."""
    plane = _strip_of(walk, length, _LEAST)
    if plane is None or len(walk.shape) < 3:
        return None
    (x,), (y,), shape = *plane.sides, walk.shape
    following = next(axis for axis in range(len(shape)) if axis not in (x, y))
    if shape[y] > _PARTS or shape[x] * shape[following] >= 1 << 31:
        return None
    if walk.numbers[following] != walk.numbers[x] * shape[x]:
        return None
    apart = []
    for operand, has_rows in zip(plane.walk.operands, plane.turned, strict=True):
        apart.append(operand.strides[following] != operand.strides[x] * shape[x])
        if has_rows == plane.turned[-1] and (apart[-1] or operand.strides[x] <= 0):
            return None
        if has_rows and shape[x] * abs(operand.strides[x]) > _LONGEST_PIECE[plane.turned[-1]]:
            return None
    return plane._replace(sides=Sides((x, following), (y,))) if any(apart) else None


def _strip_of(walk: ElementWalk, length: int, least: int = THREADS, most: int = _MOST_ROWS) -> Plane | None:
    """Return the plane of a short side along which operands lie that lie along the other side as well."""
    if len(walk.shape) < 2 or any(
        operand.itemsize & (operand.itemsize - 1) or operand.address % operand.itemsize
        for operand in walk.operands
    ):
        return None
    for x, y in ((1, 0), *((0, axis) for axis in range(1, len(walk.shape)))):
        if not (2 <= walk.shape[y] <= most and walk.shape[x] >= least):
            continue
        seen = _with_results_forwards(walk, x)
        turned = tuple(_lies_along_both(operand, x, y, walk.shape[y]) for operand in seen.operands)
        has_short_rows = walk.shape[y] * max(operand.itemsize for operand in walk.operands) < 2 * LARGEST_WORD
        is_needed = (
            x == 0
            or has_short_rows
            or any(abs(operand.strides[x]) == operand.itemsize for operand in seen.operands)
        )
        fits = all(
            each
            or operand.strides[x] in (0, operand.itemsize)
            or (operand.strides[x] == -operand.itemsize and not operand.written)
            for operand, each in zip(seen.operands, turned, strict=True)
        )
        if any(turned) and is_needed and fits:
            return Plane(seen, Sides((x,), (y,)), turned, length)
    return None


def _with_results_forwards(walk: ElementWalk, axis: int) -> ElementWalk:
    """Return the walk from the other end of an axis, where results go backwards along it and are not numbered."""
    last = walk.operands[-1]
    if not last.written or last.strides[axis] >= 0 or walk.numbers[axis]:
        return walk
    operands = tuple(
        operand._replace(
            address=operand.address + operand.strides[axis] * (walk.shape[axis] - 1),
            strides=(*operand.strides[:axis], -operand.strides[axis], *operand.strides[axis + 1 :]),
        )
        for operand in walk.operands
    )
    return walk._replace(operands=operands)


def _lies_along_both(operand: Walked, x: int, y: int, rows: int) -> bool:
    """Return whether an operand is consecutive along y and then along x, a few gaps aside where it is read.

    What is read may go backwards along x.
    """
    pitch, rest = divmod(operand.strides[x] if operand.written else abs(operand.strides[x]), operand.itemsize)
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
    name = f"strips<{flag(plane.are_words(lines=False))}, {plane.length}>"
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
    shared = sum((room + room // 32 + 2 * LARGEST_WORD) // LARGEST_WORD * LARGEST_WORD for room in rooms)
    if not last.written or shared > limits.shared_memory_per_block or plane.column > _FEW_ROWS:
        return None
    narrow = plane._replace(length=length)
    return narrow.loop(_PICKED_STRIPS, f"picked_strips<{length}>", width, plane.column, shared)


def _strip_bytes(stretch: int, itemsize: int) -> int:
    """Return the shared memory of an operand, as ``strip_memory::begin`` does."""
    gap = max(4, itemsize)
    room = stretch + LARGEST_WORD
    return (room + room // (32 * gap) * gap + 2 * LARGEST_WORD) // LARGEST_WORD * LARGEST_WORD
