"""Arguments of fused functions: what tells calls apart, and what functions may ask of arguments."""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gridstride as gs

X = np.arange(6.0) - 2
K = np.arange(6) - 2


class Mode(enum.IntEnum):
    LESS = 2
    MORE = 3


class Fraction(float):
    pass


Pair = collections.namedtuple("Pair", ["low", "high"])


@dataclasses.dataclass(frozen=True)
class Settings:
    factor: Any


def check_calls(function: Callable[..., Any], *calls: tuple[Any, ...]) -> Any:
    """Compare calls of one fused function with those of the function itself; keywords come last, as a dict of names."""
    fused = gs.fuse(function, kernel_name="fused")
    for call in calls:
        args, kwargs = (call[:-1], call[-1]) if isinstance(call[-1], Keywords) else (call, {})
        got, wanted = fused(*args, **kwargs), function(*args, **kwargs)
        assert got.dtype == wanted.dtype, call
        np.testing.assert_array_equal(got, wanted, err_msg=str(call))
    return fused


class Keywords(dict[str, Any]):
    pass


def test_names_and_counts_of_arguments_tell_calls_apart() -> None:
    check_calls(lambda a, **k: a * 2 if "s" in k else a * 3, (X, Keywords(s=1)), (X, Keywords(t=1)))
    check_calls(
        lambda a, **k: a * k.get("u", 1) - k.get("v", 0), (X, Keywords(u=2.0)), (X, Keywords(v=2.0)), (X,)
    )
    check_calls(lambda *a, **k: sum(a[1:], a[0]) - k.get("z", 0), (X, X), (X, Keywords(z=X)), (X, X, X))
    check_calls(
        lambda a, **k: a * next(iter(k.values())), (X, Keywords(u=2.0, v=3.0)), (X, Keywords(v=3.0, u=2.0))
    )


# ---- constants ----


def test_equal_constants_are_not_the_same() -> None:
    check_calls(lambda a, p: a * next(iter(p)), (K, frozenset({2})), (K, frozenset({2.0})))
    check_calls(lambda a, p: a * p[0], (K, (2,)), (K, (2.0,)), (K, [2]), (K, (np.float32(1),)))
    check_calls(lambda a, p: a * p.factor, (K, Settings(2)), (K, Settings(2.0)), (K, Settings((2,)[0])))
    check_calls(lambda a, p: a * p.factor[0], (K, Settings((2,))), (K, Settings((2.0,))))
    check_calls(lambda a, p: a * math.copysign(1, p), (X, 0.0), (X, -0.0))
    check_calls(lambda a, p: a * math.copysign(1, p.imag), (X, 0j), (X, complex(0, -0.0)))


def test_a_nan_is_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []

    @gs.fuse
    def counted(a: Any, p: Any) -> Any:
        runs.append(1)
        return a * 2 if math.isnan(p) else a

    for _ in range(4):
        np.testing.assert_array_equal(counted(X, float("nan")), X * 2)
        np.testing.assert_array_equal(counted(X, 1.0), X)
    assert len(runs) <= 3  # the first of them did not know that the value matters


@pytest.mark.parametrize("value", [np.str_("max"), np.bytes_(b"max"), "max"])
def test_texts_of_numpy_are_constants(value: Any) -> None:
    check_calls(lambda a, how: a * 2 if how == "max" else a * 3, (X, value), (X, np.str_("min")))


def test_classes_derived_from_numbers_are_taken_as_numpy_takes_them() -> None:
    def scaled(a: Any, mode: Any) -> Any:
        return a * mode + (1 if mode is Mode.LESS else 0)

    for a in (K.astype(np.int8), K.astype(np.float32)):
        check_calls(scaled, (a, Mode.LESS), (a, Mode.MORE), (a, Fraction(2.5)), (a, 2))
        check_calls(lambda a, mode, p: a * (p * mode) + mode * p, (a, Mode.LESS, 2), (a, Mode.MORE, 2.5))


# ---- containers ----


