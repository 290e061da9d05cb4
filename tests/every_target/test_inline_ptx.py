"""Inline PTX: the instructions and special registers that are translated, on every target."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from device_cases.case import Case, each, run
from device_cases.inputs import F32_3, F64_3, S32, S64, U32, U64, Array

import gridstride as gs
from gridstride.targets.cpu import ptx as ptx_table

TYPES = {
    "u16": ("unsigned short", "h", 16, False), "s16": ("short", "h", 16, True), "b16": ("unsigned short", "h", 16,
        False),
    "u32": ("unsigned", "r", 32, False), "s32": ("int", "r", 32, True), "b32": ("unsigned", "r", 32, False),
    "u64": ("unsigned long long", "l", 64, False), "s64": ("long long", "l", 64, True),
        "b64": ("unsigned long long", "l", 64, False),
    "f32": ("float", "f", 32, False), "f64": ("double", "d", 64, False),
}  # fmt: skip
INPUTS = {
    "u16": tuple(a.astype(np.uint16) for a in U32), "s16": tuple(a.astype(np.int16) for a in S32), "u32": U32,
        "s32": S32,
    "u64": U64, "s64": S64, "f32": F32_3, "f64": F64_3,
}  # fmt: skip
INPUTS |= {"b16": INPUTS["u16"], "b32": U32, "b64": U64}
NUMPY = {"u": "uint", "s": "int", "b": "uint", "f": "float"}


def dtype(kind: str) -> str:
    return NUMPY[kind[0]] + kind[1:]


def ptx(mnemonic: str, result: str, operands: str, function: Callable[..., object], inputs: str | None = None,
        *, vectorized: bool = False, ulp: float = 0) -> Case:  # fmt: skip
    """Make a case of one instruction; `operands` are types, or literals that stand in the template."""
    kinds = [kind for kind in operands.split() if kind in TYPES]
    places = iter(range(1, 9))
    template = ", ".join(
        ["%0", *(f"%{next(places)}" if kind in TYPES else kind for kind in operands.split())]
    )
    letters = "abc"[: len(kinds)]
    bound = ", ".join(
        f'"{TYPES[kind][1]}"(({TYPES[kind][0]}){letter})' for kind, letter in zip(kinds, letters, strict=True)
    )
    ctype, constraint, *_ = TYPES[result]
    call = f'[=] {{ {ctype} d; asm volatile("{mnemonic} {template};" : "={constraint}"(d) : {bound}); return d; }}()'
    arrays = INPUTS[inputs or kinds[0]][: len(kinds)]
    reference = function if vectorized else each(function)
    return Case(mnemonic, call, dtype(result), arrays, reference, ulp)


def shifted(value: int, by: int, bits: int) -> int:
    return value << by if by < bits else 0


def field(value: int, start: int, length: int, bits: int, *, signed: bool) -> int:
    start, length = start & 255, length & 255
    pattern = value & (2**bits - 1)
    if length == 0:
        return 0
    sign = pattern >> min(start + length - 1, bits - 1) & 1 if signed else 0
    return sum(
        ((pattern >> (start + i) & 1) if i < length and start + i < bits else sign) << i for i in range(bits)
    )


def inserted(a: int, b: int, start: int, length: int) -> int:
    for i in range(min(length & 255, 32)):
        place = (start & 255) + i
        if place < 32:
            b = b & ~(1 << place) | (a >> i & 1) << place
    return b


def permuted(a: int, b: int, selectors: int) -> int:
    whole, result = b << 32 | a, 0
    for i in range(4):
        selector = selectors >> 4 * i & 15
        byte = whole >> 8 * (selector & 7) & 255
        result |= ((0xFF if byte >> 7 else 0) if selector & 8 else byte) << 8 * i
    return result


def merged(a: int, b: int, c: int, table: int) -> int:
    return sum((table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1) << i for i in range(32))


def by_type(stem: str, kinds: str, count: int, function: Callable[..., int]) -> list[Case]:
    return [ptx(f"{stem}.{kind}", kind, " ".join([kind] * count), function) for kind in kinds.split()]


ALL = "u16 s16 u32 s32 u64 s64"
INTEGERS = [
    *by_type("add", ALL, 2, lambda a, b: a + b), *by_type("sub", ALL, 2, lambda a, b: a - b),
    *by_type("mul.lo", ALL, 2, lambda a, b: a * b), *by_type("mad.lo", ALL, 3, lambda a, b, c: a * b + c),
    *by_type("min", ALL, 2, min), *by_type("max", ALL, 2, max), *by_type("abs", "s16 s32 s64", 1, abs),
    *by_type("neg", "s16 s32 s64", 1, lambda a: -a), *by_type("and", "b16 b32 b64", 2, lambda a, b: a & b),
    *by_type("or", "b16 b32 b64", 2, lambda a, b: a | b), *by_type("xor", "b16 b32 b64", 2, lambda a, b: a ^ b),
    *by_type("not", "b16 b32 b64", 1, lambda a: ~a), *by_type("cnot", "b16 b32 b64", 1, lambda a: a == 0),
    *by_type("mul.hi", "u32 s32", 2, lambda a, b: a * b >> 32), *by_type("mul.hi", "u64 s64", 2, lambda a,
        b: a * b >> 64),
    *by_type("mad.hi", "u32 s32", 3, lambda a, b, c: (a * b >> 32) + c), *by_type("mov", "b16 u32 s64", 1, lambda a: a),
    *(ptx(f"mul.wide.{k}", w, f"{k} {k}", lambda a, b: a * b) for k, w in (("u16", "u32"), ("s16", "s32"), ("u32",
        "u64"), ("s32", "s64"))),
    ptx("mad.wide.u32", "u64", "u32 u32 7", lambda a, b: a * b + 7), ptx("mad.wide.s32", "s64", "s32 s32 -7",
        lambda a, b: a * b - 7),
    *(ptx(f"shl.b{n}", f"b{n}", f"b{n} {by}", lambda a, n=n, by=by: shifted(a, by, n)) for n in (16, 32,
        64) for by in (0, 5, 31, 64, 200)),
    *(ptx(f"shr.{k}{n}", f"{k}{n}", f"{k}{n} {by}", lambda a, by=by: a >> by) for n in (16, 32,
        64) for k in "us" for by in (0, 5, 31, 64)),
    ptx("sad.u32", "u32", "u32 u32 u32", lambda a, b, c: abs(a - b) + c), ptx("popc.b32", "u32", "b32", int.bit_count),
    ptx("popc.b64", "u32", "b64", int.bit_count), ptx("clz.b32", "u32", "b32", lambda a: 32 - a.bit_length()),
    ptx("clz.b64", "u32", "b64", lambda a: 64 - a.bit_length()), ptx("brev.b32", "b32", "b32",
        lambda a: int(f"{a:032b}"[::-1], 2)),
    ptx("brev.b64", "b64", "b64", lambda a: int(f"{a:064b}"[::-1], 2)),
    ptx("bfind.u32", "u32", "u32", lambda a: a.bit_length() - 1 if a else 2**32 - 1),
    ptx("bfind.s32", "u32", "s32", lambda a: (a if a >= 0 else ~a).bit_length() - 1 if a not in (0, -1) else 2**32 - 1),
    ptx("prmt.b32", "b32", "b32 b32 b32", permuted), ptx("shf.l.wrap.b32", "b32", "b32 b32 b32", lambda a, b,
        c: (b << 32 | a) << (c & 31) >> 32),
    ptx("shf.r.wrap.b32", "b32", "b32 b32 b32", lambda a, b, c: (b << 32 | a) >> (c & 31)),
    ptx("shf.r.clamp.b32", "b32", "b32 b32 b32", lambda a, b, c: (b << 32 | a) >> min(c, 32)),
    ptx("shf.l.clamp.b32", "b32", "b32 b32 b32", lambda a, b, c: (b << 32 | a) << min(c, 32) >> 32),
    *(ptx("lop3.b32", "b32", f"b32 b32 b32 {table}", lambda a, b, c, table=table: merged(a, b, c,
        table)) for table in (0x96, 0xE8, 0xCA, 0x01)),
    *(ptx(f"bfe.{k}", k, f"{k} {start} {length}", lambda a, k=k, s=start, n=length: field(a, s, n, TYPES[k][2],
        signed=TYPES[k][3]))
      for k in ("u32", "s32", "u64", "s64") for start, length in ((0, 8), (4, 8), (28, 8), (5, 0), (3, 255))),
    *(ptx("bfi.b32", "b32", f"b32 b32 {start} {length}", lambda a, b, s=start, n=length: inserted(a, b, s, n))
      for start, length in ((0, 8), (4, 8), (28, 8), (5, 0), (40, 4))),
    ptx("dp4a.u32.u32", "u32", "u32 u32 u32", lambda a, b,
        c: c + sum((a >> 8 * i & 255) * (b >> 8 * i & 255) for i in range(4))),
]  # fmt: skip


def both(stem: str, count: int, function: Callable[..., Array], ulp: float = 0) -> list[Case]:
    return [
        ptx(f"{stem}.{k}", k, " ".join([k] * count), function, vectorized=True, ulp=ulp)
        for k in ("f32", "f64")
    ]


def wide(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *arrays: function(*(array.astype(np.longdouble) for array in arrays))


def to_integer(x: Array, rounding: Callable[[Array], Array], kind: str) -> Array:
    info = np.iinfo(dtype(kind))
    of_nan = 0 if x.dtype == np.float32 and info.bits == 32 else info.min or 2 ** (info.bits - 1)
    return np.array(
        [of_nan if np.isnan(v) else info.max if v >= float(info.max) else info.min if v <= float(info.min) else int(v)
         for v in rounding(x.astype(float)).tolist()], dtype(kind))  # fmt: skip


FLOATS = [
    *both("add.rn", 2, np.add), *both("sub.rn", 2, np.subtract), *both("mul.rn", 2, np.multiply), *both("div.rn",
        2, np.divide),
    *both("add", 2, np.add), *both("abs", 1, np.abs), *both("neg", 1, np.negative), *both("sqrt.rn", 1, np.sqrt),
    *both("rcp.rn", 1, np.reciprocal), *both("mov", 1, lambda x: x),
    *both("copysign", 2, lambda sign, size: np.copysign(size, sign)),
    *(ptx(f"cvt.{mode}.{k}.{source}", k, source, lambda x, f=f, k=k: to_integer(x, f, k), vectorized=True)
      for mode, f in (("rni", np.rint), ("rzi", np.trunc), ("rmi", np.floor), ("rpi", np.ceil))
      for k in ("s32", "u32", "s64", "u64") for source in ("f32", "f64")),
    ptx("cvt.rn.f32.f64", "f32", "f64", lambda x: x.astype(np.float32), vectorized=True),
    ptx("cvt.f64.f32", "f64", "f32", lambda x: x.astype(float), vectorized=True),
    *(ptx(f"cvt.rn.{k}.{source}", k, source, lambda x, k=k: x.astype(dtype(k)), vectorized=True)
      for k in ("f32", "f64") for source in ("s32", "u32", "s64", "u64")),
    *(ptx(f"cvt.{to}.{source}", to, source, lambda a: a) for to, source in (("u32", "u16"), ("s32", "s16"), ("u64",
        "u32"), ("s64", "s32"), ("u16", "u32"), ("u32", "u64"))),
]  # fmt: skip
NEAR = np.concatenate([np.linspace(0.01, 3, 97, dtype=np.float32), np.float32([1e-3, 10, 64])])
APPROXIMATIONS = [
    Case(f"{word}.approx{ftz}.f32",
        f'[=] {{ float d; asm("{word}.approx{ftz}.f32 %0, %1;" : "=f"(d) : "f"(a)); return d; }}()',
         "float32", (NEAR,), wide(function), 64, 1e-5)
    for word, function in (("sin", np.sin), ("cos", np.cos), ("ex2", np.exp2), ("lg2", np.log2), ("sqrt", np.sqrt),
                           ("rsqrt", lambda x: 1 / np.sqrt(x)), ("rcp", lambda x: 1 / x))
    for ftz in ("", ".ftz")
]  # fmt: skip


def compared(word: str, kind: str, function: Callable[..., Array]) -> Case:
    ctype, constraint, *_ = TYPES[kind]
    call = (
        f'[=] {{ unsigned d; asm("{{ .reg .pred p; setp.{word}.{kind} p, %1, %2; selp.u32 %0, 1, 0, p; }}" : "=r"(d) '
        f': "{constraint}"(({ctype})a), "{constraint}"(({ctype})b)); return d; }}()'
    )
    return Case(
        f"setp.{word}.{kind}", call, "uint32", INPUTS[kind][:2], lambda a, b: function(a, b).astype(np.uint32)
    )


COMPARISONS = [
    compared(word, kind, function)
    for words, function in (
        ("eq", np.equal), ("ne", np.not_equal), ("lt lo", np.less), ("le ls", np.less_equal), ("gt hi", np.greater),
        ("ge hs", np.greater_equal),
    )
    for word in words.split()
    for kind in (("u32", "u64") if word in ("lo", "ls", "hi", "hs") else ("u16", "s16", "u32", "s32", "u64", "s64",
        "f32", "f64"))
    if not (word == "ne" and kind[0] == "f")
] + [
    compared("neu", "f32", np.not_equal),
    compared("ne", "f64", lambda a, b: (a != b) & ~np.isnan(a) & ~np.isnan(b)),
]  # fmt: skip
NOT_ZERO = tuple(np.where(a == 0, 3, np.abs(a % 1000) + 1).astype(a.dtype) for a in S32)
OTHERS = [
    Case(f"{word}.s32", f'[=] {{ int d; asm("{word}.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); return d; }}()',
        "int32",
         (S32[0], NOT_ZERO[1]), each(function))
    for word, function in (("div", lambda a, b: abs(a) // b * (1 if a >= 0 else -1)), ("rem", lambda a,
        b: abs(a) % b * (1 if a >= 0 else -1)))
] + [
    ptx("mul24.lo.u32", "u32", "u32 u32", lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF)),
    *both("mul", 2, np.multiply),
    ptx("fma.rz.f32", "f32", "f32 0f3F800000 0f00000000", lambda x: np.where(x == 0, 0.0, x), vectorized=True),
    ptx("mad.rn.f32", "f32", "f32 0f40000000 0f3F800000", lambda x: (x.astype(float) * 2 + 1).astype(np.float32),
        vectorized=True),
    ptx("cvt.sat.f32.f32", "f32", "f32", lambda x: np.where(x > 0, np.minimum(x, np.float32(1)), np.float32(0)),
        vectorized=True, ulp=0.5),
]  # fmt: skip
TANH = [
    Case("tanh.approx.f32", '[=] { float d; asm("tanh.approx.f32 %0, %1;" : "=f"(d) : "f"(a)); return d; }()',
        "float32",
         (NEAR,), wide(np.tanh), 64, 2e-3),
    *(Case(f"div.{word}.f32",
        f'[=] {{ float d; asm("div.{word}.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b)); return d; }}()',
           "float32", (NEAR, np.roll(NEAR, 7)), wide(np.divide), 4) for word in ("approx", "full")),
]  # fmt: skip


def test_other_registers_warps_and_spaces(xp):
    code = r"""
    #define READ(name) ([] { unsigned r; asm volatile("mov.u32 %0, %%" name ";" : "=r"(r)); return r; }())
    #define WARP(text) ([=] { unsigned r; asm volatile(text : "=r"(r) : "r"(t)); return r; }())
    #define SPACE(space, p) ([&] { unsigned r; \
        asm("{ .reg .pred q; " space " q, %1; selp.u32 %0, 1, 0, q; }" : "=r"(r) : "l"(p)); return r; }())
    extern "C" __global__ void k(unsigned* all, int* data) {
        __shared__ int tile[64];
        int local[2] = {5, 6};
        unsigned t = threadIdx.x + 8 * threadIdx.y, *out = all + 24 * t;
        tile[t] = 3 * t;
        asm volatile("barrier.sync 0;" ::: "memory");
        out[0] = READ("tid.y") * 100 + READ("tid.z") * 10 + READ("ntid.y") + READ("ntid.z");
        out[1] = READ("ctaid.y") + READ("ctaid.z") + READ("nctaid.y") * 10 + READ("nctaid.z") * 100;
        unsigned long long number; asm("mov.u64 %0, %%gridid;" : "=l"(number));
        out[2] = READ("total_smem_size") >= 256 && READ("globaltimer_hi") && READ("clock_hi") < 0x7fffffff
            && (READ("globaltimer_lo") | 1);
        out[3] = WARP("activemask.b32 %0;"); out[4] = WARP("match.any.sync.b32 %0, %1, 0xffffffff;");
        out[5] = WARP("redux.sync.min.u32 %0, %1, 0xffffffff;");
            out[6] = WARP("redux.sync.max.u32 %0, %1, 0xffffffff;");
        out[7] = WARP("redux.sync.and.b32 %0, %1, 0xffffffff;"); out[8] = WARP("redux.sync.or.b32 %0, %1, 0xffffffff;");
        out[9] = WARP("redux.sync.xor.b32 %0, %1, 0xffffffff;");
            out[10] = WARP("shfl.sync.idx.b32 %0, %1, 5, 0x1f, 0xffffffff;");
        #define VOTE(kind) WARP("{ .reg .pred p, q; setp.gt.u32 p, %1, 40; " kind ".pred q, p, 0xffffffff; " \
            "selp.u32 %0, 1, 0, q; }")
        out[11] = VOTE("vote.sync.all"); out[12] = VOTE("vote.sync.any"); out[13] = VOTE("vote.sync.uni");
        out[14] = SPACE("isspacep.global", data) + 2 * SPACE("isspacep.shared", tile) + 4 * SPACE("isspacep.local",
            local) + 8 * SPACE("isspacep.global", tile);
        unsigned long long a, b; asm("cvta.to.shared.u64 %0, %1;" : "=l"(a) : "l"(tile + t));
            asm("cvta.shared.u64 %0, %1;" : "=l"(b) : "l"(a));
        out[15] = *(int*)b; asm("cvta.to.global.u64 %0, %1;" : "=l"(a) : "l"(data + t));
            asm("cvta.global.u64 %0, %1;" : "=l"(b) : "l"(a));
        out[16] = *(int*)b; asm("cvta.to.local.u64 %0, %1;" : "=l"(a) : "l"(local + 1));
            asm("cvta.local.u64 %0, %1;" : "=l"(b) : "l"(a));
        out[17] = *(int*)b;
        asm volatile("prefetch.global.L1 [%0];" :: "l"(data));
            asm volatile("prefetch.global.L2 [%0];" :: "l"(data)); asm volatile("pmevent 1;");
        asm volatile("nanosleep.u32 20;"); asm volatile("membar.cta;"); asm volatile("membar.sys;");
            asm volatile("fence.sc.gpu;");
        asm volatile("fence.sc.cta;"); asm volatile("fence.sc.sys;"); asm volatile("fence.acq_rel.cta;");
            asm volatile("fence.acq_rel.sys;");
        if (t > 500) asm volatile("brkpt;");
    }"""
    data = np.arange(64, dtype=np.int32) * 11
    out = xp.zeros((64, 24), np.uint32)
    gs.RawKernel(code, "k", options=("--std=c++17",))((1,), (8, 8), (out, xp.asarray(data)))
    t = np.arange(64)
    one, first = np.ones(64, int), t < 32
    expected = [
        t // 8 * 100 + 9, 110 * one, one, (2**32 - 1) * one, 1 << (t % 32), t // 32 * 32, t // 32 * 32 + 31,
            t // 32 * 32,
        np.where(first, 31, 63), 0 * t, t // 32 * 32 + 5, 0 * t, ~first, first, 7 * one, 3 * t, data, 6 * one,
    ]  # fmt: skip
    np.testing.assert_array_equal(gs.asnumpy(out)[:, :18], np.stack(expected, 1).astype(np.uint32))


def test_votes_in_their_other_order_and_matches_of_all_lanes(xp):
    """ptxas takes `vote.ballot.sync` for `vote.sync.ballot`, and radix sorts write it so."""
    code = r"""
    extern "C" __global__ void k(unsigned* all, unsigned bit) {
        unsigned t = threadIdx.x, *out = all + 6 * t, r, same = ~0u;
        asm volatile("{\n .reg .pred p;\n .reg .b32 bal;\n and.b32 bal, %1, %2;\n setp.ne.u32 p, bal, 0;\n"
            " vote.ballot.sync.b32 bal, p, 0xffffffff;\n @!p not.b32 bal, bal;\n and.b32 %0, %0, bal;\n}\n"
            : "+r"(same) : "r"(t), "r"(bit));
        out[0] = same;
        #define VOTE(kind) asm volatile("{ .reg .pred p, q; setp.gt.u32 p, %1, 40; " kind ".pred q, p, 0xffffffff; " \
            "selp.u32 %0, 1, 0, q; }" : "=r"(r) : "r"(t))
        VOTE("vote.all.sync"); out[1] = r; VOTE("vote.any.sync"); out[2] = r; VOTE("vote.uni.sync"); out[3] = r;
        asm volatile("{ .reg .pred p; match.all.sync.b32 %0|p, %1, 0xffffffff; @!p add.u32 %0, %0, 7; }"
            : "=r"(r) : "r"(t / 32));
        out[4] = r;
        asm volatile("{ .reg .pred p; match.all.sync.b64 %0|p, %1, 0xffffffff; @!p add.u32 %0, %0, 7; }"
            : "=r"(r) : "l"((unsigned long long)t << 20));
        out[5] = r;
    }"""
    out = xp.zeros((64, 6), np.uint32)
    gs.RawKernel(code, "k")((1,), (64,), (out, 4))
    t = np.arange(64)
    with_bit = sum(1 << lane for lane in range(32) if lane & 4)
    full, first = 2**32 - 1, t < 32
    expected = [np.where(t & 4, with_bit, full ^ with_bit), 0 * t, ~first, first, full + 0 * t, 7 + 0 * t]
    np.testing.assert_array_equal(gs.asnumpy(out), np.stack(expected, 1).astype(np.uint32))


@pytest.mark.parametrize(
    "cases",
    [INTEGERS, FLOATS, COMPARISONS, [*APPROXIMATIONS, *OTHERS, *TANH]],
    ids=["integers", "floats", "comparisons", "others"],
)
def test_instructions(xp, cases):
    run(xp, cases)


def launch(xp, code: str, *arrays: object, threads: int = 64, blocks: int = 1, **how: object) -> None:
    gs.RawKernel(code, "k", options=("--std=c++17",))((blocks,), (threads,), arrays, **how)


def test_k03b_special_registers(xp):
    code = r"""
    __device__ __forceinline__ unsigned lane() { unsigned r; asm volatile("mov.u32 %0, %%laneid;" : "=r"(r));
        return r; }
    #define READ(name) ([] { unsigned r; asm volatile("mov.u32 %0, %%" name ";" : "=r"(r)); return r; }())
    extern "C" __global__ void k(unsigned* all) {
        unsigned* out = all + 16 * (blockIdx.x * blockDim.x + threadIdx.x);
        out[0] = lane(); out[1] = READ("tid.x"); out[2] = READ("ntid.x"); out[3] = READ("ctaid.x");
            out[4] = READ("nctaid.x");
        out[5] = READ("lanemask_eq"); out[6] = READ("lanemask_lt"); out[7] = READ("lanemask_le");
            out[8] = READ("lanemask_gt");
        out[9] = READ("lanemask_ge"); out[10] = READ("smid") < READ("nsmid");
            out[11] = READ("warpid") < READ("nwarpid");
        unsigned long long a, b; asm volatile("mov.u64 %0, %%clock64;" : "=l"(a));
            asm volatile("mov.u64 %0, %%clock64;" : "=l"(b));
        out[12] = b >= a; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(a)); out[13] = a > 1000000000000000ull;
        out[14] = READ("clock") != 0; out[15] = READ("dynamic_smem_size");
    }"""
    out = xp.zeros((2, 48, 16), np.uint32)
    launch(xp, code, out, threads=48, blocks=2, shared_mem=64)
    lane = np.arange(48) % 32
    one = np.ones(48, np.int64)
    for block in range(2):
        bit = 1 << lane.astype(np.int64)
        expected = [
            lane, np.arange(48), 48 * one, block * one, 2 * one, bit, bit - 1, 2 * bit - 1, 2**32 - 2 * bit,
                2**32 - bit, one, one,
            one, one, one, 64 * one,
        ]  # fmt: skip
        np.testing.assert_array_equal(gs.asnumpy(out)[block], np.stack(expected, 1).astype(np.uint32))


def test_loads_and_stores_of_every_form(xp):
    code = r"""
    extern "C" __global__ void k(const float* x, const int* n, float* out, int* other) {
        __shared__ int tile[64];
        int t = threadIdx.x, v, w; float f, g; float4 q; int2 p;
        asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(f) : "l"(x + t));
        asm volatile("ld.global.cg.f32 %0, [%1+4];" : "=f"(g) : "l"(x + t));
        asm volatile("st.global.cs.f32 [%0], %1;" :: "l"(out + 2 * t), "f"(f + g) : "memory");
        asm("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(q.x), "=f"(q.y), "=f"(q.z),
            "=f"(q.w) : "l"(x + t / 4 * 4));
        asm volatile("st.f32 [%0+4], %1;" :: "l"(out + 2 * t), "f"(q.x + q.w) : "memory");
        asm volatile("ld.volatile.global.s32 %0, [%1];" : "=r"(v) : "l"(n + t));
        unsigned place = (unsigned)__cvta_generic_to_shared(tile + t);
        asm volatile("st.shared.s32 [%0], %1;" :: "r"(place), "r"(v * 2) : "memory");
        asm volatile("ld.shared.s32 %0, [%1];" : "=r"(w) : "r"(place));
        asm volatile("bar.sync 0;" ::: "memory");
        asm volatile("ld.global.cs.v2.u32 {%0, %1}, [%2];" : "=r"(p.x), "=r"(p.y) : "l"(n + t / 2 * 2));
        asm volatile("st.global.wt.v2.u32 [%0], {%1, %2};" :: "l"(other + 2 * t), "r"(w + tile[63 - t]),
            "r"(p.x + p.y) : "memory");
    }"""
    x, n = np.arange(65, dtype=np.float32), np.arange(64, dtype=np.int32) * 3
    out, other = xp.zeros((64, 2), np.float32), xp.zeros((64, 2), np.int32)
    launch(xp, code, xp.asarray(x), xp.asarray(n), out, other)
    t = np.arange(64)
    np.testing.assert_array_equal(gs.asnumpy(out), np.stack([2 * t + 1, t // 4 * 8 + 3], 1))
    np.testing.assert_array_equal(
        gs.asnumpy(other), np.stack([2 * n + 2 * n[::-1], n[t // 2 * 2] + n[t // 2 * 2 + 1]], 1)
    )


def test_atomics_fences_and_copies(xp):
    code = r"""
    extern "C" __global__ void k(unsigned* sums, unsigned* old, float* real, const int* x, int* out) {
        __shared__ alignas(16) int tile[64];
        unsigned t = threadIdx.x, v;
        asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(v) : "l"(sums), "r"(1u) : "memory");
        old[t] = v;
        asm volatile("red.global.max.u32 [%0], %1;" :: "l"(sums + 1), "r"(t) : "memory");
        asm volatile("red.relaxed.gpu.global.or.b32 [%0], %1;" :: "l"(sums + 2), "r"(1u << t % 32) : "memory");
        asm volatile("red.add.f32 [%0], %1;" :: "l"(real), "f"(0.5f) : "memory");
        asm volatile("atom.acq_rel.gpu.global.cas.b32 %0, [%1], %2, %3;" : "=r"(v) : "l"(sums + 3), "r"(0u),
            "r"(9u) : "memory");
        asm volatile("membar.gl;" ::: "memory"); asm volatile("fence.acq_rel.gpu;" ::: "memory");
        unsigned place = (unsigned)__cvta_generic_to_shared(tile + t);
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(place), "l"(x + t) : "memory");
        asm volatile("cp.async.commit_group;"); asm volatile("cp.async.wait_group 0;" ::: "memory");
        asm volatile("bar.sync 0;");
        asm volatile("red.shared.add.u32 [%0], %1;" :: "r"(place), "r"(5u) : "memory");
        __syncthreads();
        out[t] = tile[63 - t];
    }"""
    sums, old, real, out = (
        xp.zeros(4, np.uint32),
        xp.zeros(64, np.uint32),
        xp.zeros(1, np.float32),
        xp.zeros(64, np.int32),
    )
    x = np.arange(64, dtype=np.int32) * 7
    launch(xp, code, sums, old, real, xp.asarray(x), out)
    assert gs.asnumpy(sums).tolist() == [64, 63, 2**32 - 1, 9]
    assert sorted(gs.asnumpy(old).tolist()) == list(range(64))
    assert gs.asnumpy(real)[0] == 32
    np.testing.assert_array_equal(gs.asnumpy(out), x[::-1] + 5)


def test_predicates_registers_warps_and_packing(xp):
    code = r"""
    extern "C" __global__ void k(unsigned* all) {
        unsigned t = threadIdx.x, *out = all + 8 * t, r = 0, full = 0xffffffffu;
        asm("{ .reg .pred p; .reg .u32 twice, t<2>; setp.lt.u32 p, %1, 20;\n\t add.u32 twice, %1, %1; mov.u32 t1, 7; "
            "selp.u32 t0, twice, t1, p; @p add.u32 t0, t0, 1000; @!p add.u32 t0, t0, 1; mov.u32 %0, t0; }"
            : "=r"(r) : "r"(t));
        out[0] = r;
        asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, %2; }"
            : "=r"(r) : "r"(t % 3), "r"(full));
        out[1] = r;
        asm volatile("shfl.sync.up.b32 %0, %1, 1, 0x0, %2;" : "=r"(r) : "r"(t), "r"(full)); out[2] = r;
        asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %1, 4, 0x1f, 0xffffffff; @!p mov.u32 %0, 77; }"
            : "=r"(r) : "r"(t));
        out[3] = r;
        asm volatile("shfl.sync.bfly.b32 %0, %1, 3, 0x1f, 0xffffffff;" : "=r"(r) : "r"(t)); out[4] = r;
        unsigned long long both; unsigned low, high;
        asm("mov.b64 %0, {%1, %2};" : "=l"(both) : "r"(t), "r"(t + 5)); asm("mov.b64 {%0, %1}, %2;" : "=r"(low),
            "=r"(high) : "l"(both));
        out[5] = (unsigned)(both >> 32) * 100 + low + high;
        asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(r) : "r"(t)); out[6] = r;
        float f = t; asm("fma.rn.f32 %0, %0, 0f40000000, %1;" : "+f"(f) : "f"(1.0f)); out[7] = (unsigned)f;
        asm volatile("" ::: "memory");
        if (t == 99) asm volatile("trap;"); else asm volatile("bar.warp.sync 0xffffffff;");
    }"""
    out = xp.zeros((64, 8), np.uint32)
    launch(xp, code, out)
    t = np.arange(64)
    lane, base = t % 32, t // 32 * 32
    ballot = [sum(1 << k for k in range(32) if (b + k) % 3) for b in base]
    expected = [
        np.where(t < 20, 2 * t + 1000, 8), ballot, np.where(lane, t - 1, t), np.where(lane < 28, t + 4, 77), t ^ 3,
            (t + 5) * 100 + 2 * t + 5,
        np.where(t < 32, 496, 1520), 2 * t + 1,
    ]  # fmt: skip
    np.testing.assert_array_equal(gs.asnumpy(out), np.stack(expected, 1))


def test_integers_of_many_words(xp):
    code = r"""
    extern "C" __global__ void k(const unsigned* x, const unsigned* y, unsigned* sums, unsigned* differences,
                                 unsigned* products,
                                 unsigned long long* wide) {
        const unsigned *a = x + 4 * threadIdx.x, *b = y + 4 * threadIdx.x;
        unsigned *s = sums + 4 * threadIdx.x, *d = differences + 4 * threadIdx.x, *p = products + 4 * threadIdx.x;
        asm("add.cc.u32 %0, %4, %8; addc.cc.u32 %1, %5, %9; addc.cc.u32 %2, %6, %10; addc.u32 %3, %7, %11;"
            : "=r"(s[0]), "=r"(s[1]), "=r"(s[2]), "=r"(s[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]));
        asm("sub.cc.u32 %0, %4, %8; subc.cc.u32 %1, %5, %9; subc.cc.u32 %2, %6, %10; subc.u32 %3, %7, %11;"
            : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]));
        // the product of two words of 64 bits, by schoolbook multiplication
        asm("{ mul.lo.u32 %0, %4, %6; mul.hi.u32 %1, %4, %6; mad.lo.cc.u32 %1, %4, %7, %1; madc.hi.u32 %2, %4, %7, 0; "
            "mad.lo.cc.u32 %1, %5, %6, %1; madc.hi.cc.u32 %2, %5, %6, %2; addc.u32 %3, 0, 0; "
            "mad.lo.cc.u32 %2, %5, %7, %2; madc.hi.u32 %3, %5, %7, %3; }"
            : "=&r"(p[0]), "=&r"(p[1]), "=&r"(p[2]), "=&r"(p[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]));
        unsigned long long low, high;
        asm("{ mad.hi.cc.u64 %0, %2, %3, %2; madc.lo.cc.u64 %1, %2, %3, %3; madc.lo.u64 %1, %1, 1, 0; }"
            : "=&l"(low), "=&l"(high) : "l"((unsigned long long)a[1] << 32 | a[0]),
              "l"((unsigned long long)b[1] << 32 | b[0]));
        wide[2 * threadIdx.x] = low; wide[2 * threadIdx.x + 1] = high;
    }"""
    random = np.random.default_rng(6)
    x, y = (random.choice(np.array([0, 1, 2**32 - 1, 2**31, 12345678], np.uint32), (64, 4)) for _ in range(2))
    sums, differences, products = (xp.zeros((64, 4), np.uint32) for _ in range(3))
    wide = xp.zeros((64, 2), np.uint64)
    launch(xp, code, xp.asarray(x), xp.asarray(y), sums, differences, products, wide)

    def number(words: Array, count: int = 4) -> list[int]:
        return [
            sum(int(word) << 32 * place for place, word in enumerate(row[:count]))
            for row in gs.asnumpy(words)
        ]

    a, b = number(x), number(y)
    assert number(sums) == [(p + q) % 2**128 for p, q in zip(a, b, strict=True)]
    assert number(differences) == [(p - q) % 2**128 for p, q in zip(a, b, strict=True)]
    assert number(products) == [p * q for p, q in zip(number(x, 2), number(y, 2), strict=True)]
    for (low, high), p, q in zip(gs.asnumpy(wide).tolist(), number(x, 2), number(y, 2), strict=True):
        total = (p * q >> 64) + p
        second = p * q % 2**64 + q + (total >> 64)
        assert low == total % 2**64
        assert high == (second % 2**64 + (second >> 64)) % 2**64


def test_every_instruction_of_the_table_is_tried():
    """Each in one of its types at least."""

    def stem(name: str) -> str:
        return re.sub(r"(?:\.[busf]\d+|\.pred)+$", "", name)

    text = Path(__file__).read_text()
    tried = {
        stem(case.name)
        for cases in (INTEGERS, FLOATS, COMPARISONS, APPROXIMATIONS, OTHERS, TANH)
        for case in cases
    }
    known = {stem(name) for name in ptx_table.mnemonics()}
    written = {
        name for name in known if re.search(rf"(?<![\w.]){re.escape(name.lstrip('%'))}(?![a-z])", text)
    }
    assert sorted(known - tried - {stem(name) for name in written}) == []
