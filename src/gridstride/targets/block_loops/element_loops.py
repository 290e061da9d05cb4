"""How elementwise loops for blocks of threads are put together: what they walk, and what they are told of operands."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from math import prod

from gridstride.targets.walks import (
    IN_LAUNCH,
    THREADS,
    ElementWalk,
    Ints,
    Loop,
    Walked,
    axes_bytes,
    capacity_for,
    configuration,
    numbering_bytes,
    operand_bytes,
)

#: How far apart neighboring elements are along what threads step along, and along the axes of ``outer``.
Steps = tuple[int, Ints]


#: How operands lie, as headers are told: one element for a row; packets of rows between words or, one more, in words
#: where the last operand has whole ones; along the other side.
ONE_FOR_A_ROW, BETWEEN_WORDS, ALONG_Y = 0, 1, 3


def along_rows(strides: Ints) -> Steps:
    """Return the steps of a loop along the innermost axis, of which axis 0 counts pieces."""
    return strides[0], (0, *strides[1:])


def element_loop(
    header: str,
    name: str,
    walk: ElementWalk,
    sizes: tuple[int, int, int, int],
    lengths: Ints,
    steps: Callable[[Ints], Steps] = along_rows,
    operands: Sequence[Steps] | None = None,
    count: int | None = None,
    blocks: int | None = None,
    shared: int | None = None,
    threads: int = THREADS,
    least_room: int = 1,
) -> Loop:
    """Return a loop over elements, as ``element_space`` and ``operand`` have it.

    Parameters
    ----------
    header, name : str
    walk : ElementWalk
    sizes : tuple of int
        `row`, `column`, `width` and `height`.
    lengths : tuple of int
        Of the axes of `outer`.
    steps : callable
        From strides along the axes of the walk to the loop's steps.
    operands : sequence of tuple, optional
        The steps of the operands; by default of their strides.
    count, blocks : int, optional
        Indices of `outer`, by default all; blocks, by default one for an index.
    shared : int, optional
        Bytes of shared memory that blocks are handed.
    threads : int
        Of a block.
    least_room : int
        Axes for which structures have room at least.
    """
    capacity, count = capacity_for(max(len(lengths), least_room)), prod(lengths) if count is None else count
    if operands is None:
        operands = [steps(operand.strides) for operand in walk.operands]
    how = configuration(count if blocks is None else blocks, threads)
    return Loop(
        header,
        name,
        "" if shared is None else IN_LAUNCH,
        capacity,
        struct.pack("<5q", prod(walk.shape), *sizes)
        + axes_bytes(count, lengths, capacity)
        + numbering_bytes(*steps(walk.numbers), capacity),
        tuple(
            operand_bytes(operand.address, *told, capacity)
            for operand, told in zip(walk.operands, operands, strict=True)
        ),
        how if shared is None else how._replace(shared_mem=shared),
    )


def lies_along(operand: Walked, shape: Ints, axes: Iterable[int]) -> bool:
    """Return whether elements are consecutive along axes, inner ones first."""
    step = operand.itemsize
    for axis in axes:
        if operand.strides[axis] != step:
            return False
        step *= shape[axis]
    return True


def are_in_order(walk: ElementWalk) -> bool:
    """Return whether rows of all operands are consecutive, or one element that is read again and again."""
    return all(
        operand.strides[0] == operand.itemsize or (operand.strides[0] == 0 and not operand.written)
        for operand in walk.operands
    )


def reads_one(walk: ElementWalk) -> bool:
    """Return whether one array is read, as where elements are moved."""
    return sum(not operand.written for operand in walk.operands) == 1


def begins_as(operand: Walked, last: Walked, shape: Ints, length: int) -> bool:
    """Return whether all packets of a length of an operand begin at the same place of a word as the last operand's."""
    size, last_size = operand.itemsize, last.itemsize
    pairs = zip(operand.strides, last.strides, shape, strict=True)
    return (operand.address // size - last.address // last_size) % length == 0 and all(
        (own // size - other // last_size) % length == 0 for own, other, count in pairs if count > 1
    )
