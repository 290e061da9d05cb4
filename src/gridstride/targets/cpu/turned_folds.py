"""Folds of several inputs on the CPU target, some of which lie along one axis and some along another."""

from __future__ import annotations

from gridstride.targets.block_loops.fold_loops import fold_space_bytes
from gridstride.targets.walks import FoldWalk, Walked

#: Neighboring elements of a row that are folded together, as in folds_turned.h.
RESULTS_TOGETHER = 512
#: Elements along an axis from which on squares are turned.
_LONG = 64


def lies_across(walk: FoldWalk) -> bool:
    """Return whether elements of an input lie closer to those of the next result than to those that become one."""
    return walk.kept[0] >= _LONG and any(
        _is_closer(each.strides[0], each.fold_strides[0]) for each in walk.inputs
    )


def lies_across_folds(walk: FoldWalk) -> bool:
    """Return whether elements of some inputs lie closest along one folded axis, of others along another."""
    if len(walk.fold) < 2 or len(walk.kept) > 1 or walk.in_structures or any(walk.positions):
        return False
    if min(walk.fold[:2]) < _LONG or lies_across(walk):
        return False
    closer = [_is_closer(each.fold_strides[1], each.fold_strides[0]) for each in walk.inputs]
    return any(closer) and not all(closer)


def _is_closer(stride: int, other: int) -> bool:
    return 0 < abs(stride) < abs(other)


def across_first_fold(walk: FoldWalk) -> FoldWalk:
    """Return the walk in which the first folded axis is kept."""
    return walk._replace(
        kept=(walk.fold[0], *walk.kept),
        fold=walk.fold[1:],
        kept_numbers=(walk.fold_numbers[0], *walk.kept_numbers),
        fold_numbers=walk.fold_numbers[1:],
        positions=walk.positions[1:],
        inputs=tuple(map(_across_first_fold, walk.inputs)),
    )


def _across_first_fold(walked: Walked) -> Walked:
    first, *others = walked.fold_strides
    return walked._replace(strides=(first, *walked.strides), fold_strides=tuple(others))


def turned_space(
    walk: FoldWalk, across: FoldWalk, part: int, parts: int, kept: bytes, fold: bytes, capacity: int
) -> bytes:
    """Return ``fold_space``: of a row of the walk's results, and of a row of the fold, which is folded across."""
    numbered = walk._replace(
        kept_numbers=across.kept_numbers, fold_numbers=across.fold_numbers, positions=across.positions
    )
    numbers = (0, *across.kept_numbers[1:])
    return fold_space_bytes(numbered, capacity, part, parts, RESULTS_TOGETHER, kept, fold, numbers)
