"""The text of elementwise kernels: the user's expression between a template's lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, NamedTuple

from gridstride import _dtypes, config
from gridstride._arguments.parameters import Declaration, declare
from gridstride._source.assignments import output_kind
from gridstride._source.macros import OWN_LABEL, apart_from_macros, declared_words
from gridstride._source.types import DType, Role, layout_lines, needed_headers, type_lines
from gridstride._syntax.words import may_name, words
from gridstride.errors import ArgumentTypeError
from gridstride.targets.base import Program
from gridstride.targets.options import parse_options
from gridstride.targets.walks import IN_LAUNCH, Loop, flag

if TYPE_CHECKING:
    from gridstride._source.reduction import ReductionForm, ReductionSource

_TEMPLATES = Path(__file__).parent / "templates"
_OWN_LINES = f'#line 1 "{OWN_LABEL}"'


class ElementwiseSource(NamedTuple):
    """Hold what a user wrote.

    Attributes
    ----------
    declaration : Declaration
    operation, preamble, type_preamble, loop_prep, after_loop : str
    options : tuple of str
    """

    declaration: Declaration
    operation: str
    preamble: str = ""
    type_preamble: str = ""
    loop_prep: str = ""
    after_loop: str = ""
    options: tuple[str, ...] = ()

    def sections(self) -> dict[str, str]:
        """Return the user's texts by the names that messages use."""
        name = self.declaration.name
        return {
            f"operation of {name}": self.operation,
            f"preamble of {name}": self.preamble,
            f"type_preamble of {name}": self.type_preamble,
            f"loop_prep of {name}": self.loop_prep,
            f"after_loop of {name}": self.after_loop,
        }


class ElementwiseForm(NamedTuple):
    """Say all that a text depends on besides what the user wrote.

    Attributes
    ----------
    roles : tuple of Role
    types : tuple of (placeholder, dtype)
    header, loop, shared, structure : str
    capacity, threads : int
        Of the loop.
    ndim : int
        Axes of the loop's shape, where the body asks for an index along each.
    linked : tuple of str
        Of the loop.
    checks_indices : bool
        Whether raw arrays check their indices.
    """

    roles: tuple[Role, ...]
    types: tuple[tuple[str, DType], ...]
    header: str
    loop: str
    shared: str
    structure: str
    capacity: int
    threads: int
    ndim: int
    linked: tuple[str, ...]
    checks_indices: bool


def elementwise_form(
    source: ElementwiseSource,
    roles: tuple[Role, ...],
    types: Iterable[tuple[str, DType]],
    loop: Loop,
    ndim: int,
) -> ElementwiseForm:
    """Return the form of a call's text."""
    return ElementwiseForm(
        roles=roles,
        types=tuple(types),
        header=loop.header,
        loop=loop.name,
        shared=loop.shared,
        structure=loop.structure,
        capacity=loop.capacity,
        threads=loop.configuration.threads,
        ndim=ndim if uses_index(source) else 0,
        linked=loop.linked,
        checks_indices=config.debug(),
    )


@lru_cache(maxsize=2048)
def elementwise_program(source: ElementwiseSource, form: ElementwiseForm, target: str) -> Program:
    """Return the program of a call."""
    name, text = source.declaration.name, _text(source, form)
    options = parse_options(source.options, target=target, kernel=name, checks_indices=form.checks_indices)
    return Program(
        text=apart_from_macros(text, source.sections(), options, declared_words(source.declaration)),
        name=name,
        options=options,
        kernels=(entry(name),),
        includes=tuple(_includes(source, form, text)),
        path=f"{name}.cu",
        linked=form.linked,
        is_signed=False,
    )


def entry(name: str) -> str:
    """Return the name of a kernel's function, which is nobody else's, as CUDA's and those of a preamble might be."""
    return f"{name}_elementwise"


