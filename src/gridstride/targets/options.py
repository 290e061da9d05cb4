"""The option vocabulary: one set of compiler options for all targets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class CompileOptions(NamedTuple):
    """Hold parsed options; every target translates each field or accepts it without effect.

    Attributes
    ----------
    defines : tuple of (name, value or None)
    undefines : tuple of str
    include_dirs : tuple of str
    std : str
        "c++14", "c++17", "c++20"; "" for the target's default (C++17). Older ones become C++14.
    optimization : str
        "0" .. "3" or "" for the target's default.
    debug, line_info : bool
    contraction : bool
        Whether ``a * b + c`` may become one fused operation (``--fmad``).
    fast_math : bool
    max_registers : int
        0: the compiler decides.
    extra_vectorization : bool
    warnings : bool
        Whether the compiler's log has warnings (without ``-w``).
    cooperative : bool
        Whether the text is for cooperative launches.
    compiler : str
        "nvrtc" or "nvcc"; chooses on CUDA, without effect elsewhere.
    """

    defines: tuple[tuple[str, str | None], ...] = ()
    undefines: tuple[str, ...] = ()
    include_dirs: tuple[str, ...] = ()
    std: str = ""
    optimization: str = ""
    debug: bool = False
    line_info: bool = False
    contraction: bool = True
    fast_math: bool = False
    max_registers: int = 0
    extra_vectorization: bool = False
    warnings: bool = True
    cooperative: bool = False
    compiler: str = "nvrtc"


_FLAGS = {
    "-G": ("debug", True),
    "--device-debug": ("debug", True),
    "-lineinfo": ("line_info", True),
    "--generate-line-info": ("line_info", True),
    "--use_fast_math": ("fast_math", True),
    "-use_fast_math": ("fast_math", True),
    "--extra-device-vectorization": ("extra_vectorization", True),
    "-extra-device-vectorization": ("extra_vectorization", True),
    "-w": ("warnings", False),
    "--disable-warnings": ("warnings", False),
}
#: What each standard is compiled as: the headers of ours need C++14.
_STANDARDS = {"c++03": "c++14", "c++11": "c++14", "c++14": "c++14", "c++17": "c++17", "c++20": "c++20"}
_KNOWN = (
    "-D -U -I -std --std -O0..-O3 -G -lineinfo --fmad --use_fast_math --maxrregcount "
    "--extra-device-vectorization -w"
)


def parse_options(
    options: Iterable[str], *, target: str, cooperative: bool = False, compiler: str = "nvrtc"
) -> CompileOptions:
    """Parse compiler options; an unknown one is a ValueError that names it and the target."""
    if isinstance(options, str):
        raise TypeError(
            f"options must be a tuple of strings, got the string {options!r}: write ({options!r},)"
        )
    words = list(options)
    if not words:
        return CompileOptions(cooperative=cooperative, compiler=compiler)
    defines: dict[str, str | None] = {}
    undefines: list[str] = []
    includes: list[str] = []
    fields: dict[str, object] = {}
    while words:
        word = words.pop(0)
        if not isinstance(word, str):
            raise TypeError(f"options must be strings, got {word!r}")
        if "\0" in word:
            raise ValueError(f"option {word!r} has a NUL character")
        match = re.fullmatch(
            r"(-D|-U|-I|--define-macro|--undefine-macro|--include-path)(?:=)?(.*)", word, re.S
        )
        if match:
            value = match[2].strip() or (words.pop(0) if words else "")
            if not value:
                raise ValueError(f"option {word!r} needs a value")
            if match[1] in ("-D", "--define-macro"):
                name, equals, body = value.partition("=")
                undefines = [other for other in undefines if other != name]
                defines[name] = body if equals else None
            elif match[1] in ("-U", "--undefine-macro"):
                defines.pop(value, None)
                undefines.append(value)
            else:
                includes.append(value)
        elif word in _FLAGS:
            name, flag = _FLAGS[word]
            fields[name] = flag
        elif match := re.fullmatch(r"--?std=(?:gnu\+\+|c\+\+)(\w+)", word):
            standard = f"c++{match[1]}"
            if standard not in _STANDARDS:
                raise ValueError(f"option {word!r}: the standards are {', '.join(_STANDARDS)}")
            fields["std"] = _STANDARDS[standard]
        elif match := re.fullmatch(r"-O([0-3])", word):
            fields["optimization"] = match[1]
        elif match := re.fullmatch(r"--?(fmad|use_fast_math|extra-device-vectorization)=(true|false)", word):
            key = {"fmad": "contraction", "use_fast_math": "fast_math"}.get(match[1], "extra_vectorization")
            fields[key] = match[2] == "true"
        elif match := re.fullmatch(r"--?maxrregcount=(\d+)", word):
            fields["max_registers"] = int(match[1])
        else:
            raise ValueError(f"unknown compiler option {word!r} for target '{target}'; known are {_KNOWN}")
    return CompileOptions(
        defines=tuple(defines.items()),
        undefines=tuple(undefines),
        include_dirs=tuple(includes),
        cooperative=cooperative,
        compiler=compiler,
        **fields,  # type: ignore[arg-type]
    )
