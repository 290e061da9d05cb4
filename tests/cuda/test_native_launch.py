"""The compiled fast path's launch routine for the CUDA target, over the recording stub of the driver."""

from __future__ import annotations

import gc
import struct
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda_support import Stub

import gridstride as gs
from gridstride import _native
from gridstride._runtime import keeping
from gridstride._runtime.stream import Stream
from gridstride.errors import CUDAError
from gridstride.targets.cuda.runtime import CudaTarget

pytestmark = pytest.mark.skipif(not _native.is_compiled(), reason="the extension is not built")

TEXT = 'extern "C" __global__ void k(float* x, char c, double d) { x[0] = c + d; }'


def launched(stub: Stub, kernel: Any, *call: Any, **options: Any) -> tuple[dict[str, Any], bool]:
    """Make a call; return what the driver was asked to launch, and whether it was a hit."""
    before, _ = _native.statistics()
    stub.clear()
    kernel(*call, **options)
    (launch,) = stub.calls("cuLaunchKernel", "cuLaunchKernelEx")
    return launch, _native.statistics()[0] > before


@pytest.mark.parametrize("cooperative", [False, True])
def test_a_hit_asks_the_driver_for_the_same(cupy: Any, stub: Stub, cooperative: bool) -> None:
    x = cupy.empty(16, np.float32)
    kernel = gs.RawKernel(TEXT, "k", enable_cooperative_groups=cooperative)
    call = (2, 3), (32,), (x, 65, 2), 100
    keeping.begin()  # else the first launch in another stream goes through the pipeline
    _native.watchers(+1)
    first = launched(stub, kernel, *call, stream=0x50)
    _native.watchers(-1)
    second = launched(stub, kernel, *call, stream=0x50)
    assert (first[1], second[1]) == (False, True)
    assert second[0] == first[0]
    assert second[0]["stream"] == 0x50
    assert second[0]["cooperative"] == cooperative
    assert bytes.fromhex(second[0]["arguments"]) == struct.pack("<Qb7xd", x.data.ptr, 65, 2.0)


def test_a_hit_follows_cupys_current_stream(cupy: Any, stub: Stub) -> None:
    x = cupy.empty(16, np.float32)
    kernel = gs.RawKernel(TEXT, "k")
    with cupy.cuda.ExternalStream(0x70):
        kernel(1, 32, (x, 1, 2.0))
        launch, hit = launched(stub, kernel, 1, 32, (x, 1, 2.0))
    assert (launch["stream"], hit) == (0x70, True)


def test_p52_arguments_live_until_their_stream_is_done(cupy: Any, stub: Stub) -> None:
    """On a miss, on a hit, and where a prepared launch goes before it is done."""
    kernel, weak = gs.RawKernel(TEXT, "k"), []

    def launch_once(launch: Callable[..., None]) -> None:
        x = cupy.empty(16, np.float32)
        weak.append(weakref.ref(x))
        launch((x, 1, 2.0))

    def launch_prepared(args: tuple[Any, ...]) -> None:
        kernel.prepare(1, 32, args, stream=0x90)()

    for launch in (*2 * [lambda args: kernel(1, 32, args, stream=0x90)], launch_prepared):
        keeping.sweep()
        stub.fail("cuEventQuery", 600)
        launch_once(launch)
        gc.collect()
        keeping.sweep()
        assert weak[-1]() is not None
        keeping.sweep()
        gc.collect()
        assert weak[-1]() is None


def test_synchronizing_lets_go(cupy: Any, stub: Stub, cuda: CudaTarget) -> None:
    stream = Stream(target=cuda)
    x = cupy.empty(16, np.float32)
    weak = weakref.ref(x)
    gs.RawKernel(TEXT, "k")(1, 32, (x, 1, 2.0), stream=stream)
    del x
    gc.collect()
    assert weak() is not None
    stream.synchronize()
    assert weak() is None


def test_launching_the_same_again_keeps_it_once(cupy: Any, stub: Stub) -> None:
    kernel, x = gs.RawKernel(TEXT, "k"), cupy.empty(16, np.float32)
    keeping.sweep()
    args = (x, 1, 2.0)
    for _ in range(3):
        kernel(1, 32, args, stream=0x90)
    stub.clear()
    kernel(1, 32, args, stream=0x90)
    assert [call["call"] for call in stub.calls("cuEventCreate", "cuEventRecord")] == ["cuEventRecord"]


