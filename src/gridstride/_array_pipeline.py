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
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gridstride import _dtypes, arrays
from gridstride._arguments import axes
from gridstride._arguments.elementwise import Bound, Passed, bind_elementwise, operand_strides
from gridstride._arguments.parameters import Declaration, ParameterInfo
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
from gridstride.targets.base import Access, CType, Function, LaunchConfig, Parameter, Program
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


class Step(NamedTuple):
    """One launch of a prepared call: its bytes, in which addresses and numbers are still to be filled in.

    Attributes
    ----------
    kernel : str
    function : Function
    configuration : LaunchConfig
    packed : bytes
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
    """Hold the launches of a call for one place, dtypes, shapes and strides, and the bytes of its workspace."""

    steps: tuple[Step, ...]
    workspace: int = 0


class KnownCall(NamedTuple):
    """Hold what a call means, for all calls whose arguments have its dtypes, shapes and strides.

    Attributes
    ----------
    bound : Bound or BoundFold
        Without the arguments.
    roles : tuple of Role
    results : int
        How many elements the outputs have.
    prepared : dict
        By target, device and where arrays start between two words.
    """

    bound: Bound | BoundFold
    roles: tuple[Role, ...]
    results: int
    prepared: dict[Hashable, PreparedCall]


#: What a kernel keeps of its calls.
Known = dict[Hashable, KnownCall]
_MOST_KNOWN = 512
#: Loops tell apart where in so many bytes an array starts.
_WORD = 16


def run_elementwise(
    source: ElementwiseSource, known: Known, arguments: Sequence[Any], size: int | None, stream: Any
) -> tuple[Any, ...]:
    """Run an elementwise kernel; return its outputs.

    Raises
    ------
    TypeError, ValueError, OverflowError
        The call is wrong; nothing was launched and nothing written.
    CompileError, CUDAError, LaunchError, TargetUnavailable
        The world failed.
    """
    views = view_arguments(source.declaration.name, arguments)
    key = _signature(arguments, views, repr(size))
    call = known.get(key) if key is not None else None
    if call is None:
        bound = bind_elementwise(source.declaration, arguments, views, size)
        call = _remember(known, key, bound, axes.elements(bound.shape))
    return _run(source, call, arguments, views, stream)


def run_reduction(
    source: ReductionSource,
    known: Known,
    arguments: Sequence[Any],
    axis: Any,
    keepdims: bool,
    dtype: Any,
    stream: Any,
) -> tuple[Any, ...]:
    """Run a reduction; return its outputs. It raises what `run_elementwise` raises."""
    views = view_arguments(source.declaration.name, arguments)
    key = _signature(arguments, views, (repr(axis), bool(keepdims), dtype))
    call = known.get(key) if key is not None else None
    if call is None:
        bound = bind_reduction(
            source.declaration, arguments, views, axis, keepdims, dtype, source.identity is not None
        )
        check_sizes(source, axes.elements(bound.result))
        call = _remember(known, key, bound, axes.elements(bound.result))
    return _run(source, call, arguments, views, stream)


def _run(
    source: ElementwiseSource | ReductionSource,
    call: KnownCall,
    arguments: Sequence[Any],
    views: Sequence[ArrayView | None],
    stream: Any,
) -> tuple[Any, ...]:
    name = source.declaration.name
    place = place_of(name, views)
    with on_device(place.target, place.device):
        handle = resolve_stream(views, stream, place.target, place.device)
        made = make_outputs(name, views, arguments, call.bound.made, place, handle)
        if call.results:
            given = operands_of(source.declaration, call.roles, arguments, views, made)
            operands = separated(name, given, call.bound, place, handle)
            if operands is given:
                starts = tuple(
                    operand.view.address % _WORD for operand in operands if operand.view is not None
                )
                key = place.target.name, place.device, starts
                prepared = call.prepared.get(key)
                if prepared is None:
                    if len(call.prepared) >= _MOST_KNOWN:
                        call.prepared.clear()
                    prepared = call.prepared[key] = _prepare(source, call.bound, operands, place)
            else:
                prepared = _prepare(source, call.bound, operands, place)
            execute(name, prepared, operands, place, handle)
    if made:
        return tuple(each.handed_over() for each in made)
    return tuple(arguments[source.declaration.nin :])


def _signature(arguments: Sequence[Any], views: Sequence[ArrayView | None], rest: Any) -> Hashable | None:
    """Return what the meaning of a call depends on; None where calls like it are not kept."""
    found: list[Hashable] = [rest]
    for argument, view in zip(arguments, views, strict=True):
        if view is None:
            found.append((type(argument), argument.dtype if isinstance(argument, np.generic) else None))
        elif view.lazy:
            return None
        else:
            found.append((view.dtype, view.shape, view.strides, view.device_type, view.read_only))
    try:
        hash(key := tuple(found))
    except TypeError:
        return None
    return key


def _remember(known: Known, key: Hashable | None, bound: Bound | BoundFold, results: int) -> KnownCall:
    call = KnownCall(bound._replace(arguments=()), roles_of(bound), results, {})
    if key is not None:
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known[key] = call
    return call


def _prepare(
    source: ElementwiseSource | ReductionSource,
    bound: Bound | BoundFold,
    operands: Sequence[Operand],
    place: Place,
) -> PreparedCall:
    if isinstance(source, ReductionSource):
        assert isinstance(bound, BoundFold)
        return prepare_fold(source, bound, operands, place)
    assert isinstance(bound, Bound)
    return prepare_elements(source, bound, operands, place)


def execute(
    kernel: str, prepared: PreparedCall, operands: Sequence[Operand], place: Place, stream: int
) -> None:
    """Fill addresses and numbers in, and launch."""
    accesses = accesses_of(operands)
    workspace = 0
    if prepared.workspace:
        memory = _workspace(kernel, operands, prepared.workspace, place, stream)
        workspace = memory.address
        accesses = (*accesses, Access(memory.owner, memory.address, memory.nbytes, True))
    for step in prepared.steps:
        packed = bytearray(step.packed)
        for at, position in step.addresses:
            view = operands[position].view
            assert view is not None
            packed[at : at + 8] = view.address.to_bytes(8, "little")
        for at, position in step.numbers:
            content = value_bytes(kernel, operands[position])
            packed[at : at + len(content)] = content
        for at in step.workspace:
            packed[at : at + 8] = workspace.to_bytes(8, "little")
        tracking.launch(
            place.target, place.device, step.kernel, step.function, step.configuration, bytes(packed), stream,
            accesses,
        )  # fmt: skip


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


def roles_of(bound: Bound | BoundFold) -> tuple[Role, ...]:
    """Return how each parameter enters the text."""
    roles = [
        _role(passed.parameter, passed.view, value, passed.by_value)
        for passed, value in zip(bound.arguments, bound.dtypes, strict=False)
    ]
    made = zip(bound.declaration.parameters[len(roles) :], bound.dtypes[len(roles) :], strict=True)
    # An output that is made is C-contiguous and has its parameter's dtype.
    return (
        *roles,
        *(
            Role(
                parameter,
                "raw" if parameter.raw else "element",
                dtype,
                dtype,
                len(shape) if parameter.raw else 0,
            )
            for (parameter, dtype), (_, shape) in zip(made, bound.made, strict=True)
        ),
    )


def _role(parameter: ParameterInfo, view: ArrayView | None, value: DType, by_value: bool) -> Role:
    if by_value:
        return Role(parameter, "scalar", value, value)
    assert view is not None
    if parameter.raw:
        return Role(parameter, "raw", view.dtype, value, len(view.shape), view.c_contiguous)
    return Role(parameter, "element", view.dtype, value)


def operands_of(
    declaration: Declaration,
    roles: Sequence[Role],
    arguments: Sequence[Any],
    views: Sequence[ArrayView | None],
    made: Sequence[Made],
) -> tuple[Operand, ...]:
    """Return the operands of a call in the order of the parameters."""
    nin = declaration.nin
    operands = []
    for position, (role, value, view) in enumerate(zip(roles, arguments, views, strict=False)):
        is_output = position >= nin
        passed = Passed(role.parameter, position, value, view, is_output)
        shown = view if view is None or not view.lazy else arrays.resolved(view)
        operands.append(Operand(role, passed, shown, is_output))
    for position, each in enumerate(made, nin):
        passed = Passed(roles[position].parameter, position, each.array, each.view, True)
        operands.append(Operand(roles[position], passed, each.view, True))
    return tuple(operands)


def separated(
    kernel: str, operands: tuple[Operand, ...], bound: Bound | BoundFold, place: Place, stream: int
) -> tuple[Operand, ...]:
    """Return the operands with copies in place of inputs that overlap an output otherwise than element for element.

    They are the same object where nothing overlaps so. An input of a reduction may not overlap an output at all.

    Raises
    ------
    ValueError
        Where two outputs overlap.
    """
    walked = [each for each in operands if each.role.kind == "element" and each.view is not None]
    spans = [each.view.extent for each in walked if each.view is not None]
    outputs = [each for each in walked if each.written]
    if not _any_meet(walked, spans):
        return operands
    for k, first in enumerate(outputs):
        for second in outputs[k + 1 :]:
            assert first.view is not None
            assert second.view is not None
            if axes.may_share(first.view, second.view):
                names = f"{first.role.parameter.name!r} and {second.role.parameter.name!r}"
                raise ValueError(f"`{kernel}`: outputs {names} share memory: pass arrays that lie apart")
    shape = bound.shape if isinstance(bound, Bound) else None
    copied = [_needs_copy(each, outputs, shape) for each in operands]
    if not any(copied):
        return operands
    return tuple(
        each._replace(view=_copied(kernel, each, place, stream)) if needed else each
        for each, needed in zip(operands, copied, strict=True)
    )


def _any_meet(operands: Sequence[Operand], spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether the stretch of memory of an output meets that of another operand."""
    for k, (operand, (low, high)) in enumerate(zip(operands, spans, strict=True)):
        if operand.written and any(
            low < other_high and other_low < high for j, (other_low, other_high) in enumerate(spans) if j != k
        ):
            return True
    return False


