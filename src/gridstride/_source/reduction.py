"""The text of reductions: the user's expressions between a template's lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from gridstride import _dtypes, config
from gridstride._arguments.parameters import Declaration, value_ctype
from gridstride._source.elementwise import (
    checks_indices,
    name_lines,
    raw_type,
    section,
    shared_line,
    structure_line,
    structure_of_output,
    template,
)
from gridstride._source.macros import apart_from_macros, declared_words
from gridstride._source.recognized import handed_map, handed_reduce
from gridstride._source.reduction_expressions import IS_MADE, identity_lines, post_lines, statement_of
from gridstride._source.types import (
    DType,
    Role,
    folded_ctype,
    kind_of,
    layout_lines,
    needed_headers,
    type_lines,
)
from gridstride._source.widening import widened, widened_line, widened_role
from gridstride._syntax.words import words
from gridstride.targets.base import Program
from gridstride.targets.options import parse_options
from gridstride.targets.walks import FoldLoop, flag

#: What the object code tells about the workspace.
FOLDING_SIZE = "sizeof(gridstride_folding)"


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
            "reduce_type": self.reduce_type or "",
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
    exact_bytes : int
        See `FoldLoop`.
    joins_flags : bool
        See `FoldLoop`.
    checks_indices : bool
        Whether raw arrays check their indices.
    folds_parts_alone : bool
        Whether what the loop folds are parts in any case.
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
    exact_bytes: int = 0
    joins_flags: bool = False
    checks_indices: bool = False
    folds_parts_alone: bool = False

    def without_joining(self) -> ReductionForm:
        """Return what its first function depends on."""
        return self._replace(joining="", joining_shared="", joining_threads=0)

    def of_joining(self) -> tuple[str, str, int, int]:
        """Return what the function that joins parts depends on besides; its name is "" where there is none."""
        return self.joining, self.joining_shared, self.joining_threads, self.capacity

    def of_any_loop(self) -> ReductionForm:
        """Return the same for all loops: whether a compiler takes a text is so."""
        return ReductionForm(
            self.roles, self.types, "", "", "", 0, 0, "", "", 0,
            widened=self.widened, checks_indices=self.checks_indices,
        )  # fmt: skip


def reduction_form(
    source: ReductionSource,
    roles: tuple[Role, ...],
    types: Iterable[tuple[str, DType]],
    loop: FoldLoop,
    in_structures: bool,
) -> ReductionForm:
    """Return the form of a call's text; `in_structures` is what `folds_structures` says."""
    types, joining = tuple(types), loop.joining
    form = ReductionForm(
        roles=roles,
        types=types,
        header=loop.header,
        loop=loop.name,
        shared=loop.shared,
        capacity=loop.capacity,
        threads=loop.configuration.threads,
        joining="" if joining is None else joining.name,
        joining_shared="" if joining is None else joining.shared,
        joining_threads=0 if joining is None else joining.configuration.threads,
        tells_numberless=loop.tells_numberless,
        small_bytes=loop.small_bytes,
        linked=loop.linked,
        exact_bytes=loop.exact_bytes,
        joins_flags=loop.joins_flags,
        checks_indices=config.debug(),
        folds_parts_alone=bool(loop.joined_space),
    )
    if not in_structures:
        return form
    return form._replace(
        largest=loop.largest,
        tells_places=loop.tells_places,
        widened=_widened(source, roles, types, loop.widens),
        finds_places=loop.finds_places,
    )


def _widened(
    source: ReductionSource, roles: Sequence[Role], types: Sequence[tuple[str, DType]], kinds: str
) -> tuple[str, ...]:
    if source.options or source.identity or source.reduce_type in dict(types):
        return ()
    read = {role.parameter.ctype for role in roles if role.kind == "element"}
    declared = f"{source.type_preamble}\n{source.preamble}"
    folded = f"{source.map_expr}\n{source.reduce_expr}"
    small = [each for each in types if each[0] in read and kind_of(each[1]) in kinds]
    return widened(declared, folded, source.post_map_expr, small)


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
def reduction_program(source: ReductionSource, forms: tuple[ReductionForm, ...], target: str) -> Program:
    """Return the program of a call, or of several whose forms have other loops alone."""
    name = source.declaration.name
    texts = [_Text(source, form) for form in forms]
    functions: dict[str, str] = {}
    for form, each in zip(forms, texts, strict=True):
        if (kernel := entry(name, forms, form)) not in functions:
            functions[kernel] = each.folding(kernel)
        if form.joining and (kernel := joining_entry(name, forms, form)) not in functions:
            functions[kernel] = each.joining(kernel)
    first = texts[0]
    text = "\n".join((first.types(), *functions.values()))
    whole = "\n".join((*source.sections().values(), source.reduce_type or "", text))
    dtypes = [dtype for role in first.roles for dtype in (role.stored, role.value)]
    checks_indices = forms[0].checks_indices
    options = parse_options(source.options, target=target, kernel=name, checks_indices=checks_indices)
    declared = declared_words(source.declaration, source.reduce_type or "")
    headers = [header for each in texts for header in each.headers()]
    return Program(
        text=apart_from_macros(text, source.sections(), options, declared),
        name=name,
        options=options,
        kernels=tuple(functions),
        constants=(FOLDING_SIZE,),
        includes=tuple(
            dict.fromkeys((*(form.header for form in forms), *needed_headers(whole, dtypes), *headers))
        ),
        path=f"{name}.cu",
        linked=tuple(dict.fromkeys(each for form in forms for each in form.linked)),
        is_signed=False,
    )


