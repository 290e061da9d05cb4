"""What loops walk: the values that a call hands to a target's loops, and their bytes (include/gridstride/operands.h).

Axes are listed innermost first; strides are in bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from gridstride.targets.base import Dim3, LaunchConfig, Limits

Ints = tuple[int, ...]

#: Threads of a block in loops for blocks of threads; the headers have the same number.
THREADS = 256
WARP = 32
#: Bytes of the words that a thread loads at once, and of the sectors in which memory moves.
LEAST_WORD, LARGEST_WORD, SECTOR = 4, 16, 32
#: Says of a loop's shared memory that the launch's configuration tells how much it is.
IN_LAUNCH = "in launch"
#: How many axes the structures have room for: the smallest that suffices is taken.
CAPACITIES = (4, 8, 16, 32, 64)


class Walked(NamedTuple):
    """Say where the elements of one operand lie.

    Attributes
    ----------
    address : int
        Of its first element.
    itemsize : int
    strides : tuple of int
        Along the axes of the walk; along those that are kept for a reduction.
    fold_strides : tuple of int
        Along the folded axes of a reduction.
    written : bool
    """

    address: int
    itemsize: int
    strides: Ints
    fold_strides: Ints = ()
    written: bool = False


class ElementWalk(NamedTuple):
    """Say what an elementwise kernel walks.

    Attributes
    ----------
    shape : tuple of int
        At least one axis.
    numbers : tuple of int
        How far apart the numbers of neighboring elements are along each axis.
    operands : tuple of Walked
        The inputs, then the outputs.
    """

    shape: Ints
    numbers: Ints
    operands: tuple[Walked, ...]


class FoldWalk(NamedTuple):
    """Say what a reduction walks.

    Attributes
    ----------
    kept, fold : tuple of int
        The axes that are kept and those that are folded, at least one each.
    kept_numbers, fold_numbers : tuple of int
        How far apart the numbers of neighboring input elements are.
    positions : tuple of int
        The same for the places of elements in the fold.
    results : tuple of int
        The same for the numbers of results.
    inputs, outputs : tuple of Walked
    in_structures : bool
        Whether values are folded in a structure.
    has_identity : bool
        Whether a fold starts with a value of its own, not with that of an element.
    keeps_places : bool
        Whether the structures are numbers and their places, of which the largest or the smallest is kept.
    """

    kept: Ints
    fold: Ints
    kept_numbers: Ints
    fold_numbers: Ints
    positions: Ints
    results: Ints
    inputs: tuple[Walked, ...]
    outputs: tuple[Walked, ...]
    in_structures: bool = False
    has_identity: bool = True
    keeps_places: bool = False

    @property
    def operands(self) -> tuple[Walked, ...]:
        """The inputs, then the outputs."""
        return *self.inputs, *self.outputs


def by_results(walk: FoldWalk) -> FoldWalk:
    """Return the same walk, of which the axes that are kept are ordered by where results lie."""
    order = sorted(
        range(len(walk.kept)), key=lambda axis: (*(abs(each.strides[axis]) for each in walk.outputs), axis)
    )

    def ordered(values: Ints) -> Ints:
        return tuple(values[axis] for axis in order)

    return walk._replace(
        kept=ordered(walk.kept),
        kept_numbers=ordered(walk.kept_numbers),
        results=ordered(walk.results),
        inputs=tuple(each._replace(strides=ordered(each.strides)) for each in walk.inputs),
        outputs=tuple(each._replace(strides=ordered(each.strides)) for each in walk.outputs),
    )


class Loop(NamedTuple):
    """Say how a walk is made.

    Attributes
    ----------
    header : str
        That has the loop.
    name : str
        The loop's name there, with template arguments that do not depend on types.
    shared : str
        The function there that says how much shared memory it is handed, or `IN_LAUNCH`; "" for none.
    capacity : int
        Axes that the structures have room for.
    space : bytes
        Of `structure`, or ``fold_space``.
    operands : tuple of bytes
        One each.
    configuration : LaunchConfig
    structure : str
        The structure that `space` holds.
    linked : tuple of str
        As in `Program`.
    """

    header: str
    name: str
    shared: str
    capacity: int
    space: bytes
    operands: tuple[bytes, ...]
    configuration: LaunchConfig
    structure: str = "element_space"
    linked: tuple[str, ...] = ()


class FoldLoop(NamedTuple):
    """Say how a fold is made: in one launch, or in parts that a second launch folds.

    Attributes
    ----------
    header, name, shared, capacity, space, operands, configuration
        As in `Loop`.
    parts : int
        Into how many parts the fold of each result is cut.
    workspace_at : int
        Where in `space` the address of the workspace stands.
    joining : Loop or None
        Of the second launch, whose operand is the workspace (`workspace_operand`); where there is one part the text
        has it, and it is not launched.
    largest : int or None
        Bytes of the largest value that the loop folds; None: of any. For larger ones it is compiled as a kernel that
        does nothing, which tells how large they are.
    parts_outermost : bool
        Whether it is parts of neighboring results that lie next to each other in the workspace.
    tells_numberless : bool
        Whether the loop makes a difference for maps that do not ask for numbers of elements.
    small_bytes : int
        Up to which integers the loop makes a difference for their sums.
    exact_bytes : int
        The same where sums are floating-point numbers: the loop adds neighboring integers exactly before.
    tells_places : bool
        Whether the loop makes a difference for structures of bytes and their places.
    widens : str
        Kinds of dtypes of which numbers in structures are better of four bytes than of fewer; "f" includes bfloat16.
    joins_flags : bool
        Whether the loop makes a difference for truth values of which any or all are to hold.
    linked : tuple of str
        As in `Program`.
    finds_places : str
        The header by which the loop finds the place of the largest or the smallest element of any dtype, or "".
    joined_space : bytes
        `space` of the second launch, where it is another: then the first one's results are the parts.
    """

    header: str
    name: str
    shared: str
    capacity: int
    space: bytes
    operands: tuple[bytes, ...]
    configuration: LaunchConfig
    parts: int = 1
    workspace_at: int = 0
    joining: Loop | None = None
    largest: int | None = None
    parts_outermost: bool = False
    tells_numberless: bool = False
    small_bytes: int = 2
    tells_places: bool = False
    widens: str = ""
    joins_flags: bool = False
    linked: tuple[str, ...] = ()
    finds_places: str = ""
    exact_bytes: int = 0
    joined_space: bytes = b""


class LoopWriters(Protocol):
    """Choose loops for walks, and how they are launched, from a device's limits.

    Attributes
    ----------
    has_many_folds : bool
        Whether there are so many loops for reductions that a kernel that needs many had better have them in one text.
    """

    has_many_folds: bool

    def elementwise(self, walk: ElementWalk, limits: Limits) -> Loop:
        """Return the loop for an elementwise kernel."""
        ...

    def any_elementwise(self, walk: ElementWalk, limits: Limits) -> Loop:
        """Return a loop of which there are few for all walks, two at most for as many axes."""
        ...

    def reduction(self, walk: FoldWalk, limits: Limits) -> FoldLoop:
        """Return the loop for a reduction."""
        ...

    def large_reduction(self, walk: FoldWalk, limits: Limits, size: int) -> FoldLoop:
        """Return the loop for a reduction of values of so many bytes, more than the usual loop folds."""
        ...


def capacity_for(ndim: int) -> int:
    """Return the room for so many axes."""
    return next(capacity for capacity in CAPACITIES if ndim <= capacity)


def configuration(blocks: int, threads: int, parts: int = 1) -> LaunchConfig:
    """Return the configuration of so many blocks in a row, for each of the parts."""
    grid: Dim3 = (blocks, parts, 1)
    return LaunchConfig(grid, (threads, 1, 1))


def axes_bytes(count: int, lengths: Sequence[int], capacity: int, walked: int | None = None) -> bytes:
    """Return ``axes<capacity>``, of which so many of the first are walked: by default all."""
    padded = (*lengths, *(1 for _ in range(capacity - len(lengths))))
    magic = [multiplier_and_shift(length) for length in padded]
    ndim = len(lengths) if walked is None else walked
    return struct.pack(
        f"<qii{capacity}q{capacity}I{capacity}I",
        count, ndim, count >= 2**31, *padded, *(each[0] for each in magic), *(each[1] for each in magic),
    )  # fmt: skip


def numbering_bytes(step: int, strides: Sequence[int], capacity: int) -> bytes:
    """Return ``numbering<capacity>``."""
    return struct.pack(f"<{1 + capacity}q", step, *_padded(strides, capacity))


def operand_bytes(address: int, step: int, strides: Sequence[int], capacity: int) -> bytes:
    """Return ``operand<..., capacity>``."""
    return struct.pack(f"<Q{1 + capacity}q", address, step, *_padded(strides, capacity))


def folded_bytes(
    address: int, step: int, strides: Sequence[int], kept_strides: Sequence[int], capacity: int
) -> bytes:
    """Return ``folded<..., capacity>``."""
    kept = struct.pack(f"<{capacity}q", *_padded(kept_strides, capacity))
    return operand_bytes(address, step, strides, capacity) + kept


def walked_operands(operands: Sequence[Walked], capacity: int) -> tuple[bytes, ...]:
    """Return each operand of a loop that steps along axis 0."""
    return tuple(
        operand_bytes(each.address, each.strides[0], (0, *each.strides[1:]), capacity) for each in operands
    )


def inputs_along(walk: FoldWalk, capacity: int) -> tuple[bytes, ...]:
    """Return each input of a loop that steps along the innermost axis that is folded."""
    return tuple(
        folded_bytes(each.address, each.fold_strides[0], (0, *each.fold_strides[1:]), each.strides, capacity)
        for each in walk.inputs
    )


def inputs_across(walk: FoldWalk, capacity: int) -> tuple[bytes, ...]:
    """Return each input of a loop that steps along the innermost axis that is kept."""
    return tuple(
        folded_bytes(each.address, each.strides[0], each.fold_strides, (0, *each.strides[1:]), capacity)
        for each in walk.inputs
    )


def inputs_by_elements(walk: FoldWalk, capacity: int) -> tuple[bytes, ...]:
    """Return each input of a loop that steps along all axes, from one element to others anywhere."""
    return tuple(
        folded_bytes(each.address, each.itemsize, each.fold_strides, each.strides, capacity)
        for each in walk.inputs
    )


def walk_of_parts(results: int, parts: int, parts_outermost: bool = False) -> FoldWalk:
    """Return the walk of the parts of each result in a workspace, in elements."""
    step, stride = (results, 1) if parts_outermost else (1, parts)
    workspace = Walked(0, 1, (stride,), (step,))
    return FoldWalk((results,), (parts,), (0,), (0,), (0,), (0,), (workspace,), ())


def workspace_operand(itemsize: int, results: int, loop: FoldLoop, capacity: int) -> bytes:
    """Return the operand of a loop that joins the parts of each result; its address is filled in later."""
    if loop.parts_outermost:
        return folded_bytes(0, itemsize, (results * itemsize,), (0,), capacity)
    return folded_bytes(0, itemsize, (0,), (loop.parts * itemsize,), capacity)


def fits_a_word(itemsize: int) -> bool:
    """Return whether elements are parts of a largest word."""
    return LARGEST_WORD % itemsize == 0


def power_of_two_from(number: int) -> int:
    """Return the smallest power of two that is no less than a number."""
    return 1 << max(0, (number - 1).bit_length())


def _padded(values: Sequence[int], capacity: int) -> Ints:
    return (*values, *(0 for _ in range(capacity - len(values))))


def multiplier_and_shift(length: int) -> tuple[int, int]:
    """Return the numbers with which indices below 2**31 are divided (Granlund and Montgomery, PLDI 1994)."""
    if not 1 <= length < 2**31:
        return 0, 0
    shift = (length - 1).bit_length()
    return ((1 << 32) * ((1 << shift) - length)) // length + 1 & 0xFFFFFFFF, shift


def flag(value: bool) -> str:
    """Return a bool in C++."""
    return "true" if value else "false"