def _needs_copy(operand: Operand, outputs: Sequence[Operand], shape: Ints | None) -> bool:
    view = operand.view
    if operand.written or view is None or operand.role.kind != "element":
        return False
    for output in outputs:
        assert output.view is not None
        same = (
            shape is not None
            and view.address == output.view.address
            and view.dtype.itemsize == output.view.dtype.itemsize
            and operand_strides(view, shape) == operand_strides(output.view, shape)
        )
        if not same and axes.may_share(view, output.view):
            return True
    return False


def _copied(kernel: str, operand: Operand, place: Place, stream: int) -> ArrayView:
    """Return a C-contiguous copy of an array, made in stream order."""
    view = operand.view
    assert view is not None
    (made,) = make_outputs(kernel, [view], [operand.passed.value], [(view.dtype, view.shape)], place, stream)
    source = copy_source()
    parameter, target = source.declaration.parameters
    given = Passed(parameter, 0, operand.passed.value, view, False)
    taken = Passed(target, 1, made.array, made.view, True)
    operands = (
        Operand(Role(parameter, "element", view.dtype, view.dtype), given, view, False),
        Operand(Role(target, "element", view.dtype, view.dtype), taken, made.view, True),
    )
    bound = Bound(source.declaration, (), (view.dtype,) * 2, {"T": view.dtype}, view.shape, ())
    execute(kernel, prepare_elements(source, bound, operands, place), operands, place, stream)
    return made.view


