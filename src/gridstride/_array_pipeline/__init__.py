"""THE OTHER MAP: the road of an elementwise call or a reduction, from arrays to the launch.

view        arrays          look at each argument
bind        _arguments      arity, dtypes, broadcasting, outputs (pure)
place       _arguments      the target and device that the arguments decide
allocate    arrays          the outputs, in the caller's library, on the stream of the launch
separate    _arguments      inputs that overlap an output otherwise than element for element
align       targets         arrays whose elements lie where the device does not reach them
walk        _arguments      the fewest axes, in the order in which memory is walked
size        targets         loop and launch configuration, from the device's limits
specialize  _source         one CUDA C++ text for these dtypes and this loop
compile     _compilation    find the function in the caches, or compile and load it
launch      targets         run on the stream, hand back the caller's arrays
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gridstride import config
from gridstride._arguments import axes
from gridstride._arguments.elementwise import Bound, bind_elementwise
from gridstride._arguments.place import Place, place_of
from gridstride._array_pipeline.alignment import aligned, hand_back
from gridstride._array_pipeline.finished import FinishedCall
from gridstride._array_pipeline.launching import PreparedCall, execute, prepare_elements
from gridstride._array_pipeline.operands import Operand, handed_over, make_outputs, operands_of, roles_of
from gridstride._array_pipeline.overlap import separated
from gridstride._pipeline import view_arguments
from gridstride._runtime.current import on_device
from gridstride._runtime.launch_stream import resolve_stream
from gridstride._source.elementwise import ElementwiseSource
from gridstride._source.types import Role
from gridstride.arrays.view import ArrayView

if TYPE_CHECKING:
    from gridstride._arguments.reduction import BoundFold
    from gridstride._source.reduction import ReductionSource

__all__ = ["FinishedCall", "Known", "KnownCall", "remember", "run", "run_elementwise", "signature"]


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
        By target, device, how many multiprocessors it has, and where arrays start between two words.
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
    source: ElementwiseSource,
    known: Known,
    arguments: Sequence[Any],
    size: int | None,
    stream: Any,
    form: int,
) -> FinishedCall:
    """Run an elementwise kernel; `form` says what the call returns (see `FinishedCall`).

    Raises
    ------
    TypeError, ValueError, OverflowError
        The call is wrong; nothing was launched and nothing written.
    CompileError, CUDAError, LaunchError, TargetUnavailable
        The world failed.
    """
    views = view_arguments(source.declaration.name, arguments, source.declaration.parameters)
    key = signature(arguments, views, (type(size), repr(size)))
    call = known.get(key) if key is not None else None
    if call is None:
        bound = bind_elementwise(source.declaration, arguments, views, size)
        call = remember(known, key, bound, axes.elements(bound.shape))
    return run(source, prepare_elements, call, arguments, views, stream, form)


def run(
    source: ElementwiseSource | ReductionSource,
    prepare: Callable[..., PreparedCall],
    call: KnownCall,
    arguments: Sequence[Any],
    views: Sequence[ArrayView | None],
    stream: Any,
    form: int,
) -> FinishedCall:
    """Make a call whose meaning is known."""
    name = source.declaration.name
    place = place_of(name, views)
    with on_device(place.target, place.device):
        handle = resolve_stream(views, stream, place.target, place.device)
        made = make_outputs(name, views, arguments, call.bound.made, place, handle)

        def finished(*how: Any) -> FinishedCall:
            outputs = handed_over(made, place, handle) or tuple(arguments[source.declaration.nin :])
            return FinishedCall(outputs, form, call.bound, place, handle, *how)

        if not call.results:
            return finished()
        given = operands_of(source.declaration, call.roles, arguments, views, made)
        apart = separated(name, given, call.bound, place, handle)
        operands = aligned(name, apart, place, handle)
        if config.debug() and not isinstance(call.bound, Bound):
            _check_rules(source, call.bound, operands, place, handle)
        if operands is not given:
            # Such calls are not kept, so nobody knows whether they come again.
            execute(name, prepare(source, call.bound, operands, place, True), operands, place, handle)
            hand_back(name, apart, operands, place, handle)
            return finished()
        prepared = _prepared(source, prepare, call, operands, place, handle)
        launched = execute(name, prepared, operands, place, handle)
        return finished(operands, prepared, launched)


def _check_rules(source: Any, *rest: Any) -> None:
    from gridstride._array_pipeline.checking import check_rules

    check_rules(source, *rest)


def _prepared(
    source: ElementwiseSource | ReductionSource,
    prepare: Callable[..., PreparedCall],
    call: KnownCall,
    operands: Sequence[Operand],
    place: Place,
    stream: int,
) -> PreparedCall:
    starts = tuple(operand.view.address % _WORD for operand in operands if operand.view is not None)
    # Of the limits, the number of threads on a host can change.
    key = place.target.name, place.device, place.target.limits(place.device).multiprocessors, starts
    prepared = call.prepared.get(key)
    if prepared is None:
        if len(call.prepared) >= _MOST_KNOWN:
            call.prepared.clear()
        prepared = call.prepared[key] = prepare(source, call.bound, operands, place)
    elif not prepared.is_final and not place.target.capture_of(stream):
        prepared = call.prepared[key] = prepare(source, call.bound, operands, place, True)
    return prepared


def signature(arguments: Sequence[Any], views: Sequence[ArrayView | None], rest: Any) -> Hashable | None:
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


def remember(known: Known, key: Hashable | None, bound: Bound | BoundFold, results: int) -> KnownCall:
    """Keep what a call means under its signature."""
    call = KnownCall(bound._replace(arguments=()), roles_of(bound), results, {})
    if key is not None:
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known[key] = call
    return call
