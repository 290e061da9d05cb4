"""Which outputs a text assigns before it asks for their earlier values, which need not be loaded then."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from gridstride._syntax.words import includes_others, without_comments, words

_JUMPS = frozenset({"return", "continue", "break", "goto", "if", "for", "while", "switch", "do"})
#: A macro, its parameters, and what stands for it, with the lines that go on with it.
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\(([^)]*)\))?((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
#: A statement that may be a macro's whole: a name, or a call whose result nobody takes.
_ALONE = re.compile(r"\w+\s*(?:\(.*\))?", re.DOTALL)


def assigned_first(text: str, name: str, preambles: str = "", options: Sequence[str] = ()) -> bool:
    """Return whether a text assigns a variable, unconditionally and whole, before it uses it otherwise.

    The answer is no where that is not plain to see.

    Parameters
    ----------
    text, name : str
    preambles : str
    options : sequence of str
        Both may define macros.
    """
    plain = without_comments(text)
    if "#" in plain:
        return False
    passed: list[str] = []
    for statement in statements(plain):
        target, equals, value = statement.partition("=")
        if target.rstrip() == name and equals and not value.startswith("="):
            asked = words(" ".join((*passed, value)))
            hidden = behind_macros(asked, preambles, options)
            is_plain = (_JUMPS | {name}).isdisjoint(asked | hidden)
            return is_plain and not (includes_others(preambles) and any(map(_ALONE.fullmatch, passed)))
        if name in words(statement):
            return False
        passed.append(statement)
    return False


def output_kind(text: str, name: str, preambles: str, options: Sequence[str]) -> str:
    """Return the structure of an output: one whose earlier value is loaded, where a text may ask for it."""
    return "output" if assigned_first(text, name, preambles, options) else "updated"


def statements(plain: str) -> Iterator[str]:
    """Yield the statements of a text without comments, blocks with what precedes or follows them."""
    depth, start = 0, 0
    for position, character in enumerate(f"{plain};"):
        if character in "({[":
            depth += 1
        elif character in ")}]":
            depth -= 1
        elif character == ";" and depth == 0:
            yield plain[start:position].strip()
            start = position + 1


def behind_macros(asked: frozenset[str], preambles: str, options: Sequence[str]) -> frozenset[str]:
    """Return the words that macros may put in the place of some, also by macros of their own."""
    lines = "\n".join((without_comments(preambles), *_definitions(options)))
    found: frozenset[str] = frozenset()
    if "define" not in lines:
        return found
    bodies = [(each[1], _body(each[2] or "", each[3])) for each in _MACRO.finditer(lines)]
    waiting = [*asked]
    while waiting:
        word = waiting.pop()
        for macro, body in bodies:
            if macro == word and not body <= found:
                waiting.extend(body - found)
                found |= body
    return found


def _definitions(options: Sequence[str]) -> Iterator[str]:
    """Yield the macros of options as lines of a text."""
    for option, following in pairwise((*options, "")):
        match = re.match(r"\s*(?:-D|--define-macro)[=\s]*(.*)", option, re.DOTALL)
        if match is not None:
            yield f"#define {(match[1] or following).replace('=', ' ', 1)}"


def _body(parameters: str, body: str) -> frozenset[str]:
    """Return the words of what stands for a macro; one that pastes words together may come to any."""
    return (words(body) - words(parameters)) | (_JUMPS if "##" in body else frozenset())
