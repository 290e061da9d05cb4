"""THE OTHER MAP: the road of an elementwise call or a reduction, from arrays to the launch.

view        arrays          look at each argument
bind        _arguments      arity, dtypes, broadcasting, outputs (pure)
place       _arguments      the target and device that the arguments decide
allocate    arrays          the outputs, in the caller's library, on the stream of the launch
separate    _arguments      inputs that overlap an output otherwise than element for element
walk        _arguments      the fewest axes, in the order in which memory is walked
size        targets         loop and launch configuration, from the device's limits
specialize  _source         one CUDA C++ text for these dtypes and this loop
compile     _compilation    find the function in the caches, or compile and load it
launch      targets         run on the stream, hand back the caller's arrays
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gridstride import _dtypes, arrays
from gridstride._arguments import axes
from gridstride._arguments.elementwise import Bound, Passed, bind_elementwise, operand_strides
from gridstride._arguments.place import Place, place_of
from gridstride._arguments.reduction import BoundFold, bind_reduction
from gridstride._arguments.scalars import scalar_bytes
from gridstride._arguments.slot import Slot
from gridstride._compilation.functions import LoadedProgram, load_program
from gridstride._pipeline import view_arguments
from gridstride._runtime import tracking
from gridstride._runtime.current import on_device
from gridstride._runtime.launch_stream import resolve_stream
from gridstride._source.diagnosis import explained
from gridstride._source.elementwise import (
    ElementwiseSource,
    copy_source,
    elementwise_form,
    elementwise_program,
    entry,
    uses_index,
)
from gridstride._source.reduction import FOLDING_SIZE, ReductionSource, reduction_form, reduction_program
from gridstride._source.reduction import entry as reduction_entry
from gridstride._source.types import DType, Role, alignment_of
from gridstride.arrays.view import ArrayView
from gridstride.errors import CompileError
from gridstride.targets.base import Access, CType, LaunchConfig, Parameter, Program
from gridstride.targets.walks import ElementWalk, FoldWalk, LoopWriters, Walked, workspace_operand
from gridstride.targets.writers import BlockLoops

Ints = tuple[int, ...]

_BLOCK_LOOPS = BlockLoops()


class Operand(NamedTuple):
    """Hold an argument on its way into a launch.

    Attributes
    ----------
    role : Role
    passed : Passed
    view : ArrayView or None
        Of the memory that the kernel gets, which may be a copy's.
    written : bool
    """

    role: Role
    passed: Passed
    view: ArrayView | None
    written: bool


class Made(NamedTuple):
    """Hold an output: the array, and what its library wants done to it before the caller gets it."""

    array: Any
    view: ArrayView
    library: str

    def handed_over(self) -> Any:
        """Return the caller's array."""
        adapter = arrays.adapter_of(self.library)
        if adapter is None or adapter.name == arrays.library_of(self.array):
            return self.array
        return adapter.wrap(self.array, self.view.shape, self.view.dtype)


def run_elementwise(
    source: ElementwiseSource, arguments: Sequence[Any], size: int | None, stream: Any
) -> tuple[Any, ...]:
    """Run an elementwise kernel; return its outputs.

    Raises
    ------
    TypeError, ValueError, OverflowError
        The call is wrong; nothing was launched and nothing written.
    CompileError, CUDAError, LaunchError, TargetUnavailable
        The world failed.
    """
    name = source.declaration.name
    views = view_arguments(name, arguments)
    bound = bind_elementwise(source.declaration, arguments, views, size)
    place = place_of(name, views)
    with on_device(place.target, place.device):
        handle = resolve_stream(views, stream, place.target, place.device)
        made = make_outputs(name, views, arguments, bound.made, place, handle)
        if axes.elements(bound.shape):
            operands = separated(name, operands_of(bound, made), bound.shape, place, handle)
            _launch_elements(source, bound, operands, place, handle)
    if made:
        return tuple(each.handed_over() for each in made)
    return tuple(arguments[source.declaration.nin :])


