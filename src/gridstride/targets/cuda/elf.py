"""Read what a cubin says of itself: its kernels, the layout of their parameters, its symbols."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

MAGIC = b"\x7fELF"

_HEADER = struct.Struct("<16xHHI QQQ I HHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_MACHINE_CUDA = 190
_INFORMATION = ".nv.info."
_PRELUDE_KERNEL = re.compile(r"_Z\d+gridstride_(?:signature|constant)I")
#: Formats of an attribute record; only this one is followed by bytes.
_WITH_BYTES = 4
_PARAMETER = 0x17
_PARAMETER_RECORD = struct.Struct("<IHHI")
_SIZE_SHIFT = 18


class UnreadableCubin(ValueError):
    """Report bytes that are no cubin of a layout that is understood."""


class ParameterLayout(NamedTuple):
    """Say where a parameter lies in the packed argument bytes (bytes)."""

    offset: int
    size: int


def parameter_layouts(cubin: bytes) -> dict[str, tuple[ParameterLayout, ...]]:
    """Return the layouts of the parameters of each kernel, by its lowered name.

    Kernels of the prelude, which exist for their names alone, are left out.

    Raises
    ------
    UnreadableCubin
    """
    described = (
        (name.removeprefix(_INFORMATION), content)
        for name, content in _sections(cubin)
        if name.startswith(_INFORMATION)
    )
    return {
        kernel: tuple(layout for _, layout in sorted(_parameters(content)))
        for kernel, content in described
        if not is_of_prelude(kernel)
    }


def is_of_prelude(kernel: str) -> bool:
    """Return whether a lowered name is of a kernel that the prelude makes for its name alone."""
    return _PRELUDE_KERNEL.match(kernel) is not None


def symbols(cubin: bytes) -> tuple[str, ...]:
    """Return the names of all symbols."""
    sections = dict(_sections(cubin))
    names = sections.get(".strtab", b"")
    table = sections.get(".symtab", b"")
    found = (
        _text(names, entry[0])
        for entry in _SYMBOL.iter_unpack(table[: len(table) // _SYMBOL.size * _SYMBOL.size])
    )
    return tuple(name for name in found if name)


def _sections(cubin: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        _, machine, _, _, _, table, _, _, _, _, size, count, names_index = _HEADER.unpack_from(cubin)
        if cubin[:4] != MAGIC or machine != _MACHINE_CUDA:
            raise UnreadableCubin("not a cubin")
        headers = [_SECTION.unpack_from(cubin, table + index * size) for index in range(count)]
        names = _content(cubin, headers[names_index])
    except (struct.error, IndexError) as error:
        raise UnreadableCubin(f"damaged cubin: {error}") from None
    for header in headers:
        yield _text(names, header[0]), _content(cubin, header)


def _content(cubin: bytes, header: tuple[int, ...]) -> bytes:
    offset, size = header[4], header[5]
    return cubin[offset : offset + size]


def _text(names: bytes, offset: int) -> str:
    return names[offset : names.find(b"\0", offset)].decode("utf-8", "replace")


def _parameters(information: bytes) -> Iterator[tuple[int, ParameterLayout]]:
    """Yield ordinal and layout from the attribute records of a kernel."""
    position = 0
    while position + 4 <= len(information):
        form, attribute, length = struct.unpack_from("<BBH", information, position)
        position += 4
        if form != _WITH_BYTES:
            continue
        if attribute == _PARAMETER and length >= _PARAMETER_RECORD.size:
            _, ordinal, offset, packed = _PARAMETER_RECORD.unpack_from(information, position)
            yield ordinal, ParameterLayout(offset, packed >> _SIZE_SHIFT)
        position += length
