"""Half precision and bfloat16: every value converted, every operation rounded once."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from device_support import evaluate

EVERY = np.arange(2**16, dtype=np.uint16)
EDGES = np.array([0, 1, 2, 0x3FF, 0x400, 0x401, 0x3C00, 0x3BFF, 0x3C01, 0x4000, 0x4248, 0x7BFF, 0x7C00, 0x7E00, 0x3F80,
                  0x3F81, 0x4049, 0x7F7F, 0x7F80, 0x7FC0, 0x80, 0x7F], np.uint16)  # fmt: skip
EDGES = np.concatenate([EDGES, EDGES | 0x8000])


class Format:
    """A 16-bit type: its C++ names, and NumPy's dtype."""

    def __init__(self, ctype: str, pair: str, word: str, header: str, dtype: type) -> None:
        self.ctype, self.pair, self.word, self.dtype = ctype, pair, word, dtype
        self.preamble = f"""
        #include <{header}>
        __device__ {ctype} H(unsigned short bits) {{ return __ushort_as_{word}(bits); }}
        __device__ unsigned short B({ctype} h) {{ return __{word}_as_ushort(h); }}
        __device__ {pair} P(unsigned bits) {{ return __halves2{word}2(H(bits & 0xffff), H(bits >> 16)); }}
        __device__ unsigned Q({pair} p) {{ return B(__low2{word}(p)) | (unsigned)B(__high2{word}(p)) << 16; }}
        """

    def __repr__(self) -> str:
        return self.word

    def floats(self, bits: np.ndarray) -> np.ndarray:
        return bits.view(self.dtype).astype(np.float32)

    def bits(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(values).astype(self.dtype).view(np.uint16)

    def equal(self, got: np.ndarray, expected: np.ndarray, message: str = "") -> None:
        """Compare bits, any NaN with any other."""
        nans = np.isnan(self.floats(expected))
        np.testing.assert_array_equal(np.isnan(self.floats(got)), nans, message)
        np.testing.assert_array_equal(got[~nans], expected[~nans], message)


@pytest.fixture(
    params=[
        Format("__half", "__half2", "half", "cuda_fp16.h", np.float16),
        Format("__nv_bfloat16", "__nv_bfloat162", "bfloat16", "cuda_bf16.h", ml_dtypes.bfloat16),
    ],
    ids=repr,
)
def form(request):
    return request.param


def operand_bits(form: Format, count: int = 3) -> list[np.ndarray]:
    random = np.random.default_rng(5)
    drawn = [random.integers(0, 2**16, 4000, dtype=np.uint16) for _ in range(count)]
    near_one = [form.bits(random.normal(size=4000)) for _ in range(count)]
    grid = [np.repeat(EDGES, EDGES.size), np.tile(EDGES, EDGES.size), np.roll(np.tile(EDGES, EDGES.size), 7)]
    return [np.concatenate(parts) for parts in zip(grid[:count], drawn, near_one, strict=True)]


def test_every_value_becomes_a_float_and_back(xp, form):
    got = evaluate(
        xp,
        {"to": f"__{form.word}2float(H(a))", "cast": "(float)H(a)"},
        "float32",
        EVERY,
        preamble=form.preamble,
    )
    np.testing.assert_array_equal(got["to"], form.floats(EVERY))
    np.testing.assert_array_equal(got["cast"], form.floats(EVERY))
    back = evaluate(
        xp,
        {"back": f"B(__float2{form.word}(__{form.word}2float(H(a))))"},
        "uint16",
        EVERY,
        preamble=form.preamble,
    )
    form.equal(back["back"], EVERY)


def test_floats_are_rounded_to_nearest_even(xp, form):
    values = form.floats(EVERY).view(np.uint32)
    last = 13 if form.dtype is np.float16 else 16
    x = np.concatenate(
        [
            (values + offset).view(np.float32)
            for offset in (1, 2 ** (last - 1), 2 ** (last - 1) + 1, 2**last - 1)
        ]
    )
    random = np.random.default_rng(1).integers(0, 2**32, 20000, dtype=np.uint32).view(np.float32)
    x = np.concatenate([x, random])
    calls = {"cast": f"B({form.ctype}(a))", "rn": f"B(__float2{form.word}_rn(a))"}
    for bits in evaluate(xp, calls, "uint16", x, preamble=form.preamble).values():
        form.equal(bits, form.bits(x))


def test_doubles_are_rounded_once(xp, form):
    halves = form.floats(EVERY[:0x7B00]).astype(float)
    middle = (halves[1:] + halves[:-1]) / 2
    x = np.concatenate([middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf)])
    exact = np.concatenate([middle, middle * 1.0, middle * 1.0])
    ties = form.bits(middle.astype(np.float32))
    expected = np.concatenate([ties, EVERY[1:0x7B00], EVERY[: 0x7B00 - 1]])
    got = evaluate(
        xp,
        {"cast": f"B({form.ctype}(a))", "call": f"B(__double2{form.word}(a))"},
        "uint16",
        x,
        preamble=form.preamble,
    )
    assert exact.size == expected.size
    for bits in got.values():
        np.testing.assert_array_equal(bits, expected)


