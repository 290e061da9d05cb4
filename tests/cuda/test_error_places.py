"""Messages of NVRTC point at the user's file, line and column."""

from __future__ import annotations

from pathlib import Path

import error_places
import pytest
from cuda_support import ARCH, program

from gridstride.errors import CompileError
from gridstride.targets.cuda import nvrtc
from gridstride.targets.cuda.compiler import Compiler


@pytest.mark.parametrize("case", error_places.PLACES)
def test_a_message_points_at_the_mistake(tmp_path: Path, case: str) -> None:
    place = error_places.PLACES[case]
    options = (error_places.write_headers(tmp_path), "--std=c++17")
    with pytest.raises(CompileError) as caught:
        Compiler(nvrtc.find()).compile(program(place.text, "k", options=options), ARCH)
    error_places.check(caught.value, place)


def test_a_message_of_the_assembler_points_at_the_statement() -> None:
    text = """extern "C" __global__ void k(int* x) {
    asm("{\\n\\t"
        "mov.u32 %0, 1;\\n\\t"
        "frobnicate.b32 %0, %1;\\n\\t"
        "}" : "=r"(x[0]) : "r"(1));
}"""
    with pytest.raises(CompileError) as caught:
        Compiler(nvrtc.find()).compile(program(text, "k"), ARCH)
    error_places.check(caught.value, error_places.Place(text, 4, ("frobnicate",)))
