"""The text of reductions: the user's expressions between a template's lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gridstride import _dtypes
from gridstride._arguments.parameters import Declaration, value_ctype
from gridstride._source.elementwise import (
    assigned_first,
    raw_type,
    section,
    shared_line,
    structure_line,
    template,
)
from gridstride._source.extremes import extreme_of, placed_extreme_of
from gridstride._source.types import DType, Role, layout_lines, needed_headers, type_lines
from gridstride._source.widening import widened, widened_line, widened_role
from gridstride._syntax.words import words
from gridstride.targets.base import Program
from gridstride.targets.options import parse_options
from gridstride.targets.walks import FoldLoop

#: What the object code tells about the workspace.
FOLDING_SIZE = "sizeof(gridstride_folding)"
#: In which sums lose what does not fit, in whatever order they are made.
_INTEGERS = frozenset(_dtypes.ctype_of_dtype(np.dtype(code)) for code in "bhilqBHILQ")


class ReductionSource(NamedTuple):
    """Hold what a user wrote.

    Attributes
    ----------
    declaration : Declaration
    map_expr, reduce_expr, post_map_expr : str
    identity : str or None
    reduce_type : str or None
    preamble, type_preamble : str
    options : tuple of str
    """

    declaration: Declaration
    map_expr: str
    reduce_expr: str
    post_map_expr: str
    identity: str | None = None
    reduce_type: str | None = None
    preamble: str = ""
    type_preamble: str = ""
    options: tuple[str, ...] = ()

    def sections(self) -> dict[str, str]:
        """Return the user's texts by the names that messages use."""
        name = self.declaration.name
        texts = {
            "map_expr": self.map_expr,
            "reduce_expr": self.reduce_expr,
            "post_map_expr": self.post_map_expr,
            "identity": self.identity or "",
            "preamble": self.preamble,
            "type_preamble": self.type_preamble,
        }
        return {f"{label} of {name}": text for label, text in texts.items()}


class ReductionForm(NamedTuple):
    """Say all that a text depends on besides what the user wrote.

    Attributes
    ----------
    roles : tuple of Role
    types : tuple of (placeholder, dtype)
    header, loop, shared : str
    capacity, threads : int
        Of the loop.
    joining, joining_shared, joining_threads
        Of the loop that joins parts; "" and 0 where there is one part.
    largest : int or None
        See `FoldLoop`; None for types that are never larger.
    tells_numberless : bool
        See `FoldLoop`.
    small_bytes : int
        See `FoldLoop`.
    tells_places : bool
        See `FoldLoop`; False where values are no structures.
    widened : tuple of str
        Placeholders, see `widened`.
    linked : tuple of str
        As in `Program`.
    finds_places : str
        See `FoldLoop`; "" where values are no structures.
    """

    roles: tuple[Role, ...]
    types: tuple[tuple[str, DType], ...]
    header: str
    loop: str
    shared: str
    capacity: int
    threads: int
    joining: str
    joining_shared: str
    joining_threads: int
    largest: int | None = None
    tells_numberless: bool = False
    small_bytes: int = 2
    tells_places: bool = False
    widened: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    finds_places: str = ""

    def of_any_loop(self) -> ReductionForm:
        """Return the same for all loops: whether a compiler takes a text is so."""
        return ReductionForm(self.roles, self.types, "", "", "", 0, 0, "", "", 0, widened=self.widened)


def reduction_form(
    source: ReductionSource,
    roles: tuple[Role, ...],
    types: Iterable[tuple[str, DType]],
    loop: FoldLoop,
    in_structures: bool,
) -> ReductionForm:
    """Return the form of a call's text; `in_structures` is what `folds_structures` says."""
    types = tuple(types)
    joining: tuple[str, str, int] = ("", "", 0)
    if loop.joining is not None:
        joining = (loop.joining.name, loop.joining.shared, loop.joining.configuration.threads)
    return ReductionForm(
        roles,
        types,
        loop.header,
        loop.name,
        loop.shared,
        loop.capacity,
        loop.configuration.threads,
        *joining,
        loop.largest if in_structures else None,
        loop.tells_numberless,
        loop.small_bytes,
        in_structures and loop.tells_places,
        _widened(source, roles, types, loop.widens) if in_structures else (),
        loop.linked,
        loop.finds_places if in_structures else "",
    )


