"""The translation unit that a program becomes: our headers, the user's text, and what is asked about it."""

from __future__ import annotations

from collections.abc import Mapping
from string import Template
from types import MappingProxyType

from gridstride import _syntax
from gridstride.targets.base import Program
from gridstride.targets.cpu import library

#: File name of the part of the translation unit that asks for the program's names.
REQUESTS = "<requested names>"
#: File name of the part that holds the macros of the options.
OPTIONS = "<options>"
#: Prefix of constants that hold the threads of a kernel's ``__launch_bounds__``.
LAUNCH_BOUNDS = "__launch_bounds__ of "

_TEMPLATE = library.FOLDER / "templates" / "program.cpp"


def translation_unit(
    program: Program, text: str, flat_names: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return the unit with `text`, the program's own or a rewritten one, as the user's part.

    `flat_names` says which kernels have flat forms in it, and under what names.
    """
    return Template(_TEMPLATE.read_text()).substitute(
        options="\n".join(option_lines(program)),
        includes="\n".join(f"#include <{name}>" for name in program.includes),
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


def option_lines(program: Program) -> list[str]:
    """Return the macros of the options that come behind our headers, which are not written for them."""
    options = program.options
    lines = [f"#undef {name}" for name in options.undefines if not is_for_headers(name)]
    return lines + [define("#define {} {}", *item) for item in options.defines if not is_for_headers(item[0])]


def _entries(program: Program, flat_names: Mapping[str, str]) -> list[str]:
    """Return the lines that ask for the program's names, in the order of the program's fields."""
    tables = {
        "KERNEL": [(name, name) for name in program.kernels],
        "GLOBAL": [(name, name.strip().removeprefix("&")) for name in program.globals],
        "CONSTANT": [(name, name) for name in program.constants],
    }
    if "__launch_bounds__" in program.text:
        tables["CONSTANT"] += [(LAUNCH_BOUNDS + name, bounds) for name, bounds in _launch_bounds(program)]
    lines = [
        f"{_flat_entry(index, flat_names[name]) if name in flat_names and table == 'KERNEL' else ''}"
        f'GRIDSTRIDE_{table}({index}, "{_quoted(name)}", {expression})'
        for table, rows in tables.items()
        for index, (name, expression) in enumerate(rows)
    ]
    return [*lines, f"GRIDSTRIDE_LIBRARY({', '.join(str(len(rows)) for rows in tables.values())})"]


def _flat_entry(index: int, name: str) -> str:
    return f"GRIDSTRIDE_FLAT({index}, {name}) "


def _launch_bounds(program: Program) -> list[tuple[str, str]]:
    """Return the expressions of the launch bounds of kernels that are no templates."""
    declared = {
        _syntax.normalize_name(kernel.name): kernel for kernel in reversed(_syntax.kernels(program.text))
    }
    found = {name: declared.get(_syntax.normalize_name(name)) for name in program.kernels}
    return [
        (name, kernel.launch_bounds)
        for name, kernel in found.items()
        if kernel and kernel.launch_bounds and not kernel.is_template
    ]


def _quoted(text: str) -> str:
    return " ".join(text.splitlines()).replace("\\", "\\\\").replace('"', '\\"')
