"""Folds of short rows of which some axes are folded and others kept: the CPU target folds whole blocks at once.

A block is a stretch of memory: the innermost axes of both kinds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import NamedTuple

from gridstride.targets.block_loops.fold_loops import fold_space_bytes
from gridstride.targets.walks import FoldWalk, Ints, Walked, axes_bytes

#: Columns of a block at most, the bytes of those of the largest input, columns of structures, and bytes of the input
#: where more whole folds of these do not make it better: all members stay in the nearest cache.
_MOST, _MOST_BYTES, _MOST_STRUCTURES, _BYTES_MAPPED = 4096, 16384, 1536, 3072
#: Rows that a block is folded from at least: what is left of it takes longer to fold, and of places structures are made
#: before.
_ROWS, _ROWS_OF_PLACES = 8, 64
#: Elements that become one, so few that whole folds are in a block, and columns of such a block at least.
_FEW_FOLDED, _LEAST_WHOLE = 256, 256
#: Elements of neighboring results up to which blocks of places are folded whole, by their size: places of larger ones
#: take more instructions.
_GROUP = {1: 4096, 2: 1024, 4: 255, 8: 255}
#: Folded rows that are long enough to be folded along, and kept ones to be folded across; the same where a block would
#: hold nothing but such rows.
_LONG_FOLDED, _LONG_KEPT, _LONG_ALONE = 256, 256, 64
#: Inputs at most of which some are repeated: there is memory for each.
_MOST_REPEATED = 8
#: As in folds.h.
_NUMBER_OF_COLUMN = 1 << 47


class Block(NamedTuple):
    """Say which axes of a walk a block holds.

    Attributes
    ----------
    kept : int
        How many of the first axes that are kept.
    group : int
        How much of the last of them.
    fold : tuple of int
        The folded axes.
    together : int
        How many rows of the first other folded axis are folded as one.
    columns : int
        Elements of a row.
    reference : int
        Which input has all of these axes.
    """

    kept: int
    group: int
    fold: Ints
    together: int
    columns: int
    reference: int = 0

    def pieces(self, walk: FoldWalk) -> int:
        """Return how many groups the last axis has that a block shares."""
        return -(-walk.kept[self.kept - 1] // self.group)

    def outer_fold(self, walk: FoldWalk) -> Ints:
        """Return the folded axes that are none of a block's, of a walk in which these are the last."""
        return walk.fold[: len(walk.fold) - len(self.fold)]


class _Axis(NamedTuple):
    stride: int
    is_folded: bool
    place: int
    length: int


def block_of(walk: FoldWalk) -> Block | None:
    """Return the block in which a walk is folded, or None where rows are long enough, or are not in order."""
    if not walk.inputs or 0 in (*walk.kept, *walk.fold):
        return None
    reference = _reference(walk)
    has_repeated = any(_is_repeated(walk, each) for each in walk.inputs)
    if has_repeated and len(walk.inputs) > _MOST_REPEATED:
        return None
    axes = sorted(_axes(walk, walk.inputs[reference]))
    if not axes:
        return None
    if axes[0].length >= (_LONG_FOLDED if axes[0].is_folded else _LONG_KEPT):
        return None
    if prod(walk.fold) <= _FEW_FOLDED and _has_kept_inside(axes) and not _are_long_groups(walk, axes):
        for most in _columns_of_whole(walk):
            whole = _fitting(walk, axes, 1, most)
            if whole.columns >= _LEAST_WHOLE and len(whole.fold) == len(walk.fold):
                return whole._replace(reference=reference)
    found = _fitting(walk, axes, _ROWS, _most_columns(walk))._replace(reference=reference)
    if found.kept == 0 or prod(_without(walk.fold, found.fold)) < _ROWS * found.together:
        return None
    are_worth_it = (walk.in_structures or has_repeated) and axes[0].length < _LONG_ALONE
    return found if found.fold or (found.together > 1 and are_worth_it) else None


def _reference(walk: FoldWalk) -> int:
    """Return which input has elements of its own along all axes, or 0."""
    return next((k for k, each in enumerate(walk.inputs) if not _is_repeated(walk, each)), 0)


def _is_repeated(walk: FoldWalk, walked: Walked) -> bool:
    """Return whether elements are the same along an axis."""
    lengths, strides = (*walk.kept, *walk.fold), (*walked.strides, *walked.fold_strides)
    return any(length > 1 and stride == 0 for length, stride in zip(lengths, strides, strict=True))


def _are_long_groups(walk: FoldWalk, axes: Sequence[_Axis]) -> bool:
    """Return whether the rows of a result of places and its neighbors are enough to be folded across."""
    size = walk.inputs[0].itemsize
    return (
        walk.keeps_places and not axes[0].is_folded and axes[0].length * prod(walk.fold) > _GROUP.get(size, 0)
    )


def _has_kept_inside(axes: Sequence[_Axis]) -> bool:
    """Return whether elements that become one lie further apart than those of two results."""
    return any(outer.is_folded and not inner.is_folded for inner, outer in pairwise(axes))


