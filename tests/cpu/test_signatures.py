"""Signatures as the host compiler reports them."""

from __future__ import annotations

import pytest
from signatures import CASES as SHARED_CASES
from signatures import SignatureCase

from gridstride.targets.base import CType, Parameter
from gridstride.targets.cpu import compiler

from .conftest import MakeProgram

PREAMBLE = """
struct Pair { char a; double b; };
struct alignas(16) Wide { float v[5]; };
namespace geometry { struct Point { float x, y; }; }
template <class T, int N> struct Fixed { T values[N]; };
enum Color { red, green };
union Either { int i; float f; };
typedef float real;
typedef const real* reals;
using index_t = long long;
struct Incomplete;
"""

#: parameter as declared: kind, canonical name, size, alignment, dtype
CASES: dict[str, tuple[str, str, int, int, str | None]] = {
    "bool p": ("scalar", "bool", 1, 1, "bool"),
    "char p": ("scalar", "char", 1, 1, "int8"),
    "signed char p": ("scalar", "signed char", 1, 1, "int8"),
    "unsigned char p": ("scalar", "unsigned char", 1, 1, "uint8"),
    "short p": ("scalar", "short", 2, 2, "int16"),
    "unsigned short int p": ("scalar", "unsigned short", 2, 2, "uint16"),
    "int p": ("scalar", "int", 4, 4, "int32"),
    "unsigned p": ("scalar", "unsigned int", 4, 4, "uint32"),
    "long p": ("scalar", "long", 8, 8, "int64"),
    "unsigned long p": ("scalar", "unsigned long", 8, 8, "uint64"),
    "long long p": ("scalar", "long long", 8, 8, "int64"),
    "size_t p": ("scalar", "unsigned long", 8, 8, "uint64"),
    "int64_t p": ("scalar", "long long", 8, 8, "int64"),
    "uint8_t p": ("scalar", "unsigned char", 1, 1, "uint8"),
    "float p": ("scalar", "float", 4, 4, "float32"),
    "const double p": ("scalar", "double", 8, 8, "float64"),
    "real p": ("scalar", "float", 4, 4, "float32"),
    "const index_t p": ("scalar", "long long", 8, 8, "int64"),
    "Color p": ("scalar", "Color", 4, 4, "uint32"),
    "Pair p": ("struct", "Pair", 16, 8, None),
    "const Wide p": ("struct", "Wide", 32, 16, None),
    "geometry::Point p": ("struct", "geometry::Point", 8, 4, None),
    "Fixed<double, 3> p": ("struct", "Fixed<double, 3>", 24, 8, None),
    "Either p": ("struct", "Either", 4, 4, None),
    "float2 p": ("vector", "float2", 8, 8, "float32"),
    "float3 p": ("vector", "float3", 12, 4, "float32"),
    "float4 p": ("vector", "float4", 16, 16, "float32"),
    "uchar4 p": ("vector", "uchar4", 4, 4, "uint8"),
    "uint3 p": ("vector", "uint3", 12, 4, "uint32"),
    "double2 p": ("vector", "double2", 16, 16, "float64"),
    "longlong2 p": ("vector", "longlong2", 16, 16, "int64"),
    "float* p": ("pointer", "float *", 8, 8, None),
    "const float* __restrict__ p": ("pointer", "const float *", 8, 8, None),
    "reals p": ("pointer", "const float *", 8, 8, None),
    "float* const p": ("pointer", "float *", 8, 8, None),
    "float** p": ("pointer", "float **", 8, 8, None),
    "const float* const* p": ("pointer", "const float *const *", 8, 8, None),
    "void* p": ("pointer", "void *", 8, 8, None),
    "const void* p": ("pointer", "const void *", 8, 8, None),
    "int p[]": ("pointer", "int *", 8, 8, None),
    "uint4* p": ("pointer", "uint4 *", 8, 8, None),
    "const Pair* p": ("pointer", "const Pair *", 8, 8, None),
    "Incomplete* p": ("pointer", "Incomplete *", 8, 8, None),
    "unsigned char* p": ("pointer", "unsigned char *", 8, 8, None),
    "volatile int* p": ("pointer", "int *", 8, 8, None),
}
WITH_HEADERS: dict[str, tuple[str, str, int, int, str | None]] = {
    "__half p": ("scalar", "__half", 2, 2, "float16"),
    "half2 p": ("vector", "__half2", 4, 4, "float16"),
    "const __half* p": ("pointer", "const __half *", 8, 8, None),
    "__nv_bfloat16 p": ("scalar", "__nv_bfloat16", 2, 2, "bfloat16"),
    "__nv_bfloat162 p": ("vector", "__nv_bfloat162", 4, 4, "bfloat16"),
    "thrust::complex<float> p": ("scalar", "complex<float>", 8, 8, "complex64"),
    "const thrust::complex<double>* p": ("pointer", "const complex<double> *", 8, 8, None),
    "cuDoubleComplex p": ("vector", "double2", 16, 16, "float64"),
}


