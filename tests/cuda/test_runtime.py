"""What the CUDA target asks of the driver, seen by the recording stub."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from cuda_support import ARCH, Stub, program

from gridstride.errors import CUDAError, LaunchError, TargetUnavailable
from gridstride.targets.base import CopyDirection, EventFlags, LaunchConfig, ObjectCode
from gridstride.targets.cuda import create, nvrtc
from gridstride.targets.cuda.compiler import Compiler
from gridstride.targets.cuda.functions import CudaFunction, FunctionContext
from gridstride.targets.cuda.runtime import CudaTarget
from gridstride.targets.null import NullFunction

TEXT = """
__constant__ float taps[4];
extern "C" __global__ void k(float* x, char c, int n) { x[0] = c + n + taps[0]; }
"""
LAUNCHES = ("cuLaunchKernel", "cuLaunchKernelEx")
SET_ATTRIBUTE = "cuFuncSetAttribute"


@pytest.fixture(scope="session")
def object_code(compiler: Compiler) -> ObjectCode:
    return compiler.compile(program(TEXT, "k", globals=("taps",)), ARCH)


@pytest.fixture
def function(cuda: CudaTarget, object_code: ObjectCode) -> CudaFunction:
    """A kernel on device 0, which is current."""
    cuda.set_device(0)
    return cuda.load(object_code, 0).function("k")


def config(shared_mem: int = 0, cooperative: bool = False) -> LaunchConfig:
    return LaunchConfig((2, 3, 4), (32, 2, 1), shared_mem, cooperative)


def test_a_launch_carries_configuration_stream_and_argument_bytes(
    cuda: CudaTarget, stub: Stub, function: CudaFunction
) -> None:
    packed = struct.pack("<Qb3xi", 0x1122334455667788, -1, 7)
    cuda.launch(function, config(1024), packed, 0x50, ())
    (launch,) = stub.calls(*LAUNCHES)
    assert launch == {
        "call": "cuLaunchKernel", "device": 0, "name": "k", "grid": [2, 3, 4], "block": [32, 2, 1], "shared": 1024,
        "stream": 0x50, "cooperative": 0, "arguments": packed.hex(),
    }  # fmt: skip


def test_functions_of_other_targets_are_refused(cuda: CudaTarget, stub: Stub) -> None:
    with pytest.raises(TypeError, match="function of the CUDA target is needed, got NullFunction"):
        cuda.launch(NullFunction("k"), LaunchConfig((1, 1, 1), (1, 1, 1)), b"", 0, ())
    assert stub.calls("cuLaunchKernel") == []


def test_a_kernel_without_parameters_gets_none(cuda: CudaTarget, stub: Stub, function: CudaFunction) -> None:
    cuda.launch(function, config(), b"", 0, ())
    assert [launch["arguments"] for launch in stub.calls(*LAUNCHES)] == [""]


def test_a_cooperative_launch_says_so(cuda: CudaTarget, stub: Stub, function: CudaFunction) -> None:
    cuda.launch(function, config(16, cooperative=True), b"\x01" * 16, 0x50, ())
    (launch,) = stub.calls(*LAUNCHES)
    assert launch == {
        "call": "cuLaunchKernelEx", "device": 0, "name": "k", "grid": [2, 3, 4], "block": [32, 2, 1], "shared": 16,
        "stream": 0x50, "cooperative": 1, "arguments": "01" * 16,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("static", "dynamic", "opt_in"),
    [(0, 49152, None), (1, 49151, None), (1, 49152, 49152), (0, 49153, 49153), (1, 98304, 98304)],
)
def test_more_shared_memory_is_asked_for_by_static_and_dynamic_together(
    cuda: CudaTarget, stub: Stub, object_code: ObjectCode, static: int, dynamic: int, opt_in: int | None
) -> None:
    stub.set_static_shared(static)
    cuda.set_device(0)
    function = cuda.load(object_code, 0).function("k")
    for _ in range(2):
        cuda.launch(function, config(dynamic), b"", 0, ())
    assert [call["value"] for call in stub.calls(SET_ATTRIBUTE)] == ([] if opt_in is None else [opt_in])
    assert function.attributes().max_dynamic_shared_size_bytes == (opt_in or 49152 - static)


def test_too_much_shared_memory_launches_nothing_and_changes_nothing(
    cuda: CudaTarget, stub: Stub, function: CudaFunction
) -> None:
    with pytest.raises(CUDAError) as caught:
        cuda.launch(function, config(300000), b"", 0, ())
    assert (caught.value.name, caught.value.call) == ("CUDA_ERROR_INVALID_VALUE", SET_ATTRIBUTE)
    assert stub.calls(*LAUNCHES) == []
    assert function.context.dynamic_shared_limit == 49152


def test_attributes_are_read_and_the_two_settable_ones_set(
    cuda: CudaTarget, stub: Stub, function: CudaFunction
) -> None:
    assert function.attributes().num_regs == 14
    function.set_attribute("max_dynamic_shared_size_bytes", 100000)
    function.set_attribute("preferred_shared_memory_carveout", 50)
    assert [(call["attribute"], call["value"]) for call in stub.calls(SET_ATTRIBUTE)] == [
        (8, 100000),
        (9, 50),
    ]
    assert function.attributes().max_dynamic_shared_size_bytes == 100000
    with pytest.raises(ValueError, match="num_regs"):
        function.set_attribute("num_regs", 3)


def test_a_refused_launch_names_kernel_error_and_call(
    cuda: CudaTarget, stub: Stub, function: CudaFunction
) -> None:
    stub.fail("cuLaunchKernel", 1)
    with pytest.raises(CUDAError, match=r"^k: CUDA_ERROR_INVALID_VALUE") as caught:
        cuda.launch(function, config(), b"", 0, ())
    assert (caught.value.name, caught.value.code, caught.value.call) == (
        "CUDA_ERROR_INVALID_VALUE",
        1,
        "cuLaunchKernel",
    )
    assert str(function.failure(700)).startswith("k: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access")


def test_a_fault_surfaces_when_the_device_is_waited_for(
    cuda: CudaTarget, stub: Stub, function: CudaFunction
) -> None:
    cuda.launch(function, config(), b"", 0, ())
    stub.fail("cuCtxSynchronize", 700)
    with pytest.raises(CUDAError) as caught:
        cuda.synchronize(0)
    assert (caught.value.name, caught.value.code) == ("CUDA_ERROR_ILLEGAL_ADDRESS", 700)


def test_debug_mode_waits_and_names_the_kernel(
    cuda: CudaTarget, stub: Stub, function: CudaFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRIDSTRIDE_DEBUG", "1")
    stub.fail("cuStreamSynchronize", 700)
    with pytest.raises(LaunchError, match=r"^k: CUDA_ERROR_ILLEGAL_ADDRESS") as caught:
        cuda.launch(function, config(), b"", 0x50, ())
    assert (caught.value.kernel, caught.value.code) == ("k", 700)
    assert stub.calls("cuStreamSynchronize")[-1]["stream"] == 0x50
    assert function.native_entry() is None


def test_the_native_context_holds_the_drivers_functions(cuda: CudaTarget, function: CudaFunction) -> None:
    context = function.context
    assert context.function == function.handle
    assert context.dynamic_shared_limit == 49152
    for field, name in (("launch", "cuLaunchKernel"), ("launch_extended", "cuLaunchKernelEx")):
        assert getattr(context, field) == ctypes.cast(cuda.driver._library[name], ctypes.c_void_p).value
    entry = function.native_entry()
    if entry is not None:  # the extension is built
        assert entry[1] == ctypes.addressof(context)
    assert FunctionContext.dynamic_shared_limit.offset == 5 * ctypes.sizeof(ctypes.c_void_p)


def test_loading_happens_on_the_device_asked_for_and_the_current_one_is_kept(
    cuda: CudaTarget, stub: Stub, object_code: ObjectCode
) -> None:
    cuda.set_device(0)
    module = cuda.load(object_code, 1)
    assert module.function("k") is module.function("k")
    assert module.global_variable("taps")[1] == 16
    assert [
        call["device"]
        for call in stub.calls("cuModuleLoadDataEx", "cuModuleGetFunction", "cuModuleGetGlobal_v2")
    ] == [1, 1, 1]
    assert stub.calls("cuModuleLoadDataEx")[0]["size"] == len(object_code.code)
    assert cuda.current_device() == 0


def test_names_that_a_module_lacks_are_key_errors(cuda: CudaTarget, object_code: ObjectCode) -> None:
    module = cuda.load(object_code, 1)
    with pytest.raises(KeyError, match="absent"):
        module.function("absent")
    with pytest.raises(KeyError, match="absent"):
        module.global_variable("absent")
    assert cuda.current_device() == 0


def test_image_errors_are_reported_with_their_name(
    cuda: CudaTarget, stub: Stub, object_code: ObjectCode
) -> None:
    stub.fail("cuModuleLoadDataEx", 209)
    with pytest.raises(CUDAError, match="cuModuleLoadDataEx") as caught:
        cuda.load(object_code, 0)
    assert caught.value.code == 209


@pytest.mark.parametrize("call", ["cuMemAlloc_v2", "cuCtxSynchronize", "cuMemGetInfo_v2"])
def test_the_current_device_survives_a_failure(cuda: CudaTarget, stub: Stub, call: str) -> None:
    actions = {
        "cuMemAlloc_v2": lambda: cuda.allocate(64, 1),
        "cuCtxSynchronize": lambda: cuda.synchronize(1),
        "cuMemGetInfo_v2": lambda: cuda.memory_info(1),
    }
    cuda.set_device(0)
    stub.fail(call, 2)
    with pytest.raises(CUDAError, match="CUDA_ERROR_OUT_OF_MEMORY"):
        actions[call]()
    assert cuda.current_device() == 0
    assert stub.calls(call)[0]["device"] == 1


def test_contexts_are_retained_once_and_changes_by_others_are_seen(cuda: CudaTarget, stub: Stub) -> None:
    assert cuda.current_device() == 0
    for device in (0, 1, 0, 1):
        cuda.set_device(device)
        assert cuda.current_device() == device
    assert [call["of"] for call in stub.calls("cuDevicePrimaryCtxRetain")] == [0, 1]
    cuda.driver.cuCtxSetCurrent(cuda._primary_context(0))  # another library
    assert cuda.current_device() == 0
    with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_DEVICE"):
        cuda.set_device(7)
    assert cuda.current_device() == 0


def test_each_thread_has_its_own_current_device(cuda: CudaTarget) -> None:
    seen = {}

    def work(device: int) -> None:
        cuda.set_device(device)
        barrier.wait()
        seen[device] = cuda.current_device()

    barrier = threading.Barrier(2)
    threads = [threading.Thread(target=work, args=(device,)) for device in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {0: 0, 1: 1}


@pytest.mark.parametrize("stream", [None, 0, 0x50])
def test_memory_goes_there_and_back(cuda: CudaTarget, stub: Stub, stream: int | None) -> None:
    data = np.arange(16, dtype=np.int32)
    result = np.zeros_like(data)
    first, second = cuda.allocate(data.nbytes, 0), cuda.allocate(data.nbytes, 0)
    cuda.copy(first, data.ctypes.data, data.nbytes, CopyDirection.HOST_TO_DEVICE, stream)
    cuda.copy(second, first, data.nbytes, CopyDirection.DEVICE_TO_DEVICE, stream)
    cuda.fill(second, 255, 4, stream)
    cuda.copy(result.ctypes.data, second, data.nbytes, CopyDirection.DEVICE_TO_HOST, stream)
    cuda.free(first, 0)
    cuda.free(second, 0)
    np.testing.assert_array_equal(result, [-1, *data[1:]])
    names = [name for name in stub.names() if name.startswith(("cuMemcpy", "cuMemset", "cuStream"))]
    if stream is None:
        assert names == [
            "cuMemcpyHtoD_v2", "cuMemcpyDtoD_v2", "cuStreamSynchronize", "cuMemsetD8_v2", "cuStreamSynchronize",
            "cuMemcpyDtoH_v2",
        ]  # fmt: skip
    else:
        assert names == [
            "cuMemcpyHtoDAsync_v2",
            "cuMemcpyDtoDAsync_v2",
            "cuMemsetD8Async",
            "cuMemcpyDtoHAsync_v2",
        ]
        assert {call["stream"] for call in stub.calls(*names)} == {stream}


def test_nothing_is_asked_for_size_zero(cuda: CudaTarget, stub: Stub) -> None:
    assert cuda.allocate(0, 0) == 0
    cuda.free(0, 0)
    cuda.copy(0, 0, 0, CopyDirection.HOST_TO_DEVICE, None)
    cuda.fill(0, 0, 0, None)
    assert stub.calls() == []


def test_streams_and_events(cuda: CudaTarget, stub: Stub) -> None:
    streams = [cuda.create_stream(non_blocking) for non_blocking in (False, True)]
    events = [cuda.create_event(flags) for flags in (0, EventFlags.BLOCKING | EventFlags.NO_TIMING)]
    assert [call["flags"] for call in stub.calls("cuStreamCreate", "cuEventCreate")] == [0, 1, 0, 3]
    cuda.record_event(events[0], streams[1])
    cuda.wait_event(streams[0], events[0])
    assert (
        stub.calls("cuEventRecord")[0] | {"event": events[0], "stream": streams[1]}
        == stub.calls("cuEventRecord")[0]
    )
    assert stub.calls("cuStreamWaitEvent")[0]["event"] == events[0]
    assert cuda.elapsed(events[0], events[1]) == 1.5
    assert cuda.stream_done(streams[0])
    assert cuda.event_done(events[0])
    stub.fail("cuStreamQuery", 600)
    assert not cuda.stream_done(streams[0])
    stub.fail("cuEventQuery", 600)
    assert not cuda.event_done(events[0])
    stub.fail("cuEventQuery", 700)
    with pytest.raises(CUDAError, match="ILLEGAL_ADDRESS"):
        cuda.event_done(events[0])
    for stream in streams:
        cuda.synchronize_stream(stream)
        cuda.destroy_stream(stream)
    for event in events:
        cuda.synchronize_event(event)
        cuda.destroy_event(event)
    assert stub.names()[-2:] == ["cuEventSynchronize", "cuEventDestroy_v2"]


def test_limits_are_read_once_and_newer_attributes_left_out(cuda: CudaTarget, stub: Stub) -> None:
    limits = cuda.limits(1)
    assert limits is cuda.limits(1)
    assert (limits.name, limits.arch, limits.compute_capability) == ("Stub 1", "sm_90", "9.0")
    assert (limits.max_block, limits.max_grid) == ((1024, 1024, 64), (2147483647, 65535, 65535))
    assert (limits.shared_memory_per_block, limits.shared_memory_per_block_optin) == (49152, 232448)
    assert (limits.multiprocessors, limits.warp_size, limits.total_memory) == (132, 32, 1 << 30)
    assert limits.max_parameter_bytes == 32764
    assert limits.attributes["ClockRate"] == 13
    assert max(limits.attributes.values()) >= 2147483647
    assert cuda.arch(1) == "sm_90"


def test_many_threads_retain_one_context(cuda: CudaTarget, stub: Stub) -> None:
    threads = [threading.Thread(target=cuda.set_device, args=(1,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stub.calls("cuDevicePrimaryCtxRetain")) == 1


def test_no_driver_names_the_remedy() -> None:
    with pytest.raises(TargetUnavailable, match=r"no NVIDIA driver.*Install the driver") as caught:
        create("libcuda-that-is-not-there.so.1")
    assert caught.value.target == "cuda"


def test_a_driver_that_refuses_is_not_available(stub_library: Path, stub: Stub) -> None:
    stub.fail("cuInit", 100)
    with pytest.raises(TargetUnavailable, match="CUDA_ERROR_NO_DEVICE"):
        create(str(stub_library))


def test_no_nvrtc_names_the_extra(stub_library: Path, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "find", lambda newest: None)
    with pytest.raises(TargetUnavailable, match=r"NVRTC.*gridstride\[cuda13\]"):
        create(str(stub_library))


def test_asking_whether_there_is_a_driver_imports_little() -> None:
    script = (
        "import sys, numpy, gridstride\n"
        "from gridstride.errors import TargetUnavailable\n"
        "from gridstride.targets.cuda import create\n"
        "try: create('libcuda-that-is-not-there.so.1')\n"
        "except TargetUnavailable: pass\n"
        "heavy = {'cuda', 'tree_sitter', 'subprocess', 'gridstride.targets.cuda.compiler'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
