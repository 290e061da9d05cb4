"""Objects that show their memory by ``__cuda_array_interface__`` or ``__array_interface__``."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from gridstride.arrays._numpy import check_dtype
from gridstride.arrays.adapter import Adapter
from gridstride.arrays.view import (
    CUDA,
    HOST,
    UNKNOWN_DEVICE,
    ArrayView,
    Shape,
    strides_unless_contiguous,
)
from gridstride.errors import ArgumentTypeError, with_article

_LEGACY_DEFAULT_STREAM = 1  # how the CUDA array interface names the stream whose handle is 0


class InterfaceAdapter(Adapter):
    """Arrays of any library known only by an interface; they must bring their outputs."""

    name = "interface"
    makes_outputs = False

    def recognizes(self, kind: type, array: object) -> bool:
        return hasattr(array, "__cuda_array_interface__") or hasattr(array, "__array_interface__")

    def view(self, array: Any) -> ArrayView | None:
        try:
            return _view_of_interface(array)
        except (KeyError, IndexError, AttributeError) as error:
            raise _unreadable(array, repr(error)) from error

    def allocate(self, like: Any, shape: Shape, dtype: np.dtype[Any], stream: int) -> NoReturn:
        refuse_to_allocate(like)


def refuse_to_allocate(like: object) -> NoReturn:
    """Raise the TypeError for outputs wanted beside an array whose library is unknown."""
    raise TypeError(
        f"{with_article(type(like).__name__)} is known only by an interface. Pass the outputs, or an array of a "
        f"library: numpy.asarray, or from_dlpack of any, makes one without a copy"
    )


def _view_of_interface(array: Any) -> ArrayView | None:
    shown = getattr(array, "__cuda_array_interface__", None)
    if shown is not None:
        return _view(array, shown, CUDA, _device_of(array), _producer_stream(shown))
    shown = getattr(array, "__array_interface__", None)
    if shown is None:
        return None
    if not isinstance(shown.get("data"), tuple):  # the memory is a buffer, the object itself or another one
        return _buffer_view(array)
    return _view(array, shown, HOST, 0, None)


def _unreadable(array: Any, reason: str) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"{with_article(type(array).__name__)} shows an array interface that cannot be read: {reason}",
        expected="an array interface",
        got=type(array).__name__,
    )


def _view(
    array: Any, shown: dict[str, Any], device_type: int, device: int, producer_stream: int | None
) -> ArrayView:
    if shown.get("mask") is not None:
        raise ArgumentTypeError(
            f"{with_article(type(array).__name__)} with a mask would lose it: pass data and mask apart",
            expected="an array without a mask",
            got=type(array).__name__,
        )
    try:
        dtype = _dtype(shown)
    except (TypeError, ValueError) as error:
        raise _unreadable(array, f"typestr {shown['typestr']!r}") from error
    check_dtype(dtype)
    data, shape = shown["data"], shown["shape"]
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise _unreadable(array, f"data {data!r}")
    address, read_only = data
    if not isinstance(shape, tuple | list) or not all(isinstance(each, int) and each >= 0 for each in shape):
        raise _unreadable(array, f"shape {shape!r}")
    shape = tuple(shape)
    if not address and 0 not in shape:
        raise _unreadable(array, "its data is a null pointer")
    if not hasattr(address or 0, "__index__") or not 0 <= (address or 0) < 1 << 64:
        raise _unreadable(array, f"data {data!r}, which is no address")
    if (given := shown.get("strides")) is not None and len(given) != len(shape):
        raise _unreadable(array, f"strides {given!r} for shape {shape!r}")
    strides = strides_unless_contiguous(shape, shown.get("strides"), dtype.itemsize)
    return ArrayView(
        array,
        address or 0,
        dtype,
        shape,
        strides,
        device_type,
        device,
        bool(read_only),
        "interface",
        False,
        producer_stream,
    )


def _buffer_view(array: Any) -> ArrayView:
    try:
        seen = np.asarray(array)
    except (ValueError, TypeError) as error:
        raise _unreadable(array, str(error)) from error
    return _view(seen, seen.__array_interface__, HOST, 0, None)


def _dtype(shown: dict[str, Any]) -> np.dtype[Any]:
    typestr = shown["typestr"]
    description = shown.get("descr")
    if typestr[1] == "V" and description and description != [("", typestr)]:
        return np.lib.format.descr_to_dtype(description)  # drops the padding that NumPy names ''
    dtype: np.dtype[Any] = np.dtype(typestr)
    return dtype


def _device_of(array: Any) -> int:
    ask = getattr(array, "__dlpack_device__", None)
    return UNKNOWN_DEVICE if ask is None else int(ask()[1])


def _producer_stream(shown: dict[str, Any]) -> int | None:
    stream: int | None = shown.get("stream")
    if stream == 0:
        raise ValueError("__cuda_array_interface__ names stream 0, which the protocol forbids; use 1 or 2")
    return 0 if stream == _LEGACY_DEFAULT_STREAM else stream
