"""What was asked of the compiler for a program and what it said, told as errors at the user's lines."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from gridstride import _syntax
from gridstride._syntax import lexical
from gridstride.errors import CompileError
from gridstride.targets.base import Program
from gridstride.targets.cpu import columns, diagnostics, unit
from gridstride.targets.cpu.diagnostics import Diagnostic
from gridstride.targets.cpu.edits import Refusal, Rewritten
from gridstride.targets.cpu.toolchain import Toolchain

ROOM = "Make room, or let TMPDIR name another folder"
_ENTRY_HEADER = os.path.join("gridstride_cpu", "entry.h")
#: Of a log whose errors are not understood, so much is part of the message.
_SHOWN_LINES, _SHOWN_COLUMNS = 20, 300
_UNCLOSED = re.compile(r"^(.+):(\d+):(\d+): note: to match this '\{'", re.MULTILINE)


class Account:
    """One program's commands and messages.

    Attributes
    ----------
    commands : list of str
    log : str
    rewritten : Rewritten or None
        The user's text as it is compiled, where that is not preprocessed first.
    expanded : bytes
        The preprocessed text that is compiled.
    """

    def __init__(self, program: Program, compiler: Toolchain, folder: Path) -> None:
        self.program = program
        self.compiler = compiler
        self.folder = folder
        self.commands: list[str] = []
        self.log = ""
        self.rewritten: Rewritten | None = None
        self.expanded = b""

    def error(self, message: str, log: str = "") -> CompileError:
        """Return an error of the program, with the last lines of what a compiler said."""
        name = self.program.name
        return CompileError(
            f"{name}: {message}{_tail(log)}",
            name=name,
            log=self.log,
            source=self.program.text,
            command=self.commands[-1] if self.commands else shlex.join(self.compiler.command),
        )

    def refused(self, refusal: Refusal, path: str, line: int, column: int) -> CompileError:
        """Return the error of what this target cannot take at a place."""
        error = Diagnostic(path, line, column, "error", str(refusal))
        return self.error(diagnostics.show(error, self._source_line(error)))

    def refused_in_text(self, refusal: Refusal) -> CompileError:
        """Return the error of what this target cannot take at a place of the user's text."""
        place = line_and_column(self.program.text.encode(), refusal.position)
        return self.refused(refusal, unit.path_of(self.program), *place)

    def rejected(self) -> CompileError:
        """Return the error of what the compiler said last."""
        errors = [item for item in diagnostics.parse(self.log) if item.kind != "warning"]
        errors = self._unclosed(errors) or errors
        if "No space left on device" in self.log:
            return self.error(f"there is no room for what the compiler writes{_tail(self.log)}\n{ROOM}")
        asked = re.search(re.escape(unit.REQUESTS) + r":(\d+):", self.log)
        if asked and errors and (errors[0].path == unit.REQUESTS or errors[0].path.endswith(_ENTRY_HEADER)):
            return self.error(self._missing(int(asked[1]), errors[0].text))
        shown = [self._located(item) for item in errors if item.path != unit.REQUESTS] or errors
        if not shown:
            return self.error(f"{self.compiler.version} failed on the program", self.log)
        described = diagnostics.describe(shown, self._source_line)
        return self.error(f"{self.compiler.version} rejected the program\n{described}")

    def no_kernel(self, name: str, reason: str = "") -> CompileError:
        """Return the error of a name that is asked for as a kernel and is none."""
        return self.error(_missing_kernel(name, reason, _syntax.functions(self.program.text)))

    def _unclosed(self, errors: list[Diagnostic]) -> list[Diagnostic]:
        """Return the brace that the text does not close, where the compiler found that out behind the text."""
        found = _UNCLOSED.search(self.log)
        if not found or not errors or errors[0].path != unit.REQUESTS:
            return []
        if not any("expected '}'" in item.text for item in errors):
            return []
        return [Diagnostic(found[1], int(found[2]), int(found[3]), "error", "this '{' is not closed")]

    def _missing(self, line: int, reason: str) -> str:
        """Say that the name asked for in a line is not there, and what is."""
        kinds = [("kernel", name) for name in self.program.kernels]
        kinds += [("variable", name) for name in self.program.globals]
        kinds += [("constant", name) for name in self.program.constants]
        kind, name = kinds[line - 1] if line <= len(kinds) else ("name", "")
        if kind == "kernel":
            return _missing_kernel(name, reason, _syntax.functions(self.program.text))
        known = [item.name for item in _syntax.globals_(self.program.text)] if kind == "variable" else []
        there = f"; the text declares: {', '.join(known)}" if known else ""
        return f"there is no {kind} {name!r}{there} ({reason})"

    def _located(self, error: Diagnostic) -> Diagnostic:
        """Return an error at its place in the user's text rather than the rewritten one."""
        if self.expanded:
            number = lexical.physical_line(self.expanded, "", error.path, error.line)
            compiled = self.expanded.split(b"\n")[number - 1] if number else b""
            users = self._source_line(error).encode()
            return error._replace(column=columns.in_the_users_line(error.column, compiled, users))
        if self.rewritten is None or not self.rewritten.edits or error.path != unit.path_of(self.program):
            return error
        lines = self.rewritten.text.split(b"\n")
        physical = lexical.physical_line(self.rewritten.text, error.path, error.path, error.line)
        if physical is None:
            return error
        position = sum(len(line) + 1 for line in lines[: physical - 1]) + max(error.column - 1, 0)
        _, column = line_and_column(self.program.text.encode(), self.rewritten.origin(position))
        return error._replace(column=column)

    def _source_line(self, error: Diagnostic) -> str:
        headers = dict(self.program.headers)
        name = os.path.relpath(self.folder / error.path, self.folder / "headers")
        text, own_path = self.program.text, unit.path_of(self.program)
        line = lexical.physical_line(text.encode(), own_path, error.path, error.line)
        if line is None:
            if name in headers:
                text = headers[name]
            else:
                try:
                    text = (self.folder / error.path).read_text(errors="replace")
                except OSError:
                    return ""
            line = lexical.physical_line(text.encode(), error.path, error.path, error.line) or 0
        lines = text.split("\n")
        return lines[line - 1] if 0 < line <= len(lines) else ""


def line_and_column(text: bytes, position: int) -> tuple[int, int]:
    """Return where a byte of a text stands, counted from 1."""
    return lexical.line_of(text, position), position - (text.rfind(b"\n", 0, position) + 1) + 1


def _tail(log: str) -> str:
    """Return the last lines of a log for a message, on lines of their own."""
    lines = log.rstrip().splitlines()[-_SHOWN_LINES:]
    return "".join(f"\n{line[:_SHOWN_COLUMNS]}" for line in lines)


def _missing_kernel(name: str, reason: str, functions: tuple[_syntax.FunctionDeclaration, ...]) -> str:
    base = _syntax.base_name(name)
    same = [function for function in functions if function.name == base]
    kernels = sorted(
        {
            function.name + ("<...>" if function.is_template else "")
            for function in functions
            if function.is_kernel
        }
    )
    there = (
        f"the text defines: {', '.join(kernels)}" if kernels else "the text defines no __global__ function"
    )
    if same and not any(function.is_kernel for function in same):
        return f"{name!r} is a function but not a kernel (__global__ void); {there}"
    if same and same[0].is_template and "<" not in name:
        return f"{name!r} is a template: ask for an instance, for example {name}<float> ({reason})"
    if same:
        return f"the kernel {name!r} cannot be taken: {reason}"
    return f"there is no kernel {name!r}; {there}"
