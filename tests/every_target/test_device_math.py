"""Mathematical functions, stated roundings and conversions against SciPy and exact arithmetic."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from device_support import distance_in_ulp, evaluate
from scipy import special

RANDOM = np.random.default_rng(7)
WIDE = np.concatenate([
    RANDOM.normal(scale=3, size=300), RANDOM.uniform(-100, 100, 100), 10.0 ** RANDOM.uniform(-30, 30, 200),
    [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, np.nan],
])  # fmt: skip
UNIT = np.concatenate(
    [RANDOM.uniform(-1, 1, 300), 10.0 ** RANDOM.uniform(-20, 0, 100), [0.0, 1.0, -1.0, 1.5, np.nan]]
)
POSITIVE = np.abs(WIDE)


def erfcx(x: np.ndarray) -> np.ndarray:
    """SciPy's own loses digits near and left of zero."""
    wide = np.asarray(x, np.longdouble)
    return np.where(
        wide < 1, np.exp(wide * wide) * special.erfc(wide.astype(float)), special.erfcx(wide.astype(float))
    )


def erfc(x: np.ndarray) -> np.ndarray:
    """SciPy's own loses digits in the tail."""
    wide = np.asarray(x, np.longdouble)
    return np.where(
        wide < 1, special.erfc(wide.astype(float)), np.exp(-wide * wide) * special.erfcx(wide.astype(float))
    )


# function: (reference, arguments, ulp allowed for float, for double)
FUNCTIONS = {
    "acos": (np.arccos, UNIT, 2, 2), "asin": (np.arcsin, UNIT, 2, 2), "atan": (np.arctan, WIDE, 2, 2),
    "acosh": (np.arccosh, POSITIVE + 1, 4, 4), "asinh": (np.arcsinh, WIDE, 4, 4), "atanh": (np.arctanh, UNIT, 4, 4),
    "cos": (np.cos, WIDE[:400], 2, 2), "sin": (np.sin, WIDE[:400], 2, 2), "tan": (np.tan, WIDE[:400], 4, 2),
    "cosh": (np.cosh, WIDE[:400], 2, 2), "sinh": (np.sinh, WIDE[:400], 3, 3), "tanh": (np.tanh, WIDE, 2, 2),
    "exp": (np.exp, WIDE[:400], 2, 2), "exp2": (np.exp2, WIDE[:400], 2, 2), "expm1": (np.expm1, WIDE[:400], 2, 2),
    "exp10": (lambda x: np.power(np.longdouble(10), x), UNIT * 30, 2, 2),
    "log": (np.log, POSITIVE, 2, 2), "log2": (np.log2, POSITIVE, 2, 2), "log10": (np.log10, POSITIVE, 2, 2),
    "log1p": (np.log1p, POSITIVE, 2, 2), "sqrt": (np.sqrt, POSITIVE, 0.501, 0.501), "cbrt": (np.cbrt, WIDE, 2, 4),
    "rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE, 2, 2), "rcbrt": (lambda x: 1 / np.cbrt(x), WIDE, 2, 5),
    "erf": (special.erf, WIDE, 3, 3), "erfc": (erfc, WIDE[:300], 6, 6),
    "erfcx": (erfcx, WIDE, 5, 6),
    "lgamma": (special.gammaln, POSITIVE[:300] + 3, 6, 6), "tgamma": (special.gamma, POSITIVE[:300], 11, 11),
    "cyl_bessel_i0": (special.i0, WIDE[:400], 6, 8), "cyl_bessel_i1": (special.i1, WIDE[:400], 6, 8),
    "ceil": (np.ceil, WIDE, 0, 0), "floor": (np.floor, WIDE, 0, 0), "trunc": (np.trunc, WIDE, 0, 0),
    "rint": (np.rint, WIDE, 0, 0), "nearbyint": (np.rint, WIDE, 0, 0), "fabs": (np.abs, WIDE, 0, 0),
    "round": (lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), np.array([0.5, 1.5, 2.5, -0.5, -2.5, 7.2]), 0, 0),
    "logb": (lambda x: np.floor(np.log2(np.abs(x))), np.array([0.75, 1.0, 10.0, -3.0, 1e20]), 0, 0),
    "normcdf": (lambda x: erfc(-np.asarray(x, np.longdouble) / np.sqrt(np.longdouble(2))) / 2, WIDE[:300], 5, 8),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_one_argument(xp, dtype):
    for arguments in {id(row[1]): row[1] for row in FUNCTIONS.values()}.values():
        table = {name: row for name, row in FUNCTIONS.items() if row[1] is arguments}
        values = arguments.astype(dtype)
        suffix = "f" if dtype == "float32" else ""
        calls = {name: f"{name}{suffix}(a)" for name in table} | {
            f"{name} overload": f"{name}(a)" for name in table
        }
        got = evaluate(xp, calls, dtype, values)
        wide = np.longdouble if dtype == "float64" else np.float64
        for name, (reference, _, *allowed) in table.items():
            with np.errstate(all="ignore"):
                try:
                    expected = reference(values.astype(wide))
                except TypeError:  # SciPy's has no wider precision
                    expected = reference(values.astype(np.float64))
            distance = distance_in_ulp(got[name], expected)
            worst = int(np.argmax(distance))
            assert distance[worst] <= allowed[dtype == "float64"], (
                name,
                values[worst],
                got[name][worst],
                expected[worst],
            )
            np.testing.assert_array_equal(got[f"{name} overload"], got[name], name)


