"""What the compiled fast path is told of a launch that succeeded, so that it can replay it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

#: The dtypes that arguments can have; the position is the number that the C code uses.
DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
#: The most bytes of packed arguments.
MOST_BYTES = 4096
#: The most outputs and workspaces, and the most launches, of a call of an array kernel.
MOST_MADE, MOST_STEPS = 8, 2
#: What a call of an array kernel returns.
NOTHING, ONE, TUPLE = range(3)

Extent = tuple[int, int, int]


class Parameter(NamedTuple):
    """Describe a parameter that is a scalar, or a pointer to scalars, vectors or anything (void).

    Attributes
    ----------
    is_pointer : bool
    written : bool
        Whether the kernel may write behind the pointer.
    dtypes : int
        Behind a pointer: bit k is set where arrays of dtype k of `DTYPES` are taken.
    dtype : int
        Of a scalar, else -1.
    alignment : int
        Bytes, of the address.
    unit : int
        What the array's bytes must be a multiple of; 0: anything.
    offset : int
        Bytes, in the packed arguments.
    """

    is_pointer: bool
    written: bool
    dtypes: int
    dtype: int
    alignment: int
    unit: int
    offset: int


class Entry(NamedTuple):
    """Describe a launch to replay, in the order in which the C code reads it.

    Attributes
    ----------
    routine, context : int
        What ``Function.native_entry`` of the target gave.
    device_type, device : int
        DLPack type of the first array (0 where there is none), and index of its device.
    exact : tuple of (grid, block, shared_mem) or None
        The only configuration that the function serves; None: it serves every one.
    max_grid, max_block, max_threads, max_shared_mem
        What a configuration must not exceed.
    is_cooperative : bool
    is_verified : bool
        Let the pipeline do every call and compare.
    packed_size : int
        Bytes.
    parameters : tuple of Parameter
    target : Target
    function : Function
        It words failures, and is kept alive.
    choose : callable
        Returns the target that such arguments choose now.
    """

    routine: int
    context: int
    device_type: int
    device: int
    exact: tuple[Extent, Extent, int] | None
    max_grid: Extent
    max_block: Extent
    max_threads: int
    max_shared_mem: int
    is_cooperative: bool
    is_verified: bool
    packed_size: int
    parameters: tuple[Parameter, ...]
    target: Any
    function: Any
    choose: Callable[[], Any]


class Launch(NamedTuple):
    """Describe one launch in full, for `PreparedLaunch`, in the order in which the C code reads it.

    Attributes
    ----------
    routine, context, function
        As in `Entry`.
    grid, block, shared_mem
    flags : int
        1: cooperative.
    packed : bytes
        The arguments.
    stream : int
        Its raw handle.
    """

    routine: int
    context: int
    function: Any
    grid: Extent
    block: Extent
    shared_mem: int
    flags: int
    packed: bytes
    stream: int


class ArrayStep(NamedTuple):
    """Describe a launch of an array kernel's call, in the order in which the C code reads it.

    Attributes
    ----------
    routine, context, function
        As in `Entry`.
    grid, block, shared_mem
    flags : int
        1: cooperative.
    packed : bytes
        The arguments, in which addresses and numbers are still to be filled in.
    patches : tuple of (offset, operand, dtype)
        Where which operand stands: a number of dtype k of `DTYPES`, or an address (-1). Operands are
        numbered: the arguments, the outputs that are made, the workspace.
    """

    routine: int
    context: int
    function: Any
    grid: Extent
    block: Extent
    shared_mem: int
    flags: int
    packed: bytes
    patches: tuple[tuple[int, int, int], ...]


class Making(NamedTuple):
    """Describe the making of an array: an `arrays.Allocation`, and where in 16 bytes its memory must begin."""

    allocation: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], Callable[[Any], Any] | None]
    start: int


class Pair(NamedTuple):
    """Name two operands that must not share memory, unless they may lie in the same place.

    ``low`` and ``high`` say in bytes which stretch an operand touches, from its address on.
    """

    one: int
    low: int
    high: int
    other: int
    other_low: int
    other_high: int
    may_be_same: bool


class ArrayCall(NamedTuple):
    """Describe a call of an array kernel to replay, in the order in which the C code reads it.

    Attributes
    ----------
    target, choose, is_verified
        As in `Entry`.
    nin : int
        How many operands are inputs.
    form : int
        `NOTHING`, `ONE` or `TUPLE`.
    output_count : int
    steps : tuple of ArrayStep
    makings : tuple of Making
        Of the outputs that are not passed, then of a workspace.
    pairs : tuple of Pair
    """

    target: Any
    choose: Callable[[], Any]
    is_verified: bool
    nin: int
    form: int
    output_count: int
    steps: tuple[ArrayStep, ...]
    makings: tuple[Making, ...]
    pairs: tuple[Pair, ...]
