"""Atomic functions under many blocks: exact totals, old values, scopes."""

from __future__ import annotations

import numpy as np
import pytest

import gridstride as gs

BLOCKS, THREADS = 16, 128
COUNT = BLOCKS * THREADS


def run(code: str, name: str, *arrays: object) -> None:
    gs.RawKernel(code, name)((BLOCKS,), (THREADS,), arrays)


@pytest.mark.parametrize(
    ("ctype", "dtype"),
    [("int", "i4"), ("unsigned", "u4"), ("unsigned long long", "u8"), ("float", "f4"), ("double", "f8")],
)
def test_sums_are_exact(xp, ctype, dtype):
    code = f"""extern "C" __global__ void add({ctype}* sums, {ctype}* olds) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        olds[i] = atomicAdd(sums, 1);
        atomicAdd_block(sums + 1 + blockIdx.x, 2); atomicAdd_system(sums + 1 + blockIdx.x, 1);
    }}"""
    sums, olds = xp.zeros(1 + BLOCKS, dtype), xp.zeros(COUNT, dtype)
    run(code, "add", sums, olds)
    assert gs.asnumpy(sums).tolist() == [COUNT] + [3 * THREADS] * BLOCKS
    np.testing.assert_array_equal(np.sort(gs.asnumpy(olds)), np.arange(COUNT), "each old value occurs once")


@pytest.mark.parametrize(
    ("ctype", "dtype"), [("int", "i4"), ("unsigned", "u4"), ("long long", "i8"), ("unsigned long long", "u8")]
)
def test_extrema(xp, ctype, dtype):
    code = f"""extern "C" __global__ void k(const {ctype}* x, {ctype}* out) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        atomicMin(out, x[i]); atomicMax(out + 1, x[i]);
    }}"""
    info = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(info.min, info.max, COUNT, dtype=dtype, endpoint=True)
    out = xp.asarray([x[0], x[0]], dtype=dtype)
    run(code, "k", xp.asarray(x), out)
    assert gs.asnumpy(out).tolist() == [x.min(), x.max()]


def test_bits(xp):
    code = """extern "C" __global__ void k(unsigned* out, unsigned long long* wide, int* narrow) {
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
        atomicAnd(out, ~(1u << i % 32)); atomicOr(out + 1, 1u << i % 32); atomicXor(out + 2, i);
        atomicOr(wide, 1ull << i % 64); atomicAnd(narrow, (int)i | 4096); atomicXor_system(narrow + 1, 1);
    }"""
    out, wide, narrow = (
        xp.asarray([2**32 - 1, 0, 0], dtype="u4"),
        xp.zeros(1, "u8"),
        xp.asarray([-1, 0], dtype="i4"),
    )
    run(code, "k", out, wide, narrow)
    assert gs.asnumpy(out).tolist() == [0, 2**32 - 1, np.bitwise_xor.reduce(np.arange(COUNT))]
    assert gs.asnumpy(wide).tolist() == [2**64 - 1]
    assert gs.asnumpy(narrow).tolist() == [4096, 0]


def test_counting_wraps_around(xp):
    code = """extern "C" __global__ void k(unsigned* out, unsigned* olds) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        olds[i] = atomicInc(out, 9); atomicDec(out + 1, 6); atomicSub((int*)out + 2, 3); atomicSub(out + 3, 1u);
    }"""
    out, olds = xp.asarray([0, 100, 0, 7], dtype="u4"), xp.zeros(COUNT, "u4")
    run(code, "k", out, olds)
    found = gs.asnumpy(out)
    # 100 exceeds the limit, so the first decrement gives 6; then it counts down through 7 values
    assert found[0] == COUNT % 10
    assert found[1] == 6 - (COUNT - 1) % 7
    assert found.view(np.int32)[2] == -3 * COUNT
    assert found[3] == (7 - COUNT) % 2**32
    np.testing.assert_array_equal(np.bincount(gs.asnumpy(olds)), np.bincount(np.arange(COUNT) % 10))


def test_exchange_and_compare(xp):
    code = """extern "C" __global__ void k(
        int* out, float* real, unsigned long long* wide, unsigned short* small, int* lock) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        int old = atomicExch(out, i + 1);
        atomicAdd(out + 1, old);
        atomicExch(real, (float)i); atomicExch(wide, 7ull);
        for (unsigned short seen = *small, next; ; seen = next)
            if ((next = atomicCAS(small, seen, (unsigned short)(seen + 1))) == seen) break;
        if (threadIdx.x == 0) {
            while (atomicCAS(lock, 0, 1) != 0) {}
            int guarded = lock[1];
            __threadfence();
            lock[1] = guarded + 1;
            __threadfence();
            atomicExch(lock, 0);
        }
    }"""
    out, real, wide = xp.zeros(2, "i4"), xp.asarray([-1], dtype="f4"), xp.zeros(1, "u8")
    small, lock = xp.zeros(2, "u2"), xp.zeros(2, "i4")
    run(code, "k", out, real, wide, small, lock)
    last, others = gs.asnumpy(out)
    assert last + others == COUNT * (COUNT + 1) // 2, "every value is handed on once"
    assert 0 <= gs.asnumpy(real)[0] < COUNT
    assert gs.asnumpy(wide)[0] == 7
    assert gs.asnumpy(small)[0] == COUNT
    assert gs.asnumpy(lock).tolist() == [0, BLOCKS]