def _widened(
    source: ReductionSource, roles: Sequence[Role], types: Sequence[tuple[str, DType]], kinds: str
) -> tuple[str, ...]:
    if source.options or source.identity or source.reduce_type in dict(types):
        return ()
    read = {role.parameter.ctype for role in roles if role.kind == "element"}
    declared = f"{source.type_preamble}\n{source.preamble}"
    folded = f"{source.map_expr}\n{source.reduce_expr}"
    small = [each for each in types if each[0] in read and _kind(each[1]) in kinds]
    return widened(declared, folded, source.post_map_expr, small)


def _kind(dtype: DType) -> str:
    return "f" if _dtypes.is_bfloat16(dtype) else dtype.kind


def folds_structures(
    source: ReductionSource, roles: Sequence[Role], types: Iterable[tuple[str, DType]]
) -> bool:
    """Return whether values are folded in a structure."""
    reduce_type = source.reduce_type
    if reduce_type is None:
        first = source.declaration.outputs[0]
        return next(role for role in roles if role.parameter is first).is_structure
    if reduce_type in _dtypes.SCALAR_NAMES or _dtypes.dtype_of_ctype(reduce_type) is not None:
        return False
    dtype = dict(types).get(reduce_type)
    return dtype is None or (dtype.names is not None and not _dtypes.is_bfloat16(dtype))


@lru_cache(maxsize=2048)
def reduction_program(source: ReductionSource, form: ReductionForm, target: str) -> Program:
    """Return the program of a call."""
    name = source.declaration.name
    outputs = {parameter.name for parameter in source.declaration.outputs}
    form = form._replace(roles=tuple(widened_role(role, form.widened, outputs) for role in form.roles))
    elements = [role for role in form.roles if role.kind == "element"]
    inputs = [role for role in elements if role.parameter.name not in outputs]
    results = [role for role in elements if role.parameter.name in outputs]
    post = _statement(source)
    common = {
        "name": entry(name),
        "structures": "\n".join(
            structure_line(role) for role in form.roles if role.kind == "scalar" and role.is_structure
        ),
        "operations": template("folding.cu").substitute(
            reduce_expr=section(f"reduce_expr of {name}", source.reduce_expr),
            outputs="".join(f", {role.ctype}& {role.parameter.name}" for role in results),
            post_map_expr=_post(source),
        ),
        "results": "".join(f", gridstride_at_{role.parameter.name}" for role in results),
        "identity": _identity(source),
        "handed": ", gridstride_exchange" if form.shared else "",
        "begin": "",
        "end": "",
    }
    if form.largest is not None:
        common["begin"] = (
            f"gridstride::where_small<gridstride_folding, {form.largest}>(gridstride_map, "
            f"[&](const auto& gridstride_map) {{ "
        )
        common["end"] = "; })"
    rest = [_parameter(role, outputs, form.capacity, post) for role in form.roles if role not in inputs]
    joining = ""
    if form.joining:
        space = f"gridstride::fold_space<{form.capacity}>"
        workspace = f"gridstride::folded<gridstride_folding, gridstride_folding, {form.capacity}>"
        own = [
            f"const {space} gridstride_space",
            f"const {space} gridstride_parts",
            f"const {workspace} gridstride_workspace",
        ]
        joining = template("joining.cu").substitute(
            common,
            shared=shared_line(form.joining_shared, "gridstride_folding"),
            threads=form.joining_threads,
            parameters=", ".join([*own, *rest]),
            loop=form.joining,
        )
    types = ", ".join(
        f"gridstride::folded<{role.stored_ctype}, {role.ctype}, {form.capacity}>" for role in inputs
    )
    reduce = _handed_reduce(source, form, inputs)
    text = template("reduction.cu").substitute(
        common,
        shared=shared_line(form.shared, f"gridstride_folding, {types}" if types else "gridstride_folding"),
        type_preamble=section(f"type_preamble of {name}", source.type_preamble),
        types="\n".join(
            (
                type_lines(each for each in form.types if each[0] not in form.widened),
                *(widened_line(*each) for each in form.types if each[0] in form.widened),
                layout_lines(form.roles),
            )
        ),
        reduce_type=_reduce_type(source, form),
        first_input=form.roles[0].ctype,
        first_output=source.declaration.outputs[0].ctype,
        preamble=section(f"preamble of {name}", source.preamble),
        has_identity="false" if not source.identity else "true",
        threads=form.threads,
        parameters=", ".join(
            [
                f"const gridstride::fold_space<{form.capacity}> gridstride_space",
                *(_parameter(role, outputs, form.capacity, post) for role in form.roles),
            ]
        ),
        elements="".join(f", {role.input_ctype} {role.parameter.name}" for role in inputs),
        map_expr=section(f"map_expr of {name}", source.map_expr),
        loop=form.loop,
        map=_handed_map(source, form),
        reduce=reduce,
        operands="".join(f", gridstride_at_{role.parameter.name}" for role in inputs),
        joining=joining,
    )
    dtypes = [dtype for role in form.roles for dtype in (role.stored, role.value)]
    whole = "\n".join((*source.sections().values(), source.reduce_type or "", text))
    includes = [form.header, *needed_headers(whole, dtypes)]
    if "placed_extreme" in reduce:
        includes.append("gridstride/placed_extremes.h")
    if "found_extreme" in reduce:
        includes.append(form.finds_places)
    if any(role.kind == "raw" for role in form.roles):
        includes.append("gridstride/raw_array.h")
    return Program(
        text=text,
        name=name,
        options=parse_options(source.options, target=target),
        kernels=(entry(name), f"{entry(name)}_joining") if joining else (entry(name),),
        constants=(FOLDING_SIZE,),
        includes=tuple(includes),
        path=f"{name}.cu",
        linked=form.linked,
    )