def test_floats_are_rounded_as_stated(xp, form):
    random = np.random.default_rng(2)
    x = np.concatenate(
        [
            random.normal(size=3000) * 10.0 ** random.integers(-9, 5, 3000),
            [0, 1e38, -1e38, 7e4, 1e-45, -1e-45],
        ]
    )
    x = x.astype(np.float32)
    calls = {d: f"B(__float2{form.word}_{d}(a))" for d in ("rz", "ru", "rd")}
    got = evaluate(xp, calls, "uint16", x, preamble=form.preamble)
    low, high, zero = (form.floats(got[d]) for d in ("rd", "ru", "rz"))
    assert np.all(low <= x)
    assert np.all(x <= high)
    np.testing.assert_array_equal(zero, np.where(x > 0, low, high))
    exact = low == high
    np.testing.assert_array_equal(low[exact], x[exact])
    steps = got["ru"][~exact].view(np.int16).astype(int) - got["rd"][~exact].view(np.int16)
    below_zero = np.signbit(low[~exact])
    across = below_zero & ~np.signbit(high[~exact])
    np.testing.assert_array_equal(steps[~across], np.where(below_zero[~across], -1, 1))


@pytest.mark.parametrize(("name", "dtype"), [("int", "int32"), ("ull", "uint64"), ("ushort", "uint16")])
def test_integers_and_halves(xp, form, name, dtype):
    info, random = np.iinfo(dtype), np.random.default_rng(3)
    x = random.integers(info.min, info.max, 500, dtype=dtype) >> random.integers(
        0, 8 * np.dtype(dtype).itemsize, 500
    ).astype(dtype)
    x = np.concatenate([x, np.array([0, 1, info.max, info.min, 2049, 2051, 257, 259, 513], dtype)])
    calls = {d: f"B(__{name}2{form.word}_{d}(a))" for d in ("rn", "rz", "ru", "rd")} | {
        "cast": f"B({form.ctype}(a))"
    }
    got = {
        d: form.floats(bits) for d, bits in evaluate(xp, calls, "uint16", x, preamble=form.preamble).items()
    }
    wide = x.astype(np.longdouble)
    assert np.all(got["rd"] <= wide)
    assert np.all(wide <= got["ru"])
    np.testing.assert_array_equal(got["rz"], np.where(x > 0, got["rd"], got["ru"]))
    np.testing.assert_array_equal(got["cast"], got["rn"])
    below, above = wide - got["rd"], got["ru"] - wide
    finite = np.isfinite(got["ru"]) & np.isfinite(got["rd"])
    np.testing.assert_array_equal(got["rn"][finite & (below < above)], got["rd"][finite & (below < above)])
    np.testing.assert_array_equal(got["rn"][finite & (below > above)], got["ru"][finite & (below > above)])

    numbers = EVERY[np.isfinite(form.floats(EVERY))]
    calls = {d: f"__{form.word}2{name}_{d}(H(a))" for d in ("rn", "rz", "ru", "rd")}
    back = evaluate(xp, calls, dtype, numbers, preamble=form.preamble)
    values = form.floats(numbers).astype(np.longdouble)
    for d, whole in (("rn", np.rint), ("rz", np.trunc), ("ru", np.ceil), ("rd", np.floor)):
        expected = np.array([min(max(int(v), info.min), info.max) for v in whole(values)], dtype)
        np.testing.assert_array_equal(back[d], expected, d)


