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
