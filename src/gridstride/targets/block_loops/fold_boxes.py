"""Folds by blocks of threads of which folded axes lie between kept ones: rows of boxes, each a stretch of memory."""

from __future__ import annotations

from math import gcd, prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.fold_box_cuts import MANY_ROWS, Axis, Boxes, ways_to_cut
from gridstride.targets.block_loops.fold_loops import (
    FOUND_ACROSS,
    fold_loop,
    fold_space_bytes,
    results_make_a_row,
)
from gridstride.targets.block_loops.sizes import (
    MOST_BYTE_ROWS,
    MOST_PARTS,
    MOST_ROWS,
    ceil_div,
    has_bytes,
    packet_length,
    parts_that_fill,
    power_of_two_up_to,
)
from gridstride.targets.walks import (
    LARGEST_WORD,
    LEAST_WORD,
    THREADS,
    WARP,
    FoldLoop,
    FoldWalk,
    axes_bytes,
    capacity_for,
    configuration,
    flag,
    folded_bytes,
)

_HEADER = "gridstride/fold_boxes.h"
#: Values of a box at most, as in the header; and where elements are large.
_VALUES, _VALUES_OF_LARGE = 4096, 2048
#: Rows that a part has at least.
_LEAST_ROWS = 16
#: Words that a thread has on their way, if of 16 bytes; and packets of a row that it takes at once at most.
_AT_ONCE, _MOST_WIDE, _MOST_LOADS = 4, 8, 16
#: Bytes of the least words that are taken, by those of elements; packets between words are shifted.
_LEAST_WORDS = {1: 16, 2: 8, 4: 8}
#: Axes along which rows are, at most.
_MOST_ROW_AXES = 3
#: Blocks that a multiprocessor holds at once; fewer where rows are along several axes, or begin between words.
_HELD, _FEWER_HELD, _FEWEST_HELD = 5, 4, 3
#: Places that there is room for, by the bytes in which they are kept.
_MOST_PLACES = {4: (1 << 24) - 2, 8: 1 << 31, 16: 1 << 31}
#: Rows of a part at most where two bytes say which place is of which, as in the header.
_MOST_HALF_ROWS = (1 << 15) - 1
#: Numbers behind which those of places stand, as in the header.
_NUMBERS = 4
#: Bytes that a box has at least.
_LEAST_BYTES = 1024


def fold_boxes(
    walk: FoldWalk, limits: Limits, in_words: bool = False, in_rows: bool = False
) -> FoldLoop | None:
    """Return the fold of rows of boxes; None where there are none, or where elements are told apart.

    `in_words`: None too where packets are no words, or would be none wherever the first begins; `in_rows`: where boxes
    have one row.
    """
    if not walk.inputs or any((*walk.kept_numbers, *walk.fold_numbers)):
        return None
    if any(walk.positions) and not _keeps_places(walk):
        return None
    if not prod(walk.kept) * prod(walk.fold) > 0 or max(prod(walk.kept), prod(walk.fold)) >= 1 << 31:
        return None
    length = packet_length(walk.inputs)
    for boxes in ways_to_cut(walk, length, _most_values(walk)):
        if boxes.values * max(each.itemsize for each in walk.inputs) >= _LEAST_BYTES:
            is_other = (in_words and boxes.begins % length) or (in_rows and boxes.rows[0].length == 1)
            return None if is_other else _loop(walk, limits, boxes)
    return None


def _keeps_places(walk: FoldWalk) -> bool:
    """Return whether places are those of extremes, which are kept beside numbers."""
    return walk.keeps_places and walk.inputs[0].itemsize <= LARGEST_WORD // 2


def _bytes_kept(walk: FoldWalk) -> int:
    """Return the bytes of what is kept of values that have places: those of bytes are in one number."""
    if not _keeps_places(walk):
        return 0
    size = walk.inputs[0].itemsize
    return LEAST_WORD if size == 1 else max(8, 2 * size)


def _most_rows(walk: FoldWalk) -> int:
    """Return how many rows a part has at most: those of small elements are told in a byte, or in two."""
    if has_bytes(walk):
        return MOST_BYTE_ROWS
    return _MOST_HALF_ROWS if walk.keeps_places else MOST_ROWS


def _most_places(boxes: Boxes, part: int) -> int:
    """Return the last place of a part, from its first one on."""
    return boxes.rows[0].place * (part - 1) + sum(each.place * (each.length - 1) for each in boxes.inside)


def _most_values(walk: FoldWalk) -> int:
    kept, largest = _bytes_kept(walk), max(each.itemsize for each in walk.inputs)
    are_large = max(kept, largest) > LARGEST_WORD // 2 or (largest > 1 and kept > 2 * largest)
    return _VALUES_OF_LARGE if are_large else _VALUES