@pytest.mark.parametrize("case", SHARED_CASES, ids=str)
def test_the_signature_that_every_target_reports(make_program: MakeProgram, case: SignatureCase) -> None:
    record = compiler.compile_program(make_program(case.text, case.kernel)).functions[case.kernel]
    assert record.signature == tuple(
        Parameter(name, ctype, offset) for name, offset, ctype in case.parameters
    )


def _parameters(make_program: MakeProgram, preamble: str, declarations: list[str]) -> list[Parameter]:
    """Compile one kernel a declaration, all in one text, and return the parameters."""
    kernels = "\n".join(f"__global__ void k{index}({text}) {{}}" for index, text in enumerate(declarations))
    names = [f"k{index}" for index in range(len(declarations))]
    code = compiler.compile_program(make_program(preamble + kernels, *names))
    signatures = [code.functions[name].signature for name in names]
    return [signature[0] for signature in signatures if signature]


def _row(ctype: CType) -> tuple[str, str, int, int, str | None]:
    return ctype.kind, ctype.name, ctype.size, ctype.alignment, ctype.dtype and ctype.dtype.name


def test_every_kind_of_parameter(make_program: MakeProgram) -> None:
    found = _parameters(make_program, PREAMBLE, list(CASES))
    assert {text: _row(parameter.type) for text, parameter in zip(CASES, found, strict=True)} == CASES
    assert {(parameter.name, parameter.offset) for parameter in found} == {("p", 0)}


def test_types_that_need_a_header(make_program: MakeProgram) -> None:
    pytest.importorskip("ml_dtypes")
    headers = "".join(
        f"#include <{name}>\n" for name in ("cuda_fp16.h", "cuda_bf16.h", "cuComplex.h", "thrust/complex.h")
    )
    found = _parameters(make_program, headers, list(WITH_HEADERS))
    assert {
        text: _row(parameter.type) for text, parameter in zip(WITH_HEADERS, found, strict=True)
    } == WITH_HEADERS


def test_what_a_pointer_points_to_is_described(make_program: MakeProgram) -> None:
    texts = [
        "const float4* p",
        "float* const* p",
        "const Pair* p",
        "Incomplete* p",
        "void* p",
        "void (*p)(int)",
    ]
    pointees = [parameter.type.pointee for parameter in _parameters(make_program, PREAMBLE, texts)]
    assert [(p.kind, p.size, p.components, p.const) for p in pointees if p] == [
        ("vector", 16, 4, True),
        ("pointer", 8, 1, True),
        ("struct", 16, 1, True),
        ("struct", 0, 1, False),
        ("void", 0, 1, False),
        ("function", 0, 1, False),
    ]


def test_offsets_follow_alignments(make_program: MakeProgram) -> None:
    text = PREAMBLE + "__global__ void k(char a, double b, bool c, float4 d, short e, Wide f, char g) {}"
    signature = compiler.compile_program(make_program(text, "k")).functions["k"].signature
    assert signature is not None
    assert [parameter.offset for parameter in signature] == [0, 8, 16, 32, 48, 64, 96]


def test_names_of_parameters_come_from_the_text(make_program: MakeProgram) -> None:
    text = "template <class T> __global__ void k(T* out, const T* __restrict__, int n = 3) {}"
    signature = compiler.compile_program(make_program(text, "k<float>")).functions["k<float>"].signature
    assert [(parameter.name, parameter.type.name) for parameter in signature or ()] == [
        ("out", "float *"),
        ("", "const float *"),
        ("n", "int"),
    ]


def test_a_kernel_without_parameters_has_an_empty_signature(make_program: MakeProgram) -> None:
    assert (
        compiler.compile_program(make_program("__global__ void k() {}", "k")).functions["k"].signature == ()
    )
