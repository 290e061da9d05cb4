"""Translate between NumPy's types and their C++ spellings."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

DType = np.dtype[Any]

_CTYPES: dict[str, str] = {
    "bool": "bool",
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long long",
    "uint64": "unsigned long long",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "float32": "float",
    "float64": "double",
    "complex64": "complex<float>",
    "complex128": "complex<double>",
}
_LONG = "int64" if ctypes.sizeof(ctypes.c_long) == 8 else "int32"
#: Fundamental types by their words in alphabetical order, since C++ allows any order.
_FUNDAMENTAL: dict[str, str] = {
    "bool": "bool",
    "char": "int8",
    "char signed": "int8",
    "char unsigned": "uint8",
    "short": "int16",
    "int short": "int16",
    "short signed": "int16",
    "int short signed": "int16",
    "short unsigned": "uint16",
    "int short unsigned": "uint16",
    "int": "int32",
    "signed": "int32",
    "int signed": "int32",
    "unsigned": "uint32",
    "int unsigned": "uint32",
    "long": _LONG,
    "int long": _LONG,
    "long signed": _LONG,
    "int long signed": _LONG,
    "long unsigned": f"u{_LONG}",
    "int long unsigned": f"u{_LONG}",
    "long long": "int64",
    "int long long": "int64",
    "long long signed": "int64",
    "int long long signed": "int64",
    "long long unsigned": "uint64",
    "int long long unsigned": "uint64",
    "float": "float32",
    "double": "float64",
}
_NAMED: dict[str, str] = {
    **{f"{sign}int{bits}_t": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "size_t": "uint64",
    "ptrdiff_t": "int64",
    "intptr_t": "int64",
    "uintptr_t": "uint64",
    "half": "float16",
    "__half": "float16",
    "float16": "float16",
    "nv_bfloat16": "bfloat16",
    "__nv_bfloat16": "bfloat16",
    "bfloat16": "bfloat16",
    "complex<float>": "complex64",
    "complex<double>": "complex128",
    "cuComplex": "complex64",
    "cuFloatComplex": "complex64",
    "cuDoubleComplex": "complex128",
}
#: The scalar dtypes of NumPy's own, which take many times as long to be made of their name and to be asked for it.
_DTYPES: dict[str, DType] = {name: np.dtype(name) for name in _CTYPES if name != "bfloat16"}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_QUALIFIERS = re.compile(r"\b(?:const|volatile)\b")
_NAMESPACES = re.compile(r"^(?:::)?(?:std::|cuda::std::|thrust::)?")


def ctype_of_dtype(dtype: DType | str) -> str:
    """Return the C++ spelling of a scalar dtype.

    Parameters
    ----------
    dtype : numpy.dtype or str
        One of `SCALAR_NAMES`.

    Raises
    ------
    TypeError
        For a dtype that has no CUDA C++ counterpart (strings, objects, dates, structures ...).
    """
    name = name_of_dtype(dtype_of_name(dtype) if isinstance(dtype, str) else dtype)
    try:
        return _CTYPES[name]
    except KeyError:
        raise TypeError(f"dtype {name} has no CUDA C++ counterpart; known are {', '.join(_CTYPES)}") from None


def dtype_of_ctype(spelling: str) -> DType | None:
    """Return the dtype of a C++ scalar type in any spelling, or None where it names none.

    Qualifiers are dropped, the words of fundamental types may stand in any order, and standard
    typedefs may carry their namespace: ``const unsigned``, ``long long int``, ``std::int32_t``.
    """
    words = _QUALIFIERS.sub(" ", spelling).split()
    name = _FUNDAMENTAL.get(" ".join(sorted(words)))
    if name is None:
        name = _NAMED.get(_NAMESPACES.sub("", "".join(words)))
    return None if name is None else dtype_of_name(name)


def name_of_dtype(dtype: DType) -> str:
    """Return a scalar dtype's name, ``bfloat16`` included; NumPy's own text for any other dtype."""
    return _NAMES.get(dtype) or ("bfloat16" if is_bfloat16(dtype) else dtype.name)


def dtype_of_name(name: str) -> DType:
    """Return the dtype of a name, ``bfloat16`` included; TypeError for an unknown one."""
    dtype = _DTYPES.get(name)
    if dtype is not None:
        return dtype
    if name == "bfloat16":
        return bfloat16()
    dtype = np.dtype(name)
    return dtype


def dtype_of(given: Any) -> DType:
    """Return the dtype of whatever NumPy or PyTorch takes for one, and of ``"bfloat16"``."""
    if isinstance(given, str):
        return dtype_of_name(given)
    module, _, name = str(given).rpartition(".")
    return dtype_of_name(name) if module == "torch" else np.dtype(given)


def scalars_of(dtype: DType) -> Iterator[DType]:
    """Yield the scalar dtypes that a dtype consists of: itself, or those of its fields."""
    if dtype.subdtype is not None:
        yield from scalars_of(dtype.subdtype[0])
    elif dtype.names and not is_bfloat16(dtype):
        for field in (dtype.fields or {}).values():
            yield from scalars_of(field[0])
    else:
        yield dtype


def has_shared_bytes(dtype: DType) -> bool:
    """Return whether two fields of a structure share bytes, as those of a union do."""
    if dtype.subdtype is not None:
        return has_shared_bytes(dtype.subdtype[0])
    found: Mapping[str, Any] = dtype.fields or {}
    fields = sorted((found[name] for name in dtype.names or ()), key=lambda field: field[1])
    ends = (field[1] + field[0].itemsize for field in fields)
    return any(end > field[1] for end, field in zip(ends, fields[1:], strict=False)) or any(
        has_shared_bytes(field[0]) for field in fields
    )


@cache
def bfloat16() -> DType:
    """Return the dtype that stands for bfloat16.

    It is ml_dtypes' where that is installed. Else it is a two-byte structure that no arithmetic
    accepts: it compares equal to itself alone, so that views of bfloat16 memory still match
    bfloat16 parameters.
    """
    try:
        import ml_dtypes
    except ImportError:
        return _BFLOAT16_BITS
    dtype: DType = np.dtype(ml_dtypes.bfloat16)
    return dtype


def is_bfloat16(dtype: DType) -> bool:
    """Return whether a dtype stands for bfloat16."""
    # Asking for the name first keeps ml_dtypes unimported where nobody uses it.
    return dtype.itemsize == 2 and dtype.kind == "V" and (dtype.name == "bfloat16" or dtype == _BFLOAT16_BITS)


def fits_bfloat16(dtype: DType) -> bool:
    """Return whether bfloat16 holds every value of a dtype."""
    return is_bfloat16(dtype) or (dtype.kind in "biu" and dtype.itemsize == 1)


_BFLOAT16_BITS: DType = np.dtype([("bfloat16", np.uint16)])

#: Names of the scalar dtypes that have a C++ counterpart.
SCALAR_NAMES = tuple(_CTYPES)
