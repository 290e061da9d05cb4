"""Warp functions: shuffles, votes, matches, reductions, with masks, widths, partial warps and divergence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import gridstride as gs

FULL = 0xFFFFFFFF


def run(
    xp, body: str, threads: int = 32, columns: int = 1, preamble: str = "", dtype: str = "int32"
) -> np.ndarray:
    """Run a body that fills `out[0 .. columns - 1]` of each thread, whose number is `t` and lane `lane`."""
    ctype = {"int32": "int", "uint32": "unsigned", "int64": "long long", "float64": "double"}[dtype]
    code = f"""{preamble}
    extern "C" __global__ void k({ctype}* all) {{
        int t = threadIdx.x, lane = t % warpSize;
        {ctype}* out = all + t * {columns};
        {body}
    }}"""
    out = xp.zeros((threads, columns), dtype)
    gs.RawKernel(code, "k", options=("--std=c++17",))((1,), (threads,), (out,))
    return gs.asnumpy(out)


def source(kind: str, lane: np.ndarray, operand: int, width: int) -> np.ndarray:
    """Return the lane that each lane reads, its own where there is none."""
    first = lane - lane % width
    end = first + width - 1
    wanted = {
        "": first + operand % width,
        "_up": lane - operand,
        "_down": lane + operand,
        "_xor": lane ^ operand,
    }[kind]
    inside = (wanted >= first) if kind == "_up" else (wanted <= end)
    return np.where(inside, wanted, lane)


@pytest.mark.parametrize("kind", ["", "_up", "_down", "_xor"])
def test_shuffles_of_every_width(xp, kind):
    widths, operands = (1, 4, 16, 32), (0, 3, 17)
    pairs = [(width, operand) for width in widths for operand in operands]
    body = "\n".join(
        f"out[{k}] = __shfl{kind}_sync(0xffffffffu, t * 10, {operand}, {width});"
        for k, (width, operand) in enumerate(pairs)
    )
    got = run(xp, body, threads=64, columns=len(pairs))
    t = np.arange(64)
    for k, (width, operand) in enumerate(pairs):
        expected = (t - t % 32 + source(kind, t % 32, operand, width)) * 10
        np.testing.assert_array_equal(got[:, k], expected, f"{width}, {operand}")


@pytest.mark.parametrize(
    ("ctype", "dtype"),
    [("int", "i4"), ("unsigned", "u4"), ("long", "i8"), ("unsigned long", "u8"), ("long long", "i8"),
     ("unsigned long long", "u8"), ("float", "f4"), ("double", "f8")],
)  # fmt: skip
def test_shuffles_of_every_type(xp, ctype, dtype):
    code = f"""extern "C" __global__ void k(const {ctype}* x, {ctype}* out) {{
        int t = threadIdx.x;
        out[4 * t] = __shfl_sync(0xffffffffu, x[t], 5); out[4 * t + 1] = __shfl_up_sync(0xffffffffu, x[t], 2);
        out[4 * t + 2] = __shfl_down_sync(0xffffffffu, x[t], 2); out[4 * t + 3] = __shfl_xor_sync(0xffffffffu, x[t], 9);
    }}"""
    random = np.random.default_rng(2)
    info = None if dtype[0] == "f" else np.iinfo(dtype)
    x = (
        random.normal(size=64).astype(dtype)
        if info is None
        else random.integers(info.min, info.max, 64, dtype=dtype)
    )
    out = xp.zeros((64, 4), dtype)
    gs.RawKernel(code, "k")((1,), (64,), (xp.asarray(x), out))
    lane, base = np.arange(64) % 32, np.arange(64) // 32 * 32
    for k, (kind, operand) in enumerate((("", 5), ("_up", 2), ("_down", 2), ("_xor", 9))):
        np.testing.assert_array_equal(gs.asnumpy(out)[:, k], x[base + source(kind, lane, operand, 32)])


@pytest.mark.parametrize("header", ["cuda_fp16.h", "cuda_bf16.h"])
def test_shuffles_loads_and_stores_of_halves(xp, header):
    one = "__half" if header == "cuda_fp16.h" else "__nv_bfloat16"
    code = f"""#include <{header}>
    template <class T> __device__ void move(const T* x, T* out, int t) {{
        T v = __ldg(x + t);
        if (t % 2) v = __ldca(x + t); if (t % 3 == 1) v = __ldcg(x + t); if (t % 5 == 1) v = __ldcs(x + t);
        if (t % 7 == 1) v = __ldlu(x + t); if (t % 11 == 1) v = __ldcv(x + t);
        __stwb(out + 4 * t, __shfl_sync(0xffffffffu, v, 5)); __stcg(out + 4 * t + 1, __shfl_up_sync(0xffffffffu, v, 2));
        __stcs(out + 4 * t + 2, __shfl_down_sync(0xffffffffu, v, 2)); __stwt(out + 4 * t + 3,
            __shfl_xor_sync(0xffffffffu, v, 9));
    }}
    extern "C" __global__ void k(const unsigned short* x, unsigned short* out, const unsigned* xs, unsigned* outs) {{
        move(reinterpret_cast<const {one}*>(x), reinterpret_cast<{one}*>(out), threadIdx.x);
        move(reinterpret_cast<const {one}2*>(xs), reinterpret_cast<{one}2*>(outs), threadIdx.x);
    }}"""
    random = np.random.default_rng(3)
    x, xs = random.integers(0, 0x7000, 64).astype("u2"), random.integers(0, 0x70007000, 64).astype("u4")
    out, outs = xp.zeros((64, 4), "u2"), xp.zeros((64, 4), "u4")
    gs.RawKernel(code, "k", options=("--std=c++17",))((1,), (64,), (xp.asarray(x), out, xp.asarray(xs), outs))
    lane, base = np.arange(64) % 32, np.arange(64) // 32 * 32
    for k, (kind, operand) in enumerate((("", 5), ("_up", 2), ("_down", 2), ("_xor", 9))):
        np.testing.assert_array_equal(gs.asnumpy(out)[:, k], x[base + source(kind, lane, operand, 32)])
        np.testing.assert_array_equal(gs.asnumpy(outs)[:, k], xs[base + source(kind, lane, operand, 32)])


@pytest.mark.parametrize("threads", [256, 48])
def test_p87_shuffles_down_also_in_a_partial_warp(xp, threads):
    body = "unsigned mask = t / 32 * 32 + 32 <= (int)blockDim.x ? 0xffffffffu : (1u << blockDim.x % 32) - 1;"
    body += "out[0] = __shfl_down_sync(mask, t, 16);"
    got = run(xp, body, threads=threads)[:, 0]
    t = np.arange(threads)
    there = (t % 32 + 16 < 32) & (t + 16 < threads)
    expected = np.where(there, t + 16, np.where(t % 32 + 16 < 32, got, t))  # absent lanes give anything
    np.testing.assert_array_equal(got, expected)


MASKS = [FULL, 0x0000FFFF, 0xAAAAAAAA, 0x80000001, 0x00F0F00F]


@pytest.mark.parametrize("mask", MASKS)
def test_votes_matches_and_reductions_of_a_mask(xp, mask):
    body = f"""
    unsigned mask = {mask:#x}u;
    if (!(mask >> lane & 1)) return;
    unsigned v = (t * 2654435761u) >> 25; int s = (int)v - 60;
    out[0] = __ballot_sync(mask, t % 3 == 0); out[1] = __any_sync(mask, t == 5) != 0;
    out[2] = __all_sync(mask, t < 40) != 0; out[3] = __uni_sync(mask, t % 2) != 0;
    out[4] = __match_any_sync(mask, t / 4); int same = -1;
    out[5] = __match_all_sync(mask, t / 64, &same); out[6] = same != 0;
    out[7] = __match_all_sync(mask, t / 4, &same); out[8] = same != 0;
    out[9] = __reduce_add_sync(mask, v); out[10] = (unsigned)__reduce_min_sync(mask, s);
    out[11] = (unsigned)__reduce_max_sync(mask, s); out[12] = __reduce_and_sync(mask, v | 1);
    out[13] = __reduce_or_sync(mask, v); out[14] = __reduce_xor_sync(mask, v);
    out[15] = (unsigned)__reduce_add_sync(mask, s); out[16] = __reduce_max_sync(mask, v);
    __syncwarp(mask);"""
    got = run(xp, body, threads=64, columns=17, dtype="uint32")
    for warp in range(2):
        lanes = np.array([lane for lane in range(32) if mask >> lane & 1])
        t = lanes + 32 * warp
        v = ((t.astype(np.uint64) * 2654435761) % 2**32) >> np.uint64(25)
        s = v.astype(np.int64) - 60

        def bits(condition: np.ndarray, lanes=lanes) -> int:
            return int(sum(1 << int(lane) for lane, holds in zip(lanes, condition, strict=True) if holds))

        uniform = [len(set((t // 64).tolist())) == 1, len(set((t // 4).tolist())) == 1]
        expected = [
            bits(t % 3 == 0), bool((t == 5).any()), bool((t < 40).all()), len(set((t % 2).tolist())) == 1, None,
            mask if uniform[0] else 0, uniform[0], mask if uniform[1] else 0, uniform[1],
            int(v.sum()), int(s.min()) % 2**32, int(s.max()) % 2**32, int(np.bitwise_and.reduce(v | np.uint64(1))),
            int(np.bitwise_or.reduce(v)), int(np.bitwise_xor.reduce(v)), int(s.sum()) % 2**32, int(v.max()),
        ]  # fmt: skip
        rows = got[t]
        for column, value in enumerate(expected):
            if value is not None:
                np.testing.assert_array_equal(rows[:, column], np.full(t.size, value, np.uint32), str(column))
        np.testing.assert_array_equal(rows[:, 4], [bits(t // 4 == own // 4) for own in t])


@pytest.mark.parametrize(
    ("ctype", "values"),
    [("int", "t / 3 - 4"), ("unsigned", "t / 3 + 7u"), ("long long", "(t / 3) * 10000000000LL"), ("float",
        "t / 3 * 0.5f"),
     ("double", "t / 3 * 0.25"), ("unsigned long long", "(t / 3) * 10000000000ULL"), ("long", "(long)(t / 3)"),
     ("unsigned long", "(unsigned long)(t / 3)")],
)  # fmt: skip
def test_matches_of_every_type(xp, ctype, values):
    body = f"int same; {ctype} v = {values}; out[0] = __match_any_sync(0xffffffffu, v); "
    body += "out[1] = __match_all_sync(0xffffffffu, v, &same); out[2] = same;"
    got = run(xp, body, columns=3, dtype="uint32")
    groups = np.arange(32) // 3
    np.testing.assert_array_equal(
        got[:, 0], [sum(1 << k for k in np.flatnonzero(groups == g)) for g in groups]
    )
    assert not got[:, 1:].any()


def test_divergent_lanes_vote_among_themselves(xp):
    body = """
    if (lane % 4 == 0) { out[0] = __activemask(); out[1] = __ballot_sync(0x11111111u, lane < 16); }
    else if (lane % 4 == 1) { __syncwarp(0x22222222u); out[1] = __reduce_add_sync(0x22222222u, (unsigned)lane); }
    else for (int i = 0; i < lane % 4; ++i) out[1] += __shfl_sync(__activemask(), 1, lane);
    __syncwarp();
    out[2] = __ballot_sync(0xffffffffu, 1);"""
    got = run(xp, body, columns=3, dtype="uint32")
    lane = np.arange(32)
    assert np.all(got[lane % 4 == 0, 0] & (1 << lane[lane % 4 == 0]))
    np.testing.assert_array_equal(got[lane % 4 == 0, 1], 0x1111)
    np.testing.assert_array_equal(got[lane % 4 == 1, 1], lane[lane % 4 == 1].sum())
    np.testing.assert_array_equal(got[lane % 4 > 1, 1], (lane % 4)[lane % 4 > 1])
    np.testing.assert_array_equal(got[:, 2], FULL)


def test_lanes_that_come_from_a_barrier_are_active_together(xp):
    """The last thread to arrive goes on first: one time in 64 it did not wait for the others of its warp."""
    body = """
    unsigned seen = ~0u;
    for (int i = 0; i < 200; ++i) { __syncthreads(); seen &= __activemask(); }
    out[0] = seen;"""
    np.testing.assert_array_equal(run(xp, body, threads=96, dtype="uint32"), FULL)


def test_lanes_that_have_ended_are_not_waited_for(xp):
    body = """
    if (lane >= 20) return;
    out[0] = __ballot_sync(0xfffffu, lane % 2);
    out[1] = __shfl_xor_sync(0xfffffu, lane, 1);
    __syncwarp(0xfffffu);"""
    got = run(xp, body, columns=2, dtype="uint32")
    np.testing.assert_array_equal(got[:20, 0], 0xAAAAA)
    np.testing.assert_array_equal(got[:20, 1], np.arange(20) ^ 1)
    assert not got[20:].any()


SUMS: dict[str, str] = {
    "down": "for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d); if (lane) v = 0;",
    "butterfly": "for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);",
    "scan": "for (int d = 1; d < 32; d *= 2) { int o = __shfl_up_sync(0xffffffffu, v, d); if (lane >= d) v += o; }",
    "broadcast": "v = __shfl_sync(0xffffffffu, v, 7);",
}


@pytest.mark.parametrize("pattern", SUMS)
def test_patterns_of_whole_warps(xp, pattern):
    got = run(xp, f"int v = t * t % 101; {SUMS[pattern]} out[0] = v;", threads=128)[:, 0].reshape(-1, 32)
    v = (np.arange(128) ** 2 % 101).reshape(-1, 32)
    expected: dict[str, Callable[[], np.ndarray]] = {
        "down": lambda: np.where(np.arange(32) == 0, v.sum(1, keepdims=True), 0),
        "butterfly": lambda: v.sum(1, keepdims=True) + 0 * v,
        "scan": lambda: v.cumsum(1),
        "broadcast": lambda: v[:, 7:8] + 0 * v,
    }
    np.testing.assert_array_equal(got, expected[pattern]())
