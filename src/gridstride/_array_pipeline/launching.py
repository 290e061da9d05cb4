"""The launches of a call: choose loops, find their functions, lay out the parameters, and launch."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gridstride._arguments import axes
from gridstride._arguments.elementwise import Bound
from gridstride._arguments.place import Place
from gridstride._array_pipeline.choosing import chosen_loop
from gridstride._array_pipeline.operands import Operand, accesses_of, make_scratch, value_bytes
from gridstride._array_pipeline.walking import element_walk
from gridstride._compilation.functions import LoadedProgram, load_program
from gridstride._runtime import tracking
from gridstride._source.elementwise import (
    ElementwiseSource,
    elementwise_form,
    elementwise_program,
    entry,
    uses_index,
    uses_numbers,
)
from gridstride._source.types import alignment_of
from gridstride.arrays.view import ArrayView
from gridstride.errors import CompileError
from gridstride.targets.base import Access, Function, LaunchConfig, Program
from gridstride.targets.block_loops.writers import BlockLoops
from gridstride.targets.walks import LoopWriters

_BLOCK_LOOPS = BlockLoops()


class Step(NamedTuple):
    """One launch of a prepared call: its bytes, in which addresses and numbers are still to be filled in.

    Attributes
    ----------
    kernel : str
        What users call it.
    function : Function
    configuration : LaunchConfig
    packed : bytes
        Where an address stands, how far it is from the argument's own.
    addresses, numbers : tuple of (offset, operand)
        Where which operand's address or value stands.
    workspace : tuple of int
        Where the address of the workspace stands.
    """

    kernel: str
    function: Function
    configuration: LaunchConfig
    packed: bytes
    addresses: tuple[tuple[int, int], ...]
    numbers: tuple[tuple[int, int], ...]
    workspace: tuple[int, ...] = ()


class PreparedCall(NamedTuple):
    """Hold a call's text and launches for one place, dtypes, shapes and strides.

    Attributes
    ----------
    text : str
    steps : tuple of Step
    workspace : int
        Its bytes.
    is_final : bool
        Whether the call is prepared so for good: otherwise it is prepared again when it comes again.
    """

    text: str
    steps: tuple[Step, ...]
    workspace: int = 0
    is_final: bool = True


class Launched(NamedTuple):
    """Hold the argument bytes of each launch of a call, and the address of its workspace."""

    packed: tuple[bytes, ...]
    workspace: int


def prepare_elements(
    source: ElementwiseSource,
    bound: Bound,
    operands: Sequence[Operand],
    place: Place,
    came_again: bool = False,
) -> PreparedCall:
    """Return the launch of an elementwise call."""
    name = source.declaration.name
    limits = place.target.limits(place.device)
    roles = tuple(operand.role for operand in operands)
    kernel = source, roles, place.target.name, place.device
    walk = element_walk(operands, bound.shape, uses_numbers(source))
    loop, is_final = chosen_loop(kernel, writers_of(place), walk, limits, came_again)
    form = elementwise_form(source, roles, bound.types.items(), loop, len(bound.shape))
    program = elementwise_program(source, form, place.target.name)
    loaded = load_explained(program, source.sections(), bound.types, place)
    block = ParameterBlock()
    block.add(loop.space, 8)
    if uses_index(source):
        block.add(struct.pack(f"<{max(1, form.ndim)}q", *(bound.shape or (1,))), 8)
    block.add_operands(operands, range(len(operands)), loop.operands)
    return PreparedCall(
        program.text, (block.step(loaded, entry(name), loop.configuration),), is_final=is_final
    )


def _workspace(kernel: str, operands: Sequence[Operand], size: int, place: Place, stream: int) -> ArrayView:
    """Return memory for the results of parts, of the library of the first array, in the order of a stream."""
    (made,) = make_scratch(kernel, operands, [(np.dtype(np.uint8), (size,))], place, stream)
    return made.view


def writers_of(place: Place) -> LoopWriters:
    """Return a target's own choice of loops, or that for blocks of threads."""
    return place.target.writers or _BLOCK_LOOPS


def load_explained(program: Program, sections: dict[str, str], types: Any, place: Place) -> LoadedProgram:
    """Return a program loaded at a place; a `CompileError` speaks of the user's expressions."""
    try:
        return load_program(place.target, place.device, program)
    except CompileError as error:
        from gridstride._source.diagnosis import explained

        raise explained(error, program, sections, types) from None


def execute(
    kernel: str, prepared: PreparedCall, operands: Sequence[Operand], place: Place, stream: int
) -> Launched:
    """Fill addresses and numbers in, and launch."""
    accesses = accesses_of(operands)
    workspace = 0
    if prepared.workspace:
        memory = _workspace(kernel, operands, prepared.workspace, place, stream)
        workspace = memory.address
        accesses = (*accesses, Access(memory.owner, memory.address, memory.nbytes, True))
    launched = []
    for step in prepared.steps:
        packed = bytearray(step.packed)
        for at, position in step.addresses:
            view = operands[position].view
            assert view is not None
            (distance,) = struct.unpack_from("<q", packed, at)
            struct.pack_into("<Q", packed, at, view.address + distance)
        for at, position in step.numbers:
            content = value_bytes(kernel, operands[position])
            packed[at : at + len(content)] = content
        for at in step.workspace:
            packed[at : at + 8] = workspace.to_bytes(8, "little")
        launched.append(bytes(packed))
        tracking.launch(
            place.target, place.device, step.kernel, step.function, step.configuration, launched[-1], stream,
            accesses,
        )  # fmt: skip
    return Launched(tuple(launched), workspace)


class ParameterBlock:
    """Put arguments where the C++ compiler expects them."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._addresses: list[tuple[int, int]] = []
        self._numbers: list[tuple[int, int]] = []

    def add(self, content: bytes, alignment: int) -> int:
        """Append bytes; return where they stand."""
        self._bytes += bytes(-len(self._bytes) % alignment)
        at = len(self._bytes)
        self._bytes += content
        return at

    def add_operands(
        self, operands: Sequence[Operand], positions: Iterable[int], elements: Sequence[bytes]
    ) -> None:
        """Append operands; `elements` holds the structures of the arrays walked, which begin with an address."""
        rest = iter(elements)
        for position in positions:
            operand = operands[position]
            role = operand.role
            if role.kind == "scalar":
                alignment = 1 if role.is_structure else alignment_of(role.value)
                self._numbers.append((self.add(bytes(role.value.itemsize), alignment), position))
            else:
                content = next(rest) if role.kind == "element" else _raw_bytes(operand)
                at = self.add(content, 8)
                address = operand.view.address if operand.view is not None else 0
                struct.pack_into(
                    "<q", self._bytes, at, struct.unpack_from("<Q", self._bytes, at)[0] - address
                )
                self._addresses.append((at, position))

    def step(
        self, loaded: LoadedProgram, kernel: str, configuration: LaunchConfig, workspace: tuple[int, ...] = ()
    ) -> Step:
        """Return the launch of a kernel with the block."""
        function = loaded.function(kernel).function
        return Step(
            loaded.program.name,
            function,
            configuration,
            bytes(self._bytes),
            tuple(self._addresses),
            tuple(self._numbers),
            workspace,
        )


def _raw_bytes(operand: Operand) -> bytes:
    view = operand.view
    assert view is not None
    shape, strides = view.shape or (1,), axes.strides_of(view) or (0,)
    return struct.pack(f"<Qq{2 * len(shape)}q", view.address, view.size, *shape, *strides)
