"""Mathematical functions, against mpmath with 40 digits; at zeros, infinities and NaNs against NumPy and SciPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import mpmath
import numpy as np
from scipy import special

from device_cases.case import Case
from device_cases.inputs import F32, F32_2, F32_3, F64, F64_2, F64_3, Array

mp = mpmath.MPContext()
mp.dps = 40
Exact = Callable[..., Any]


class Function(NamedTuple):
    """A function of the same name in both precisions (with an f for the single one).

    Attributes
    ----------
    exact : callable
        Of numbers of mpmath that are finite and not zero.
    special : callable
        Of doubles, where an argument is zero, infinite or NaN.
    single, double : float
        The units in the last place allowed, from the accuracy that CUDA states.
    within : float
        The largest magnitude of an argument.
    absolute : tuple of float
        Distances near enough, for single and double.
    """

    exact: Exact
    special: Callable[..., Any]
    single: float
    double: float
    within: float = math.inf
    absolute: tuple[float, float] = (0.0, 0.0)


def _narrow(value: Any) -> np.longdouble:
    """Return a number of mpmath in the widest type of NumPy; what is complex is NaN."""
    if isinstance(value, mp.mpc):
        if value.imag != 0:
            return np.longdouble("nan")
        value = value.real
    if mp.isnan(value) or value == 0 or mp.isinf(value):
        return np.longdouble(float(value))
    magnitude = mp.mag(value)
    if abs(magnitude) > 5000:
        return np.longdouble(math.copysign(math.inf if magnitude > 0 else 0.0, 1 if value > 0 else -1))
    return np.longdouble(mp.nstr(value, 30))


def _reference(function: Function) -> Callable[..., Array]:
    exact = cache(lambda *arguments: _narrow(_or_nan(function.exact, *map(mp.mpf, arguments))))

    def reference(*arrays: Array) -> Array:
        rows = zip(*(array.astype(float).tolist() for array in arrays), strict=True)
        with np.errstate(all="ignore"):
            return np.array(
                [
                    exact(*row)
                    if all(v != 0 and math.isfinite(v) for v in row)
                    else function.special(*map(np.float64, row))
                    for row in rows
                ],
                np.longdouble,
            )

    return reference


def _or_nan(function: Exact, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except (ValueError, ZeroDivisionError, mpmath.libmp.ComplexResult):
        return mp.nan


def _ndtri(p: Any) -> Any:
    """Return the inverse of the normal distribution: SciPy's, with one step of Newton's method."""
    if not 0 < p < 1:
        return mp.inf if p == 1 else mp.nan
    if p > 0.5:
        return -_ndtri(1 - p)
    x = mp.mpf(float(special.ndtri(max(float(p), 5e-324))))
    for _ in range(6):
        x -= (mp.erfc(-x / mp.sqrt(2)) / 2 - p) * mp.sqrt(2 * mp.pi) * mp.exp(x * x / 2)
    return x


def _erfinv(x: Any) -> Any:
    return mp.erfinv(x) if abs(x) < 1 else x * mp.inf if abs(x) == 1 else mp.nan


def _erfcx(x: Any) -> Any:
    if x < 200:
        return mp.exp(x * x) * (mp.erfc(x) if x > -200 else 2)
    square = 2 * x * x
    return (1 - 1 / square + 3 / square**2 - 15 / square**3 + 105 / square**4) / (x * mp.sqrt(mp.pi))


def _erfc(x: Any) -> Any:
    return mp.erfc(x) if abs(x) < 200 else mp.mpf(2) if x < 0 else mp.exp(-x * x) * _erfcx(x)


def _at_infinity(function: Callable[[Any], Any], value: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: value(x) if np.isinf(x) else function(x)


def _c_power(x: Any, y: Any) -> Any:
    """As C has it; NumPy's own differs at negative infinity."""
    if np.isinf(x) and x < 0 and np.isfinite(y) and y != np.floor(y):
        return np.inf if y > 0 else 0.0
    return np.power(x, y)