def uses_index(source: ElementwiseSource) -> bool:
    """Return whether the texts, or macros of the options, ask for `_ind`."""
    return any("_ind" in words(text) for text in (*source.sections().values(), *source.options))


def uses_numbers(source: ElementwiseSource) -> bool:
    """Return whether the texts may ask for the numbers of elements, also by a macro."""
    return may_name(" ".join((*source.sections().values(), *source.options)), "i", "_ind")


def shared_line(function: str, types: str) -> str:
    """Return the declaration of the shared memory that a loop is handed."""
    if not function:
        return ""
    if function == IN_LAUNCH:
        return "extern __shared__ __align__(16) char gridstride_exchange[];"
    size = f"constexpr int gridstride_exchange_size = gridstride::{function}<{types}>();"
    return f"{size}\n    __shared__ __align__(16) char gridstride_exchange[gridstride_exchange_size];"


def section(label: str, text: str, end: str = "") -> str:
    """Return a text of the user's in such a way that messages speak of its own lines."""
    if not text.strip():
        return ""
    return f'#line 1 "{label}"\n{text}\n{end}\n{_OWN_LINES}'


def index_line(number: str, ndim: int) -> str:
    """Return the declaration of `_ind` for the element of a number."""
    return f"const gridstride::index_of<{ndim}> _ind({number}, n, gridstride_shape); (void)_ind;"


def operand_type(role: Role, source: ElementwiseSource, outputs: set[str], capacity: int) -> str:
    """Return the structure for an element's parameter."""
    kind = "input"
    if role.parameter.name in outputs:
        kind = structure_of_output(role, source.operation, source)
    return f"gridstride::{kind}<{role.stored_ctype}, {role.ctype}, {capacity}>"


def structure_of_output(role: Role, text: str, source: ElementwiseSource | ReductionSource) -> str:
    """Return the structure of an output that a text of a source assigns; TypeError where it cannot be read first."""
    preambles = f"{source.type_preamble}\n{source.preamble}"
    kind = output_kind(text, role.parameter.name, preambles, source.options)
    if kind == "updated":
        _check_earlier(source.declaration.name, role)
    return kind


def _check_earlier(kernel: str, role: Role) -> None:
    """Raise TypeError where an output's earlier value is complex, and the text would have it as a real number."""
    if role.stored.kind != "c" or role.value.kind == "c":
        return
    name, value = role.parameter.name, _dtypes.name_of_dtype(role.value)
    raise ArgumentTypeError(
        f"`{kernel}`: the text reads the earlier value of output `{name}` as {value}, but its array is {role.stored}: "
        f"pass an array of {value}, or a complex input",
        kernel=kernel,
        parameter=name,
        expected=value,
        got=str(role.stored),
    )


def raw_type(role: Role, outputs: set[str], is_named: bool) -> str:
    """Return the class of a raw parameter, which may know its name."""
    name = role.parameter.name
    constant = "" if name in outputs or not role.parameter.is_const else "const "
    named = f", gridstride_name_of_{name}" if is_named else ""
    return f"gridstride::raw_array<{constant}{role.ctype}, {role.ndim}, {flag(role.is_contiguous)}{named}>"


def checks_indices(
    source: ElementwiseSource | ReductionSource, form: ElementwiseForm | ReductionForm
) -> bool:
    """Return whether raw parameters check their indices, which the options may ask for as well."""
    return form.checks_indices or any("GRIDSTRIDE_DEBUG" in option for option in source.options)


def name_lines(kernel: str, roles: Iterable[Role]) -> str:
    """Return the classes by which raw parameters know their names."""
    return "\n".join(
        f"struct gridstride_name_of_{role.parameter.name} {{\n"
        f'    __host__ __device__ static const char* kernel() {{ return "kernel `{kernel}`: "; }}\n'
        f'    __host__ __device__ static const char* parameter() {{ return "parameter `{role.parameter.name}`"; }}\n'
        "};"
        for role in roles
        if role.kind == "raw"
    )


