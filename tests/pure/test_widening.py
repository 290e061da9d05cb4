"""Which small numbers a text may hold as larger ones."""

from __future__ import annotations

import numpy as np
import pytest

from gridstride._dtypes import bfloat16
from gridstride._source.widening import widened, widened_line

STRUCTURE = "struct best { T value; long long place; };"
MAP = "best{x, _J}\na.value < b.value ? a : b"


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "f2", bfloat16()])
def test_members_that_are_only_compared(dtype: object) -> None:
    types = [("T", np.dtype(dtype))]
    assert widened(STRUCTURE, MAP, "k = a.place", types) == ("T",)
    assert widened_line(*types[0]).startswith(("enum T : int {};", "typedef gridstride::as_float<"))


def test_functions_that_take_references_to_structures() -> None:
    declared = f"{STRUCTURE} best kept(const best& a, const best &b) {{ return a.value < b.value && a.place ? a : b; }}"
    assert widened(declared, "best{x, _J}\nkept(a, b)", "k = a.place", [("T", np.dtype("i1"))]) == ("T",)


@pytest.mark.parametrize("dtype", ["i4", "f4", "f8", "?", "c8"])
def test_larger_numbers_and_truth_values_stay_as_they_are(dtype: str) -> None:
    assert widened(STRUCTURE, MAP, "k = a.place", [("T", np.dtype(dtype))]) == ()


@pytest.mark.parametrize(
    ("declared", "folded", "post"),
    [
        ("struct best { int value; long long place; };", MAP, "k = a.place"),
        (STRUCTURE, "best{T(x + 1), _J}", "k = a.place"),
        (STRUCTURE, "best{(T)(x + 1), _J}", "k = a.place"),
        (STRUCTURE, "best{static_cast<T>(x + 1), _J}", "k = a.place"),
        (STRUCTURE, "best{x, sizeof(x)}", "k = a.place"),
        (STRUCTURE, MAP, "k = T(a.place)"),
        ("struct best { T value[4]; long long place; };", MAP, "k = a.place"),
        ("struct best { T value; union { T other; long long place; }; };", MAP, "k = a.place"),
        (f"{STRUCTURE} int kind(signed char x); int kind(int x);", MAP, "k = a.place"),
        (f"{STRUCTURE}\n#define CHANGED(x) T(x)", MAP, "k = a.place"),
        (STRUCTURE, "best{x, _J}\n*(uint8_t*)&a.value < *(uint8_t*)&b.value ? a : b", "k = a.place"),
        (
            STRUCTURE,
            "best{x, _J}\n(const uint8_t &)a.value < (const uint8_t &)b.value ? a : b",
            "k = a.place",
        ),
        (f"{STRUCTURE} int first(const void* bytes);", "best{x, first(&x)}\na", "k = a.place"),
        (f"{STRUCTURE} const void* bytes(const best& a) {{ return &a.value; }}", MAP, "k = a.place"),
    ],
)
def test_texts_that_may_notice_another_type(declared: str, folded: str, post: str) -> None:
    assert widened(declared, folded, post, [("T", np.dtype("i1"))]) == ()