def entry(name: str) -> str:
    """Return the name of a reduction's function."""
    return f"{name}_reduction"


def assigns(text: str, names: Iterable[str]) -> bool:
    """Return whether an expression mentions one of the outputs, which it can only do to assign it."""
    return not words(text).isdisjoint(names)


def is_statement(text: str) -> bool:
    """Return whether a text is more than an expression."""
    return ";" in text or re.match(r"\s*(?:\{|(?:if|for|while|do|switch|return)\b)", text) is not None


def _statement(source: ReductionSource) -> str:
    """Return the post-map as a statement."""
    text, outputs = source.post_map_expr, [parameter.name for parameter in source.declaration.outputs]
    return text if is_statement(text) or assigns(text, outputs) else f"{outputs[0]} = {text}"


def _post(source: ReductionSource) -> str:
    name, text = source.declaration.name, source.post_map_expr
    label = f"post_map_expr of {name}"
    outputs = source.declaration.outputs
    if is_statement(text) or assigns(text, [parameter.name for parameter in outputs]):
        return section(label, text, ";")
    result = outputs[0]
    return f"{result.name} = gridstride::value_of<{result.ctype}>::from(\n{section(label, text)}\n);"


def _identity(source: ReductionSource) -> str:
    if not source.identity:
        return ""
    text = section(f"identity of {source.declaration.name}", source.identity)
    return f"gridstride::value_of<_type_reduce>::from(\n{text}\n)"


def _reduce_type(source: ReductionSource, form: ReductionForm) -> str:
    if source.reduce_type is not None:
        dtype = _dtypes.dtype_of_ctype(source.reduce_type)
        if source.reduce_type in _dtypes.SCALAR_NAMES:
            dtype = _dtypes.dtype_of_name(source.reduce_type)
        return source.reduce_type if dtype is None else value_ctype(dtype)
    first = source.declaration.outputs[0]
    value = next(role.value for role in form.roles if role.parameter is first)
    return first.ctype if value.names and not _dtypes.is_bfloat16(value) else _folded_ctype(value)


