"""Functions that return a thread's index, written where they are called.

    __device__ int column() { return blockIdx.x * blockDim.x + threadIdx.x; }

In a flat form the indices are those of the kernel's own text. Such functions are taken for macros.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from gridstride._syntax import lexical
from gridstride._syntax.declarations import FunctionDeclaration, functions_of
from gridstride.targets.cpu.flat.linear import integer_type

_INDEX = re.compile(rb"\b(?:threadIdx|blockIdx|blockDim|gridDim)\b")
_RETURNED = re.compile(rb"\{\s*return\b([^;{}]*);\s*\}")
#: Indices and arithmetic; anything else may be another function, or may differ from place to place.
_ARITHMETIC = re.compile(
    rb"(?:\b(?:threadIdx|blockIdx|blockDim|gridDim)\s*\.\s*[xyz]\b|\b\d+[uUlL]*\b|[-+*()\s])+"
)
_QUALIFIERS = re.compile(
    r"\b(?:__device__|__host__|__forceinline__|__inline__|__noinline__|inline|static|constexpr|extern)\b"
)


class IndexFunction(NamedTuple):
    """A function without parameters, and the expression that a call of it is."""

    name: bytes
    expression: bytes
    begin: int
    end: int


def inline_index_functions(source: bytes) -> bytes:
    """Return a text in which calls of such functions are expressions; every line keeps its number."""
    if not _INDEX.search(source):
        return source
    masked = lexical.mask(source)
    found = [item for item in _index_functions(source, masked) if _is_only_called(item, masked)]
    changes = sorted(
        (match.start(), match.end(), item.expression + b"\n" * match[0].count(b"\n"))
        for item in found
        for match in _calls(item, masked)
    )
    if not changes:
        return source
    pieces, position = [], 0
    for start, end, text in changes:
        pieces += [source[position:start], text]
        position = end
    return b"".join([*pieces, source[position:]])


def _index_functions(source: bytes, masked: bytes) -> Iterator[IndexFunction]:
    functions = functions_of(source)
    names = [function.name for function in functions]
    for function in functions:
        is_plain = function.is_definition and not (function.is_kernel or function.is_template)
        if not is_plain or function.parameters or "::" in function.name or names.count(function.name) != 1:
            continue
        body = _RETURNED.fullmatch(masked[slice(*function.body)])
        if body is None or not _INDEX.search(body[1]) or not _ARITHMETIC.fullmatch(body[1]):
            continue
        head = _head(function, masked)
        ctype = integer_type(_QUALIFIERS.sub(" ", head[1])) if head is not None else ""
        if head is not None and ctype:
            value = b" ".join(body[1].split())
            expression = b"static_cast<" + ctype.encode() + b">(" + value + b")"
            yield IndexFunction(function.name.encode(), expression, head[0], function.body[1])


def _head(function: FunctionDeclaration, masked: bytes) -> tuple[int, str] | None:
    """Return where a function's name stands, and what stands before it."""
    begin = max(masked.rfind(character, 0, function.body[0]) for character in (b";", b"}", b"{"))
    head = masked[begin + 1 : function.body[0]]
    name = function.name.encode()
    form = rb"((?:\s*#[^\n]*\n)*)(.*?)\b" + name + rb"\s*\(\s*(?:void)?\s*\)\s*"
    match = re.fullmatch(form, head, re.DOTALL)
    return (begin + 1 + match.end(2), match[2].decode()) if match is not None else None


def _calls(function: IndexFunction, masked: bytes) -> Iterator[re.Match[bytes]]:
    for match in re.finditer(rb"\b" + function.name + rb"\s*\(\s*\)", masked):
        if not function.begin <= match.start() < function.end:
            yield match


def _is_only_called(function: IndexFunction, masked: bytes) -> bool:
    """Return whether a name stands for nothing but this function, which is called wherever it stands."""
    places = [match.start() for match in re.finditer(rb"\b" + function.name + rb"\b", masked)]
    outside = [place for place in places if not function.begin <= place < function.end]
    called = {match.start() for match in _calls(function, masked)}
    is_member = any(re.search(rb"(?:\.|->|::)\s*$", masked[:place][-80:]) for place in outside)
    return function.begin in places and called.issuperset(outside) and not is_member