def _axes(walk: FoldWalk, walked: Walked) -> Iterator[_Axis]:
    kinds = (False, walk.kept, walked.strides), (True, walk.fold, walked.fold_strides)
    for is_folded, lengths, strides in kinds:
        for place, (length, stride) in enumerate(zip(lengths, strides, strict=True)):
            if length > 1:
                yield _Axis(stride, is_folded, place, length)


def _fitting(walk: FoldWalk, axes: Sequence[_Axis], rows: int, most: int) -> Block:
    """Return the largest block of axes that follow each other, innermost first, of which there are so many rows."""
    kept, group, columns = 0, 1, 1
    fold: list[int] = []
    in_order = _has_results_in_order(walk)
    for axis in axes:
        left, fitting = prod(walk.fold) // prod(walk.fold[k] for k in fold), most // columns
        if not _follows(walk, axis, columns):
            break
        if not axis.is_folded and (axis.place != kept or not (kept == 0 or in_order)):
            break
        if axis.length <= fitting and (not axis.is_folded or left >= rows * axis.length):
            columns *= axis.length
            if axis.is_folded:
                fold.append(axis.place)
            else:
                kept, group = kept + 1, axis.length
            continue
        if axis.is_folded and left == axis.length and kept:
            least = _ROWS_OF_PLACES if walk.keeps_places else rows
            return Block(kept, group, tuple(fold), max(1, min(fitting, left // least)), columns)
        if not axis.is_folded and fitting > 1:
            group = -(-axis.length // -(-axis.length // fitting))
            return Block(kept + 1, group, tuple(fold), 1, columns * group)
        break
    return Block(kept, group, tuple(fold), 1, columns)


def _most_columns(walk: FoldWalk) -> int:
    most = min(_MOST, _MOST_BYTES // max(each.itemsize for each in walk.inputs))
    return min(most, _MOST_STRUCTURES) if walk.in_structures else most


def _columns_of_whole(walk: FoldWalk) -> Ints:
    """Return how many columns whole folds may take, and how many where these are too few for any."""
    size, most = walk.inputs[0].itemsize, _most_columns(walk)
    # An element of up to four bytes and its place are one number.
    are_mapped = walk.in_structures and not (walk.keeps_places and size <= 4)
    return (min(most, _BYTES_MAPPED // size), most) if are_mapped else (most,)


def _follows(walk: FoldWalk, axis: _Axis, columns: int) -> bool:
    """Return whether neighbors along an axis are so many elements apart, of all inputs that are not repeated."""
    inputs = [each for each in walk.inputs if not _is_repeated(walk, each)]
    strides = [(each.fold_strides if axis.is_folded else each.strides)[axis.place] for each in inputs]
    return bool(inputs) and all(
        stride == columns * each.itemsize for stride, each in zip(strides, inputs, strict=True)
    )


def _has_results_in_order(walk: FoldWalk) -> bool:
    """Return whether results lie one behind another, in the order of the axes that are kept."""
    apart = tuple(accumulate(walk.kept[:-1], int.__mul__, initial=1))
    return walk.results == apart and all(
        each.strides == tuple(each.itemsize * step for step in apart) for each in walk.outputs
    )


def _without(values: Ints, places: Ints) -> Ints:
    return tuple(value for place, value in enumerate(values) if place not in places)


def _outer_first(values: Ints, fold: Ints) -> Ints:
    """Return what belongs to folded axes, those that a block holds last."""
    return (*_without(values, fold), *(values[place] for place in fold))


def outer_fold_first(walk: FoldWalk, fold: Ints) -> FoldWalk:
    """Return the walk with those folded axes last that a block holds."""
    return walk._replace(
        fold=_outer_first(walk.fold, fold),
        fold_numbers=_outer_first(walk.fold_numbers, fold),
        positions=_outer_first(walk.positions, fold),
        inputs=tuple(
            each._replace(fold_strides=_outer_first(each.fold_strides, fold)) for each in walk.inputs
        ),
    )


def mixed_space(walk: FoldWalk, block: Block, part: int, parts: int, capacity: int) -> bytes:
    """Return ``fold_space`` of a walk of which a block's folded axes are the last."""
    outer, last, pieces = block.outer_fold(walk), block.kept - 1, block.pieces(walk)
    kept = axes_bytes(
        pieces * prod(walk.kept[block.kept :]),
        (*walk.kept[:last], pieces, *walk.kept[block.kept :]),
        capacity,
    )
    fold = axes_bytes(prod(outer), walk.fold, capacity, len(outer))
    numbered = walk._replace(kept_numbers=(_NUMBER_OF_COLUMN, *walk.kept_numbers[1:]))
    return fold_space_bytes(
        numbered,
        capacity,
        part,
        parts,
        block.group,
        kept,
        fold,
        walk.kept_numbers,
        block.reference << 48 | block.kept << 32 | block.together,
        prod(walk.kept) if _has_results_in_order(walk) else walk.kept[0],
        walk.kept[last],
    )
