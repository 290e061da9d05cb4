"""Examples that other projects write in Python, here in CUDA C++."""

from __future__ import annotations

import numpy as np

from kernel_battery.bench import Bench, numpy
from kernel_battery.row import Results, Row

_TEXT = r"""
#include <cooperative_groups.h>
#include <curand_kernel.h>

extern "C" __global__ void solve_heat_equation(double* buf_0, double* buf_1, int size, int timesteps, double k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    for (int step = 0; step < timesteps; step++) {
        const double* data = step % 2 == 0 ? buf_0 : buf_1;
        double* next = step % 2 == 0 ? buf_1 : buf_0;
        double here = data[i];
        if (i == 0) next[i] = here + k * (data[i + 1] - 2 * here);
        else if (i == size - 1) next[i] = here + k * (data[i - 1] - 2 * here);
        else next[i] = here + k * (data[i - 1] - 2 * here + data[i + 1]);
        grid.sync();
    }
}

extern "C" __global__ void array_sum(int* data, int size) {
    __shared__ int shared[1024];
    int tid = threadIdx.x;
    if (tid >= size) return;
    shared[tid] = data[blockIdx.x * blockDim.x + tid];
    __syncthreads();
    for (int s = 1; s < blockDim.x; s *= 2) {
        if (tid % (2 * s) == 0) shared[tid] += shared[tid + s];
        __syncthreads();
    }
    if (tid == 0) data[0] = shared[0];
}

extern "C" __global__ void sessionize(const int* user, const long long* time, double* session, int size,
                                      long long timeout) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool first = i < size && (i == 0 || user[i] != user[i - 1] || time[i] - time[i - 1] > timeout);
    if (first) session[i] = i;
    cooperative_groups::this_grid().sync();
    if (!first) return;
    for (int ahead = i + 1; ahead < size && session[ahead] == 0; ahead++) session[ahead] = i;
}

extern "C" __global__ void integrate(float* out, int size, float low, float high, unsigned long long seed) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    curandStatePhilox4_32_10_t state;
    curand_init(seed, i, 0, &state);
    out[i] = 1 / (low + curand_uniform(&state) * (high - low));
}
"""

_USERS = np.repeat([1, 2, 3, 4], [6, 3, 10, 9]).astype(np.int32)
_TIMES = np.array(
    [1, 2, 3, 5000, 5001, 5002, 1, 2, 3, 1, 2, 5000, 5001, 10000, 10001, 10002, 10003, 15000, 150001, 1, 5000,
     50001, 15000, 20000, 25000, 25001, 25002, 25003], np.int64,
)  # fmt: skip
_SESSIONS = [
    0,
    0,
    0,
    3,
    3,
    3,
    6,
    6,
    6,
    9,
    9,
    11,
    11,
    13,
    13,
    13,
    13,
    17,
    18,
    19,
    20,
    21,
    21,
    23,
    24,
    24,
    24,
    24,
]


def _examples(bench: Bench) -> Results:
    module = bench.module(text=_TEXT, enable_cooperative_groups=True)
    heat, total, sessions, integrate = (
        bench.noted(module.get_function(name))
        for name in ("solve_heat_equation", "array_sum", "sessionize", "integrate")
    )
    results = {"heat": _heat(bench, heat)}
    values = bench.array(np.arange(1024), np.int32)
    total((1,), (1024,), (values, 1024))
    assert numpy(values)[0] == 523776
    results["sum"] = numpy(values)[:1]
    found = bench.zeros(28, np.float64)
    sessions((1,), (32,), (bench.array(_USERS), bench.array(_TIMES), found, 28, 3600))
    np.testing.assert_array_equal(numpy(found), _SESSIONS)
    results["sessions"] = numpy(found)
    drawn = bench.zeros(100_000)
    integrate((391,), (256,), (drawn, 100_000, np.float32(1), np.float32(2), 42))
    assert abs(numpy(drawn).astype(float).mean() - np.log(2)) < 2e-3
    results["integral"] = numpy(drawn)
    return results


def _heat(bench: Bench, kernel: object) -> np.ndarray:
    size, steps = 1001, 2000
    start = np.zeros(size)
    start[500] = 10000
    first, second = bench.array(start), bench.zeros(size, np.float64)
    kernel((4,), (256,), (first, second, size, steps, 0.25))
    now = start
    for _ in range(steps):
        now = now + 0.25 * (np.r_[now[1:], 0] - 2 * now + np.r_[0, now[:-1]])
    np.testing.assert_allclose(numpy(first), now, rtol=1e-9, atol=1e-9)
    return numpy(first)


ROWS = (
    Row(
        "K43", "numba-cuda, examples of its documentation, ported", (), 4,
        "heat with grid synchronization, a sum, sessions by neighbors, an integral by Philox; all against NumPy",
        _examples, tolerance=1e-6,
    ),
)  # fmt: skip
