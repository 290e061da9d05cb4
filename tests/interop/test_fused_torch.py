"""Functions of PyTorch tensors, fused: values and dtypes are those of the functions themselves."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from tests.crosses import in_soak, in_turns

torch = pytest.importorskip("torch")

Function = Callable[..., Any]
DTYPES = (
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
)


def tensor(dtype: str, *shape: int, seed: int = 1) -> Any:
    """Return small numbers, none of which is zero."""
    numbers = np.random.default_rng(seed).integers(1, 9, shape)
    return torch.as_tensor(numbers).to(getattr(torch, dtype))


def check(function: Function, *arguments: Any, rtol: float = 1e-6) -> None:
    """Compare a function with itself; what PyTorch refuses must be refused."""
    try:
        expected = function(*arguments)
    except (RuntimeError, TypeError):
        with pytest.raises(TypeError):
            gs.fuse(function)(*arguments)
        return
    found = gs.fuse(function)(*arguments)
    for got, wanted in zip(
        *(each if isinstance(each, tuple) else (each,) for each in (found, expected)), strict=True
    ):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        eps = torch.finfo(wanted.dtype).eps * 8 if wanted.dtype.is_floating_point else 0.0
        torch.testing.assert_close(got, wanted, rtol=max(rtol, eps), atol=eps, equal_nan=True)


OF_ONE = """\
    abs neg sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
    square reciprocal rsqrt sigmoid sign floor ceil trunc isnan isinf isfinite isposinf isneginf signbit deg2rad rad2deg
    logical_not positive sinc relu nan_to_num
""".split()  # noqa: SIM905
OF_TWO = """\
    add sub mul div floor_divide remainder fmod pow maximum minimum fmax fmin atan2 hypot copysign logaddexp eq ne lt le
    gt ge logical_and logical_or logical_xor