def _round(x: Any) -> Any:
    return mp.sign(x) * mp.floor(abs(x) + mp.mpf(1) / 2)


def _logb(x: Any) -> Any:
    return mp.mpf(mp.mag(x) - 1)


def _lgamma(x: Any) -> Any:
    return (
        mp.inf
        if x <= 0 and x == mp.floor(x)
        else mp.re(mp.loggamma(x))
        if x > 0
        else mp.log(abs(mp.gamma(x)))
    )


def _tgamma(x: Any) -> Any:
    return mp.nan if x < 0 and x == mp.floor(x) else mp.gamma(x)


def _turned(function: Exact) -> Exact:
    return lambda x: function(mp.sign(x) * mp.fmod(abs(x), 2))


def _special_turned(value_at_zero: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: value_at_zero(x) if x == 0 else np.nan


UNARY: dict[str, Function] = {
    "acos": Function(mp.acos, np.arccos, 2, 2), "asin": Function(mp.asin, np.arcsin, 2, 2),
    "atan": Function(mp.atan, np.arctan, 2, 2), "acosh": Function(mp.acosh, np.arccosh, 4, 3),
    "asinh": Function(mp.asinh, np.arcsinh, 3, 3), "atanh": Function(mp.atanh, np.arctanh, 3, 2),
    "cos": Function(mp.cos, np.cos, 2, 2), "sin": Function(mp.sin, np.sin, 2, 2), "tan": Function(mp.tan, np.tan, 4, 2),
    "cosh": Function(mp.cosh, np.cosh, 2, 2), "sinh": Function(mp.sinh, np.sinh, 3, 2.5), "tanh": Function(mp.tanh,
        np.tanh, 2, 2.5),
    "cospi": Function(_turned(mp.cospi), _special_turned(lambda x: 1.0), 2, 2),
    "sinpi": Function(_turned(mp.sinpi), _special_turned(lambda x: x), 2, 2),
    "exp": Function(mp.exp, np.exp, 2, 1), "exp2": Function(lambda x: mp.power(2, x), np.exp2, 2, 1),
    "exp10": Function(lambda x: mp.power(10, x), lambda x: np.power(10.0, x), 2, 2.5), "expm1": Function(mp.expm1,
        np.expm1, 1.5, 1.5),
    "log": Function(mp.log, np.log, 1, 1), "log2": Function(lambda x: mp.log(x, 2), np.log2, 1, 1.5),
    "log10": Function(mp.log10, np.log10, 2, 2), "log1p": Function(lambda x: -mp.inf if x == -1 else mp.log1p(x),
        np.log1p, 1.5, 1.5),
    "sqrt": Function(mp.sqrt, np.sqrt, 0.5, 0.5), "rsqrt": Function(lambda x: 1 / mp.sqrt(x),
        lambda x: 1 / np.sqrt(x), 2, 1.5),
    "cbrt": Function(lambda x: mp.sign(x) * mp.cbrt(abs(x)), np.cbrt, 1, 4),
    "rcbrt": Function(lambda x: mp.sign(x) / mp.cbrt(abs(x)), lambda x: 1 / np.cbrt(x), 1.5, 5),
    "erf": Function(lambda x: mp.erf(x) if abs(x) < 200 else mp.sign(x), special.erf, 2, 2),
        "erfc": Function(_erfc, special.erfc, 4, 5),
    "erfcx": Function(_erfcx, special.erfcx, 4, 5),
    "erfinv": Function(_erfinv, special.erfinv, 3, 6), "erfcinv": Function(lambda x: -_ndtri(x / 2) / mp.sqrt(2),
        special.erfcinv, 5, 7),
    "normcdf": Function(lambda x: _erfc(-x / mp.sqrt(2)) / 2, special.ndtr, 5, 6),
    "normcdfinv": Function(_ndtri, special.ndtri, 5, 8),
    "lgamma": Function(_lgamma, lambda x: np.inf if np.isinf(x) else special.gammaln(x), 6, 5, absolute=(4e-7, 1e-15)),
    "tgamma": Function(_tgamma, lambda x: np.nan if x == -np.inf else special.gamma(x), 5, 10),
    "j0": Function(lambda x: mp.besselj(0, x), _at_infinity(special.j0, lambda x: 0.0), 9, 7, 30, (2.2e-6, 5e-12)),
    "j1": Function(lambda x: mp.besselj(1, x), _at_infinity(special.j1, lambda x: 0.0), 9, 7, 30, (2.2e-6, 5e-12)),
    "y0": Function(lambda x: mp.bessely(0, x) if x > 0 else mp.nan, _at_infinity(special.y0,
        lambda x: 0.0 if x > 0 else np.nan), 9, 7, 30, (2.2e-6, 5e-12)),
    "y1": Function(lambda x: mp.bessely(1, x) if x > 0 else mp.nan, _at_infinity(special.y1,
        lambda x: 0.0 if x > 0 else np.nan), 9, 7, 30, (2.2e-6, 5e-12)),
    "cyl_bessel_i0": Function(lambda x: mp.besseli(0, x), _at_infinity(special.i0, abs), 6, 8, 60),
    "cyl_bessel_i1": Function(lambda x: mp.besseli(1, x), _at_infinity(special.i1, lambda x: x), 6, 8, 60),
    "ceil": Function(mp.ceil, np.ceil, 0, 0), "floor": Function(mp.floor, np.floor, 0, 0),
    "trunc": Function(lambda x: mp.sign(x) * mp.floor(abs(x)), np.trunc, 0, 0),
    "rint": Function(mp.nint, np.rint, 0, 0), "nearbyint": Function(mp.nint, np.rint, 0, 0),
    "round": Function(_round, np.rint, 0, 0), "fabs": Function(abs, np.abs, 0, 0),
    "logb": Function(_logb, lambda x: np.inf if np.isinf(x) else np.log(np.abs(x)), 0, 0),
}  # fmt: skip
#: Whole numbers that become a zero keep the sign of what they came from.
_KEEPS_SIGN = {"ceil", "trunc", "rint", "nearbyint", "round"}


def _hypot(*values: Any) -> Any:
    return mp.sqrt(sum(value * value for value in values))


def _norm(*values: Any) -> Any:
    """As hypot: an infinite argument wins over a NaN."""
    return (
        np.inf
        if any(np.isinf(value) for value in values)
        else np.float64(_narrow(_or_nan(_hypot, *map(mp.mpf, values))))
    )


def _inverse(norm: Any) -> Any:
    return np.float64(1) / norm


def _power(x: Any, y: Any) -> Any:
    return mp.nan if x < 0 and y != mp.floor(y) else mp.power(x, y)


BINARY: dict[str, Function] = {
    "atan2": Function(mp.atan2, np.arctan2, 3, 2), "hypot": Function(_hypot, _norm, 3, 2),
    "rhypot": Function(lambda x, y: 1 / _hypot(x, y), lambda x, y: _inverse(_norm(x, y)), 2.5, 2.5),
    "fdim": Function(lambda x, y: max(x - y, mp.mpf(0)), lambda x, y: x + y if x != x or y != y else max(x - y,
        0.0) if x > y else 0.0, 0, 0),
    "fmod": Function(lambda x, y: mp.sign(x) * mp.fmod(abs(x), abs(y)), np.fmod, 0.5, 0.5),
    "copysign": Function(lambda x, y: abs(x) * mp.sign(y), np.copysign, 0, 0),
    "remainder": Function(lambda x,
        y: x - y * mp.nint(x / y) if abs(x) < 1e25 * abs(y) else mp.mpf(math.remainder(float(x), float(y))),
                          lambda x, y: math.remainder(x,
                              y) if y != 0 and np.isfinite(x) else x + y if x != x or y != y else np.nan, 0.5, 0.5),
    "pow": Function(_power, _c_power, 4, 2),
}  # fmt: skip


def _of_class(single: bool, arrays: tuple[Array, ...], within: float) -> tuple[Array, ...]:
    key = (single, id(arrays[0]), len(arrays), within)
    if key not in _LIMITED:
        with np.errstate(invalid="ignore"):
            near = np.all([~(np.abs(array) > within) | np.isinf(array) for array in arrays], axis=0)
        _LIMITED[key] = tuple(array[near] for array in arrays) if within < math.inf else arrays
    return _LIMITED[key]


_LIMITED: dict[tuple[Any, ...], tuple[Array, ...]] = {}


def _cases(single: bool) -> list[Case]:
    suffix, dtype = ("f", "float32") if single else ("", "float64")
    one, two, three = ((F32,), F32_2, F32_3) if single else ((F64,), F64_2, F64_3)
    cases = []
    for table, arrays in ((UNARY, one), (BINARY, two)):
        for stem, function in table.items():
            letters = ", ".join("abc"[: len(arrays)])
            inputs = _of_class(single, arrays, function.within)
            reference = _signed(_reference(function)) if stem in _KEEPS_SIGN else _reference(function)
            allowed, absolute = (function.single, function.double)[not single], function.absolute[not single]
            calls = (
                {f"{stem}{suffix}({letters})", f"{stem}({letters})"}
                if stem != "rhypot"
                else {f"{stem}{suffix}({letters})"}
            )
            for call in sorted(calls):
                cases.append(Case(f"{stem}{suffix}", call, dtype, inputs, reference, allowed, absolute))
    return cases + _others(suffix, dtype, one, two, three)


def _signed(reference: Callable[..., Array]) -> Callable[..., Array]:
    return lambda x: np.copysign(reference(x), x.astype(np.longdouble))


def _wide(function: Callable[..., Any]) -> Callable[..., Array]:
    return lambda *arrays: np.asarray(function(*(array.astype(np.longdouble) for array in arrays)))


def _extremum(pick: Callable[..., Array]) -> Callable[..., Array]:
    """As PTX has it: numbers win over NaNs, and the positive zero is the larger one."""

    def reference(x: Array, y: Array) -> Array:
        zeros = (x == 0) & (y == 0)
        signs = np.signbit(x) & np.signbit(y) if pick is np.fmax else np.signbit(x) | np.signbit(y)
        return np.where(zeros, np.where(signs, -0.0, 0.0), pick(x, y))

    return reference


def _fma(dtype: str) -> Callable[..., Array]:
    exact = _reference(Function(lambda x, y, z: x * y + z, lambda x, y, z: x * y + z, 0, 0))
    return lambda *arrays: np.where(
        exact(*arrays) == 0, np.sum([arrays[0] * arrays[1], arrays[2]], axis=0), exact(*arrays)
    )


def _whole(function: Callable[[Any], Any], bits: int) -> Callable[..., Array]:
    """Saturate, and give what an H200 gives for a NaN: the lowest number, or for a float and 32 bits zero."""

    def of(x: float) -> int:
        if math.isnan(x):
            return -(2 ** (bits - 1))
        if math.isinf(x) or abs(x) >= 2.0 ** (bits - 1):
            return 2 ** (bits - 1) - 1 if x > 0 else -(2 ** (bits - 1))
        return int(function(x))

    return lambda x: np.array([of(v) for v in x.astype(float).tolist()], np.int64)


def _half_away(x: float) -> float:
    return math.copysign(
        math.floor(abs(x) + 0.5)
        if abs(x) < 2.0**52 and abs(x) != 0.49999999999999994
        else abs(x)
        if abs(x) > 1
        else 0.0,
        x,
    )


def _exponent(x: Array) -> Array:
    special_values = np.where(np.isnan(x), -(2**31), np.where(np.isinf(x), 2**31 - 1, -(2**31)))
    return np.where(np.isfinite(x) & (x != 0), np.frexp(x.astype(float))[1] - 1, special_values)


def _ordered(x: Array) -> Array:
    return np.sort(np.abs(x))


PREAMBLE = """
#define PARTS(T, suffix) \\
    __device__ T modf_fraction##suffix(T x) { T whole; return modf##suffix(x, &whole); } \\
    __device__ T modf_whole##suffix(T x) { T whole; modf##suffix(x, &whole); return whole; } \\
    __device__ T frexp_mantissa##suffix(T x) { int e; return frexp##suffix(x, &e); } \\
    __device__ int frexp_exponent##suffix(T x) { int e; frexp##suffix(x, &e); return e; } \\
    __device__ T sine##suffix(T x) { T s, c; sincos##suffix(x, &s, &c); return s; } \\
    __device__ T cosine##suffix(T x) { T s, c; sincos##suffix(x, &s, &c); return c; } \\
    __device__ T sine_pi##suffix(T x) { T s, c; sincospi##suffix(x, &s, &c); return s; } \\
    __device__ T cosine_pi##suffix(T x) { T s, c; sincospi##suffix(x, &s, &c); return c; } \\
    __device__ T quotient_rest##suffix(T x, T y) { int q; return remquo##suffix(x, y, &q); } \\
    __device__ int quotient_bits##suffix(T x, T y) { int q; remquo##suffix(x, y, &q); \\
        return (q < 0 ? -1 : 1) * (abs(q) & 7); } \\
    __device__ T norm_of##suffix(T x, T y, T z) { const T v[3] = {x, y, z}; return norm##suffix(3, v); } \\
    __device__ T rnorm_of##suffix(T x, T y, T z) { const T v[3] = {x, y, z}; return rnorm##suffix(3, v); }
PARTS(float, f)
PARTS(double, )
"""
_LARGEST = {"float32": 2.0**23, "float64": 2.0**52}


def _quotient(x: float, y: float) -> int:
    if not (math.isfinite(x) and y == y and y != 0) or math.isinf(y):
        return 0
    exact = mp.nint(mp.mpf(x) / mp.mpf(y))
    return int(mp.sign(exact)) * int(mp.fmod(abs(exact), 8))


def _with_small_quotients(x: Array, y: Array) -> tuple[Array, Array]:
    with np.errstate(all="ignore"):
        fits = np.isfinite(x) & np.isfinite(y) & (x != 0) & (y != 0) & (np.abs(x / y) < 1e6)
    return x[fits], y[fits]


def _others(
    suffix: str, dtype: str, one: tuple[Array, ...], two: tuple[Array, ...], three: tuple[Array, ...]
) -> list[Case]:
    single = suffix == "f"
    (x,) = one
    finite = (x[np.isfinite(x)],)
    moderate = _of_class(single, one, 30)
    ordinary = _with_small_quotients(*two)

    def case(
        stem: str,
        call: str,
        reference: Callable[..., Any],
        inputs=one,
        ulp: float = 0,
        absolute: float = 0,
        result: str = dtype,
    ) -> Case:
        return Case(f"{stem}{suffix}", call.replace("@", suffix), result, inputs, reference, ulp, absolute)

    def norms(stem: str, call: str, extra: tuple[float, ...], ulp: float, *, inverse: bool = False) -> Case:
        exact = Function(
            (lambda *v: 1 / _hypot(*v, *extra)) if inverse else (lambda *v: _hypot(*v, *extra)),
            (lambda *v: _inverse(_norm(*v, *extra))) if inverse else (lambda *v: _norm(*v, *extra)), 0, 0,
        )  # fmt: skip
        return case(stem, call, _reference(exact), three, ulp)

    bessel = {
        "jn": Function(
            lambda v: mp.besselj(2, v), _at_infinity(lambda v: special.jv(2, v), lambda x: 0.0), 9, 9
        ),
        "yn": Function(
            lambda v: mp.bessely(2, v) if v > 0 else mp.nan,
            _at_infinity(lambda v: special.yn(2, v), lambda x: 0.0 if x > 0 else np.nan),
            9,
            9,
        ),
    }
    return [
        case("fmax", "fmax@(a, b)", _extremum(np.fmax), two), case("fmin", "fmin@(a, b)", _extremum(np.fmin), two),
        case("nextafter", "nextafter@(a, b)", np.nextafter, two),
        case("fma", "fma@(a, b, c)", _fma(dtype), three, 0.5),
        norms("norm3d", "norm3d@(a, b, c)", (), 3), norms("norm4d", "norm4d@(a, b, c, 2)", (2.0,), 3),
        norms("rnorm3d", "rnorm3d@(a, b, c)", (), 3, inverse=True), norms("rnorm4d", "rnorm4d@(a, b, c, 2)",
            (2.0,), 3, inverse=True),
        norms("norm", "norm_of@(a, b, c)", (), 4), norms("rnorm", "rnorm_of@(a, b, c)", (), 4, inverse=True),
        case("modf", "modf_fraction@(a)", lambda v: np.copysign(np.where(np.isinf(v), 0, v - np.trunc(v)), v)),
        case("modf", "modf_whole@(a)", np.trunc),
        case("frexp", "frexp_mantissa@(a)", lambda v: np.frexp(v)[0], finite),
        case("frexp", "frexp_exponent@(a)", lambda v: np.frexp(v)[1], finite, result="int32"),
        case("ldexp", "ldexp@(a, 5)", lambda v: np.ldexp(v, 5)), case("ldexp", "ldexp@(a, -60)",
            lambda v: np.ldexp(v, -60)),
        case("scalbn", "scalbn@(a, -3)", lambda v: np.ldexp(v, -3)), case("scalbln", "scalbln@(a, 40L)",
            lambda v: np.ldexp(v, 40)),
        case("sincos", "sine@(a)", _reference(UNARY["sin"]), ulp=2), case("sincos", "cosine@(a)",
            _reference(UNARY["cos"]), ulp=2),
        case("sincospi", "sine_pi@(a)", _reference(UNARY["sinpi"]), ulp=2),
        case("sincospi", "cosine_pi@(a)", _reference(UNARY["cospi"]), ulp=2),
        case("remquo", "quotient_rest@(a, b)", _reference(BINARY["remainder"]), two, 0.5),
        case("remquo", "quotient_bits@(a, b)", lambda p, q: np.array([_quotient(*row) for row in zip(p.tolist(),
            q.tolist(), strict=True)]), ordinary, result="int32"),
        case("ilogb", "ilogb@(a)", _exponent, result="int32"),
        case("jn", "jn@(2, a)", _reference(bessel["jn"]), moderate, 9, 3e-6 if single else 5e-12),
        case("yn", "yn@(2, a)", _reference(bessel["yn"]), moderate, 9, 3e-6 if single else 5e-12),
        case("nan", 'nan@("")', lambda v: v * np.nan),
        case("llrint", "llrint@(a)", _whole(np.rint, 64), result="int64"), case("llround", "llround@(a)",
            _whole(_half_away, 64), result="int64"),
        case("lrint", "(long long)lrint@(a)", _whole(np.rint, 64), result="int64"),
        case("lround", "(long long)lround@(a)", _whole(_half_away, 64), result="int64"),
    ]  # fmt: skip


SINGLE = _cases(True)
DOUBLE = _cases(False)


def _flag(
    name: str, call: str, function: Callable[[Array], Array], array: Array, result: str = "bool"
) -> Case:
    return Case(name, call, result, (array,), function)


CLASSIFICATION = [
    case
    for array in (F32, F64)
    for case in (
        _flag("isnan", "isnan(a) != 0", np.isnan, array), _flag("isinf", "isinf(a) != 0", np.isinf, array),
        _flag("isfinite", "isfinite(a) != 0", np.isfinite, array),
        _flag("signbit", "a == a && signbit(a) != 0", lambda v: np.signbit(v) & ~np.isnan(v), array),
    )
] + [
    _flag(f"__{word}{suffix}", f"__{word}{suffix}(a) != 0", function, array)
    for word, function in (("isnan", np.isnan), ("isinf", np.isinf), ("finite", np.isfinite))
    for suffix, array in (("f", F32), ("", F64))
] + [
    _flag(f"__signbit{suffix}", f"a == a && __signbit{suffix}(a) != 0", lambda v: np.signbit(v) & ~np.isnan(v), array)
    for suffix, array in (("f", F32), ("", F64))
]  # fmt: skip

#: Arguments at which the approximations are as near as CUDA says.
_NEAR = np.concatenate([np.linspace(-3, 3, 97, dtype=np.float32), np.array([0.0, -0.0], np.float32)])
_ABOVE = np.abs(_NEAR) + np.float32(0.01)
_DIVISORS = np.roll(_ABOVE, 5)


def _fast(name: str, call: str, function: Callable[..., Any], *inputs: Array, absolute: float = 4e-7) -> Case:
    return Case(name, call, "float32", inputs, _wide(function), 64, absolute)


FAST = [
    _fast("__sinf", "__sinf(a)", np.sin, _NEAR, absolute=6e-7), _fast("__cosf", "__cosf(a)", np.cos, _NEAR,
        absolute=6e-7),
    _fast("__tanf", "__tanf(a / 3)", lambda v: np.tan(v.astype(np.float32) / np.float32(3)), _NEAR, absolute=2e-6),
    _fast("__tanhf", "__tanhf(a)", np.tanh, _NEAR, absolute=2e-3), _fast("__sincosf",
        "[](float x) { float s, c; __sincosf(x, &s, &c); return s; }(a)", np.sin,
        _NEAR, absolute=6e-7),
    _fast("__sincosf", "[](float x) { float s, c; __sincosf(x, &s, &c); return c; }(a)", np.cos, _NEAR, absolute=6e-7),
    _fast("__sin2pif", "__sin2pif(a)", lambda v: np.sin(2 * np.pi * v), _NEAR, absolute=3e-6),
    _fast("__cos2pif", "__cos2pif(a)", lambda v: np.cos(2 * np.pi * v), _NEAR, absolute=3e-6),
    _fast("__sincos2pif", "[](float x) { float s, c; __sincos2pif(x, &s, &c); return s; }(a)",
        lambda v: np.sin(2 * np.pi * v), _NEAR, absolute=3e-6),
    _fast("__sincos2pif", "[](float x) { float s, c; __sincos2pif(x, &s, &c); return c; }(a)",
        lambda v: np.cos(2 * np.pi * v), _NEAR, absolute=3e-6),
    _fast("__expf", "__expf(a)", np.exp, _NEAR), _fast("__exp10f", "__exp10f(a)",
        lambda v: np.power(np.longdouble(10), v), _NEAR),
    _fast("__logf", "__logf(a)", np.log, _ABOVE, absolute=3e-6), _fast("__log2f", "__log2f(a)", np.log2, _ABOVE,
        absolute=3e-6),
    _fast("__log10f", "__log10f(a)", np.log10, _ABOVE, absolute=3e-6), _fast("__powf", "__powf(a, b)", np.power,
        _ABOVE, _DIVISORS, absolute=3e-5),
    _fast("__fdividef", "__fdividef(a, b)", np.divide, _ABOVE, _DIVISORS), _fast("fdividef", "fdividef(a, b)",
        np.divide, _ABOVE, _DIVISORS),
    Case("fdivide", "fdivide(a, b)", "float64", (_ABOVE.astype(float), _DIVISORS.astype(float)), np.divide),
    Case("__saturatef", "__saturatef(a)", "float32", (F32,), lambda v: np.where(v > 0, np.minimum(v,
        np.float32(1)), np.float32(0)), 0.5),
]  # fmt: skip
