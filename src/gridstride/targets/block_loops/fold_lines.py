"""Folds by blocks of threads along the axis on which elements lie closest."""

from __future__ import annotations

from math import prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.fold_loops import (
    counter_of,
    fold_loop,
    fold_space_bytes,
    found_along,
    has_words,
    room_of,
)
from gridstride.targets.block_loops.sizes import (
    MOST_PARTS,
    ceil_div,
    packet_length,
    power_of_two_up_to,
    threads_for,
)
from gridstride.targets.walks import (
    LARGEST_WORD,
    THREADS,
    WARP,
    FoldLoop,
    FoldWalk,
    axes_bytes,
    configuration,
    flag,
    inputs_along,
    power_of_two_from,
)

_ALONG = "gridstride/fold_along.h"
_LINES = "gridstride/fold_lines.h"
#: Packets that a thread loads at once, along a row.
_AT_ONCE = 4
#: The same where places are looked for along short lines: as many as leave few threads idle.
_WAYS_OF_FOUND = (4, 5, 7)
#: The same of bytes that become structures: few share a line of these, since many values take long to join.
_OF_BYTES = 8
#: Packets of a line beyond which it is long; where small elements become structures.
_LONG, _LONG_OF_STRUCTURES = 128, 256
#: Blocks for each multiprocessor, of which none waits for others.
_ENOUGH = 16


def has_long_lines(walk: FoldWalk) -> bool:
    """Return whether threads share lines of words of which each thread has many."""
    length = packet_length(walk.inputs)
    is_long = walk.fold[0] > (_LONG_OF_STRUCTURES if _takes_long(walk) else _LONG) * length
    return is_long and len(walk.fold) == 1 and has_words(walk, length, along=True)


def fold_lines(walk: FoldWalk, limits: Limits) -> FoldLoop:
    """Return the fold of packets along the axis on which elements lie closest, in parts where results are few.

    By `fold_along` where there are further axes, which other loops take unless rows are longer than `int`, or empty.
    """
    length = packet_length(walk.inputs)
    row, *outer = walk.fold
    packets, results = ceil_div(row, length), prod(walk.kept)
    total = packets * prod(outer)
    takes_long = _takes_long(walk)
    group, blocks, parts = _shared(walk, limits, packets, total, takes_long)
    tile = group * _AT_ONCE
    part = max(1, total if parts == 1 else ceil_div(ceil_div(total, parts), tile) * tile)
    parts = max(1, ceil_div(total, part))
    capacity = room_of(walk)
    space = fold_space_bytes(
        walk,
        capacity,
        part,
        parts,
        group,
        axes_bytes(results, walk.kept, capacity),
        axes_bytes(total, (packets, *outer), capacity),
        walk.kept_numbers,
    )
    found = "" if outer else found_along(walk)
    at_once = _at_once(packets, group, bool(found), takes_long and not outer)
    name = "fold_long_lines" if group >= WARP else "fold_lines"
    lines = f"{name}<{at_once}, {counter_of(walk)}, {flag(has_words(walk, length, along=True))}>"
    return fold_loop(
        (_ALONG, f"fold_along<{_AT_ONCE}>") if outer else (_LINES, lines),
        walk,
        space,
        inputs_along(walk, capacity),
        configuration(blocks, THREADS, parts),
        tells_places=not outer,
        finds_places=found,
    )


def _takes_long(walk: FoldWalk) -> bool:
    """Return whether elements are bytes that become structures."""
    return walk.in_structures and packet_length(walk.inputs) == LARGEST_WORD


def _shared(
    walk: FoldWalk, limits: Limits, packets: int, total: int, takes_long: bool
) -> tuple[int, int, int]:
    """Return how many threads share a result, how many blocks that makes, and into how many parts folds are cut."""
    is_line, results = len(walk.fold) == 1, prod(walk.kept)
    group = threads_for(total, takes_long)
    fewer = _fewer(group, packets, walk.in_structures, takes_long)
    if is_line and results * fewer >= _ENOUGH * THREADS * limits.multiprocessors:
        group = fewer
    if results <= limits.multiprocessors:  # nobody else needs the threads, so each has all to load at once
        group = max(group, min(THREADS, power_of_two_from(ceil_div(total, _AT_ONCE))))
    wanted = (2 * _ENOUGH if is_line and not takes_long else _ENOUGH) * limits.multiprocessors
    blocks = ceil_div(results * group, THREADS)
    parts = max(1, min(wanted // blocks, total // (group * 8), MOST_PARTS)) if blocks < wanted else 1
    if parts > 1:
        group, blocks = THREADS, results
        parts = max(1, min(ceil_div(wanted, blocks), total // (group * 8), MOST_PARTS))
    return group, blocks, parts


def _at_once(packets: int, group: int, finds_places: bool, takes_long: bool) -> int:
    """Return how many packets of a line a thread loads at once."""
    if finds_places and group < WARP:
        return min(_WAYS_OF_FOUND, key=lambda count: _loads(packets, group, count))
    return _OF_BYTES if takes_long and group < WARP and packets >= group * _OF_BYTES else _AT_ONCE


def _fewer(group: int, packets: int, in_structures: bool, takes_long: bool) -> int:
    """Return how many share a short line where there are lines enough: what they have takes time to join.

    Half as many, where fewer of these are idle in the last turn; where values take long to fold, fewer still.
    """
    if packets > (_LONG_OF_STRUCTURES if takes_long else _LONG) or packets <= 8:
        return group
    if takes_long:
        return power_of_two_up_to(max(1, packets // 16))
    half = max(1, group // 2)
    return half if in_structures or _loads(packets, half) * half < _loads(packets, group) * group else group


def _loads(packets: int, group: int, at_once: int = _AT_ONCE) -> int:
    """Return how many packets a thread of a group loads, idle or not."""
    return ceil_div(packets, group * at_once) * at_once
