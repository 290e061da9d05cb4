"""Objects that export DLPack."""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    Structure,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any, NoReturn

import numpy as np

from gridstride import _dtypes
from gridstride.arrays._interface import refuse_to_allocate
from gridstride.arrays.adapter import Adapter
from gridstride.arrays.view import (
    CUDA,
    HOST,
    MANAGED,
    PINNED,
    ArrayView,
    Shape,
    strides_unless_contiguous,
)
from gridstride.errors import ArgumentTypeError, with_article

_READ_ONLY = 0x1
_BFLOAT, _BOOL = 4, 6
_KINDS = {0: "int", 1: "uint", 2: "float", 5: "complex"}
_LEGACY_DEFAULT_STREAM = 1  # how DLPack names the stream whose handle is 0


class DLPackAdapter(Adapter):
    """Arrays of any library known only by DLPack; they must bring their outputs."""

    name = "dlpack"
    makes_outputs = False

    def recognizes(self, kind: type, array: object) -> bool:
        return hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__")

    def view(self, array: Any) -> ArrayView:
        device_type, device = array.__dlpack_device__()
        if device_type not in (HOST, CUDA, PINNED, MANAGED):
            raise ArgumentTypeError(
                f"{with_article(type(array).__name__)} lies on a device of DLPack type {int(device_type)}, "
                f"which no target runs on: copy it to the host or to a CUDA device",
                expected="host or CUDA memory",
                got=f"DLPack device type {int(device_type)}",
            )
        on_gpu = device_type in (CUDA, MANAGED)
        try:
            capsule = _export(array, _LEGACY_DEFAULT_STREAM if on_gpu else None)
            tensor, read_only = _open(capsule)
        except BufferError as error:
            raise ArgumentTypeError(
                f"{with_article(type(array).__name__)} cannot be read by DLPack: {error}",
                expected="an array that DLPack exports",
                got=type(array).__name__,
            ) from error
        dtype = _dtype(tensor.dtype)
        shape = tuple(tensor.shape[: tensor.ndim])
        strides = (
            tuple(step * dtype.itemsize for step in tensor.strides[: tensor.ndim]) if tensor.strides else None
        )
        return ArrayView(
            (array, capsule),  # the capsule gives the memory back when it goes
            (tensor.data or 0) + tensor.byte_offset,
            dtype,
            shape,
            strides_unless_contiguous(shape, strides, dtype.itemsize),
            int(device_type),
            int(device) if on_gpu else 0,
            read_only,
            "dlpack",
            False,
            0 if on_gpu else None,
        )

    def allocate(self, like: Any, shape: Shape, dtype: np.dtype[Any], stream: int) -> NoReturn:
        refuse_to_allocate(like)


class _Version(Structure):
    _fields_ = (("major", c_uint32), ("minor", c_uint32))


class _Device(Structure):
    _fields_ = (("type", c_int32), ("index", c_int32))


class _DataType(Structure):
    _fields_ = (("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16))


class _Tensor(Structure):
    _fields_ = (
        ("data", c_void_p),
        ("device", _Device),
        ("ndim", c_int32),
        ("dtype", _DataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


class _VersionedTensor(Structure):
    _fields_ = (
        ("version", _Version),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", _Tensor),
    )


_has_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer_of = ctypes.PYFUNCTYPE(c_size_t, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _export(array: Any, stream: int | None) -> object:
    keywords = {} if stream is None else {"stream": stream}
    try:
        return array.__dlpack__(max_version=(1, 0), **keywords)
    except TypeError:  # a producer older than DLPack 1.0
        return array.__dlpack__(**keywords)


def _open(capsule: object) -> tuple[Any, bool]:
    if _has_name(capsule, b"dltensor_versioned"):
        managed = _VersionedTensor.from_address(_pointer_of(capsule, b"dltensor_versioned"))
        if managed.version.major != 1:
            raise BufferError(f"DLPack version {managed.version.major} is not known; 1 is")
        return managed.tensor, bool(managed.flags & _READ_ONLY)
    return _Tensor.from_address(_pointer_of(capsule, b"dltensor")), False


def _dtype(exported: Any) -> np.dtype[Any]:
    code, bits, lanes = exported.code, exported.bits, exported.lanes
    if lanes == 1 and code == _BFLOAT and bits == 16:
        return _dtypes.bfloat16()
    if lanes == 1 and code == _BOOL and bits == 8:
        return np.dtype(bool)
    name = f"{_KINDS.get(code)}{bits}"
    if lanes == 1 and name in _dtypes.SCALAR_NAMES:
        return np.dtype(name)
    raise ArgumentTypeError(
        f"a DLPack array of type code {code}, {bits} bits, {lanes} lanes has no CUDA C++ counterpart",
        expected="integers, floating point or complex numbers",
        got=f"DLPack type code {code}, {bits} bits, {lanes} lanes",
    )
