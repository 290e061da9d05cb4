"""The road of a reduction where it is not that of an elementwise call: its walk, and up to two launches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from gridstride._arguments import axes
from gridstride._arguments.elementwise import operand_strides
from gridstride._arguments.place import Place
from gridstride._arguments.reduction import BoundFold, bind_reduction, plain_axes, plain_flag
from gridstride._array_pipeline import FinishedCall, Known, remember, run, signature
from gridstride._array_pipeline.launching import ParameterBlock, PreparedCall, load_explained, writers_of
from gridstride._array_pipeline.operands import Operand
from gridstride._array_pipeline.usual_folds import forms_of_text, is_short, refuse_usual, usual_walks
from gridstride._array_pipeline.walking import walk_of
from gridstride._compilation.functions import LoadedProgram, load_program, remember_refusal, was_refused
from gridstride._pipeline import view_arguments
from gridstride._source.recognized import keeps_places, may_ask_for
from gridstride._source.reduction import (
    FOLDING_SIZE,
    ReductionForm,
    ReductionSource,
    entry,
    folds_structures,
    joining_entry,
    reduction_form,
    reduction_program,
)
from gridstride.errors import CompileError
from gridstride.targets.walks import FoldLoop, FoldWalk, Walked, workspace_operand

Ints = tuple[int, ...]


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
    views = view_arguments(source.declaration.name, arguments, source.declaration.parameters)
    axis = plain_axes(source.declaration.name, axis)
    keepdims = plain_flag(source.declaration.name, keepdims)
    key = signature(arguments, views, (axis, keepdims, dtype))
    call = known.get(key) if key is not None else None
    if call is None:
        bound = bind_reduction(
            source.declaration, arguments, views, axis, keepdims, dtype, source.identity is not None
        )
        check_sizes(source, axes.elements(bound.result))
        call = remember(known, key, bound, axes.elements(bound.result))
    return run(source, prepare_fold, call, arguments, views, stream, form)


def prepare_fold(
    source: ReductionSource,
    bound: BoundFold,
    operands: Sequence[Operand],
    place: Place,
    came_again: bool = False,
) -> PreparedCall:
    """Return the launch of a reduction, and the one that joins its parts.

    Whether the call came again makes no difference: in which order a fold adds must not depend on earlier calls.
    """
    writers, limits = writers_of(place), place.target.limits(place.device)
    in_structures = folds_structures(source, [each.role for each in operands], bound.types.items())
    inputs = [k for k, each in enumerate(operands) if each.role.kind == "element" and not each.written]
    asks = may_ask_for(source, "i"), may_ask_for(source, "_J")
    walk = fold_walk(bound, operands, *asks)._replace(
        in_structures=in_structures,
        has_identity=source.identity is not None,
        keeps_places=in_structures and keeps_places(source, [operands[k].role for k in inputs]),
    )
    has_usual = writers.has_many_folds and is_short(source.sections().values())
    usual = usual_walks(walk, *asks) if has_usual else ()
    loop = writers.reduction(walk, limits)
    usual_loops = (writers.reduction(each, limits) for each in usual)
    loaded = _loaded(source, bound, operands, place, loop, in_structures, usual_loops)
    size = loaded.program.object_code.constants[FOLDING_SIZE]
    if loop.largest is not None and size > loop.largest:
        loop = writers.large_reduction(walk, limits, size)
        loaded = _loaded(source, bound, operands, place, loop, in_structures)
    block = ParameterBlock()
    block.add(loop.space, 8)
    block.add_operands(operands, range(len(operands)), loop.operands)
    text = loaded.program.program.text
    if loop.joining is None or loop.parts == 1:
        return PreparedCall(text, (block.step(loaded.program, loaded.kernel, loop.configuration),))
    first = block.step(loaded.program, loaded.kernel, loop.configuration, (loop.workspace_at,))
    block = ParameterBlock()
    block.add(loop.joined_space or loop.space, 8)
    block.add(loop.joining.space, 8)
    results = axes.elements(bound.result)
    workspace = block.add(workspace_operand(size, results, loop, loop.joining.capacity), 8)
    others = [k for k in range(len(operands)) if k not in inputs]
    block.add_operands(operands, others, loop.operands[len(inputs) :])
    second = block.step(
        loaded.program, loaded.joining, loop.joining.configuration, (loop.workspace_at, workspace)
    )
    return PreparedCall(text, (first, second), size * loop.parts * results)


class _Loaded(NamedTuple):
    """A program, and the names of a fold's functions in it: the one that folds, and the one that joins parts."""

    program: LoadedProgram
    kernel: str
    joining: str


