"""What is said of the mistakes that people make in expressions: where, and what to do."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride.errors import CompileError

#: Parameters and operation of a kernel, with the place and the hint of its error.
OPERATIONS: dict[str, tuple[str, str, str, str]] = {
    "no semicolon": ("T x", "T t = x * 2\ny = t", "line 2.*", "before this place lacks its semicolon"),
    "unknown name": ("T x", "T t = x;\n\ny = t * alpha", "line 3.*alpha", "known there are the kernel's parameters"),
    "raw without an index": ("T x, raw T r", "y = r", "line 1.*", r"is the whole array: index it, x\[k\]"),
    "raw with too many": ("T x, raw T r", "y = r[{i, 0, 0}]", "line 1.*", "an index for each axis"),
    "an index without raw": ("T x", "y = x[i]", "line 1.*", "write 'raw T x' to index it"),
    "an input that is written": ("T x", "x = 3; y = x", "line 1.*", "declare what is written as an output"),
    "a raw input that is written": ("T x, raw T r", "r[i] = x; y = x", "line 1.*", "written as an output"),
    "a choice of two types": ("T x", "float16 k = x; y = k > 0 ? k : 0", "line 1.*", "cast one side"),
    "an intrinsic of halves": ("T x", "float16 k = x; y = __hmul(k, k)", "line 1.*", r"take __float2half\(x\)"),
    "a constant of a header": ("T x", "y = x * M_PI", "line 1.*M_PI", "M_PI comes with a header: .*#include <cmath>"),
    "a limit of a header": ("T x", "y = INT_MAX", "line 1.*INT_MAX", "INT_MAX comes with a header: .*<climits>"),
    "a name of std": ("T x", "y = std::max(x, T(1))", "line 1.*max", "names of std come with their headers"),
    "Python's power": ("T x", "y = x ** 2", "line 1.*", r"write pow\(x, y\) or x \* x"),
    "Python's choice": ("T x", "y = x if x > 0 else 0", "line 1.*", r"C\+\+ writes condition \? x : y"),
    "Python's truth": ("T x", "y = True", "line 1.*", r"C\+\+ writes true and false"),
    "NumPy's function": ("T x", "y = np.abs(x)", "line 1.*", r"functions are those of CUDA C\+\+: write abs\(x\)"),
    "a value that is returned": ("T x", "y = x;\nreturn x * 2", "line 2.*", "assign the output, y = ..., and write"),
    "a template": ("T x", "template <class A> A f(A a) { return a; }\ny = f(x)", "line 1.*", "stand in the preamble"),
    "a placeholder of nothing": ("T x", "U u = x; y = u", "line 1.*", "no parameter has the type U"),
    "a minus sign of a text": ("T x", "y = x \u2212 1", "line 1.*", r"a character that C\+\+ does not know"),
}  # fmt: skip
#: Expressions of a reduction, with the text that is wrong and the hint.
FOLDS = {
    "reduce_expr": (("x", "a + b * x", "y = a", "0"), "known there are a and b, which it joins"),
    "post_map_expr": (("x", "a + b", "y = a * x", "0"), "known there are a, the outputs"),
    "map_expr": (("x + y", "a + b", "y = a", "0"), "known there are the inputs, i, _J"),
    "identity": (("x", "a + b", "y = a", "zero"), "known there are constants"),
    "identity, a limit": (("x", "min(a, b)", "y = a", "FLT_MAX"), "FLT_MAX comes with a header: .*<cfloat>"),
}
#: Texts of a reduction that cannot stand where they do, by what is said of them.
MISPLACED = {
    "map_expr of mistaken is one expression, and has a comma": ("x, f<T, 2>(x)", "a + b", "y = a", "0"),
    "reduce_expr of mistaken is one expression, and has a semicolon": ("x", "a + b;", "y = a", "0"),
    "identity of mistaken is one expression, and has a comma": ("x", "a + b", "y = a", "0, 1"),
    "map_expr of mistaken is one expression, and has a semicolon": ("T t = x; t * t", "a + b", "y = a", "0"),
}  # fmt: skip


def refusal(kernel: Any, *arguments: Any) -> str:
    with pytest.raises(CompileError) as caught:
        kernel(*arguments)
    return str(caught.value)


@pytest.mark.parametrize("mistake", OPERATIONS)
def test_mistakes_in_operations(xp: ModuleType, mistake: str) -> None:
    declared, operation, place, hint = OPERATIONS[mistake]
    kernel = gs.ElementwiseKernel(declared, "T y", operation, "mistaken")
    message = refusal(kernel, *[xp.ones((2, 3), xp.float32)] * kernel.nin)
    assert re.search(
        rf"operation of mistaken, {place}.*\n.*\^.*T = float32\nhint: .*{hint}", message, re.DOTALL
    ), message


@pytest.mark.parametrize("mistake", FOLDS)
def test_mistakes_in_reductions(xp: ModuleType, mistake: str) -> None:
    texts, hint = FOLDS[mistake]
    message = refusal(gs.ReductionKernel("T x", "T y", *texts, "mistaken"), xp.ones(3, xp.float32))
    place = mistake.partition(",")[0]
    assert re.search(rf"{place} of mistaken, line 1: .*hint: {hint}", message, re.DOTALL), message


@pytest.mark.parametrize("hint", MISPLACED)
def test_texts_that_cannot_stand_where_they_do(xp: ModuleType, hint: str) -> None:
    kernel = gs.ReductionKernel("T x", "T y", *MISPLACED[hint], "mistaken")
    assert f"\nhint: the {hint}" in refusal(kernel, xp.ones(3, xp.float32))


def test_headers_within_a_text(xp: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text("namespace own {}\n")
    kernel = gs.ElementwiseKernel(
        "T x", "T y", '#include "own.h"\ny = x', "mistaken", options=(f"-I{tmp_path}",)
    )
    message = refusal(kernel, xp.ones(3, xp.float32))
    assert "\nhint: the operation of mistaken includes a header, which the preamble does" in message


def test_carets_stand_below_letters_of_several_bytes(xp: ModuleType) -> None:
    kernel = gs.ElementwiseKernel("T x", "T y", "/* gr\u00f6\u00dfe \u65e5\u672c */ y = missing", "mistaken")
    quoted, caret = re.findall(r"\n( {4}/\*.*)\n( *)\^", refusal(kernel, xp.ones(3, xp.float32)))[0]
    assert len(caret) == quoted.index("missing") + len("\u65e5\u672c")  # which are two columns wide


def test_ambiguous_calls(xp: ModuleType) -> None:
    kernel = gs.ElementwiseKernel("T x", "T y", "y = f(x, x)", "mistaken", preamble="""
        __device__ T f(T a, int b) { return a + b; }
        __device__ T f(int a, T b) { return a + b; }""")  # fmt: skip
    message = refusal(kernel, xp.ones(3, xp.float32))
    assert re.search(r"operation of mistaken, line 1: (?s:.*)hint: .*as in max\(x, T\(0\)\)", message), (
        message
    )


def test_types_of_reductions(xp: ModuleType) -> None:
    kernel = gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "mistaken", "box<T, int>", preamble="""
        template <class U> struct box { U value; };""")  # fmt: skip
    message = refusal(kernel, xp.ones(3, xp.float32))
    assert re.search(r"reduce_type of mistaken, line 1: .*\n    box<T, int>", message), message


def test_assertions_of_users(xp: ModuleType) -> None:
    kernel = gs.ElementwiseKernel(
        "T x", "T y", "y = x", "mistaken", preamble='static_assert(sizeof(T) == 8, "only doubles");'
    )
    message = refusal(kernel, xp.ones(3, xp.float32))
    assert re.search("preamble of mistaken, line 1: .*only doubles", message)
    assert "hint" not in message


@pytest.mark.parametrize("place", ["loop_prep", "after_loop"])
def test_what_is_known_around_loops(xp: ModuleType, place: str) -> None:
    texts: dict[str, Any] = {place: "T t = x;"}
    message = refusal(gs.ElementwiseKernel("T x", "T y", "y = x", "mistaken", **texts), xp.ones(3))
    assert re.search(rf"{place} of mistaken, line 1: (?s:.*)known there are n, numbers and raw", message), (
        message
    )


def test_indexers_have_sizes_alone(xp: ModuleType) -> None:
    kernel = gs.ReductionKernel("T x", "T y", "x * _in_ind[0]", "a + b", "y = a", "0", "mistaken")
    message = refusal(kernel, xp.ones(3, xp.float32))
    assert re.search(
        r"map_expr of mistaken, line 1: .*hint: _in_ind and _out_ind have size\(\) alone", message, re.DOTALL
    )


def test_mistakes_in_preambles(xp: ModuleType) -> None:
    kernel = gs.ElementwiseKernel(
        "T x", "T y", "y = f(x)", "mistaken", preamble="__device__ float f(float v) {\n  return v * x;\n}"
    )
    message = refusal(kernel, xp.ones(3, xp.float32))
    assert re.search(
        "preamble of mistaken, line 2: .*hint: known there are types such as T", message, re.DOTALL
    )


@pytest.mark.parametrize(
    "operation",
    ["x * 2", "return x * 2;", "", "y == x", "y <= x && z != x", "// y = x", "/* y = x */ x", 'x; "y = x"'],
)
def test_operations_that_assign_nothing(operation: str) -> None:
    with pytest.raises(ValueError, match=r"`lost`: operation '.*' assigns none of the outputs: write y = "):
        gs.ElementwiseKernel("T x", "T y, T z", operation, "lost")


@pytest.mark.parametrize("text", ["y == a", "{ a; }", "a; a; // y = a"])
def test_post_maps_that_assign_nothing(text: str) -> None:
    with pytest.raises(ValueError, match=r"post_map_expr '.*' assigns none of the outputs y: write y = "):
        gs.ReductionKernel("T x", "T y", "x", "a + b", text, "0", "lost")


@pytest.mark.parametrize(
    "text", ["a * 2 // twice; y = a", "y = a * 2 // a;", "twice(a, y)", "y = a; y <<= 1"]
)
def test_comments_are_no_part_of_post_maps(xp: ModuleType, text: str) -> None:
    preamble = "__device__ void twice(long long a, long long& y) { y = 2 * a; }"
    total = gs.ReductionKernel("int64 x", "int64 y", "x", "a + b", text, "0", "doubled", preamble=preamble)
    assert total(xp.arange(4)).item() == 12


@pytest.mark.parametrize("name", ["and", "xor", "typeof", "static_cast", "NAN", "INFINITY", "NULL"])
def test_words_of_the_language_are_no_names(name: str) -> None:
    with pytest.raises(ValueError, match=f"`named`: parameter .*{name}"):
        gs.ElementwiseKernel(f"T {name}", "T y", f"y = {name}", "named")


def test_words_of_dialects_are_names(xp: ModuleType) -> None:
    kernel = gs.ElementwiseKernel("T linux, T unix", "T y", "y = linux - unix", "named")
    assert gs.asnumpy(kernel(xp.arange(3.0) * 2, xp.arange(3.0))).tolist() == [0, 1, 2]


def test_outputs_may_be_assigned_by_macros(xp: ModuleType) -> None:
    x = xp.ones(3, xp.float32)
    for operation, given in (
        ("TWICE", {"preamble": "#define TWICE y = 2 * x"}),
        ("TWICE", {"options": ("-DTWICE=y=2*x",)}),
    ):
        kernel = gs.ElementwiseKernel("T x", "T y", operation, "assigned", **given)
        assert gs.asnumpy(kernel(x)).tolist() == [2] * 3


@pytest.mark.parametrize(("text", "missing"), [("a", "b"), ("b + c", "a"), ("x", "a")])
def test_a_reduction_joins_two_values(text: str, missing: str) -> None:
    with pytest.raises(ValueError, match=f"reduce_expr .* does not join a and b: it has no {missing}"):
        gs.ReductionKernel("T x", "T y", "x", text, "y = a", "0", "alone")


def test_types_that_nobody_declares() -> None:
    with pytest.raises(
        ValueError, match="`sum`: no parameter has the reduce_type 'S', and no preamble declares it"
    ):
        gs.ReductionKernel("T x", "T y", "S{x}", "S{a.v + b.v}", "y = a.v", "S{0}", "sum", reduce_type="S")
    with pytest.raises(ValueError, match="declare an array that is indexed as raw"):
        gs.ElementwiseKernel("T* x", "T y", "y = x[0]")


def test_types_of_a_header(xp: ModuleType) -> None:
    size = gs.ElementwiseKernel(
        "T x", "int32 y", "y = sizeof(int32_t) * x", "sized", preamble="#include <cstdint>"
    )
    assert gs.asnumpy(size(xp.ones(2))).tolist() == [4, 4]
    kernel = gs.ElementwiseKernel("ratio_t x", "T y", "y = x.den", "of_header", preamble='#include "ratio.h"')
    assert kernel.nin == 1


def test_counts_are_words(xp: ModuleType) -> None:
    with pytest.raises(
        TypeError, match=r"takes 1 input \(T x\), or these and 2 outputs \(T y, T z\); got 4 arguments"
    ):
        gs.ElementwiseKernel("T x", "T y, T z", "y = z = x")(*[np.ones(2)] * 4)
