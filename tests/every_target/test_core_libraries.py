"""Headers of the CUDA C++ core libraries: `cuda::std` and `cuda::atomic` in kernels."""

from __future__ import annotations

import numpy as np
import pytest

import gridstride as gs
from gridstride.targets import toolkit

pytestmark = pytest.mark.skipif(
    not any((folder / "cuda/std/algorithm").is_file() for folder in toolkit.include_folders()),
    reason="no CCCL with these headers is installed",
)
T = np.arange(64)


def test_containers_algorithms_and_numbers(xp):
    code = """
    #include <cuda/cmath>
    #include <cuda/std/algorithm>
    #include <cuda/std/array>
    #include <cuda/std/bit>
    #include <cuda/std/cmath>
    #include <cuda/std/complex>
    #include <cuda/std/functional>
    #include <cuda/std/limits>
    #include <cuda/std/mdspan>
    #include <cuda/std/optional>
    #include <cuda/std/span>
    #include <cuda/std/tuple>
    #include <cuda/std/type_traits>
    #include <cuda/std/utility>
    __device__ int total(cuda::std::span<const int> values) { int sum = 0; for (int v : values) sum += v; return sum; }
    template <int... I> __device__ int weighted(cuda::std::integer_sequence<int, I...>, const int* a) {
        return ((a[I] * (I + 1)) + ... + 0);
    }
    extern "C" __global__ void k(int* out, const int* in, cuda::std::complex<float>* z) {
        __shared__ cuda::std::array<int, 64> shared;
        int t = threadIdx.x, *o = out + 8 * t;
        shared[t] = t;
        __syncthreads();
        cuda::std::array<int, 3> three{t, 3, 2};
        auto [first, second] = cuda::std::pair<int, int>{t, 1};
        cuda::std::optional<int> odd;
        if (t % 2) odd = t;
        cuda::std::mdspan<const int, cuda::std::extents<int, 8, 8>> square(in);
        static_assert(cuda::std::is_same_v<cuda::std::remove_cv_t<const int>, int>, "");
        o[0] = three[0] + three.size() + *cuda::std::max_element(three.begin(), three.end());
        o[1] = cuda::std::get<0>(cuda::std::make_tuple(t, 2.5f)) + first + second;
        o[2] = cuda::std::numeric_limits<short>::max() + cuda::std::min(t, 3) + (int)cuda::std::floor(2.7);
        o[3] = total({in, 4}) + cuda::std::popcount((unsigned)t);
        o[4] = square(t / 8, t % 8) + odd.value_or(-1);
        o[5] = cuda::ceil_div(t, 4) + cuda::std::plus<>{}(1, 2);
        o[6] = weighted(cuda::std::make_integer_sequence<int, 3>{}, in);
        o[7] = shared[63 - t];
        z[t] = cuda::std::complex<float>(t, 1) * cuda::std::complex<float>(0, 2);
    }"""
    out, z = xp.zeros((64, 8), np.int32), xp.zeros(64, np.complex64)
    gs.RawKernel(code, "k", options=("--std=c++17",))((1,), (64,), (out, xp.asarray(2 * T, np.int32), z))
    ones = np.array([bin(t).count("1") for t in T])
    expected = [
        T + 3 + np.maximum(T, 3), 2 * T + 1, 32767 + np.minimum(T, 3) + 2, 12 + ones,
        2 * T + np.where(T % 2, T, -1), -(-T // 4) + 3, 16 + 0 * T, 63 - T,
    ]  # fmt: skip
    np.testing.assert_array_equal(gs.asnumpy(out), np.stack(expected, 1))
    np.testing.assert_array_equal(gs.asnumpy(z), (T + 1j) * 2j)


def test_atomics_of_every_scope(xp):
    code = """
    #include <cuda/atomic>
    __device__ cuda::atomic<int, cuda::thread_scope_device> total{0};
    extern "C" __global__ void k(int* out, float* sum) {
        __shared__ cuda::atomic<int, cuda::thread_scope_block> shared;
        int t = threadIdx.x;
        if (t == 0) shared.store(0, cuda::memory_order_relaxed);
        __syncthreads();
        cuda::atomic_ref<int, cuda::thread_scope_device> counter(out[0]);
        counter.fetch_add(1, cuda::memory_order_relaxed);
        cuda::atomic_ref<int, cuda::thread_scope_system>(out[1]).fetch_max(t);
        cuda::atomic_ref<float, cuda::thread_scope_system>(*sum).fetch_add(0.5f);
        shared.fetch_add(t);
        total++;
        __syncthreads();
        if (t == 5) out[2] = shared.load();
        int expected = 0;
        if (t == 40) while (!total.compare_exchange_weak(expected, 1000)) {}
        __syncthreads();
        if (t == 9) out[3] = total.exchange(0);
        cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_block);
    }"""
    out, total = xp.zeros(4, np.int32), xp.zeros(1, np.float32)
    gs.RawKernel(code, "k", options=("--std=c++17",))((1,), (64,), (out, total))
    assert gs.asnumpy(out).tolist() == [64, 63, 2016, 1000]
    assert gs.asnumpy(total)[0] == 32


def test_a_flag_of_another_block_is_waited_for(xp):
    code = """
    #include <cuda/atomic>
    extern "C" __global__ void k(int* flag, int* data, int* out) {
        cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
        if (blockIdx.x == 3) { *data = 42; ready.store(1, cuda::memory_order_release); }
        else { while (ready.load(cuda::memory_order_acquire) == 0) {} out[blockIdx.x] = *data; }
    }"""
    flag, data, out = xp.zeros(1, np.int32), xp.zeros(1, np.int32), xp.zeros(4, np.int32)
    gs.RawKernel(code, "k", options=("--std=c++17",))((4,), (1,), (flag, data, out))
    assert gs.asnumpy(out).tolist() == [42, 42, 42, 0]


def test_what_a_device_compiler_defines_is_in_sight_around_them(xp):
    code = """
    #ifdef __CUDA_ARCH__
    #include <cuda/std/cstdint>
    #endif
    #if defined(__CUDA_ARCH__) && defined(__CUDACC__)
    extern "C" __global__ void k(cuda::std::int64_t* out) { out[0] = __CUDA_ARCH__ >= 500 ? 7 : 0; }
    #endif"""
    out = xp.zeros(1, np.int64)
    gs.RawKernel(code, "k", options=("--std=c++17",))((1,), (1,), (out,))
    assert gs.asnumpy(out)[0] == 7


def test_a_misuse_is_reported_on_the_users_line(target):
    code = """#include <cuda/std/array>
    extern "C" __global__ void k(int* out) {
        cuda::std::array<int, 2> a{};
        out[0] = a.nope();
    }"""
    with pytest.raises(gs.CompileError, match=r"k\.cu[:(]4"):
        gs.RawKernel(code, "k", options=("--std=c++17",)).compile()
