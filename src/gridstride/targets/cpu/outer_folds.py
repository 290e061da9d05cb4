"""Folds of a few elements, some inputs of which lie along one axis of results (gridstride_cpu/folds_outer.h)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.fold_loops import fold_space_bytes, room_of
from gridstride.targets.block_loops.fold_outer import OF_BOTH, OF_COLUMNS, OF_ROWS, how_it_lies
from gridstride.targets.cpu.tiles import STREAMED_ROW, outgrows_caches
from gridstride.targets.walks import (
    LARGEST_WORD,
    FoldWalk,
    Ints,
    axes_bytes,
    by_results,
    flag,
    inputs_along,
    walked_operands,
)

#: Axes that all folds have room for at least, so that those of more take no other text.
LEAST_ROOM = 8
#: Elements of a result that are folded at once, as in the header; columns and rows at least.
_GROUP, _COLUMNS, _ROWS = 8, 2, 8
#: Bytes of what is brought for the columns of a piece, and at most; its rows at most; and what its columns come to.
_BYTES, _MOST_BYTES, _MOST_ROWS, _LINE = 24576, 65536, 128, 64
#: Pieces that are enough for all threads.
_PIECES = 64
#: Elements up to which one loop is for all lengths and ways to lie: others save up to a fifth of a millisecond.
_LITTLE = 1 << 20


class Outer(NamedTuple):
    """Say how results are cut into pieces of rows and columns.

    Attributes
    ----------
    walk : FoldWalk
        Its kept axes in the order in which results lie.
    name : str
        The loop's.
    width, height : int
        Columns and rows of a piece.
    is_streamed : bool
        Whether results are stored past the caches.
    """

    walk: FoldWalk
    name: str
    width: int
    height: int
    is_streamed: bool

    @property
    def pieces(self) -> Ints:
        """How many pieces there are along each axis."""
        columns, rows, *outer = self.walk.kept
        return -(-columns // self.width), -(-rows // self.height), *outer

    @property
    def capacity(self) -> int:
        """Room for the axes."""
        return room_of(self.walk, LEAST_ROOM)

    def space(self) -> bytes:
        """Return ``fold_space``."""
        walk, capacity = self.walk, self.capacity
        return fold_space_bytes(
            walk, capacity, self.height, 1, int(self.is_streamed),
            axes_bytes(prod(self.pieces), self.pieces, capacity), axes_bytes(walk.fold[0], walk.kept[:2], capacity),
            walk.kept_numbers, self.width,
        )  # fmt: skip

    def operands(self) -> tuple[bytes, ...]:
        """Return the bytes of each operand."""
        return *inputs_along(self.walk, self.capacity), *walked_operands(self.walk.outputs, self.capacity)


def outer_of(walk: FoldWalk, limits: Limits) -> Outer | None:
    """Return how a fold is cut into pieces; None where its results are no outer product."""
    if len(walk.kept) < 2 or len(walk.fold) != 1 or walk.fold[0] < 2 or not walk.outputs:
        return None
    walk = by_results(walk)
    columns, rows, *outer = walk.kept
    how = [how_it_lies(each) for each in walk.inputs]
    if columns < _COLUMNS or rows < _ROWS or not {OF_COLUMNS, OF_ROWS} & set(how):
        return None
    if any(each.itemsize > LARGEST_WORD for each in walk.operands):
        return None
    length = walk.fold[0]
    sizes = [each.itemsize for each, k in zip(walk.inputs, how, strict=True) if k != OF_ROWS]
    column, of_rows = length * sum(sizes), sum(each.itemsize for each in walk.inputs) - sum(sizes)
    if length > _GROUP and (walk.in_structures or OF_BOTH in how or column * _LINE > _MOST_BYTES):
        return None
    name = _own_loop(length, how)
    if length * prod(walk.kept) <= _LITTLE:
        name, column = "any_outer", column + _GROUP * of_rows
    most = max(_LINE, _BYTES // max(1, column))
    width = -(-columns // -(-columns // most))
    width = min(columns, -(-width // _LINE) * _LINE)
    wanted = max(1, _PIECES // (-(-columns // width) * prod(outer)))
    height = max(_ROWS, min(_MOST_ROWS, -(-rows // wanted)))
    is_long = width * min(each.itemsize for each in walk.outputs) >= STREAMED_ROW
    return Outer(walk, name, width, height, is_long and outgrows_caches(walk.kept, walk.outputs, limits))


def _own_loop(length: int, how: Sequence[int]) -> str:
    """Return the loop for folds of so many elements, or of groups behind so many, and for how inputs lie."""
    first = (length - 1) % _GROUP + 1
    return f"outer<{first}, {flag(length > _GROUP)}, {', '.join(map(str, how))}>::fold"
