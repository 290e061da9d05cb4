"""Streams, graphs and buffers beside CuPy and PyTorch on a device."""

import gc
import subprocess
import sys

import numpy as np
import pytest

import gridstride as gs
from gridstride import _native, cuda
from gridstride._runtime import keeping
from gridstride.targets import registry

pytestmark = pytest.mark.gpu

#: Waits long enough for the host to go on, then copies.
SLOW = r"""extern "C" __global__ void slow(const float* x, float* y) {
    for (int k = 0; k < 1000; ++k) __nanosleep(20000);
    y[threadIdx.x] = x[threadIdx.x];
}"""


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


@pytest.mark.parametrize("launches", [1, 3])
def test_p52_memory_is_not_given_out_again_under_a_kernel(cupy, launches):
    slow, a, b = gs.RawKernel(SLOW, "slow"), cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    y = cupy.zeros(256, "f4")
    for _ in range(launches):  # later ones are replays of the fast path
        with a:
            x = cupy.full(256, 7, "f4")
        b.wait_event(a.record())
        with b:
            slow((1,), (256,), (x, y))
        del x
        with a:
            others = [cupy.full(256, 99, "f4") for _ in range(20)]
        b.synchronize()
        assert (y.get() == 7).all()
        del others
    gc.collect()
    keeping.sweep()
    assert keeping.count() == 0


def test_our_stream_stays_current_for_cupy_where_calls_make_outputs(cupy):
    add = gs.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add_in_stream")
    total = gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total_in_stream")
    x, stream = cupy.arange(1000.0), cuda.Stream(non_blocking=True)
    cuda.synchronize()
    with stream:
        for _ in range(3):
            result = total(add(x, x))
            assert cupy.cuda.get_current_stream().ptr == stream.ptr
            other = add(x, 1.0, stream=cuda.Stream.null)
            assert cupy.cuda.get_current_stream().ptr == stream.ptr
        assert float(result) == 999000
    assert float(other[-1]) == 1000
    assert cupy.cuda.get_current_stream().ptr == 0


_FIRST_CALL = """
import cupy
import gridstride as gs
x = cupy.zeros(4, "f4")
with gs.cuda.Stream(non_blocking=True) as stream:
    for _ in range(3):
        gs.RawKernel('extern "C" __global__ void fill(float* x) { x[threadIdx.x] = 3; }', "fill")((1,), (4,), (x,))
        assert cupy.cuda.get_current_stream().ptr == stream.ptr
"""


def test_our_stream_stays_current_for_cupy_from_the_first_call_of_a_process(cupy):
    done = subprocess.run([sys.executable, "-c", _FIRST_CALL], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_our_stream_is_current_for_cupy_and_theirs_goes_into_our_calls(cupy):
    ours, theirs = cuda.Stream(), cupy.cuda.Stream()
    fill = gs.RawKernel('extern "C" __global__ void fill(float* x) { x[threadIdx.x] = 3; }', "fill")
    with ours:
        assert cupy.cuda.get_current_stream().ptr == ours.ptr
        x = cupy.zeros(32, "f4")
        fill(1, 32, (x,))
        total = x.sum()
    ours.synchronize()
    assert total == 96
    x = cupy.zeros(32, "f4")
    cupy.cuda.Device().synchronize()
    fill(1, 32, (x,), stream=theirs)
    theirs.synchronize()
    assert x.get().sum() == 96
    event = cuda.Event()
    event.record(theirs)
    cuda.ExternalStream(theirs.ptr).wait_event(event)


def test_events_of_cupy_and_ours_order_streams_of_both(cupy):
    x, ours, theirs = (
        cupy.zeros(1 << 20, "f4"),
        cuda.Stream(non_blocking=True),
        cupy.cuda.Stream(non_blocking=True),
    )
    add = gs.RawKernel(
        'extern "C" __global__ void add(float* x) { x[blockIdx.x * 256 + threadIdx.x] += 1; }', "add"
    )
    cuda.synchronize()
    for _ in range(20):
        with theirs:
            x *= 2
            event = theirs.record()
        ours.wait_event(event)
        add(x.size // 256, 256, (x,), stream=ours)
        theirs.wait_event(ours.record())
    ours.record(event)
    event.synchronize()
    assert (x.get() == 2.0**20 - 1).all()


def test_events_of_pytorch_and_ours_order_streams_of_both():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no device")
    x, ours, theirs = torch.zeros(1 << 20, device="cuda"), cuda.Stream(non_blocking=True), torch.cuda.Stream()
    add = gs.RawKernel(
        'extern "C" __global__ void add(float* x) { x[blockIdx.x * 256 + threadIdx.x] += 1; }', "add"
    )
    torch.cuda.synchronize()
    ours.wait_event(torch.cuda.Event())
    for _ in range(20):
        with torch.cuda.stream(theirs):
            x *= 2
            event = theirs.record_event()
        ours.wait_event(event)
        add(x.numel() // 256, 256, (x,), stream=ours)
        theirs.wait_event(ours.record())
    ours.record(event)
    event.synchronize()
    assert (x.cpu() == 2.0**20 - 1).all()


def test_cupys_own_kernels_are_recorded(cupy):
    x, stream = cupy.arange(1000, dtype="f4"), cuda.Stream()
    (x * 2 + 1).get()
    cuda.synchronize()
    with stream, cuda.Graph() as graph:
        y = x * 2 + 1
    x += 1
    cuda.synchronize()
    graph.launch(stream)
    stream.synchronize()
    np.testing.assert_array_equal(y.get(), 2 * np.arange(1, 1001) + 1)


def test_a_capture_of_pytorch_takes_our_launches():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no device")
    double = gs.RawKernel('extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }', "twice")
    x = torch.ones(32, device="cuda")
    double(1, 32, (x,))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(3):
            double(1, 32, (x,))
    for _ in range(2):
        graph.replay()
    torch.cuda.synchronize()
    assert (x == 2.0**7).all()


def test_copies_between_two_devices():
    target = registry.get("cuda")
    if target.device_count() < 2:
        pytest.skip("one device answers")
    values = np.arange(1000, dtype=np.float64)
    with cuda.Device(1):
        there = cuda.alloc(values.nbytes)
        there.copy_from_host(values)
    here, out, stream = cuda.alloc(values.nbytes), np.empty_like(values), cuda.Stream()
    here.copy_from_device_async(there, stream=stream)
    stream.synchronize()
    here.copy_to_host(out)
    np.testing.assert_array_equal(out, values)


@pytest.mark.parametrize("are_on", [False, True], ids=["definition", "shortcut"])
def test_a_block_of_cupy_s_ends_in_the_stream_of_ours_around_it(cupy, are_on):
    before = _native.use_shortcuts(are_on)
    outer, used, ours, inner = cupy.cuda.Stream(), cupy.cuda.Stream(), cuda.Stream(), cupy.cuda.Stream()
    try:
        with outer:
            used.use()
            for _ in range(2):
                with ours:
                    with inner:
                        assert cupy.cuda.get_current_stream().ptr == inner.ptr
                    assert cupy.cuda.get_current_stream().ptr == ours.ptr
                assert cupy.cuda.get_current_stream().ptr == used.ptr
            ours.use()
        assert cupy.cuda.get_current_stream().ptr == 0
    finally:
        _native.use_shortcuts(before)
