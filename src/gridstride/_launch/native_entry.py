"""Describe a launch that succeeded, so that the compiled fast path can replay it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gridstride import _dtypes, _native, config
from gridstride._arguments.place import Place
from gridstride._arguments.raw import packed_size
from gridstride.arrays import CUDA, HOST
from gridstride.targets import registry
from gridstride.targets.base import (
    CType,
    Function,
    FunctionAttributes,
    LaunchConfig,
    Limits,
    Signature,
)

NO_ARRAYS = 0
_CODES = {name: code for code, name in enumerate(_native.DTYPES)}
_CODES_OF_NUMPY = {np.dtype(name): code for name, code in _CODES.items() if name != "bfloat16"}
_EVERY_DTYPE = (1 << len(_native.DTYPES)) - 1


def native_entry(
    place: Place,
    device_type: int,
    function: Function,
    signature: Signature | None,
    limits: Limits,
    attributes: FunctionAttributes,
    configuration: LaunchConfig,
) -> _native.Entry | None:
    """Return what the compiled fast path needs to replay a launch, or None where it cannot.

    Parameters
    ----------
    place : Place
        Where the launch ran.
    device_type : int
        DLPack's number for the device of the first array; `NO_ARRAYS` where there was none.
    function, signature, limits, attributes, configuration
        What ran, and what its launches are checked against.
    """
    mode = config.native_mode()
    if signature is None or mode == "off" or not _native.is_compiled() or not is_settled(place, device_type):
        return None
    routine = function.native_entry()
    parameters = None if routine is None else _parameters(signature)
    size = packed_size(signature)
    if routine is None or parameters is None or size > _native.MOST_BYTES:
        return None
    return _native.Entry(
        *routine,
        device_type,
        place.device if device_type == CUDA else 0,
        _exact(place, configuration),
        limits.max_grid,
        limits.max_block,
        min(limits.max_threads_per_block, attributes.max_threads_per_block),
        max(0, limits.shared_memory_per_block_optin - attributes.shared_size_bytes),
        configuration.cooperative,
        mode == "verify",
        size,
        parameters,
        place.target,
        function,
        partial(registry.serving, device_type) if device_type != NO_ARRAYS else registry.default,
    )


def native_routine(function: Function) -> tuple[int, int] | None:
    """Return the address of a function's launch routine and of its record; None where nothing is replayed."""
    return function.native_entry() if config.native_mode() != "off" and _native.is_compiled() else None


def is_settled(place: Place, device_type: int) -> bool:
    """Return whether such a first array, or none, always means this place."""
    if device_type == CUDA:
        return CUDA in place.target.device_types
    # A host array that is passed by value decides nothing; the current device decides among several.
    is_served = device_type == NO_ARRAYS or (device_type == HOST and HOST in place.target.device_types)
    return is_served and place.target.device_count() == 1


def _exact(place: Place, configuration: LaunchConfig) -> tuple[_native.Extent, _native.Extent, int] | None:
    if place.target.specializes_on(configuration) == ():
        return None
    return configuration.grid, configuration.block, configuration.shared_mem


def _parameters(signature: Signature) -> tuple[_native.Parameter, ...] | None:
    described = []
    for _, ctype, offset in signature:
        found = _pointer(ctype.pointee, offset) if ctype.kind == "pointer" else _scalar(ctype, offset)
        if found is None:
            return None
        described.append(found)
    return tuple(described)


def _scalar(ctype: CType, offset: int) -> _native.Parameter | None:
    if ctype.kind != "scalar" or ctype.dtype is None:
        return None
    return _make_parameter((False, False, 0, dtype_code(ctype.dtype), 0, 0, offset))


def _pointer(pointee: CType | None, offset: int) -> _native.Parameter | None:
    taken = 0 if pointee is None else _taken(pointee)
    if pointee is None or not taken:
        return None
    unit = pointee.size if pointee.kind == "vector" else 0
    return _make_parameter((True, not pointee.const, taken, -1, pointee.alignment, unit, offset))


#: In half the time that the class itself takes.
_make_parameter: Callable[[tuple[Any, ...]], _native.Parameter] = partial(tuple.__new__, _native.Parameter)


def _taken(pointee: CType) -> int:
    """Return the dtypes of the arrays that a pointer takes, one bit each; 0 where more must be asked."""
    if pointee.kind == "void":
        return _EVERY_DTYPE
    if pointee.kind == "pointer":
        return _bits("uint64")
    if pointee.name == "char":
        return _bits("int8", "uint8")
    if pointee.kind == "scalar" and pointee.dtype is not None:
        return 1 << dtype_code(pointee.dtype)
    if pointee.kind == "vector" and pointee.dtype is not None:
        return 1 << dtype_code(pointee.dtype) | _pairs(pointee, pointee.dtype)
    return 0


def _pairs(pointee: CType, component: np.dtype[np.generic]) -> int:
    """Return the complex dtype that is laid out as a vector of two."""
    pairs = {"float32": "complex64", "float64": "complex128"}
    return _bits(pairs[component.name]) if pointee.components == 2 and component.name in pairs else 0


def _bits(*names: str) -> int:
    return sum(1 << _CODES[name] for name in names)


def dtype_code(dtype: np.dtype[np.generic]) -> int:
    """Return the number of a scalar dtype in C code."""
    code = _CODES_OF_NUMPY.get(dtype)
    if code is not None:
        return code
    if _dtypes.is_bfloat16(dtype):
        _native.know_bfloat16(dtype)
    return _CODES[_dtypes.name_of_dtype(dtype)]