@pytest.mark.parametrize(("dtype", "allowed"), [("float32", 6), ("float64", 12)])
def test_inverses_of_the_error_function(xp, dtype, allowed):
    tiny = 1e-37 if dtype == "float32" else 1e-300
    unit = np.concatenate(
        [np.linspace(-0.999, 0.999, 201), [1e-9, -1e-9, 1, -1, 1 - 1e-6, 2, np.nan]]
    ).astype(dtype)
    tails = np.concatenate(
        [np.geomspace(tiny, 1, 200), np.linspace(1, 1.999, 50), [0, 2, -1, np.nan]]
    ).astype(dtype)
    suffix = "f" if dtype == "float32" else ""
    got = evaluate(xp, {"erfinv": f"erfinv{suffix}(a)"}, dtype, unit)
    assert distance_in_ulp(got["erfinv"], special.erfinv(unit.astype(float))).max() <= allowed
    got = evaluate(xp, {"erfcinv": "erfcinv(a)", "normcdfinv": f"normcdfinv{suffix}(a / 2)"}, dtype, tails)
    halves = tails.astype(float) / 2
    with np.errstate(all="ignore"):
        inverse = special.ndtri(np.where((halves >= 0) & (halves <= 1), halves, np.nan))
    far = np.abs(inverse) > 1e-3  # next to the zero SciPy itself is not exact
    assert distance_in_ulp(got["normcdfinv"], inverse)[far].max() <= allowed + 2
    assert distance_in_ulp(got["erfcinv"], -inverse / np.sqrt(2))[far].max() <= allowed
    assert np.all(np.isfinite(got["erfcinv"]) == np.isfinite(inverse))


def test_multiples_of_pi_are_exact(xp):
    x = np.concatenate([np.arange(-40, 41) / 4, [1e15 + 0.5, 2.0**60, -0.0, np.inf, np.nan, 0.3]])
    body = """
    __device__ double sine(double x) { double s, c; sincospi(x, &s, &c); return s; }
    __device__ double cosine(double x) { double s, c; sincospi(x, &s, &c); return c; }"""
    calls = {"sinpi": "sinpi(a)", "cospi": "cospi(a)", "s": "sine(a)", "c": "cosine(a)"}
    got = evaluate(xp, calls, "float64", x, preamble=body)
    with np.errstate(invalid="ignore"):
        turns = np.fmod(x, 2)
        sines = np.sin(np.pi * turns.astype(np.longdouble))
        cosines = np.cos(np.pi * turns.astype(np.longdouble))
    for key, expected, zeros in (("sinpi", sines, (0, 1)), ("cospi", cosines, (0.5, 1.5))):
        is_zero = np.isin(np.abs(turns), zeros)
        np.testing.assert_array_equal(got[key][is_zero], 0)
        np.testing.assert_allclose(got[key][~is_zero], expected[~is_zero].astype(float), rtol=4e-16)
    np.testing.assert_array_equal(got["s"], got["sinpi"])
    np.testing.assert_array_equal(got["c"], got["cospi"])
    single = evaluate(xp, {"sinpif": "sinpif(a)", "cospif": "cospif(a)"}, "float32", x.astype("f4")[:81])
    assert (
        distance_in_ulp(single["sinpif"], np.where(np.isin(np.abs(turns[:81]), (0, 1)), 0, sines[:81])).max()
        <= 1
    )