ARITHMETIC = {
    "__hadd": np.add, "__hsub": np.subtract, "__hmul": np.multiply, "__hdiv": np.divide,
    "__hadd_rn": np.add, "__hsub_rn": np.subtract, "__hmul_rn": np.multiply,
}  # fmt: skip


def test_arithmetic_rounds_once(xp, form):
    x, y = operand_bits(form, 2)
    calls = {name: f"B({name}(H(a), H(b)))" for name in ARITHMETIC}
    calls |= {op: f"B(H(a) {op} H(b))" for op in "+-*/"} | {"neg": "B(-H(a))", "abs": "B(__habs(H(a)))"}
    got = evaluate(xp, calls, "uint16", x, y, preamble=form.preamble)
    with np.errstate(all="ignore"):
        for name, function in ARITHMETIC.items():
            expected = form.bits(function(form.floats(x), form.floats(y)))
            form.equal(got[name], expected, name)
        for op, name in zip("+-*/", ("__hadd", "__hsub", "__hmul", "__hdiv"), strict=True):
            np.testing.assert_array_equal(got[op], got[name])
    form.equal(got["neg"], x ^ 0x8000)
    form.equal(got["abs"], x & 0x7FFF)


def test_fused_multiply_add_rounds_once(xp, form):
    x, y, z = operand_bits(form)
    calls = {"fma": "B(__hfma(H(a), H(b), H(c)))", "relu": "B(__hfma_relu(H(a), H(b), H(c)))"}
    got = evaluate(xp, calls, "uint16", x, y, z, preamble=form.preamble)
    with np.errstate(all="ignore"):
        f, g, h = (form.floats(bits).astype(np.longdouble) for bits in (x, y, z))
        exact = f * g + h  # 64 bits hold all sums but those of very unlike magnitude
        product = f * g
        lost = (product - (exact - (exact - product))) + (h - (exact - product))
        nudged = np.where(
            np.isfinite(exact) & (lost != 0), np.nextafter(exact, np.where(lost > 0, np.inf, -np.inf)), exact
        )
        expected = form.bits(to_odd_float(nudged))
    form.equal(got["fma"], expected)
    nans = np.isnan(form.floats(expected))
    form.equal(got["relu"], np.where((expected & 0x8000).astype(bool) & ~nans, 0, expected).astype(np.uint16))


def to_odd_float(wide: np.ndarray) -> np.ndarray:
    """Narrow so that rounding again gives what rounding once would have."""
    with np.errstate(all="ignore"):
        near = wide.astype(np.float32)
        bits = near.view(np.uint32).copy()
        inexact = np.isfinite(wide) & (near.astype(np.longdouble) != wide)
        bits[inexact] -= (np.abs(near.astype(np.longdouble)) > np.abs(wide))[inexact]
    bits[inexact] |= 1
    return bits.view(np.float32)


