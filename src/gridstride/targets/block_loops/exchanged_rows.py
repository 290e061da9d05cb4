"""The loop over short rows that change places along two axes (include/gridstride/exchanged_rows.h)."""

from __future__ import annotations

from math import isqrt, prod

from gridstride.targets.base import Limits
from gridstride.targets.block_loops.element_loops import Steps, element_loop
from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.walks import LARGEST_WORD, ElementWalk, Ints, Loop, Walked, flag

#: Bytes of a box, of rows shorter than a word and of others, and of the shortest stretches that are worth one.
_SHORT_BOX, _BOX, _LEAST_STRETCH = 32 << 10, 42 << 10, 256
#: Blocks of a multiprocessor at least, unless boxes were smaller than so many bytes then.
_BLOCKS, _LEAST_BOX = 2, 4 << 10
#: Bytes of a line of banks, and of a stretch's words outside of it, which begins anywhere; rows of so few bytes wait
#: where packets are in lines of banks.
_LINE, _PAST, _FEW = 128, 2 * (LARGEST_WORD - 1), 4
#: Stretches that begin at the same place of a word, of which a thread has so many if they are no larger part of a box.
_ALIKE, _LARGE_PART = 2, 4
#: Bytes of the longest rows by the bytes of an element, and elements of those of whole words, beyond which other loops
#: do as well.
_LONGEST, _MOST_IN_WORDS = {1: 1024, 2: 1024, 4: 120, 8: 120}, 24


def exchanged_rows(walk: ElementWalk, limits: Limits) -> Loop | None:
    """Return the loop over boxes of short rows, of which all inputs are in the order of the outputs or in one other."""
    if len(walk.shape) < 3 or not walk.operands or not walk.operands[-1].written:
        return None
    size, (row, ones, *_) = walk.operands[-1].itemsize, walk.shape
    if not _are_rows(walk, size) or row * size > _LONGEST[size]:
        return None
    if row * size % LARGEST_WORD == 0 and row > _MOST_IN_WORDS:
        return None
    turned = [operand.strides[1] != row * size for operand in walk.operands]
    inputs = [operand for operand, is_turned in zip(walk.operands, turned, strict=True) if is_turned]
    # Rows that are repeated stay where they are.
    if not inputs or any(operand.written or operand.strides[1] == 0 for operand in inputs):
        return None
    second = _following(walk, inputs, row * size)
    if second is None or min(ones, walk.shape[second]) * row * size < _LEAST_STRETCH:
        return None
    return _loop(walk, second, turned, limits)


def _are_rows(walk: ElementWalk, size: int) -> bool:
    """Return whether all operands have rows of consecutive elements of one size."""
    return size in _LONGEST and all(
        operand.itemsize == size
        and operand.strides[0] == size
        and all(each % size == 0 for each in (operand.address, *operand.strides))
        for operand in walk.operands
    )


def _following(walk: ElementWalk, inputs: list[Walked], row: int) -> int | None:
    """Return the axis along which rows of inputs follow each other."""
    axes = range(2, len(walk.shape))
    return next((axis for axis in axes if all(each.strides[axis] == row for each in inputs)), None)


def _loop(walk: ElementWalk, second: int, turned: list[bool], limits: Limits) -> Loop | None:
    size, (row, ones, *_) = walk.operands[-1].itemsize, walk.shape
    others, length = walk.shape[second], LARGEST_WORD // size
    few = prod(walk.shape) * size // (_BLOCKS * limits.multiprocessors)
    box = min((_SHORT_BOX if row < length else _BOX) // sum(turned), max(few, _LEAST_BOX))
    side, are_few = isqrt(box // (row * size)), size == 1 and row <= _FEW
    if are_few:  # what waits of a stretch is whole lines of banks
        side = (ceil_div(side * row, _LINE) * _LINE - _PAST) // row
    height = min(others, max(length, side // length * length))
    if height < _ALIKE * length <= min(others, box // _LARGE_PART // (row * size)):
        height = _ALIKE * length
    height = min(height, max(1, box // 2 // (row * size)))
    # A stretch begins anywhere in a word, and neighboring ones in different banks.
    stretch = height * row * size + _PAST
    pitch = (stretch // LARGEST_WORD | 1) * LARGEST_WORD
    if are_few:
        pitch = ceil_div(stretch, _LINE) * _LINE + row
    width = max(1, min(ones, box // pitch))
    width = ceil_div(ones, ceil_div(ones, width))
    shared = sum(turned) * (width * pitch + 2 * LARGEST_WORD)
    if shared > limits.shared_memory_per_block:
        return None
    rows = "tiny" if are_few else "short" if row < length else "long"
    further = tuple(axis for axis in range(2, len(walk.shape)) if axis != second)
    pieces = (ceil_div(ones, width), ceil_div(others, height))
    packets = ceil_div(width * row * size, LARGEST_WORD)
    outer = tuple(walk.shape[axis] for axis in further)
    count = prod(pieces) * prod(outer)
    if count >= 2**31:
        return None

    def steps(strides: Ints) -> Steps:
        return strides[0], (strides[1], strides[second], 0, 0, *(strides[axis] for axis in further))

    return element_loop(
        "gridstride/exchanged_rows.h",
        f"exchanged_rows<gridstride::{rows}_exchanged, {', '.join(map(flag, turned))}>",
        walk,
        (width, ones, others, height),
        (*pieces, row, packets, *outer),
        steps,
        count=count,
        shared=shared,
    )
