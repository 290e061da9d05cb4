"""The part of the prelude that a text needs."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

import gridstride as gs
from gridstride.targets.cpu import prelude

TOOL = Path(__file__).parents[2] / "tools" / "prelude_names.py"


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_the_table_has_the_names_that_the_headers_have() -> None:
    spec = importlib.util.spec_from_file_location("prelude_names", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    written = {
        header: names.split()
        for header, _, names in (line.partition(":") for line in Path(prelude.NAMES).read_text().splitlines())
    }
    assert written == tool.names_of_headers(), "run tools/prelude_names.py"


def test_a_header_is_part_of_the_prelude_or_of_what_every_kernel_gets() -> None:
    text = (Path(prelude.NAMES).parent / "include" / "gridstride_cpu" / "prelude.h").read_text()
    included = [line.split('"')[1] for line in text.splitlines() if line.startswith("#include")]
    assert [*prelude.ALWAYS, *prelude.ON_DEMAND] == [*included, "casts.h"]


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("y[i] = expf(x[i]);", "math_functions.h"),
        ("y[i] = max(x[i], 0);", "math_functions.h"),
        ("y[i] = IN\\\nFINITY;", "math_functions.h"),
        ("y[i] = rsqrtf(x[i]);", "special_functions.h"),
        ("y[i] = __expf(x[i]);", "rounding.h"),
        ("n = __float2int_rn(x[i]);", "conversions.h"),
        ("n = __popc(m);", "integer_intrinsics.h"),
        ("n = __vadd2(m, k);", "simd_in_word.h"),
        ("n = __float_as_int(y);", "bits.h"),
        ("y = __ldg(&x[i]);", "memory.h"),
        ("p = new float[3];", "memory.h"),
        ("atomicAdd(&x[i], 1);", "atomics.h"),
        ("y = __shfl_down_sync(~0u, x, 1);", "warp.h"),
        ("n = gridstride_cast<int>(x);", "casts.h"),
        ("bool b = __isShared(p);", "address_spaces.h"),
    ],
)
def test_a_name_brings_its_header(text: str, header: str) -> None:
    assert prelude.headers_of(text) == (*prelude.ALWAYS, header)


@pytest.mark.parametrize(
    "text",
    [
        "#include <cuda_fp16.h>",
        " # include <cstdint>",
        "%:include <cstdint>",
        "#define F(x) x##f",
        "#define F(x) x%:%:f",
    ],
)
def test_names_that_are_not_seen_bring_all_headers(text: str) -> None:
    assert prelude.headers_of(f"int n;\n{text}\n") == prelude.WHOLE


def test_a_kernel_without_names_needs_no_more_than_the_language() -> None:
    text = "__global__ void f(float4* x, int n) { const bool all = true; if (n > 1 && all) x[threadIdx.x].w = 2; }"
    assert prelude.headers_of(text) == prelude.ALWAYS


def test_messages_name_what_the_other_headers_have() -> None:
    text = "__global__ void f(float* x) { x[0] = sinff(x[0]); }"
    with gs.use_target("cpu"), pytest.raises(gs.CompileError, match=r"did you mean .*sin"):
        gs.RawKernel(text, "f").compile()


def test_options_and_name_expressions_bring_headers() -> None:
    text = "template <int N> __global__ void f(float* x) { x[0] = FUNCTION(x[0]) + N; }"
    with gs.use_target("cpu"):
        module = gs.RawModule(
            text, options=("-DFUNCTION=sqrtf",), name_expressions=("f<__builtin_popcount(7)>",)
        )
        module.get_function("f<__builtin_popcount(7)>")