def test_a_kernel_without_parameters(cupy: Any, stub: Stub, cuda: CudaTarget) -> None:
    kernel = gs.RawKernel('extern "C" __global__ void nothing() {}', "nothing")
    with gs.use_target("cuda"):
        assert [launched(stub, kernel, 1, 32)[1] for _ in range(2)] == [False, cuda.device_count() == 1]


def test_under_another_context_the_pipeline_makes_the_call(cupy: Any, stub: Stub, cuda: CudaTarget) -> None:
    x = cupy.empty(16, np.float32)
    kernel = gs.RawKernel(TEXT, "k")
    kernel(1, 32, (x, 1, 2.0))
    cuda.set_device(1)
    assert not launched(stub, kernel, 1, 32, (x, 1, 2.0))[1]
    assert cuda.current_device() == 1
    cuda.set_device(0)
    assert launched(stub, kernel, 1, 32, (x, 1, 2.0))[1]


def test_more_shared_memory_is_opted_into_by_the_pipeline_once(cupy: Any, stub: Stub) -> None:
    x = cupy.empty(16, np.float32)
    kernel = gs.RawKernel(TEXT, "k")
    kernel(1, 32, (x, 1, 2.0))
    hits = [
        launched(stub, kernel, 1, 32, (x, 1, 2.0), shared_mem=size)[1]
        for size in (48 << 10, 100_000, 100_000)
    ]
    assert hits == [True, False, True]


def test_the_drivers_refusals_are_the_pipelines(cupy: Any, stub: Stub) -> None:
    x = cupy.empty(16, np.float32)
    warm, cold = gs.RawKernel(TEXT, "k"), gs.RawKernel(TEXT, "k")
    warm(1, 32, (x, 1, 2.0))
    errors = []
    for kernel in (warm, cold):
        stub.fail("cuLaunchKernel", 701)
        with pytest.raises(CUDAError) as caught:
            kernel(1, 32, (x, 1, 2.0))
        errors.append((str(caught.value), caught.value.name, caught.value.code, caught.value.call))
    assert errors[0] == errors[1]


def test_prepared_launches(cupy: Any, stub: Stub, cuda: CudaTarget) -> None:
    x = cupy.empty(16, np.float32)
    launch = gs.RawKernel(TEXT, "k").prepare((2,), (32,), (x, 1, 2.0), stream=0x30)
    assert stub.calls("cuLaunchKernel") == []
    asked, hit = launched(stub, launch)
    assert (asked["grid"], asked["stream"], hit) == ([2, 1, 1], 0x30, True)
    cuda.set_device(1)
    again, hit = launched(stub, launch)
    assert (again, hit) == (asked, False)


@pytest.mark.parametrize("given", [True, False])
def test_a_hit_of_an_elementwise_kernel_asks_the_driver_for_the_same(
    cupy: Any, stub: Stub, given: bool
) -> None:
    kernel = gs.ElementwiseKernel("T a, T x", "T y", "y = a * x", "scaled_by_hit")
    x, y = cupy.empty((16,), np.dtype(np.float32)), cupy.empty((16,), np.dtype(np.float32))
    results = [launched(stub, kernel, 2.0, x, *([y] if given else [])) for _ in range(3)]
    assert [hit for _, hit in results] == [False, False, True]
    if given:
        assert results[2][0] == results[0][0]
    with cupy.cuda.Device(1):
        assert launched(stub, kernel, 2.0, x, y)[0]["grid"] == results[0][0]["grid"]


def test_a_hit_of_a_reduction_launches_both_steps_over_one_workspace(cupy: Any, stub: Stub) -> None:
    kernel = gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total_by_hit")
    x = cupy.empty((1 << 20,), np.dtype(np.float32))
    seen = []
    for _ in range(3):
        stub.clear()
        before, _ = _native.statistics()
        kernel(x)
        seen.append((stub.calls("cuLaunchKernel"), _native.statistics()[0] - before))
    assert [hits for _, hits in seen] == [0, 0, 1]
    assert [len(calls) for calls, _ in seen] == [2, 2, 2]
    for first, last in zip(seen[0][0], seen[2][0], strict=True):
        assert [first[key] for key in ("grid", "block", "stream")] == [
            last[key] for key in ("grid", "block", "stream")
        ]