def structure_line(role: Role) -> str:
    """Return the declaration of a structure that is passed by value as bytes."""
    name = role.parameter.name
    return f"const {role.ctype} {name} = gridstride_at_{name}.value();"


def _text(source: ElementwiseSource, form: ElementwiseForm) -> str:
    """Return the kernel around what the user wrote."""
    name = source.declaration.name
    elements = [role for role in form.roles if role.kind == "element"]
    outputs = {parameter.name for parameter in source.declaration.outputs}
    types = ", ".join(operand_type(role, source, outputs, form.capacity) for role in elements)
    names = [name_lines(name, form.roles)] if checks_indices(source, form) else []
    return template("elementwise.cu").substitute(
        type_preamble=section(f"type_preamble of {name}", source.type_preamble),
        types=type_lines(form.types),
        preamble=section(f"preamble of {name}", source.preamble),
        layouts="\n".join((layout_lines(form.roles), *names)),
        threads=form.threads,
        name=entry(name),
        parameters=", ".join(_parameters(source, form)),
        scalars="\n".join(_scalar_lines(source, form)),
        loop_prep=section(f"loop_prep of {name}", source.loop_prep, ";"),
        elements="".join(
            f", {role.ctype}& {role.parameter.name}"
            if role.parameter.name in outputs
            else f", {role.input_ctype} {role.parameter.name}"
            for role in elements
        ),
        index=index_line("i", form.ndim) if uses_index(source) else "",
        operation=section(f"operation of {name}", source.operation, ";"),
        loop=form.loop,
        shared=shared_line(form.shared, types),
        handed=", gridstride_exchange" if form.shared else "",
        operands="".join(f", gridstride_at_{role.parameter.name}" for role in elements),
        after_loop=section(f"after_loop of {name}", source.after_loop, ";"),
    )


def _includes(source: ElementwiseSource, form: ElementwiseForm, text: str) -> Iterator[str]:
    """Yield the headers that a kernel's text needs."""
    whole = "\n".join((*source.sections().values(), text))
    yield form.header
    yield from needed_headers(whole, [dtype for role in form.roles for dtype in (role.stored, role.value)])
    if uses_index(source) or any(role.kind == "raw" for role in form.roles):
        yield "gridstride/raw_array.h"
    if any(role.is_declared for role in form.roles):
        yield "gridstride/declared_types.h"


def _scalar_lines(source: ElementwiseSource, form: ElementwiseForm) -> list[str]:
    lines = [structure_line(role) for role in form.roles if role.kind == "scalar" and role.is_structure]
    return [*lines, index_line("0", form.ndim)] if uses_index(source) else lines


def _parameters(source: ElementwiseSource, form: ElementwiseForm) -> Sequence[str]:
    outputs = {parameter.name for parameter in source.declaration.outputs}
    parameters = [f"const gridstride::{form.structure}<{form.capacity}> gridstride_space"]
    if uses_index(source):
        parameters.append(f"const gridstride::extents<{form.ndim}> gridstride_shape")
    for role in form.roles:
        name = role.parameter.name
        if role.kind == "element":
            parameters.append(
                f"const {operand_type(role, source, outputs, form.capacity)} gridstride_at_{name}"
            )
        elif role.kind == "raw":
            parameters.append(f"const {raw_type(role, outputs, checks_indices(source, form))} {name}")
        elif role.is_structure:
            parameters.append(f"const gridstride::bytes_of<{role.ctype}> gridstride_at_{name}")
        else:
            parameters.append(f"const {role.ctype} {name}")
    return parameters


@cache
def copy_source() -> ElementwiseSource:
    """Return a kernel that copies an array."""
    return ElementwiseSource(declare("gridstride_copy", "T source", "T target", ""), "target = source")


@cache
def template(name: str) -> Template:
    """Return one of the templates of kernel texts."""
    return Template((_TEMPLATES / name).read_text())
