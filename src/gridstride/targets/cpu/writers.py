"""The loops of the CPU target: tiles that stay in a cache, spread over the threads where it pays."""

from __future__ import annotations

from math import prod

from gridstride.targets.base import LaunchConfig, Limits
from gridstride.targets.cpu.tiles import tiling_of
from gridstride.targets.large_folds import large_fold
from gridstride.targets.walks import (
    ElementWalk,
    FoldLoop,
    FoldWalk,
    Loop,
    Walked,
    axes_bytes,
    folded_bytes,
    operand_bytes,
)
from gridstride.targets.writers import (
    WORKSPACE_AT,
    fold_space_bytes,
    folds_innermost,
    room_of,
)

_LOOPS, _FOLDS = "gridstride_cpu/loops.h", "gridstride_cpu/folds.h"
#: Elements of a chunk, as in folds.h; results that are folded together, and into how many pieces work is cut.
_FOLD_CHUNK, _RESULTS, _PIECES = 1024, 512, 32
#: Bytes of the largest value of which a stack holds one for each of 44 levels of pairs.
_LARGEST_FOLDING = 2048
#: Elements of a fold that are too few for lanes, and neighboring results that make lanes instead.
_FEW, _MANY = 24, 64
#: Elements from which on a second thread pays.
_SHARED = 1 << 16
#: Elements of a block: it takes less time than the runtime lets one run before it tries another.
_BLOCK = 1 << 17


class CpuLoops:
    """Choose loops for a processor's cores."""

    def elementwise(self, walk: ElementWalk, limits: Limits) -> Loop:
        """Return tiles of rows, of rows and columns where an operand lies along another axis than the result."""
        tiling = tiling_of(walk, limits)
        return Loop(
            _LOOPS,
            "shared_tiles",
            "",
            tiling.capacity,
            tiling.space_bytes(),
            tiling.operands_bytes(),
            shared(tiling.tiles, prod(walk.shape), limits),
            "tile_space",
        )

    def reduction(self, walk: FoldWalk, limits: Limits) -> FoldLoop:
        """Return a fold along or across the innermost axis, in parts where results alone are too few."""
        few = prod(walk.fold) <= _FEW and walk.kept[0] >= _MANY
        return _along(walk, limits) if folds_innermost(walk) and not few else _across(walk, limits)

    def large_reduction(self, walk: FoldWalk, limits: Limits, size: int) -> FoldLoop:
        """Return a fold in which a thread has one value: a stack has no room for those of all levels."""
        return large_fold(walk, limits)


def _along(walk: FoldWalk, limits: Limits) -> FoldLoop:
    row, *outer = walk.fold
    chunks = -(-row // _FOLD_CHUNK)
    total, results = chunks * prod(outer), prod(walk.kept)
    part, parts = _cut(total, results, total * _FOLD_CHUNK)
    capacity = room_of(walk)
    kept, fold = axes_bytes(results, walk.kept, capacity), axes_bytes(total, (chunks, *outer), capacity)
    inputs = tuple(
        folded_bytes(each.address, each.fold_strides[0], (0, *each.fold_strides[1:]), each.strides, capacity)
        for each in walk.inputs
    )
    space = fold_space_bytes(walk, capacity, part, parts, 1, kept, fold, walk.kept_numbers)
    return _fold_loop("shared_along", walk, space, inputs, parts, results * parts, limits)


def _across(walk: FoldWalk, limits: Limits) -> FoldLoop:
    row, *outer = walk.kept
    group = min(row, _RESULTS)
    pieces = -(-row // group)
    columns, total = pieces * prod(outer), prod(walk.fold)
    part, parts = _cut(total, columns, total * group)
    capacity = room_of(walk)
    kept, fold = axes_bytes(columns, (pieces, *outer), capacity), axes_bytes(total, walk.fold, capacity)
    inputs = tuple(
        folded_bytes(each.address, each.strides[0], each.fold_strides, (0, *each.strides[1:]), capacity)
        for each in walk.inputs
    )
    space = fold_space_bytes(walk, capacity, part, parts, group, kept, fold, (0, *walk.kept_numbers[1:]))
    return _fold_loop("shared_across", walk, space, inputs, parts, columns * parts, limits)


def _cut(total: int, pieces: int, elements: int) -> tuple[int, int]:
    """Return the length of a part and how many there are: whatever the number of threads, for the same result."""
    parts = max(1, min(-(-_PIECES // pieces), elements // _SHARED, total))
    part = max(1, -(-total // parts))
    return part, max(1, -(-total // part))


def _fold_loop(
    name: str,
    walk: FoldWalk,
    space: bytes,
    inputs: tuple[bytes, ...],
    parts: int,
    pieces: int,
    limits: Limits,
) -> FoldLoop:
    capacity = room_of(walk)
    outputs = tuple(
        operand_bytes(each.address, each.strides[0], (0, *each.strides[1:]), capacity)
        for each in walk.outputs
    )
    how = shared(pieces, prod(walk.kept) * prod(walk.fold), limits)
    joining = _joining(prod(walk.kept), parts, capacity, limits) if parts > 1 else None
    operands = (*inputs, *outputs)
    return FoldLoop(
        _FOLDS, name, "", capacity, space, operands, how, parts, WORKSPACE_AT, joining, _LARGEST_FOLDING
    )


def _joining(results: int, parts: int, capacity: int, limits: Limits) -> Loop:
    """Return the fold of the parts of each result, which lie next to each other in the workspace."""
    whole = Walked(0, 1, (parts,), (1,))
    walk = FoldWalk((results,), (parts,), (0,), (0,), (0,), (0,), (whole,), ())
    chunks = -(-parts // _FOLD_CHUNK)
    kept, fold = axes_bytes(results, (results,), capacity), axes_bytes(chunks, (chunks,), capacity)
    space = fold_space_bytes(walk, capacity, chunks, 1, 1, kept, fold, (0,))
    return Loop(_FOLDS, "shared_along", "", capacity, space, (), shared(results, results * parts, limits))


def shared(pieces: int, elements: int, limits: Limits) -> LaunchConfig:
    """Return a launch of one block for each thread that pays, or more short ones, so that none waits for another."""
    if elements < _SHARED or limits.multiprocessors == 1:
        return LaunchConfig((1, 1, 1), (1, 1, 1))
    blocks = min(pieces, max(4 * limits.multiprocessors, elements // _BLOCK))
    # Cooperative launches ask all threads to help at once, however few blocks there are.
    return LaunchConfig((blocks, 1, 1), (1, 1, 1), cooperative=True)
