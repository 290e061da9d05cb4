"""What kernels can be called, and the texts they are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gridstride._syntax.words import KEYWORDS, without_comments, words

_NAME = re.compile(r"\s*(?:::)?([A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)\s*(?:<.*>)?\s*", re.DOTALL)
#: Keywords of C++20, and functions that CUDA declares for every program.
_TAKEN = KEYWORDS | {
    "char8_t", "co_await", "co_return", "co_yield", "concept", "consteval", "constinit", "requires",
    "assert", "clock", "free", "malloc", "memcpy", "memset", "printf",
}  # fmt: skip
#: What may give a variable a value: assignments, steps, and calls of functions that take it by reference.
_CHANGES = re.compile(r"(?<![=!<>])=(?!=)|(?:<<|>>)=|\b(?:and|or|xor)_eq\b|\+\+|--|\(")
#: What no compiler reads: the end of a text in C, and halves of characters.
_UNREADABLE = re.compile("[\0\ud800-\udfff]")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def checked_name(name: str) -> str:
    """Return a raw kernel's name, perhaps of a template instance, or raise what is wrong with it."""
    if not isinstance(name, str):
        raise TypeError(f"name must be the kernel's name (str), got {name!r}")
    # Nearly every name is one identifier, which is found out in a fraction of the time.
    if name not in _TAKEN and name.isascii() and name.isidentifier():
        return name
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(
            f"{name!r} is not the name of a kernel: a C++ identifier, or a template instance of one"
        )
    taken = _TAKEN.intersection(match[1].split("::"))
    if taken:
        raise ValueError(f"{min(taken)!r} cannot name a kernel: C++ or CUDA has it already")
    return name


def checked_kernel_name(name: str) -> str:
    """Return the name of a kernel whose text is ours around the user's: a plain identifier that is free."""
    if not isinstance(name, str):
        raise TypeError(f"name must be the kernel's name (str), got {name!r}")
    if not _IDENTIFIER.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot name a kernel: write a C++ identifier, such as {_identifier_like(name)!r}"
        )
    if name in _TAKEN:
        raise ValueError(f"{name!r} cannot name a kernel: C++ or CUDA has it already")
    return name


def checked_texts(kernel: str, **texts: str) -> None:
    """Raise TypeError where a text of a kernel is no string, ValueError where no compiler could read it."""
    for label, text in texts.items():
        if not isinstance(text, str):
            raise TypeError(f"`{kernel}`: {label} must be CUDA C++ text (str), got {type(text).__name__}")
        if (found := _UNREADABLE.search(text)) is not None:
            what = "a NUL character" if found[0] == "\0" else f"{found[0]!a}, half of a character,"
            line = text.count("\n", 0, found.start()) + 1
            raise ValueError(f"`{kernel}`: {label} has {what} in line {line}, which compilers cannot read")


def checked_options(kernel: str, options: Sequence[str]) -> tuple[str, ...]:
    """Return compiler options as a tuple; TypeError where they are no strings."""
    if isinstance(options, str):
        raise TypeError(
            f"`{kernel}`: options must be a tuple of strings, got the string: write ({options!r},)"
        )
    found = tuple(options) if isinstance(options, Iterable) else (options,)
    for each in found:
        if not isinstance(each, str):
            raise TypeError(f"`{kernel}`: options must be a tuple of strings, got {each!r}")
    return found


def may_mention(text: str, preambles: str, options: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether a text may use one of some names, itself or by a macro."""
    return bool(
        words(without_comments(text)) & set(names) or words(preambles) & {"define", "include"} or options
    )


def may_assign(text: str, preambles: str, options: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether a text may give one of some names a value, itself, by a macro or by a function."""
    plain = without_comments(text)
    is_changed = words(plain) & set(names) and _CHANGES.search(plain)
    return bool(is_changed or words(preambles) & {"define", "include"} or options)


def _identifier_like(name: str) -> str:
    words = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "kernel"
    return words if not words[0].isdigit() else f"kernel_{words}"