def test_functions_of_several_arguments(xp):
    x, y, z = (RANDOM.normal(size=300) * 10.0 ** RANDOM.integers(-2, 2, 300) for _ in range(3))
    references = {
        "atan2(a, b)": np.arctan2(x, y), "hypot(a, b)": np.hypot(x, y), "fmod(a, b)": np.fmod(x, y),
        "copysign(a, b)": np.copysign(x, y), "fdim(a, b)": np.maximum(x - y, 0), "pow(fabs(a), b)": np.abs(x) ** y,
        "norm3d(a, b, c)": np.sqrt(x**2 + y**2 + z**2), "rnorm3d(a, b, c)": 1 / np.sqrt(x**2 + y**2 + z**2),
        "norm4d(a, b, c, 2.0)": np.sqrt(x**2 + y**2 + z**2 + 4), "rhypot(a, b)": 1 / np.hypot(x, y),
        "rnorm4d(a, b, c, 2.0)": 1 / np.sqrt(x**2 + y**2 + z**2 + 4),
        "remainder(a, b)": np.array([math.remainder(p, q) for p, q in zip(x, y, strict=True)]),
        "nextafter(a, b)": np.nextafter(x, y), "pow(a, 3)": x**3, "fdivide(a, b)": x / y, "ldexp(a, 3)": x * 8,
        "jn(2, a)": special.jv(2, x), "yn(1, fabs(a))": special.y1(np.abs(x)), "j0(a)": special.j0(x),
        "scalbn(a, -2)": x / 4, "norm(3, values(a, b, c).v)": np.sqrt(x**2 + y**2 + z**2),
    }  # fmt: skip
    body = """
    struct list { double v[3]; };
    __device__ list values(double a, double b, double c) { return list{{a, b, c}}; }"""
    got = evaluate(xp, {call: call for call in references}, "float64", x, y, z, preamble=body)
    for call, expected in references.items():
        near = 1e-12 if call[0] in "jy" else 3e-15
        np.testing.assert_allclose(
            got[call], expected, rtol=near, atol=near if call[0] in "jy" else 0, err_msg=call
        )


def test_norms_neither_overflow_nor_vanish(xp):
    x = np.array([3e300, 3e-300, np.inf, np.nan, 0.0])
    y = np.array([4e300, 4e-300, np.nan, 1.0, 0.0])
    got = evaluate(
        xp,
        {"norm": "norm3d(a, b, 0.0)", "rnorm": "rnorm3d(a, b, 0.0)", "hypot": "hypot(a, b)"},
        "float64",
        x,
        y,
    )
    np.testing.assert_allclose(got["norm"], [5e300, 5e-300, np.inf, np.nan, 0], rtol=1e-15)
    np.testing.assert_allclose(got["rnorm"], [2e-301, 2e299, 0, np.nan, np.inf], rtol=1e-15)
    np.testing.assert_allclose(got["hypot"], got["norm"], rtol=1e-15)


def test_results_in_parts(xp):
    x = np.array([0.0, 1.5, -2.75, 1e10, 3.0])
    body = """
    __device__ double fraction(double x) { double whole; return modf(x, &whole) + 1000 * whole; }
    __device__ double mantissa(double x) { int e; double m = frexp(x, &e); return m + 10 * e; }
    __device__ double both(double x) { double s, c; sincos(x, &s, &c); return s + 10 * c; }
    __device__ double quotient(double x) { int q; double r = remquo(x, 2.0, &q); return r + 10 * (q & 7); }"""
    calls = {name: f"{name}(a)" for name in ("fraction", "mantissa", "both", "quotient")}
    got = evaluate(xp, calls, "float64", x, preamble=body)
    fraction, whole = np.modf(x)
    np.testing.assert_array_equal(got["fraction"], fraction + 1000 * whole)
    mantissa, exponent = np.frexp(x)
    np.testing.assert_array_equal(got["mantissa"], mantissa + 10.0 * exponent)
    np.testing.assert_allclose(got["both"][:3], (np.sin(x) + 10 * np.cos(x))[:3], rtol=1e-14)
    assert got["quotient"][1] == -0.5 + 10
    assert got["quotient"][4] == -1 + 20