def test_tuples_lists_and_dicts_may_hold_arrays_and_numbers() -> None:
    check_calls(lambda p: p[0] * p[1], ((X, 2.0),), ([X, 3.0],), (Pair(X, 4),), ((X, X),))
    check_calls(
        lambda d: d["a"] * d["b"] - next(iter(d)).count("a"), ({"a": X, "b": 2.0},), ({"b": X, "a": 3},)
    )
    check_calls(lambda d: d["a"][0] * d["b"][1]["c"], ({"a": [X], "b": (1, {"c": X})},))
    check_calls(lambda p: p.low - p.high, (Pair(X, 2.0),), (Pair(1, X),))
    check_calls(lambda a, w=(1, 2), v=[3]: a * w[0] + w[1] - v[0], (X,), (X, [3, 4]), (X, (1, 2), [5.5]))
    np.testing.assert_array_equal(
        gs.fuse(np.select)([X > 1, X < 0], [X, -X], 5), np.select([X > 1, X < 0], [X, -X], 5)
    )


def test_numbers_in_containers_make_no_kernels_of_their_own() -> None:
    runs = []

    @gs.fuse
    def polynomial(a: Any, coefficients: Any) -> Any:
        runs.append(1)
        result = 0.0
        for each in coefficients:
            result = result * a + each
        return result

    for last in (1.0, 2.0, 3.0):
        np.testing.assert_array_equal(polynomial(X, [2.0, last]), 2 * X + last)
    assert len(runs) == 1


def test_what_cannot_be_told_from_others_is_named() -> None:
    message = r"the argument `p\[0\]` of type dict_keys is neither .* tuple, list or dict of them.* something hashable"
    with pytest.raises(TypeError, match=message):
        gs.fuse(lambda a, p: a)(X, [{1: 2}.keys()])


# ---- questions about arguments ----

QUESTIONS: dict[str, Callable[..., Any]] = {
    "isinstance": lambda a, p: a * 2 if isinstance(p, int) else a * 3,
    "a number made of it": lambda a, p: a * 2 if isinstance(p * 2, float) else a * 3,
    "abstract class": lambda a, p: a * 2 if isinstance(p, numbers.Integral) else a * 3,
    "identity": lambda a, p: a * 2 if p is True else a * 3,
    "scalar": lambda a, p: a * 2 if np.isscalar(p) else a * 3, "text": lambda a, p: a * len(f"{p}") + len(str(p)),
    "representation": lambda a, p: a * len(repr(p)) + len(f"{p!r:>20}") + len("%s" % p),  # noqa: UP031
    "array": lambda a, p: a * 2 if isinstance(a, np.ndarray) and isinstance(a * p, np.ndarray) else a * 3,
    "floor": lambda a, p: a * math.floor(p), "dictionary": lambda a, p: a * {1: 2}.get(p, 5),
    "copies": lambda a, p: a * copy.copy(p) + copy.deepcopy(p),
    "arrays of it": lambda a, p: a * np.asarray(p) + np.array(p, dtype=np.float32),
    "beside an array": lambda a, p: a * (np.array([1.0, 2.0]) * p)[1],
    "dtype": lambda a, p: a * (p.dtype.itemsize if hasattr(p, "dtype") else 3),
    "type of the text": lambda a, p: a * len(type(a.dtype).__name__),
}  # fmt: skip


@pytest.mark.parametrize("what", QUESTIONS)
def test_questions_about_arguments_are_answered(what: str) -> None:
    check_calls(
        QUESTIONS[what],
        (X, 2),
        (X, 2.0),
        (X, True),
        (X, False),
        (X, np.float32(2)),
        (X, 1),
        (X, np.bool_(True)),
    )


def test_none_is_none() -> None:
    check_calls(lambda a, p: a * 2 if p is None else a * p, (X, None), (X, 3))


