"""The tiles in which the CPU target walks the elements of a call, as include/gridstride_cpu/loops.h takes them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from math import isqrt, prod
from typing import NamedTuple

from gridstride.targets.base import Limits
from gridstride.targets.walks import (
    ElementWalk,
    Ints,
    Walked,
    capacity_for,
    numbering_bytes,
    walked_operands,
)

#: Elements of a tile, so that its decoding costs little beside it; of a row, and of one that has several axes.
_TILE, _LONGEST_ROW, _MERGED_ROW = 16384, 16384, 1024
#: Bytes of a row that shares lines of the cache with others.
_CHANNEL_ROW = 8192
#: Bytes of a tile of operands that lie along columns, as in the header, and of a line of the cache, which its columns
#: have at least.
_TURNED_TILE, _LINE = 32768, 64
#: Bytes of its rows at most, by the size of the largest element (else the last): short pieces of rows take up to twice
#: as long to store past the caches.
_TURNED_ROW = {1: 512, 2: 1024, 4: 1024, 8: 2048}
#: Columns of a tile that is turned, of all operands, as in the header.
_TURNED_COLUMNS = 1024
#: Columns and layers of a tile that is turned along both, and its bytes, as in the header.
_SIDE, _LAYERED_TILE = 16, 131072
#: Rows that may wait for what follows them in their last lines, as in the header.
_LINES = 512
#: Elements of a tile that is turned along columns and too small to be worth a tile alone.
_SMALL_TILE = 256
#: Axes shorter than this are not worth turning where neighbors of a long row are so few elements apart that they are
#: picked out of vectors.
_SHORT, _PICKED, _PICKED_ROW = 16, 6, 16
#: Bytes of a chunk of memory within which elements are permuted, as in the header.
_CHUNK = 384
#: Bytes of rows that are no pieces of longer ones for inputs that do not go on with the next: half of it where so many
#: inputs do not, and twice as much where one has the same again.
_LONG_PIECE, _MANY_PIECES = 256, 4
#: Elements of a row of chunks that is long enough.
_CHUNKS_ROW = 256
#: Results from which on rows of them that lie apart are better written one by one, by the size of the largest.
_SHORT_PIECES = {1: 64, 2: 32, 4: 10, 8: 5}
#: Bytes of a row from which on it is worth storing past the caches, and of a stretch of results whose first and last
#: line are stored the usual way, and come from memory before that.
STREAMED_ROW, _STREAMED_BETWEEN_LINES = 256, 4096
#: Bytes of a line of the caches.
_LINE_BYTES = 64
#: Bytes of the last cache that a core may count on: virtual machines of a few cores are told the size of the whole.
_CACHE_OF_A_CORE = 8 << 20


class Tiling(NamedTuple):
    """Say how a walk is cut into tiles.

    Attributes
    ----------
    walk : ElementWalk
        Its axes in the order of the loops: those of rows, that of columns, the others.
    row_axes : int
    piece : int
        Elements along the last axis of the rows in a tile.
    width, height, depth : int
        Elements of a row, rows of a layer, and layers, in a tile.
    is_streamed : bool
        Whether results are stored past the caches.
    stacked : int
        Tiles along columns that come one after another, before those next to them.
    """

    walk: ElementWalk
    row_axes: int
    piece: int
    width: int
    height: int
    depth: int
    is_streamed: bool
    stacked: int

    @property
    def tiles(self) -> int:
        """How many tiles there are."""
        cut = (self.piece, self.height, self.depth)
        lengths = self.walk.shape[self.row_axes - 1 :]
        return prod(-(-length // each) for length, each in zip(lengths, cut, strict=False)) * prod(
            lengths[3:]
        )

    @property
    def capacity(self) -> int:
        """Room for the axes."""
        return capacity_for(len(self.walk.shape))

    def space_bytes(self) -> bytes:
        """Return ``tile_space``."""
        shape, numbers = self.walk.shape, self.walk.numbers
        lengths = (*shape, *(1 for _ in range(self.capacity - len(shape))))
        return struct.pack(
            f"<2q8i{self.capacity}q", prod(shape), self.tiles, len(shape), self.row_axes, self.is_streamed,
            self.piece, self.width, self.height, self.depth, self.stacked, *lengths,
        ) + numbering_bytes(numbers[0], (0, *numbers[1:]), self.capacity)  # fmt: skip

    def operands_bytes(self) -> tuple[bytes, ...]:
        """Return ``operand`` of each."""
        return walked_operands(self.walk.operands, self.capacity)


def tiling_of(walk: ElementWalk, limits: Limits) -> Tiling:
    """Return tiles of long rows; where inputs lie along other axes than the results, of rows and columns of these."""
    turned = turned_axes(walk)
    if all(_has_short_chunks(walk, axis) for axis in turned):
        turned = ()
    long = _turned_width(walk, turned) if turned else _MERGED_ROW
    row_axes = _row_axes(walk, turned, long)
    walk = _in_order(walk, _order(len(walk.shape), row_axes, turned))
    inner = prod(walk.shape[: row_axes - 1])
    last, column = walk.shape[row_axes - 1 : row_axes + 1]
    if not turned and not _has_columns(walk, row_axes):
        long = _LONGEST_ROW
    elif not turned and row_axes == 1:
        long = _CHANNEL_ROW // largest_item(walk)
    piece = min(last, max(1, long // inner))
    width, depth = inner * piece, 1
    if len(turned) > 1:
        height, depth = _layers(walk, row_axes, width)
    else:
        height = min(
            column, _turned_height(walk, row_axes, width, column) if turned else max(1, _TILE // width)
        )
    if len(turned) == 1 and len(walk.shape) > row_axes + 1 and width * height <= _SMALL_TILE:
        depth = max(
            1,
            min(walk.shape[row_axes + 1], _TURNED_TILE // (width * height * sum(_sizes(walk, (row_axes,))))),
        )
    results = _in_rows(walk, tuple(range(row_axes, row_axes + len(turned))))
    is_streamed = _is_streamed(walk, results, width, row_axes, limits)
    stacked = _stacked(walk, height * depth) if turned and piece < last else 1
    return Tiling(walk, row_axes, piece, width, height, depth, is_streamed, stacked)


def turned_axes(walk: ElementWalk) -> Ints:
    """Return the axis along which most inputs lie that do not lie along the first one, and that of most others."""
    first = _most_turned(walk, walk.operands)
    if not first:
        return ()
    others = [each for each in walk.operands if not _is_turned(each, first)]
    second = _most_turned(walk, others)
    # Rows that follow each other in the results may become one.
    return tuple(sorted((first, second))) if second else (first,)


def _most_turned(walk: ElementWalk, operands: Iterable[Walked]) -> int:
    """Return the axis along which most of the operands lie that do not lie along the first one; 0 for none."""
    counts = [0] * len(walk.shape)
    for operand in operands:
        for axis in range(1, len(walk.shape)):
            if _is_turned(operand, axis) and (walk.shape[axis] >= _SHORT or not _is_picked(walk, operand)):
                counts[axis] += 1
    return counts.index(max(counts)) if any(counts) else 0


def _is_turned(operand: Walked, axis: int) -> bool:
    return operand.strides[axis] == operand.itemsize and abs(operand.strides[0]) > operand.itemsize


def _is_picked(walk: ElementWalk, operand: Walked) -> bool:
    return walk.shape[0] >= _PICKED_ROW and abs(operand.strides[0]) <= _PICKED * operand.itemsize


def _has_columns(walk: ElementWalk, row_axes: int) -> bool:
    """Return whether rows of a tile share lines of the cache, as the channels of pixels do, or pages."""
    return any(0 < abs(each.strides[row_axes]) < abs(each.strides[row_axes - 1]) for each in walk.operands)


def _row_axes(walk: ElementWalk, turned: Ints, long: int) -> int:
    """Return how many of the first axes make a row: several where that is short, if results lie on or in pieces."""
    numbers = [(1, walk.numbers)] if any(walk.numbers) else []  # all zero: nobody asks for them
    written = [(each.itemsize, each.strides) for each in _in_rows(walk, turned)]
    if any(strides[0] != step for step, strides in (*numbers, *written)):
        return 1
    in_pieces = not turned and all(walk.shape[0] < _SHORT_PIECES.get(step, 0) for step, _ in written)
    lying_on = numbers if in_pieces else [*numbers, *written]
    count, length = 1, walk.shape[0]
    while count < len(walk.shape) and count not in turned and length < long:
        if any(strides[count] != step * length for step, strides in lying_on):
            break
        if not turned and (_ends_chunks(walk, count, length) or _are_long_pieces(walk, count, length)):
            break
        length *= walk.shape[count]
        count += 1
    return count


def _are_long_pieces(walk: ElementWalk, count: int, length: int) -> bool:
    """Return whether rows of so many axes are better taken one by one, rather than as pieces of some inputs.

    So where these pieces are long, and close to each other or the same.
    """
    inputs = [each for each in walk.operands if not each.written and any(each.strides[:count])]
    apart = [each.strides[count] / each.itemsize for each in inputs]
    pieces = sum(step != length for step in apart)
    least = _LONG_PIECE // 2 if pieces >= _MANY_PIECES else 2 * _LONG_PIECE if 0 in apart else _LONG_PIECE
    are_close = all(step == 0 or length <= step < 2 * length for step in apart)
    return pieces > 0 and are_close and length * largest_item(walk) >= least


def _ends_chunks(walk: ElementWalk, count: int, length: int) -> bool:
    """Return whether a further axis would make chunks too long of which rows of so many axes consist."""
    return length >= _CHUNKS_ROW and _are_chunks(walk, count - 1) and not _are_chunks(walk, count)


def _are_chunks(walk: ElementWalk, inner: int) -> bool:
    """Return whether so many axes, two at least, make short chunks of memory of an input that repeats elements."""
    return inner > 1 and any(
        0 in each.strides[:inner] and any(each.strides[:inner]) and _is_short_chunk(walk, each, inner)
        for each in walk.operands
    )


def _in_rows(walk: ElementWalk, turned: Ints) -> Sequence[Walked]:
    """Return the results that are not turned."""
    return [
        each for each in walk.operands if each.written and not any(_is_turned(each, axis) for axis in turned)
    ]


def _has_short_chunks(walk: ElementWalk, turned: int) -> bool:
    """Return whether rows are made of chunks of memory, within which operands are turned, as a processor permutes."""
    inner = _row_axes(walk, (), _MERGED_ROW) - 1
    return turned < inner and all(
        _is_short_chunk(walk, each, inner) for each in walk.operands if _is_turned(each, turned)
    )


def _is_short_chunk(walk: ElementWalk, operand: Walked, inner: int) -> bool:
    """Return whether the elements of an operand along so many axes lie within a short chunk of memory."""
    steps = zip(walk.shape[:inner], operand.strides, strict=False)
    return sum((n - 1) * abs(stride) for n, stride in steps) <= _CHUNK - operand.itemsize


def _order(ndim: int, row_axes: int, turned: Ints) -> Ints:
    return (*range(row_axes), *turned, *(axis for axis in range(row_axes, ndim) if axis not in turned))


def _in_order(walk: ElementWalk, order: Ints) -> ElementWalk:
    """Return a walk with its axes in an order, and a last one of length 1."""

    def ordered(values: Sequence[int]) -> Ints:
        return tuple(values[axis] for axis in order)

    return ElementWalk(
        (*ordered(walk.shape), 1),
        (*ordered(walk.numbers), 0),
        tuple(operand._replace(strides=(*ordered(operand.strides), 0)) for operand in walk.operands),
    )


def _turned_width(walk: ElementWalk, turned: Ints) -> int:
    """Return how many elements a row has where operands are turned: all, where whole columns of all fit into a tile."""
    sizes = _sizes(walk, turned)
    whole = prod(walk.shape[: min(turned)])
    columns = prod(walk.shape[axis] for axis in turned)
    if whole <= _TURNED_COLUMNS // len(sizes) and whole * columns * sum(sizes) <= _TURNED_TILE:
        return whole
    if len(turned) > 1:
        few = prod(min(walk.shape[axis], _side(sizes)) for axis in turned)
        most = max(1, _LAYERED_TILE // (few * sum(sizes)))
        if whole * _SIDE * _SIDE * sum(sizes) <= _LAYERED_TILE:
            return whole
        return whole if whole <= most else max(_in_line(sizes), most // _in_line(sizes) * _in_line(sizes))
    largest = largest_item(walk)
    most = _TURNED_ROW.get(largest, _TURNED_ROW[8]) // largest
    return max(1, min(most, _TURNED_COLUMNS // len(sizes), _TURNED_TILE // sum(sizes) // _in_line(sizes)))


def _sizes(walk: ElementWalk, turned: Ints) -> Sequence[int]:
    """Return the bytes of elements of those operands that are turned."""
    return [each.itemsize for each in walk.operands if any(_is_turned(each, axis) for axis in turned)]


def _side(sizes: Sequence[int]) -> int:
    """Return how many elements layers and their columns have where both are long."""
    return _SIDE if max(sizes) > 1 else 2 * _SIDE


def _layers(walk: ElementWalk, row_axes: int, width: int) -> tuple[int, int]:
    """Return how many rows and layers of them fit where operands are turned along two axes."""
    columns, layers = walk.shape[row_axes : row_axes + 2]
    sizes = _sizes(walk, (row_axes, row_axes + 1))
    most = max(1, _LAYERED_TILE // (width * sum(sizes)))
    side = min(_side(sizes), max(_SIDE, isqrt(most)))
    height = (
        columns
        if most // columns >= min(layers, side // 2)
        else _even(columns, max(1, most // min(layers, side)))
    )
    return height, _even(layers, max(1, most // height))


def _even(length: int, most: int) -> int:
    """Return the length of parts that are about equally long, none of them longer than the most."""
    return -(-length // -(-length // most))


def largest_item(walk: ElementWalk) -> int:
    """Return the bytes of the largest element."""
    return max((each.itemsize for each in walk.operands), default=1)


def _in_line(sizes: Sequence[int]) -> int:
    return max(1, _LINE // max(sizes))


def _turned_height(walk: ElementWalk, row_axes: int, width: int, length: int) -> int:
    """Return how many rows fit where operands are turned, in equal parts."""
    sizes = [each.itemsize for each in walk.operands if _is_turned(each, row_axes)]
    most = max(_SHORT, _TURNED_TILE // (width * sum(sizes)))
    line = _in_line(sizes)
    most = max(line, most // line * line)
    parts = -(-length // most)
    rows = -(-length // parts)
    return -(-rows // line) * line


def _stacked(walk: ElementWalk, rows: int) -> int:
    """Return how many tiles lie below each other: columns go on where they were left, in pages that are known."""
    results = sum(each.written for each in walk.operands)
    return max(1, _LINES // max(1, results) // rows)


def _is_streamed(
    walk: ElementWalk, results: Sequence[Walked], width: int, row_axes: int, limits: Limits
) -> bool:
    """Return whether a call touches more than the caches hold, in long rows."""
    row = min((each.itemsize for each in results), default=0) * width
    whole = all(each.strides[row_axes] == row for each in results)
    if not (row >= STREAMED_ROW or whole) or not outgrows_caches(walk.shape, walk.operands, limits):
        return False
    return not any(_has_margins(each, walk.shape) for each in results)


def _has_margins(result: Walked, shape: Ints) -> bool:
    """Return whether results lie in short stretches that begin or end within lines of the caches."""
    stretch, apart = result.itemsize, []
    for stride, length in sorted(zip(map(abs, result.strides), shape, strict=True)):
        if stride == stretch:
            stretch *= length
        elif length > 1:
            apart.append(stride)
    return stretch < _STREAMED_BETWEEN_LINES and any(
        each % _LINE_BYTES for each in (result.address, stretch, *apart)
    )


def outgrows_caches(shape: Ints, operands: Sequence[Walked], limits: Limits) -> bool:
    """Return whether operands have more bytes than the caches hold."""
    cache = min(int(limits.attributes.get("L2CacheSize", 0)), limits.multiprocessors * _CACHE_OF_A_CORE)
    touched = sum(
        each.itemsize * prod(n for n, stride in zip(shape, each.strides, strict=True) if stride)
        for each in operands
    )
    return 0 < cache < touched
