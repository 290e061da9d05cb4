"""Structs: NumPy's layout of a structured dtype against the compiler's layout of the C++ type."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from gridstride import arrays
from gridstride._arguments.slot import Slot
from gridstride.arrays.view import HOST
from gridstride.errors import CompileError


class StructLayout(NamedTuple):
    """Hold what the compiler says of a struct: bytes, and (offset, size) of each member by dotted path."""

    size: int
    members: Mapping[str, tuple[int, int]]


#: Asks the compiler for the layout of the struct of parameter `position` with these members.
LayoutQuery = Callable[[int, tuple[str, ...]], StructLayout]


def struct_bytes(slot: Slot, value: Any, layout_of: LayoutQuery) -> bytes:
    """Return the bytes of a struct passed by value, checked against the compiler's layout.

    Accepted are ``numpy.void``, a structured array of one element, and a ``ctypes.Structure`` of
    the right size (ctypes follows C's layout itself).
    """
    if isinstance(value, ctypes.Structure):
        if ctypes.sizeof(value) != slot.parameter.type.size:
            raise slot.wrong_type(
                value, f"The struct has {slot.parameter.type.size} bytes, got {ctypes.sizeof(value)}"
            )
        return bytes(value)
    element = _structured_scalar(value)
    if element is None:
        raise slot.wrong_type(
            value, "Pass a structured NumPy scalar (numpy.void) or an array of one such element"
        )
    check_layout(slot, value, element.dtype, layout_of)
    return element.tobytes()


def check_layout(slot: Slot, value: Any, dtype: np.dtype[Any], layout_of: LayoutQuery) -> None:
    """Raise TypeError where a structured dtype is laid out differently from the C++ struct."""
    members = dict(_members(dtype))
    try:
        layout = layout_of(slot.position, tuple(members))
    except CompileError as error:
        raise slot.wrong_type(
            value,
            f"The fields {', '.join(members)} must be the struct's members by name, so that the layout can be "
            f"checked; the compiler said: {str(error).splitlines()[0]}",
            got=f"dtype {dtype}",
        ) from error
    problems = [
        f"member `{path}` is at offset {layout.members[path][0]} with {layout.members[path][1]} bytes, "
        f"the dtype has offset {offset} with {size}"
        for path, (offset, size) in members.items()
        if layout.members[path] != (offset, size)
    ]
    if layout.size != dtype.itemsize:
        problems.insert(0, f"the struct has {layout.size} bytes, the dtype {dtype.itemsize}")
    if problems:
        raise slot.wrong_type(
            value,
            f"{'; '.join(problems)}. numpy.dtype(..., align=True) lays fields out as C++ does",
            got=f"dtype {dtype}",
        )


def _structured_scalar(value: Any) -> np.void | None:
    if isinstance(value, np.void) and value.dtype.names:
        return value
    if isinstance(value, np.generic | int | float | complex | str | bytes) or value is None:
        return None
    view = arrays.view(value)
    if view is None or view.device_type != HOST or not view.dtype.names:
        return None
    array = np.asarray(value)
    element: np.void | None = array.reshape(1)[0] if array.size == 1 else None
    return element


def _members(dtype: np.dtype[Any], prefix: str = "", base: int = 0) -> Iterator[tuple[str, tuple[int, int]]]:
    assert dtype.fields is not None
    for name in dtype.names or ():
        field, offset = dtype.fields[name][:2]
        yield prefix + name, (base + offset, field.itemsize)
        if field.names:
            yield from _members(field, f"{prefix}{name}.", base + offset)
