"""Names of functions, template instances and variables as users spell them."""

from __future__ import annotations

import re
from functools import lru_cache

_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|::|->|\S")
_ELABORATIONS = {"struct", "class", "enum", "union", "typename"}
_QUALIFIERS = ("const", "volatile")
_INTEGER_WORDS = {"signed", "unsigned", "char", "short", "int", "long"}
_ALIASES = {
    "int8_t": "signed char",
    "int16_t": "short",
    "int32_t": "int",
    "int64_t": "long long",
    "uint8_t": "unsigned char",
    "uint16_t": "unsigned short",
    "uint32_t": "unsigned int",
    "uint64_t": "unsigned long long",
    "size_t": "unsigned long",
    "ptrdiff_t": "long",
    "intptr_t": "long long",
    "uintptr_t": "unsigned long long",
    "uchar": "unsigned char",
    "ushort": "unsigned short",
    "uint": "unsigned int",
    "ulong": "unsigned long",
}


@lru_cache(maxsize=4096)
def normalize_name(name: str) -> str:
    """Return one spelling for all spellings of a kernel, template instance or variable.

    Blanks, ``> >``, a leading ``&`` or ``::``, the order of ``const``, and the many spellings of the
    integer types make no difference: ``f< unsigned >`` and ``&f<unsigned int>`` are one.
    """
    tokens = [token for token in _TOKEN.findall(name) if token not in _ELABORATIONS]
    while tokens and tokens[0] in ("&", "::"):
        tokens.pop(0)
    result: list[str] = []
    words: list[str] = []
    for index, token in enumerate(tokens):
        if token == "std" and tokens[index + 1 : index + 3] and tokens[index + 2] in _ALIASES:
            continue
        if token == "::" and tokens[index + 1 : index + 2] and tokens[index + 1] in _ALIASES:
            continue
        if token[0].isalpha() or token[0] == "_":
            words.extend(_ALIASES.get(token, token).split())
            continue
        result += _type_words(words)
        words = []
        result.append(token)
    return "".join(result + _type_words(words))


def base_name(name: str) -> str:
    """Return a name without template arguments and without a leading ``&`` or ``::``."""
    return normalize_name(name).partition("<")[0]


def integer_type(words: list[str]) -> str:
    """Return the canonical spelling of an integer type, for example of ``long unsigned int``."""
    sign = "unsigned " if "unsigned" in words else ""
    if "char" in words:
        return "unsigned char" if sign else "signed char" if "signed" in words else "char"
    if "short" in words:
        return sign + "short"
    longs = words.count("long")
    return sign + " ".join(["long"] * longs if longs else ["int"])


def _type_words(words: list[str]) -> list[str]:
    qualifiers = [word for word in _QUALIFIERS if word in words]
    rest = [word for word in words if word not in _QUALIFIERS]
    if rest and all(word in _INTEGER_WORDS for word in rest):
        rest = [integer_type(rest)]
    joined = " ".join(qualifiers + rest)
    return [joined] if joined else []
