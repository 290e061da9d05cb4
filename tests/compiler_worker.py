"""Kernels that take each way of a text through a compiler; run in a process of its own for each compiler."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import gridstride as gs
from gridstride.targets.cpu import core_library

LANES = np.arange(32)
KERNEL = 'extern "C" __global__ void k(int* out) {'
TURN = (
    "s[threadIdx.x] = threadIdx.x; __syncthreads(); out[threadIdx.x] = s[31 - threadIdx.x] + sizeof(s) / 4;"
)
PTX = """
int v;
asm("mov.u32 %0, %%laneid;" : "=r"(v));
asm("bfe.s32 %0, %0, 0, 5;" : "+r"(v));
out[threadIdx.x] = v;"""
BRANCH = """
#ifdef BIG
__shared__ int s[64];
#else
__shared__ int s[32];
#endif
"""
HEADER = """
__device__ int turned(int v) {
    __shared__ int s[32];
    s[v] = v; __syncthreads(); return s[31 - v];
}"""
MACROS = """
#define KERNEL(name) extern "C" __global__ void name
#define SHARED(T, name, n) __shared__ T name[n]
"""
ONE_THREAD = "__device__ __forceinline__ unsigned rank() { return threadIdx.x; }"
CORE = """
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/optional>
#include <cuda/atomic>
"""


def check(code: str, expected: np.ndarray, *options: str) -> None:
    out = np.zeros(32, np.int32)
    gs.RawKernel(code, "k", options=("--std=c++17", *options))((1,), (32,), (out,))
    np.testing.assert_array_equal(out, expected)


def check_texts() -> None:
    check(f"{KERNEL} {PTX} }}", np.where(LANES < 16, LANES, LANES - 32))
    check(f"{KERNEL} {BRANCH} {TURN} }}", 31 - LANES + 64, "-DBIG")
    check(f"{MACROS} KERNEL(k)(int* out) {{ SHARED(int, s, 32); {TURN} }}", 31 - LANES + 32)
    Path("turned.cuh").write_text(HEADER)
    turned = f'#include "turned.cuh"\n{KERNEL} out[threadIdx.x] = turned(threadIdx.x); }}'
    check(turned, 31 - LANES, "-I.")


def check_one_thread() -> None:
    for options in ((), ("-G",)):
        check(f"{ONE_THREAD} {KERNEL} if (rank() == 0) atomicAdd(out, 1); }}", LANES == 0, *options)


def check_sums() -> None:
    total = gs.ReductionKernel("T x", "int64 y", "x", "a + b", "y = a", "0", "total")
    for dtype in ("i1", "u1", "i2", "u2", "i4"):
        x = (np.arange(100_000) % 200 - (100 if dtype[0] == "i" else 0)).astype(dtype)
        assert int(total(x)) == int(x.sum(dtype=np.int64)), dtype


def check_core_libraries() -> None:
    if core_library.folder() is not None:
        add = "cuda::atomic_ref<int, cuda::thread_scope_device>(*out).fetch_add(a[1] + b.value_or(0));"
        body = f"cuda::std::array<int, 2> a{{1, 2}}; cuda::std::optional<int> b; {add}"
        check(f"{CORE} {KERNEL} {body} }}", np.where(LANES == 0, 64, 0))


if __name__ == "__main__":
    check_texts()
    check_one_thread()
    check_sums()
    check_core_libraries()
    print("right")