def test_waiting_by_any_atomic_lets_others_run(xp):
    code = """extern "C" __global__ void k(int* flags, int* out) {
        if (threadIdx.x == 0) {
            while (atomicAdd(flags, 0) == 0) {}
            while (atomicOr(flags + 1, 0) == 0) {}
            while (atomicMax(flags + 2, 0) == 0) {}
            while (__ldcv(flags + 3) == 0) {}
            out[blockIdx.x] = 1;
        } else if (threadIdx.x == 32) {
            for (int i = 0; i < 4; ++i) atomicExch(flags + i, 1);
        }
    }"""
    flags, out = xp.zeros(4, "i4"), xp.zeros(BLOCKS, "i4")
    run(code, "k", flags, out)
    assert gs.asnumpy(out).tolist() == [1] * BLOCKS


def test_types_without_the_atomic_do_not_compile(target):
    for statement in (
        "atomicAdd((long long*)p, 1LL)",
        "atomicMin((float*)p, 1.0f)",
        "atomicInc((int*)p, 1)",
        "atomicCAS((float*)p, 1.0f, 2.0f)",
    ):
        kernel = gs.RawKernel(f'extern "C" __global__ void k(void* p) {{ {statement}; }}', "k")
        with pytest.raises(gs.CompileError, match="atomic"):
            kernel.compile()


#: Function: the types that CUDA has it for, what it does to `v` with the operand `x`.
SCOPED = {
    "atomicAdd": ("int unsigned ull float double", lambda v, x: v + x),
    "atomicSub": ("int unsigned", lambda v, x: v - x),
    "atomicExch": ("int unsigned ull float", lambda v, x: x),
    "atomicMin": ("int unsigned ll ull", min),
    "atomicMax": ("int unsigned ll ull", max),
    "atomicInc": ("unsigned", lambda v, x: 0 if v >= x else v + 1),
    "atomicDec": ("unsigned", lambda v, x: x if v == 0 or v > x else v - 1),
    "atomicAnd": ("int unsigned ull", lambda v, x: v & x),
    "atomicOr": ("int unsigned ull", lambda v, x: v | x),
    "atomicXor": ("int unsigned ull", lambda v, x: v ^ x),
}
SPELLED = {"ull": ("unsigned long long", "u8"), "ll": ("long long", "i8"), "int": ("int", "i4"),
           "unsigned": ("unsigned", "u4"), "float": ("float", "f4"), "double": ("double", "f8")}  # fmt: skip


@pytest.mark.parametrize("word", SPELLED)
def test_every_function_at_every_scope_in_both_memories(xp, word):
    """Each thread has a place of its own, in global and in shared memory; old and new value are exact."""
    ctype, dtype = SPELLED[word]
    functions = [name for name, (types, _) in SCOPED.items() if word in types.split()]
    calls = [f"{name}{scope}" for name in functions for scope in ("", "_block", "_system")]
    if word in ("int", "unsigned", "ull"):
        calls += ["atomicCAS", "atomicCAS_block", "atomicCAS_system"]
    lines = "\n".join(
        f"shared[t] = v[t]; here[t] = v[t]; out[0] = {call}(here + t, {'v[t] | 1, ' if 'CAS' in call else ''}x[t]); "
        f"out[1] = {call}(shared + t, {'v[t], ' if 'CAS' in call else ''}x[t]); "
        "out[2] = here[t]; out[3] = shared[t]; out += 4;"
        for call in calls
    )
    code = f"""extern "C" __global__ void k(const {ctype}* v, const {ctype}* x, {ctype}* here, {ctype}* out) {{
        __shared__ {ctype} shared[64];
        int t = threadIdx.x;
        out += t * {4 * len(calls)};
        {lines}
    }}"""
    random = np.random.default_rng(4)
    if dtype[0] == "f":
        v, x = (random.normal(size=64).astype(dtype) for _ in range(2))
    else:
        info = np.iinfo(dtype)
        edges = np.array([info.min, info.max, 0, 1, 5], dtype)
        drawn = random.integers(info.min, info.max, (2, 39), dtype=dtype, endpoint=True)
        v = np.concatenate([np.repeat(edges, 5), drawn[0]])
        x = np.concatenate([np.tile(edges, 5), drawn[1]])
    out = xp.zeros((64, len(calls), 4), dtype)
    gs.RawKernel(code, "k")((1,), (64,), (xp.asarray(v), xp.asarray(x), xp.zeros(64, dtype), out))
    got = gs.asnumpy(out)
    for place, call in enumerate(calls):
        name = call.partition("_")[0]
        for row in range(64):
            old, operand = v[row], x[row]
            if name == "atomicCAS":
                expected = [old, old, operand if old & 1 else old, operand]
            else:
                with np.errstate(over="ignore"):
                    plain = old if name not in ("atomicInc", "atomicDec") else int(old)
                    new = np.array(SCOPED[name][1](plain, operand)).astype(dtype)
                expected = [old, old, new, new]
            np.testing.assert_array_equal(
                got[row, place], np.array(expected, dtype), f"{call} {old} {operand}"
            )