def test_large_whole_numbers_stay_whole() -> None:
    check_calls(lambda a, p: a * (math.floor(p) % 7), (K, 10**30), (K, 10**30 + 1))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a, p: a * np.longdouble(2), "a number of type longdouble, which no kernel has: convert it"),
        (
            lambda a, p: np.asarray(a),
            "the conversion of the argument `a` to one of NumPy's .* leave it as it is",
        ),
        (lambda a, p: np.array(a * 2, dtype="f4"), r"the conversion of an array to one .* write astype\(\)"),
        (lambda a, p: a.sum(axis=p), r"sum\(\) along axis 1.5, which is no integer"),
    ],
)
def test_what_no_stand_in_can_do_is_named(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(TypeError, match=rf"fused function `strange`: .*{message}"):
        gs.fuse(function, kernel_name="strange")(X, 1.5)


# ---- numbers ----


def test_numbers_are_calculated_once_each() -> None:
    def root(a: Any, p: Any) -> Any:
        r = p
        for _ in range(40):  # each step uses the last one twice
            r = 0.5 * (r + p / r)
        return a * r

    def grown(a: Any, p: Any) -> Any:
        for _ in range(3000):
            p = p * 1.0001
        return a * p

    check_calls(root, (X, 2.0), (X, 3.0), (X, 5.0))
    check_calls(grown, (X, 2.0), (X, 3.0))


def test_types_of_numbers_that_values_decide() -> None:
    """All are kept: types that come by turns are traced once each."""
    runs = []

    def powers(a: Any, n: Any) -> Any:
        runs.append(1)
        return a * 10**n

    fused = gs.fuse(powers)
    for n in (1, -1, 2, -2, 3):
        assert fused(K, n).dtype == (K * 10**n).dtype
    assert len(runs) == 2
    check_calls(lambda a, n: a * np.clip(n, 0, None), (X, 2**63 - 1), (X, 2**63), (X, -1))


@pytest.mark.parametrize(
    "numbers_of",
    [
        lambda k: k + 0.1, lambda k: k * 1_000_003 - 2**40, lambda k: complex(k / 7, -0.0), lambda k: np.float32(k / 7),
        np.uint8, lambda k: [np.nan, np.inf, -np.inf, -0.0][k % 4],
    ],
)  # fmt: skip
def test_many_numbers_of_the_text(xp: Any, numbers_of: Callable[[int], Any]) -> None:
    """More than a kernel has parameters for."""

    def together(a: Any) -> Any:
        result = a
        for k in range(200):
            result = a * numbers_of(k) + k * 1e-3 - result
        return result

    a = np.array([1, 2, -3], np.complex128)
    with np.errstate(invalid="ignore"):
        expected = together(a)
    np.testing.assert_allclose(gs.asnumpy(gs.fuse(together)(xp.asarray(a))), expected, rtol=1e-12)


def test_many_numbers_among_the_arguments(xp: Any) -> None:
    """More than a kernel has parameters for, of all sizes."""

    def weighted(a: Any, numbers: Any, *others: Any) -> Any:
        result = a
        for k, each in enumerate(numbers):
            result = result * 0.5 + each * (k % 5)
        return result + sum(others)

    kinds = [float, int, np.float32, np.float16, np.int16, np.uint8, np.int64, np.complex64]
    a = np.array([1, 2, -3], np.complex128)
    fused = gs.fuse(weighted)
    folded = gs.fuse(lambda *arguments: weighted(*arguments).sum())
    for start in (0, 1):
        arguments = [kinds[k % len(kinds)](start + k % 40) for k in range(400)], 0.25, np.complex128(2j)
        got = gs.asnumpy(fused(xp.asarray(a), *arguments))
        np.testing.assert_allclose(got, weighted(a, *arguments), rtol=1e-12)
        got = gs.asnumpy(folded(xp.asarray(a), *arguments))
        np.testing.assert_allclose(got, weighted(a, *arguments).sum(), rtol=1e-12)


def test_too_many_arguments_for_one_kernel_are_refused() -> None:
    with pytest.raises(TypeError, match=r"`total`: 200 arrays in one kernel, which takes 128: make a fused"):
        gs.fuse(lambda xs: sum(xs[1:], xs[0]), kernel_name="total")([X] * 200)
    with pytest.raises(
        TypeError, match=r"`total`: 3000 numbers of 24000 bytes in one kernel, which takes 16384"
    ):
        gs.fuse(lambda x, ps: sum(ps, x), kernel_name="total")(X, [float(k) for k in range(3000)])