# ---- walk, size, specialize, compile, launch ----


def prepare_elements(
    source: ElementwiseSource, bound: Bound, operands: Sequence[Operand], place: Place
) -> PreparedCall:
    """Return the launch of an elementwise call."""
    name = source.declaration.name
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
    block.add_operands(operands, range(len(operands)), loop.operands)
    return PreparedCall((block.step(loaded, entry(name), loop.configuration),))


def prepare_fold(
    source: ReductionSource, bound: BoundFold, operands: Sequence[Operand], place: Place
) -> PreparedCall:
    """Return the launch of a reduction, and the one that joins its parts."""
    target, name = place.target, reduction_entry(source.declaration.name)
    loop = writers_of(place).reduction(fold_walk(bound, operands), target.limits(place.device))
    roles = tuple(operand.role for operand in operands)
    form = reduction_form(roles, bound.types.items(), loop)
    program = reduction_program(source, form, target.name)
    loaded = load_explained(program, source.sections(), bound.types, place)
    block = ParameterBlock()
    block.add(loop.space, 8)
    block.add_operands(operands, range(len(operands)), loop.operands)
    if loop.joining is None:
        return PreparedCall((block.step(loaded, name, loop.configuration),))
    size = loaded.object_code.constants[FOLDING_SIZE]
    first = block.step(loaded, name, loop.configuration, (loop.workspace_at,))
    block = ParameterBlock()
    block.add(loop.space, 8)
    block.add(loop.joining.space, 8)
    workspace = block.add(workspace_operand(0, size, loop.parts, loop.joining.capacity), 8)
    inputs = [k for k, each in enumerate(operands) if each.role.kind == "element" and not each.written]
    others = [k for k in range(len(operands)) if k not in inputs]
    block.add_operands(operands, others, loop.operands[len(inputs) :])
    second = block.step(loaded, f"{name}_joining", loop.joining.configuration, (loop.workspace_at, workspace))
    return PreparedCall((first, second), size * loop.parts * axes.elements(bound.result))


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
                self._addresses.append((self.add(content, 8), position))

    def step(
        self, loaded: LoadedProgram, kernel: str, configuration: LaunchConfig, workspace: tuple[int, ...] = ()
    ) -> Step:
        """Return the launch of a kernel with the block."""
        function = loaded.function(kernel).function
        return Step(
            kernel, function, configuration, bytes(self._bytes), tuple(self._addresses), tuple(self._numbers), workspace
        )  # fmt: skip


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
