"""What is neither an array nor a number: constants, which may be other ones, or change, between calls."""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import datetime
import decimal
import fractions
import functools
import gc
import math
import operator
import random
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from tests.every_target.test_fuse_arguments import check_calls

X = np.arange(6.0).reshape(2, 3)


class Model:
    def __init__(self, factor: Any) -> None:
        self.factor = factor

    def scaled(self, x: Any) -> Any:
        return x * self.factor


class Equal(Model):
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)

    def __hash__(self) -> int:
        return 1


class Slotted:
    __slots__ = ("factor",)

    def __init__(self, factor: Any) -> None:
        self.factor = factor


@dataclasses.dataclass(eq=False)
class OfIdentity:
    factor: Any


@dataclasses.dataclass
class OfFields:
    factor: Any


@dataclasses.dataclass(slots=True, frozen=True)
class Frozen:
    factor: Any


def scaled(x: Any, model: Any) -> Any:
    return x * model.factor


def scaled_by_all(x: Any, model: Any) -> Any:
    for each in model.factor:
        x = x * each
    return x


CLASSES = [Model, Equal, Slotted, OfIdentity, OfFields, lambda factor: types.SimpleNamespace(factor=factor)]


@pytest.mark.parametrize("make", CLASSES, ids=["plain", "equal", "slots", "identity", "fields", "namespace"])
def test_attributes_of_objects_may_change(make: Callable[[Any], Any]) -> None:
    fused, model = gs.fuse(scaled), make(2.0)
    for factor in (2.0, 3.0, 3, np.float32(2), 2.0):
        model.factor = factor
        got = fused(X, model)
        assert got.dtype == (X * factor).dtype
        np.testing.assert_array_equal(got, X * factor)
    check_calls(scaled, (X, make(2.0)), (X, make(3.0)), (X, make(2.0)))
    fused, model = gs.fuse(scaled_by_all), make([2.0])
    for _ in range(3):
        np.testing.assert_array_equal(fused(X, model), scaled_by_all(X, model))
        model.factor.append(3.0)


def test_what_stands_in_objects_within_objects_may_change() -> None:
    model = Model(Model([{"a": OfFields(2.0)}]))
    model.factor.itself = model
    fused = gs.fuse(lambda x, m: x * m.factor.factor[0]["a"].factor)
    np.testing.assert_array_equal(fused(X, model), X * 2)
    model.factor.factor[0]["a"].factor = 5.0
    np.testing.assert_array_equal(fused(X, model), X * 5)


def test_objects_are_traced_once_while_nothing_changes() -> None:
    runs = []

    def counted(x: Any, model: Any) -> Any:
        runs.append(1)
        return x * model.factor

    fused, model = gs.fuse(counted), Model(2.0)
    model.unknown, model.itself, model.table = {1: 2}.keys(), model, np.ones(5000)
    for _ in range(3):
        fused(X, model)
    assert len(runs) == 1
    for _ in range(2):
        fused(X, Frozen(2.0)), fused(X, OfFields(2.0))
    assert len(runs) == 3
    for _ in range(2):
        gs.fuse(counted)(X, model)
    third = gs.fuse(lambda x, p: counted(x, Model(float(p))))
    runs.clear()
    for _ in range(2):
        third(X, fractions.Fraction(1, 3))
    assert len(runs) == 1


def test_a_fused_method_sees_attributes_of_its_object() -> None:
    class Layer(Model):
        forward = gs.fuse(Model.scaled)

    layer, other = Layer(2.0), Layer(4.0)
    for factor in (2.0, 3.0):
        layer.factor = factor
        np.testing.assert_array_equal(layer.forward(X), X * factor)
        np.testing.assert_array_equal(other.forward(X), X * 4)


def test_small_arrays_within_objects_may_change() -> None:
    model = Model(np.array([2.0, 3.0]))
    fused = gs.fuse(lambda x, m: x * float(m.factor[0]))
    np.testing.assert_array_equal(fused(X, model), X * 2)
    model.factor[0] = 7
    np.testing.assert_array_equal(fused(X, model), X * 7)