def _folded_ctype(dtype: DType) -> str:
    """Return the type in which values of a dtype are folded: float for those of two bytes."""
    name = _dtypes.name_of_dtype(dtype)
    return "float" if name in ("float16", "bfloat16") else _dtypes.ctype_of_dtype(dtype)


def _handed_map(source: ReductionSource, form: ReductionForm) -> str:
    """Return what a loop maps with: it is told where no text can ask for numbers of elements, also by a macro."""
    text = " ".join((source.map_expr, source.preamble, source.type_preamble, *source.options))
    may_ask = "##" in text or words(text) & {"i", "_J", "include"}
    if may_ask or not form.tells_numberless:
        return "gridstride_map"
    return "gridstride::as_numberless(gridstride_map)"


def _handed_reduce(source: ReductionSource, form: ReductionForm, inputs: Sequence[Role]) -> str:
    """Return what a loop folds with: it is told where it folds small integers as they are stored, or their places."""
    if len(inputs) != 1:
        return "gridstride_reduce"
    (only,) = inputs
    is_byte = only.stored.kind in "iu" and only.stored.itemsize == 1
    if (form.tells_places and is_byte) or (form.finds_places and _keeps_order(only, form)):
        return _reduce_with_places(source, only, bool(form.finds_places))
    is_small = (
        only.stored == only.value and only.stored.kind in "iu" and only.stored.itemsize <= form.small_bytes
    )
    if not is_small or source.map_expr.strip() != only.parameter.name:
        return "gridstride_reduce"
    reduce_type = _reduce_type(source, form)
    if "".join(source.reduce_expr.split()) in ("a+b", "b+a") and reduce_type in _INTEGERS:
        return "gridstride::as_integer_sum(gridstride_reduce)"
    if is_byte and reduce_type == _folded_ctype(only.stored):
        extreme = extreme_of(
            source.reduce_expr, " ".join((source.preamble, source.type_preamble, *source.options))
        )
        if extreme is not None:
            return f"gridstride::as_byte_extreme<{_flag(extreme == 'largest')}>(gridstride_reduce)"
    return "gridstride_reduce"


def _keeps_order(only: Role, form: ReductionForm) -> bool:
    """Return whether numbers compare in a text as they do where they are stored."""
    is_same = only.stored == only.value or only.parameter.ctype in form.widened
    return is_same and _kind(only.stored) in "iuf"


def _reduce_with_places(source: ReductionSource, only: Role, finds_places: bool) -> str:
    if source.type_preamble or source.options or source.identity or source.reduce_type is None:
        return "gridstride_reduce"
    kept = placed_extreme_of(
        source.preamble,
        source.map_expr,
        source.reduce_expr,
        only.parameter.name,
        only.parameter.ctype,
        source.reduce_type,
        only.stored.kind in "iu" and only.stored.itemsize <= 2,
    )
    if kept is None:
        return "gridstride_reduce"
    which = f"{_flag(kept.is_largest)}, {_flag(kept.is_first)}"
    if finds_places:
        return f"gridstride::as_found_extreme<{which}>(gridstride_reduce)"
    ranked = f"gridstride::ranked_bytes<{only.stored_ctype}, {which}>"
    return f"gridstride::as_placed_extreme<{ranked}, {only.ctype}>(gridstride_map, gridstride_reduce)"


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _parameter(role: Role, outputs: set[str], capacity: int, post: str) -> str:
    name = role.parameter.name
    if role.kind == "raw":
        return f"const {raw_type(role, outputs)} {name}"
    if role.kind == "scalar":
        return (
            f"const gridstride::bytes_of<{role.ctype}> gridstride_at_{name}"
            if role.is_structure
            else f"const {role.ctype} {name}"
        )
    kind = "folded"
    if name in outputs:
        kind = "output" if assigned_first(post, name) else "updated"
    return f"const gridstride::{kind}<{role.stored_ctype}, {role.ctype}, {capacity}> gridstride_at_{name}"