def test_comparisons_and_extrema(xp, form):
    x, y = operand_bits(form, 2)
    f, g = form.floats(x), form.floats(y)
    nan = np.isnan(f) | np.isnan(g)
    words = {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }
    operators = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
    calls = {w: f"__h{w}(H(a), H(b))" for w in words} | {w + "u": f"__h{w}u(H(a), H(b))" for w in words}
    calls |= {w + "op": f"H(a) {operators[w]} H(b)" for w in words}
    calls |= {
        "nan": "__hisnan(H(a))",
        "bool": "(bool)H(a)",
        "inf": "__hisinf(H(a)) == (B(H(a)) >> 15 ? -1 : 1)",
    }
    got = evaluate(xp, calls, "bool", x, y, preamble=form.preamble)
    for word, function in words.items():
        np.testing.assert_array_equal(got[word], function(f, g) & ~nan, word)
        np.testing.assert_array_equal(got[word + "u"], function(f, g) | nan, word)
        np.testing.assert_array_equal(got[word + "op"], function(f, g), word)
    np.testing.assert_array_equal(got["nan"], np.isnan(f))
    np.testing.assert_array_equal(got["inf"], np.isinf(f))
    np.testing.assert_array_equal(got["bool"], f != 0)
    calls = {name: f"B(__h{name}(H(a), H(b)))" for name in ("max", "min", "max_nan", "min_nan")}
    got = evaluate(xp, calls, "uint16", x, y, preamble=form.preamble)
    for name, pick in (("max", np.fmax), ("min", np.fmin)):
        expected = form.bits(pick(f, g))
        zeros = (f == 0) & (g == 0)
        expected[zeros] = (x & y if name == "max" else x | y)[zeros]
        form.equal(got[name], expected, name)
        form.equal(got[name + "_nan"], np.where(nan, 0x7FFF, expected).astype(np.uint16), name)


FUNCTIONS = {
    "sqrt": np.sqrt, "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "log10": np.log10, "sin": np.sin,
    "cos": np.cos, "tanh": np.tanh, "rcp": np.reciprocal, "ceil": np.ceil, "floor": np.floor, "trunc": np.trunc,
    "rint": np.rint, "rsqrt": lambda x: 1 / np.sqrt(x), "exp10": lambda x: 10.0**x,
}  # fmt: skip


def test_functions_of_every_value(xp, form):
    got = evaluate(
        xp, {name: f"B(h{name}(H(a)))" for name in FUNCTIONS}, "uint16", EVERY, preamble=form.preamble
    )
    with np.errstate(invalid="ignore"):
        x = form.floats(EVERY).astype(float)
    for name, function in FUNCTIONS.items():
        with np.errstate(all="ignore"):
            expected = form.bits(to_odd_float(function(x).astype(np.longdouble)))
        nans = np.isnan(form.floats(expected))
        np.testing.assert_array_equal(np.isnan(form.floats(got[name])), nans, name)
        apart = np.abs(got[name][~nans].view(np.int16).astype(int) - expected[~nans].view(np.int16))
        assert apart.max() <= (0 if name in ("sqrt", "ceil", "floor", "trunc", "rint") else 2), name