def run_reduction(
    source: ReductionSource,
    arguments: Sequence[Any],
    axis: Any,
    keepdims: bool,
    dtype: Any,
    stream: Any,
) -> tuple[Any, ...]:
    """Run a reduction; return its outputs. It raises what `run_elementwise` raises."""
    name = source.declaration.name
    views = view_arguments(name, arguments)
    bound = bind_reduction(
        source.declaration, arguments, views, axis, keepdims, dtype, source.identity is not None
    )
    check_sizes(source, axes.elements(bound.result))
    place = place_of(name, views)
    with on_device(place.target, place.device):
        handle = resolve_stream(views, stream, place.target, place.device)
        made = make_outputs(name, views, arguments, bound.made, place, handle)
        if axes.elements(bound.result):
            operands = operands_of(bound, made)
            operands = tuple(
                each._replace(view=_copied(name, each, place, handle))
                if _touches_output(each, operands)
                else each
                for each in operands
            )
            _launch_fold(source, bound, operands, place, handle)
    if made:
        return tuple(each.handed_over() for each in made)
    return tuple(arguments[source.declaration.nin :])


# ---- outputs ----


def make_outputs(
    kernel: str,
    views: Sequence[ArrayView | None],
    arguments: Sequence[Any],
    wanted: Iterable[tuple[DType, Ints]],
    place: Place,
    stream: int,
) -> tuple[Made, ...]:
    """Return new arrays of the caller's library, in the order of a stream.

    The library is that of the first array; where there is none, the one that the target's memory belongs to.
    """
    wanted = tuple(wanted)
    if not wanted:
        return ()
    library, like = _library_for_outputs(kernel, views, arguments, place)
    adapter = arrays.adapter_of(library)
    made = []
    for dtype, shape in wanted:
        try:
            assert adapter is not None
            array = adapter.allocate(like, shape, dtype, stream)
        except (AssertionError, TypeError, AttributeError) as error:
            reason = f": {error}" if isinstance(error, TypeError) else ""
            raise TypeError(
                f"`{kernel}`: no output of dtype {dtype} can be made beside a {library} array{reason}. Pass the outputs"
            ) from None
        view = arrays.view(array)
        assert view is not None
        made.append(Made(array, view, library))
    return tuple(made)


def _library_for_outputs(
    kernel: str, views: Sequence[ArrayView | None], arguments: Sequence[Any], place: Place
) -> tuple[str, Any]:
    known = [(view, argument) for view, argument in zip(views, arguments, strict=True) if view is not None]
    placed = [each for each in known if each[0].device_type != arrays.HOST or each[0].shape != ()] or known
    if placed:
        return placed[0][0].library, placed[0][1]
    for adapter in arrays.allocating_adapters(place.target.device_types):
        return adapter.name, None
    raise TypeError(f"`{kernel}`: no array says of which library the outputs shall be: pass them")


# ---- operands ----


def operands_of(bound: Bound | BoundFold, made: Sequence[Made]) -> tuple[Operand, ...]:
    """Return the operands of a call in the order of the parameters."""
    declaration = bound.declaration
    operands = []
    for passed, value in zip(bound.arguments, bound.dtypes, strict=False):
        view = None if passed.view is None else arrays.resolved(passed.view)
        operands.append(Operand(_role(passed, view, value), passed, view, passed.is_output))
    for position, each in enumerate(made, declaration.nin):
        parameter = declaration.parameters[position]
        passed = Passed(parameter, position, each.array, each.view, True)
        operands.append(Operand(_role(passed, each.view, bound.dtypes[position]), passed, each.view, True))
    return tuple(operands)


def _role(passed: Passed, view: ArrayView | None, value: DType) -> Role:
    if passed.parameter.raw:
        assert view is not None
        return Role(passed.parameter, "raw", view.dtype, value, len(view.shape), view.c_contiguous)
    if passed.by_value:
        return Role(passed.parameter, "scalar", value, value)
    assert view is not None
    return Role(passed.parameter, "element", view.dtype, value)


def separated(
    kernel: str, operands: tuple[Operand, ...], shape: Ints, place: Place, stream: int
) -> tuple[Operand, ...]:
    """Return the operands with copies in place of inputs that overlap an output otherwise than element for element.

    Raises
    ------
    ValueError
        Where two outputs overlap.
    """
    outputs = [
        each for each in operands if each.written and each.view is not None and each.role.kind == "element"
    ]
    for k, first in enumerate(outputs):
        for second in outputs[k + 1 :]:
            assert first.view is not None
            assert second.view is not None
            if axes.may_share(first.view, second.view):
                names = f"{first.role.parameter.name!r} and {second.role.parameter.name!r}"
                raise ValueError(f"`{kernel}`: outputs {names} share memory: pass arrays that lie apart")
    return tuple(
        each._replace(view=_copied(kernel, each, place, stream))
        if _needs_copy(each, outputs, shape)
        else each
        for each in operands
    )


