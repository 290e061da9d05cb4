"""What the CPU target does not have is refused by name and line, before anything runs."""

from __future__ import annotations

import re

import pytest

import gridstride as gs
from gridstride.targets.cpu import device_names, diagnostics, rewrite
from gridstride.targets.cpu.edits import Refusal

REFUSED = [
    (name, section.refusal(name))
    for section in device_names.sections()
    for name in section.names
    if section.refusal(name)
]


def is_known_to_the_source_pass(name: str) -> bool:
    code = f"\n\nx = {name}<float>(0);"
    try:
        rewrite.refuse_unsupported(code.encode())
    except Refusal as refusal:
        return code.count("\n", 0, refusal.position) == 2
    return False


def test_p109_every_refused_name_is_named_with_its_line():
    """Those that the source pass does not know are found by the compiler; the table says what they are."""
    rest = [(name, reason) for name, reason in REFUSED if not is_known_to_the_source_pass(name)]
    assert len(rest) > 150
    groups = [item for item in rest if "::" in item[0] or item[0].startswith("curand")]
    plain = [item for item in rest if item not in groups]
    headers = "#include <cooperative_groups.h>\n#include <curand_kernel.h>\n"
    for names, include in ((plain, ""), (groups, headers)):
        body = "\n".join(f"{name}(0);" for name, _ in names)
        with pytest.raises(gs.CompileError) as caught:
            gs.RawKernel(f'{include}extern "C" __global__ void k() {{\n{body}\n}}', "k").compile()
        first = include.count("\n") + 2
        lines: dict[int, str] = {}
        for error in diagnostics.parse(caught.value.log):
            lines[error.line] = lines.get(error.line, "") + diagnostics.show(error, "")
        for line, (name, reason) in enumerate(names, first):
            word = name.rpartition("::")[2]
            assert word in lines[line], name
            assert f"{word} cannot run on the CPU target: {reason}" in lines[line], name


@pytest.mark.parametrize(
    "header", [header for section in device_names.sections() for header in section.headers]
)
def test_headers_of_refused_sections_say_why(header):
    with pytest.raises(gs.CompileError, match=rf"k\.cu:2:.*{re.escape(header)}") as caught:
        gs.RawKernel(f'\n#include <{header}>\nextern "C" __global__ void k() {{}}', "k").compile()
    assert device_names.refusals()[header] in str(caught.value)


def test_a_name_of_the_users_own_is_no_refused_one():
    code = """
    __device__ int cudaMalloc(int v) { return v + 1; }
    extern "C" __global__ void k(int* out) { out[0] = cudaMalloc(2); }"""
    gs.RawKernel(code, "k").compile()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "texture<float, 1, cudaReadModeElementType> t;",
            "a texture reference (`texture`), which CUDA 12 removed",
        ),
        ("surface<void, 2> s;", "a surface reference (`surface`), which CUDA 12 removed"),
        (
            "__device__ float f(cudaTextureObject_t t) { return tex2D<float>(t, 0, 0); }",
            "(`cudaTextureObject_t`)",
        ),
        ("__device__ float f(CUtexObject t) { return tex1Dfetch<float>(t, 0); }", "(`CUtexObject`)"),
        ("__device__ void f(unsigned long long s) { surf2Dwrite(1.0f, s, 0, 0); }", "(`surf2Dwrite`)"),
    ],
)
def test_textures_and_surfaces_are_named_as_they_are_written(line, words):
    with pytest.raises(gs.CompileError, match=r"k\.cu:2:") as caught:
        gs.RawKernel(f'\n{line}\nextern "C" __global__ void k() {{}}', "k").compile()
    assert f"{words} cannot run on the CPU target" in str(caught.value).replace(", cannot", " cannot")
