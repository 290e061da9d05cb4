"""Arrays, memory pointers and addresses passed for pointer parameters."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from gridstride import _dtypes, arrays
from gridstride._arguments.slot import Slot
from gridstride._arguments.structs import LayoutQuery, check_components, check_layout
from gridstride.arrays.view import ArrayView
from gridstride.errors import with_article
from gridstride.targets.base import Access, CType

_CHAR = (np.dtype(np.int8), np.dtype(np.uint8))
_ADDRESS = np.dtype(np.uint64)
#: Memory pointers hold bytes without a type, so they serve any pointer.
_UNTYPED_MEMORY = "memory"


def pointer_argument(
    slot: Slot, value: Any, view: ArrayView | None, layout_of: LayoutQuery
) -> tuple[int, Access | None]:
    """Return the address for a pointer parameter, and the access it means.

    Raises
    ------
    TypeError
        For anything but an array of the right dtype, C-contiguous, aligned and writable where the
        kernel may write; ``None``; or ``ctypes.c_void_p``.
    """
    if value is None:
        return 0, None
    if isinstance(value, ctypes.c_void_p):
        return value.value or 0, None
    if view is None:
        raise slot.wrong_type(value, _no_array_advice(value))
    pointee = slot.parameter.type.pointee
    assert pointee is not None
    if view.library != _UNTYPED_MEMORY:
        _check_dtype(slot, value, view, pointee, layout_of)
    _check_layout(slot, value, view, pointee)
    view = arrays.resolved(view)
    return view.address, Access(view.owner, view.address, view.nbytes, not pointee.const)


def _no_array_advice(value: Any) -> str:
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return "Pass the array itself; for an address you vouch for write ctypes.c_void_p(address)"
    return "Pass an array, None for a null pointer, or ctypes.c_void_p"


def _check_dtype(slot: Slot, value: Any, view: ArrayView, pointee: CType, layout_of: LayoutQuery) -> None:
    if pointee.kind == "void":
        return
    if pointee.kind == "function":
        raise slot.wrong_type(value, "A function pointer takes None or ctypes.c_void_p")
    if pointee.kind == "pointer":
        if view.dtype != _ADDRESS:
            raise slot.wrong_type(value, "A pointer to pointers takes a uint64 array of addresses")
    elif pointee.kind == "vector":
        _check_vector_dtype(slot, value, view, pointee)
    elif pointee.kind == "struct":
        if view.dtype.names:
            check_layout(slot, value, view.dtype, layout_of)
        else:
            check_components(slot, value, view, layout_of)
    elif not _same_dtype(view.dtype, pointee):
        expected = _dtypes.name_of_dtype(pointee.dtype) if pointee.dtype is not None else pointee.name
        raise slot.wrong_type(
            value, f"Pass an array of {expected} (`x.astype({expected!r})`), or change the parameter's type"
        )


def _same_dtype(dtype: np.dtype[Any], pointee: CType) -> bool:
    if pointee.name == "char":
        return dtype in _CHAR
    if pointee.dtype is not None and _dtypes.is_bfloat16(pointee.dtype):
        return _dtypes.is_bfloat16(dtype)
    return dtype == pointee.dtype


def _check_vector_dtype(slot: Slot, value: Any, view: ArrayView, pointee: CType) -> None:
    assert pointee.dtype is not None
    if view.dtype.names and not _dtypes.is_bfloat16(view.dtype):
        if (
            view.dtype.itemsize == pointee.size
            and _flat_components(view.dtype) == (pointee.dtype,) * pointee.components
        ):
            return
    elif _is_pair(view.dtype, pointee):
        return
    elif _dtypes.name_of_dtype(view.dtype) == _dtypes.name_of_dtype(pointee.dtype):
        elements, rest = divmod(view.nbytes, pointee.size)
        if not rest:
            return
        raise slot.wrong_type(
            value, f"{view.nbytes} bytes are {elements} whole `{pointee.name}` and {rest} bytes"
        )
    raise slot.wrong_type(
        value,
        f"Pass an array of {_dtypes.name_of_dtype(pointee.dtype)} whose bytes are whole `{pointee.name}`, "
        f"or a structured array",
    )


def _is_pair(dtype: np.dtype[Any], pointee: CType) -> bool:
    assert pointee.dtype is not None
    return (
        dtype.kind == "c"
        and pointee.components == 2
        and dtype.itemsize == 2 * pointee.dtype.itemsize == pointee.size
    )


def _flat_components(dtype: np.dtype[Any]) -> tuple[np.dtype[Any], ...]:
    ordered = sorted((dtype.fields or {}).values(), key=lambda field: field[1])
    packed = all(field[1] == k * field[0].itemsize for k, field in enumerate(ordered))
    return tuple(field[0] for field in ordered) if packed else ()


def _check_layout(slot: Slot, value: Any, view: ArrayView, pointee: CType) -> None:
    if not view.c_contiguous:
        raise slot.wrong_type(
            value,
            "It is not C-contiguous and a bare pointer knows no strides: pass a contiguous copy "
            "(ascontiguousarray), or declare the parameter as gridstride::view<T, N> from <gridstride/view.h>",
            got=f"{with_article(str(view.dtype))} array of shape {tuple(view.shape)} with strides {view.strides}",
        )
    if view.size and pointee.alignment > 1 and view.address % pointee.alignment:
        raise slot.wrong_type(
            value,
            f"Its address {view.address:#x} is not a multiple of the {pointee.alignment} bytes the type needs",
        )
    check_writable(slot, value, view, written=not pointee.const)


def check_writable(slot: Slot, value: Any, view: ArrayView, *, written: bool) -> None:
    """Raise TypeError where the kernel may write to memory that must not or cannot be written."""
    if written and view.read_only:
        raise slot.wrong_type(
            value,
            "It is read-only: pass a writable copy, or declare the parameter const if the kernel only reads",
        )
    if written and view.lazy:
        raise slot.wrong_type(
            value,
            "It is a conjugate or negative view, so writes would be lost: pass resolve_conj().resolve_neg()",
        )