def test_sets_and_queues_may_be_arguments() -> None:
    check_calls(
        lambda x, p: x * max(p), (X, {1, 2}), (X, {1, 3}), (X, collections.deque([5, 1])), (X, {1, 2})
    )


def test_dicts_with_orders_and_defaults_are_taken_apart() -> None:
    ordered = collections.OrderedDict(a=X, b=2.0)
    usual = collections.defaultdict(lambda: 7.0, a=X)
    other = collections.defaultdict(lambda: 8.0, a=X)
    check_calls(lambda d: d["a"] * d["b"], (ordered,), (usual,), (other,), ({"a": X, "b": 3.0},))
    empty = collections.defaultdict(lambda: 7.0, a=X)
    np.testing.assert_array_equal(gs.fuse(lambda d: d["a"] * d["b"])(empty), X * 7)
    assert list(empty) == ["a"]
    assert empty["a"] is X


# ---- lists and arrays beside numbers ----


def test_tables_beside_numbers_may_change_within_the_function() -> None:
    def function(x: Any, p: Any) -> Any:
        coefficients = [1.0]
        first = np.polyval(coefficients, p)
        coefficients.append(2.0)
        table = np.array([0.0, 1.0])
        second = np.interp(p, [0.0, 4.0], table)
        table[1] = 100
        return x * first + np.polyval(coefficients, p) + second

    check_calls(function, (X, 2.0), (X, 3.0), (X, 2.5), (X, 2.0))


def test_tables_beside_numbers_may_change_between_calls() -> None:
    table, runs = np.array([0.0, 10.0]), []

    def function(x: Any, p: Any) -> Any:
        runs.append(1)
        return x * np.interp(p, [0.0, 1.0], table)

    fused = gs.fuse(function)
    for last in (10.0, 10.0, 20.0, 20.0):
        table[1] = last
        np.testing.assert_array_equal(fused(X, 0.5), X * last / 2)
        np.testing.assert_array_equal(fused(X, 0.25), X * last / 4)
    assert len(runs) == 2


# ---- what other calls left ----


def test_numbers_that_a_function_keeps_are_what_they_were() -> None:
    kept: dict[str, Any] = {}

    def function(x: Any, p: Any) -> Any:
        kept.setdefault("p", p * 1)
        return x * kept["p"] + kept["p"] * p

    fused = gs.fuse(function)
    np.testing.assert_array_equal(fused(X, 2.0), X * 2 + 4)
    np.testing.assert_array_equal(fused(X.astype(np.float32), 5.0), X.astype(np.float32) * 2 + 10)
    assert kept["p"] * 3 == 6.0
    assert type(kept["p"] * 3) is float


def test_functions_with_caches_may_be_called() -> None:
    @functools.lru_cache
    def doubled(p: Any) -> Any:
        return p * 2

    check_calls(lambda x, p: x * doubled(p), (X, 1.0), (X, 2.0), (X, 1.0), (X, 3.0))


def test_fused_functions_may_be_called_with_numbers_and_other_arrays() -> None:
    inner = gs.fuse(lambda a, q: a * q + q)

    def function(x: Any, p: Any, q: Any) -> Any:
        return x * float(inner(np.ones(3), p + q).sum()) * p

    check_calls(function, (X, 2.0, 3.0), (X, 4.0, 5.0), (X, 2.0, 4.0))
    check_calls(
        lambda x, p: x * float(gs.fuse(lambda a, q: a * q * p)(np.ones(3), p * 2).sum()), (X, 1.0), (X, 2.0)
    )
    with pytest.raises(
        TypeError, match=r"a call of the fused function `fused` with `a` and arrays that are no arg"
    ):
        gs.fuse(lambda x, p: inner(x, np.ones(3)))(X, 1.0)


def test_arrays_that_a_function_keeps_are_refused() -> None:
    kept: dict[str, Any] = {}

    def keeping(x: Any) -> Any:
        kept["x"] = x + 1
        kept["sum"] = np.sum(x)
        return kept["x"]

    gs.fuse(keeping)(X)
    for function in (
        lambda x: x + kept["x"],
        lambda x: kept["x"],
        lambda x: np.sin(kept["x"]),
        lambda x: kept["sum"],
    ):
        with pytest.raises(
            TypeError, match="an array that another call of a fused function had, and that was kept"
        ):
            gs.fuse(function)(X)


