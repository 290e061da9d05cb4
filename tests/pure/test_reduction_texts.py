"""What is read from the texts of reductions."""

from __future__ import annotations

import pytest

from gridstride._source.reduction import extreme_of


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