def test_extrema_prefer_numbers_and_order_zeros(xp):
    values = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40], np.float32)
    x, y = (grid.ravel() for grid in np.meshgrid(values, values))
    for dtype in ("float32", "float64"):
        suffix = "f" if dtype == "float32" else ""
        calls = {f"f{n}": f"f{n}{suffix}(a, b)" for n in ("max", "min")} | {
            n: f"{n}(a, b)" for n in ("max", "min")
        }
        got = evaluate(xp, calls, dtype, x.astype(dtype), y.astype(dtype))
        for name, pick in (("max", np.fmax), ("min", np.fmin)):
            expected = pick(x, y)
            both_zero = (x == 0) & (y == 0)
            signs = (np.signbit(x) & np.signbit(y)) if name == "max" else (np.signbit(x) | np.signbit(y))
            for key in (name, f"f{name}"):
                np.testing.assert_array_equal(got[key], expected)
                np.testing.assert_array_equal(np.signbit(got[key])[both_zero], signs[both_zero])


def test_numbers_are_classified(xp):
    x = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 1e-40, -3.0], np.float32)
    table = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "signbit": np.signbit}
    for values in (x, x.astype(float)):
        got = evaluate(xp, {name: f"{name}(a) != 0" for name in table}, "bool", values)
        for name, reference in table.items():
            numbers = ~np.isnan(values) if name == "signbit" else np.ones(x.size, bool)
            np.testing.assert_array_equal(got[name][numbers], reference(values)[numbers], name)


# ---- stated rounding ----

DIRECTIONS = ("rn", "rz", "ru", "rd")


def rounded(exact: Fraction, direction: str, dtype: str) -> np.floating:
    """Round a number that is finite in the type to the type."""
    kind = np.dtype(dtype).type
    with np.errstate(all="ignore"):
        near = kind(float(exact)) if dtype == "float64" else nearest_float32(exact)
    if direction == "rn" or Fraction(float(near)) == exact:
        return near
    toward = {"rz": -1 if exact > 0 else 1, "ru": 1, "rd": -1}[direction]
    is_beyond = Fraction(float(near)) > exact if toward < 0 else Fraction(float(near)) < exact
    return np.nextafter(near, kind(toward * np.inf)) if is_beyond else near


def nearest_float32(exact: Fraction) -> np.float32:
    near = np.float32(float(exact))
    candidates = (np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf)))
    return min(candidates, key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(np.uint32)) & 1))