class _Text:
    """Fill the holes of the templates.

    Attributes
    ----------
    roles : tuple of Role
    """

    def __init__(self, source: ReductionSource, form: ReductionForm) -> None:
        self._outputs = {parameter.name for parameter in source.declaration.outputs}
        self.roles = tuple(widened_role(role, form.widened, self._outputs) for role in form.roles)
        self._source, self._form = source, form._replace(roles=self.roles)
        elements = [role for role in self.roles if role.kind == "element"]
        self._inputs = [role for role in elements if role.parameter.name not in self._outputs]
        self._results = [role for role in elements if role.parameter.name in self._outputs]
        self._reduce_type = _reduce_type(source, self._form)
        self._reduce = handed_reduce(source, self._form, self._inputs, self._reduce_type)

    def headers(self) -> Iterator[str]:
        """Yield what the text needs besides the loop's header and those of dtypes."""
        if "placed_extreme" in self._reduce:
            yield "gridstride/placed_extremes.h"
        if "found_extreme" in self._reduce:
            yield self._form.finds_places
        if any(role.kind == "raw" for role in self.roles):
            yield "gridstride/raw_array.h"
        if any(role.is_declared for role in self.roles):
            yield "gridstride/declared_types.h"

    def types(self) -> str:
        """Return what functions need, the same for all loops."""
        source, name = self._source, self._source.declaration.name
        names = [name_lines(name, self.roles)] if checks_indices(source, self._form) else []
        return template("reduction_types.cu").substitute(
            type_preamble=section(f"type_preamble of {name}", source.type_preamble),
            types="\n".join((self._type_lines(), *self._raw_types(of_preamble=False))),
            reduce_type=self._reduce_type_line(),
            preamble=section(f"preamble of {name}", source.preamble),
            layouts="\n".join((layout_lines(self.roles), *self._raw_types(of_preamble=True), *names)),
            has_identity=flag(bool(source.identity)),
        )

    def folding(self, kernel: str) -> str:
        """Return the function that folds."""
        source, form, name = self._source, self._form, self._source.declaration.name
        common, capacity = self._common(), self._form.capacity
        types = [
            f"gridstride::folded<{role.stored_ctype}, {role.ctype}, {capacity}>" for role in self._inputs
        ]
        return template("reduction.cu").substitute(
            common,
            name=kernel,
            shared=shared_line(form.shared, ", ".join(["gridstride_folding", *types])),
            threads=form.threads,
            parameters=self._parameters(["gridstride_space"], self.roles),
            # By value: where a loop stores something, a compiler loads again what is known by reference.
            numbers="".join(f", {role.parameter.name}" for role in self.roles if is_number(role)),
            elements="".join(f", {role.input_ctype} {role.parameter.name}" for role in self._inputs),
            map_expr=section(f"map_expr of {name}", source.map_expr),
            loop=form.loop,
            map=handed_map(source, form),
            reduce=self._reduce,
            operands="".join(f", gridstride_at_{role.parameter.name}" for role in self._inputs),
            finish=template("keeping.cu" if form.folds_parts_alone else "finishing.cu").substitute(common),
        )

    def joining(self, kernel: str) -> str:
        """Return the function that joins parts."""
        form, capacity = self._form, self._form.capacity
        workspace = f"const gridstride::folded<gridstride_folding, gridstride_folding, {capacity}> gridstride_workspace"
        others = [role for role in self.roles if role not in self._inputs]
        return template("joining.cu").substitute(
            self._common(),
            name=kernel,
            shared=shared_line(form.joining_shared, "gridstride_folding"),
            threads=form.joining_threads,
            parameters=self._parameters(["gridstride_space", "gridstride_parts"], others, workspace),
            loop=form.joining,
        )

    def _common(self) -> dict[str, str]:
        """Return what stands in both functions."""
        source, form, name = self._source, self._form, self._source.declaration.name
        begin, end = "", ""
        if form.largest is not None:
            begin = (
                f"gridstride::where_small<gridstride_folding, {form.largest}>(gridstride_map, "
                f"[&](const auto& gridstride_map) {{ "
            )
            end = "; })"
        structures = [role for role in self.roles if role.kind == "scalar" and role.is_structure]
        return {
            "structures": "\n".join(map(structure_line, structures)),
            "operations": template("folding.cu").substitute(
                reduce_expr=section(f"reduce_expr of {name}", source.reduce_expr),
                outputs="".join(f", {role.ctype}& {role.parameter.name}" for role in self._results),
                post_map_expr=post_lines(source),
            ),
            "results": "".join(f", gridstride_at_{role.parameter.name}" for role in self._results),
            "identity": identity_lines(source, self._reduce_type),
            "handed": ", gridstride_exchange" if form.shared else "",
            "begin": begin,
            "end": end,
        }

    def _type_lines(self) -> str:
        """Return the lines that say what placeholders stand for, and what structures look like."""
        widened_types = self._form.widened
        plain = type_lines(each for each in self._form.types if each[0] not in widened_types)
        wide = [widened_line(*each) for each in self._form.types if each[0] in widened_types]
        return "\n".join((plain, *wide))

    def _reduce_type_line(self) -> str:
        """Return the line that names the type in which values are folded."""
        name = self._source.declaration.name
        is_own = self._reduce_type == self._source.reduce_type
        if not is_own:
            return f"typedef {self._reduce_type} _type_reduce;"
        label = f"reduce_type of {name}"
        return f"typedef \n{section(label, self._reduce_type)}\n _type_reduce;\n{section(label, IS_MADE)}"

    def _raw_types(self, of_preamble: bool) -> Iterator[str]:
        """Yield the lines that name the types of the first input and output, which preambles may use or declare."""
        known = words(self._source.type_preamble)
        for name, role in (("out", self._results[0]), ("in", self.roles[0])):
            if of_preamble == (role.is_declared and words(role.ctype).isdisjoint(known)):
                yield f"typedef {role.ctype} type_{name}0_raw;"

    def _parameters(self, spaces: Iterable[str], roles: Iterable[Role], *own: str) -> str:
        """Return the list of parameters: spaces first, then the function's own."""
        declared = [f"const gridstride::fold_space<{self._form.capacity}> {space}" for space in spaces]
        return ", ".join([*declared, *own, *map(self._parameter, roles)])

    def _parameter(self, role: Role) -> str:
        name, source = role.parameter.name, self._source
        if role.kind == "raw":
            return f"const {raw_type(role, self._outputs, checks_indices(source, self._form))} {name}"
        if role.kind == "scalar":
            return (
                f"const gridstride::bytes_of<{role.ctype}> gridstride_at_{name}"
                if role.is_structure
                else f"const {role.ctype} {name}"
            )
        kind = "folded"
        if name in self._outputs:
            kind = structure_of_output(role, statement_of(source), source)
        types = f"{role.stored_ctype}, {role.ctype}, {self._form.capacity}"
        return f"const gridstride::{kind}<{types}> gridstride_at_{name}"


