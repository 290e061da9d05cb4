"""Fused functions: values and dtypes are those of the function alone."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from tests.array_strategies import values

DTYPES = ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"]
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "arithmetic": lambda x, y: (x + y) * (x - y) + 2 * x,
    "division": lambda x, y: x / (y * y + 1),
    "floors": lambda x, y: (x // y) + (x % y),
    "comparison": lambda x, y: (x < y) & (x >= 2) | (y == x) ^ (x != 3),
    "extremes": lambda x, y: np.maximum(x, y) - np.minimum(x, 1),
    "choice": lambda x, y: np.where(x > y, x, y * 2),
    "magnitude": lambda x, y: abs(x) + np.sign(y) + np.square(x),
    "weak numbers": lambda x, y: x * (2.0 * 3) + 1 - 0.5 * y,
    "conversion": lambda x, y: x.astype(np.float32) * y.astype(np.int16),
    "limits": lambda x, y: np.clip(x, 1, 5) + y.clip(2),
}
#: What NumPy itself refuses for a dtype.
REFUSED = {("arithmetic", "bool"), ("floors", "bool"), ("magnitude", "bool"), ("extremes", "bool")}


def check(function: Callable[..., Any], *arguments: Any, exact: bool = True) -> None:
    """Compare a fused function with itself."""
    with np.errstate(all="ignore"):
        expected = function(*arguments)
    result = gs.fuse(function, kernel_name="fused")(*arguments)
    for got, wanted in zip(result if isinstance(result, tuple) else [result],
                           expected if isinstance(expected, tuple) else [expected], strict=True):  # fmt: skip
        assert got.dtype == np.asarray(wanted).dtype
        assert got.shape == np.shape(wanted)
        if exact:
            np.testing.assert_array_equal(got, wanted)
        else:
            eps = 4 * np.finfo(got.dtype).eps if got.dtype.kind in "fc" else 0
            np.testing.assert_allclose(got, wanted, rtol=eps, atol=eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("what", OPERATORS)
def test_operators(what: str, dtype: str) -> None:
    if (what, dtype) in REFUSED:
        pytest.skip("NumPy has no such loop")
    # A rounding less is allowed where a product and a sum become one operation.
    check(OPERATORS[what], values((40, 3), dtype, 1), values((3,), dtype, 2), exact=dtype[0] != "f")


@pytest.mark.parametrize(
    "pair",
    [
        ("int8", "float32"),
        ("uint8", "int8"),
        ("float16", "int16"),
        ("int64", "float32"),
        ("complex64", "float64"),
    ],
)
def test_mixed_dtypes(pair: tuple[str, str]) -> None:
    check(lambda x, y: x * y + x, values((50,), pair[0], 1), values((50,), pair[1], 2), exact=False)


UNARY = ["sqrt", "exp", "log1p", "sin", "cos", "tanh", "arctan", "floor", "ceil", "rint", "cbrt", "expm1"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "float16"])
def test_functions(dtype: str) -> None:
    def all_of(x: Any) -> Any:
        return tuple(getattr(np, name)(x) for name in UNARY)

    x = np.abs(values((60,), dtype, 1))
    expected, result = all_of(x), gs.fuse(all_of)(x)
    for name, got, wanted in zip(UNARY, result, expected, strict=True):
        assert got.dtype == wanted.dtype, name
        np.testing.assert_allclose(
            got, wanted, rtol=8 * np.finfo(got.dtype).eps if got.dtype.kind == "f" else 0, err_msg=name
        )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "float32", "float64"])
def test_division_and_rest_at_the_edges(dtype: str) -> None:
    edges = [0, 1, 2, 3, 7] if dtype[0] == "u" else [-7, -3, -2, -1, 0, 1, 2, 3, 7]
    if dtype[0] == "f":
        edges = [*edges, -0.0, 0.5, -2.5, np.inf, -np.inf, np.nan]
    x, y = (each.ravel() for each in np.meshgrid(np.array(edges, dtype), np.array(edges, dtype)))
    check(lambda x, y: (x // y, x % y), x, y)


def test_case_p11_a_python_float_is_weak() -> None:
    def scaled(x: Any, h: Any) -> Any:
        return x * (2.0 * h)

    x = np.arange(4, dtype=np.float32)
    assert gs.fuse(scaled)(x, 1.0).dtype == np.float32
    assert gs.fuse(scaled)(x, np.float64(1.0)).dtype == scaled(x, np.float64(1.0)).dtype == np.float64
    np.testing.assert_array_equal(gs.fuse(scaled)(x, 1.5), x * 3)


def test_python_integers_must_fit() -> None:
    x = np.arange(4, dtype=np.uint8)
    fused = gs.fuse(lambda x, k: x + k)
    np.testing.assert_array_equal(fused(x, 200), x + 200)
    with pytest.raises(OverflowError, match="300"):
        fused(x, 300)
    with pytest.raises(OverflowError, match="-1"):
        gs.fuse(lambda x: x + -1)(x)


REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda x, axis: np.sum(x * x, axis=axis),
    "method": lambda x, axis: (x + 1).sum(axis=axis, keepdims=True),
    "max": lambda x, axis: np.max(x * 2, axis=axis),
    "amin": lambda x, axis: np.amin(x, axis=axis),
    "any": lambda x, axis: np.any(x > 90, axis=axis),
    "all": lambda x, axis: (x < 90).all(axis),
    "mean": np.mean,
    "prod": lambda x, axis: np.prod(np.sign(x) + 2, axis=axis),
}


def along(what: str, axis: Any) -> Callable[[Any], Any]:
    """Return a reduction along an axis that the function knows."""
    return lambda x: REDUCTIONS[what](x, axis)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32"])
@pytest.mark.parametrize("what", REDUCTIONS)
def test_one_reduction_at_the_end(what: str, dtype: str) -> None:
    if what == "prod":
        dtype = "float64"  # the others overflow
    x = values((20, 7), dtype, 1)
    for axis in (None, 0, (0, 1)):
        function = along(what, axis)
        expected, result = function(x), gs.fuse(function)(x)
        assert (result.dtype, result.shape) == (np.asarray(expected).dtype, np.shape(expected))
        np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_one_kernel_serves_all_shapes_and_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []

    @gs.fuse
    def counted(x: Any, y: Any, scale: float = 2.0) -> Any:
        runs.append(1)
        return x * y * scale

    for n in (1, 5, 1000):
        np.testing.assert_array_equal(
            counted(np.ones(n), np.full((2, 1), 3.0), scale=n), np.full((2, n), 3.0 * n)
        )
    assert len(runs) == 1
    counted(np.ones(3, "f4"), np.ones(3, "f4"))
    assert len(runs) == 2


def test_arrays_of_the_target(xp: ModuleType) -> None:
    @gs.fuse(kernel_name="distance")
    def distance(x: Any, y: Any) -> Any:
        return gs.sqrt(x * x + y * y)

    result = distance(xp.asarray([3.0, 6.0]), xp.asarray([4.0, 8.0]))
    assert type(result) is type(xp.asarray([1.0]))
    np.testing.assert_array_equal(gs.asnumpy(result), [5.0, 10.0])


def test_numbers_alone_are_calculated_by_the_function() -> None:
    assert gs.fuse(lambda x, y: x + y)(1, 2) == 3


def test_constants_choose_what_is_traced() -> None:
    @gs.fuse
    def chosen(x: Any, how: str) -> Any:
        return x + 1 if how == "more" else x - 1

    assert chosen(np.ones(1), "more")[0] == 2
    assert chosen(np.ones(1), "less")[0] == 0


def _in_place(x: Any) -> Any:
    x += 1
    return x


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x if x > 0 else -x, "where"),
        (lambda x: x[0], "index"),
        (float, "Python number"),
        (len, "length"),
        (sum, "loop over"),
        (lambda x: x.T, "'T'"),
        (np.cumsum, "cumsum"),
        (lambda x: np.sum(x, axis=x), "axis that is an argument"),
        (np.sort, "sort"),
        (lambda x: np.sum(x) + 1, "must come last"),
        (lambda x: (np.sum(x), x), "several results"),
        (lambda x: np.add(x, 1, where=True), "with where"),
        (np.add.accumulate, r"add.accumulate\(\)"),
        (lambda x: None, "NoneType"),
        (lambda x: x + [1.0], "list"),  # noqa: RUF005 - no list is meant
        (np.where, "where"),
        (_in_place, "in place"),
    ],
)
def test_what_cannot_be_traced_is_named(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        gs.fuse(function, kernel_name="strange")(np.ones(3))
