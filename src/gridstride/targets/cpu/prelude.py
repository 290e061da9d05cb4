"""The part of the prelude that a text needs: reading all of it takes a compiler longer than a small kernel."""

from __future__ import annotations

import re
from functools import cache

from gridstride.targets.cpu.prebuilt import FOLDER

WHOLE: tuple[str, ...] = ("prelude.h", "casts.h")
#: What every kernel needs, and what is included where a text has one of its names; in their order in the prelude.
ALWAYS = ("qualifiers.h", "core_language.h", "vectors.h", "execution.h")
ON_DEMAND = (
    "warp.h", "bits.h", "math_functions.h", "special_functions.h", "rounding.h", "conversions.h",
    "integer_intrinsics.h", "simd_in_word.h", "memory.h", "address_spaces.h", "atomics.h", "casts.h",
)  # fmt: skip
#: Headers of ours that a program may include, which need no more than what every kernel needs.
NEED_NOTHING = frozenset(
    {"gridstride_cpu/loops.h", "gridstride_cpu/folds_along.h", "gridstride_cpu/folds_across.h"}
)
#: Written by ``tools/prelude_names.py``.
NAMES = f"{FOLDER}/prelude_names.txt"

_WORD = re.compile(r"[A-Za-z_]\w*")
#: Names come from elsewhere, or are put together by the preprocessor.
_HIDES_NAMES = re.compile(r"##|^[ \t]*(?:#|%:)[ \t]*include\b|%:%:", re.MULTILINE)


def headers_of(text: str) -> tuple[str, ...]:
    """Return the headers of the prelude that a text needs, in order."""
    if _HIDES_NAMES.search(text):
        return WHOLE
    header_of = _header_of_names()
    words = set(_WORD.findall(text.replace("\\\n", "")))
    needed = {header_of[word] for word in words & header_of.keys()}
    return (*ALWAYS, *(header for header in ON_DEMAND if header in needed))


@cache
def _header_of_names() -> dict[str, str]:
    """Return the header of each name."""
    found = {"virtual": "memory.h"}  # destructors in tables of functions call `operator delete`
    with open(NAMES) as file:
        for line in file:
            header, _, names = line.partition(":")
            found |= dict.fromkeys(names.split(), header)
    return found