def operands(dtype: str) -> list[np.ndarray]:
    scale = 12 if dtype == "float32" else 40
    random = np.random.default_rng(11)
    return [
        (random.normal(size=150) * 10.0 ** random.integers(-scale // 2, scale // 2, 150)).astype(dtype)
        for _ in range(3)
    ]


OPERATIONS = {
    "add": (2, lambda x, y: x + y), "sub": (2, lambda x, y: x - y), "mul": (2, lambda x, y: x * y),
    "div": (2, lambda x, y: x / y), "rcp": (1, lambda x: 1 / x), "fma": (3, lambda x, y, z: x * y + z),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arithmetic_rounds_as_stated(xp, dtype):
    letter = "f" if dtype == "float32" else "d"
    names = {op: f"__{letter}{op}" for op in OPERATIONS} | {"fma": "__fmaf" if letter == "f" else "__fma"}
    arrays = operands(dtype)
    calls = {
        (op, direction): f"{names[op]}_{direction}({', '.join('abc'[:count])})"
        for (op, (count, _)), direction in itertools.product(OPERATIONS.items(), DIRECTIONS)
    }
    got = evaluate(xp, calls, dtype, *arrays)
    exact = [[Fraction(float(v)) for v in array] for array in arrays]
    for (op, direction), values in got.items():
        count, function = OPERATIONS[op]
        expected = [rounded(function(*row), direction, dtype) for row in zip(*exact[:count], strict=True)]
        np.testing.assert_array_equal(values, np.array(expected, dtype), f"{op}_{direction}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_square_roots_round_as_stated(xp, dtype):
    letter = "f" if dtype == "float32" else "d"
    x = np.abs(operands(dtype)[0])
    got = evaluate(xp, {d: f"__{letter}sqrt_{d}(a)" for d in DIRECTIONS}, dtype, x)
    for v, near, zero, up, down in zip(x, *(got[d] for d in DIRECTIONS), strict=True):
        exact = Fraction(float(v))
        assert zero == down
        assert Fraction(float(down)) ** 2 <= exact <= Fraction(float(up)) ** 2
        assert up in (down, np.nextafter(down, np.dtype(dtype).type(np.inf)))
        assert near in (down, up)
    np.testing.assert_array_equal(got["rn"], np.sqrt(x))


def test_rounding_at_the_ends_of_the_range(xp):
    huge = np.finfo(np.float32).max
    x = np.array([huge, -huge, huge, 1e-45, -1e-45, 1.0, -1.0], np.float32)
    y = np.array([huge, -huge, 2.0, 0.5, 0.5, -1.0, 1.0], np.float32)
    got = evaluate(
        xp, {d: f"a == -b ? __fadd_{d}(a, b) : __fmul_{d}(a, b)" for d in DIRECTIONS}, "float32", x, y
    )
    tiny = np.float32(1e-45)
    expected = {
        "rn": [np.inf, np.inf, np.inf, 0, -0.0, 0, 0], "rz": [huge, huge, huge, 0, -0.0, 0, 0],
        "ru": [np.inf, np.inf, np.inf, tiny, -0.0, 0, 0], "rd": [huge, huge, huge, 0, -tiny, -0.0, -0.0],
    }  # fmt: skip
    for direction, values in expected.items():
        np.testing.assert_array_equal(got[direction], np.array(values, np.float32), direction)
        np.testing.assert_array_equal(np.signbit(got[direction]), np.signbit(values), direction)


def test_products_and_sums_to_nearest_are_never_fused(xp):
    x, y, z = operands("float32")
    calls = {
        "mul": "__fmul_rn(a, b) + c", "add": "__fadd_rn(a * b, c)", "sub": "__fsub_rn(a * b, c)",
        "dmul": "(float)(__dmul_rn(a, b) + c)", "zero": "1.0f / __fmul_rn(a * 0.0f, fabsf(b))",
    }  # fmt: skip
    got = evaluate(xp, calls, "float32", x, y, z)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(got["mul"], x * y + z)
        np.testing.assert_array_equal(got["add"], x * y + z)
        np.testing.assert_array_equal(got["sub"], x * y - z)
        np.testing.assert_array_equal(got["zero"], np.copysign(np.float32(np.inf), x))
        np.testing.assert_array_equal(got["dmul"], (x.astype(float) * y + z).astype(np.float32))


# ---- conversions ----

LIMITS = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}
WHOLE = {"rn": np.rint, "rz": np.trunc, "ru": np.ceil, "rd": np.floor}


@pytest.mark.parametrize("source", ["float32", "float64"])
def test_floats_become_integers_and_saturate(xp, source):
    x = np.array([0, 0.5, 1.5, -0.5, -1.5, 2.5, 1e9 + 0.5, -3e9, 3e9, 5e9, 2.0**31, -(2.0**31), 2.0**32, 2.0**63,
                  -(2.0**63), 2.0**64, 1e30, -1e30, np.inf, -np.inf], source)  # fmt: skip
    for name, dtype in LIMITS.items():
        stem = ("__float2" if source == "float32" else "__double2") + name
        got = evaluate(xp, {d: f"{stem}_{d}(a)" for d in DIRECTIONS}, np.dtype(dtype).name, x)
        info = np.iinfo(dtype)
        for direction, whole in WHOLE.items():
            expected = [
                info.max if v > info.max else info.min if v < info.min else int(v)
                for v in whole(x.astype(np.longdouble))
            ]
            np.testing.assert_array_equal(got[direction], np.array(expected, dtype), f"{stem}_{direction}")


def test_a_nan_becomes_zero_or_the_top_bit(xp):
    nan = np.array([np.nan, -np.nan])
    for source, dtype in (("float", "float32"), ("double", "float64")):
        for name, integer in LIMITS.items():
            got = evaluate(
                xp,
                {d: f"__{source}2{name}_{d}(a)" for d in DIRECTIONS},
                np.dtype(integer).name,
                nan.astype(dtype),
            )
            bits = 8 * np.dtype(integer).itemsize
            expected = 0 if source == "float" and bits == 32 else 2 ** (bits - 1)
            for direction in DIRECTIONS:
                unsigned = got[direction].view(f"u{bits // 8}").tolist()
                assert unsigned == [expected, expected], (source, name, direction)


def test_integers_become_floats_as_stated(xp):
    signed = np.array([0, 1, -1, 2**24 + 1, -(2**24) - 1, 2**31 - 1, -(2**31), 123456789], np.int64)
    wide = np.concatenate([signed, [2**53 + 1, 2**63 - 1, -(2**63), 2**62 + 1]]).astype(np.int64)
    cases = {
        ("int", "float32", "__int2float"): signed.astype(np.int32),
        ("uint", "float32", "__uint2float"): signed.astype(np.uint32),
        ("ll", "float32", "__ll2float"): wide, ("ull", "float32", "__ull2float"): wide.astype(np.uint64),
        ("ll", "float64", "__ll2double"): wide, ("ull", "float64", "__ull2double"): wide.astype(np.uint64),
    }  # fmt: skip
    for (_, dtype, stem), values in cases.items():
        got = evaluate(xp, {d: f"{stem}_{d}(a)" for d in DIRECTIONS}, dtype, values)
        for direction in DIRECTIONS:
            expected = [rounded(Fraction(int(v)), direction, dtype) for v in values]
            np.testing.assert_array_equal(got[direction], np.array(expected, dtype), f"{stem}_{direction}")


def test_doubles_become_floats_as_stated(xp):
    x = operands("float64")[0][:100] * 1e-5
    got = evaluate(xp, {d: f"__double2float_{d}(a)" for d in DIRECTIONS}, "float32", x)
    for direction in DIRECTIONS:
        expected = [rounded(Fraction(float(v)), direction, "float32") for v in x]
        np.testing.assert_array_equal(got[direction], np.array(expected, np.float32))


def test_bits_are_reinterpreted(xp):
    x = np.array([1.5, -0.0, np.inf, 1e-310])
    got = evaluate(xp, {"hi": "__double2hiint(a)", "lo": "__double2loint(a)"}, "int32", x)
    np.testing.assert_array_equal(got["hi"], (x.view(np.int64) >> 32).astype(np.int32))
    np.testing.assert_array_equal(got["lo"], x.view(np.int64).astype(np.int32))
    calls = {
        "joined": "__hiloint2double(__double2hiint(a), __double2loint(a))",
        "there": "__longlong_as_double(__double_as_longlong(a))",
    }
    for values in evaluate(xp, calls, "float64", x).values():
        np.testing.assert_array_equal(values.view(np.int64), x.view(np.int64))
    single = evaluate(xp, {"f": "__uint_as_float(__float_as_uint(a)) + __int_as_float(__float_as_int(b))"}, "float32",
                      np.float32([1, 2]), np.float32([3, 4]))  # fmt: skip
    np.testing.assert_array_equal(single["f"], [4, 6])


def test_fast_functions_are_close(xp):
    x = RANDOM.uniform(0.1, 3, 200).astype(np.float32)
    table = {
        "__expf(a)": np.exp(x), "__logf(a)": np.log(x), "__log2f(a)": np.log2(x), "__log10f(a)": np.log10(x),
        "__sinf(a)": np.sin(x), "__cosf(a)": np.cos(x), "__tanf(a)": np.tan(x), "__powf(a, 1.5f)": x**1.5,
        "__exp10f(a)": 10.0**x, "__fdividef(a, 3.0f)": x / 3, "fdividef(a, 3.0f)": x / 3, "__frsqrt_rn(a)": x**-0.5,
        "__saturatef(a - 1.0f)": np.clip(x - 1, 0, 1), "__saturatef(a * NAN)": x * 0,
    }  # fmt: skip
    got = evaluate(xp, {call: call for call in table}, "float32", x, preamble="#include <cmath>")
    for call, expected in table.items():
        np.testing.assert_allclose(got[call], expected, rtol=3e-5, atol=2e-6, err_msg=call)
