"""What the compilers for NVIDIA devices say of kernels' parameters."""

from __future__ import annotations

import shutil

import pytest
from cuda_support import ARCH, program
from signatures import CASES, SignatureCase

from gridstride.targets.base import Parameter
from gridstride.targets.cuda import elf
from gridstride.targets.cuda.compiler import Compiler
from gridstride.targets.cuda.itanium import UnknownMangling, parse, spell
from gridstride.targets.cuda.runtime import CudaTarget

# CUDA 13 and the host headers of nvcc differ in which of two equal integer types a name stands for.
_NVCC_CASES = [
    case
    for case in CASES
    if case.kernel in {"saxpy", "after_struct", "room::kernel", "fill<float, 4>", "half2s"}
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nvrtc_reports_the_signature(compiler: Compiler, case: SignatureCase) -> None:
    code = compiler.compile(program(case.text, case.kernel), ARCH)
    record = code.functions[case.kernel]
    assert record.signature == tuple(
        Parameter(name, ctype, offset) for name, offset, ctype in case.parameters
    )
    layouts = elf.parameter_layouts(code.code)[record.lowered_name]
    assert [(layout.offset, layout.size) for layout in layouts] == [
        (offset, ctype.size) for _, offset, ctype in case.parameters
    ]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
@pytest.mark.parametrize("case", _NVCC_CASES, ids=str)
def test_nvcc_reports_the_signature(compiler: Compiler, case: SignatureCase) -> None:
    record = compiler.compile(program(case.text, case.kernel, compiler="nvcc"), ARCH).functions[case.kernel]
    assert record.signature == tuple(
        Parameter(name, ctype, offset) for name, offset, ctype in case.parameters
    )


def test_ptx_reports_the_same_signature_as_a_cubin(compiler: Compiler) -> None:
    case = next(case for case in CASES if case.kernel == "after_struct")
    code = compiler.compile(program(case.text, case.kernel), "sm_9999")
    assert code.format == "ptx"
    assert code.functions[case.kernel].signature == tuple(
        Parameter(name, ctype, offset) for name, offset, ctype in case.parameters
    )


@pytest.mark.parametrize("arch", [ARCH, "sm_9999"], ids=["cubin", "ptx"])
def test_binaries_give_away_types_or_sizes(compiler: Compiler, cuda: CudaTarget, arch: str) -> None:
    text = """
    struct Point { double x; char tag; };
    extern "C" __global__ void plain(float* x, Point p, int n) {}
    __global__ void mangled(const float* x, int n) {}
    """
    code = compiler.compile(program(text, "plain", "mangled"), arch)
    functions = cuda.adopt(code.code, "binary").functions
    plain, mangled = functions["plain"].signature, functions[code.functions["mangled"].lowered_name].signature
    assert plain is not None
    assert mangled is not None
    assert [(p.offset, p.type.size, p.type.kind, p.type.name) for p in plain] == [
        (0, 8, "struct", ""), (8, 16, "struct", ""), (24, 4, "struct", ""),
    ]  # fmt: skip
    assert [(p.offset, p.type.size, p.type.name) for p in mangled] == [(0, 8, "const float *"), (8, 4, "int")]


@pytest.mark.parametrize(
    ("mangled", "spelled"),
    [
        ("plain", "plain"),
        ("_Z4nonev", "none()"),
        (
            "_ZN2ns1tIfLi3EEEvPT_NS_1BIS1_EEPKS4_",
            "ns::t<float, 3>(float *, ns::B<float>, const ns::B<float> *)",
        ),
        ("_Z1fPFviEPA4_KfPVd", "f(void (*)(int), const float (*)[4], volatile double *)"),
        (
            "_Z1fN4cuda3std3__47complexIfEES3_",
            "f(cuda::std::__4::complex<float>, cuda::std::__4::complex<float>)",
        ),
        ("_Z1gIJifEEvDpT_", "g<int, float>(int, float)"),
        ("_ZN12_GLOBAL__N_11kEPf", "(anonymous namespace)::k(float *)"),
        ("_Z1hILb1ELin2EEvPKc", "h<true, -2>(const char *)"),
    ],
)
def test_mangled_names_are_read(mangled: str, spelled: str) -> None:
    assert spell(parse(mangled)) == spelled


@pytest.mark.parametrize("mangled", ["_Z", "_Z9short", "_Z1fT_", "_ZN1aEE", "_Z1fDTplfp_fp0_E", "_Z1fS9_"])
def test_what_is_not_understood_is_refused(mangled: str) -> None:
    with pytest.raises(UnknownMangling):
        parse(mangled)
