"""Raw source: text or object code as the user gave it, and the programs made of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from gridstride import config
from gridstride.targets.base import Program
from gridstride.targets.options import parse_options

if TYPE_CHECKING:
    from gridstride._syntax import KernelDeclaration


class RawSource(NamedTuple):
    """Hold what a user wrote; `code` is CUDA C++ text or object code (bytes).

    Attributes
    ----------
    name : str
        For messages and the cache.
    options : tuple of str
        In the option vocabulary of ``targets/options.py``; parsed when a target is known.
    headers : tuple of (name, text)
    includes : tuple of str
    cooperative : bool
    compiler : str
    path : str
        File name that messages use; "" for ``<name>.cu``.
    tier : str
        That is asked for; "" for the fastest that takes a kernel.
    """

    code: str | bytes
    name: str
    options: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    includes: tuple[str, ...] = ()
    cooperative: bool = False
    compiler: str = "nvrtc"
    path: str = ""
    tier: str = ""

    @property
    def text(self) -> str:
        """The text; NotImplementedError where there is object code only."""
        if isinstance(self.code, bytes):
            raise NotImplementedError(f"{self.name}: it was given as object code; this needs its source")
        return self.code

    def program(self, target: str, kernels: tuple[str, ...], globals_: tuple[str, ...] = ()) -> Program:
        """Return the program in which a target's compiler finds these kernels and variables."""
        return _program(self, target, kernels, globals_, config.debug())


def content_of(code: str | bytes) -> str | bytes:
    """Return text where bytes are text, as of a file that was read so, and anything else as it is."""
    if isinstance(code, bytes) and not _OBJECT_CODE.search(code):
        return decoded(code)
    return code


def decoded(content: bytes) -> str:
    """Return a source file's text; in old ones comments are not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")


def checked(source: RawSource) -> RawSource:
    """Return a source that every compiler reads alike; ValueError where there is none."""
    code = source.code if isinstance(source.code, bytes) else _checked_text("code", source.code)
    if code is source.code and not source.headers:
        return source
    headers = tuple((name, _checked_text(f"header {name!r}", text)) for name, text in source.headers)
    return source._replace(code=code, headers=headers)


def _checked_text(what: str, text: str) -> str:
    """Return a text without the mark that editors put in front of it."""
    if text.isascii() and "\0" not in text:
        return text
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise ValueError(
            f"{what}, line {line}: {text[error.start]!r} is no character that UTF-8 can hold"
        ) from None
    if "\0" in text:  # where one compiler would stop reading
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ValueError(f"{what}, line {line}: a NUL character; in a string write \\0")
    return text.removeprefix("\ufeff")


#: A cubin, a fatbin, any other bytes that are no text, PTX.
_OBJECT_CODE = re.compile(rb"\A\x7fELF|\A\x50\xed\x55\xba|\0|^\s*\.version\s+\d", re.MULTILINE)


def declared_kernels(source: RawSource) -> tuple[KernelDeclaration, ...]:
    """Return the kernels that the text declares."""
    from gridstride._syntax import kernels

    return kernels(source.text)


def declared_globals(source: RawSource) -> tuple[str, ...]:
    """Return the names of the device variables that the text declares."""
    from gridstride._syntax import globals_

    return tuple(variable.name for variable in globals_(source.text))


def layout_program(program: Program, kernel: str, position: int, members: Iterable[str]) -> Program:
    """Return a program that asks the compiler for the layout of a kernel's struct parameter.

    The parameter may be the struct or a pointer to it. `layout_constants` names what is asked.
    """
    whole, offsets = layout_constants(members)
    constants = (*whole, *(constant for pair in offsets.values() for constant in pair))
    text = f"{program.text}\n{_LAYOUT.format(kernel=kernel, position=position)}"
    return program._replace(text=text, kernels=(), globals=(), constants=constants)


def layout_constants(members: Iterable[str]) -> tuple[tuple[str, str], dict[str, tuple[str, str]]]:
    """Return the constant expressions for the struct's size and alignment, and each member's (offset, size)."""
    return ("sizeof(gridstride_layout)", "alignof(gridstride_layout)"), {
        member: (f"offsetof(gridstride_layout, {member})", f"sizeof(((gridstride_layout *)0)->{member})")
        for member in members
    }


_LAYOUT = (
    "template <class T> struct gridstride_pointee {{ typedef T type; }}; "
    "template <class T> struct gridstride_pointee<T *> {{ typedef T type; }}; "
    "template <class T> struct gridstride_pointee<const T *> {{ typedef T type; }}; "
    "typedef gridstride_pointee<gridstride_parameter_t<decltype(&{kernel}), {position}>>::type gridstride_layout;"
)


@lru_cache(maxsize=1024)
def _program(
    source: RawSource, target: str, kernels: tuple[str, ...], globals_: tuple[str, ...], checks_indices: bool
) -> Program:
    options = parse_options(
        source.options,
        target=target,
        kernel=source.name,
        cooperative=source.cooperative,
        compiler=source.compiler,
        checks_indices=checks_indices,
    )
    return Program(
        text=source.text,
        name=source.name,
        options=options,
        kernels=kernels,
        globals=globals_,
        headers=source.headers,
        includes=source.includes,
        path=source.path or f"{source.name}.cu",
        tier=source.tier,
    )
