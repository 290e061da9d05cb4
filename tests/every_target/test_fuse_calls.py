"""Calls of fused functions: how arguments reach the function, and what it does when something raises."""

from __future__ import annotations

import collections
import dataclasses
import functools
import operator
import statistics
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from tests.every_target.test_fuse_arguments import Keywords, check_calls

X = np.arange(6.0).reshape(2, 3)
SMALL = np.array([1, 2, 3], np.uint8)


def raised_by(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error)


def check_as_alone(function: Callable[..., Any], *calls: tuple[Any, ...]) -> None:
    """Compare calls of one fused function, some of which raise, with those of the function itself."""
    fused = gs.fuse(function)
    for call in calls:
        got, wanted = raised_by(lambda call=call: fused(*call)), raised_by(lambda call=call: function(*call))
        if isinstance(wanted, type):
            assert got is wanted, call
        else:
            assert got.dtype == wanted.dtype, call
            np.testing.assert_array_equal(got, wanted, err_msg=str(call))


def guarded(function: Callable[..., Any], *errors: type[Exception]) -> Callable[..., Any]:
    """Return a function that goes on where another raises."""

    def otherwise(x: Any, *rest: Any) -> Any:
        try:
            return function(x, *rest)
        except errors:
            return x + 100

    return otherwise


