"""The device headers that all targets share, compiled for a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

import gridstride
from gridstride._syntax import lexical
from gridstride.targets.base import Program
from gridstride.targets.cuda import includes, nvrtc
from gridstride.targets.cuda.compiler import Compiler
from gridstride.targets.options import parse_options

FOLDER = Path(gridstride.__file__).parent / "include"
SEARCHED = (FOLDER / "std", FOLDER / "fallback")
NAMES = sorted(
    str(path.relative_to(next((f for f in SEARCHED if path.is_relative_to(f)), FOLDER)))
    for path in FOLDER.rglob("*")
    if path.is_file()
)
USES = """
extern "C" __global__ void kernel(
    thrust::complex<float>* z, gridstride::view<double, 3> v, cuDoubleComplex* c, float* f) {
    static_assert(std::is_same<std::remove_cv<const int>::type, int32_t>::value && INT64_MAX == LLONG_MAX, "");
    static_assert(std::numeric_limits<float>::max() == FLT_MAX && !std::is_convertible<int*, float>::value, "");
    GRIDSTRIDE_FOR(i, v.shape(0)) v(i, 0, 1) = std::max(v(i, 0, 0), 1.0) * CUDART_PI;
    *z = exp(*z) / 2.0 + pow(*z, 2) - thrust::polar(abs(*z), arg(*z));
    *c = cuCdiv(*c, make_cuDoubleComplex(1, 2));
    std::swap(f[0], f[1]);
    f[2] = std::sin(f[3]) + std::move(f[4]) + std::abs(f[5]);
}"""


@pytest.mark.parametrize("std", ["c++14", "c++17", "c++20"])
def test_all_compile(std):
    text = "".join(f"#include <{name}>\n" for name in NAMES) + USES
    program = Program(text, "shared", parse_options((f"--std={std}",), target="cuda"), kernels=("kernel",))
    code = Compiler(nvrtc.find()).compile(program, "sm_90")
    assert "kernel" in code.functions


def test_no_comment_of_ours_has_an_include():
    for root in includes.HEADER_ROOTS:
        for path in root.rglob("*"):
            if path.is_file():
                text = path.read_bytes()
                masked = lexical.mask(text)
                assert len(includes._INCLUDE.findall(text)) == len(includes._INCLUDE.findall(masked)), path
                assert b"__has_include" not in text