def _needs_copy(operand: Operand, outputs: Sequence[Operand], shape: Ints) -> bool:
    view = operand.view
    if operand.written or view is None or operand.role.kind != "element":
        return False
    for output in outputs:
        assert output.view is not None
        same = (
            view.address == output.view.address
            and view.dtype.itemsize == output.view.dtype.itemsize
            and operand_strides(view, shape) == operand_strides(output.view, shape)
        )
        if not same and axes.may_share(view, output.view):
            return True
    return False


def _touches_output(operand: Operand, operands: Sequence[Operand]) -> bool:
    """Return whether an input of a reduction shares memory with an output."""
    view = operand.view
    if operand.written or view is None or operand.role.kind != "element":
        return False
    return any(
        each.written and each.view is not None and axes.may_share(view, each.view) for each in operands
    )


def _copied(kernel: str, operand: Operand, place: Place, stream: int) -> ArrayView:
    """Return a C-contiguous copy of an array, made in stream order."""
    view = operand.view
    assert view is not None
    (made,) = make_outputs(kernel, [view], [operand.passed.value], [(view.dtype, view.shape)], place, stream)
    source = copy_source()
    parameters = source.declaration.parameters
    given = Passed(parameters[0], 0, operand.passed.value, view, False)
    types = {"T": view.dtype}
    bound = Bound(
        source.declaration, (given,), (view.dtype,) * 2, types, view.shape, ((view.dtype, view.shape),)
    )
    _launch_elements(source, bound, operands_of(bound, (made,)), place, stream)
    return made.view


# ---- walk, size, specialize, compile, launch ----


def _launch_elements(
    source: ElementwiseSource, bound: Bound, operands: Sequence[Operand], place: Place, stream: int
) -> None:
    limits = place.target.limits(place.device)
    loop = writers_of(place).elementwise(element_walk(operands, bound.shape), limits)
    roles = tuple(operand.role for operand in operands)
    form = elementwise_form(source, roles, bound.types.items(), loop, len(bound.shape))
    program = elementwise_program(source, form, place.target.name)
    loaded = load_explained(program, source.sections(), bound.types, place)
    block = ParameterBlock()
    block.add(loop.space, 8)
    if uses_index(source):
        block.add(struct.pack(f"<{max(1, form.ndim)}q", *(bound.shape or (1,))), 8)
    add_arguments(block, source.declaration.name, operands, loop.operands)
    run(
        loaded,
        entry(source.declaration.name),
        loop.configuration,
        block.packed(),
        place,
        stream,
        accesses_of(operands),
    )


def _launch_fold(
    source: ReductionSource, bound: BoundFold, operands: Sequence[Operand], place: Place, stream: int
) -> None:
    target, name = place.target, source.declaration.name
    loop = writers_of(place).reduction(fold_walk(bound, operands), target.limits(place.device))
    roles = tuple(operand.role for operand in operands)
    form = reduction_form(roles, bound.types.items(), loop)
    program = reduction_program(source, form, target.name)
    loaded = load_explained(program, source.sections(), bound.types, place)
    accesses = accesses_of(operands)
    workspace = None
    if loop.parts > 1:
        size = loaded.object_code.constants[FOLDING_SIZE]
        workspace = _workspace(name, operands, size * loop.parts * axes.elements(bound.result), place, stream)
        accesses = (*accesses, Access(workspace.owner, workspace.address, workspace.nbytes, True))
    space = loop.space
    if workspace is not None:
        at = loop.workspace_at
        space = space[:at] + struct.pack("<Q", workspace.address) + space[at + 8 :]
    block = ParameterBlock()
    block.add(space, 8)
    add_arguments(block, name, operands, loop.operands)
    run(loaded, reduction_entry(name), loop.configuration, block.packed(), place, stream, accesses)
    if loop.joining is not None and workspace is not None:
        block = ParameterBlock()
        block.add(space, 8)
        block.add(loop.joining.space, 8)
        block.add(workspace_operand(workspace.address, size, loop.parts, loop.joining.capacity), 8)
        outputs = [operand for operand in operands if operand.role.kind != "element" or operand.written]
        inputs = sum(operand.role.kind == "element" and not operand.written for operand in operands)
        add_arguments(block, name, outputs, loop.operands[inputs:])
        configuration = loop.joining.configuration
        run(
            loaded, f"{reduction_entry(name)}_joining", configuration, block.packed(), place, stream, accesses
        )


