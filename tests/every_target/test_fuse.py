"""Fused functions: values and dtypes are those of the function alone."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import gridstride as gs
from tests.array_values import values

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
def test_operators(dtype: str) -> None:
    chosen = [function for what, function in OPERATORS.items() if (what, dtype) not in REFUSED]
    # A rounding less is allowed where a product and a sum become one operation.
    check(
        lambda x, y: tuple(function(x, y) for function in chosen),
        values((40, 3), dtype, 1), values((3,), dtype, 2), exact=dtype[0] != "f",
    )  # fmt: skip


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


@gs.fuse
def decorated(x: Any) -> Any:
    return x * 2


def plain(x: Any) -> Any:
    return x * 3


def test_fused_functions_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    for fused in (gs.fuse(plain), gs.fuse(np.square, kernel_name="squared")):
        copied = pickle.loads(pickle.dumps(fused))
        assert repr(copied) == repr(fused)
        np.testing.assert_array_equal(copied(np.ones(3)), fused(np.ones(3)))
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(gs.fuse(lambda x: x))


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


class Pair(NamedTuple):
    low: Any
    high: Any


class Scale:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    @gs.fuse
    def of(self, x: Any, shift: Any = 0) -> Any:
        return x * self.factor + shift

    @staticmethod
    @gs.fuse
    def twice(x: Any) -> Any:
        return x + x


def test_methods_are_fused(target, xp):
    x, half, triple = xp.arange(4.0), Scale(0.5), Scale(3)
    for _ in range(2):
        assert gs.asnumpy(half.of(x)).tolist() == [0, 0.5, 1, 1.5]
        assert gs.asnumpy(triple.of(x, shift=1)).tolist() == [1, 4, 7, 10]
        assert gs.asnumpy(Scale.of(triple, x)).tolist() == [0, 3, 6, 9]
        assert gs.asnumpy(Scale.twice(x)).tolist() == gs.asnumpy(half.twice(x)).tolist() == [0, 2, 4, 6]
    with pytest.raises(TypeError, match="fused function `of`: missing a required argument: 'x'"):
        half.of()


def test_tuples_with_names(target, xp):
    found = gs.fuse(lambda x: Pair(x - 1, high=x + 1))(xp.arange(3.0))
    assert isinstance(found, Pair)
    assert gs.asnumpy(found.high).tolist() == [1, 2, 3]


class Exported:
    """An array of a library that is not known."""

    shape = (3,)

    def __dlpack__(self) -> object:
        raise AssertionError


def _calls_another_library(x: Any) -> Any:
    if type(x) is not np.ndarray:
        raise TypeError(f"sin requires ndarray or scalar arguments, got {type(x)} at position 0.")
    return np.sin(x)


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
        (lambda x: np.sum(x, axis=x), "axis that is an array"),
        (np.sort, "sort"),
        (lambda x: np.sum(x) + 1, "must come last"),
        (lambda x: np.add(x, np.sum(x)), "must come last"),
        (lambda x: np.sqrt(np.sum(x)), r"something behind sum\(\), which must come last"),
        (lambda x: x * np.sum(x), "must come last"),
        (lambda x: np.sum(x) * np.float64(2), "must come last"),
        (lambda x: np.where(x > 0, np.sum(x), x), "must come last"),
        (lambda x: (np.sum(x), x), "several results"),
        (lambda x: np.add(x, 1, where=x > 0), "with where"),
        (np.add.accumulate, r"add.accumulate\(\)"),
        (lambda x: None, "NoneType"),
        (lambda x: x + [1.0], "list"),  # noqa: RUF005 - no list is meant
        (np.where, "where"),
        (gs.ElementwiseKernel("T x", "T y", "y = x", "inner"), "a call of a kernel.* It said: `inner`"),
        (np.vectorize(lambda x: x + 1), r"argument `args\[0\]` to one of NumPy's by .* vectorize"),
        (lambda x: x + Exported(), "an array that is no argument"),
        (_in_place, "in place"),
        (_calls_another_library, r"another library: write NumPy's of the same name \(test_fuse.py, line"),
    ],
)
def test_what_cannot_be_traced_is_named(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        gs.fuse(function, kernel_name="strange")(np.ones(3))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_negative_exponents_of_integers(target, xp, dtype):
    """NumPy refuses them, also where nobody looks at the result; other libraries round one divided by an integer."""
    x, y = np.array([-3, -1, -1, 0, 1, 2, 5], dtype), np.array([-1, -2, -3, -1, -5, -1, 2], dtype)
    powers = gs.fuse(lambda x, y: (x**y, 0 * x))
    if xp is not np:
        assert gs.asnumpy(powers(xp.asarray(x), xp.asarray(y))[0]).tolist() == [0, 1, -1, 0, 1, 0, 25]
        return
    for function in (powers, gs.fuse(lambda x, y: np.sum(2 ** (y - 1))), gs.fuse(np.power)):
        with pytest.raises(ValueError, match="Integers to negative integer powers are not allowed"):
            function(x, y)
    assert (powers(x, -y % 3)[0] == x ** (-y % 3)).all()
    choose = gs.fuse(lambda x, k: x ** np.where(k > 1, k - 4, 3))
    assert choose(x, 1).tolist() == (x**3).tolist()
    with pytest.raises(ValueError, match="negative integer powers"):
        choose(x, 2)