def test_traces_of_values_that_matter_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    from gridstride.families.fuse import fused as module

    monkeypatch.setattr(module, "_MOST_KEPT", 3)
    fused = gs.fuse(lambda x, p: x * len(f"{p}"))
    for p in range(8):
        np.testing.assert_array_equal(fused(X, 10**p), X * (p + 1))
    assert len(fused._traces) == 3
    np.testing.assert_array_equal(fused(X, 1), X)


# ---- classes of arrays ----


@pytest.mark.parametrize("name", ["mean", "clip", "__gt__", "__invert__", "__array_wrap__", "astype", "real"])
def test_classes_of_arrays_that_do_something_otherwise_are_refused(name: str) -> None:
    kind = type("Own", (np.ndarray,), {name: lambda *args, **kwargs: 1})
    with pytest.raises(TypeError, match=rf"the argument `x` is a Own, whose {name} is not that of arrays"):
        gs.fuse(lambda x: x + 1)(X.view(kind))


def test_memory_maps_are_arrays(tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "x", np.float32, "w+", shape=(3,))
    mapped[:] = [1, 2, 3]
    np.testing.assert_array_equal(gs.fuse(lambda x: x.mean())(mapped), np.float32(2))


# ---- powers ----


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128, np.int32])
def test_edges_of_powers_are_those_of_numpy(dtype: Any) -> None:
    edges = [0, 4, 9, -3] if dtype is np.int32 else [-np.inf, -0.0, 0, 4, 9, -3]
    x = np.array(edges, dtype)
    for function in (lambda x, p: x**p, np.power):
        fused = gs.fuse(function)
        for p in (0.5, 2.0, 2, 3, 0.25, -1.0, -0.5, np.float64(0.5), np.array(0.5)):
            with np.errstate(all="ignore"):
                wanted, got = function(x, p), fused(x, p)
                constant = gs.fuse(lambda x, function=function, p=p: function(x, p))(x)
            for each in (got, constant):
                assert each.dtype == wanted.dtype
                np.testing.assert_allclose(each, wanted, rtol=1e-3)
                numbers = ~np.isnan(wanted)
                np.testing.assert_array_equal(
                    np.signbit(each.real)[numbers], np.signbit(wanted.real)[numbers]
                )


def test_arrays_filled_with_arrays_keep_their_shape() -> None:
    filled = gs.fuse(np.full_like)
    np.testing.assert_array_equal(filled(X, np.arange(3.0)), np.full_like(X, np.arange(3.0)))
    with pytest.raises(
        ValueError, match=r"full_like\(\) of an array of shape \(2, 3\) by what has shape \(4, 2, 3\)"
    ):
        filled(X, np.ones((4, 2, 3)))


# ---- what changes in the function, or without anybody noticing ----


class Counting:
    count = 0

    @gs.fuse
    def step(self, x: Any) -> Any:
        self.count += 1
        return x * self.count


class Lazy:
    factor: float | None = None

    def first(self) -> float:
        if self.factor is None:
            self.factor = 2.0
            return 1.0
        return self.factor


def test_objects_that_the_function_changes_are_as_alone() -> None:
    counting, lazy, of_lazy = Counting(), Lazy(), gs.fuse(lambda x, m: x * m.first())
    for count, factor in ((1, 1), (2, 2), (3, 2)):
        np.testing.assert_array_equal(counting.step(X), X * count)
        np.testing.assert_array_equal(of_lazy(X, lazy), X * factor)


