"""Conversions to integers that nobody wrote: what the compiler says of them, and what becomes of the text."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

import gridstride as gs
from gridstride.targets.cpu import implicit, toolchain
from gridstride.targets.cpu.edits import Rewritten

LOG = """k.cu: In function 'void f(int*, const float*)':
k.cu:3:14: warning: conversion from 'float' to 'int' may change value
k.cu:4:14: warning: conversion from 'double' to 'float' may change value
k.cu: In function 'void g()':
k.cu:9:2: warning: unused variable 'j'
"""


def place(column):
    return {"line": 1, "byte-column": column}


def told(text, *expressions):
    items = []
    for expression, caret, kind in expressions:
        start = text.index(expression) + 1
        items.append({
            "message": f"conversion from 'float' to '{kind}' may change value",
            "locations": [{"caret": place(text.index(caret, start - 1) + 1), "start": place(start),
                           "finish": place(start + len(expression) - 1)}],
        })  # fmt: skip
    return json.dumps(items)


def test_the_users_log_is_without_them():
    assert implicit.told_of(LOG)
    assert implicit.without(LOG) == LOG[LOG.index("k.cu: In function 'void g()'") :]
    assert not implicit.told_of(LOG.replace("to 'int'", "to 'float'"))
    assert implicit.told_of(
        "x: warning: conversion from 'float' to 'size_t' {aka 'long unsigned int'} may change value"
    )
    assert not implicit.told_of(
        "x: warning: conversion from 'double' to 'real' {aka 'float'} may change value"
    )
    assert implicit.without("plain\n") == "plain\n"


def test_expressions_become_calls():
    text = "a = two(x[0]) * 1.5f; b += x[1]; c = d;"
    log = told(text, ("two(x[0]) * 1.5f", "*", "int"), ("x[0]", "x", "int"), ("b += x[1]", "+=", "long int"),
               ("d", "d", "float"))  # fmt: skip
    whole = [(0, len(text))]
    changed = Rewritten(text.encode(), implicit.edits(text.encode(), log, whole)).text.decode()
    assert changed == (
        "a = gridstride_implicit(two(gridstride_implicit(x[0])) * 1.5f); gridstride_place(b) += x[1]; c = d;"
    )
    assert implicit.edits(text.encode(), log, [(0, 3)]) == []
    assert implicit.edits(text.encode(), "no JSON\n[broken", whole) == []


def test_what_cannot_be_a_call_stays_and_the_log_is_quiet():
    """A bit field has no address; the rest of its text is then left to the processor too."""
    code = """
    struct Bits { int few : 12; };
    extern "C" __global__ void k(const float* x, int* out) {
        Bits bits; bits.few = 5; bits.few += x[0]; out[0] = bits.few; out[1] = x[1];
    }"""
    kernel = gs.RawKernel(code, "k")
    log = io.StringIO()
    kernel.compile(log_stream=log)
    assert log.getvalue() == ""
    out = np.zeros(2, np.int32)
    kernel((1,), (1,), (np.array([2.5, 7.5], np.float32), out))
    np.testing.assert_array_equal(out, [7, 7])


@pytest.mark.parametrize("shared", ["", "__shared__ float y; y = x[0]; out[0] = y;"])
def test_errors_and_tiers_stay_those_of_the_text(shared):
    code = f"""#include <math_constants.h>
    extern "C" __global__ void k(const float* x, unsigned char* out) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        {shared}
        out[i] = x[i] * 255;
    }}"""
    kernel = gs.RawKernel(code, "k")
    assert kernel.explain().tier == ("fibers" if shared else "flat")
    out = np.zeros(4, np.uint8)
    kernel((1,), (4,), (np.array([0, 0.5, 1, -1], np.float32), out))
    np.testing.assert_array_equal(out, [0, 127, 255, 0])
    with pytest.raises(gs.CompileError, match=r"k\.cu:5:\d+"):
        gs.RawKernel(code.replace("x[i] * 255", "x[i] * missing"), "k").compile()


def test_only_gcc_is_asked():
    assert "-fno-strict-float-cast-overflow" in toolchain._KIND_FLAGS["clang"]
    assert "-fno-strict-float-cast-overflow" in toolchain._KIND_FLAGS["zig"]
