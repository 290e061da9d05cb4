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

import re
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gridstride._arguments import axes
from gridstride._arguments.elementwise import Bound, bind_elementwise
from gridstride._arguments.place import Place, place_of
from gridstride._arguments.reduction import BoundFold, bind_reduction
from gridstride._array_pipeline.finished import FinishedCall
from gridstride._array_pipeline.launching import PreparedCall, execute, prepare_elements, prepare_fold
from gridstride._array_pipeline.operands import Operand, make_outputs, operands_of, roles_of
from gridstride._array_pipeline.overlap import separated
from gridstride._pipeline import view_arguments
from gridstride._runtime.current import on_device
from gridstride._runtime.launch_stream import resolve_stream
from gridstride._source.elementwise import ElementwiseSource
from gridstride._source.reduction import ReductionSource
from gridstride._source.types import Role
from gridstride.arrays.view import ArrayView

__all__ = ["FinishedCall", "Known", "KnownCall", "run_elementwise", "run_reduction"]


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
    views = view_arguments(source.declaration.name, arguments)
    key = _signature(arguments, views, repr(size))
    call = known.get(key) if key is not None else None
    if call is None:
        bound = bind_elementwise(source.declaration, arguments, views, size)
        call = _remember(known, key, bound, axes.elements(bound.shape))
    return _run(source, call, arguments, views, stream, form)


def run_reduction(
    source: ReductionSource,
    known: Known,
    arguments: Sequence[Any],
    axis: Any,
    keepdims: bool,
    dtype: Any,
    stream: Any,
    form: int,
) -> FinishedCall:
    """Run a reduction. It raises what `run_elementwise` raises."""
    views = view_arguments(source.declaration.name, arguments)
    key = _signature(arguments, views, (repr(axis), bool(keepdims), dtype))
    call = known.get(key) if key is not None else None
    if call is None:
        bound = bind_reduction(
            source.declaration, arguments, views, axis, keepdims, dtype, source.identity is not None
        )
        check_sizes(source, axes.elements(bound.result))
        call = _remember(known, key, bound, axes.elements(bound.result))
    return _run(source, call, arguments, views, stream, form)


def _run(
    source: ElementwiseSource | ReductionSource,
    call: KnownCall,
    arguments: Sequence[Any],
    views: Sequence[ArrayView | None],
    stream: Any,
    form: int,
) -> FinishedCall:
    name = source.declaration.name
    place = place_of(name, views)
    with on_device(place.target, place.device):
        handle = resolve_stream(views, stream, place.target, place.device)
        made = make_outputs(name, views, arguments, call.bound.made, place, handle)
        outputs = tuple(each.handed_over() for each in made) or tuple(arguments[source.declaration.nin :])
        if not call.results:
            return FinishedCall(outputs, form, call.bound, place, handle)
        given = operands_of(source.declaration, call.roles, arguments, views, made)
        operands = separated(name, given, call.bound, place, handle)
        if operands is not given:
            execute(name, _prepare(source, call.bound, operands, place), operands, place, handle)
            return FinishedCall(outputs, form, call.bound, place, handle)
        prepared = _prepared(source, call, operands, place)
        launched = execute(name, prepared, operands, place, handle)
    return FinishedCall(outputs, form, call.bound, place, handle, operands, prepared, launched)


def _prepared(
    source: ElementwiseSource | ReductionSource, call: KnownCall, operands: Sequence[Operand], place: Place
) -> PreparedCall:
    starts = tuple(operand.view.address % _WORD for operand in operands if operand.view is not None)
    key = place.target.name, place.device, starts
    prepared = call.prepared.get(key)
    if prepared is None:
        if len(call.prepared) >= _MOST_KNOWN:
            call.prepared.clear()
        prepared = call.prepared[key] = _prepare(source, call.bound, operands, place)
    return prepared


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
