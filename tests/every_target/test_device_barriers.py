"""Barriers: plain, counting and voting; in loops, branches, functions and templates; with threads that have ended."""

from __future__ import annotations

import numpy as np
import pytest

import gridstride as gs


def run(
    xp, code: str, name: str, threads: int, columns: int = 1, blocks: int = 1, **launch: object
) -> np.ndarray:
    out = xp.zeros((blocks * threads, columns), np.int32)
    gs.RawModule(code=code, options=("--std=c++17",)).get_function(name)(
        (blocks,), (threads,), (out,), **launch
    )
    return gs.asnumpy(out)


def test_votes_of_a_block(xp):
    code = """extern "C" __global__ void k(int* out) {
        int t = threadIdx.x;
        out[4 * t] = __syncthreads_count(t % 3 == 0); out[4 * t + 1] = __syncthreads_and(t < 1000) != 0;
        out[4 * t + 2] = __syncthreads_or(t == 70) != 0; __syncthreads();
            out[4 * t + 3] = __syncthreads_and(t != 5) != 0;
    }"""
    got = run(xp, code, "k", 100, 4)
    np.testing.assert_array_equal(got, np.tile([34, 1, 1, 0], (100, 1)))


@pytest.mark.parametrize("threads", [32, 48, 256, 1024])
def test_a_barrier_in_a_loop_whose_length_is_known_at_run_time(xp, threads):
    code = """extern "C" __global__ void k(int* out) {
        __shared__ int s[1024];
        int t = threadIdx.x, n = blockDim.x;
        s[t] = t;
        for (int step = 1; step < n; step *= 2) {
            __syncthreads();
            int other = t >= step ? s[t - step] : 0;
            __syncthreads();
            s[t] += other;
        }
        out[t] = s[t];
    }"""
    np.testing.assert_array_equal(run(xp, code, "k", threads)[:, 0], np.arange(threads).cumsum())


def test_barriers_in_functions_and_templates(xp):
    code = """
    template <int N, class T> __device__ T total(T v) {
        __shared__ T s[N];
        s[threadIdx.x] = v;
        for (int k = N / 2; k; k /= 2) { __syncthreads(); if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k]; }
        __syncthreads();
        T result = s[0];
        __syncthreads();
        return result;
    }
    struct Phase { int limit; __device__ int operator()(int v) const { __syncthreads();
        return __syncthreads_count(v < limit); } };
    __device__ __noinline__ void meet() { __syncthreads(); }
    extern "C" __global__ void k(int* out) {
        int t = threadIdx.x;
        out[4 * t] = total<64>(t); out[4 * t + 1] = (int)total<64, double>(t * 0.5);
        if (blockDim.x > 32) { meet(); out[4 * t + 2] = Phase{10}(t); }
        auto wait = [](int v) { __syncthreads(); return v; };
        out[4 * t + 3] = wait(t);
    }"""
    got = run(xp, code, "k", 64, 4)
    t = np.arange(64)
    np.testing.assert_array_equal(got, np.stack([2016 + 0 * t, 1008 + 0 * t, 10 + 0 * t, t], 1))


def test_threads_that_have_ended_count_as_arrived(xp):
    code = """extern "C" __global__ void k(int* out) {
        __shared__ int s;
        int t = threadIdx.x;
        if (t == 0) s = 0;
        __syncthreads();
        if (t >= 40) return;
        atomicAdd(&s, 1);
        __syncthreads();
        out[2 * t] = s; out[2 * t + 1] = __syncthreads_count(1);
    }"""
    got = run(xp, code, "k", 100, 2)
    np.testing.assert_array_equal(got[:40], 40)
    assert not got[40:].any()


def test_numbered_barriers_of_parts_of_a_block(xp):
    code = """extern "C" __global__ void k(int* out) {
        __shared__ int s[128];
        int t = threadIdx.x, half = t / 64;
        s[t] = t;
        for (int i = 0; i < 3; ++i) {
            __barrier_sync_count(1 + half, 64);
            int other = s[64 * half + (t + 1) % 64];
            __barrier_sync_count(1 + half, 64);
            s[t] = other;
            if (half) for (int j = 0; j < 2; ++j) __barrier_sync_count(5, 64);
        }
        __barrier_sync(3);
        out[2 * t] = s[t]; out[2 * t + 1] = s[127 - t];
        __barrier_sync(0);
    }"""
    got = run(xp, code, "k", 128, 2)
    t = np.arange(128)
    turned = t // 64 * 64 + (t + 3) % 64
    np.testing.assert_array_equal(got, np.stack([turned, turned[::-1]], 1))


def test_p90_a_guarded_barrier_in_a_loop_of_unequal_lengths(xp):
    code = """extern "C" __global__ void k(int* out) {
        __shared__ int s[64];
        int t = threadIdx.x, sum = 0;
        for (int i = 0; i < 4 + t % 5; ++i) {
            if (i < 4) { s[t] = t + i; __syncthreads(); sum += s[63 - t]; __syncthreads(); }
            else sum += 1000;
        }
        out[t] = sum;
    }"""
    t = np.arange(64)
    np.testing.assert_array_equal(run(xp, code, "k", 64)[:, 0], 4 * (63 - t) + 6 + 1000 * (t % 5))


def test_p92_a_branch_that_never_returns(xp):
    code = """__device__ void check(const int* s) { if (s[0] < 0) { __trap(); while (true) {} } }
    extern "C" __global__ void k(int* out) {
        __shared__ int s[36];
        int t = threadIdx.x;
        if (t < 36) s[t] = t;
        __syncthreads();
        if (t % 36 == 0) check(s);
        __syncthreads();
        out[t] = t % 36;
    }"""
    np.testing.assert_array_equal(run(xp, code, "k", 180)[:, 0], np.tile(np.arange(36), 5))


