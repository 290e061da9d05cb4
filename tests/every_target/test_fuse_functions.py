"""Every elementwise function of NumPy's namespace in fused functions: values and dtypes are NumPy's own."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride.families.fuse import composed, functions
from tests.array_values import values
from tests.random_arrays import Draw, compare_examples

DTYPES = ["bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64", "complex64"]
#: In CI two of them: a text of all functions takes a compiler seconds.
CASES = [
    each if each in ("int8", "float32")
    else pytest.param(each, marks=pytest.mark.soak)
    for each in DTYPES
]  # fmt: skip
UFUNCS = sorted({getattr(np, name).__name__ for name in dir(np) if isinstance(getattr(np, name), np.ufunc)})
#: There is no element to each element, or no dtype of kernels.
NOT_ELEMENTWISE = {"matmul", "vecdot", "matvec", "vecmat", "isnat"}
#: Those whose arguments are chosen by themselves.
SPECIAL = {"ldexp", "left_shift", "right_shift", "power", "float_power", "nextafter", "spacing"}
UNARY = [name for name in UFUNCS if getattr(np, name).nin == 1 and name not in NOT_ELEMENTWISE | SPECIAL]
BINARY = [name for name in UFUNCS if getattr(np, name).nin == 2 and name not in NOT_ELEMENTWISE | SPECIAL]

Call = tuple[str, Callable[..., Any]]


def test_every_ufunc_is_traced() -> None:
    known = {name for name in UFUNCS if functions.is_known(name) or name in composed.FUNCTIONS}
    assert set(UFUNCS) - known == NOT_ELEMENTWISE


def tolerance(dtype: np.dtype[Any], name: str) -> float:
    if dtype.kind not in "fc":
        return 0.0
    exact = {"add", "subtract", "negative", "positive", "maximum", "minimum", "fmax", "fmin", "floor", "ceil", "trunc",
             "rint", "copysign", "conjugate", "fabs", "sign", "nextafter", "spacing"}  # fmt: skip
    if name in exact:
        return 0.0
    return (32 if dtype.kind == "c" else 8) * float(np.finfo(dtype).eps)


def compare(calls: list[Call], *arguments: Any) -> None:
    """Compare functions with themselves, several in one kernel; what NumPy refuses must be refused."""
    fine, expected = [], []
    for name, call in calls:
        try:
            with np.errstate(all="ignore"):
                expected.append(call(*arguments))
        except TypeError:
            with pytest.raises(TypeError):
                gs.fuse(call, kernel_name="refused")(*arguments)
            continue
        fine.append((name, call))
    for first in range(0, len(fine), 24):
        part = fine[first : first + 24]

        def together(*given: Any, part: tuple[Call, ...] = tuple(part)) -> tuple[Any, ...]:
            return tuple(call(*given) for _, call in part)

        results = gs.fuse(together, kernel_name="together")(*arguments)
        for (name, _), got, wanted in zip(part, results, expected[first:], strict=False):
            wanted = np.asarray(wanted)
            assert got.dtype == wanted.dtype, name
            assert got.shape == wanted.shape, name
            rtol = tolerance(got.dtype, name)
            np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol, equal_nan=True, err_msg=name)


def arguments(dtype: str) -> tuple[Any, Any]:
    x, y = values((61,), dtype, 1), values((61,), dtype, 2)
    if dtype[0] in "fc":
        x[:7] = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan]
        y[:7] = [0, 0, -1, 2, 1, np.nan, 3]
    if dtype[0] == "c":  # the edges of complex functions are other people's tests
        x[:7], y[:7] = 1 + 2j, 3 - 1j
        x, y = x / 32, y / 32
    return x, y


def moderate(call: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    """Return a function of arguments at which it is neither infinite nor rounded to nothing."""
    if name in ("exp", "exp2", "expm1", "sinh", "cosh", "square", "reciprocal"):
        return lambda x: call(x / 16) if x.dtype.kind in "fc" else call(x)
    return call


@pytest.mark.parametrize("dtype", CASES)
def test_functions_of_one(dtype: str) -> None:
    x, _ = arguments(dtype)
    calls: list[Call] = []
    for name in UNARY:
        ufunc = getattr(np, name)
        if ufunc.nout == 1:
            calls.append((name, moderate(ufunc, name)))
        else:
            calls += [(name, lambda x, k=k, ufunc=ufunc: ufunc(x)[k]) for k in range(ufunc.nout)]
    compare(calls, x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_neighbors_of_floats_of_two_bytes(xp: ModuleType, dtype: str) -> None:
    """All of them, bit for bit; of two zeros NumPy returned one and the other."""
    if dtype == "bfloat16" and xp is not np:
        pytest.skip("CuPy has no bfloat16")
    kind = np.dtype(np.float16) if dtype == "float16" else np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    x = np.arange(1 << 16, dtype=np.uint16).view(kind)
    fused = gs.fuse(lambda x, y: (np.nextafter(x, y), np.spacing(x)), kernel_name="neighbors")
    for y in (
        *np.array([0, -0.0, 1, -2, np.inf, -np.inf, np.nan], kind),
        np.random.default_rng(0).permutation(x),
    ):
        y = np.broadcast_to(y, x.shape)
        with np.errstate(all="ignore"):
            expected = np.nextafter(x, y), np.spacing(x)
        for got, wanted in zip(fused(xp.asarray(x), xp.asarray(y)), expected, strict=True):
            got = gs.asnumpy(got)
            same = (got.view(np.uint16) == wanted.view(np.uint16)) | (np.isnan(got) & np.isnan(wanted))
            with np.errstate(invalid="ignore"):
                same |= (x == 0) & (y == 0) & (got == wanted)
            assert same.all(), (x[~same][:5], y[~same][:5], got[~same][:5], wanted[~same][:5])


@pytest.mark.parametrize("dtype", CASES)
def test_functions_of_two(dtype: str) -> None:
    x, y = arguments(dtype)
    calls: list[Call] = [(name, getattr(np, name)) for name in BINARY if getattr(np, name).nout == 1]
    calls += [("divmod", lambda x, y, k=k: divmod(x, y)[k]) for k in (0, 1)]
    compare(calls, x, y)


@pytest.mark.parametrize("dtype", CASES)
def test_powers_and_shifts(dtype: str) -> None:
    x, y = arguments(dtype)
    y = abs(y).astype(dtype) % 5 if dtype[0] in "iu" else y / 32
    x = abs(x).astype(dtype) if dtype[0] == "f" else x
    calls: list[Call] = [("power", lambda x, y: x**y), ("square", lambda x, y: x**2), ("cube", lambda x, y: np.power(x, 3)),  # noqa: E501
                         ("float_power", lambda x, y: np.float_power(x, y))]  # fmt: skip  # noqa: PLW0108
    if dtype[0] in "iu":
        calls += [
            ("left_shift", lambda x, y: x << y),
            ("right_shift", lambda x, y: x >> y),
            ("one", lambda x, y: x >> 1),
        ]
    if dtype in ("float32", "float64"):
        calls += [
            ("ldexp", lambda x, y: np.ldexp(x, 3)),
            ("nextafter", np.nextafter),
            ("spacing", lambda x, y: np.spacing(y)),
        ]
    compare(calls, x, y)


#: Functions that are no ufuncs.
OTHERS: dict[str, Callable[..., Any]] = {
    "round": np.round, "round to 2": lambda x: np.round(x, 2), "method": lambda x: x.round(1),
    "tens": lambda x: np.round(x, -1),
    "real": np.real, "imag": np.imag, "attributes": lambda x: x.real + x.imag, "angle": np.angle,
    "degrees": lambda x: np.angle(x, deg=True), "conj": lambda x: x.conj(), "clip": lambda x: np.clip(x, 2, 50),
    "clip method": lambda x: x.clip(min=3), "clip above": lambda x: x.clip(max=7),
    "clip beyond": lambda x: np.clip(x, -1000, 100000), "isreal": np.isreal, "iscomplex": np.iscomplex, "fix": np.fix,
    "isposinf": np.isposinf, "isneginf": np.isneginf, "nan_to_num": np.nan_to_num,
    "nan_to_some": lambda x: np.nan_to_num(x, nan=7, posinf=9, neginf=-9), "sinc": np.sinc, "copy": np.copy,
    "astype": lambda x: x.astype(np.float32), "function": lambda x: np.astype(x, np.int16), "zeros": np.zeros_like,
    "ones": lambda x: np.ones_like(x, dtype=np.int32), "full": lambda x: np.full_like(x, 3),
    "select": lambda x: np.select([x < 3, x > 40], [x, x * 2], default=1), "dtype": lambda x: np.add(x, x, dtype=np.float64),  # noqa: E501
    "choice": lambda x: np.where(x, x, 5), "half of numbers": lambda x: np.where(x > 3, 1.5, 0),
    "isclose": lambda x: np.isclose(x, 3.0), "boolean": lambda x: x.astype(bool),
}  # fmt: skip


@pytest.mark.parametrize("dtype", CASES)
@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")
def test_other_functions(dtype: str) -> None:
    x, _ = arguments(dtype)
    skipped = {"astype", "function"} if dtype[0] == "c" else {"function"} if dtype[0] == "f" else set()
    skipped |= {"clip beyond"} if dtype[0] in "bc" else set()
    compare([each for each in OTHERS.items() if each[0] not in skipped], x)


# ---- numbers beside arrays ----


WITH_NUMBERS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, h: x + h, "difference": lambda x, h: h - x, "product": lambda x, h: x * (2 * h),
    "comparison": lambda x, h: (x < h) | (h == x) | (h >= x), "choice": lambda x, h: np.where(x > 3, x, h),
    "function of numbers": lambda x, h: x * np.add(h, 1), "extremes": lambda x, h: np.maximum(x, h),  # noqa: PLW0108
}  # fmt: skip


def check_numbers(draw: Draw) -> None:
    """Compare a function of an array and a number, one of several, with itself."""
    what, x = draw.pick(sorted(WITH_NUMBERS)), np.arange(5).astype(draw.pick(DTYPES))
    scalar, number = np.dtype(draw.pick(DTYPES)).type(draw.number(0, 9)), draw.pick([0.5, -2.0, 3.0])
    h = draw.pick([scalar, draw.one_in(2), draw.number(0, 9), draw.number(-300, 300), number, number * 1j])
    call = WITH_NUMBERS[what]
    fused = FUSED.setdefault(what, gs.fuse(call, kernel_name="with_number"))
    try:
        with np.errstate(all="ignore"):
            expected = call(x, h)
    except (TypeError, OverflowError) as error:
        with pytest.raises(type(error).__mro__[-4] if isinstance(error, TypeError) else OverflowError):
            fused(x, h)
        return
    result = fused(x, h)
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, rtol=1e-3 if expected.dtype == np.float16 else 1e-6)


FUSED: dict[str, Any] = {}


def test_numbers_beside_arrays() -> None:
    compare_examples(check_numbers, 12)


@pytest.mark.soak
def test_numbers_beside_arrays_for_long() -> None:
    compare_examples(check_numbers, 400)


NUMBER_FIRST: dict[str, Callable[..., Any]] = {
    "difference": lambda x, h: h - x, "quotient": lambda x, h: h / (x + 1), "largest": lambda x, h: np.maximum(h, x),
    "power": lambda x, h: h**x, "comparison": lambda x, h: np.less(h, x), "rest": lambda x, h: divmod(h, x + 1)[1],
    "condition": lambda x, h: np.where(h > 3, x, -x), "choice": lambda x, h: np.where(h, h, x),
    "select": lambda x, h: np.select([h > 3, x > 2], [h, x], 0.0), "hypot": lambda x, h: np.hypot(2 * h, x),
    "limited": lambda x, h: np.clip(h, x, 3), "limited number": lambda x, h: x + np.clip(h, min=2, max=h + 1),
    "array of no axes": lambda x, h: np.sign(np.where(h > 3, h, -2)) * x,
    "selected number": lambda x, h: x * np.select([h > 3], [h], 1.0),
    "default that is an array": lambda x, h: np.select([h > 3], [h], x),
    "quotient of numbers": lambda x, h: divmod(7, abs(h) + 1)[1] * x,
    "constant": lambda x, h: np.where(True, 2, 3) * x, "number alone": lambda x, h: np.sign(np.where(h > 3, h, -h)),
}  # fmt: skip


def test_numbers_before_arrays_are_those_of_each_call() -> None:
    x = np.arange(5.0)

    def together(x: Any, h: Any) -> tuple[Any, ...]:
        return tuple(function(x, h) for function in NUMBER_FIRST.values())

    fused = gs.fuse(together)
    for h in (2.0, 10.0, 0.0, np.float64(7), np.float64(-1), 4, 9):
        for name, got, wanted in zip(NUMBER_FIRST, fused(x, h), together(x, h), strict=True):
            assert got.dtype == wanted.dtype, (name, h)
            np.testing.assert_allclose(got, wanted, rtol=1e-15, err_msg=f"{name} {h}")


@pytest.mark.parametrize("function", [np.subtract, np.round, np.maximum, np.clip, np.mean, np.where])
def test_functions_of_numpy_are_fused_as_they_are(function: Callable[..., Any]) -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.ones(3)
    given = {np.round: (x,), np.mean: (x,), np.clip: (x, y, 3.0), np.where: (x > 2, x, y)}.get(
        function, (x, y)
    )
    np.testing.assert_array_equal(gs.fuse(function)(*given), function(*given))


@pytest.mark.parametrize("dtypes", [("uint8", "uint8"), ("bool", "bool"), ("int8", "float32")])
def test_closeness_of_integers(dtypes: tuple[str, str]) -> None:
    x, y = (
        np.array(each).astype(dtype) for each, dtype in zip(([3, 5, 0, 1], [5, 3, 1, 1]), dtypes, strict=True)
    )

    def near(x: Any, y: Any, h: Any) -> Any:
        return (
            np.isclose(x, y, atol=3),
            np.isclose(x, y),
            np.isclose(x, h, atol=1),
            np.isclose(x, np.uint8(4), atol=2),
        )

    for h in (4, 0, 2.5):
        for got, wanted in zip(gs.fuse(near)(x, y, h), near(x, y, h), strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_functions_of_ints_are_not_those_of_the_loops_around_them() -> None:
    """Sizes and counts of loops are ints, so functions of theirs have the same parameters as those of elements."""
    x, y = values((61,), "int32", 1), values((61,), "int32", 2) | 1

    def together(x: Any, y: Any) -> tuple[Any, ...]:
        both = [np.fmax, np.fmin, np.maximum, np.minimum, np.remainder, np.floor_divide, np.gcd, np.lcm]
        return (*(each(x, y) for each in both), np.sign(x), abs(x), np.square(x))

    assert (np.fmax(x, y) < 0).any()
    for got, wanted in zip(gs.fuse(together)(x, y), together(x, y), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)


def test_signed_and_unsigned_integers_compare_as_numbers() -> None:
    compared = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)

    def together(x: Any, y: Any, z: Any) -> tuple[Any, ...]:
        calls = [each(*pair) for pair in ((x, y), (y, x), (z, y)) for each in compared]
        return (*calls, np.where(x > y, x, z))

    small, large, whole = (np.iinfo(each) for each in (np.int8, np.uint64, np.int64))
    x = np.array([small.min, -1, 0, 1, small.max], np.int8)[:, None, None]
    y = np.array([0, 1, whole.max, whole.max + 1, large.max - 127, large.max], np.uint64)[:, None]
    z = np.array([whole.min, -1, 0, whole.max], np.int64)
    for got, wanted in zip(gs.fuse(together)(x, y, z), together(x, y, z), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_limits_of_integers_are_those_of_the_result() -> None:
    x, y = np.array([-128, 0, 100, 127], np.int8), np.array([400, -2, 90, 127], np.int32)

    def limited(x: Any, y: Any, low: int) -> tuple[Any, ...]:
        return np.clip(x, low, None), np.clip(x, low, y), np.clip(x, -low, y * 0.5)

    fused = gs.fuse(limited)
    for low in (-1000, -128, 7):
        for got, wanted in zip(fused(x, y, low), limited(x, y, low), strict=True):
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(got, wanted)
    with pytest.raises(OverflowError):  # of the first: the others have a dtype that holds it
        fused(x, y, 300)
    for refused in (lambda x: np.clip(x, 128, None), lambda x: np.clip(x, None, -129)):
        with pytest.raises(OverflowError):
            gs.fuse(refused)(x)


def test_numbers_are_converted_as_arrays_are_where_numpy_does() -> None:
    x, y = np.arange(4, dtype=np.uint8), np.array([300, 2, 3, 4], np.int16)

    def together(x: Any, y: Any) -> tuple[Any, ...]:
        return (
            np.full_like(x, 2.75),
            np.full_like(x, np.int64(300)),
            np.full_like(y, 1e4 + 3j),
            np.select([y > 100], [y], 70_000),
            np.less(x, -5, dtype=bool),
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        for got, wanted in zip(gs.fuse(together)(x, y), together(x, y), strict=True):
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(got, wanted)
    with pytest.raises(OverflowError):
        gs.fuse(lambda x: x**-1)(x)
    with pytest.raises(TypeError, match=r"var\(\) in int32, which has no fractions"):
        gs.fuse(lambda x: x.var(dtype=np.int32))(y)


def test_errors_of_numbers_and_shapes_name_function_and_arguments() -> None:
    @gs.fuse
    def shifted(first: Any, second: Any, h: Any = 1) -> Any:
        return first + second * h

    x = np.ones((2, 3), np.int8)
    for h in (300, 1, 400):
        if h == 1:
            np.testing.assert_array_equal(shifted(x, x, h), x + x)
            continue
        with pytest.raises(
            OverflowError,
            match=rf"fused function `shifted`: .* {h} .*\(test_fuse_functions.py, line \d+: ret",
        ):
            shifted(x, x, h)
    with pytest.raises(
        ValueError, match=r"`shifted`: the shapes .*: first \(2, 3\), second \(4,\): each axis"
    ):
        shifted(x, np.ones(4))
    with pytest.raises(ValueError, match=r"`total`: the shapes .*: x \(2, 3\), y \(2,\): each axis"):
        gs.fuse(lambda x, y: (x * y).sum(axis=1), kernel_name="total")(x, x[:, 0])
    with pytest.raises(TypeError, match=r"`total`: cannot trace sum\(\) along axis 1.0, which is no integer"):
        gs.fuse(lambda x: x.sum(axis=1.0), kernel_name="total")(x)


def test_a_choice_takes_integers_that_do_not_fit_as_numpys_does() -> None:
    fused = gs.fuse(lambda x, h: np.where(x > 3, x, h))
    for dtype, h in (("int8", 139), ("int8", -300), ("uint64", -23), ("int8", 5)):
        x = np.arange(5).astype(dtype)
        try:
            wanted = np.where(x > 3, x, h)
        except OverflowError:  # of NumPy from 2.5 on
            with pytest.raises(OverflowError):
                fused(x, h)
            continue
        got = fused(x, h)
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)


def test_numbers_are_calculated_by_python() -> None:
    x = np.ones(2, np.float32)
    assert gs.fuse(lambda x, k: x * (k // 3))(x, 10**30)[0] == np.float32(10**30 // 3)
    with pytest.raises(ZeroDivisionError):
        gs.fuse(lambda x, k: x * (1 / k))(x, 0)
    assert gs.fuse(lambda x, h: x * math.sqrt(h))(x, 9.0)[0] == 3
    assert gs.fuse(lambda x, h: x * np.sqrt(h))(x, 9.0).dtype == np.float64
    fused = gs.fuse(lambda x, n: x * 10**n)
    assert [fused(x, n).dtype for n in (1, -1, 2)] == [np.float32] * 3
    assert fused(np.ones(2, int), 1).dtype == int
    assert fused(np.ones(2, int), -1).dtype == float
    assert gs.fuse(lambda x, h: (x + h, h * 2))(x, 3)[1] == 6


def test_some_powers_of_plain_numbers_are_other_functions() -> None:
    """The square of bool is int8, and roots differ from powers at zero and infinity."""
    edges = np.array([-np.inf, -0.0, 0.0, 4.0, np.inf], np.float32)
    for x in (edges, np.array([False, True]), np.array([1, -3], np.int8)):

        def powers(x: Any) -> tuple[Any, ...]:
            return x**2, x**2.0, x**0.5, x**1, x ** (-1.0)

        with np.errstate(all="ignore"):
            expected = powers(x)
        for got, wanted in zip(gs.fuse(powers)(x), expected, strict=True):
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(got, wanted)
            np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


def test_spacing_of_zeros_is_above_zero() -> None:
    x = np.array([0.0, -0.0, 1.0, -1.0, 3.0, -1e-45], np.float32)
    np.testing.assert_array_equal(gs.fuse(lambda x: np.spacing(x))(x), np.spacing(x))  # noqa: PLW0108


def test_decisions_about_numbers_make_kernels_of_their_own() -> None:
    @gs.fuse
    def folded(x: Any, axis: int, flag: bool = True) -> Any:
        return np.sum(x if flag else -x, axis=axis)

    x = np.arange(6.0).reshape(2, 3)
    for axis in (0, 1, -1):
        np.testing.assert_array_equal(folded(x, axis), x.sum(axis))
        np.testing.assert_array_equal(folded(x, axis, flag=False), -x.sum(axis))


def test_integers_compare_with_any_integer() -> None:
    for dtype in ("uint8", "int64", "uint64"):
        x = np.array([0, 1, np.iinfo(dtype).max], dtype)
        fused = gs.fuse(lambda x, k: (x < k, k <= x, x == k, k != x))
        for k in (-1, 0, 1, 300, 2**63, 2**64 - 1, 2**64, -(2**70)):
            for got, wanted in zip(fused(x, k), (x < k, k <= x, x == k, k != x), strict=True):
                np.testing.assert_array_equal(got, wanted)


def test_results_have_their_own_shapes() -> None:
    x, y = np.ones(3), np.full((2, 1), 2.0)
    first, second, third = gs.fuse(lambda x, y: (x + 1, y * 2, x + y))(x, y)
    assert (first.shape, second.shape, third.shape) == ((3,), (2, 1), (2, 3))
    assert gs.fuse(lambda x, y: x * 2)(x, y).shape == (3,)
    assert isinstance(gs.fuse(lambda x, y: [x, y])(x, y), list)


def test_many_arguments() -> None:
    @gs.fuse
    def total(*arrays: Any, scale: float = 1.0, **named: Any) -> Any:
        return sum(arrays[1:], arrays[0]) * scale + named["last"]

    x = np.arange(3.0)
    np.testing.assert_array_equal(total(x, x, x, scale=2, last=x), 7 * x)
    np.testing.assert_array_equal(total(x, last=1), x + 1)


# ---- changes in place ----


def test_values_of_the_function_change_in_place() -> None:
    def changed(x: Any, y: Any) -> Any:
        t = x * 2
        same = t
        other = np.copy(x)
        other += 1
        t += y
        t -= 1
        np.multiply(t, 2, out=t)
        return t, same, other

    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float64)
    for got, wanted in zip(gs.fuse(changed)(x, y), changed(x, y), strict=True):
        assert got.dtype == wanted.dtype == np.float32
        np.testing.assert_array_equal(got, wanted)


def _changes_argument(x: Any) -> Any:
    x *= 2
    return x


def _casts_down(x: Any) -> Any:
    t = x * 2
    t /= 3
    return t


# ---- reductions ----

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, axis: np.sum(x, axis=axis), "prod": lambda x, axis: np.prod(x, axis=axis),
    "min": lambda x, axis: x.min(axis), "max": lambda x, axis: np.max(x, axis=axis, keepdims=True),
    "any": lambda x, axis: np.any(x, axis=axis), "all": lambda x, axis: x.all(axis=axis),
    "mean": lambda x, axis: np.mean(x, axis=axis), "var": lambda x, axis: np.var(x, axis=axis),
    "std": lambda x, axis: x.std(axis=axis, ddof=1, keepdims=True), "wide": lambda x, axis: x.sum(axis, dtype=np.float64),  # noqa: E501
    "correction": lambda x, axis: np.var(x, axis=axis, correction=1), "count": lambda x, axis: np.count_nonzero(x, axis=axis),  # noqa: E501
    "reduce": lambda x, axis: np.maximum.reduce(x, axis=0), "add.reduce": lambda x, axis: np.add.reduce(x),
    "wide mean": lambda x, axis: x.mean(axis, dtype=np.float64),
}  # fmt: skip


#: In CI one dtype of each, two of sums; the rest in long runs.
FOLDED = [
    pytest.param(what, dtypes, marks=marks, id=f"{what}-{len(dtypes)}")
    for k, what in enumerate(REDUCTIONS)
    for dtypes, marks in (
        (("uint16", "float16") if what == "sum" else ("float16" if k % 2 else "int8",), ()),
        (
            ("int8", "bool", "float16", "float32", "float64", *(["complex64"] if "wide" not in what else [])),
            pytest.mark.soak,
        ),
    )
]


@pytest.mark.parametrize(("what", "dtypes"), FOLDED)
def test_reductions(xp: ModuleType, what: str, dtypes: tuple[str, ...]) -> None:
    for dtype in dtypes:
        x = np.random.default_rng(0).integers(1, 3, (7, 5)).astype(dtype)
        fused = gs.fuse(REDUCTIONS[what], kernel_name="fold")
        for axis in (None, 0, (0, 1)):
            with np.errstate(all="ignore"):
                expected = np.asarray(REDUCTIONS[what](x, axis))
            result = gs.asnumpy(fused(xp.asarray(x), axis))
            assert (result.dtype, result.shape) == (expected.dtype, expected.shape), dtype
            np.testing.assert_allclose(
                result, expected, rtol=2e-3 if dtype == "float16" else 1e-5, err_msg=dtype
            )


PLANE, POINT = np.arange(6.0).reshape(2, 3), np.array(3.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sum(x, 0, np.float32, None, True), lambda x: x.var(0, None, None, 1, True),
        lambda x: np.max(x, 1, None, True), lambda x: np.any(x, 0, None, True),
        lambda x: np.add.reduce(x, 0, None, None, True),
        lambda x: np.sum(x, where=True), lambda x: x.mean(1, None, None, True),
        lambda x: np.var(x, ddof=np.inf), lambda x: np.std(x, ddof=np.nan), lambda x: np.var(x, ddof=2.5),
    ],
)  # fmt: skip
def test_options_of_reductions_by_position(function: Callable[..., Any]) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.asarray(function(PLANE))
    got = gs.fuse(function)(PLANE)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.sum(x, 0, None, None, False, 5.0), r"sum\(\) with initial"),
        (lambda x: x.sum(0, None, None, False, 5.0), r"sum\(\) with initial"),
        (lambda x: np.max(x, 0, None, False, 10.0), r"max\(\) with initial"),
        (lambda x: x.min(None, None, False, -10.0), r"min\(\) with initial"),
        (lambda x: x.prod(None, None, None, False, 1.0, x > 1), r"prod\(\) with initial, where"),
        (lambda x: x.any(0, None, False, x > 1), r"any\(\) of 5 positional arguments: it takes 4"),
        (lambda x: x.mean(0, None, None, False, 1.0), r"mean\(\) of 6 positional arguments"),
        (lambda x: np.sum(x, axis=[0]), r"along axis \[0\], which is no integer"),
        (lambda x: np.select([x], [x], 0), "select.. takes booleans, condition 0"),
        (lambda x: np.round(x, 2.5), "'float' object cannot be interpreted as an integer"),
    ],
)
def test_options_that_are_not_known_are_refused_by_position_too(
    function: Callable[..., Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        gs.fuse(function)(PLANE)


def test_what_has_no_axes_is_folded_along_its_first_and_last() -> None:
    for axis in (0, -1, None):
        for function in (np.sum, np.max, np.mean, np.add.reduce):
            got = gs.fuse(lambda x, axis=axis, function=function: function(x, axis=axis))(POINT)
            assert (got, got.shape) == (3.0, ())
    with pytest.raises(ValueError, match="axis 1 is out of bounds"):
        gs.fuse(lambda x: np.sum(x, axis=1))(POINT)


def test_a_variance_is_as_exact_as_one_of_two_passes() -> None:
    x = (1e4 + np.random.default_rng(0).standard_normal(20_000)).astype(np.float32)
    np.testing.assert_allclose(gs.fuse(lambda x: np.var(x))(x), x.astype(float).var(), rtol=1e-4)  # noqa: PLW0108
    assert np.isnan(gs.fuse(lambda x: np.var(x, ddof=1))(x[:1]))


# ---- what cannot be traced ----


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda x: x[1:],
            r"an index into the argument `x`.*test_fuse_functions.py, line \d+: .*lambda x: x\[1:\]",
        ),
        (lambda x: x.shape, r"'shape' of the argument `x`: one kernel serves all shapes"),
        (lambda x: x @ x, "product of matrices"),
        (_changes_argument, r"change in place of the argument `x`.*line \d+: x \*= 2"),
        (_casts_down, "same_kind"),
        (lambda x: np.multiply.outer(x, x), r"multiply.outer\(\)"),
        (lambda x: x + np.ones(3), "an array that is no argument"),
        (lambda x: np.i0(x), r"i0\(\), which is not elementwise or not known"),  # noqa: PLW0108
        (lambda x: x.astype("U3"), "conversion to <U3"),
        (lambda x: np.var(x, where=x > 1), r"var\(\) with where"),
        (lambda x: np.sum(x) == 1, "must come last"),
        (lambda x: x.mean().real, "'real' of the result of mean"),
        (lambda x: x.argmax(), "'argmax'"),
        (lambda x: np.clip(x, 1, 2, out=x), "into an output"),
    ],
)
def test_what_cannot_be_traced_is_named_with_its_place(function: Callable[..., Any], message: str) -> None:
    x = np.arange(1, 4) if function is _casts_down else np.ones(3)
    with pytest.raises(TypeError, match=message):
        gs.fuse(function, kernel_name="strange")(x)


def test_arguments_that_are_neither() -> None:
    with pytest.raises(TypeError, match=r"the argument `p` of type dict_keys .* pass something hashable"):
        gs.fuse(lambda x, p: x * len(p))(np.ones(3), {1.0: 1}.keys())
    with pytest.raises(TypeError, match=r"the argument `x`: an array of dtype datetime64"):
        gs.fuse(lambda x: x)(np.zeros(2, "M8[s]"))
    with pytest.raises(ValueError, match="negative integer powers"):
        gs.fuse(lambda x, k: x**k)(np.arange(3), -1)
