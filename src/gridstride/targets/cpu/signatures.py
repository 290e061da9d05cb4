"""Signatures as Python values, from the tables that the compiler filled in a kernel library."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from gridstride import _dtypes
from gridstride._syntax.names import integer_type
from gridstride.targets.base import CType, Parameter, Signature
from gridstride.targets.cpu import abi

_FLOATS = {2: "float16", 4: "float32", 8: "float64"}
_COMPLEX = {8: "complex64", 16: "complex128"}
_INTEGER_NAMES = {1: "signed char", 2: "short", 4: "int", 8: "long"}
#: The names of CUDA's vectors, which are plain classes to the compiler.
_VECTOR = re.compile(r"(?:(u)?(?:char|short|int|long|longlong)|(float|double))([1-4])(?:_16a|_32a)?")
_INTEGER_WORDS = re.compile(r"(?:(?:signed|unsigned|char|short|int|long)\s*)+")


def signature(kernel: abi.Kernel, names: Sequence[str]) -> Signature:
    """Return the signature of a kernel; `names` are its parameters' names ("" where there is none)."""
    parameters = [kernel.parameters[index] for index in range(kernel.parameter_count)]
    if len(names) != len(parameters):
        names = [""] * len(parameters)
    return tuple(
        Parameter(name, ctype(parameter.type.contents, top_level=True), parameter.offset)
        for name, parameter in zip(names, parameters, strict=True)
    )


def ctype(record: abi.Type, *, top_level: bool = False) -> CType:
    """Return the value for a type record; a parameter's own const is dropped."""
    const = bool(record.is_const) and not top_level
    kind = abi.Kind(record.kind)
    pretty = _spelling((record.pretty or b"").decode())
    if kind is abi.Kind.POINTER:
        pointee = ctype(record.pointee.contents)
        return CType(
            "pointer", _pointer_name(pointee), record.size, record.alignment, const=const, pointee=pointee
        )
    if kind is abi.Kind.STRUCT and (match := _VECTOR.fullmatch(pretty)):
        component = abi.Kind.FLOAT if match[2] else abi.Kind.UNSIGNED if match[1] else abi.Kind.SIGNED
        return _vector(pretty, record, component, int(match[3]), const)
    if kind is abi.Kind.VECTOR:
        return _vector(pretty, record, abi.Kind(record.component_kind), record.components, const)
    if kind in (abi.Kind.VOID, abi.Kind.STRUCT, abi.Kind.FUNCTION):
        name = "void" if kind is abi.Kind.VOID else pretty
        return CType(kind.name.lower(), name, record.size, record.alignment, const=const)
    dtype = _scalar_dtype(abi.Kind(record.component_kind) if kind is abi.Kind.ENUM else kind, record.size)
    return CType(
        "scalar", _scalar_name(kind, record.size, pretty), record.size, record.alignment, dtype, 1, const
    )


def _vector(name: str, record: abi.Type, component: abi.Kind, components: int, const: bool) -> CType:
    dtype = _scalar_dtype(component, record.size // components)
    return CType("vector", name, record.size, record.alignment, dtype, components, const)


def _pointer_name(pointee: CType) -> str:
    if pointee.kind == "pointer":
        return f"{pointee.name}{'const ' if pointee.const else ''}*"
    if pointee.kind == "function":
        return pointee.name.replace("(", "(*)(", 1)
    return f"{'const ' if pointee.const else ''}{pointee.name} *"


def _scalar_dtype(kind: abi.Kind, size: int) -> np.dtype[Any]:
    match kind:
        case abi.Kind.BOOL:
            return np.dtype(np.bool_)
        case abi.Kind.CHAR | abi.Kind.SIGNED:
            return np.dtype(f"int{8 * size}")
        case abi.Kind.UNSIGNED:
            return np.dtype(f"uint{8 * size}")
        case abi.Kind.BFLOAT16:
            return _dtypes.dtype_of_name("bfloat16")
        case abi.Kind.COMPLEX:
            return np.dtype(_COMPLEX[size])
        case _:
            return np.dtype(_FLOATS[size]) if size in _FLOATS else np.dtype(np.longdouble)


def _scalar_name(kind: abi.Kind, size: int, pretty: str) -> str:
    if _INTEGER_WORDS.fullmatch(pretty):
        return integer_type(pretty.split())
    if pretty:
        return pretty
    match kind:
        case abi.Kind.BOOL:
            return "bool"
        case abi.Kind.CHAR:
            return "char"
        case abi.Kind.SIGNED | abi.Kind.ENUM:
            return _INTEGER_NAMES[size]
        case abi.Kind.UNSIGNED:
            return "unsigned char" if size == 1 else f"unsigned {_INTEGER_NAMES[size]}"
        case abi.Kind.BFLOAT16:
            return "__nv_bfloat16"
        case abi.Kind.COMPLEX:
            return "complex<float>" if size == 8 else "complex<double>"
        case _:
            return {2: "__half", 4: "float", 8: "double"}.get(size, "long double")


def _spelling(pretty: str) -> str:
    """Return a type as every target spells it, from a compiler's spelling of a function that has it."""
    _, _, spelled = pretty.partition("__type = ")
    pretty = spelled.partition(";")[0] if ";" in spelled else spelled.removesuffix("]")
    return re.sub(r"\bthrust::(?=complex<)", "", pretty).replace("> >", ">>").strip()