@pytest.mark.parametrize("options", [(), ("-G",)])
def test_p93_a_branch_for_one_thread(xp, options):
    code = """__device__ __forceinline__ unsigned rank() { return threadIdx.x; }
    extern "C" __global__ void k(int* c) { if (rank() == 0) atomicAdd(c + blockIdx.x, 1); }"""
    out = xp.zeros(5, np.int32)
    gs.RawKernel(code, "k", options=options)((5,), (32,), (out,))
    assert gs.asnumpy(out).tolist() == [1] * 5


def test_p95_structures_in_shared_memory(xp):
    code = """
    struct Inner { int a[3]; double b; };
    struct Outer { Inner inner; char tag; Inner more[2]; };
    extern "C" __global__ void k(int* out) {
        __shared__ Outer s[1];
        int t = threadIdx.x;
        if (t == 0) { s[0].tag = 'x'; s[0].inner.b = 2.5; }
        if (t < 3) { s[0].inner.a[t] = 10 * t; s->more[1].a[t] = 7 * t; }
        __syncthreads();
        out[t] = s[0].inner.a[t % 3] + s[0].more[1].a[(t + 1) % 3] + (int)(s[0].inner.b * 2) + s[0].tag;
    }"""
    t = np.arange(64)
    np.testing.assert_array_equal(
        run(xp, code, "k", 64)[:, 0], 10 * (t % 3) + 7 * ((t + 1) % 3) + 5 + ord("x")
    )


def test_p96_every_thread_brings_its_component(xp):
    code = """extern "C" __global__ void k(int* out) {
        __shared__ int s[8];
        s[threadIdx.x] = 17 + threadIdx.x;
        __syncthreads();
        int sum = 0;
        for (int i = 0; i < 8; ++i) sum += s[i];
        out[2 * threadIdx.x] = s[7 - threadIdx.x]; out[2 * threadIdx.x + 1] = sum;
    }"""
    got = run(xp, code, "k", 8, 2)
    np.testing.assert_array_equal(got, np.stack([24 - np.arange(8), np.full(8, 164)], 1))


def test_p100_a_butterfly_behind_an_unrolled_loop(xp):
    code = """extern "C" __global__ void k(int* out) {
        __shared__ int s[256];
        int t = threadIdx.x, v = 0;
        #pragma unroll
        for (int i = 0; i < 64; ++i) v += (t * (i + 3)) % 7;
        s[t] = v;
        for (int bit = 128; bit; bit /= 2) {
            __syncthreads();
            int sum = s[t] + s[t ^ bit];
            __syncthreads();
            s[t] = sum;
        }
        out[t] = s[t];
    }"""
    t = np.arange(256)
    total = sum((t * (i + 3)) % 7 for i in range(64)).sum()
    np.testing.assert_array_equal(run(xp, code, "k", 256)[:, 0], total)


def test_the_last_block_finishes_the_sum(xp):
    code = """
    __device__ unsigned arrived;
    extern "C" __global__ void k(const int* x, int* parts, int* out, int n) {
        __shared__ int s[64];
        __shared__ bool last;
        int t = threadIdx.x, sum = 0;
        for (int i = blockIdx.x * 64 + t; i < n; i += gridDim.x * 64) sum += x[i];
        s[t] = sum;
        for (int k = 32; k; k /= 2) { __syncthreads(); if (t < k) s[t] += s[t + k]; }
        if (t == 0) {
            parts[blockIdx.x] = s[0];
            __threadfence();
            last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
        }
        __syncthreads();
        if (last && t == 0) {
            __threadfence();
            int total = 0;
            for (unsigned b = 0; b < gridDim.x; ++b) total += ((volatile int*)parts)[b];
            *out = total;
        }
    }"""
    x = np.random.default_rng(1).integers(-100, 100, 10000).astype(np.int32)
    parts, out = xp.zeros(20, np.int32), xp.zeros(1, np.int32)
    kernel = gs.RawKernel(code, "k")
    for _ in range(3):
        kernel((20,), (64,), (xp.asarray(x), parts, out, np.int32(x.size)))
        assert gs.asnumpy(out)[0] == x.sum()


@pytest.mark.parametrize("fence", ["__threadfence()", "__threadfence_block()", "__threadfence_system()"])
def test_fences_order_a_message(xp, fence):
    code = f"""extern "C" __global__ void k(volatile int* data, volatile int* flag, int* out) {{
        if (blockIdx.x == 0 && threadIdx.x == 0) {{ *data = 42; {fence}; *flag = 1; }}
        else if (blockIdx.x == 0 && threadIdx.x == 32) {{ while (!*flag) {{}} {fence}; *out = *data; }}
    }}"""
    data, flag, out = (xp.zeros(1, np.int32) for _ in range(3))
    gs.RawKernel(code, "k")((2,), (64,), (data, flag, out))
    assert gs.asnumpy(out)[0] == 42


def test_a_block_spins_on_plain_volatile_memory_until_a_later_one_writes(xp):
    code = """extern "C" __global__ void k(volatile int* turn, int* out) {
        int next = gridDim.x - 1 - blockIdx.x;
        if (threadIdx.x == 0) {
            while (*turn != next) {}
            out[blockIdx.x] = next;
            __threadfence();
            *turn = next + 1;
        }
    }"""
    turn, out = xp.zeros(1, np.int32), xp.zeros(4, np.int32)
    gs.RawKernel(code, "k")((4,), (64,), (turn, out))
    assert gs.asnumpy(out).tolist() == [3, 2, 1, 0]
