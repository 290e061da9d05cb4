"""Every device name with values compiles for a GPU, in the same calls that give them."""

from __future__ import annotations

import pytest
from device_cases import sections
from device_cases.case import program

from gridstride.targets.base import Program
from gridstride.targets.cuda import nvrtc
from gridstride.targets.cuda.compiler import Compiler
from gridstride.targets.options import parse_options


@pytest.mark.parametrize("section", sections.VALUES)
def test_calls_compile_for_a_gpu(section):
    preamble, cases = sections.VALUES[section]
    text, groups = program(sections.on_a_gpu(cases), preamble)
    kernels = tuple(f"group_{number}" for number in range(len(groups)))
    options = parse_options(("--std=c++17", "--fmad=false"), target="cuda")
    code = Compiler(nvrtc.find()).compile(Program(text, section, options, kernels=kernels), "sm_90")
    assert set(code.functions) == set(kernels)
