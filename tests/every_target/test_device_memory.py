"""Loads and stores with cache hints, and what memory a pointer leads to."""

from __future__ import annotations

import numpy as np
import pytest

import gridstride as gs

TYPES = [
    "char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned", "long", "unsigned long",
        "long long",
    "unsigned long long", "float", "double", "char2", "char4", "uchar2", "uchar4", "short2", "short4", "ushort2",
        "ushort4",
    "int2", "int4", "uint2", "uint4", "longlong2", "ulonglong2", "float2", "float4", "double2",
]  # fmt: skip
LOADS = ("__ldg", "__ldca", "__ldcg", "__ldcs", "__ldlu", "__ldcv")
STORES = ("__stwb", "__stcg", "__stcs", "__stwt")


def test_hints_for_every_type(xp):
    kernels = "\n".join(
        f"""extern "C" __global__ void k{n}(const unsigned char* bytes, unsigned char* out) {{
        auto x = reinterpret_cast<const {ctype}*>(bytes); auto y = reinterpret_cast<{ctype}*>(out);
        int t = threadIdx.x;
        {" ".join(f"if (t % 6 == {k}) {STORES[k % 4]}(y + t, {load}(x + t));" for k, load in enumerate(LOADS))}
        }}"""
        for n, ctype in enumerate(TYPES)
    )
    module = gs.RawModule(code=kernels)
    data = np.random.default_rng(0).integers(0, 256, 64 * 16).astype(np.uint8)
    sizes = gs.RawKernel(
        'extern "C" __global__ void sizes(int* out) {'
        + " ".join(f"out[{n}] = sizeof({ctype});" for n, ctype in enumerate(TYPES))
        + "}",
        "sizes",
    )
    widths = xp.zeros(len(TYPES), np.int32)
    sizes((1,), (1,), (widths,))
    for n, width in enumerate(gs.asnumpy(widths).tolist()):
        out = xp.zeros(64 * 16, np.uint8)
        module.get_function(f"k{n}")((1,), (64,), (xp.asarray(data), out))
        np.testing.assert_array_equal(gs.asnumpy(out)[: 64 * width], data[: 64 * width], TYPES[n])
        assert not gs.asnumpy(out)[64 * width :].any()


def test_address_spaces(xp):
    code = """
    __device__ int of_device[64];
    extern __shared__ int dynamic[];
    extern "C" __global__ void k(int* out, int* argument) {
        __shared__ int fixed[64];
        volatile int local[2] = {1, 2};
        int t = threadIdx.x;
        fixed[t] = t; dynamic[t] = 2 * t; of_device[t] = 3 * t;
        __syncthreads();
        const void* places[] = {fixed + t, dynamic + t, of_device + t, argument + t, (const void*)&local[1]};
        for (int i = 0; i < 5; ++i) {
            const void* p = places[i];
            int kind = (__isShared(p) ? 1 : 0) + (__isGlobal(p) ? 2 : 0) + (__isLocal(p) ? 4 : 0);
            out[5 * t + i] = kind + (__isCtaShared(p) ? 8 : 0);
        }
        size_t shared = __cvta_generic_to_shared(dynamic + t), global = __cvta_generic_to_global(argument + t);
        size_t stack = __cvta_generic_to_local((const void*)&local[1]);
        int* back = (int*)__cvta_shared_to_generic((unsigned)shared);
        int sum = *back + *(int*)__cvta_global_to_generic(global) + *(int*)__cvta_local_to_generic(stack);
        argument[64 + t] = sum + (int)(__cvta_generic_to_shared(fixed + t) - __cvta_generic_to_shared(fixed));
    }"""
    out, argument = xp.zeros((64, 5), np.int32), xp.asarray(np.arange(128, dtype=np.int32))
    gs.RawKernel(code, "k")((1,), (64,), (out, argument), shared_mem=256)
    np.testing.assert_array_equal(gs.asnumpy(out), np.tile([9, 9, 2, 2, 4], (64, 1)))
    t = np.arange(64)
    np.testing.assert_array_equal(gs.asnumpy(argument)[64:], 2 * t + t + 2 + 4 * t)


def test_constant_addresses_come_back(xp):
    code = """
    __constant__ int values[64];
    extern "C" __global__ void k(int* out, const __grid_constant__ int given) {
        int t = threadIdx.x;
        out[t] = *(const int*)__cvta_constant_to_generic(__cvta_generic_to_constant(values + t));
        out[64 + t] = *(const int*)__cvta_grid_constant_to_generic(__cvta_generic_to_grid_constant(&given));
    }"""
    module = gs.RawModule(code=code)
    values = gs.ndarray((64,), np.int32, memptr=module.get_global("values"))
    values[:] = xp.arange(64, dtype=np.int32)
    out = xp.zeros(128, np.int32)
    module.get_function("k")((1,), (64,), (out, np.int32(9)))
    np.testing.assert_array_equal(gs.asnumpy(out), [*range(64), *[9] * 64])


