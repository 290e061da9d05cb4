"""Views of a text in which every byte keeps its place.

The parser knows neither every CUDA specifier nor the user's macros. Instead of teaching it, what it
would stumble over is blanked out in a copy of the same length, so that positions in the copy are
positions in the user's text.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    rb"""(?P<keep>(?<!\w)\d(?:'?[\w.])*)        # numbers, with digit separators
    |(?P<raw>R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)")
    |(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?\*/)""",
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(rb"^[ \t]*#(?:\\\r?\n|[^\n])*", re.MULTILINE)
_LINE = re.compile(
    rb'^[ \t]*#[ \t]*(?:line[ \t]+)?(\d+)(?:[ \t]+"((?:[^"\\\n]|\\.)*)")?[^\n]*$', re.MULTILINE
)
_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)(\([^)]*\))?((?:\\\r?\n|[^\n])*)", re.MULTILINE)
_NOT_NEWLINE = re.compile(rb"[^\n]")

#: Specifiers with arguments in parentheses that say nothing about structure.
_ATTRIBUTES = re.compile(
    rb"\b(?:__launch_bounds__|__cluster_dims__|__block_size__|__maxnreg__|__align__|alignas|__attribute__|__declspec)\s*(?=\()"
)
_SPECIFIERS = re.compile(
    rb"\b(?:__global__|__device__|__host__|__constant__|__managed__|__shared__|__grid_constant__"
    rb"|__forceinline__|__noinline__|__inline__|__restrict__|__restrict|__extension__|constexpr)\b"
)
_QUALIFIER_BODY = re.compile(
    rb"""(?:\s|extern|static|inline|volatile|"C"|\\|__\w+__|__\w+|(?:alignas|\[\[\w+\]\])|\([\w\s,()]*\))*"""
)


def mask(source: bytes) -> bytes:
    """Blank out comments and the insides of strings."""
    return _TOKEN.sub(_masked, source)


def without_comments(source: bytes) -> bytes:
    """Blank out comments."""
    return _TOKEN.sub(lambda match: match[0] if match["comment"] is None else blank(match[0]), source)


def without_directives(masked: bytes) -> bytes:
    """Blank out preprocessor lines of a masked text."""
    return _DIRECTIVE.sub(lambda match: blank(match[0]), masked)


def macros(source: bytes, masked: bytes) -> dict[bytes, bytes]:
    """Return the bodies of the macros that a text defines, strings included."""
    return {match[1]: source[match.start(3) : match.end(3)] for match in _DEFINE.finditer(masked)}


def qualifier_macros(source: bytes, masked: bytes) -> dict[bytes, bytes]:
    """Return the macros whose bodies hold specifiers alone, such as ``extern "C" __global__``."""
    return {
        match[1]: source[match.start(3) : match.end(3)]
        for match in _DEFINE.finditer(masked)
        if match[2] is None and _QUALIFIER_BODY.fullmatch(source[match.start(3) : match.end(3)])
    }


def parseable(source: bytes, masked: bytes) -> bytes:
    """Blank out specifiers, attributes and the user's qualifier macros."""
    result = bytearray(source)
    code = without_directives(masked)
    for start, end in attribute_spans(code):
        result[start:end] = blank(source[start:end])
    names = b"|".join(re.escape(name) for name in qualifier_macros(source, masked))
    patterns = [_SPECIFIERS, re.compile(rb"\b(?:" + names + rb")\b")] if names else [_SPECIFIERS]
    for pattern in patterns:
        for match in pattern.finditer(code):
            result[match.start() : match.end()] = b" " * len(match[0])
    return bytes(result)


def attribute_spans(code: bytes) -> list[tuple[int, int]]:
    """Return where attributes with arguments stand, parentheses included."""
    return [(match.start(), closing(code, match.end())) for match in _ATTRIBUTES.finditer(code)]


def closing(code: bytes, position: int) -> int:
    """Return the position after the bracket that closes the one at `position` (the end if none does)."""
    depth = 0
    for match in re.compile(rb"[()\[\]{}]").finditer(code, position):
        depth += 1 if match[0] in b"([{" else -1
        if depth == 0:
            return match.end()
    return len(code)


def line_of(source: bytes, position: int) -> int:
    """Return the line of a position, counted from 1."""
    return source.count(b"\n", 0, position) + 1


def physical_line(source: bytes, own_path: str, path: str, line: int) -> int | None:
    """Return the line of a text that a compiler calls so, which follows its ``#line`` directives.

    Parameters
    ----------
    source : bytes
    own_path : str
        What the text is called before any directive.
    path, line : str, int
        What the compiler said.

    Returns
    -------
    int or None
        Counted from 1; None where no line of the text is called so.
    """
    runs = [(1, 1, own_path)]  # each: first line, what it is called, in which file
    for match in _LINE.finditer(without_comments(source)):
        name = (
            runs[-1][2] if match[2] is None else re.sub(rb"\\(.)", rb"\1", match[2]).decode(errors="replace")
        )
        runs.append((line_of(source, match.start()) + 1, int(match[1]), name))
    ends = [first for first, _, _ in runs[1:]] + [source.count(b"\n") + 2]
    for (first, called, name), end in zip(reversed(runs), reversed(ends), strict=True):
        if name == path and 0 <= line - called < end - first:
            return first + line - called
    return None


def blank(text: bytes) -> bytes:
    """Return blanks in place of everything but line ends."""
    return _NOT_NEWLINE.sub(b" ", text)


def _masked(match: re.Match[bytes]) -> bytes:
    token = match[0]
    if match["keep"] is not None:
        return token
    if match["comment"] is not None:
        return blank(token)
    first = token.index(b'"') if match["raw"] is not None else 0
    return token[: first + 1] + blank(token[first + 1 : -1]) + token[-1:]
