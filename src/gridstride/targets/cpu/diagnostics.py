"""Messages of g++ and clang++, told in terms of the user's text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from gridstride._syntax.quoting import with_caret
from gridstride.targets.cpu import device_names

_LINE = re.compile(
    r"^(?P<path>[^\n]+?):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<kind>fatal error|error|warning): (?P<text>.*)$"
)
_WORD = re.compile(r"[A-Za-z_][\w./]*(?<!\.)")
_SHOWN_ERRORS = 5
#: What a message often means, by a part of it.
_HINTS: dict[str, str] = {
    r"missing terminating|unterminated raw string": "the string is not closed: write the text as a raw string, r'...'",
    r"expected '?[,;]|or ';'": "is a semicolon missing at the end of this statement or the one before?",
    r"expected '}'|declaration before '}'": "the braces do not match",
    r"cuda/std/.*(No such file|file not found)": "it comes with CCCL: pip install nvidia-cuda-cccl",
    r"No such file|file not found": "kernels do not see the host's headers: give it through headers= or by option -I",
    r"'(vector|string|cout|function|map)' (is not|was not|in namespace)": "it is a part of the host's C++ alone",
    r"no matching function for call": "compare the number and the types of the arguments",
    r"exception handling disabled|cannot use 'throw'": "device code has no exceptions",
    r"'(__half2?|half2?)'": "include <cuda_fp16.h>",
    r"'cooperative_groups'": "include <cooperative_groups.h>",
}


class Diagnostic(NamedTuple):
    """One message: where, what kind ("error", "fatal error", "warning"), what."""

    path: str
    line: int
    column: int
    kind: str
    text: str


def parse(log: str) -> list[Diagnostic]:
    """Return the errors and warnings of a compiler's output in order."""
    return [
        Diagnostic(match["path"], int(match["line"]), int(match["column"] or 0), match["kind"], match["text"])
        for match in map(_LINE.match, log.splitlines())
        if match
    ]


def describe(errors: list[Diagnostic], line_of: Callable[[Diagnostic], str]) -> str:
    """Return the first errors, each with its source line, a caret and perhaps a hint."""
    parts = [show(error, line_of(error)) for error in errors[:_SHOWN_ERRORS]]
    if len(errors) > _SHOWN_ERRORS:
        parts.append(f"... and {len(errors) - _SHOWN_ERRORS} more (attribute log)")
    return "\n".join(parts)


def show(error: Diagnostic, source_line: str) -> str:
    """Return one error with its source line, a caret and perhaps a hint."""
    lines = [f"{error.path}:{error.line}:{error.column}: error: {error.text}"]
    if source_line.strip():
        lines += [f"    {line}" for line in with_caret(source_line.rstrip("\r"), error.column - 1)]
    hint = _hint(error.text)
    return "\n".join([*lines, f"    hint: {hint}"] if hint else lines)


def _hint(text: str) -> str:
    """Return what a message means: that the target refuses a name that occurs in it, or what often causes it."""
    refusals = device_names.refusals()
    named = next((word for word in _WORD.findall(text) if word in refusals), "")
    if named:
        return f"{named} cannot run on the CPU target: {refusals[named]}"
    return next((hint for pattern, hint in _HINTS.items() if re.search(pattern, text)), "")