@pytest.mark.parametrize("name", ["iterator", "method", "partial", "reference", "random"])
def test_arguments_that_change_unnoticed_are_as_alone(name: str) -> None:
    def made() -> tuple[Callable[[], Any], Callable[[], Any]]:
        table, model = {"a": 2.0}, Model(2.0)
        rows = iter([2.0, 3.0])
        found: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
            "iterator": (lambda: rows.__next__, lambda: None),
            "method": (lambda: functools.partial(table.get, "a"), lambda: table.update(a=3.0)),
            "partial": (lambda: functools.partial(sum, list(table.values())), lambda: table.update(b=3.0)),
            "reference": (lambda: lambda: 2.0, lambda: None),
            "random": (lambda: random.Random(len(table)).random, lambda: table.update(b=1.0)),
        }
        if name == "reference":
            reference = weakref.ref(model)
            return (lambda: reference), (lambda: setattr(model, "factor", 3.0))
        return found[name]

    def function(x: Any, get: Any) -> Any:
        found = get()
        return x * getattr(found, "factor", found)

    fused, (get, change), (get_alone, change_alone) = gs.fuse(function), made(), made()
    for _ in range(2):
        np.testing.assert_array_equal(fused(X, get()), function(X, get_alone()))
        change()
        change_alone()


def test_equal_values_of_the_library_that_differ() -> None:
    noon = datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC)
    later = noon.astimezone(datetime.timezone(datetime.timedelta(hours=1)))
    check_calls(lambda x, p: x * p.hour, (X, noon), (X, later))
    check_calls(
        lambda x, p: x * p.stop,
        (X, range(0, 10, 3)),
        (X, range(0, 12, 3)),
        (X, slice(0, 7)),
        (X, slice(0, 7.0)),
    )
    check_calls(lambda x, p: x * p.maxlen, (X, collections.deque([1], 3)), (X, collections.deque([1], 5)))
    check_calls(
        lambda x, p: x * p.as_tuple().exponent, (X, decimal.Decimal("2.0")), (X, decimal.Decimal("2.00"))
    )


def test_dataclasses_with_an_identity_or_a_value() -> None:
    first, second = OfIdentity(2.0), OfIdentity(2.0)
    factors = {first: 2.0, second: 3.0}
    check_calls(lambda x, m: x * factors[m], (X, first), (X, second))
    check_calls(lambda x, s: x * len(s), (X, {first}), (X, {first, second}))
    degrees = dataclasses.dataclass(init=False)(type("Degrees", (float,), {}))
    check_calls(lambda x, p: x * p, (X, degrees(2.0)), (X, degrees(3.0)))


def test_strange_objects_are_constants() -> None:
    names: dict[str, Any] = {}
    exec("class Slotted:\n    __slots__ = ('factor',)\n", names)
    slotted = names["Slotted"]()
    fused = gs.fuse(scaled)
    for factor in (2.0, 3.0):
        slotted.factor = factor
        np.testing.assert_array_equal(fused(X, slotted), X * factor)
    chain = Model(3.0)
    for _ in range(400):
        chain, chain.factor = Model(3.0), chain  # type: ignore[attr-defined]
    chain.factor = 3.0
    for each in (
        chain,
        type("Taped", (Model,), {"tape": None})(3.0),
        type("Lost", (Model,), {"__module__": None})(3.0),
    ):
        np.testing.assert_array_equal(fused(X, each), X * 3)


class Proxy(Model):
    """Raises what it likes, other than an `AttributeError`, for all that it does not have."""

    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


class HalfSlotted(Proxy):
    __slots__ = ("unset",)


class Hidden(Model):
    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("looked at")


class Unread(list[Any]):
    factor = 3.0

    def __len__(self) -> int:
        raise RuntimeError("looked at")

    __iter__ = __len__  # type: ignore[assignment]


def test_objects_that_raise_when_they_are_looked_at_are_constants() -> None:
    for each in (Proxy(3.0), HalfSlotted(3.0), Hidden(3.0), Unread()):
        np.testing.assert_array_equal(gs.fuse(scaled)(X, each), X * 3)
        within = Model(each)
        fused = gs.fuse(lambda x, outer: x * outer.factor.factor)
        for _ in range(2):
            np.testing.assert_array_equal(fused(X, within), X * 3)