def _workspace(kernel: str, operands: Sequence[Operand], size: int, place: Place, stream: int) -> ArrayView:
    """Return memory for the results of parts, of the library of the first array, in the order of a stream."""
    views = [operand.view for operand in operands]
    values = [operand.passed.value for operand in operands]
    (made,) = make_outputs(kernel, views, values, [(np.dtype(np.uint8), (size,))], place, stream)
    return made.view


def fold_walk(bound: BoundFold, operands: Sequence[Operand]) -> FoldWalk:
    """Return the fewest axes that walk a fold: those that are kept and those that are folded apart."""
    elements = [
        operand for operand in operands if operand.role.kind == "element" and operand.view is not None
    ]
    inputs = [operand for operand in elements if not operand.written]
    outputs = [operand for operand in elements if operand.written]
    kept = [axis for axis in range(len(bound.shape)) if axis not in bound.axes]
    kept_shape = tuple(bound.shape[axis] for axis in kept)
    fold_shape = tuple(bound.shape[axis] for axis in bound.axes)
    all_strides = [
        operand_strides(operand.view, bound.shape) for operand in inputs if operand.view is not None
    ]
    numbers = axes.c_strides(bound.shape, 1)
    in_kept = [tuple(each[axis] for axis in kept) for each in (numbers, *all_strides)]
    in_fold = [tuple(each[axis] for axis in bound.axes) for each in (numbers, *all_strides)]
    results = axes.c_strides(kept_shape, 1)
    stored = [_kept_strides(operand, bound, kept) for operand in outputs]
    positions = axes.c_strides(fold_shape, 1)
    order = in_kept[1:] + stored + [results]
    kept_lengths, kept_walked = axes.collapse(kept_shape, [results, *in_kept, *stored], order)
    fold_lengths, fold_walked = axes.collapse(fold_shape, [positions, *in_fold], [*in_fold[1:], positions])
    split = 2 + len(inputs)
    return FoldWalk(
        kept_lengths,
        fold_lengths,
        kept_walked[1],
        fold_walked[1],
        fold_walked[0],
        kept_walked[0],
        tuple(
            Walked(operand.view.address, operand.view.dtype.itemsize, own, folded)
            for operand, own, folded in zip(inputs, kept_walked[2:split], fold_walked[2:], strict=True)
            if operand.view is not None
        ),
        tuple(
            Walked(operand.view.address, operand.view.dtype.itemsize, own, (), True)
            for operand, own in zip(outputs, kept_walked[split:], strict=True)
            if operand.view is not None
        ),
    )


def _kept_strides(operand: Operand, bound: BoundFold, kept: Sequence[int]) -> Ints:
    assert operand.view is not None
    strides = axes.strides_of(operand.view)
    return tuple(strides[axis] for axis in kept) if len(strides) == len(bound.shape) else strides


def check_sizes(source: ReductionSource, results: int) -> None:
    """Raise ValueError where `_in_ind.size()` is used for the size of a fold and there are several results.

    Users divide it by ``_out_ind.size()``; alone it counts the elements of all results.
    """
    texts = source.sections().values()
    if results < 2 or not any(re.search(r"\b_in_ind\s*\.\s*size\b", text) for text in texts):
        return
    if not any(re.search(r"\b_out_ind\s*\.\s*size\b", text) for text in texts):
        raise ValueError(
            f"`{source.declaration.name}`: _in_ind.size() counts the elements of all {results} results. For those of "
            f"one write _fold_size, or _in_ind.size() / _out_ind.size()"
        )


