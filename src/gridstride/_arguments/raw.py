"""Bind the arguments of a raw kernel: convert each by the C++ signature the compiler reported."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gridstride._arguments.pointers import pointer_argument
from gridstride._arguments.scalars import scalar_bytes, vector_bytes
from gridstride._arguments.slot import Slot
from gridstride._arguments.strided import is_view, view_bytes
from gridstride._arguments.structs import LayoutQuery, struct_bytes
from gridstride.arrays.view import ArrayView
from gridstride.errors import ArgumentTypeError
from gridstride.targets.base import Access, CType, Signature


class BoundCall(NamedTuple):
    """Hold the argument bytes at the parameters' offsets and the memory that the launch touches."""

    packed: bytes
    accesses: tuple[Access, ...]


def bind_raw(
    kernel: str,
    signature: Signature,
    arguments: Sequence[Any],
    views: Sequence[ArrayView | None],
    layout_of: LayoutQuery,
) -> BoundCall:
    """Convert the arguments of a raw kernel.

    Parameters
    ----------
    kernel : str
        For messages.
    signature : tuple of Parameter
    arguments : sequence
        What the caller passed.
    views : sequence of ArrayView or None
        One for each argument that is an array.
    layout_of : callable
        Asks the compiler for the layout of a struct.

    Raises
    ------
    TypeError
        For a wrong count, dtype, layout or kind; it names kernel, parameter, expected and got.
    OverflowError
        For a number that the parameter cannot hold.
    """
    if len(arguments) != len(signature):
        raise _wrong_count(kernel, signature, arguments)
    packed = bytearray(packed_size(signature))
    accesses = []
    for position, (parameter, value, view) in enumerate(zip(signature, arguments, views, strict=True)):
        content, access = _convert(Slot(kernel, position, parameter), value, view, layout_of)
        packed[parameter.offset : parameter.offset + len(content)] = content
        if access is not None:
            accesses.append(access)
    return BoundCall(bytes(packed), tuple(accesses))


def packed_size(signature: Signature) -> int:
    """Return the bytes of a parameter block."""
    size = 0
    for _, ctype, offset in signature:
        size = max(size, offset + ctype.size)
    return size


def _convert(
    slot: Slot, value: Any, view: ArrayView | None, layout_of: LayoutQuery
) -> tuple[bytes, Access | None]:
    ctype = slot.parameter.type
    if ctype.kind == "pointer":
        address, access = pointer_argument(slot, value, view, layout_of)
        return struct.pack("<Q", address), access
    if is_view(ctype):
        return view_bytes(slot, value, view)
    if ctype.kind == "scalar":
        return scalar_bytes(slot, ctype, value), None
    if ctype.kind == "vector":
        return vector_bytes(slot, ctype, value), None
    if ctype.name:
        return struct_bytes(slot, value, layout_of), None
    return _untyped(slot, ctype, value, view)


def _untyped(slot: Slot, ctype: CType, value: Any, view: ArrayView | None) -> tuple[bytes, Access | None]:
    """Convert for a parameter of which a binary module tells nothing but the size."""
    if ctype.size == 8 and view is not None and view.shape != ():
        if not view.c_contiguous:
            raise slot.wrong_type(value, "It is not C-contiguous: pass a contiguous copy (ascontiguousarray)")
        return struct.pack("<Q", view.address), Access(
            view.owner, view.address, view.nbytes, not view.read_only
        )
    if value is None and ctype.size == 8:
        return bytes(8), None
    if isinstance(value, np.generic) and value.dtype.itemsize == ctype.size:
        return value.tobytes(), None
    raise slot.wrong_type(
        value,
        f"The binary module tells only that the parameter has {ctype.size} bytes: pass a NumPy scalar of that size"
        + (" or an array" if ctype.size == 8 else ""),
    )


def _wrong_count(kernel: str, signature: Signature, arguments: Sequence[Any]) -> ArgumentTypeError:
    parameters = ", ".join(f"{parameter.type.name} {parameter.name}".strip() for parameter in signature)
    return ArgumentTypeError(
        f"`{kernel}` takes {len(signature)} arguments ({parameters}), got {len(arguments)}. "
        f"Pass them as a tuple: kernel(grid, block, (a, b, ...))",
        kernel=kernel,
        expected=str(len(signature)),
        got=str(len(arguments)),
    )
