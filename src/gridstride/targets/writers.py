"""The loops of every target that has none of its own: for devices that run blocks of threads.

They are those of include/gridstride, valid on every target; what is chosen depends on the walk and on the
device's limits.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from math import gcd, prod

from gridstride.targets.base import LaunchConfig, Limits
from gridstride.targets.planes import BETWEEN_WORDS, ONE_FOR_A_ROW, begins_as, plane_loop
from gridstride.targets.walks import (
    THREADS,
    ElementWalk,
    FoldLoop,
    FoldWalk,
    Ints,
    Loop,
    Walked,
    axes_bytes,
    capacity_for,
    configuration,
    inputs_across,
    inputs_along,
    multiplier_and_shift,
    numbering_bytes,
    operand_bytes,
    power_of_two_from,
    walk_of_parts,
    walked_operands,
)

#: Bytes of the largest value for which shared memory has room for one of each thread, as in the headers.
LARGEST_FOLDING = 184
_ELEMENTWISE, _REDUCTION = "gridstride/elementwise.h", "gridstride/reduction.h"
_LINES, _SMALL = "gridstride/fold_lines.h", "gridstride/fold_small.h"
_REPEATED = "gridstride/repeated_rows.h"
_FEW_ROWS = "gridstride/fold_few.h"
_SHORT_ROWS, _NARROW = "gridstride/fold_short.h", "gridstride/fold_narrow.h"
_WARP, _LARGEST_WORD = 32, 16
#: Packets that a thread loads at once, along a row.
_AT_ONCE = 4
#: Packets from which on a row is long enough for a block of its own.
_LONG_PACKETS = 2 * THREADS
#: Elements of a packet from which on packets of one row are taken once for several rows: for how many; and how such an
#: input lies, as the header is told.
_LEAST_REPEATED, _ROWS_AT_ONCE, _ONE_ROW = 8, 4, 3
#: Elements of a row that is so short that packets cover several, and of one between words for which they better do; and
#: how many there must be of all.
_SHORT_ROW, _UNEVEN_ROW, _LEAST_FLAT = 24, 1024, 512
#: Packets of such rows that a thread takes; and how an operand lies, as the header has it.
_FLAT_PACKETS = 2
_FLAT, _OF_ROWS, _GATHERED = range(3)
#: Short rows that a thread takes a packet of, and how many of the threads of a block must have one.
_ROWS_OF_THREAD, _LEAST_BUSY = 2, 0.75
#: Packets that a thread of a long row's block takes at most: few where every input is brought from memory, more where
#: some are read again and again, and most of bytes where all are: then what a block begins with takes longest.
_PACKETS_OF_THREAD, _PACKETS_OF_SOME, _PACKETS_OF_ALL = 2, 4, 8
#: Blocks for each multiprocessor that fold narrow arrays, at most: twice as many as it holds at once.
_NARROW_BLOCKS = 10
#: Bytes of a row from which on it is long, results that are many, and columns that are still few.
_LONG_ROW, _MANY, _MOST_COLUMNS = 512, 4096, 256
#: Rows that a thread folds at most, and such rows of bytes: in the headers sums of bytes count on it.
_MOST_ROWS, MOST_BYTE_ROWS = 1 << 22, 256
MOST_PARTS = 65535
#: Elements of a row, if they are no word, of which a thread takes neighboring ones, and bytes of those.
_FEW, _FEW_BYTES = 8, 144
#: Words of those that a thread loads itself, as in the header.
_MOST_OWN_WORDS = 3
#: Bytes of neighboring rows that a block has room for, and of elements that are taken four bytes at a time.
_STRETCH_BYTES, _IN_FOURS = 18432, 2


class BlockLoops:
    """Choose loops for blocks of threads."""

    def elementwise(self, walk: ElementWalk, limits: Limits) -> Loop:
        """Return packets of rows, or planes where operands lie along different axes."""
        length = packet_length([operand.itemsize for operand in walk.operands])
        return (
            _flat_rows(walk, length)
            or plane_loop(walk, length, limits)
            or _even_rows(walk, length)
            or _rows(walk, length, limits)
        )

    def reduction(self, walk: FoldWalk, limits: Limits) -> FoldLoop:
        """Return a fold along or across the innermost axis, in parts where results alone are too few."""
        if is_small(walk):
            return _small(walk)
        if has_short_rows(walk):
            return _few(walk) if has_few(walk) else _short(walk)
        if is_narrow(walk):
            return _narrow(walk, limits)
        from gridstride.targets.folds_across import fold_across

        return fold_across(walk, limits) or _along(walk, limits)

    def large_reduction(self, walk: FoldWalk, limits: Limits, size: int) -> FoldLoop:
        """Return a fold without shared memory, which has no room for a value of each thread."""
        from gridstride.targets.large_folds import large_fold

        return large_fold(walk, limits)


def packet_length(itemsizes: Sequence[int]) -> int:
    """Return how many elements a thread takes at once, as ``packet_length`` in the headers does."""
    largest = max(itemsizes, default=1)
    return 1 if _LARGEST_WORD % largest else _LARGEST_WORD // largest


def _rows(walk: ElementWalk, length: int, limits: Limits) -> Loop:
    packets = _packets_of_row(walk, length)
    outer = walk.shape[1:]
    total = packets * prod(outer)
    order = str(are_in_order(walk)).lower()
    if packets < _LONG_PACKETS and outer:
        index = "unsigned" if total < 2**31 else "unsigned long long"
        return _loop_of_rows(
            walk, f"rows<{index}, {order}>", (packets, *outer), (1, packets), _blocks(total, THREADS), total
        )
    if (again := _repeated_rows(walk, length)) is not None:
        return again
    # Several packets for a thread, unless there are too few then for all multiprocessors.
    each = min(_packets_of_thread(walk, length), max(1, total // (16 * THREADS * limits.multiprocessors)))
    pieces = _blocks(packets, each * THREADS)
    # Warps begin where lines of the caches do.
    width = _blocks(packets, pieces * _WARP) * _WARP
    pieces = _blocks(packets, width)
    count = pieces * prod(outer)
    return _loop_of_rows(walk, f"long_rows<{order}>", (pieces, *outer), (width, packets), count, count)


def _repeated_rows(walk: ElementWalk, length: int) -> Loop | None:
    """Return the loop for rows of small elements between words, where an input is one row again and again."""
    last = walk.operands[-1] if walk.operands else None
    if last is None or not last.written or len(walk.shape) != 2 or length < _LEAST_REPEATED:
        return None
    if not are_in_order(walk) or any(operand.itemsize != last.itemsize for operand in walk.operands):
        return None
    kinds = [_kind_of_rows(operand, last, walk.shape) for operand in walk.operands]
    row, rows = walk.shape
    apart = _LARGEST_WORD // gcd(_LARGEST_WORD, last.strides[1])
    if _ONE_ROW not in kinds or apart == 1 or not apart * _ROWS_AT_ONCE <= rows < 2**31:
        return None
    width = length // _LEAST_REPEATED * THREADS
    lengths = (_blocks(row // length, width), apart, _blocks(rows, apart * _ROWS_AT_ONCE))
    capacity = capacity_for(len(lengths))
    return Loop(
        _REPEATED,
        f"repeated_rows<{_ROWS_AT_ONCE}, {', '.join(map(str, kinds))}>",
        "",
        capacity,
        struct.pack("<5q", prod(walk.shape), row, rows, width, 0)
        + axes_bytes(prod(lengths), lengths, capacity)
        + numbering_bytes(walk.numbers[0], (0, *walk.numbers[1:]), capacity),
        walked_operands(walk.operands, capacity),
        configuration(prod(lengths), THREADS),
    )


def _kind_of_rows(operand: Walked, last: Walked, shape: Ints) -> int:
    """Return how an operand lies, as ``repeated_rows`` is told."""
    if operand.strides[0] == 0:
        return ONE_FOR_A_ROW
    return _ONE_ROW if operand.strides[1] == 0 else BETWEEN_WORDS + begins_as(operand, last, shape)


def _packets_of_thread(walk: ElementWalk, length: int) -> int:
    """Return how many packets a thread takes of a long row at most."""
    again = [
        operand.strides[0] == 0 or any(stride == 0 for stride in operand.strides[1:])
        for operand in walk.operands
        if not operand.written
    ]
    if not any(again):
        return _PACKETS_OF_THREAD
    return _PACKETS_OF_ALL if all(again) and length == _LARGEST_WORD else _PACKETS_OF_SOME


def _flat_rows(walk: ElementWalk, length: int) -> Loop | None:
    """Return the loop for short or uneven rows one after another, where no input needs to be turned."""
    if len(walk.shape) < 2 or not walk.operands or not walk.operands[-1].written:
        return None
    (row, rows, *outer), outputs = walk.shape, [operand for operand in walk.operands if operand.written]
    if not (2 <= row <= _longest_flat(walk) and row * rows >= _LEAST_FLAT):
        return None
    if any(operand.strides[:2] != (operand.itemsize, row * operand.itemsize) for operand in outputs):
        return None
    sizes = [operand.itemsize for operand in walk.operands]
    if any(size > _LARGEST_WORD or size & (size - 1) for size in sizes) or any(
        operand.strides[0] not in (0, operand.itemsize) for operand in walk.operands
    ):
        return None
    flat = walk._replace(
        shape=(row * rows, *outer),
        operands=tuple(each._replace(strides=(each.itemsize, *each.strides[2:])) for each in walk.operands),
    )
    packets = _packets_of_row(flat, length)
    # Packets of so many rows cover the same elements as those of the next.
    alike = length // gcd(length, row)
    of_alike = alike * row // length
    times = _blocks(packets, _FLAT_PACKETS * of_alike)
    is_long = row > _SHORT_ROW and packets >= _LEAST_BUSY * times * _FLAT_PACKETS * of_alike
    count = _FLAT_PACKETS if is_long else 1
    if count == 1:
        times, of_alike = 1, packets
    lengths = (of_alike, times, *outer)
    total = prod(lengths)
    index = "unsigned" if max(total, row * rows) < 2**31 else "unsigned long long"
    capacity = capacity_for(len(lengths))

    def strides(steps: Ints) -> Ints:
        return (steps[1], count * alike * steps[1], *steps[2:])

    return Loop(
        "gridstride/flat_rows.h",
        f"flat_rows<{index}, {count}, {', '.join(str(_kind_of_flat(each, row, length)) for each in walk.operands)}>",
        "",
        capacity,
        struct.pack("<5q", prod(walk.shape), row * rows, row, *multiplier_and_shift(row))
        + axes_bytes(total, lengths, capacity)
        + numbering_bytes(walk.numbers[0], strides(walk.numbers), capacity),
        tuple(
            operand_bytes(each.address, each.strides[0], strides(each.strides), capacity)
            for each in walk.operands
        ),
        configuration(_blocks(total, THREADS), THREADS),
    )


def _kind_of_flat(operand: Walked, row: int, length: int) -> int:
    """Return how an operand lies, as ``flat_rows`` is told."""
    size = operand.itemsize
    if operand.strides[:2] == (size, row * size):
        return _FLAT
    return _OF_ROWS if operand.strides[0] == size and row >= length else _GATHERED


def _longest_flat(walk: ElementWalk) -> int:
    """Return how long rows may be that are taken as one: longer ones where each begins at another place of a word."""
    return _SHORT_ROW if walk.shape[0] * walk.operands[-1].itemsize % _LARGEST_WORD == 0 else _UNEVEN_ROW


def _even_rows(walk: ElementWalk, length: int) -> Loop | None:
    """Return the loop for short rows of whole packets, along several axes, where each packet is a word."""
    row, *outer = walk.shape
    packets, rest = divmod(row, length)
    if len(outer) < 2 or rest or not 1 <= packets <= THREADS:
        return None
    rows = min(THREADS // packets, outer[0])
    if rows * packets < _LEAST_BUSY * THREADS or not all(
        _is_words(each, walk, length) for each in walk.operands
    ):
        return None
    pieces = (packets, _blocks(outer[0], rows), _blocks(outer[1], _ROWS_OF_THREAD), *outer[2:])
    blocks = prod(pieces[1:])
    capacity = capacity_for(len(pieces))
    if blocks >= 2**31:
        return None
    return Loop(
        "gridstride/even_rows.h",
        f"even_rows<{_ROWS_OF_THREAD}>",
        "",
        capacity,
        struct.pack("<5q", prod(walk.shape), row, outer[0], rows, outer[1])
        + axes_bytes(blocks, pieces, capacity)
        + numbering_bytes(walk.numbers[0], (0, *walk.numbers[1:]), capacity),
        walked_operands(walk.operands, capacity),
        configuration(blocks, THREADS),
    )


def _is_words(operand: Walked, walk: ElementWalk, length: int) -> bool:
    """Return whether each packet of whole rows is a word in memory."""
    word = length * operand.itemsize
    starts = (operand.address, *operand.strides[1:])
    return (
        operand.strides[0] == operand.itemsize
        and word <= _LARGEST_WORD
        and word & (word - 1) == 0
        and all(each % word == 0 for each in starts)
    )


def are_in_order(walk: ElementWalk) -> bool:
    """Return whether rows of all operands are consecutive, or one element that is read again and again."""
    return all(
        operand.strides[0] == operand.itemsize or (operand.strides[0] == 0 and not operand.written)
        for operand in walk.operands
    )


def _loop_of_rows(
    walk: ElementWalk, name: str, lengths: Ints, sizes: tuple[int, int], blocks: int, count: int
) -> Loop:
    capacity = capacity_for(len(walk.shape))
    return Loop(
        _ELEMENTWISE,
        name,
        "",
        capacity,
        struct.pack("<5q", prod(walk.shape), walk.shape[0], 1, *sizes)
        + axes_bytes(count, lengths, capacity)
        + numbering_bytes(walk.numbers[0], (0, *walk.numbers[1:]), capacity),
        walked_operands(walk.operands, capacity),
        configuration(blocks, THREADS),
    )


def _packets_of_row(walk: ElementWalk, length: int) -> int:
    """Return how many packets cover a row: one more where rows of the last operand start between two words."""
    row = walk.shape[0]
    if not walk.operands or length == 1:
        return -(-row // length)
    last = walk.operands[-1]
    word = length * last.itemsize
    starts_at_words = last.address % word == 0 and all(
        stride % word == 0 for stride, size in zip(last.strides[1:], walk.shape[1:], strict=True) if size > 1
    )
    if starts_at_words or last.strides[0] != last.itemsize:
        return -(-row // length)
    return -(-(row + length - 1) // length)


# ---- reductions ----


def folds_innermost(walk: FoldWalk) -> bool:
    """Return whether the elements of the first input lie closest along a folded axis."""
    if not walk.inputs:
        return True
    first = walk.inputs[0]
    fold, kept = _closest(first.fold_strides, walk.fold), _closest(first.strides, walk.kept)
    return kept == 0 or 0 < fold <= kept


def _closest(strides: Ints, shape: Ints) -> int:
    return abs(strides[0]) if shape[0] > 1 else 0


def _along(walk: FoldWalk, limits: Limits) -> FoldLoop:
    length = packet_length([each.itemsize for each in walk.inputs])
    row, *outer = walk.fold
    packets = -(-row // length)
    total = packets * prod(outer)
    results = prod(walk.kept)
    takes_long = walk.in_structures and length == _LARGEST_WORD
    group = _threads_for(total, takes_long)
    if results <= limits.multiprocessors:  # nobody else needs the threads, so each has all to load at once
        group = max(group, min(THREADS, power_of_two_from(_blocks(total, _AT_ONCE))))
    wanted = (16 if outer or takes_long else 32) * limits.multiprocessors
    blocks = _blocks(results * group, THREADS)
    parts = max(1, min(wanted // blocks, total // (group * 8), 65535)) if blocks < wanted else 1
    if parts > 1:
        group, blocks = THREADS, _blocks(results * THREADS, THREADS)
        parts = max(1, min(-(-wanted // blocks), total // (group * 8), 65535))
    tile = group * _AT_ONCE
    part = max(1, total if parts == 1 else _blocks(_blocks(total, parts), tile) * tile)
    parts = max(1, -(-total // part))
    fold_axes = axes_bytes(total, (packets, *outer), capacity := room_of(walk))
    kept_axes = axes_bytes(results, walk.kept, capacity)
    inputs = inputs_along(walk, capacity)
    space = fold_space_bytes(walk, capacity, part, parts, group, kept_axes, fold_axes, walk.kept_numbers)
    lines = f"fold_{'long_' if group >= _WARP else ''}lines<4, {counter_of(walk)}>"
    loop = (_REDUCTION, "fold_along<4>") if outer else (_LINES, lines)
    return fold_loop(loop, walk, space, inputs, configuration(blocks, THREADS, parts))


def is_small(walk: FoldWalk) -> bool:
    """Return whether one block can load all elements at once; where they lie makes no difference."""
    if not walk.inputs or len(walk.fold) > 1 or prod(walk.kept) > 1:
        return False
    packets, rest = divmod(walk.fold[0], packet_length([each.itemsize for each in walk.inputs]))
    return rest == 0 and 0 < packets <= _AT_ONCE * THREADS


def _small(walk: FoldWalk) -> FoldLoop:
    capacity = room_of(walk)
    length = packet_length([each.itemsize for each in walk.inputs])
    packets = walk.fold[0] // length
    are_words = all(
        _fits_a_word(each.itemsize)
        and each.fold_strides[0] == each.itemsize
        and each.address % (length * each.itemsize) == 0
        for each in walk.inputs
    )
    inputs = inputs_along(walk, capacity)
    fold_axes, kept_axes = axes_bytes(packets, (packets,), capacity), axes_bytes(1, walk.kept, capacity)
    space = fold_space_bytes(walk, capacity, packets, 1, THREADS, kept_axes, fold_axes, walk.kept_numbers)
    name = f"fold_small<{str(are_words).lower()}, {_AT_ONCE}>"
    return fold_loop((_SMALL, name), walk, space, inputs, configuration(1, THREADS))


def counter_of(walk: FoldWalk) -> str:
    """Return the type in which a loop counts the places of a fold along one axis, for values that may hold them."""
    return "int" if walk.in_structures and walk.fold[0] < 1 << 31 else "long long"


def has_short_rows(walk: FoldWalk) -> bool:
    """Return whether many short folds have their elements one after another in all inputs."""
    row, results = walk.fold[0], walk.kept[0]
    if not walk.inputs or len(walk.fold) > 1 or len(walk.kept) > 1 or results < _MANY:
        return False
    return all(
        _fits_a_word(each.itemsize)
        and each.fold_strides[0] == each.itemsize
        and each.strides[0] == row * each.itemsize < _LONG_ROW
        for each in walk.inputs
    )


def _short(walk: FoldWalk) -> FoldLoop:
    row, results, capacity = walk.fold[0], walk.kept[0], room_of(walk)
    sizes = [each.itemsize for each in walk.inputs]
    size, stretch, group = row * sum(sizes), _STRETCH_BYTES, 1
    if len(sizes) == 1 and size <= row * _IN_FOURS and THREADS * size > stretch:
        # A row a thread, in more room, though not for all threads: so elements are taken four bytes at a time.
        stretch *= 2
        rows = min(THREADS, stretch // size)
    else:
        while THREADS // group * size > stretch:
            group *= 2
        step = THREADS // group
        rows = max(step, stretch // size // step * step)
    rows = _rows_brought(rows, row * max(sizes))
    inputs = inputs_along(walk, capacity)
    fold_axes, kept_axes = axes_bytes(row, (row,), capacity), axes_bytes(results, (results,), capacity)
    space = fold_space_bytes(walk, capacity, rows, 1, group, kept_axes, fold_axes, walk.kept_numbers)
    how = configuration(_blocks(results, rows), THREADS)
    # Rows of whole words would all begin in the same banks, and threads of a row meet those of the next ones.
    has_gaps = group > 1 or any(row * itemsize % _LARGEST_WORD == 0 for itemsize in sizes)
    name = f"fold_short<{str(has_gaps).lower()}, {stretch}>::"
    return fold_loop((_SHORT_ROWS, name + "fold"), walk, space, inputs, how, name + "shared_bytes")


def _rows_brought(rows: int, size: int) -> int:
    """Return how many rows of so many bytes to bring: fewer where a few threads alone would load once more."""
    at_once = _AT_ONCE * THREADS * _LARGEST_WORD
    whole = rows * size // at_once * at_once
    return (whole - _LARGEST_WORD) // size if rows * size // 16 * 15 < whole < rows * size else rows


def has_few(walk: FoldWalk) -> bool:
    """Return whether the elements of short rows are so few and small that neighboring results are in a few words."""
    row, results = walk.fold[0], _results_of_few(walk)
    size = row * max(each.itemsize for each in walk.inputs)
    is_small = size <= _LARGEST_WORD and (row <= _FEW or size == _LARGEST_WORD)
    return (
        row > 1
        and (is_small or size == row * 2 == 2 * _LARGEST_WORD)
        and row * results * sum(each.itemsize for each in walk.inputs) <= _FEW_BYTES
        and all(_is_at_words_of_few(each, row * results * each.itemsize) for each in walk.inputs)
    )


def _is_at_words_of_few(operand: Walked, size: int) -> bool:
    """Return whether packets of so many bytes begin at their words, or those of a warp do, which hands them on."""
    own = gcd(_LARGEST_WORD, size)
    return operand.address % (own if size // own <= _MOST_OWN_WORDS else _LARGEST_WORD) == 0


def _results_of_few(walk: FoldWalk) -> int:
    """Return for how many results a thread takes elements: for a word of them, and of each output."""
    largest = max(each.itemsize for each in walk.outputs) if walk.outputs else 1
    row = walk.fold[0] * max(each.itemsize for each in walk.inputs)
    return min(
        _power_of_two_up_to(max(1, _LARGEST_WORD // largest)), _LARGEST_WORD // gcd(_LARGEST_WORD, row)
    )


def _few(walk: FoldWalk) -> FoldLoop:
    row, results, capacity = walk.fold[0], walk.kept[0], room_of(walk)
    each = _results_of_few(walk)
    size = row * each * max(one.itemsize for one in walk.inputs)
    count = 4 if size <= 16 else 2 if size <= 32 else 1
    inputs = inputs_along(walk, capacity)
    fold_axes, kept_axes = axes_bytes(row, (row,), capacity), axes_bytes(results, (results,), capacity)
    space = fold_space_bytes(walk, capacity, 1, 1, 1, kept_axes, fold_axes, walk.kept_numbers)
    how = configuration(_blocks(results // each, THREADS * count), THREADS)
    name = f"fold_few<{row}, {each}>::"
    return fold_loop((_FEW_ROWS, name + "fold"), walk, space, inputs, how, name + "shared_bytes")


def is_narrow(walk: FoldWalk) -> bool:
    """Return whether rows of a few results lie one after another in all inputs."""
    columns = walk.kept[0]
    length = packet_length([each.itemsize for each in walk.inputs])
    if (
        not walk.inputs
        or len(walk.fold) > 1
        or not 1 < columns <= _MOST_COLUMNS
        or walk.fold[0] * columns < _MANY
    ):
        return False
    # Words in which bytes are added have no room for more.
    are_bytes = any(each.itemsize == 1 for each in walk.inputs)
    if are_bytes and walk.fold[0] * columns >= MOST_PARTS * MOST_BYTE_ROWS * THREADS:
        return False
    return _period(columns, length) <= THREADS and all(
        _fits_a_word(each.itemsize)
        and each.strides[0] == each.itemsize
        and each.fold_strides[0] == columns * each.itemsize
        for each in walk.inputs
    )


def _period(columns: int, length: int) -> int:
    """Return how many packets begin in different columns."""
    return columns // gcd(columns, length)


def _narrow(walk: FoldWalk, limits: Limits) -> FoldLoop:
    from gridstride.targets.folds_across import joining_of_rows

    length = packet_length([each.itemsize for each in walk.inputs])
    columns, *outer = walk.kept
    rows, group = walk.fold[0], _period(columns, length)
    each_round = THREADS // group * group
    rounds = _blocks(_blocks(rows * columns, length), each_round)
    blocks = prod(outer)
    wanted = _NARROW_BLOCKS * limits.multiprocessors // max(1, blocks)
    are_bytes = any(each.itemsize == 1 for each in walk.inputs)
    most = MOST_BYTE_ROWS if are_bytes else _MOST_ROWS
    parts = max(1, min(wanted, rounds // 16, 65535), -(-rounds // most))
    part = max(1, -(-rounds // parts))
    parts = -(-rounds // part)
    capacity = room_of(walk)
    inputs = inputs_across(walk, capacity)
    fold_axes, kept_axes = (
        axes_bytes(rounds, (rows,), capacity),
        axes_bytes(prod(walk.kept), walk.kept, capacity),
    )
    space = fold_space_bytes(
        walk, capacity, part, parts, group, kept_axes, fold_axes, (0, *walk.kept_numbers[1:])
    )
    how = configuration(blocks, THREADS, parts)
    # Parts of many results, larger than what is read, are stored together.
    join = joining_of_rows if are_bytes and prod(walk.kept) >= _MANY else None
    name = f"fold_narrow<4, {str(join is not None).lower()}>"
    return fold_loop((_NARROW, name), walk, space, inputs, how, "narrow_bytes", join=join)


def _fits_a_word(itemsize: int) -> bool:
    return itemsize <= _LARGEST_WORD and _LARGEST_WORD % itemsize == 0


def _threads_for(packets: int, takes_long: bool) -> int:
    """Return how many threads share a result: so many that each has several packets to load at once.

    Fewer have less to join, where it is not memory that is waited for.
    """
    if packets <= 8:
        return 1
    if packets <= 128:
        return _power_of_two_up_to(packets // 4)
    return min(THREADS, max(32, _power_of_two_up_to(packets // (64 if takes_long else 32))))


#: Where `workspace` stands in ``fold_space``.
WORKSPACE_AT = 48


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
) -> bytes:
    """Return ``fold_space<capacity>``; the address of the workspace is filled in later."""
    results = prod(walk.kept)
    size, kept_row = results * prod(walk.fold), walk.kept[0] if kept_row is None else kept_row
    return (
        struct.pack("<5q2iQq", size, results, walk.fold[0], kept_row, part, parts, group, 0, width)
        + kept
        + fold
        + numbering_bytes(walk.kept_numbers[0], kept_numbers, capacity)
        + numbering_bytes(walk.fold_numbers[0], walk.fold_numbers, capacity)
        + numbering_bytes(walk.positions[0], walk.positions, capacity)
        + numbering_bytes(walk.results[0], walk.results, capacity)
    )


def fold_loop(
    loop: tuple[str, str],
    walk: FoldWalk,
    space: bytes,
    inputs: tuple[bytes, ...],
    how: LaunchConfig,
    shared: str = "fold_bytes",
    values: int = 1,
    join: Callable[[int, int, int], Loop] | None = None,
) -> FoldLoop:
    """Return a loop over a walk's outputs too, and the joining of its parts.

    Shared memory holds so many `values` for each thread; `join` joins parts that lie outermost.
    """
    capacity, parts = room_of(walk), how.grid[1]
    joining = (join or _joining)(prod(walk.kept), parts, capacity) if parts > 1 else None
    operands = (*inputs, *walked_operands(walk.outputs, capacity))
    largest = LARGEST_FOLDING // values
    return FoldLoop(
        *loop, shared, capacity, space, operands, how, parts, WORKSPACE_AT, joining, largest, join is not None,
        widens=True,
    )  # fmt: skip


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
    how = configuration(_blocks(results * group, THREADS), THREADS)
    return Loop(_LINES, "fold_parts", "fold_bytes", capacity, space, (), how)


def room_of(walk: FoldWalk) -> int:
    """Return the room for a walk's axes."""
    return capacity_for(max(len(walk.kept), len(walk.fold)))


def _blocks(items: int, each: int) -> int:
    return -(-items // each)


def _power_of_two_up_to(number: int) -> int:
    return 1 << (number.bit_length() - 1)
