"""The translation unit that a program becomes: our headers, the user's text, and what is asked about it."""

from __future__ import annotations

from collections.abc import Mapping
from string import Template
from types import MappingProxyType
from typing import NamedTuple

from gridstride import _syntax
from gridstride.targets.base import Program
from gridstride.targets.cpu import contention, library, prelude, user_files

#: File name of the part of the translation unit that asks for the program's names.
REQUESTS = "<requested names>"
#: File name of the part that holds the macros of the options.
OPTIONS = "<options>"
#: Prefix of constants that hold the threads of a kernel's ``__launch_bounds__``.
LAUNCH_BOUNDS = "__launch_bounds__ of "

_TEMPLATE = library.FOLDER / "templates" / "program.cpp"


def translation_unit(
    program: Program,
    text: str,
    flat_names: Mapping[str, str] = MappingProxyType({}),
    headers: tuple[str, ...] = prelude.WHOLE,
) -> str:
    """Return the unit with `text`, the program's own or a rewritten one, as the user's part.

    `flat_names` says which kernels have flat forms in it, and under what names; `headers` are those of
    ours that it needs.
    """
    headers = (*headers, "entry.h")
    own = user_files.headers_of_ours(program)
    return Template(_TEMPLATE.read_text()).substitute(
        headers="\n".join(f"#include <gridstride_cpu/{name}>" for name in headers),
        options="\n".join(option_lines(program)),
        own_includes="\n".join(f"#include <{name}>" for name in own),
        includes="\n".join(f"#include <{name}>" for name in program.includes if name not in own),
        path=_quoted(path_of(program)),
        text=text,
        options_path=OPTIONS,
        requests=REQUESTS,
        entries="\n".join(_entries(program, flat_names)),
    )


def path_of(program: Program) -> str:
    """Return the file name that messages use for a program's text."""
    name = program.name or "program"
    return program.path or (name if "." in name else f"{name}.cu")


def define(form: str, name: str, value: str | None) -> str:
    """Return a macro in the form of a flag or a line; without a value it is 1."""
    return form.format(name, "1" if value is None else " ".join(value.splitlines()))


def is_for_headers(macro: str) -> bool:
    """Return whether our headers shall see a macro of the user's."""
    return macro in ("NDEBUG", "__CUDA_ARCH__") or macro.startswith("GRIDSTRIDE_")


def needed_headers(program: Program, text: str) -> tuple[str, ...]:
    """Return the headers of ours that a program needs, whose text became `text`."""
    if not prelude.NEED_NOTHING.issuperset(program.includes):
        return prelude.WHOLE
    asked = (*program.kernels, *program.globals, *program.constants)
    return prelude.headers_of("\n".join([text, *option_lines(program), *asked]))


def option_lines(program: Program) -> list[str]:
    """Return the macros of the options that come behind our headers, which are not written for them."""
    options = program.options
    lines = [f"#undef {name}" for name in options.undefines if not is_for_headers(name)]
    return lines + [define("#define {} {}", *item) for item in options.defines if not is_for_headers(item[0])]


def _entries(program: Program, flat_names: Mapping[str, str]) -> list[str]:
    """Return the lines that ask for the program's names, in the order of the program's fields."""
    tables = {
        "KERNEL": [_Request(name, name) for name in program.kernels],
        "GLOBAL": [_Request(name, name.strip().removeprefix("&")) for name in program.globals],
        "CONSTANT": [_Request(name, name) for name in program.constants],
    }
    if "__launch_bounds__" in program.text:
        tables["CONSTANT"] += _launch_bounds(program)
    contending = contention.contending_kernels(program.text, program.kernels)
    lines = [
        f"{_flat_entry(index, flat_names[row.name]) if row.name in flat_names and table == 'KERNEL' else ''}"
        f"{f'GRIDSTRIDE_CONTENDS({index}) ' if row.name in contending and table == 'KERNEL' else ''}"
        f'{row.needed}GRIDSTRIDE_{table}({index}, "{_quoted(row.name)}", {row.expression})'
        for table, rows in tables.items()
        for index, row in enumerate(rows)
    ]
    return [*lines, f"GRIDSTRIDE_LIBRARY({', '.join(str(len(rows)) for rows in tables.values())})"]


def _flat_entry(index: int, name: str) -> str:
    return f"GRIDSTRIDE_FLAT({index}, {name}) "


class _Request(NamedTuple):
    """Ask for an expression under a name; `needed` declares what the expression needs."""

    name: str
    expression: str
    needed: str = ""


def _launch_bounds(program: Program) -> list[_Request]:
    """Return what asks for the launch bounds of the kernels that have any."""
    declared = {
        _syntax.normalize_name(kernel.name): kernel
        for kernel in reversed(_syntax.kernels(program.text))
        if kernel.launch_bounds
    }
    found = ((name, declared.get(_syntax.base_name(name))) for name in program.kernels)
    return [_bounds_of(number, name, kernel) for number, (name, kernel) in enumerate(found) if kernel]


def _bounds_of(number: int, name: str, kernel: _syntax.FunctionDeclaration) -> _Request:
    """Return the request for one kernel: a template's bounds become a variable template in its namespaces."""
    request = LAUNCH_BOUNDS + name
    if not kernel.is_template:
        return _Request(request, kernel.launch_bounds)
    *namespaces, _ = kernel.name.split("::")
    variable = f"gridstride_launch_bounds_{number}"
    needed = (
        "".join(f"namespace {namespace} {{ " for namespace in namespaces)
        + f"template {kernel.template_parameters} constexpr long long {variable} = {kernel.launch_bounds};"
        + " }" * len(namespaces)
    )
    arguments = name[name.index("<") :] if "<" in name else "<>"
    return _Request(request, "::".join(["", *namespaces, variable]) + arguments, needed + " ")


def _quoted(text: str) -> str:
    return " ".join(text.splitlines()).replace("\\", "\\\\").replace('"', '\\"')
