"""Folds by blocks of threads of inputs that lie along different axes: those that lie along rows turn in tiles."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.fold_loops import fold_loop, fold_space_bytes, room_of
from gridstride.targets.block_loops.sizes import HELD, MOST_PARTS, ceil_div, packet_length, parts_that_fill
from gridstride.targets.walks import (
    LARGEST_WORD,
    THREADS,
    FoldLoop,
    FoldWalk,
    Ints,
    Walked,
    axes_bytes,
    configuration,
    fits_a_word,
    flag,
    folded_bytes,
)

_HEADER = "gridstride/fold_turned.h"
#: Rows of a tile and packets of its columns, so that both are long in memory; by bytes of elements.
_SHAPES, _USUAL_SHAPE = {1: (128, 8)}, (64, 16)
#: Tiles that a block takes one after another at least.
_LEAST_TILES = 4
#: Inputs of which tiles turn, at most.
_MOST_TURNED = 2
#: Values of a thread, for each of a packet's elements at most.
_VALUES = 4


class _Side(NamedTuple):
    """An input as a tile has it: its steps along columns and rows, and along other axes."""

    operand: Walked
    along: int
    across: int
    outer: Ints

    @property
    def is_turned(self) -> bool:
        return self.across == self.operand.itemsize

    def are_words(self, length: int) -> bool:
        """Return whether all packets of so many elements are words."""
        size = length * self.operand.itemsize
        step, other = (self.across, self.along) if self.is_turned else (self.along, self.across)
        places = (self.operand.address, other, *self.outer)
        return (
            size == LARGEST_WORD
            and step == self.operand.itemsize
            and not any(place % size for place in places)
        )

    def has_packets(self) -> bool:
        """Return whether packets are made of elements that lie along rows or columns, or are one."""
        size = self.operand.itemsize
        places = (self.operand.address, self.along, self.across, *self.outer)
        is_along = self.is_turned or self.along == size
        return is_along and fits_a_word(size) and not any(place % size for place in places)


def fold_turned(walk: FoldWalk, limits: Limits) -> FoldLoop | None:
    """Return the fold of tiles; None where inputs lie along one axis, or elements are told apart.

    Columns of tiles are results, or folded too where two axes are.
    """
    if len(walk.fold) > 2 or any((*walk.kept_numbers, *walk.fold_numbers, *walk.positions)):
        return None
    folds_columns = len(walk.fold) > 1
    rows, columns = walk.fold if folds_columns else (walk.fold[0], walk.kept[0])
    sides = [
        _Side(each, each.fold_strides[1], each.fold_strides[0], each.strides)
        if folds_columns
        else _Side(each, each.strides[0], each.fold_strides[0], each.strides[1:])
        for each in walk.inputs
    ]
    turned = [each for each in sides if each.is_turned]
    if len(turned) == len(sides) or not any(each.along for each in turned) or len(turned) > _MOST_TURNED:
        return None
    if min(rows, columns) < _USUAL_SHAPE[0] or columns >= MOST_PARTS * _SHAPES[1][1]:
        return None
    return _loop(walk, limits, rows, columns, sides) if all(each.has_packets() for each in sides) else None


def _loop(walk: FoldWalk, limits: Limits, rows: int, columns: int, sides: list[_Side]) -> FoldLoop:
    length, capacity = packet_length(walk.inputs), room_of(walk)
    height, group = _SHAPES.get(LARGEST_WORD // length, _USUAL_SHAPE)
    folds_columns = len(walk.fold) > 1
    outer = walk.kept if folds_columns else walk.kept[1:]
    stretches = ceil_div(columns, group * length)
    wanted = parts_that_fill(stretches * prod(outer), HELD * limits.multiprocessors, 2)
    parts = max(1, min(wanted, rows // (height * _LEAST_TILES), MOST_PARTS // stretches))
    part = ceil_div(ceil_div(rows, parts), height) * height
    parts = ceil_div(rows, part)
    # Where columns are folded their stretches are parts too.
    blocks, parts = (prod(outer), parts * stretches) if folds_columns else (prod(outer) * stretches, parts)
    kept = outer if folds_columns else (stretches * group, *outer)
    space = fold_space_bytes(
        walk,
        capacity,
        part,
        parts,
        group,
        axes_bytes(prod(kept), kept, capacity),
        axes_bytes(prod(walk.fold), walk.fold, capacity),
        (0,) * len(walk.kept),
        stretches,
    )
    inputs = tuple(
        folded_bytes(
            each.operand.address,
            each.along,
            (each.across,),
            each.outer if folds_columns else (0, *each.outer),
            capacity,
        )
        for each in sides
    )
    flags = (
        folds_columns,
        all(each.are_words(length) for each in sides),
        *(each.is_turned for each in sides),
    )
    name = f"fold_turned<{height}, {group}, {', '.join(map(flag, flags))}>::"
    how = configuration(blocks, THREADS, parts)
    return fold_loop((_HEADER, name + "fold"), walk, space, inputs, how, name + "shared_bytes", _VALUES)
