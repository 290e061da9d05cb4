"""The compiled fast path on targets that run kernels."""

import threading

import numpy as np
import pytest

import gridstride as gs
from gridstride import _native
from gridstride.errors import GridstrideError

pytestmark = pytest.mark.skipif(not _native.is_compiled(), reason="the extension is not built")

ADD = r"""
extern "C" __global__ void add(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""
REVERSE = r"""
extern "C" __global__ void reverse(int* x) {
    extern __shared__ int held[];
    held[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}
"""
MODES = pytest.mark.parametrize("mode", ["1", "0", "verify"])


@pytest.fixture
def hits():
    before, _ = _native.statistics()
    return lambda: _native.statistics()[0] - before


@MODES
def test_repeated_calls(target, xp, monkeypatch, hits, mode):
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", mode)
    k = gs.RawKernel(ADD, "add")
    x, y = xp.arange(1000, dtype=np.float32), xp.zeros(1000, np.float32)
    for _ in range(5):
        k((4,), (256,), (x, y, 0.5, x.size))
    np.testing.assert_array_equal(gs.asnumpy(y), 2.5 * np.arange(1000, dtype=np.float32))
    # The first call is a hit too where the arrays' class was met and they are on a device.
    assert hits() in ((0,) if mode == "0" else (4, 5))


def test_streams_of_other_threads_do_not_matter(target, xp, monkeypatch, hits):
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", "1")
    k = gs.RawKernel(ADD, "add")
    x, y = xp.arange(1000, dtype=np.float32), xp.zeros(1000, np.float32)
    ended = threading.Thread(target=lambda: gs.cuda.Stream().use())  # and leaves it current
    ended.start()
    ended.join()
    used, may_end = threading.Event(), threading.Event()

    def use_a_stream():
        with gs.cuda.Stream():
            used.set()
            may_end.wait(60)

    beside = threading.Thread(target=use_a_stream)
    beside.start()
    used.wait(60)
    for _ in range(3):
        k((4,), (256,), (x, y, 0.5, x.size))
    may_end.set()
    beside.join()
    np.testing.assert_array_equal(gs.asnumpy(y), 1.5 * np.arange(1000, dtype=np.float32))
    assert hits() in (2, 3)  # see above


@MODES
def test_dynamic_shared_memory(target, xp, monkeypatch, mode):
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", mode)
    k = gs.RawKernel(REVERSE, "reverse")
    for shared_mem in (4096, 60_000, 4096, 90_000, 90_000):
        x = xp.arange(64, dtype=np.int32)
        k(1, 64, (x,), shared_mem=shared_mem)
        np.testing.assert_array_equal(gs.asnumpy(x), np.arange(64)[::-1])


@MODES
def test_prepared_launches(target, xp, monkeypatch, hits, mode):
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", mode)
    k = gs.RawKernel(ADD, "add")
    x, y = xp.arange(100, dtype=np.float32), xp.zeros(100, np.float32)
    launch = k.prepare((1,), (128,), (x, y, 2.0, 100))
    np.testing.assert_array_equal(gs.asnumpy(y), 0)
    for _ in range(3):
        launch()
    np.testing.assert_array_equal(gs.asnumpy(y), 6 * np.arange(100))
    assert hits() == (0 if mode == "0" else 3)


@MODES
def test_streams(target, xp, monkeypatch, mode):
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", mode)
    k = gs.RawKernel(ADD, "add")
    x, y = xp.arange(100, dtype=np.float32), xp.zeros(100, np.float32)
    stream = gs.cuda.Stream()
    for _ in range(3):
        k((1,), (128,), (x, y, 1.0, 100), stream=stream)
    with stream:
        for _ in range(3):
            k((1,), (128,), (x, y, 1.0, 100))
    stream.synchronize()
    np.testing.assert_array_equal(gs.asnumpy(y), 6 * np.arange(100))


def test_threads_share_a_kernel(target, xp, monkeypatch):
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", "1")
    k = gs.RawKernel(ADD, "add")
    x, results = xp.ones(100, np.float32), [xp.zeros(100, np.float32) for _ in range(4)]

    def launch(y):
        for _ in range(50):
            k((1,), (128,), (x, y, 1.0, 100))

    threads = [threading.Thread(target=launch, args=(y,)) for y in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gs.cuda.get_current_stream().synchronize()
    for y in results:
        np.testing.assert_array_equal(gs.asnumpy(y), 50)


def test_a_failure_is_the_same_on_a_hit(target, xp, monkeypatch):
    if "faults are errors" not in target.features:
        pytest.skip("a fault ends the device's context")
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", "1")
    text = r'extern "C" __global__ void trap(int* x, int fail) { if (fail) __trap(); x[threadIdx.x] = 1; }'
    x = xp.zeros(4, np.int32)
    cold, warm = gs.RawKernel(text, "trap"), gs.RawKernel(text, "trap")
    warm(1, 4, (x, 0))
    with pytest.raises(GridstrideError) as expected:
        cold(1, 4, (x, 1))
    hits, misses = _native.statistics()
    with pytest.raises(GridstrideError) as got:
        warm(1, 4, (x, 1))
    assert _native.statistics() == (hits, misses)
    assert type(got.value) is type(expected.value)
    assert str(got.value) == str(expected.value)
    warm(1, 4, (x, 0))
    assert gs.asnumpy(x).tolist() == [1, 1, 1, 1]
