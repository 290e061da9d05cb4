"""Conversions from floating point to integers that nobody wrote, found by the compiler that makes them.

C++ leaves such a conversion of a number out of range undefined; the device lets it saturate. The source pass sees the
casts that are written. The others only a compiler knows, which knows all types: g++ warns of them where it is asked to,
with the place of the expression. They become calls whose result converts as the device does:

    out[i] = x[i] * 255;            out[i] = gridstride_implicit(x[i] * 255);
    count += x[i];                  gridstride_place(count) += x[i];
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from gridstride.targets.cpu.edits import Edit

#: What g++ must be told; its other kinds of compilers have a flag that makes them saturate.
WARNING = "-Wfloat-conversion"
#: For the call that only looks.
PROBE = (WARNING, "-fsyntax-only", "-fdiagnostics-format=json")

_MESSAGE = re.compile(
    r"conversion from '[^']*'(?: \{aka '[^']*'\})? to '(?P<to>[^']*)'(?: \{aka '(?P<aka>[^']*)'\})? may change value"
)
_FLOATING = re.compile(r"(?:const |volatile )*(?:float|double|long double|_Float\w+|__bf16|\w*complex.*)")
#: Lines that say in which function, or instance, the next message is.
_CONTEXT = re.compile(
    r"^(?!.*: (?:error|warning|note|fatal error): ).*(?:: In .*:|required from .*|: At global scope:)$"
)
_COMPOUND = re.compile(rb"[-+*/]=")


def told_of(log: str) -> bool:
    """Return whether a log says that numbers become integers."""
    return any(_to_integer(match) for match in _MESSAGE.finditer(log))


def without(log: str) -> str:
    """Return a log without these warnings, which the user did not ask for."""
    if _MESSAGE.search(log) is None:
        return log
    kept: list[str] = []
    contexts: list[str] = []
    for line in log.splitlines(keepends=True):
        if _CONTEXT.match(line.rstrip()):
            contexts.append(line)
        elif ": warning: " not in line or not _MESSAGE.search(line):
            kept += [*contexts, line]
            contexts = []
        else:
            contexts = []
    return "".join(kept)


def edits(text: bytes, log: str, places: Sequence[tuple[int, int]]) -> list[Edit]:
    """Return the edits of a text, of which `log` speaks in JSON, within the byte ranges `places`."""
    found = {span for span in _spans(text, log) if any(start <= span[0] < end for start, end in places)}
    # Where two begin or end at one place, the longer one is outside.
    opened, closed = [], []
    for start, end, caret in sorted(found, key=lambda span: (span[0], -span[1])):
        if _COMPOUND.match(text, caret):
            end = start + len(text[start:caret].rstrip())
            opened.append(Edit(start, start, b"gridstride_place("))
        else:
            opened.append(Edit(start, start, b"gridstride_implicit("))
        closed.append(Edit(end, end, b")"))
    return [*closed, *opened]


def _spans(text: bytes, log: str) -> Iterator[tuple[int, int, int]]:
    """Yield begin, end and caret of the expressions in a log, as byte positions."""
    lines = [0, *(match.end() for match in re.finditer(rb"\n", text))]
    for item in _messages(log):
        match = _MESSAGE.search(item.get("message", ""))
        if match is None or not _to_integer(match) or not item.get("locations"):
            continue
        location = item["locations"][0]
        first, last = location.get("start", location["caret"]), location.get("finish", location["caret"])
        position = [
            lines[place["line"] - 1] + place["byte-column"] - 1 for place in (first, last, location["caret"])
        ]
        yield position[0], position[1] + 1, position[2]


def _messages(log: str) -> list[dict[str, Any]]:
    for line in log.splitlines():
        if line.startswith("["):
            try:
                found = json.loads(line)
            except ValueError:
                continue
            return [item for item in found if isinstance(item, dict)]
    return []


def _to_integer(match: re.Match[str]) -> bool:
    return _FLOATING.fullmatch(match["aka"] or match["to"]) is None
