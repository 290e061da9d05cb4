"""The option vocabulary: one set of compiler options for all targets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple


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


#: Options whose values may be words of their own.
_SETTINGS = ("-std", "--std", "-maxrregcount", "--maxrregcount", "-fmad", "--fmad")
_WITH_VALUE = re.compile(r"(-D|-U|-I|--define-macro|--undefine-macro|--include-path)=?(.*)", re.DOTALL)
_STANDARD = re.compile(r"--?std=(?:gnu\+\+|c\+\+)(\w+)")
_OPTIMIZATION = re.compile(r"-O([0-3])")
_CHOICE = re.compile(r"--?(fmad|use_fast_math|extra-device-vectorization)=(true|false)")
_CHOSEN = {
    "fmad": "contraction",
    "use_fast_math": "fast_math",
    "extra-device-vectorization": "extra_vectorization",
}
_CHECKING = "GRIDSTRIDE_DEBUG"
_REGISTERS = re.compile(r"--?maxrregcount=(\d+)")


def parse_options(
    options: Iterable[str],
    *,
    target: str,
    kernel: str = "",
    cooperative: bool = False,
    compiler: str = "nvrtc",
    checks_indices: bool = False,
) -> CompileOptions:
    """Parse compiler options; an unknown one is a ValueError that names it, the target and the kernel.

    `checks_indices` defines the macro by which headers of ours do so, unless the options say something of it.
    """
    try:
        fields = _fields(options, target)
    except (TypeError, ValueError) as error:
        if not kernel:
            raise
        raise type(error)(f"`{kernel}`: {error}") from None
    if checks_indices and _CHECKING not in {*dict(fields["defines"]), *fields["undefines"]}:
        fields["defines"] += ((_CHECKING, None),)
    return CompileOptions(cooperative=cooperative, compiler=compiler, **fields)


def _fields(options: Iterable[str], target: str) -> dict[str, Any]:
    """Return what options say, by the fields of `CompileOptions`."""
    fields: dict[str, Any] = {}
    defines: dict[str, str | None] = {}
    undefines: list[str] = []
    includes: list[str] = []
    words = _words(options)
    for word in words:
        if word in _SETTINGS:
            word = f"{word}={next(words, '')}"
            if word.endswith("="):
                raise ValueError(f"option {word[:-1]!r} needs a value, as in '--std=c++17'")
        match = _WITH_VALUE.fullmatch(word)
        if match is None:
            name, setting = _setting(word, target)
            fields[name] = setting
            continue
        value = match[2].strip() or next(words, "")
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
    macros = {"defines": tuple(defines.items()), "undefines": tuple(undefines)}
    return {**fields, **macros, "include_dirs": tuple(includes)}


def _words(options: Iterable[str]) -> Iterator[str]:
    if isinstance(options, str):
        raise TypeError(
            f"options must be a tuple of strings, got the string {options!r}: write ({options!r},)"
        )
    for word in options:
        if not isinstance(word, str):
            raise TypeError(f"options must be strings, got {word!r}")
        if "\0" in word:
            raise ValueError(f"option {word!r} has a NUL character")
        yield word


def _setting(word: str, target: str) -> tuple[str, Any]:
    """Return which field an option sets, and to what."""
    if word in _FLAGS:
        return _FLAGS[word]
    if match := _STANDARD.fullmatch(word):
        standard = f"c++{match[1]}"
        if standard not in _STANDARDS:
            raise ValueError(f"option {word!r}: the standards are {', '.join(_STANDARDS)}")
        return "std", _STANDARDS[standard]
    if match := _OPTIMIZATION.fullmatch(word):
        return "optimization", match[1]
    if match := _CHOICE.fullmatch(word):
        return _CHOSEN[match[1]], match[2] == "true"
    if match := _REGISTERS.fullmatch(word):
        return "max_registers", int(match[1])
    raise ValueError(f"unknown compiler option {word!r} for target '{target}'; known are {_KNOWN}")
