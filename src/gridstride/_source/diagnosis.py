"""Make a compiler's refusal speak of the user's expressions: which one, its line, the types, a hint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from gridstride import _dtypes
from gridstride._source.types import DType
from gridstride.errors import CompileError
from gridstride.targets.base import Program

_PLACE = re.compile(
    r"^(?P<path>[^\n:(]+)(?::(?P<line>\d+)(?::(?P<column>\d+))?|\((?P<nvrtc>\d+)\)): (?:fatal |catastrophic )?"
    r"error(?: #\S+)?: (?P<text>[^\n]+)(?P<quoted>(?:\n[ \t]+[^\n]*)*)",
    re.MULTILINE,
)
_HINTS = (
    (r"missing (?:terminating|closing)|unterminated|invalid-pp-token",
     "unterminated string: a newline escape in an ordinary Python string breaks the line; use a raw string r'...'"),
    (r"(?:redefinition|conflicting declaration|redeclaration).*\b[A-Z]\d*\b",
     "an upper-case letter, which digits may follow, is a type placeholder: give a type of a preamble another name"),
    (r"not declared|undefined|undeclared",
     "names in the text are the kernel's parameters, i, n, what a preamble declares, and CUDA's functions"),
    (r"no match for|no operator|invalid operands",
     "there is no such operation for these types; cast one side, or declare another type"),
    (r"static[_ ]assert",
     "the structure that the preamble declares and the argument's dtype must have one layout: "
     "numpy.dtype(..., align=True) lays fields out as C++ does"),
)  # fmt: skip


class Finding(NamedTuple):
    """Hold the first error in one of the user's texts."""

    section: str
    line: int
    column: int
    text: str


def explained(
    error: CompileError,
    program: Program,
    sections: Mapping[str, str],
    types: Mapping[str, DType],
) -> CompileError:
    """Return an error that points at the user's expression, with the types of the call and a hint."""
    found = _first(error.log, sections)
    bound = ", ".join(
        f"{letter} = {dtype if dtype.names else _dtypes.name_of_dtype(dtype)}"
        for letter, dtype in types.items()
    )
    lines = [f"`{program.name}`: the compiler refused its text"]
    if found is None:
        lines = [str(error)]
    else:
        lines += [
            f"{found.section}, line {found.line}: {found.text}",
            *_shown(found, sections[found.section]),
        ]
    if bound:
        lines.append(f"with {bound}")
    message = found.text if found is not None else error.log
    lines += [f"hint: {hint}" for pattern, hint in _HINTS if re.search(pattern, message)][:1]
    lines.append("The whole text is in the exception's `source`; the compiler's words are in its `log`")
    return CompileError(
        "\n".join(lines), name=program.name, log=error.log, source=program.text, command=error.command
    )


def _first(log: str, sections: Mapping[str, str]) -> Finding | None:
    for match in _PLACE.finditer(log):
        section = match["path"].strip()
        if section not in sections:
            continue
        line = int(match["line"] or match["nvrtc"])
        lines = sections[section].split("\n")
        if line > len(lines):  # the text ended too early
            line = len(lines)
        column = int(match["column"] or 0) or _column_of_caret(match["quoted"], lines[line - 1])
        return Finding(section, line, column, match["text"].strip())
    return None


def _column_of_caret(quoted: str, line: str) -> int:
    """Return the column of the caret below a line that the compiler repeats, perhaps moved."""
    rows = quoted.strip("\n").split("\n")
    for shown, caret in pairwise(rows):
        if caret.strip().startswith("^") and shown.strip():
            moved = (len(line) - len(line.lstrip())) - (len(shown) - len(shown.lstrip()))
            return max(1, caret.index("^") + moved + 1)
    return 0


def _shown(found: Finding, text: str) -> list[str]:
    line = text.split("\n")[found.line - 1]
    shown = [f"    {line}"]
    if found.column:
        before = line[: found.column - 1]
        shown.append("    " + "".join("\t" if character == "\t" else " " for character in before) + "^")
    return shown
