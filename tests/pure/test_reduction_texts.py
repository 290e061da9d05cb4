"""What is read from the texts of reductions."""

from __future__ import annotations

import numpy as np
import pytest

import gridstride as gs
from gridstride._source.extremes import PlacedExtreme, extreme_of, placed_extreme_of
from gridstride._syntax.words import may_name
from gridstride.targets import registry


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a > b ? a : b", "largest"),
        (" ( a>=b )?a:b", "largest"),
        ("b < a ? a : b", "largest"),
        ("a < b ? b : a", "largest"),
        ("a < b ? a : b", "smallest"),
        ("(b <= a) ? b : a", "smallest"),
        ("b > a ? a : b", "smallest"),
        ("a > b ? a : a", None),
        ("a > a ? a : b", None),
        ("a > b ? a + 1 : b", None),
        ("-a > b ? a : b", None),
        ("a > b && a ? a : b", None),
        ("a + b", None),
        ("max(a, b)", "largest"),
        ("min(b, a)", "smallest"),
        ("max(a, a)", None),
        ("fmax(a, b)", None),
    ],
)
def test_which_of_two_values_a_text_keeps(text: str, kept: str | None) -> None:
    assert extreme_of(text) == kept


@pytest.mark.parametrize("around", ["#define max(a, b) a", "-Dmax=other", '#include "own.h"'])
def test_functions_of_the_same_name_may_do_anything(around: str) -> None:
    assert extreme_of("max(a, b)", around) is None
    assert extreme_of("a > b ? a : b", around) == "largest"


STRUCTURE = "struct best { T value; long long place; };"
FIRST_LARGEST = "a.value > b.value || (a.value == b.value && a.place < b.place) ? a : b"


@pytest.mark.parametrize(
    ("text", "is_largest", "is_first"),
    [
        (FIRST_LARGEST, True, True),
        ("a.value > b.value || a.value == b.value && a.place > b.place ? a : b", True, False),
        ("(b.value <= a.value && (b.value != a.value || a.place < b.place)) ? a : b", True, True),
        ("a.value < b.value || (a.value == b.value && a.place < b.place) ? a : b", False, True),
        ("!(a.value >= b.value) || (a.value == b.value && b.place <= a.place) ? a : b", False, False),
        ("a.value > b.value || (a.value == b.value && a.place < b.place) ? b : a", False, False),
    ],
)
def test_which_of_two_structures_a_text_keeps(text: str, is_largest: bool, is_first: bool) -> None:
    kept = placed_extreme_of(STRUCTURE, "best{x, _J}", text, "x", "T", "best")
    assert kept == PlacedExtreme(is_largest, is_first)


@pytest.mark.parametrize(
    "function",
    [
        f"__device__ best better(best a, best b) {{ return {FIRST_LARGEST}; }}",
        f"static __host__ __device__ inline best better(const best& a, const best &b) {{\n return {FIRST_LARGEST};\n}}",
    ],
)
def test_a_function_that_keeps_one_of_two_structures(function: str) -> None:
    kept = placed_extreme_of(f"{STRUCTURE}\n{function}", "best{x, _J}", "better(a, b)", "x", "T", "best")
    assert kept == PlacedExtreme(True, True)


OTHER = f"__device__ best better(best a, best b) {{ return {FIRST_LARGEST}; }}"


