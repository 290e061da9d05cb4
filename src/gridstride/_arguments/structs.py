"""Structs: NumPy's layout of a structured dtype against the compiler's layout of the C++ type."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from gridstride import arrays
from gridstride._arguments.slot import Slot
from gridstride.arrays.view import HOST, ArrayView
from gridstride.errors import CompileError


class StructLayout(NamedTuple):
    """Hold what the compiler says of a struct: bytes, and (offset, size) of each member by dotted path."""

    size: int
    alignment: int
    members: Mapping[str, tuple[int, int]]


#: Asks the compiler for the layout of the struct of parameter `position` with these members, or, where they are
#: none of the struct's, with the other ones.
LayoutQuery = Callable[[int, tuple[str, ...], tuple[str, ...]], StructLayout]


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
    # Where names inside of a field are none of C++'s, it may still stand for an array or a vector type.
    whole = tuple(path for path, _ in _members(dtype, into_rows=False))
    try:
        layout = layout_of(slot.position, tuple(members), whole)
    except CompileError as error:
        raise slot.wrong_type(
            value,
            f"The fields {', '.join(members)} must be the struct's members by name, so that the layout can be "
            f"checked; the compiler said: {str(error).splitlines()[0]}",
            got=f"dtype {dtype}",
        ) from error
    problems = [
        f"member `{path}` is at offset {offset} with {size} bytes, "
        f"the dtype has offset {members[path][0]} with {members[path][1]}"
        for path, (offset, size) in layout.members.items()
        if members[path] != (offset, size)
    ]
    if layout.size != dtype.itemsize:
        problems.insert(0, f"the struct has {layout.size} bytes, the dtype {dtype.itemsize}")
    if problems:
        raise slot.wrong_type(
            value,
            f"{'; '.join(problems)}. numpy.dtype(..., align=True) lays fields out as C++ does",
            got=f"dtype {dtype}",
        )


def check_components(slot: Slot, value: Any, view: ArrayView, layout_of: LayoutQuery) -> None:
    """Raise TypeError where an array of plain numbers cannot be an array of structs made of such numbers."""
    layout = layout_of(slot.position, (), ())
    itemsize = view.dtype.itemsize
    # Above 8 bytes an alignment is asked for; up to there it is the largest member's.
    fits = layout.alignment in (itemsize, 16, 32, 64, 128) and layout.size % itemsize == 0
    if not fits:
        raise slot.wrong_type(
            value,
            f"Pass an array of what the struct consists of ({layout.size} bytes, aligned to {layout.alignment}), "
            f"or a structured array with its members",
        )
    if view.nbytes % layout.size:
        raise slot.wrong_type(
            value, f"{view.nbytes} bytes are no whole number of structs of {layout.size} bytes"
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


def _members(
    dtype: np.dtype[Any], prefix: str = "", base: int = 0, *, into_rows: bool = True
) -> Iterator[tuple[str, tuple[int, int]]]:
    assert dtype.fields is not None
    for name in dtype.names or ():
        field, offset = dtype.fields[name][:2]
        yield prefix + name, (base + offset, field.itemsize)
        if field.names and (into_rows or not _is_row(field)):
            yield from _members(field, f"{prefix}{name}.", base + offset, into_rows=into_rows)


def _is_row(dtype: np.dtype[Any]) -> bool:
    """Return whether a structured dtype is a row of elements of one dtype, under whatever names."""
    assert dtype.fields is not None
    parts = [dtype.fields[name] for name in dtype.names or ()]
    first = parts[0][0]
    is_row = all(part[:2] == (first, index * first.itemsize) for index, part in enumerate(parts))
    return is_row and dtype.itemsize == len(parts) * first.itemsize