def test_containers_that_stand_in_themselves_are_refused() -> None:
    within: list[Any] = [X]
    within.append(within)
    with pytest.raises(TypeError, match=r"the argument `p\[1\]` is a list that stands in itself"):
        gs.fuse(lambda p: p[0])(within)

    def itself(x: Any) -> Any:
        result = [x * 2]
        result.append(result)
        return result

    with pytest.raises(TypeError, match="a result that is a list that stands in itself"):
        gs.fuse(itself)(X)


def test_objects_are_not_kept_alive() -> None:
    fused, seen = gs.fuse(scaled), []
    for _ in range(3):
        model = Model(2.0)
        seen.append(weakref.ref(model))
        fused(X, model)
        del model
    gc.collect()
    assert [each() for each in seen] == [None] * 3


def test_other_threads_may_ask_for_numbers() -> None:
    def function(x: Any, p: Any) -> Any:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return x * pool.submit(lambda: p * 2).result()

    check_calls(function, (X, 2.0), (X, 3.0), (X, 2.0))


def test_arrays_that_are_kept_do_not_change_earlier_calls() -> None:
    kept: dict[str, Any] = {}

    @gs.fuse
    def function(x: Any, y: Any) -> Any:
        t = x * 2
        if "t" in kept:
            kept["t"] += 100
        kept.setdefault("t", t)
        return t, t + y

    function(X, X)
    with pytest.raises(TypeError, match="an array that another call of a fused function had"):
        function(X.astype(np.float32), X)
    np.testing.assert_array_equal(function(X[0], X)[0], X[0] * 2)


def test_powers_in_place_have_the_edges_of_others() -> None:
    def root(x: Any, p: Any) -> Any:
        t = x * 1
        t **= p
        return t

    for dtype in (np.float16, np.float32, np.complex64):
        x = np.array([-np.inf, -0.0, 4], dtype)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(gs.fuse(root)(x, 0.5), root(x, 0.5))


def test_variances_of_one_element() -> None:
    x = np.array([[np.nan], [1.0], [np.inf]])
    with np.errstate(all="ignore"):
        for function in (
            lambda x: np.var(x, axis=1),
            lambda x: x[:1].std() if type(x) is np.ndarray else x.std(axis=1),
        ):
            np.testing.assert_array_equal(np.ravel(gs.fuse(function)(x))[:1], [np.nan])
        np.testing.assert_array_equal(gs.fuse(lambda x: np.var(x, axis=1))(x), np.var(x, axis=1))


def test_numbers_may_be_keys_and_texts_stand_beside_results() -> None:
    found = gs.fuse(lambda x, p: {p: x * 2, "name": "twice", "nothing": None})(X, 2.0)
    assert [type(each) for each in found] == [float, str, str]
    assert found["name"] == "twice"


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.zeros_like(x, dtype=object), lambda x: np.add(x, 1, dtype=np.longdouble),
        lambda x: x.astype(">f4"), lambda x: np.zeros_like(x, dtype="V4"), lambda x: np.sum(x, dtype=">f4"),
    ],
)  # fmt: skip
def test_dtypes_that_no_kernel_has_are_named_with_the_line(function: Callable[..., Any]) -> None:
    with pytest.raises(
        TypeError, match=r"fused function `fused`: cannot trace .*test_fuse_constants.py, line"
    ):
        gs.fuse(function, kernel_name="fused")(X)


@pytest.mark.parametrize(
    "value",
    [
        np.sin, math.sin, operator.add, operator.itemgetter(0), functools.partial(max, 1), functools.lru_cache(abs),
        len, float, np.float32, np.dtype("f4"), slice(1, 2), [slice(1, 2), slice(3, 4)], ..., fractions.Fraction(1, 3),
        datetime.date(2020, 1, 1), np.linalg.norm, np.ndarray.sum, str.upper, {1, 2}, np.polynomial.Polynomial([1, 2]),
        gs.fuse(scaled), scaled, Model, Model(1.0).scaled,
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_functions_and_other_values_are_traced_once(value: Any) -> None:
    runs = []
    fused = gs.fuse(lambda x, v: (runs.append(1), x * 2)[1])
    for _ in range(3):
        np.testing.assert_array_equal(fused(X, value), X * 2)
    assert len(runs) == 1
