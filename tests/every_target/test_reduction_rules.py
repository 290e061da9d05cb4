"""Debug mode's check of reductions: expressions that depend on the order, identities that change something."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride import _dtypes
from tests.every_target.test_reduction import DOT, LARGEST, MOMENTS, NUMBERS, PLACE, TOTAL


@pytest.fixture(autouse=True)
def _debug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSTRIDE_DEBUG", "1")


def folding(reduce_expr: str, identity: str | None = None, map_expr: str = "x") -> gs.ReductionKernel:
    return gs.ReductionKernel("T x", "T y", map_expr, reduce_expr, "y = a", identity, "strange")


def test_case_p20_an_expression_that_is_not_associative(xp: ModuleType) -> None:
    halves = xp.full(2, 0.5)
    kernel = gs.ReductionKernel("T x, T y", "T z", "x + y", "a + 2*b", name="weighted")
    with pytest.raises(
        ValueError, match=r"`weighted`: reduce_expr `a \+ 2\*b` is not associative.*7\.0.*15\.0"
    ):
        kernel(halves, halves)


@pytest.mark.parametrize(
    ("reduce_expr", "identity", "what"),
    [
        ("a - b", "0", "associative"),
        ("b == b ? a : b", None, "commutative"),
        (
            "a * b",
            "0",
            r"identity `0` is not neutral.*first element x0 the output `y` is .*1.*identity, x0\) it is 0",
        ),
        ("a + b", "1", "neutral"),
    ],
)
@pytest.mark.parametrize("dtype", ["int32", "float16", "complex64"])
def test_rules_that_are_broken(
    xp: ModuleType, reduce_expr: str, identity: str | None, what: str, dtype: str
) -> None:
    kernel, x = folding(reduce_expr, identity), xp.asarray(np.arange(1, 9).astype(dtype).reshape(2, 4))
    for _ in range(2):  # also a call whose meaning is known
        for axis in (None, 0):
            with pytest.raises(ValueError, match=what):
                kernel(x, axis=axis)


def test_every_call_is_checked(xp: ModuleType) -> None:
    largest = folding("a > b ? a : b", "0")
    assert largest(xp.asarray([1.0, 2.0, 3.0, 4.0])) == 4
    out = xp.zeros(())
    with pytest.raises(ValueError, match="identity `0` is not neutral"):
        largest(xp.asarray([-1.0, -2.0, -3.0, -4.0]), out)
    assert out == 0


@pytest.mark.parametrize(
    "dtype",
    [
        name if name in ("bool", "int8", "uint16", "float16", "float32", "complex64")
        else pytest.param(name, marks=pytest.mark.soak)
        for name in _dtypes.SCALAR_NAMES if name != "bfloat16"
    ],
)  # fmt: skip
def test_sums_keep_the_rules(xp: ModuleType, dtype: str) -> None:
    x = np.random.default_rng(1).uniform(-100, 100, (5, 7)).astype(dtype)
    for axis in (None, 0, 1):
        expected = TOTAL(xp.asarray(x), axis=axis)
        np.testing.assert_allclose(gs.asnumpy(expected), x.sum(axis, dtype=dtype), rtol=2e-2, atol=1e-2)


def test_other_kernels_keep_the_rules(xp: ModuleType) -> None:
    x = np.random.default_rng(2).standard_normal((6, 4))
    given: Any = xp.asarray(x)
    np.testing.assert_array_equal(gs.asnumpy(LARGEST(given, axis=0)), x.max(0))
    np.testing.assert_array_equal(gs.asnumpy(PLACE(given, axis=1)[0]), x.argmax(1))
    np.testing.assert_allclose(gs.asnumpy(MOMENTS(given, axis=1)[1]), x.var(1))
    np.testing.assert_allclose(gs.asnumpy(DOT(given, given[0], 2, axis=1)), 2 * (x * x[0]).sum(1))
    np.testing.assert_array_equal(gs.asnumpy(NUMBERS(given[:, :1])), 15)
    np.testing.assert_array_equal(gs.asnumpy(TOTAL(given[:0], axis=0)), 0)


@pytest.mark.parametrize(
    "numbers", [[0.5, 1e8, 1, -1e8], [1e8, 1, -1e8, 1], [3e38, 3e38, -3e38, 1], [np.inf, -np.inf, 1, np.nan]]
)
def test_rounding_and_overflow_break_no_rule(xp: ModuleType, numbers: list[float]) -> None:
    assert TOTAL(xp.asarray(np.array(numbers, "f4"))).shape == ()


def test_an_identity_beyond_all_numbers_is_not_neutral(xp: ModuleType) -> None:
    with pytest.raises(ValueError, match="identity `INFINITY` is not neutral"):
        folding("a + b", "INFINITY")(xp.arange(4.0))


def test_what_is_recorded_for_a_graph_is_not_checked(xp: ModuleType) -> None:
    kernel, x, out = folding("a - b"), xp.arange(4.0), xp.zeros(())
    stream, graph = gs.cuda.Stream(non_blocking=True), gs.cuda.Graph()
    graph.begin_capture(stream)
    kernel(x, out, stream=stream)
    graph.end_capture(stream)


def test_nothing_is_checked_otherwise(xp: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRIDSTRIDE_DEBUG")
    folding("a - b")(xp.arange(4.0))
