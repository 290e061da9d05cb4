"""Write the names that each header of the CPU target's prelude has, as g++ sees them.

python tools/prelude_names.py
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

from gridstride.targets.cpu.library import INCLUDE_FOLDERS
from gridstride.targets.cpu.prelude import ALWAYS, NAMES, ON_DEMAND

#: Keywords of C++, which are nobody's names. `new` and `delete` stay: they are operators of ours.
_KEYWORDS = frozenset(
    {
        "alignas", "alignof", "asm", "auto", "bool", "break", "case", "catch", "char", "class", "const", "constexpr",
        "const_cast", "continue", "decltype", "default", "do", "double", "else", "enum", "explicit", "extern", "false",
        "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "noexcept", "nullptr",
        "operator", "private", "protected", "public", "register", "reinterpret_cast", "return", "short", "signed",
        "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this", "throw", "true",
        "try", "typedef", "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "while",
    }
)  # fmt: skip
_DEFINITION = re.compile(r"#define (\w+)")
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_STRING = re.compile(r'"(?:\\.|[^"\\])*"')


def names_of_headers() -> dict[str, list[str]]:
    """Return the names that not every kernel gets, by the first header that has them, itself or through another."""
    seen = _KEYWORDS | set(_names((*ALWAYS, "entry.h")))
    found: dict[str, list[str]] = {}
    for header in ON_DEMAND:
        own = set(_names((*ALWAYS, header))) - seen
        found[header] = sorted(own)
        seen |= own
    return found


def _names(headers: tuple[str, ...]) -> Iterator[str]:
    """Yield the names that headers define as macros, and those that are left after preprocessing."""
    text = "".join(f"#include <gridstride_cpu/{header}>\n" for header in headers)
    folders = [f"-I{folder}" for folder in INCLUDE_FOLDERS]
    command = [
        "g++",
        "-std=gnu++17",
        "-nostdinc",
        "-nostdinc++",
        *folders,
        "-E",
        "-P",
        "-dD",
        "-x",
        "c++",
        "-",
    ]
    for line in subprocess.run(
        command, input=text, capture_output=True, text=True, check=True
    ).stdout.splitlines():
        definition = _DEFINITION.match(line)
        if definition is not None:
            yield definition[1]
        elif not line.startswith("#"):
            yield from _WORD.findall(_STRING.sub("", line))


def main() -> None:
    with open(NAMES, "w") as file:
        for header, names in names_of_headers().items():
            print(f"{header}: {' '.join(names)}", file=file)


if __name__ == "__main__":
    main()
