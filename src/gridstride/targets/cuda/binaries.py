"""Object code that users bring: cubin, fatbin and PTX."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from ctypes import byref, c_char_p, c_size_t, c_uint, c_void_p

from gridstride.errors import CUDAError
from gridstride.targets.base import FunctionRecord, ObjectCode
from gridstride.targets.cuda import elf
from gridstride.targets.cuda.driver import INVALID_VALUE, Driver
from gridstride.targets.cuda.elf import ParameterLayout
from gridstride.targets.cuda.signatures import read_kernel_name

Layouts = dict[str, tuple[ParameterLayout, ...]]

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


def object_code_from_binary(data: bytes, in_fatbin: Callable[[bytes], Layouts]) -> ObjectCode:
    """Return object code with the signatures that the bytes give away, by lowered name.

    Mangled names tell types; of a C symbol only the sizes are known, so its parameters are structs
    without a name.

    Parameters
    ----------
    data : bytes
        A cubin, a fatbin or PTX.
    in_fatbin : callable
        Returns what lies in a fatbin, which is compressed: `layouts_of_module` of the module it is loaded as.

    Raises
    ------
    ValueError
        For anything else, and for a damaged cubin.
    """
    form = recognize(data)
    if form is None:
        raise ValueError(f"{data[:16]!r}... is no cubin, fatbin or PTX")
    read = {"cubin": elf.parameter_layouts, "ptx": _ptx_layouts, "fatbin": in_fatbin}[form]
    functions = {
        name: FunctionRecord(name, read_kernel_name(name, layouts)) for name, layouts in read(data).items()
    }
    return ObjectCode(form, data, functions)


def layouts_of_module(driver: Driver, module: int) -> Layouts:
    """Return the layouts of the parameters of each kernel of a loaded module, by its lowered name.

    Raises
    ------
    NotImplementedError
        Where the driver is too old to tell them.
    """
    if not driver.address("cuFuncGetParamInfo"):
        raise NotImplementedError(
            "drivers before CUDA 12.4 do not say what a fatbin holds: give the cubin or the PTX"
        )
    count = c_uint()
    driver.cuModuleGetFunctionCount(byref(count), module)
    functions = (c_void_p * count.value)()
    driver.cuModuleEnumerateFunctions(functions, count, module)
    names = {_name_of(driver, function): function for function in functions}
    return {
        name: tuple(_parameters_of(driver, function))
        for name, function in names.items()
        if not elf.is_of_prelude(name)
    }


def _name_of(driver: Driver, function: int | None) -> str:
    name = c_char_p()
    driver.cuFuncGetName(byref(name), function)
    return (name.value or b"").decode()


def _parameters_of(driver: Driver, function: int | None) -> Iterator[ParameterLayout]:
    offset, size = c_size_t(), c_size_t()
    for index in itertools.count():
        try:
            driver.cuFuncGetParamInfo(function, index, byref(offset), byref(size))
        except CUDAError as error:
            if error.code != INVALID_VALUE:
                raise
            return
        yield ParameterLayout(offset.value, size.value)


def _ptx_layouts(data: bytes) -> Layouts:
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