def _loop(walk: FoldWalk, limits: Limits, boxes: Boxes) -> FoldLoop | None:
    inside = tuple(each for each in boxes.inside if each.length > 1) or (Axis(0, 1, True),)
    folded, count = prod(each.length for each in inside), prod(each.length for each in boxes.rows)
    of_box = boxes.values // folded
    together = ceil_div(boxes.together, of_box)
    blocks = together * (prod(walk.kept) // boxes.together)
    part, kept = _part(walk, limits, boxes, blocks, count), _bytes_kept(walk)
    parts = ceil_div(count, part)
    if parts > MOST_PARTS or len(boxes.rows) > _MOST_ROW_AXES:
        return None
    if kept and (len(boxes.rows) > 1 or _most_places(boxes, part) >= _MOST_PLACES[kept]):
        return None
    length, are_words = _packets(walk, boxes)
    high = _AT_ONCE if count >= MANY_ROWS else 1
    of_row = ceil_div(boxes.segment, length)
    packets = boxes.values // boxes.segment * of_row
    wide = _wide(walk, length, high, packets)
    apart = ceil_div(packets, wide * ceil_div(packets, wide * THREADS))
    group = power_of_two_up_to(min(WARP, inside[0].length, max(1, THREADS // of_box)))
    axes = (Axis(0, of_row, True), *boxes.rows, *inside)
    steps = [each.step for each in axes[: 1 + len(boxes.rows)]]
    places = tuple(each.place for each in inside) if kept else ()
    capacity = capacity_for(max(len(walk.kept), len(axes), _NUMBERS + len(places)))
    placed = walk._replace(
        kept_numbers=(boxes.segment,),
        fold_numbers=(boxes.apart, *(each.place for each in boxes.rows), *(each.step for each in inside)),
        positions=(boxes.last,),
    )
    space = fold_space_bytes(
        placed,
        capacity,
        part,
        parts,
        group,
        axes_bytes(boxes.together, walk.kept, capacity),
        axes_bytes(count, [each.length for each in axes], capacity),
        boxes.kept,
        boxes.values,
        kept_row=prod(walk.kept) if results_make_a_row(walk) else None,
        fold_row=folded // inside[0].length,
        positions=(of_box, together, count - boxes.last_rows, apart, *places),
    )
    inputs = tuple(
        folded_bytes(
            each.address, each.itemsize, [step * each.itemsize for step in steps], each.strides, capacity
        )
        for each in walk.inputs
    )
    how_kept = f", {kept}" if kept else ""
    name = f"fold_boxes<{length}, {wide}, {high}, {flag(are_words)}, {len(boxes.rows)}{how_kept}>::"
    values = _most_values(walk) // THREADS
    how = configuration(blocks, THREADS, parts)
    loop = fold_loop(
        (_HEADER, name + "fold"), walk, space, inputs, how, name + "shared_bytes", values, capacity=capacity,
        tells_places=kept > 0, finds_places=FOUND_ACROSS if kept > LEAST_WORD else "",
    )  # fmt: skip
    return loop._replace(largest=None) if kept else loop


def _part(walk: FoldWalk, limits: Limits, boxes: Boxes, blocks: int, rows: int) -> int:
    """Return how many rows a part has."""
    parts = parts_that_fill(blocks, _held(walk, boxes) * limits.multiprocessors, 2)
    return min(ceil_div(rows, max(1, min(parts, rows // _LEAST_ROWS, MOST_PARTS))), _most_rows(walk))


def _held(walk: FoldWalk, boxes: Boxes) -> int:
    """Return how many blocks a multiprocessor holds, wherever the first box begins."""
    size = max(each.itemsize for each in walk.inputs)
    if gcd(boxes.begins * size, LARGEST_WORD) < _LEAST_WORDS.get(size, 0):
        return _FEWEST_HELD if size == 1 else _FEWER_HELD
    return _HELD if len(boxes.rows) == 1 else _FEWER_HELD


def _packets(walk: FoldWalk, boxes: Boxes) -> tuple[int, bool]:
    """Return how many elements a packet has, and whether packets are words: between words small ones are shifted."""
    sizes = [each.itemsize for each in walk.inputs]
    size, most = max(sizes), packet_length(walk.inputs)
    length = gcd(boxes.begins, *(each.address // each.itemsize for each in walk.inputs), most)
    are_short = size >= LEAST_WORD and boxes.segment < most
    return (most, False) if length * size < _LEAST_WORDS.get(size, 0) and not are_short else (length, True)


def _wide(walk: FoldWalk, length: int, high: int, packets: int) -> int:
    """Return how many packets of a row a thread takes at once: so many that it has 64 bytes on their way."""
    size = length * max(each.itemsize for each in walk.inputs)
    most = min(_MOST_LOADS // high, _MOST_WIDE, ceil_div(packets, THREADS))
    return power_of_two_up_to(max(1, min(most, _AT_ONCE * LARGEST_WORD // (size * high))))