@pytest.mark.parametrize(
    ("preamble", "map_expr", "reduce_expr"),
    [
        (STRUCTURE, "best{x, _J}", "a.value > b.value ? a : b"),
        (STRUCTURE, "best{x, _J}", "a.value >= b.value ? a : b"),
        (STRUCTURE, "best{x, _J}", "a.place < b.place ? a : b"),
        (STRUCTURE, "best{x, _J}", "a.value > b.value || a.place < b.place ? a : b"),
        (STRUCTURE, "best{x, _J}", "!a.value > b.value || (a.value == b.value && a.place < b.place) ? a : b"),
        (STRUCTURE, "best{x, _J}", "a.value > b.value || (a.value == b.value && a.place < b.place) ? a : a"),
        (STRUCTURE, "best{x, _J}", "a.value > b.place || (a.value == b.value && a.place < b.place) ? a : b"),
        (STRUCTURE, "best{x, _J}", f"a.value > 3 || {FIRST_LARGEST}"),
        (STRUCTURE, "best{x, _J}", f"({FIRST_LARGEST})"),
        (STRUCTURE, "best{x, i}", FIRST_LARGEST),
        (STRUCTURE, "best{x, -_J}", FIRST_LARGEST),
        (STRUCTURE, "best{T(-x), _J}", FIRST_LARGEST),
        (STRUCTURE, "other{x, _J}", FIRST_LARGEST),
        ("struct best { long long place; T value; };", "best{x, _J}", FIRST_LARGEST),
        ("struct best { T value; int place; };", "best{x, _J}", FIRST_LARGEST),
        ("struct best { T value : 4; long long place; };", "best{x, _J}", FIRST_LARGEST),
        ("struct best { bool value; long long place; };", "best{x, _J}", FIRST_LARGEST),
        ("struct best { T value; long long place; best(T x, long long at); };", "best{x, _J}", FIRST_LARGEST),
        (f"{STRUCTURE}\n#define value place", "best{x, _J}", FIRST_LARGEST),
        (f"{STRUCTURE} {OTHER}", "best{x, _J}", "better(b, a)"),
        (f"{STRUCTURE} {OTHER}", "best{x, _J}", "max(a, b)"),
        (f"{STRUCTURE} {OTHER} __device__ int other;", "best{x, _J}", "better(a, b)"),
        (f"{STRUCTURE} {OTHER.replace('return', 'a.place = 0; return')}", "best{x, _J}", "better(a, b)"),
        (f"{STRUCTURE} {OTHER.replace('best b', 'other b')}", "best{x, _J}", "better(a, b)"),
        (f"{STRUCTURE} // {OTHER}", "best{x, _J}", "better(a, b)"),
    ],
)
def test_texts_that_may_keep_another_structure(preamble: str, map_expr: str, reduce_expr: str) -> None:
    assert placed_extreme_of(preamble, map_expr, reduce_expr, "x", "T", "best") is None


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("x * i", True),
        ("x * ii", False),
        ("#define AT(a) a##b", True),
        ('#include "own.h"', True),
        ("#include <other/gridstride/own.h>", True),
        ("# include <gridstride/view.h>\nfloat f(float x);", False),
        ("#include <gridstride/view.h>\n#include <own.h>", True),
    ],
)
def test_whether_a_text_may_ask_for_numbers_of_elements(text: str, may: bool) -> None:
    assert may_name(text, "i", "_J") is may


@pytest.mark.parametrize(
    ("identity", "dtype", "text"),
    [
        (-np.inf, "int8", "-128"),
        ("INFINITY", "int8", "127"),
        ("- INFINITY", "uint16", "0"),
        (np.inf, "uint64", "18446744073709551615ull"),
        (-np.inf, "int64", "(-9223372036854775807ll - 1)"),
        (-np.inf, "float16", "-INFINITY"),
        (-np.inf, "float64", "-INFINITY"),
    ],
)
def test_infinity_is_the_limit_of_integers(identity: str | float, dtype: str, text: str) -> None:
    """A GPU makes 0 of what is infinite and below, where integers have a byte or two."""
    kernel = gs.ReductionKernel("T x", "T y", "x", "max(a, b)", "y = a", identity, "largest")
    with gs.use_target("null"):
        kernel(np.ones(3, dtype))
    assert f'#line 1 "identity of largest"\n{text}\n' in kernel.cached_code


@pytest.mark.parametrize(
    ("map_expr", "reduce_type", "is_known"),
    [
        ("x", "long long", True),
        ("(x)", "int", True),
        ("(long  long)x", "long long", True),
        ("(R)(x)", "R", True),
        ("int( x )", "int", True),
        ("static_cast<float>(x)", "float", True),
        ("(float)x", "long long", False),
        ("(unsigned)x", "long long", False),
        ("(int)x + 1", "int", False),
        ("(int)(x + 1)", "int", False),
        ("x * x", "int", False),
    ],
)
def test_sums_of_elements_are_known_with_a_cast_to_what_they_are_added_in(
    map_expr: str, reduce_type: str, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []
    null = type(registry.get("null"))
    compile_ = null.compile
    monkeypatch.setattr(
        null,
        "compile",
        lambda self, program, arch: texts.append(program.text) or compile_(self, program, arch),
    )
    kernel = gs.ReductionKernel("T x", "R y", map_expr, "a + b", "y = a", "0", "known", reduce_type)
    with gs.use_target("null"):
        kernel(np.empty(5000, "i1"), np.empty((), "f4" if "float" in reduce_type else "i8"))
    assert ("as_integer_sum" in texts[-1]) is is_known