def element_walk(operands: Sequence[Operand], shape: Ints) -> ElementWalk:
    """Return the fewest axes that walk a shape, ordered by the strides of the outputs, then of the inputs."""
    elements = [
        operand for operand in operands if operand.role.kind == "element" and operand.view is not None
    ]
    strides = [operand_strides(operand.view, shape) for operand in elements if operand.view is not None]
    numbers = axes.c_strides(shape, 1)
    written = [each for each, operand in zip(strides, elements, strict=True) if operand.written]
    read = [each for each, operand in zip(strides, elements, strict=True) if not operand.written]
    lengths, (walked_numbers, *walked) = axes.collapse(shape, [numbers, *strides], [*written, *read, numbers])
    return ElementWalk(
        lengths,
        walked_numbers,
        tuple(
            Walked(operand.view.address, operand.view.dtype.itemsize, each, (), operand.written)
            for operand, each in zip(elements, walked, strict=True)
            if operand.view is not None
        ),
    )


def writers_of(place: Place) -> LoopWriters:
    """Return a target's own choice of loops, or that for blocks of threads."""
    return place.target.writers or _BLOCK_LOOPS


def load_explained(program: Program, sections: dict[str, str], types: Any, place: Place) -> LoadedProgram:
    """Return a program loaded at a place; a `CompileError` speaks of the user's expressions."""
    try:
        return load_program(place.target, place.device, program)
    except CompileError as error:
        raise explained(error, program, sections, types) from None


class ParameterBlock:
    """Put arguments where the C++ compiler expects them."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, content: bytes, alignment: int) -> int:
        """Append an argument; return where it stands."""
        self._bytes += bytes(-len(self._bytes) % alignment)
        at = len(self._bytes)
        self._bytes += content
        return at

    def packed(self) -> bytes:
        """Return the block."""
        return bytes(self._bytes)


def add_arguments(
    block: ParameterBlock, kernel: str, operands: Sequence[Operand], elements: Sequence[bytes]
) -> None:
    """Append the arguments in the order of the parameters; `elements` holds the structures of the arrays walked."""
    rest = iter(elements)
    for operand in operands:
        if operand.role.kind == "element":
            block.add(next(rest), 8)
        elif operand.role.kind == "raw":
            block.add(_raw_bytes(operand), 8)
        else:
            role = operand.role
            block.add(value_bytes(kernel, operand), 1 if role.is_structure else alignment_of(role.value))


def _raw_bytes(operand: Operand) -> bytes:
    view = operand.view
    assert view is not None
    shape, strides = view.shape or (1,), axes.strides_of(view) or (0,)
    return struct.pack(f"<Qq{2 * len(shape)}q", view.address, view.size, *shape, *strides)


def value_bytes(kernel: str, operand: Operand) -> bytes:
    """Return the bytes of an argument that is passed by value, as its parameter's dtype."""
    dtype, passed = operand.role.value, operand.passed
    parameter = Parameter(
        passed.parameter.name, CType("scalar", passed.parameter.ctype, dtype.itemsize, 0, dtype), 0
    )
    slot = Slot(kernel, passed.position, parameter)
    view = operand.view
    if view is not None and (view.dtype == dtype or dtype.names):
        return ctypes.string_at(view.address, dtype.itemsize)
    if isinstance(passed.value, np.void) and passed.value.dtype == dtype:
        return passed.value.tobytes()
    if dtype.names and not _dtypes.is_bfloat16(dtype):
        raise slot.wrong_type(passed.value, f"Pass a structured scalar or array of dtype {dtype}")
    value = passed.value
    if view is not None:
        value = np.frombuffer(ctypes.string_at(view.address, view.dtype.itemsize), view.dtype)[0]
    return scalar_bytes(slot, parameter.type, value)


def accesses_of(operands: Sequence[Operand]) -> tuple[Access, ...]:
    """Return the memory that a launch touches."""
    found = []
    for operand in operands:
        if operand.view is None or operand.role.kind == "scalar":
            continue
        low, high = operand.view.extent
        found.append(Access(operand.view.owner, low, high - low, operand.written))
    return tuple(found)


def run(
    loaded: LoadedProgram,
    kernel: str,
    configuration: LaunchConfig,
    packed: bytes,
    place: Place,
    stream: int,
    accesses: Sequence[Access],
) -> None:
    """Launch one kernel of a program."""
    function = loaded.function(kernel).function
    tracking.launch(place.target, place.device, kernel, function, configuration, packed, stream, accesses)