def test_pairs_do_both_halves(xp, form):
    low, high = operand_bits(form, 2)
    other_low, other_high = np.roll(low, 91), np.roll(high, 17)
    first = low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)
    second = other_low.astype(np.uint32) | other_high.astype(np.uint32) << np.uint32(16)
    of_halves = {"__hadd2": "__hadd", "__hsub2": "__hsub", "__hmul2": "__hmul", "__h2div": "__hdiv",
                 "__hmax2": "__hmax",
                 "__hadd2_sat": "__hadd_sat", "__hmul2_rn": "__hmul_rn", "__hmin2_nan": "__hmin_nan"}  # fmt: skip
    pairs = {name: f"Q({name}(P(a), P(b)))" for name in of_halves}
    pairs |= {op: f"Q(P(a) {op} P(b))" for op in "+-*/"} | {
        "exp": "Q(h2exp(P(a)))",
        "fma": "Q(__hfma2(P(a), P(b), P(a)))",
    }
    pairs |= {"swap": "Q(__lowhigh2highlow(P(a)))", "mask": "__hlt2_mask(P(a), P(b))", "eq2": "Q(__heq2(P(a), P(b)))",
              "both": "__hbge2(P(a), P(b))", "lows": f"Q(__lows2{form.word}2(P(a), P(b)))"}  # fmt: skip
    got = evaluate(xp, pairs, "uint32", first, second, preamble=form.preamble)
    halves = {name: f"B({name}(H(a), H(b)))" for name in of_halves.values()} | {
        "exp": "B(hexp(H(a)))",
        "fma": "B(__hfma(H(a), H(b), H(a)))",
    }
    one = evaluate(xp, halves, "uint16", low, other_low, preamble=form.preamble)
    two = evaluate(xp, halves, "uint16", high, other_high, preamble=form.preamble)
    symbols = dict(zip("+-*/", ("__hadd", "__hsub", "__hmul", "__hdiv"), strict=True))
    for name, single in (of_halves | symbols | {"exp": "exp", "fma": "fma"}).items():
        form.equal((got[name] & 0xFFFF).astype(np.uint16), one[single], name)
        form.equal((got[name] >> 16).astype(np.uint16), two[single], name)
    np.testing.assert_array_equal(got["swap"], first << np.uint32(16) | first >> np.uint32(16))
    np.testing.assert_array_equal(
        got["lows"], low.astype(np.uint32) | other_low.astype(np.uint32) << np.uint32(16)
    )
    f, g, p, q = (form.floats(bits) for bits in (low, other_low, high, other_high))
    np.testing.assert_array_equal(got["mask"], np.where(f < g, 0xFFFF, 0) + np.where(p < q, 0xFFFF0000, 0))
    np.testing.assert_array_equal(got["both"], (f >= g) & (p >= q))
    one_bits = int(form.bits(np.float32([1]))[0])
    np.testing.assert_array_equal(
        got["eq2"], np.where(f == g, one_bits, 0) + np.where(p == q, one_bits << 16, 0)
    )


def test_everyday_code(xp, form):
    body = (
        form.preamble
        + f"""
    __device__ unsigned short everyday(unsigned short bits) {{
        {form.ctype} x = H(bits), sum = 0.0f;
        for (int i = 0; i < 3; ++i) sum += x;
        sum -= {form.ctype}(0.5); sum *= x; sum /= {form.ctype}(2);
        ++sum; sum--;
        const {form.ctype}* pointer = &x;
        if (sum > *pointer && sum != x) sum = -sum;
        float f = sum; int i = x; f += i;
        return B({form.ctype}(f));
    }}"""
    )
    x = form.bits(np.linspace(-4, 4, 65, dtype=np.float32))
    got = form.floats(evaluate(xp, {"everyday": "everyday(a)"}, "uint16", x, preamble=body)["everyday"])

    def h(values: np.ndarray) -> np.ndarray:
        return form.floats(form.bits(values))

    v = form.floats(x)
    total = h(h(h(v) + v) + v)
    total = h(h(h(total - np.float32(0.5)) * v) / 2)
    total = h(h(total + 1) - 1)
    total = np.where((total > v) & (total != v), -total, total)
    np.testing.assert_array_equal(got, h(total + np.trunc(v)))


def test_atomic_sums_of_halves(xp, form):
    import gridstride as gs

    code = (
        form.preamble
        + f"""
    extern "C" __global__ void add({form.ctype}* sum, {form.pair}* pair) {{
        atomicAdd(sum, {form.ctype}(1.0f));
        atomicAdd(pair, __floats2{form.word}2_rn(1.0f, 2.0f));
    }}"""
    )
    out = xp.zeros(4, np.uint16)
    dtype = form.dtype
    gs.RawKernel(code, "add")((4,), (32,), (out[:1].view(dtype), out[2:].view(dtype)))
    np.testing.assert_array_equal(form.floats(gs.asnumpy(out))[[0, 2, 3]], [128, 128, 256])
