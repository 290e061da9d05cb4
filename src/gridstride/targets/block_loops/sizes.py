"""How work is cut: into packets of a thread, threads of a result, blocks, and parts of a fold."""

from __future__ import annotations

from collections.abc import Sequence

from gridstride.targets.walks import LARGEST_WORD, THREADS, FoldWalk, Walked

#: Rows that a thread folds at most, and such rows of bytes: in the headers sums and ranks of bytes count on it.
MOST_ROWS, MOST_BYTE_ROWS = 1 << 22, 254
#: Parts of a fold, which are a grid's second axis, at most.
MOST_PARTS = 65535
#: Blocks for each multiprocessor, at most: four times five, or five times four, which it holds at once.
MOST_BLOCKS = 20
#: Blocks that a multiprocessor holds at once, and where values take registers.
HELD, _FEWER_HELD = 5, 4
#: Rounds of blocks, at most, and what of them is full.
_MOST_ROUNDS, _FULL = 4, 0.75


def packet_length(operands: Sequence[Walked]) -> int:
    """Return how many elements a thread takes at once, as ``packet_length`` in the headers does."""
    largest = max((each.itemsize for each in operands), default=1)
    return 1 if LARGEST_WORD % largest else LARGEST_WORD // largest


def ceil_div(items: int, each: int) -> int:
    """Return how many packets, blocks or parts there must be where each has so many of the items."""
    return -(-items // each)


def power_of_two_up_to(number: int) -> int:
    """Return the largest power of two that is no larger than a number."""
    return 1 << (number.bit_length() - 1)


def threads_for(packets: int, takes_long: bool = False) -> int:
    """Return how many threads share a result: so many that each has several packets to load at once.

    Fewer have less to join, where it is not memory that is waited for.
    """
    if packets <= 8:
        return 1
    if packets <= 128:
        return power_of_two_up_to(packets // 4)
    return min(THREADS, max(32, power_of_two_up_to(packets // (64 if takes_long else 32))))


def parts_that_fill(blocks: int, held: int, least_rounds: int = 1) -> int:
    """Return into how many parts to cut so many blocks: in rounds of what a device holds, of which few stay empty.

    Parts end together then; more rounds have more parts to join.
    """
    best, most = 1, 0.0
    for rounds in range(least_rounds, _MOST_ROUNDS + 1):
        parts = rounds * held // max(1, blocks)
        filled = parts * blocks / (rounds * held)
        if filled > most:
            best, most = parts, filled
        if most >= _FULL:
            break
    return best


def has_bytes(walk: FoldWalk) -> bool:
    """Return whether elements of an input are bytes."""
    return any(each.itemsize == 1 for each in walk.inputs)


def _takes_registers(walk: FoldWalk) -> bool:
    """Return whether values of a thread's packet take so many registers that a multiprocessor holds fewer blocks."""
    largest = max((each.itemsize for each in walk.inputs), default=1)
    return walk.in_structures and largest > 1 and (largest == 2 or not walk.has_identity)


def blocks_held(walk: FoldWalk) -> int:
    """Return how many blocks a multiprocessor holds at once."""
    return _FEWER_HELD if _takes_registers(walk) else HELD
