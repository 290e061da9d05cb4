"""NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_void_p
from typing import Any

import numpy as np

from gridstride.arrays.adapter import Adapter, Allocation, Leave, Malloc, descends_from
from gridstride.arrays.view import HOST, ArrayView, Shape, make_view
from gridstride.errors import ArgumentTypeError

_C_CONTIGUOUS, _WRITEABLE = 0x1, 0x400  # NPY_ARRAY_* of numpy/ndarraytypes.h
_MASKED = frozenset({"MaskedArray"})
_REMEDIES = {
    "O": "convert it to numbers",
    "U": "encode the text as integers",
    "S": "view it as uint8",
    "T": "encode the text as integers",
    "M": "view it as int64",
    "m": "view it as int64",
    "g": "convert it to float64",
    "G": "convert it to complex128",
}


class NumPyAdapter(Adapter):
    """NumPy arrays and their subclasses; their memory is the host's and knows no streams."""

    name = "numpy"
    allocation_device_type = HOST

    def __init__(self) -> None:
        self._known_dtypes: set[np.dtype[Any]] = set()

    def recognizes(self, kind: type, array: object) -> bool:
        return issubclass(kind, np.ndarray)

    def refusal(self, kind: type) -> str | None:
        if descends_from(kind, "numpy", _MASKED):
            return "would lose its mask: pass x.filled(value), or x.data and x.mask apart"
        return None

    def view(self, array: np.ndarray[Any, Any]) -> ArrayView:
        dtype = array.dtype
        if dtype not in self._known_dtypes:
            check_dtype(dtype)
            self._known_dtypes.add(dtype)
        flags = array.flags.num
        return make_view(
            (
                array,
                address_of(array),
                dtype,
                array.shape,
                None if flags & _C_CONTIGUOUS else array.strides,
                HOST,
                0,
                not flags & _WRITEABLE,
                "numpy",
                False,
                None,
            )
        )

    def allocate(self, like: Any, shape: Shape, dtype: np.dtype[Any], stream: int) -> np.ndarray[Any, Any]:
        return np.empty(shape, dtype)

    def allocation(self, like: Any, shape: Shape, dtype: np.dtype[Any]) -> Allocation:
        return Allocation(np.empty, (shape, dtype), {})

    def memory_of(self, array: np.ndarray[Any, Any]) -> object | None:
        while isinstance(array.base, np.ndarray):
            array = array.base
        return array

    def enter_allocator(self, malloc: Malloc | None) -> Leave:
        from gridstride.arrays import _numpy_memory

        return _numpy_memory.enter_allocator(malloc)

    def wrap(
        self, memory: Any, shape: Shape, dtype: np.dtype[Any], strides: Shape | None = None
    ) -> np.ndarray[Any, Any]:
        return np.ndarray(shape, dtype, buffer=np.asarray(memory), strides=strides)


def _address_by_interface(array: np.ndarray[Any, Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _fastest_address() -> Callable[[np.ndarray[Any, Any]], int]:
    """Return the quickest way to an array's address that is right on this interpreter.

    NumPy's ABI puts the data pointer right behind the object header. Reading it there takes a tenth
    of the time that any public attribute takes; where a trial does not confirm it, the attribute is used.
    """
    header = object.__basicsize__
    at = c_void_p.from_address

    def address_in_object(array: np.ndarray[Any, Any]) -> int:
        return at(id(array) + header).value or 0

    trial = np.zeros(3)
    trials = trial, trial[1:], trial[::-1], np.zeros(())
    right = all(address_in_object(array) == _address_by_interface(array) for array in trials)
    return address_in_object if right else _address_by_interface


address_of = _fastest_address()


def check_dtype(dtype: np.dtype[Any]) -> None:
    """Raise ArgumentTypeError for a dtype that kernels cannot take, with what to do instead."""
    remedy = _REMEDIES.get("O" if dtype.hasobject and dtype.kind != "T" else dtype.kind)
    remedy = remedy or _REMEDIES.get(dtype.char)
    if remedy:
        raise ArgumentTypeError(
            f"an array of dtype {dtype} has no CUDA C++ counterpart: {remedy}",
            expected="numbers or structures of numbers",
            got=f"dtype {dtype}",
        )
    if not dtype.isnative:
        raise ArgumentTypeError(
            f"an array of dtype {dtype} has its bytes swapped: pass x.astype(x.dtype.newbyteorder('='))",
            expected="native byte order",
            got=f"dtype {dtype}",
        )
