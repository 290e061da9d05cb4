"""The loops of the CPU target: tiles that stay in a cache, spread over the threads where it pays."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from gridstride.targets.base import LaunchConfig, Limits
from gridstride.targets.block_loops.fold_large import fold_large
from gridstride.targets.block_loops.fold_loops import WORKSPACE_AT, fold_space_bytes, folds_innermost, room_of
from gridstride.targets.cpu import passages
from gridstride.targets.cpu.mixed_folds import Block, block_of, mixed_space, outer_fold_first
from gridstride.targets.cpu.outer_folds import LEAST_ROOM, Outer, outer_of
from gridstride.targets.cpu.tiled_results import in_long_rows, in_tiles
from gridstride.targets.cpu.tiles import largest_item, tiling_of
from gridstride.targets.cpu.turned_folds import (
    RESULTS_TOGETHER,
    across_first_fold,
    lies_across,
    lies_across_folds,
    turned_space,
)
from gridstride.targets.walks import (
    ElementWalk,
    FoldLoop,
    FoldWalk,
    Loop,
    axes_bytes,
    inputs_across,
    inputs_along,
    inputs_by_elements,
    walk_of_parts,
    walked_operands,
)

_LOOPS = "gridstride_cpu/loops.h"
_ALONG, _ACROSS = "gridstride_cpu/folds_along.h", "gridstride_cpu/folds_across.h"
_MIXED, _TURNED = "gridstride_cpu/folds_mixed.h", "gridstride_cpu/folds_turned.h"
_OUTER = "gridstride_cpu/folds_outer.h"
_FOUND_ALONG, _FOUND_ACROSS = "gridstride_cpu/found_extremes.h", "gridstride_cpu/found_across.h"
_FOUND_MIXED = "gridstride_cpu/found_mixed.h"
#: Bytes of the largest value of which a stack holds one for each of 48 levels of pairs.
_LARGEST_FOLDING = 2048
#: The same where the values of a block are on a stack, and rows of a part of such a fold at least.
_LARGEST_IN_BLOCKS, _ROWS_OF_BLOCKS = 24, 8
#: Bytes of a chunk of the largest input, as in folds_along.h.
_CHUNK_BYTES = 65536
#: Into how many pieces work is cut, so that no thread waits long for another: of rows, and of columns, whose parts take
#: longer to join.
_PIECES_ALONG, _PIECES_ACROSS = 256, 64
_PLACE_BYTES = 8
#: Rows of bytes in a part, where that makes fewer parts: results take several times as many bytes as a row.
_ROWS_OF_PART, _ROWS_OF_STRUCTURES = 256, 768
#: Pieces of columns that are enough for all threads, so that parts have no fewer rows.
_ENOUGH_COLUMNS = 8
#: Neighboring results that are folded together: so many that rows are long stretches of memory, in multiples of a
#: line of the cache.
_RESULTS, _LINE = 8192, 64
#: Elements of a row that are too few for lanes, by the size of the largest (else the last), and neighboring results
#: that make lanes instead: the smaller elements are, the more of them are brought apart by one instruction.
_FEW, _MANY = {1: 128, 2: 96, 4: 64, 8: 32, 16: 24}, 64
#: The same where numbers lie in order, or so many elements apart at most.
_CLOSE = 4
_FEW_IN_ORDER = {1: 31, 2: 16, 4: 15, 8: 4, 16: 3}
#: The same where one element is in place of each row of an input.
_FEW_OF_REPEATED = {**_FEW_IN_ORDER, 1: 128, 2: 32, 8: 7}
#: The same where the place of one of them is kept.
_FEW_OF_PLACES = {**_FEW, 1: 32, 2: 32, 4: 7}
#: Elements from which on a second thread pays.
_SHARED = 1 << 16
#: Elements of a block: it takes less time than the runtime lets one run before it tries another; of small ones, bytes.
_BLOCK, _BLOCK_BYTES = 1 << 17, 1 << 19


class CpuLoops:
    """Choose loops for a processor's cores."""

    has_many_folds = False

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
            shared(tiling.tiles, prod(walk.shape), limits, max(_BLOCK, _BLOCK_BYTES // largest_item(walk))),
            "tile_space",
            passages.linked_for(walk.operands),
        )

    any_elementwise = elementwise

    def reduction(self, walk: FoldWalk, limits: Limits) -> FoldLoop:
        """Return a fold along or across the innermost axis, in parts where results alone are too few."""
        if outer := outer_of(walk, limits):
            return _outer(outer, limits)
        walk = in_tiles(walk)
        block = block_of(walk)
        return _mixed(walk, block, limits) if block else _one_axis(walk, limits)

    def large_reduction(self, walk: FoldWalk, limits: Limits, size: int) -> FoldLoop:
        """Return a fold in which a thread has one value: a stack has no room for those of all levels, or of a block."""
        walk = in_tiles(walk)
        return _one_axis(walk, limits) if size <= _LARGEST_FOLDING else fold_large(walk, limits)


def _one_axis(walk: FoldWalk, limits: Limits) -> FoldLoop:
    if lies_across_folds(walk):
        return _turned(walk, limits)
    along = folds_innermost(walk) and not has_short_rows(walk) and not lies_across(walk)
    return _along(walk, limits) if along else _across(in_long_rows(walk), limits)


def has_short_rows(walk: FoldWalk) -> bool:
    """Return whether rows too short for lanes lie so close to each other that neighboring results make lanes."""
    largest = max((each.itemsize for each in walk.inputs), default=16)
    in_order = len(walk.fold) == 1 and _are_in_order(walk)
    few = _FEW
    if in_order and walk.keeps_places:
        few = _FEW_OF_PLACES
    elif in_order and not walk.in_structures:
        are_rows = all(each.fold_strides[0] for each in walk.inputs)
        few = _FEW_IN_ORDER if are_rows else _FEW_OF_REPEATED
    if walk.fold[0] > few.get(largest, few[16]) or walk.kept[0] < _MANY:
        return False
    return len(walk.fold) == 1 or any(
        abs(each.strides[0]) < abs(each.fold_strides[1]) for each in walk.inputs[:1]
    )


def _are_in_order(walk: FoldWalk) -> bool:
    """Return whether folded elements are close to each other, or the same along a row, where they have no numbers."""
    steps = [(abs(each.fold_strides[0]), each.itemsize) for each in walk.inputs]
    are_numbered = any((*walk.kept_numbers, *walk.fold_numbers, *walk.positions))
    return all(0 < step <= _CLOSE * size or (step == 0 and not are_numbered) for step, size in steps)


def _along(walk: FoldWalk, limits: Limits) -> FoldLoop:
    row, *outer = walk.fold
    chunk = max(1, _CHUNK_BYTES // max((each.itemsize for each in walk.inputs), default=1))
    chunks = -(-row // chunk)
    total, results = chunks * prod(outer), prod(walk.kept)
    part, parts = _cut(total, results, prod(walk.fold), _PIECES_ALONG)
    capacity = room_of(walk, LEAST_ROOM)
    kept, fold = axes_bytes(results, walk.kept, capacity), axes_bytes(total, (chunks, *outer), capacity)
    inputs = inputs_along(walk, capacity)
    space = fold_space_bytes(walk, capacity, part, parts, 1, kept, fold, walk.kept_numbers)
    pieces = results * parts
    return FoldLoop(
        _ALONG,
        "shared_along",
        "",
        capacity,
        space,
        (*inputs, *walked_operands(walk.outputs, capacity)),
        shared(pieces, prod(walk.kept) * prod(walk.fold), limits),
        parts,
        WORKSPACE_AT,
        _joining_along(results, parts, capacity, limits) if parts > 1 else None,
        _LARGEST_FOLDING,
        small_bytes=4,
        tells_numberless=True,
        widens="f",
        joins_flags=True,
        linked=passages.linked_for(walk.operands),
        finds_places=_FOUND_ALONG,
    )


def _across(walk: FoldWalk, limits: Limits) -> FoldLoop:
    row, *outer = walk.kept
    group = _group(row)
    pieces = -(-row // group)
    columns, total = pieces * prod(outer), prod(walk.fold)
    largest = max((each.itemsize for each in walk.inputs), default=1)
    rows = max(1, (_ROWS_OF_STRUCTURES if walk.in_structures else _ROWS_OF_PART) // largest)
    few, most = -(-total // (4 * rows)) * 4, max(1, total // rows)
    fitting = columns * (few if columns < _ENOUGH_COLUMNS else most)
    part, parts = _cut(total, columns, total * group, min(_PIECES_ACROSS, fitting))
    capacity = room_of(walk, LEAST_ROOM)
    space = _space_across(walk, group, part, parts, capacity)
    how = shared(columns * parts, prod(walk.kept) * total, limits)
    inputs = inputs_across(walk, capacity)
    joining = _joining_across(prod(walk.kept), parts, capacity, limits) if parts > 1 else None
    return _loop_across((_ACROSS, "shared_across"), walk, capacity, space, inputs, how, parts, joining)


def _mixed(walk: FoldWalk, block: Block, limits: Limits) -> FoldLoop:
    walk = outer_fold_first(walk, block.fold)
    total, pieces = prod(block.outer_fold(walk)), block.pieces(walk) * prod(walk.kept[block.kept :])
    part, _ = _cut(total, pieces, total * block.columns, _PIECES_ACROSS)
    part = -(-max(part, _ROWS_OF_BLOCKS * block.together) // block.together) * block.together
    parts = -(-total // part)
    capacity = room_of(walk, LEAST_ROOM)
    space, inputs = mixed_space(walk, block, part, parts, capacity), inputs_by_elements(walk, capacity)
    how = shared(pieces * parts, prod(walk.kept) * prod(walk.fold), limits)
    # Also of one part: most have several, and one text is for all.
    joining = _joining_across(prod(walk.kept), parts, capacity, limits)
    loop = _loop_across((_MIXED, "shared_mixed"), walk, capacity, space, inputs, how, parts, joining)
    return loop._replace(largest=_LARGEST_IN_BLOCKS, finds_places=_FOUND_MIXED if loop.finds_places else "")


def _outer(outer: Outer, limits: Limits) -> FoldLoop:
    walk = outer.walk
    how = shared(prod(outer.pieces), prod(walk.kept) * prod(walk.fold), limits)
    return FoldLoop(
        _OUTER, outer.name, "", outer.capacity, outer.space(), outer.operands(), how, 1, WORKSPACE_AT,
        largest=_LARGEST_FOLDING, tells_numberless=True, widens="f",
        linked=passages.linked_for(walk.operands),
    )  # fmt: skip


def _turned(walk: FoldWalk, limits: Limits) -> FoldLoop:
    across = across_first_fold(walk)
    row, total = walk.fold[0], prod(across.fold)
    pieces, capacity = -(-row // RESULTS_TOGETHER), room_of(across, LEAST_ROOM)
    part, parts = _cut(total, pieces * walk.kept[0], total * RESULTS_TOGETHER, _PIECES_ACROSS)
    kept = axes_bytes(pieces * walk.kept[0], (pieces, walk.kept[0]), capacity)
    space = turned_space(
        walk, across, part, pieces * parts, kept, axes_bytes(total, across.fold, capacity), capacity
    )
    how = shared(pieces * parts * walk.kept[0], prod(walk.kept) * prod(walk.fold), limits)
    joining = _joining_along(walk.kept[0], pieces * parts, capacity, limits)
    inputs = inputs_across(across, capacity)
    loop = _loop_across(
        (_TURNED, "shared_turned"), walk, capacity, space, inputs, how, pieces * parts, joining
    )
    return loop._replace(parts_outermost=False)


def _loop_across(
    loop: tuple[str, str],
    walk: FoldWalk,
    capacity: int,
    space: bytes,
    inputs: Sequence[bytes],
    how: LaunchConfig,
    parts: int,
    joining: Loop | None,
) -> FoldLoop:
    """Return a loop of a header that steps across neighboring results, whose parts lie outermost."""
    largest = max((each.itemsize for each in walk.inputs), default=1)
    return FoldLoop(
        *loop,
        "",
        capacity,
        space,
        (*inputs, *walked_operands(walk.outputs, capacity)),
        how,
        parts,
        WORKSPACE_AT,
        joining,
        _LARGEST_FOLDING,
        parts_outermost=True,
        tells_numberless=True,
        widens="f",
        joins_flags=True,
        linked=passages.linked_for(walk.operands),
        # Places are no wider than turns of so wide elements would be.
        finds_places=_FOUND_ACROSS if largest < _PLACE_BYTES else "",
    )


def _group(row: int, most: int = _RESULTS) -> int:
    """Return how many neighboring results are folded together: equally many, as far as lines of the cache let them."""
    each = -(-row // -(-row // most))
    return min(row, -(-each // _LINE) * _LINE)


def _space_across(walk: FoldWalk, group: int, part: int, parts: int, capacity: int) -> bytes:
    row, *outer = walk.kept
    pieces = -(-row // group)
    kept = axes_bytes(pieces * prod(outer), (pieces, *outer), capacity)
    fold = axes_bytes(prod(walk.fold), walk.fold, capacity)
    return fold_space_bytes(walk, capacity, part, parts, group, kept, fold, (0, *walk.kept_numbers[1:]))


def _cut(total: int, pieces: int, elements: int, wanted: int) -> tuple[int, int]:
    """Return the length of a part and how many there are: whatever the number of threads, for the same result."""
    parts = max(1, min(-(-wanted // pieces), elements // _SHARED, total))
    part = max(1, -(-total // parts))
    return part, max(1, -(-total // part))


def _joining_along(results: int, parts: int, capacity: int, limits: Limits) -> Loop:
    """Return the fold of the parts of each result, which lie next to each other in the workspace."""
    walk = walk_of_parts(results, parts)
    # The parts are fewer than a chunk has elements.
    kept, fold = axes_bytes(results, (results,), capacity), axes_bytes(1, (1,), capacity)
    space = fold_space_bytes(walk, capacity, 1, 1, 1, kept, fold, (0,))
    return Loop(_ALONG, "joined_along", "", capacity, space, (), shared(results, results * parts, limits))


def _joining_across(results: int, parts: int, capacity: int, limits: Limits) -> Loop:
    """Return the fold of the parts, where those of neighboring results lie next to each other."""
    walk = walk_of_parts(results, parts, parts_outermost=True)
    group = _group(results, max(_LINE, min(_RESULTS, results // 16)))
    space = _space_across(walk, group, parts, 1, capacity)
    how = shared(-(-results // group), results * parts, limits)
    return Loop(_ACROSS, "joined_across", "", capacity, space, (), how)


def shared(pieces: int, elements: int, limits: Limits, block: int = _BLOCK) -> LaunchConfig:
    """Return a launch of one block for each thread that pays, or more short ones, so that none waits for another."""
    if elements < _SHARED or limits.multiprocessors == 1:
        return LaunchConfig((1, 1, 1), (1, 1, 1))
    blocks = min(pieces, max(4 * limits.multiprocessors, elements // block))
    # Cooperative launches ask all threads to help at once, however few blocks there are.
    return LaunchConfig((blocks, 1, 1), (1, 1, 1), cooperative=True)