def _loaded(
    source: ReductionSource,
    bound: BoundFold,
    operands: Sequence[Operand],
    place: Place,
    loop: FoldLoop,
    in_structures: bool,
    usual: Iterable[FoldLoop] = (),
) -> _Loaded:
    """Return the program of a fold, perhaps with those of usual loops."""
    target, roles = place.target, tuple(operand.role for operand in operands)

    def form_of(loop: FoldLoop) -> ReductionForm:
        return reduction_form(source, roles, bound.types.items(), loop, in_structures)

    form = form_of(loop)
    kernel = source, form.of_any_loop(), target.name, place.device
    known = forms_of_text(
        kernel, form, lambda: (each for each in map(form_of, usual) if each.widened == form.widened)
    )
    forms = tuple(each._replace(roles=roles) for each in known)  # of this kernel, not of an equal one
    try:
        loaded = _loaded_forms(source, bound, forms, place)
    except CompileError:
        if len(forms) == 1:
            raise
        forms = refuse_usual(kernel, form)
        loaded = _loaded_forms(source, bound, forms, place)
    name = source.declaration.name
    joining = joining_entry(name, forms, form) if form.joining else ""
    return _Loaded(loaded, entry(name, forms, form), joining)


def _loaded_forms(
    source: ReductionSource, bound: BoundFold, forms: tuple[ReductionForm, ...], place: Place
) -> LoadedProgram:
    """Return a program in which numbers are widened where the compiler takes it so."""
    target, device, refused = place.target, place.device, None
    if forms[0].widened:
        of_any_loop = reduction_program(source, (forms[0].of_any_loop(),), target.name)
        if not was_refused(target, device, of_any_loop):
            try:
                return load_program(target, device, reduction_program(source, forms, target.name))
            except CompileError:
                refused = of_any_loop
    plain = tuple(form._replace(widened=()) for form in forms)
    program = reduction_program(source, plain, target.name)
    loaded = load_explained(program, source.sections(), bound.types, place)
    if refused is not None:
        remember_refusal(target, device, refused)
    return loaded


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


def fold_walk(
    bound: BoundFold, operands: Sequence[Operand], has_numbers: bool = True, has_positions: bool = True
) -> FoldWalk:
    """Return the fewest axes that walk a fold: those that are kept and those that are folded apart.

    Where elements have no numbers, or no positions in the fold, these are all 0.
    """
    elements = [
        operand for operand in operands if operand.role.kind == "element" and operand.view is not None
    ]
    inputs = [operand for operand in elements if not operand.written]
    outputs = [operand for operand in elements if operand.written]
    kept = [axis for axis in range(len(bound.shape)) if axis not in bound.axes]
    return walk_of(
        bound.shape,
        bound.axes,
        [
            Walked(each.view.address, each.view.dtype.itemsize, operand_strides(each.view, bound.shape), ())
            for each in inputs
            if each.view is not None
        ],
        [
            Walked(each.view.address, each.view.dtype.itemsize, _kept_strides(each, bound, kept), (), True)
            for each in outputs
            if each.view is not None
        ],
        has_numbers,
        has_positions,
    )


def _kept_strides(operand: Operand, bound: BoundFold, kept: Sequence[int]) -> Ints:
    assert operand.view is not None
    strides = axes.strides_of(operand.view)
    return tuple(strides[axis] for axis in kept) if len(strides) == len(bound.shape) else strides
