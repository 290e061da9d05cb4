"""Strided arrays passed by value as ``gridstride::view<T, N>`` (include/gridstride/view.h)."""

from __future__ import annotations

import re
import struct
from typing import Any

from gridstride import _dtypes
from gridstride._arguments.pointers import check_writable
from gridstride._arguments.slot import Slot
from gridstride.arrays.view import ArrayView
from gridstride.targets.base import Access, CType

_VIEW = re.compile(r"gridstride::view<\s*(const\s+)?(.+?)(\s+const)?\s*,\s*(\d+)[ul]*\s*>")


def is_view(ctype: CType) -> bool:
    """Return whether a parameter's type is ``gridstride::view<T, N>``."""
    return _VIEW.fullmatch(ctype.name) is not None


def element_of_view(ctype: CType) -> CType:
    """Return the type of a view's elements; its dtype is None where it is no scalar."""
    match = _VIEW.fullmatch(ctype.name)
    assert match is not None
    dtype = _dtypes.dtype_of_ctype(match[2])
    size = dtype.itemsize if dtype is not None else 0
    kind = "struct" if dtype is None else "scalar"
    return CType(kind, match[2], size, size, dtype, const=bool(match[1] or match[3]))


def view_bytes(slot: Slot, value: Any, view: ArrayView | None) -> tuple[bytes, Access | None]:
    """Return the bytes of a view (pointer, N extents, N strides in elements) over any strided array."""
    match = _VIEW.fullmatch(slot.parameter.type.name)
    assert match is not None
    element = element_of_view(slot.parameter.type)
    written, dtype, ndim = not element.const, element.dtype, int(match[4])
    if view is None:
        raise slot.wrong_type(value, f"Pass an array of {ndim} dimensions")
    if dtype is not None and view.dtype != dtype:
        raise slot.wrong_type(value, f"Pass an array of {dtype.name}")
    if len(view.shape) != ndim:
        raise slot.wrong_type(value, f"Pass an array of {ndim} dimensions")
    strides = _strides(view)
    if any(stride % view.dtype.itemsize for stride in strides):
        raise slot.wrong_type(value, f"Its strides {strides} are not whole elements")
    check_writable(slot, value, view, written=written)
    elements = (stride // view.dtype.itemsize for stride in strides)
    packed = struct.pack(f"<Q{2 * ndim}q", view.address, *view.shape, *elements)
    low, high = view.extent
    return packed, Access(view.owner, low, high - low, written)


def _strides(view: ArrayView) -> tuple[int, ...]:
    if view.strides is not None:
        return view.strides
    strides = []
    step = view.dtype.itemsize
    for length in reversed(view.shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))
