"""Folds by blocks of threads of planes: of neighboring results, whose elements lie together, but not those of each."""

from __future__ import annotations

from math import prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.fold_loops import (
    fold_loop,
    fold_space_bytes,
    found_across,
    results_make_a_row,
    room_of,
)
from gridstride.targets.block_loops.fold_plane_cuts import best_cut
from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.walks import (
    LARGEST_WORD,
    THREADS,
    FoldLoop,
    FoldWalk,
    Walked,
    axes_bytes,
    configuration,
    fits_a_word,
    flag,
    inputs_by_elements,
)

_HEADER = "gridstride/fold_planes.h"
#: Elements of a result, one after another, that a thread folds without counting them.
_FEW = 16
#: Axes that are kept, and folded, at most.
_MOST_KEPT, _MOST_FOLDED = 3, 2


def fold_planes(walk: FoldWalk, limits: Limits) -> FoldLoop | None:
    """Return the fold of planes that blocks bring to shared memory as they lie; None where there are none."""
    cut = best_cut(walk, limits) if _are_planes(walk) else None
    if cut is None:
        return None
    results, each, capacity = prod(walk.kept), prod(walk.kept[:-1]), room_of(walk)
    kept, fold = len(walk.kept), len(walk.fold)
    words = walk.inputs[0].strides[-1] // LARGEST_WORD
    space = fold_space_bytes(
        walk,
        capacity,
        cut.planes * each,
        1,
        cut.group,
        axes_bytes(results, walk.kept, capacity),
        axes_bytes(prod(walk.fold), (*walk.fold, words), capacity, fold),
        walk.kept_numbers,
        cut.planes,
        kept_row=results if results_make_a_row(walk) else None,
    )
    rows = walk.fold[0] if walk.fold[0] <= _FEW and (cut.group == 1 or fold > 1) else 0
    is_dense = fold > 1 and walk.inputs[0].fold_strides[0] == walk.inputs[0].itemsize
    flags = f"{flag(cut.gap > 0)}, {flag(cut.group == 1)}, {flag(is_dense)}"
    how = configuration(ceil_div(walk.kept[-1], cut.planes), THREADS)
    name = f"fold_planes<{cut.room}, {flags}, {rows}, {kept}, {fold}>::"
    return fold_loop(
        (_HEADER, name + "fold"),
        walk,
        space,
        inputs_by_elements(walk, capacity),
        how,
        name + "shared_bytes",
        tells_places=True,
        finds_places=found_across(walk),
    )


def _are_planes(walk: FoldWalk) -> bool:
    """Return whether elements of all inputs lie next to each other, those of the outermost kept axis farthest apart."""
    if not 1 < len(walk.kept) <= _MOST_KEPT or len(walk.fold) > _MOST_FOLDED:
        return False
    are_any = bool(walk.inputs) and prod(walk.kept) * prod(walk.fold) > 0
    return are_any and all(_is_plane(each, walk) for each in walk.inputs)


def _is_plane(operand: Walked, walk: FoldWalk) -> bool:
    if not fits_a_word(operand.itemsize) or operand.address % operand.itemsize:
        return False
    strides, lengths = (*operand.strides[:-1], *operand.fold_strides), (*walk.kept[:-1], *walk.fold)
    step = operand.itemsize
    for stride, length in sorted(zip(strides, lengths, strict=True)):
        if stride != step:
            return False
        step *= length
    return operand.strides[-1] == step