""".split()  # noqa: SIM905


@pytest.mark.parametrize(
    "dtype",
    ["float32", "int32", *in_soak("float16", "float64")],
)
def test_functions_of_one(dtype: str) -> None:
    x, inverse = tensor(dtype, 40), {"asin", "acos", "atanh"}

    def together(x: Any) -> tuple[Any, ...]:
        return tuple(getattr(torch, name)(x / 16 if name in inverse else x) for name in OF_ONE)

    check(together, x, rtol=1e-5)


@pytest.mark.parametrize(
    "dtypes",
    [
        ("float32", "float32"),
        pytest.param(("int32", "float32"), marks=pytest.mark.soak),
        ("int64", "int32"),
        pytest.param(("float16", "float32"), marks=pytest.mark.soak),
    ],
)
def test_functions_of_two(dtypes: tuple[str, str]) -> None:
    x, y = (tensor(dtype, 40, seed=seed) for seed, dtype in enumerate(dtypes))
    names = [name for name in OF_TWO if is_there(name, x, y)]
    assert len(names) > 20

    def together(x: Any, y: Any) -> tuple[Any, ...]:
        return tuple(getattr(torch, name)(x, y) for name in names)

    check(together, x, y, rtol=1e-5)


def is_there(name: str, *given: Any) -> bool:
    """Return whether PyTorch has a function for dtypes."""
    try:
        getattr(torch, name)(*given)
    except (RuntimeError, NotImplementedError):
        return False
    return True


def test_functions_that_numpy_has_with_other_values_or_dtypes() -> None:
    x = torch.tensor([float("nan"), -0.0, 2.5, -float("inf")])
    k, m = torch.tensor([0, 1, 17, 255], dtype=torch.uint8), torch.tensor([-128, -1, 0, 3], dtype=torch.int8)
    half = torch.tensor([1e-4, 1, 2, 3], dtype=torch.float16)

    def together(x: Any, k: Any, m: Any, half: Any) -> tuple[Any, ...]:
        return (
            torch.sign(x), x.sgn(), torch.sign(k), torch.sgn(k > 1), torch.angle(x), m.angle(), torch.sigmoid(k),
            m.sigmoid(), (k > 1).sigmoid(), torch.ldexp(half, k), torch.ldexp(k, m), torch.ldexp(x, half),
            torch.float_power(half.bfloat16(), k), half.float_power(2), torch.float_power(m, 2.0),
        )  # fmt: skip

    check(together, x, k, m, half)


@pytest.mark.parametrize("first", DTYPES)
def test_dtypes_meet_as_they_do_there(first: str) -> None:
    """Of arrays with axes and without, and of numbers."""
    alone = tensor(first, 3)
    for second in DTYPES:
        if is_complex_half(first, second):
            continue
        for shape in ((3,), ()):
            given = alone, tensor(second, *shape)
            expected = torch.add(*given).dtype
            assert dtype_of_sum(*given) == str(expected), (second, shape)
            assert dtype_of_sum(*given[::-1]) == str(expected), (second, shape)
    others = [] if is_complex_half(first, "complex64") else [1j]
    for number in (True, 2, 2.5, np.float64(3), np.int16(3), *others):
        for shape in ((3,), ()):
            x = tensor(first, *shape)
            assert dtype_of_sum(x, number) == str(torch.add(x, number).dtype), (number, shape)


def is_complex_half(*dtypes: str) -> bool:
    """Return whether PyTorch makes complex numbers of two-byte floats, which are no dtype here."""
    return "complex64" in dtypes and not {"float16", "bfloat16"}.isdisjoint(dtypes)


def dtype_of_sum(*arguments: Any) -> str:
    """Return the dtype that the sum of fused arguments is to have, without compiling it."""
    seen = []

    def noted(x: Any, y: Any) -> Any:
        z = x + y
        seen.append(str(z.dtype))
        return z

    with gs.use_target("null"):
        gs.fuse(noted)(*arguments)
    return seen[0]


def test_numbers_choices_and_options() -> None:
    def together(x: Any, k: Any, h: float) -> tuple[Any, ...]:
        return (
            x * h, k * h, k / 2, k + 1, h - k, k**2, x**0.5, torch.where(k > 3, x, 0), torch.where(k > 3, k, 2.5),
            torch.clamp(k, 2, 5), torch.clamp(x, min=h), k.clamp(max=4), torch.add(x, k, alpha=2),
            torch.sub(x, 1, alpha=h), torch.div(x, k, rounding_mode="floor"), torch.nn.functional.relu(x - 4),
            torch.round(x * 1.3), torch.zeros_like(k), torch.full_like(x, 3.0), torch.isclose(x, x + 1e-7),
            k & 3, ~k, k << 1, torch.special.expit(x), torch.lerp(x, x, 0.5) if h < 0 else x,
        )  # fmt: skip

    for h in (2.5, 4.0):
        check(together, tensor("float32", 5, 7), tensor("int32", 7), h)


def test_powers_and_steps_keep_integers() -> None:
    for x in (tensor("bool", 7), tensor("int8", 7), torch.tensor([-2, 0, 3])):
        for function in (torch.square, lambda x: x**2, lambda x: x.square() + 1):
            check(function, x)
        check(lambda x: torch.heaviside(x, x * x), x)
    check(lambda x: torch.heaviside(x, x * 0 + 5), torch.tensor([-2.0, 0.0, float("nan")]))


def test_methods() -> None:
    def together(x: Any, k: Any) -> tuple[Any, ...]:
        return (
            x.sin(), x.abs(), x.mul(2).add(k), k.float(), k.double(), x.half(), x.to(torch.int16), k.bool(), x.pow(2),
            k.to(torch.bfloat16), x.clamp(0, 3), x.sigmoid(), x.round(), x.type_as(x) if False else x.sqrt(),
        )  # fmt: skip

    check(together, tensor("float32", 9), tensor("int32", 9))


@pytest.mark.parametrize(
    ("function", "dtype"),
    in_turns([
        torch.sum, lambda x: torch.sum(x, 0), lambda x: torch.sum(x * 2, dim=(0, 1), keepdim=True),
        lambda x: x.sum(dim=-1), lambda x: torch.prod(x, 1), lambda x: torch.mean(x, dim=1, keepdim=True),
        lambda x: torch.var(x, dim=0), lambda x: x.std(), lambda x: torch.var(x, dim=1, correction=0),
        lambda x: torch.amax(x, 1), lambda x: torch.amin(x, dim=0), torch.max, lambda x: x.min(),
        lambda x: torch.any(x > 7, dim=1), lambda x: torch.all(x, 0), lambda x: torch.count_nonzero(x - 2),
        lambda x: torch.sum(input=x, dim=1),
        lambda x: torch.sum(x, dim=0, dtype=torch.float64), lambda x: torch.std(x, dim=0, unbiased=False),
    ], ["float32", "uint8"]),
)  # fmt: skip
def test_reductions(function: Function, dtype: str) -> None:
    check(function, tensor(dtype, 4, 9), rtol=1e-5)


def test_where_of_a_tensor_takes_it_as_the_first_choice() -> None:
    x, other = tensor("float32", 9), tensor("float32", 9, seed=2)
    check(lambda x, y: x.where(x > 4, y), x, other)
    check(lambda x: x.where(condition=x > 4, other=0.0), x)
    check(lambda x, y: torch.where(x > 4, x, y), x, other)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.var(x, 0, False), lambda x: torch.std(x, 1, True, True), lambda x: x.var(False),
        lambda x: x.std(0, False), lambda x: torch.sum(x, 0, True), lambda x: x.mean(1, True),
        lambda x: x.amax(0, True),
        lambda x: torch.count_nonzero(x, 0), lambda x: x.var((0, 1), unbiased=False, keepdim=True),
        lambda x: x.sum([0, 1]), lambda x: torch.max(x, x * 0 + 4), lambda x: x.min(other=4 - x),
        lambda x: torch.frexp(x).exponent, lambda x: x.frexp()[0],
    ],
)  # fmt: skip
def test_options_by_position(function: Function) -> None:
    check(function, tensor("float32", 4, 9), rtol=1e-5)


def test_results_with_names_keep_them() -> None:
    assert gs.fuse(torch.frexp)(torch.ones(3)).mantissa.tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(0, 1), lambda x: x.var(0, 1),
        lambda x: torch.count_nonzero(x, 0, True),
        lambda x: torch.equal(x, x), lambda x: x.select(0, 1), lambda x: x.copy(),
        lambda x: torch.hypot(x.int(), x.int()), lambda x: torch.frexp(x.int()),
        lambda x: torch.nextafter(x.int(), x.int()),
        lambda x: torch.abs(x > 1), lambda x: torch.floor(x > 1), lambda x: x.cfloat() < 1, lambda x: x.cfloat().amax(),
    ],
)  # fmt: skip
def test_what_tensors_do_not_have_is_refused(function: Function) -> None:
    with pytest.raises(TypeError, match="cannot trace"):
        gs.fuse(function)(tensor("float32", 4, 9))


def test_what_tensors_are_derived_from_decides() -> None:
    class Other(torch.Tensor):
        def __mul__(self, other: Any) -> Any:
            return 0

    product = gs.fuse(lambda x, y: x * y)
    parameter = torch.nn.Parameter(torch.ones(3), requires_grad=False)
    assert product(parameter, torch.ones(3)).tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match="the argument `y` is a Other, whose __mul__ is not that of arrays"):
        product(torch.ones(3), torch.ones(3).as_subclass(Other))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: torch.cumsum(x, 0), r"cannot trace cumsum\(\).*test_fused_torch.py, line \d+"),
        (lambda x: torch.cat([x, x]), "cat"),
        (lambda x: torch.max(x, dim=0), r"max\(\) along an axis, which returns places too: write amax\(\)"),
        (lambda x: torch.sqrt(torch.sum(x)), "must come last"),
        (lambda x: torch.cat([x.sum(), x]), "must come last"),
        (lambda x: torch.mul(other=2, input=x.sum()), "must come last"),
        (lambda x: x + torch.ones(3), r"an array that is no argument, of shape \(3,\)"),
        (lambda x: -torch.nn.functional.leaky_relu(x), r"leaky_relu\(\).*\(test_fused_torch.py, line \d+"),
        (
            lambda x: x.to(device="cpu"),
            r"trace to\(\) with these arguments \(missing a required argument: 'dtype'\)",
        ),
        (lambda x: torch.nn.functional.relu(x, inplace=True), "in place"),
        (lambda x: torch.sin(x, out=x), "into an output"),
        (lambda x: x.reshape(-1), "'reshape'"),
        (lambda x: x.to("cpu"), "conversion"),
        (lambda x: torch.div(x, 2, rounding_mode="trunc"), "rounding_mode='trunc'"),
    ],
)
def test_what_cannot_be_traced_is_named(function: Function, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        gs.fuse(function)(torch.ones(3))


def test_other_libraries_beside_tensors_promote_as_numpy_does() -> None:
    result = gs.fuse(lambda x, y: x + y)(tensor("int32", 3), np.ones(3, np.float32))
    assert result.dtype == torch.float64
    assert gs.fuse(lambda x, y: x + y)(np.ones(3, np.int32), 0.5).dtype == np.float64


def test_one_function_takes_tensors_with_axes_and_without() -> None:
    fused = gs.fuse(lambda x, y: x + y)
    for _ in range(2):
        for first, second in product(((3,), ()), repeat=2):
            given = tensor("float16", *first), tensor("float32", *second)
            result = fused(*given)
            assert (result.dtype, result.shape) == (torch.result_type(*given), torch.add(*given).shape)


def test_the_default_dtype_is_that_of_the_call() -> None:
    half = gs.fuse(lambda k: k / 2)
    k = tensor("int32", 3)
    for dtype in (torch.float32, torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        try:
            assert half(k).dtype == dtype
        finally:
            torch.set_default_dtype(torch.float32)


def test_every_pair_of_dtypes_has_a_rule() -> None:
    for first, second in product(DTYPES, repeat=2):
        if is_complex_half(first, second):
            continue
        for shapes in (((3,), (3,)), ((), ()), ((3,), ())):
            given = [tensor(dtype, *shape) for dtype, shape in zip((first, second), shapes, strict=True)]
            assert dtype_of_sum(*given) == str(torch.result_type(*given)), (first, second, shapes)


def test_dtypes_are_those_of_tensors() -> None:
    x, k = tensor("float32", 5), tensor("int32", 5)
    for function in (
        lambda x, k: x * 2 if x.dtype == torch.float32 else x * 3,
        lambda x, k: k * 2 if (k / 2).dtype.is_floating_point and not k.dtype.is_complex else k * 3,
        lambda x, k: k.to(x.dtype) + torch.zeros_like(k, dtype=x.dtype),
        lambda x, k: torch.sum(k, dtype=x.dtype),
        lambda x, k: x * 2 if torch.is_tensor(x) and torch.is_tensor(x + k) else x * 3,
    ):
        check(function, x, k)


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "var", "std", "any", "all", "count_nonzero"])
def test_no_axes_are_all_axes_where_they_are_there(name: str) -> None:
    x = tensor("float32", 2, 3)
    for axes in ((), [], (0,), [0, 1]):
        check(lambda x, axes=axes: getattr(torch, name)(x, dim=axes), x, rtol=1e-5)
    if name == "sum":
        check(lambda x: x.sum(dim=(), keepdim=True), x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_functions_of_floats_of_two_bytes_are_rounded_once(dtype: str) -> None:
    """All of them, to the last bit."""
    x = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(getattr(torch, dtype))
    y = x[torch.randperm(1 << 16, generator=torch.Generator().manual_seed(0))]

    def together(x: Any, y: Any) -> tuple[Any, ...]:
        return (
            torch.sigmoid(x), torch.special.expit(x), torch.sinc(x), torch.rsqrt(x), torch.round(x, decimals=2),
            torch.round(x, decimals=-1), torch.add(x, y, alpha=3), torch.rsub(x, y, alpha=3), torch.nan_to_num(x),
            torch.nan_to_num(x, nan=1.5, posinf=7.0), x * 0.1, x / 0.1, x * 1e6,
        )  # fmt: skip

    for place, (got, wanted) in enumerate(zip(gs.fuse(together)(x, y), together(x, y), strict=True)):
        assert got.dtype == wanted.dtype
        wrong = (got != wanted) & ~(got.isnan() & wanted.isnan())
        # Where PyTorch's vectors and scalars differ, so may we: in the last bit of a few.
        assert int(wrong.sum()) <= 4, (place, x[wrong][:4], got[wrong][:4], wanted[wrong][:4])


SAME: dict[str, Function] = {
    "positive": torch.positive, "conj": torch.conj, "real": torch.real, "to": lambda t: t.to(t.dtype),
    "float": lambda t: t.float() if t.dtype == torch.float32 else t.int(), "resolve_conj": torch.resolve_conj,
    "conj_physical": torch.conj_physical, "round": torch.round, "sgn": torch.sgn,
}  # fmt: skip


@pytest.mark.parametrize("what", SAME)
def test_the_same_tensor_under_two_names_changes_as_one(what: str) -> None:
    def changed(x: Any) -> tuple[Any, ...]:
        t = x + 1
        r = SAME[what](t)
        r += 1
        return t, r

    check(changed, tensor("float32", 5))
    check(changed, tensor("int32", 5))


def test_conjugates_and_parts_are_views() -> None:
    def changed(z: Any) -> tuple[Any, ...]:
        t = z * 1
        r, q = torch.conj(t), t.real
        r += 1j
        q *= 2
        s = torch.resolve_conj(r)
        s += 1
        return torch.resolve_conj(t), torch.resolve_conj(r), q, s

    check(changed, tensor("complex64", 5) * (1 + 2j))


def test_what_has_no_axes_changes_in_place_too() -> None:
    def changed(x: Any, y: Any) -> tuple[Any, ...]:
        t = x * 1
        same = t
        t += y
        return same, t

    check(changed, torch.tensor(2.0), torch.tensor(3.0, dtype=torch.float64))
    with pytest.raises(
        ValueError, match=r"change in place of an array of shape \(\) by what has shape \(3,\)"
    ):
        gs.fuse(changed)(torch.tensor(2.0), torch.ones(3))


def test_a_tensor_of_a_number_is_refused_with_what_to_write() -> None:
    with pytest.raises(
        TypeError, match=r"takes no stand-in for a number: .* float\(...\).*test_fused_torch.py, line"
    ):
        gs.fuse(lambda x, p: x * torch.tensor(p))(torch.ones(3), 2.0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "complex64"])
def test_operands_may_have_the_names_that_torch_gives_them(dtype: str) -> None:
    x, y = tensor(dtype, 5), tensor(dtype, 5, seed=2)
    for name in ("mul", "eq", "add", "sub", "div", "rsub"):
        function = getattr(torch, name)
        check(lambda x, y, function=function: function(x, other=y), x, y)
        check(lambda x, y, function=function: function(input=x, other=y), x, y)
    check(lambda x, y: torch.add(x, other=y, alpha=2), x, y)
    check(lambda x: torch.pow(x, exponent=2), x)
    check(lambda x, y: x.pow(exponent=y), x, y)


def test_tensors_are_converted_to_the_dtype_of_others() -> None:
    check(lambda x, y: (x.to(y), x.type_as(y)), tensor("float32", 5), tensor("int64", 5))


def test_tensors_without_axes_that_are_made_in_the_function_are_numbers_of_their_dtype() -> None:
    check(lambda x: torch.where(x > 3, x, torch.tensor(0.0)), tensor("float32", 5))
    check(lambda x: x * torch.tensor(2.0, dtype=torch.float64), tensor("float32", 5))
    check(lambda x: x * torch.tensor(2.5), tensor("int32", 5))
    with pytest.raises(TypeError, match=r"an array that is no argument, of shape \(2,\)"):
        gs.fuse(lambda x: x * torch.tensor([1, 2]))(tensor("int32", 2))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64"])
def test_edges_of_powers_are_those_of_torch(dtype: str) -> None:
    x = torch.tensor([-np.inf, -0.0, 0, 4, 9, -3]).to(getattr(torch, dtype))
    for function in (lambda x, p: x**p, torch.pow, lambda x, p: x.pow(p)):
        fused = gs.fuse(function)
        for p in (0.5, 2.0, 2, 3, 0.25, -1.0, -0.5, torch.tensor(0.5)):
            wanted, got = function(x, p), fused(x, p)
            assert got.dtype == wanted.dtype
            torch.testing.assert_close(got, wanted, equal_nan=True, rtol=1e-2, atol=1e-6)
            numbers = ~wanted.isnan()
            assert (torch.signbit(got.real) == torch.signbit(wanted.real))[numbers].all()


def test_zeros_of_remainders_have_the_sign_of_the_dividend() -> None:
    x = torch.tensor([-4.0, 4.0, -3.0, 3.0, -0.0, -np.inf, np.nan])
    for divisor in (2.0, -2.0, np.inf, 0.0):
        for dtype in (torch.float32, torch.float64, torch.float16):
            values = x.to(dtype)
            got, wanted = gs.fuse(lambda x, p: x % p)(values, divisor), values % divisor
            torch.testing.assert_close(got, wanted, equal_nan=True, rtol=0, atol=0)
            assert (torch.signbit(got) == torch.signbit(wanted))[~wanted.isnan()].all()


def test_calls_follow_the_default_dtype() -> None:
    fused, x = gs.fuse(lambda x, p: x * p), tensor("int32", 5)
    for _ in range(2):
        for dtype in (torch.float32, torch.float64):
            torch.set_default_dtype(dtype)
            try:
                for _ in range(3):
                    assert fused(x, 0.5).dtype == (x * 0.5).dtype
            finally:
                torch.set_default_dtype(torch.float32)


def test_small_tensors_within_objects_may_change() -> None:
    class Model:
        pass

    model: Any = Model()
    model.scale = torch.tensor(2.0)
    fused, x = gs.fuse(lambda x, m: x * m.scale), tensor("float32", 3)
    for scale in (2.0, 3.0):
        model.scale.fill_(scale)
        torch.testing.assert_close(fused(x, model), x * scale)


def test_differences_of_booleans_are_refused() -> None:
    flags, numbers = torch.tensor([True, False]), torch.tensor([1.0, 2.0])
    for x, y in ((flags, numbers), (numbers, flags), (flags, flags)):
        check(lambda x, y: x - y, x, y)
