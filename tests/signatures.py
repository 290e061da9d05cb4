"""Kernels and the signatures that every target's compiler must report for them, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gridstride import _dtypes
from gridstride.targets.base import CType


@dataclass(frozen=True)
class SignatureCase:
    """Name a kernel of a text, and its parameters: name, offset in bytes, type."""

    text: str
    kernel: str
    parameters: tuple[tuple[str, int, CType], ...]

    def __str__(self) -> str:
        return self.kernel


def scalar(name: str, dtype: Any, *, const: bool = False) -> CType:
    dtype = _dtypes.dtype_of_name("bfloat16") if dtype == "bfloat16" else np.dtype(dtype)
    alignment = dtype.itemsize if dtype.kind == "c" else max(dtype.alignment, dtype.itemsize)
    return CType("scalar", name, dtype.itemsize, alignment, dtype, const=const)


def vector(name: str, dtype: Any, components: int, alignment: int, *, const: bool = False) -> CType:
    dtype = _dtypes.dtype_of_name("bfloat16") if dtype == "bfloat16" else np.dtype(dtype)
    return CType("vector", name, components * dtype.itemsize, alignment, dtype, components, const)


def struct(name: str, size: int, alignment: int, *, const: bool = False) -> CType:
    return CType("struct", name, size, alignment, const=const)


def pointer(pointee: CType, name: str = "", *, const: bool = False) -> CType:
    spelled = f"{'const ' if pointee.const else ''}{pointee.name} *"
    return CType("pointer", name or spelled, 8, 8, const=const, pointee=pointee)


FLOAT = scalar("float", "f4")
DOUBLE = scalar("double", "f8")
INT = scalar("int", "i4")
CONST_FLOAT = scalar("float", "f4", const=True)
VOID = CType("void", "void", 0, 0)


def kernel(name: str, text: str, *parameters: tuple[str, int, CType]) -> SignatureCase:
    return SignatureCase(text, name, parameters)


def one(name: str, declaration: str, ctype: CType, before: str = "") -> SignatureCase:
    """Return the case of a C kernel with one parameter ``x``."""
    return kernel(name, f'{before}\nextern "C" __global__ void {name}({declaration}) {{}}', ("x", 0, ctype))


_POINT = "struct Point { char tag; double x; int n; };"
_HALF = "#include <cuda_fp16.h>"
_BFLOAT16 = "#include <cuda_bf16.h>"
_COMPLEX = "#include <cupy/complex.cuh>"
_TEMPLATE = "template <class T, int N> __global__ void fill(T* out, const T* in, T value, int n) {}"

CASES = (
    kernel("nothing", "__global__ void nothing() {}"),
    kernel(
        "saxpy",
        'extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {}',
        ("a", 0, FLOAT),
        ("x", 8, pointer(CONST_FLOAT)),
        ("y", 16, pointer(FLOAT)),
        ("n", 24, INT),
    ),
    kernel(
        "mangled",
        "__global__ void mangled(float* x, long n) {}",
        ("x", 0, pointer(FLOAT)),
        ("n", 8, scalar("long", "i8")),
    ),
    kernel("room::kernel", "namespace room { __global__ void kernel(int* x) {} }", ("x", 0, pointer(INT))),
    one("booleans", "bool x", scalar("bool", "?")),
    one("characters", "char x", scalar("char", "i1")),
    one("signed_characters", "signed char x", scalar("signed char", "i1")),
    one("unsigned_characters", "unsigned char x", scalar("unsigned char", "u1")),
    one("shorts", "short x", scalar("short", "i2")),
    one("unsigned_shorts", "unsigned short x", scalar("unsigned short", "u2")),
    one("unsigned_integers", "unsigned x", scalar("unsigned int", "u4")),
    one("unsigned_longs", "unsigned long x", scalar("unsigned long", "u8")),
    one("long_longs", "long long x", scalar("long long", "i8")),
    one("unsigned_long_longs", "unsigned long long x", scalar("unsigned long long", "u8")),
    one("doubles", "double x", DOUBLE),
    one("constants", "const double x", DOUBLE),
    one("fixed_width", "uint8_t x", scalar("unsigned char", "u1")),
    one("sizes", "size_t x", scalar("unsigned long", "u8")),
    one("typedefs", "element* x", pointer(FLOAT), "typedef float element;"),
    one(
        "typedef_of_reference",
        "plain x",
        FLOAT,
        "typedef const float& reference; typedef float plain;\n"
        "__device__ float read(reference r) { return r; }",
    ),
    one("aliases", "list<float> x", pointer(CONST_FLOAT), "template <class T> using list = const T*;"),
    one("restricted", "const float* __restrict__ x", pointer(CONST_FLOAT)),
    one("constant_pointer", "float* const x", pointer(FLOAT)),
    one("voids", "void* x", pointer(VOID)),
    one("constant_voids", "const void* x", pointer(CType("void", "void", 0, 0, const=True))),
    one("pointers_to_pointers", "float** x", pointer(pointer(FLOAT), "float **")),
    one(
        "constant_pointers",
        "const float* const* x",
        pointer(pointer(CONST_FLOAT, const=True), "const float *const *"),
    ),
    one("array_parameter", "float x[16]", pointer(FLOAT)),
    one("structs", "Point x", struct("Point", 24, 8), _POINT),
    one("struct_pointers", "const Point* x", pointer(struct("Point", 24, 8, const=True)), _POINT),
    one("incomplete", "Hidden* x", pointer(struct("Hidden", 0, 0)), "struct Hidden;"),
    kernel(
        "after_struct",
        f'{_POINT}\nextern "C" __global__ void after_struct(char c, Point p, char d, float* x) {{}}',
        ("c", 0, scalar("char", "i1")),
        ("p", 8, struct("Point", 24, 8)),
        ("d", 32, scalar("char", "i1")),
        ("x", 40, pointer(FLOAT)),
    ),
    one(
        "template_struct",
        "Pair<float, 2> x",
        struct("Pair<float, 2>", 8, 4),
        "template <class T, int N> struct Pair { T items[N]; };",
    ),
    one("enumerations", "Color x", scalar("Color", "u1"), "enum class Color : unsigned char { red };"),
    one("float2s", "float2 x", vector("float2", "f4", 2, 8)),
    one("float3s", "float3 x", vector("float3", "f4", 3, 4)),
    one("float4s", "const float4* x", pointer(vector("float4", "f4", 4, 16, const=True))),
    one("uchar4s", "uchar4 x", vector("uchar4", "u1", 4, 4)),
    one("int1s", "int1 x", vector("int1", "i4", 1, 4)),
    one("double2s", "double2 x", vector("double2", "f8", 2, 16)),
    one("longlong2s", "longlong2 x", vector("longlong2", "i8", 2, 16)),
    one("halves", "__half x", scalar("__half", "f2"), _HALF),
    one("half_pointers", "half* x", pointer(scalar("__half", "f2")), _HALF),
    one("half2s", "__half2* x", pointer(vector("__half2", "f2", 2, 4)), _HALF),
    one(
        "bfloat16s",
        "const __nv_bfloat16* x",
        pointer(scalar("__nv_bfloat16", "bfloat16", const=True)),
        _BFLOAT16,
    ),
    one(
        "complex64s", "const complex<float>* x", pointer(scalar("complex<float>", "c8", const=True)), _COMPLEX
    ),
    one("complex128s", "thrust::complex<double> x", scalar("complex<double>", "c16"), _COMPLEX),
    kernel(
        "fill<float, 4>",
        _TEMPLATE,
        ("out", 0, pointer(FLOAT)),
        ("in", 8, pointer(CONST_FLOAT)),
        ("value", 16, FLOAT),
        ("n", 20, INT),
    ),
    kernel(
        "fill<unsigned char, 1>",
        _TEMPLATE,
        ("out", 0, pointer(scalar("unsigned char", "u1"))),
        ("in", 8, pointer(scalar("unsigned char", "u1", const=True))),
        ("value", 16, scalar("unsigned char", "u1")),
        ("n", 20, INT),
    ),
    kernel(
        "gather<Pair<double>>",
        "template <class T> struct Pair { T a, b; };\n"
        "template <class P> __global__ void gather(P pair, const P* all) {}",
        ("pair", 0, struct("Pair<double>", 16, 8)),
        ("all", 16, pointer(struct("Pair<double>", 16, 8, const=True))),
    ),
)