def is_number(role: Role) -> bool:
    """Return whether a number is passed by value."""
    return role.kind == "scalar" and not role.is_structure


def entry(name: str, forms: Sequence[ReductionForm] = (), form: ReductionForm | None = None) -> str:
    """Return the name of a reduction's function, that of a form among several."""
    if form is None:
        return f"{name}_reduction"
    return _entry_at(name, forms, [each.without_joining() for each in forms].index(form.without_joining()))


def joining_entry(name: str, forms: Sequence[ReductionForm], form: ReductionForm) -> str:
    """Return the name of the function that joins parts, which forms may share."""
    return f"{_entry_at(name, forms, [each.of_joining() for each in forms].index(form.of_joining()))}_joining"


def _entry_at(name: str, forms: Sequence[ReductionForm], place: int) -> str:
    return f"{entry(name)}_{place}" if len(forms) > 1 else entry(name)


def _reduce_type(source: ReductionSource, form: ReductionForm) -> str:
    if source.reduce_type is not None:
        dtype = _dtypes.dtype_of_ctype(source.reduce_type)
        if source.reduce_type in _dtypes.SCALAR_NAMES:
            dtype = _dtypes.dtype_of_name(source.reduce_type)
        return source.reduce_type if dtype is None else value_ctype(dtype)
    first = source.declaration.outputs[0]
    value = next(role.value for role in form.roles if role.parameter is first)
    return first.ctype if value.names and not _dtypes.is_bfloat16(value) else folded_ctype(value)
