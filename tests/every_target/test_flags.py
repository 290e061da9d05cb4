"""Whether any of elements are something, or all of them, wherever these lie."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from tests.crosses import in_turns, pairs_in_soak

SHAPES = [
    ((70, 64), 1),
    ((3, 40_001), 1),
    ((700, 301), 0),
    ((30_001, 3), 1),
    ((50, 5, 7), 1),
    ((9, 7, 11, 9), (1, 3)),
]
ASKED = [("any", "||"), ("all", "&"), ("all", "&&"), ("any", "|")]


def kernel(asked: str, sign: str) -> gs.ReductionKernel:
    return gs.ReductionKernel(
        "T x",
        "bool y",
        "x != T(0)",
        f"b {sign} a",
        "y = a",
        "true" if asked == "all" else "false",
        f"{asked}_of",
    )


@pytest.mark.parametrize(
    ("dtype", "what"),
    in_turns(["?", "i1", "f2", "f4", "c16"], ASKED) + pairs_in_soak(["c8"], ASKED),
)
def test_flags_wherever_elements_lie(xp: ModuleType, what: tuple[str, str], dtype: str) -> None:
    asked, sign = what
    ask, draw = kernel(asked, sign), np.random.default_rng(1)
    for shape, axis in SHAPES:
        for rare in (True, False):
            x = (draw.integers(0, 40, shape) == 0) == (rare == (asked == "any"))
            x = x.astype(dtype) * np.dtype(dtype).type(1)
            for view in (x, x[::-1], x[..., ::-1], x[..., 1:], x[..., ::2]):
                found = gs.asnumpy(ask(xp.asarray(view), axis=axis))
                np.testing.assert_array_equal(
                    found, getattr(np, asked)(view != 0, axis), f"{shape} {view.strides}"
                )


def test_what_is_asked_of_several_inputs(xp: ModuleType) -> None:
    differ = gs.ReductionKernel("T x, U y", "bool z", "x != y", "a || b", "z = a", "false", "differ")
    x = np.zeros((301, 700), "f8")
    y: np.ndarray[Any, Any] = np.zeros((301, 700), "f2")
    y[17, 5] = 1
    for axis in (0, 1):
        np.testing.assert_array_equal(
            gs.asnumpy(differ(xp.asarray(x), xp.asarray(y), axis=axis)), (x != y).any(axis)
        )