@pytest.mark.parametrize(("ctype", "dtype"), [("float2", "f4"), ("float4", "f4")])
def test_atomic_sums_of_vectors(xp, ctype, dtype):
    count = int(ctype[-1])
    parts = ", ".join(f"{k + 1}.0f" for k in range(count))
    code = f"""extern "C" __global__ void k({ctype}* sums) {{
        {ctype} old = atomicAdd(sums, {ctype}{{{parts}}});
        atomicAdd_block(sums + 1 + blockIdx.x, {ctype}{{{parts}}}); atomicAdd_system(sums + 9, {ctype}{{{parts}}});
        if (old.x < 0) sums[9].x = 0;
    }}"""
    sums = xp.zeros((10, count), dtype)
    gs.RawKernel(code, "k")((8,), (96,), (sums,))
    each = np.arange(1, count + 1)
    np.testing.assert_array_equal(gs.asnumpy(sums), each * np.array([768] + [96] * 8 + [768])[:, None])


def test_atomics_of_sixteen_bytes(xp):
    code = """
    struct alignas(16) Pair { unsigned long long count, sum; };
    extern "C" __global__ void k(ulonglong2* sums, ulonglong2* last) {
        Pair* total = reinterpret_cast<Pair*>(sums);
        unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x;
        Pair seen = *total;
        for (;;) {
            Pair next{seen.count + 1, seen.sum + i};
            Pair old = atomicCAS(total, seen, next);
            if (old.count == seen.count && old.sum == seen.sum) break;
            seen = old;
        }
        atomicExch(last, ulonglong2{i, ~i});
        atomicCAS_block((Pair*)last + 1, Pair{0, 0}, Pair{7, 9}); atomicExch_system((Pair*)last + 2, Pair{3, 4});
    }"""
    total, last = xp.zeros(2, np.uint64), xp.zeros(6, np.uint64)
    gs.RawKernel(code, "k", options=("--std=c++17",))((8,), (64,), (total, last))
    assert gs.asnumpy(total).tolist() == [512, 511 * 512 // 2]
    found = gs.asnumpy(last)
    assert found[0] == ~found[1]
    assert found[2:].tolist() == [7, 9, 3, 4]


def test_atomics_of_the_compiler(xp):
    code = """
    #define HOW __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE
    extern "C" __global__ void k(unsigned* out, int* flag, int* extremes) {
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
        __nv_atomic_fetch_add(out, 1u, HOW); __nv_atomic_add(out + 1, i, HOW);
        __nv_atomic_fetch_sub(out + 2, 2u, HOW); __nv_atomic_sub(out + 2, 1u, HOW);
        __nv_atomic_fetch_or(out + 3, 1u << i % 32, HOW); __nv_atomic_or(out + 3, 1u, HOW);
        __nv_atomic_fetch_and(out + 4, ~(1u << i % 32), HOW); __nv_atomic_and(out + 4, ~1u, HOW);
        __nv_atomic_fetch_xor(out + 5, i, HOW); __nv_atomic_xor(out + 5, 0u, HOW);
        __nv_atomic_fetch_min(extremes, (int)i - 100, HOW); __nv_atomic_min(extremes, 5, HOW);
        __nv_atomic_fetch_max(extremes + 1, (int)i - 100, HOW); __nv_atomic_max(extremes + 1, -5, HOW);
        unsigned seen, next; __nv_atomic_load(out + 6, &seen, HOW);
        do next = seen + 3; while (!__nv_atomic_compare_exchange(out + 6, &seen, &next, false, __NV_ATOMIC_SEQ_CST,
            HOW));
        seen = __nv_atomic_load_n(out + 7, HOW);
        while (!__nv_atomic_compare_exchange_n(out + 7, &seen, seen + 1, false, __NV_ATOMIC_SEQ_CST, HOW)) {}
        unsigned mine = i, before; __nv_atomic_exchange(out + 8, &mine, &before, HOW); __nv_atomic_add(out + 9,
            before, HOW);
        if (i == 0) { int one = 1; __nv_atomic_store(flag, &one, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
            __nv_atomic_store_n(flag + 1, 2, HOW); }
        if (threadIdx.x == 0) { while (__nv_atomic_load_n(flag, __NV_ATOMIC_ACQUIRE,
            __NV_THREAD_SCOPE_DEVICE) == 0) {} }
        __nv_atomic_thread_fence(__NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_DEVICE);
        if (i == 5) __nv_atomic_exchange_n(flag + 2, 8, HOW);
    }"""
    out = xp.asarray(np.array([0, 0, 0, 0, 2**32 - 1, 0, 0, 0, 0, 0], np.uint32))
    flag, extremes = xp.zeros(3, np.int32), xp.zeros(2, np.int32)
    gs.RawKernel(code, "k", options=("--std=c++17",))((4,), (64,), (out, flag, extremes))
    i = np.arange(256)
    found = gs.asnumpy(out)
    assert found[:8].tolist() == [
        256, i.sum(), 2**32 - 768, 2**32 - 1, 0, int(np.bitwise_xor.reduce(i)), 768, 256,
    ]  # fmt: skip
    assert found[8] + found[9] == i.sum()
    assert gs.asnumpy(flag).tolist() == [1, 2, 8]
    assert gs.asnumpy(extremes).tolist() == [-100, 155]
