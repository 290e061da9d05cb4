"""Integer intrinsics: bits, bytes, shifts, products, SIMD in a word."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from device_support import evaluate

EDGES = np.array([0, 1, 2, 31, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7F80FF01, 2**31 - 1, 2**31,
                  2**31 + 1, 2**32 - 2, 2**32 - 1], np.uint32)  # fmt: skip


def words(count: int, seed: int = 0) -> np.ndarray:
    """Every pair of edge values occurs when two such arrays of different seeds are combined."""
    random = np.random.default_rng(seed).integers(0, 2**32, count, dtype=np.uint32)
    edges = np.tile(EDGES, EDGES.size) if seed else np.repeat(EDGES, EDGES.size)
    return np.concatenate([edges, random])


A, B = words(2000), words(2000, 1)
C = np.roll(B, 777)
SIGNED_A, SIGNED_B = A.view(np.int32), B.view(np.int32)


def bit_string(value: int, width: int = 32) -> str:
    return format(int(value), f"0{width}b")


def reference(function: object, *arrays: np.ndarray, dtype: str) -> np.ndarray:
    """Apply a function of Python integers and keep the low bits."""
    mask = 2 ** (8 * np.dtype(dtype).itemsize) - 1
    values = [function(*map(int, row)) & mask for row in zip(*arrays, strict=True)]
    return np.array(values, np.dtype(dtype.replace("int", "uint").replace("uuint", "uint"))).view(dtype)


def byte_perm(low: int, high: int, selectors: int) -> int:
    both = high << 32 | low
    return sum((both >> 8 * (selectors >> 4 * place & 7) & 255) << 8 * place for place in range(4))


UNARY = {
    "__clz((int)a)": lambda a: 32 - a.bit_length(),
    "__ffs((int)a)": lambda a: (a & -a).bit_length(),
    "__popc(a)": lambda a: a.bit_count(),
    "__brev(a)": lambda a: int(bit_string(a)[::-1], 2),
}
WIDE_UNARY = {
    "__clzll((long long)a)": lambda a: 64 - a.bit_length(),
    "__ffsll((long long)a)": lambda a: (a & -a).bit_length(),
    "__popcll(a)": lambda a: a.bit_count(),
    "__brevll(a)": lambda a: int(bit_string(a, 64)[::-1], 2),
}
UNSIGNED = {
    "__umulhi(a, b)": lambda a, b: a * b >> 32,
    "__umul24(a, b)": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "__uhadd(a, b)": lambda a, b: (a + b) >> 1,
    "__urhadd(a, b)": lambda a, b: (a + b + 1) >> 1,
    "__usad(a, b, 7u)": lambda a, b: abs(a - b) + 7,
    "__funnelshift_l(a, b, 40u)": lambda a, b: (b << 32 | a) << 8 >> 32,
    "__funnelshift_r(a, b, 40u)": lambda a, b: (b << 32 | a) >> 8,
    "__funnelshift_lc(a, b, 40u)": lambda a, b: a,
    "__funnelshift_rc(a, b, 40u)": lambda a, b: b,
    "__funnelshift_lc(a, b, 5u)": lambda a, b: (b << 32 | a) << 5 >> 32,
    "__funnelshift_rc(a, b, 5u)": lambda a, b: (b << 32 | a) >> 5,
    "min(a, b)": min,
    "max(a, b)": max,
    "umax(a, b)": max,
}


def low24(value: int) -> int:
    return (value & 0xFFFFFF) - (value & 0x800000) * 2


SIGNED = {
    "__mulhi(a, b)": lambda a, b: a * b >> 32,
    "__mul24(a, b)": lambda a, b: low24(a) * low24(b),
    "__hadd(a, b)": lambda a, b: (a + b) >> 1,
    "__rhadd(a, b)": lambda a, b: (a + b + 1) >> 1,
    "(int)__sad(a, b, 7u)": lambda a, b: abs(a - b) + 7,
    "min(a, b)": min,
    "max(a, b)": max,
    "abs(a)": lambda a, b: abs(a),
    "(int)max(a, 5u)": lambda a, b: max(a % 2**32, 5),
    "(int)min((long long)a * b, 9LL)": lambda a, b: min(a * b, 9),
}


@pytest.mark.parametrize(
    ("table", "arrays", "dtype"),
    [
        (UNARY, (A,), "uint32"),
        (WIDE_UNARY, (A.astype(np.uint64) << np.uint64(32) | B,), "uint64"),
        (UNSIGNED, (A, B), "uint32"),
        (SIGNED, (SIGNED_A, SIGNED_B), "int32"),
    ],
    ids=["bits", "wide-bits", "unsigned", "signed"],
)
def test_words(xp, table, arrays, dtype):
    got = evaluate(xp, {key: key for key in table}, dtype, *arrays)
    for expression, function in table.items():
        np.testing.assert_array_equal(got[expression], reference(function, *arrays, dtype=dtype), expression)


def test_products_of_64_bits(xp):
    x, y = (np.random.default_rng(seed).integers(0, 2**64, 500, dtype=np.uint64) for seed in (2, 3))
    got = evaluate(
        xp,
        {"u": "__umul64hi(a, b)", "s": "(unsigned long long)__mul64hi((long long)a, (long long)b)"},
        "uint64",
        x,
        y,
    )
    np.testing.assert_array_equal(got["u"], reference(lambda a, b: a * b >> 64, x, y, dtype="uint64"))
    signed = reference(lambda a, b: a * b >> 64, x.view(np.int64), y.view(np.int64), dtype="uint64")
    np.testing.assert_array_equal(got["s"], signed)


def test_bytes_are_permuted_and_multiplied(xp):
    got = evaluate(
        xp,
        {
            "perm": "__byte_perm(a, b, c)",
            "dp4a": "(unsigned)__dp4a((int)a, (int)b, (int)c)",
            "udp4a": "__dp4a(a, b, c)",
            "lo": "(unsigned)__dp2a_lo((int)a, (int)b, (int)c)",
            "uhi": "__dp2a_hi(a, b, c)",
            "fns": "__fns(a, b & 31, (int)(c % 9) - 4)",
        },
        "uint32", A, B, C,
    )  # fmt: skip
    np.testing.assert_array_equal(got["perm"], reference(byte_perm, A, B, C, dtype="uint32"))
    s1, s2 = (x.view(np.int8).reshape(-1, 4).astype(np.int64) for x in (A, B))
    u1, u2 = (x.view(np.uint8).reshape(-1, 4).astype(np.int64) for x in (A, B))
    h = A.view(np.int16).reshape(-1, 2).astype(np.int64)
    uh = A.view(np.uint16).reshape(-1, 2).astype(np.int64)
    wide = C.astype(np.int64)
    for key, expected in {
        "dp4a": (s1 * s2).sum(1) + wide,
        "udp4a": (u1 * u2).sum(1) + wide,
        "lo": (h * s2[:, :2]).sum(1) + wide,
        "uhi": (uh * u2[:, 2:]).sum(1) + wide,
    }.items():
        np.testing.assert_array_equal(got[key], expected.astype(np.uint32), key)
    np.testing.assert_array_equal(got["fns"], reference(find_nth_set, A, B & 31, C, dtype="uint32"))


def find_nth_set(mask: int, base: int, selector: int) -> int:
    count = selector % 9 - 4
    if count == 0:
        return base if mask >> base & 1 else 2**32 - 1
    places = range(base, 32) if count > 0 else range(base, -1, -1)
    found = [place for place in places if mask >> place & 1]
    return found[abs(count) - 1] if len(found) >= abs(count) else 2**32 - 1


def lanes(array: np.ndarray, kind: str) -> np.ndarray:
    """Return the lanes of words as wide integers, for example of kind s2 or u4."""
    dtype = {"s2": np.int16, "u2": np.uint16, "s4": np.int8, "u4": np.uint8}[kind]
    return array.view(dtype).astype(np.int64)


def packed(values: np.ndarray, kind: str) -> np.ndarray:
    return values.astype({"2": np.uint16, "4": np.uint8}[kind[1]]).view(np.uint32)


def saturated(values: np.ndarray, kind: str) -> np.ndarray:
    bits = 32 // int(kind[1])
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if kind[0] == "s" else (0, 2**bits - 1)
    return np.clip(values, low, high)


LANE_OPERATIONS = {
    "__vadd": ("u", lambda x, y, k: x + y),
    "__vsub": ("u", lambda x, y, k: x - y),
    "__vaddss": ("s", lambda x, y, k: saturated(x + y, k)),
    "__vaddus": ("u", lambda x, y, k: saturated(x + y, k)),
    "__vsubss": ("s", lambda x, y, k: saturated(x - y, k)),
    "__vsubus": ("u", lambda x, y, k: saturated(x - y, k)),
    "__vabsdiffs": ("s", lambda x, y, k: np.abs(x - y)),
    "__vabsdiffu": ("u", lambda x, y, k: np.abs(x - y)),
    "__vhaddu": ("u", lambda x, y, k: (x + y) >> 1),
    "__vavgu": ("u", lambda x, y, k: (x + y + 1) >> 1),
    "__vavgs": ("s", lambda x, y, k: (x + y + (x + y >= 0)) >> 1),
    "__vmaxs": ("s", lambda x, y, k: np.maximum(x, y)),
    "__vmaxu": ("u", lambda x, y, k: np.maximum(x, y)),
    "__vmins": ("s", lambda x, y, k: np.minimum(x, y)),
    "__vminu": ("u", lambda x, y, k: np.minimum(x, y)),
}
for word in ("eq", "ne", "ge", "gt", "le", "lt"):
    for sign in "u" if word in ("eq", "ne") else "su":
        compare = getattr(operator, word)
        name = word if word in ("eq", "ne") else word + sign
        LANE_OPERATIONS[f"__vcmp{name}"] = (sign, lambda x, y, k, f=compare: -f(x, y).astype(np.int64))
        LANE_OPERATIONS[f"__vset{name}"] = (sign, lambda x, y, k, f=compare: f(x, y).astype(np.int64))


def test_lanes_of_a_word(xp):
    calls = {
        f"{name}{count}": (f"{sign}{count}", f)
        for name, (sign, f) in LANE_OPERATIONS.items()
        for count in "24"
    }
    got = evaluate(xp, {call: f"{call}(a, b)" for call in calls}, "uint32", A, B)
    for call, (kind, function) in calls.items():
        expected = packed(function(lanes(A, kind), lanes(B, kind), kind), kind)
        np.testing.assert_array_equal(got[call], expected, call)


def test_signs_and_sums_of_lanes(xp):
    calls = [f"{name}{count}" for name in ("__vneg", "__vnegss", "__vabs", "__vabsss") for count in "24"]
    sums = [f"__vsad{sign}{count}" for sign in "su" for count in "24"]
    got = evaluate(
        xp, {call: f"{call}(a)" for call in calls} | {s: f"{s}(a, b)" for s in sums}, "uint32", A, B
    )
    for call in calls:
        kind = "s" + call[-1]
        values = -lanes(A, kind) if "neg" in call else np.abs(lanes(A, kind))
        expected = packed(saturated(values, kind) if "ss" in call else values, kind)
        np.testing.assert_array_equal(got[call], expected, call)
    for call in sums:
        differences = np.abs(lanes(A, call[-2:]) - lanes(B, call[-2:])).reshape(-1, int(call[-1]))
        np.testing.assert_array_equal(got[call], differences.sum(1).astype(np.uint32), call)


def wrapped(values: np.ndarray) -> np.ndarray:
    return values.astype(np.uint32).view(np.int32).astype(np.int64)


def test_extrema_of_three_and_of_sums(xp):
    calls = [
        f"__{stem}_{kind}{relu}"
        for stem in ("vimax3", "vimin3", "viaddmax", "viaddmin")
        for kind in ("s32", "u32", "s16x2", "u16x2")
        for relu in ("", "_relu")
        if not (relu and kind[0] == "u")
    ]
    pairs = [f"__{stem}_{kind}_relu" for stem in ("vimax", "vimin") for kind in ("s32", "s16x2")]
    got = evaluate(
        xp,
        {c: f"(unsigned){c}(a, b, c)" for c in calls} | {c: f"(unsigned){c}(a, b)" for c in pairs},
        "uint32",
        A,
        B,
        C,
    )
    for call in calls + pairs:
        stem, kind, *relu = call.strip("_").split("_")
        dtype = {"s32": np.int32, "u32": np.uint32, "s16x2": np.int16, "u16x2": np.uint16}[kind]
        x, y, z = (array.view(dtype) for array in (A, B, C))
        pick = np.maximum if "max" in stem else np.minimum
        with np.errstate(over="ignore"):
            first = x + y if "add" in stem else pick(x, y)
        expected = first if call in pairs else pick(first, z)
        expected = np.maximum(expected, dtype(0)) if relu else expected
        np.testing.assert_array_equal(got[call], expected.view(np.uint32), call)


def test_extrema_tell_which_was_chosen(xp):
    body = """
    __device__ unsigned word(unsigned a, unsigned b) {
        bool first; int chosen = __vibmax_s32((int)a, (int)b, &first);
        return (unsigned)chosen ^ (first ? 0x80000000u : 0);
    }
    __device__ unsigned halves(unsigned a, unsigned b) {
        bool high, low; unsigned chosen = __vibmin_u16x2(a, b, &high, &low);
        return chosen ^ (high ? 0x80000000u : 0) ^ (low ? 0x8000u : 0);
    }"""
    got = evaluate(xp, {"word": "word(a, b)", "halves": "halves(a, b)"}, "uint32", A, B, preamble=body)
    chosen = np.maximum(SIGNED_A, SIGNED_B).view(np.uint32) ^ np.where(SIGNED_A >= SIGNED_B, 2**31, 0).astype(
        np.uint32
    )
    np.testing.assert_array_equal(got["word"], chosen)
    x, y = A.view(np.uint16), B.view(np.uint16)
    expected = (np.minimum(x, y) ^ np.where(x <= y, 0x8000, 0).astype(np.uint16)).view(np.uint32)
    np.testing.assert_array_equal(got["halves"], expected)