@pytest.mark.parametrize("numbers", [(2.0, 0.0, 4.0), (0.0, 2.0, 0.0)], ids=["fits_first", "raises_first"])
def test_a_function_that_catches_errors_of_numbers_goes_on_as_alone(numbers: tuple[float, ...]) -> None:
    calls = [(X, each) for each in numbers]
    check_as_alone(guarded(lambda x, p: x * (1 / p), ZeroDivisionError), *calls)
    check_as_alone(guarded(lambda x, p: x * (1 // p), ZeroDivisionError), *calls)
    check_as_alone(lambda x, p: x * (1 / p), *calls)


@pytest.mark.parametrize("numbers", [(2, 300, 4, -1), (300, 2, 400)], ids=["fits_first", "raises_first"])
def test_a_function_that_catches_integers_that_do_not_fit_goes_on_as_alone(numbers: tuple[int, ...]) -> None:
    calls = [(SMALL, each) for each in numbers]
    check_as_alone(guarded(lambda x, p: x + p, OverflowError), *calls)
    check_as_alone(lambda x, p: x + p, *calls)


def test_errors_of_numpy_are_treated_as_the_function_says() -> None:
    def silent(x: Any, a: Any, b: Any) -> Any:
        with np.errstate(divide="ignore"):
            return x * (a / b)

    def raising(x: Any, a: Any, b: Any) -> Any:
        try:
            with np.errstate(divide="raise"):
                quotient = a / b
        except FloatingPointError:
            return x - 1
        return x * quotient

    calls = [(X + 1, np.float64(1), np.float64(each)) for each in (2, 0, 4, 0)]
    for order in (calls, calls[1:]):
        check_as_alone(silent, *order)
        check_as_alone(raising, *order)
    fused = gs.fuse(raising)
    with np.errstate(divide="raise"):  # as the function says itself
        np.testing.assert_array_equal(fused(*calls[0]), raising(*calls[0]))
    for call in calls:
        np.testing.assert_array_equal(fused(*call), raising(*call))
    fused = gs.fuse(lambda x, a, b: x * (a / b))
    with np.errstate(divide="raise"):
        fused(*calls[0])
        with pytest.raises(FloatingPointError):
            fused(*calls[1])
    with np.errstate(divide="ignore"):
        assert np.isinf(fused(*calls[1])).all()


def test_errors_of_arrays_that_the_function_asks_for_are_refused() -> None:
    def raising(x: Any, y: Any, what: str) -> Any:
        with np.errstate(**{what: "raise"}):
            return x / y

    def warned(x: Any, y: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = x + 0.5
            warnings.simplefilter("error")
            return x // y

    refused = r"divide\(\) where NumPy is told to raise or report errors of floats.*look at the results"
    for function, *rest in ((raising, "divide"), (raising, "invalid"), (warned,)):
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            with pytest.raises(TypeError, match=refused):
                gs.fuse(function)(X, X + 1, *rest)
    with np.errstate(all="raise"):  # of which the function says nothing, as with any kernel
        assert np.isinf(gs.fuse(lambda x: x / 0.0)(X + 1)).all()

    def elsewhere(x: Any, a: Any, b: Any) -> Any:
        with np.errstate(divide="raise"):
            return (x > 1) * (x * (a / b))

    check_as_alone(elsewhere, (X, 1.0, 2.0))


def test_negative_exponents_are_caught_as_alone() -> None:
    x = np.array([1, 2, 3])
    check_as_alone(guarded(operator.pow, ValueError), (x, 2), (x, -1), (x, 3))


def test_what_cannot_be_traced_is_an_error_though_the_function_catches_it() -> None:
    def either(x: Any) -> Any:
        try:
            return x if x > 0 else -x
        except TypeError:
            return x + 1

    with pytest.raises(TypeError, match="a decision about the values of an array"):
        gs.fuse(either)(X)
    with pytest.raises(TypeError, match="a loop over an array"):
        gs.fuse(lambda x: x * 2 if np.iterable(x) else x)(X)


def test_a_parameter_that_a_decision_was_made_by_may_be_an_array() -> None:
    check_calls(lambda x, p: x * 2 if isinstance(p, float) and p > 1 else x * p, (X, 2.0), (X, X), (X, X + 1))


def test_numbers_then_arrays_share_kernels_where_they_can() -> None:
    traced = []

    @gs.fuse
    def function(x: Any, p: Any) -> Any:
        traced.append(1)
        return x * 2 if isinstance(p, float) and p > 1 else x * p

    function(X, 2.0)
    for k in range(3):
        np.testing.assert_array_equal(function(X, X + k), X * (X + k))
    assert len(traced) == 2


def test_what_is_left_out_has_its_default() -> None:
    def before_more(x: Any, mode: str = "double", *rest: Any) -> Any:
        return sum(rest, x * 2 if mode == "double" else x)

    def by_place(x: Any, mode: str = "double", /, n: Any = 1) -> Any:
        return x * n * (2 if mode == "double" else 1)

    def with_none(x: Any, y: Any = None, *, z: Any = None) -> Any:
        return x if y is None and z is None else x + 1

    check_calls(before_more, (X,), (X, "single"), (X, "single", X, 2.0))
    check_calls(by_place, (X,), (X, Keywords(n=3)), (X, "single", 2))
    check_calls(with_none, (X,), (X, Keywords(z=1)), (X, 2))


def test_a_wrapper_may_take_more_than_what_it_wraps() -> None:
    def plain(x: Any, factor: Any = 2) -> Any:
        return x * factor

    @functools.wraps(plain)
    def named(x: Any, factor: Any = 2, shift: Any = 0) -> Any:
        return plain(x, factor) + shift

    @functools.wraps(plain)
    def open_to_all(*args: Any, **kwargs: Any) -> Any:
        shift = kwargs.pop("shift", 0)
        return plain(*args, **kwargs) + shift

    for each in (named, open_to_all):
        check_calls(each, (X,), (X, Keywords(shift=1)), (X, 3, Keywords(shift=2.0)), (X, Keywords(factor=X)))


@pytest.mark.parametrize("name", ["double", "new", "template", "printf", "größe", "<lambda>"])
def test_functions_have_names_that_kernels_cannot_have(name: str) -> None:
    def function(x: Any) -> Any:
        return x + 1

    function.__name__ = name
    np.testing.assert_array_equal(gs.fuse(function)(X), X + 1)


@pytest.mark.parametrize("name", ["", "double", "a b", "größe"])
def test_a_name_that_is_given_must_be_one(name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a kernel"):
        gs.fuse(lambda x: x, kernel_name=name)


class Scaled:
    def __init__(self, factor: float) -> None:
        self._function = self._name = self._signature = self._traces = factor

    def __call__(self, x: Any) -> Any:
        return x * self._traces


def test_objects_that_can_be_called_keep_their_attributes_to_themselves() -> None:
    check_calls(Scaled(3.0), (X,), (X + 1,))
    assert repr(gs.fuse(Scaled(3.0))) == "<fused function 'fused'>"


def test_a_fused_function_can_be_fused_by_another_name() -> None:
    @gs.fuse
    def inner(x: Any) -> Any:
        return x + 1

    inner.tag = "kept"
    again = gs.fuse(inner, kernel_name="outer")
    assert repr(again) == "<fused function 'outer'>"
    assert again.tag == "kept"
    np.testing.assert_array_equal(again(X), X + 1)


@dataclasses.dataclass
class Model:
    factor: Any

    @gs.fuse
    def scaled(self, x: Any) -> Any:
        return x * self.factor


def test_fields_of_an_object_may_change_between_calls() -> None:
    model = Model(2.0)
    np.testing.assert_array_equal(model.scaled(X), X * 2)
    model.factor = 3.0
    np.testing.assert_array_equal(model.scaled(X), X * 3)
    with pytest.raises(TypeError, match=r"an array that is no argument, of shape .* pass it to the function"):
        Model(X).scaled(X)


class Masked(np.ndarray):
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return 0


class Named(np.ndarray):
    label = "plain arithmetic"


def test_classes_with_arithmetic_of_their_own_are_refused() -> None:
    product = gs.fuse(lambda x, y: x * y)
    with pytest.raises(TypeError, match="the argument `y` is a matrix, whose __mul__ is not that of arrays"):
        product(X, X.view(np.matrix))
    with pytest.raises(TypeError, match="the argument `x` is a Masked, whose __array_ufunc__ is not that of"):
        product(X.view(Masked), X)
    np.testing.assert_array_equal(product(X.view(Named), X), X * X)


def test_numbers_of_python_keep_what_python_does_with_them() -> None:
    check_calls(lambda x, p: x * pow(p, 2, 5), (X, 3), (X, 4))
    with pytest.raises(TypeError, match="takes no stand-in for a number: pass it the number as float"):
        gs.fuse(lambda x, p: x * statistics.mean([p, 1.0]))(X, 3.0)
    check_calls(lambda x, p: x * statistics.mean([float(p), 1.0]), (X, 3.0), (X, 4.0))


def test_powers_of_booleans_have_the_dtype_of_the_exponent() -> None:
    flags = np.array([True, False])
    check_calls(lambda x, p: x**p, (flags, 2), (flags, 3), (flags, 2.0), (flags, np.int16(2)))


# ---- what functions return, and where they stand ----


def test_results_may_stand_in_containers() -> None:
    def function(x: Any, p: Any) -> Any:
        return {"twice": x * 2, "rest": (p, [x + p, {"one": x - 1}])}

    got = gs.fuse(function)(X, 2.0)
    assert list(got) == ["twice", "rest"]
    np.testing.assert_array_equal(got["twice"], X * 2)
    assert got["rest"][0] == 2.0
    np.testing.assert_array_equal(got["rest"][1][0], X + 2)
    np.testing.assert_array_equal(got["rest"][1][1]["one"], X - 1)
    for nothing in ({}, ((),)):
        with pytest.raises(TypeError, match="returns nothing"):
            gs.fuse(lambda x, nothing=nothing: nothing)(X)
    with pytest.raises(TypeError, match="several results of which one is a reduction"):
        gs.fuse(lambda x: {"x": x, "sum": np.sum(x)})(X)


@dataclasses.dataclass
class Split:
    low: Any
    high: Any
    unit: str = "m"
    width: Any = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.width = self.high - self.low


@dataclasses.dataclass(frozen=True, slots=True)
class Bounds:
    low: Any
    high: Any


@pytest.mark.parametrize(
    "make",
    [
        Split, Bounds, lambda low, high: collections.OrderedDict(high=high, low=low),
        lambda low, high: collections.defaultdict(list, low=low, high=high),
    ],
)  # fmt: skip
def test_results_may_stand_in_objects_of_fields_and_in_other_dicts(make: Callable[[Any, Any], Any]) -> None:
    def function(x: Any, p: Any) -> Any:
        return make(x - p, x + p)

    fused = gs.fuse(function)
    results = [fused(X, p) for p in (1.0, 2.0)]
    for p, got in zip((1.0, 2.0), results, strict=True):
        wanted = function(X, p)
        assert type(got) is type(wanted)
        of_got, of_wanted = (
            each if isinstance(each, dict) else dataclasses.asdict(each) for each in (got, wanted)
        )
        assert list(of_got) == list(of_wanted)
        for name, each in of_wanted.items():
            np.testing.assert_array_equal(of_got[name], each)
    if isinstance(results[0], collections.defaultdict):
        assert results[0]["new"] == []
        assert "new" not in results[1]


def test_methods_of_classes_may_be_decorated_on_either_side() -> None:
    class Functions:
        factor = 3

        @gs.fuse
        @staticmethod
        def doubled(x: Any) -> Any:
            return x * 2

        @gs.fuse(kernel_name="by_factor")
        @classmethod
        def scaled(cls, x: Any) -> Any:
            return x * cls.factor

        @staticmethod
        @gs.fuse
        def shifted(x: Any) -> Any:
            return x + 1

    for found in (Functions, Functions()):
        np.testing.assert_array_equal(found.doubled(X), X * 2)
        np.testing.assert_array_equal(found.scaled(X), X * 3)
        np.testing.assert_array_equal(found.shifted(X), X + 1)


def test_parts_of_complex_values_are_assigned_to() -> None:
    def function(z: Any, p: Any, y: Any) -> Any:
        t = z * 1
        t.real += p
        t.imag = y
        t.real = t.real * 2
        return t

    z = np.array([1 + 2j, 3 + 4j])
    check_calls(function, (z, 1.0, 7), (z.astype(np.complex64), 1.0, 2.5), (z, 2, np.array([5.0, 6.0])))

    def real(x: Any, y: Any) -> Any:
        t = x * 1.0
        t.real = y
        t.real += 1
        return t

    check_calls(real, (X, 2), (X, np.arange(3.0)))
    with pytest.raises(ValueError, match="a change in place of an array of shape"):
        gs.fuse(real)(X, np.ones((4, 2, 3)))

    def imaginary(x: Any) -> Any:
        t = x * 1
        t.imag = 3
        return t

    def of_argument(z: Any) -> Any:
        z.real = 3
        return z

    with pytest.raises(TypeError, match="no imaginary part to set"):
        gs.fuse(imaginary)(X)
    with pytest.raises(TypeError, match="a change in place of the argument `z`"):
        gs.fuse(of_argument)(z)


def test_functions_may_ask_for_dtypes() -> None:
    check_calls(lambda x: x * 2 if np.iscomplexobj(x) else x * 3, (X,), (X * 1j,))
    check_calls(lambda x: x * 2 if np.isrealobj(x) else x * 3, (X,), (X * 1j,))
    check_calls(
        lambda x, y: x.astype(np.result_type(x, y, np.int8)), (X.astype("f4"), X.astype("i4")), (SMALL, SMALL)
    )
    check_calls(lambda x, p: np.add(x, p, out=np.empty_like(x)), (X, 2.0))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.where(x > 0, x, None), "a value of type NoneType"),
        (lambda x: np.where(x > 0), r"where\(\) of a condition alone"),
        (
            lambda x: np.sum(x, dtype=object),
            r"fused function `fused`: cannot trace sum\(\) in dtype .*object",
        ),
        (lambda x: np.sum(x, dtype="nonsense"), r"sum\(\) in dtype 'nonsense', which no kernel has \("),
    ],
)
def test_what_is_wrong_is_named(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        gs.fuse(function, kernel_name="fused")(X)


# ---- calls like earlier ones ----


def test_calls_of_all_kinds_may_follow_each_other() -> None:
    def function(x: Any, p: Any = 2.0, q: Any = None, r: Any = (1, 2)) -> Any:
        x = x * p + r[0]
        return x if q is None else x - q

    single, calls = X.astype(np.float32), []
    for x in (X, single, SMALL, X[0, 0:1].reshape(()), X[:, :2], np.float32(2) * single):
        for rest in (
            (),
            (3,),
            (3.0,),
            (np.float32(3),),
            (2.0, 1.0),
            (2.0, None),
            (np.int8(3), 2),
            (300.0,),
            (-1.5, 1e300),
        ):
            calls += [(x, *rest), (x, Keywords(p=4.0)), (x, *rest)]
    with np.errstate(all="ignore"):
        check_calls(function, *calls)


def test_numbers_that_matter_later_are_noticed() -> None:
    def function(x: Any, p: Any, q: Any) -> Any:
        return x * (2 if p > 1 else 3) if q is None else x * p

    calls = [
        (X, 2.0, 0.0),
        (X, 3.0, 0.0),
        (X, 2.0, None),
        (X, 0.5, None),
        (X, 0.5, 1.0),
        (X, 2.0, 1.0),
        (X, 3.0, None),
    ]
    check_calls(function, *calls, *calls)
    deciding = gs.fuse(lambda x, p, q: x * (q if type(q) is float or p > 1 else 5))
    for p in (2.0, 0.5, 2.0, 0.5):
        np.testing.assert_array_equal(deciding(X, p, 2), X * (2 if p > 1 else 5))


def test_shapes_that_do_not_fit_are_named_at_every_call() -> None:
    fused = gs.fuse(lambda x, y: x + y, kernel_name="fused")
    for _ in range(3):
        np.testing.assert_array_equal(fused(X, X), X + X)
        with pytest.raises(
            ValueError, match=r"fused function `fused`: the shapes do not broadcast.* x \(2, 3\), y \(4,\)"
        ):
            fused(X, np.ones(4))
