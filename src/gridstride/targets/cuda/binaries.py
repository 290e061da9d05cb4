"""Object code that users bring: cubin, fatbin and PTX."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gridstride.targets.base import FunctionRecord, ObjectCode
from gridstride.targets.cuda import elf
from gridstride.targets.cuda.elf import ParameterLayout
from gridstride.targets.cuda.signatures import read_kernel_name

_FATBIN_MAGIC = (0xBA55ED50).to_bytes(4, "little")
_PTX = re.compile(rb"^\s*\.version\s+\d+\.\d+\s*$.*?^\s*\.target\s", re.MULTILINE | re.DOTALL)
_PTX_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PTX_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*(?:\(([^)]*)\))?")
_PTX_PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+)?\.([a-z]+)(\d+)\s+(?:\.ptr[^\[,]*\s)?[\w$]+\s*(?:\[(\d+)\])?"
)


def recognize(data: bytes) -> str | None:
    """Return the format of object code: "cubin", "fatbin", "ptx", or None for anything else."""
    if data.startswith(elf.MAGIC):
        return "cubin"
    if data.startswith(_FATBIN_MAGIC):
        return "fatbin"
    return "ptx" if _PTX.search(data) else None


def object_code_from_binary(data: bytes) -> ObjectCode:
    """Return object code with the signatures that the bytes give away, by lowered name.

    Mangled names tell types; of a C symbol only the sizes are known, so its parameters are structs
    without a name. A fatbin tells nothing: its functions are found when it is loaded.

    Parameters
    ----------
    data : bytes
        A cubin, a fatbin or PTX.

    Raises
    ------
    ValueError
        For anything else, and for a damaged cubin.
    """
    form = recognize(data)
    if form is None:
        raise ValueError(f"{data[:16]!r}... is no cubin, fatbin or PTX")
    functions = {
        name: FunctionRecord(name, read_kernel_name(name, layouts))
        for name, layouts in _layouts(form, data).items()
    }
    return ObjectCode(form, data, functions)


def _layouts(form: str, data: bytes) -> dict[str, tuple[ParameterLayout, ...]]:
    if form == "cubin":
        return elf.parameter_layouts(data)
    return _ptx_layouts(data) if form == "ptx" else {}


def _ptx_layouts(data: bytes) -> dict[str, tuple[ParameterLayout, ...]]:
    text = _PTX_COMMENT.sub("", data.decode("utf-8", "replace"))
    return {
        match[1]: tuple(_lay_out(match[2] or ""))
        for match in _PTX_ENTRY.finditer(text)
        if not elf.is_of_prelude(match[1])
    }


def _lay_out(parameters: str) -> Iterator[ParameterLayout]:
    end = 0
    for match in _PTX_PARAMETER.finditer(parameters):
        element = int(match[3]) // 8
        size, alignment = element * int(match[4] or 1), int(match[1] or element)
        offset = -(-end // alignment) * alignment
        end = offset + size
        yield ParameterLayout(offset, size)
