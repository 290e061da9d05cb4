"""How folds by blocks of threads are put together: what all are told, and how the parts of a result are joined."""

from __future__ import annotations

import struct
from collections.abc import Callable
from math import prod

from gridstride.targets.base import LaunchConfig
from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.walks import (
    LARGEST_WORD,
    SECTOR,
    THREADS,
    FoldLoop,
    FoldWalk,
    Ints,
    Loop,
    axes_bytes,
    capacity_for,
    configuration,
    numbering_bytes,
    power_of_two_from,
    walk_of_parts,
    walked_operands,
)

#: Bytes of the largest value for which shared memory has room for one of each thread, as in the headers.
LARGEST_FOLDING = 184
_LINES = "gridstride/fold_lines.h"
#: By which loops look for places along rows, and across them.
_FOUND_ALONG, FOUND_ACROSS = "gridstride/found_along.h", "gridstride/found_columns.h"
#: Where `workspace` stands in ``fold_space``.
WORKSPACE_AT = 48


def fold_loop(
    loop: tuple[str, str],
    walk: FoldWalk,
    space: bytes,
    inputs: tuple[bytes, ...],
    how: LaunchConfig,
    shared: str = "fold_bytes",
    values: int = 1,
    join: Callable[[int, int, int], Loop] | None = None,
    tells_places: bool = False,
    capacity: int | None = None,
    finds_places: str = "",
    always_joins: bool = False,
) -> FoldLoop:
    """Return a loop over a walk's outputs too, and the joining of its parts, of one part where it `always_joins`.

    Shared memory holds so many `values` for each thread; `join` joins parts that lie outermost. `tells_places` as in
    `FoldLoop`.
    """
    capacity, parts = capacity or room_of(walk), how.grid[1]
    joining = (join or _joining)(prod(walk.kept), parts, capacity) if parts > 1 or always_joins else None
    operands = (*inputs, *walked_operands(walk.outputs, capacity))
    largest = LARGEST_FOLDING // values
    return FoldLoop(
        *loop, shared, capacity, space, operands, how, parts, WORKSPACE_AT, joining, largest, join is not None,
        tells_places=tells_places, widens="iuf", exact_bytes=2, finds_places=finds_places,
    )  # fmt: skip


def fold_space_bytes(
    walk: FoldWalk,
    capacity: int,
    part: int,
    parts: int,
    group: int,
    kept: bytes,
    fold: bytes,
    kept_numbers: Ints,
    width: int = 0,
    kept_row: int | None = None,
    fold_row: int | None = None,
    positions: Ints | None = None,
) -> bytes:
    """Return ``fold_space<capacity>``; the address of the workspace is filled in later."""
    results = prod(walk.kept)
    size, kept_row = results * prod(walk.fold), walk.kept[0] if kept_row is None else kept_row
    fold_row = walk.fold[0] if fold_row is None else fold_row
    return (
        struct.pack("<5q2iQq", size, results, fold_row, kept_row, part, parts, group, 0, width)
        + kept
        + fold
        + numbering_bytes(walk.kept_numbers[0], kept_numbers, capacity)
        + numbering_bytes(walk.fold_numbers[0], walk.fold_numbers, capacity)
        + numbering_bytes(walk.positions[0], positions or walk.positions, capacity)
        + numbering_bytes(walk.results[0], walk.results, capacity)
    )


def room_of(walk: FoldWalk, least: int = 1) -> int:
    """Return the room for a walk's axes, and for so many at least."""
    return capacity_for(max(len(walk.kept), len(walk.fold), least))


def counter_of(walk: FoldWalk) -> str:
    """Return the type in which a loop counts places, for values that may hold them: int where they ascend by one."""
    is_short = prod(walk.fold) < 1 << 31 and walk.positions[0] in (0, 1)
    return "int" if walk.in_structures and is_short else "long long"


def _joining(results: int, parts: int, capacity: int) -> Loop:
    """Return the fold of the parts of each result, which lie next to each other in the workspace."""
    walk = walk_of_parts(results, parts)
    group = min(THREADS if results < 4096 else 32, power_of_two_from(parts))
    space = fold_space_bytes(
        walk,
        capacity,
        parts,
        1,
        group,
        axes_bytes(results, (results,), capacity),
        axes_bytes(parts, (parts,), capacity),
        (0,),
    )
    how = configuration(ceil_div(results * group, THREADS), THREADS)
    return Loop(_LINES, "fold_parts", "fold_bytes", capacity, space, (), how)


def found_along(walk: FoldWalk) -> str:
    """Return the header by which loops look for places along lines and in short rows."""
    return _FOUND_ALONG if _looks_for_places(walk) else ""


def skips_sectors(walk: FoldWalk, gap: int, row: int) -> bool:
    """Return whether gaps of so many elements are longer than rows, and than what is loaded at once anyway."""
    return gap > row and any(gap * each.itemsize > SECTOR for each in walk.inputs)


def found_across(walk: FoldWalk) -> str:
    """Return the same across rows."""
    return FOUND_ACROSS if _looks_for_places(walk) else ""


def _looks_for_places(walk: FoldWalk) -> bool:
    """Return whether elements are compared alone: the places of bytes are ranks, and of large ones there are few."""
    return walk.keeps_places and walk.inputs[0].itemsize in (2, 4) and places_ascend(walk)


def places_ascend(walk: FoldWalk) -> bool:
    """Return whether elements come in the order of their places, by which loops tell the first of equal ones."""
    inner = zip(walk.positions, walk.fold, strict=True)
    return all(
        outer >= place * length for (place, length), outer in zip(inner, walk.positions[1:], strict=False)
    )


def results_make_a_row(walk: FoldWalk) -> bool:
    """Return whether all results lie, and are counted, as those of one row do."""
    steps = [walk.results, *(each.strides for each in walk.outputs)]
    return all(
        step[axis] == step[axis - 1] * walk.kept[axis - 1] for step in steps for axis in range(1, len(step))
    )


def has_words(walk: FoldWalk, length: int, along: bool) -> bool:
    """Return whether all packets of rows, of folded elements or of results, are words, but for the last of a row."""
    for each in walk.inputs:
        size = length * each.itemsize
        if along:
            step, rows = each.fold_strides[0], (*each.fold_strides[1:], *each.strides)
        else:
            step, rows = each.strides[0], (*each.fold_strides, *each.strides[1:])
        if (
            step != each.itemsize
            or LARGEST_WORD % size
            or any(place % size for place in (each.address, *rows))
        ):
            return False
    return True


def folds_innermost(walk: FoldWalk) -> bool:
    """Return whether the elements of the first input lie closest along a folded axis."""
    if not walk.inputs:
        return True
    first = walk.inputs[0]
    fold, kept = _closest(first.fold_strides, walk.fold), _closest(first.strides, walk.kept)
    return kept == 0 or 0 < fold <= kept


def _closest(strides: Ints, shape: Ints) -> int:
    return abs(strides[0]) if shape[0] > 1 else 0
