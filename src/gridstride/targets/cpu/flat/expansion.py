"""The user's macros, expanded where that takes no preprocessor.

A macro that stands for more than a number or a type hides what a kernel does. Expanding it here spares a
second run of the compiler. Macros that a condition decides of stay, and so do those with ``#`` and ``##``:
they are an obstacle where they are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gridstride._syntax import lexical

_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(\w+)((?:\\\r?\n|[^\n])*)", re.MULTILINE)
_DEFINITION = re.compile(r"\s*([A-Za-z_]\w*)(\([^()]*\))?(.*)", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<skip>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(?<!\w)\.?\d(?:[eEpP][+-]|'?[\w.])*)|(?P<name>[A-Za-z_]\w*)""",
    re.VERBOSE,
)
_DEPTH = 16


class Macro(NamedTuple):
    """A macro: its parameters, None where it has none, and its body."""

    parameters: tuple[str, ...] | None
    body: str


def expand(source: bytes) -> bytes:
    """Return a text with its macros expanded; every line keeps its number, directives stay."""
    masked = lexical.mask(source)
    directives = list(_DIRECTIVE.finditer(masked))
    if not any(match[1] == b"define" for match in directives):
        return source
    plain = lexical.without_comments(source)
    doubtful = _doubtful_names(plain, directives)
    known: dict[str, Macro] = {}
    pieces: list[bytes] = []
    position = 0
    for match in directives:
        pieces += [_expanded_part(plain[position : match.start()], known), plain[match.start() : match.end()]]
        position = match.end()
        name, macro = _definition(plain, match)
        known.pop(name, None)
        if macro is not None and name not in doubtful:
            known[name] = macro
    pieces.append(_expanded_part(plain[position:], known))
    return b"".join(pieces)


def _expanded_part(source: bytes, known: Mapping[str, Macro]) -> bytes:
    if not known:
        return source
    text = source.decode(errors="surrogateescape")
    return _expanded(text, known, frozenset()).encode(errors="surrogateescape")


def _doubtful_names(plain: bytes, directives: list[re.Match[bytes]]) -> set[str]:
    """Return the macros of which a condition decides, or that make text of their arguments."""
    doubtful: set[str] = set()
    depth = 0
    for match in directives:
        depth += match[1].startswith(b"if") - (match[1] == b"endif")
        name, macro = _definition(plain, match)
        if depth or (macro is not None and ("#" in macro.body or "..." in (macro.parameters or ()))):
            doubtful.add(name)
    return doubtful


def _definition(plain: bytes, directive: re.Match[bytes]) -> tuple[str, Macro | None]:
    """Return the name that a directive defines, or undefines, and the macro; "" for other directives."""
    if directive[1] not in (b"define", b"undef"):
        return "", None
    written = plain[directive.start(2) : directive.end(2)].decode(errors="surrogateescape")
    definition = _DEFINITION.match(re.sub(r"\\\r?\n", " ", written))
    if definition is None:
        return "", None
    if directive[1] == b"undef":
        return definition[1], None
    names = tuple(item.strip() for item in definition[2][1:-1].split(",")) if definition[2] else None
    return definition[1], Macro(() if names == ("",) else names, definition[3].strip())


def _expanded(text: str, macros: Mapping[str, Macro], hidden: frozenset[str]) -> str:
    """Return a text with the macros in it replaced by their expanded bodies."""
    pieces: list[str] = []
    position = 0
    while (match := _TOKEN.search(text, position)) is not None:
        macro = macros.get(match["name"] or "")
        end, arguments = match.end(), None
        if macro is not None and macro.parameters is not None:
            arguments, end = _arguments(text, match.end())
        takes = (
            macro is not None
            and match["name"] not in hidden
            and len(hidden) < _DEPTH
            and (macro.parameters is None or (arguments is not None and _fit(macro.parameters, arguments)))
        )
        pieces.append(text[position : match.start()])
        if macro is not None and takes:
            values = [_expanded(item.strip(), macros, hidden) for item in arguments or ()]
            body = _substituted(macro, values)
            lines = "\n" * text.count("\n", match.start(), end)
            pieces.append(_expanded(body, macros, hidden | {match["name"]}) + lines)
            position = end
        else:
            pieces.append(match[0])
            position = match.end()
    return "".join([*pieces, text[position:]])


def _fit(parameters: tuple[str, ...], arguments: list[str]) -> bool:
    return len(parameters) == len(arguments) or (not parameters and arguments == [""])


def _substituted(macro: Macro, values: list[str]) -> str:
    by_name = dict(zip(macro.parameters or (), values, strict=False))
    return _TOKEN.sub(lambda match: by_name.get(match["name"] or "", match[0]), macro.body)


def _arguments(text: str, position: int) -> tuple[list[str] | None, int]:
    """Return the arguments behind a macro's name, and where they end; None where there are none."""
    start = position + len(text[position:]) - len(text[position:].lstrip())
    if text[start : start + 1] != "(":
        return None, position
    arguments: list[str] = []
    depth, begin = 0, start + 1
    for place, character in _characters(text, start):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth == 0:
                return [*arguments, text[begin:place]], place + 1
        elif character == "," and depth == 1:
            arguments.append(text[begin:place])
            begin = place + 1
    return None, position


def _characters(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield places and characters outside of strings."""
    position = start
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is not None and match["skip"] is not None:
            position = match.end()
            continue
        yield position, text[position]
        position += 1
