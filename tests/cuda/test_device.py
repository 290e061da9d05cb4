"""The CUDA target on a real device."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from cuda_support import program

from gridstride.targets import registry, toolkit
from gridstride.targets.base import CopyDirection, EventFlags, Function, LaunchConfig, Program
from gridstride.targets.cuda.runtime import CudaTarget

pytestmark = pytest.mark.gpu

NEEDS_NVIDIA_HEADERS = pytest.mark.skipif(
    not toolkit.include_folders(), reason="NVIDIA's headers are not installed"
)
NEEDS_NVCC = pytest.mark.skipif(toolkit.nvcc() is None, reason="there is no nvcc")


@pytest.fixture
def device_target() -> CudaTarget:
    target = registry.get("cuda")
    assert isinstance(target, CudaTarget)
    target.set_device(0)
    return target


class Memory:
    """Hold a NumPy array's bytes on the current device."""

    def __init__(self, target: CudaTarget, array: np.ndarray[Any, Any]) -> None:
        self.target = target
        self.like = array
        self.device = target.current_device()
        self.address = target.allocate(array.nbytes, self.device)
        target.copy(self.address, array.ctypes.data, array.nbytes, CopyDirection.HOST_TO_DEVICE, None)

    def get(self) -> np.ndarray[Any, Any]:
        result = np.empty_like(self.like)
        self.target.copy(result.ctypes.data, self.address, result.nbytes, CopyDirection.DEVICE_TO_HOST, None)
        self.target.free(self.address, self.device)
        return result


def load(target: CudaTarget, wanted: Program, device: int = 0) -> Function:
    code = target.compile(wanted, target.arch(device))
    return target.load(code, device).function(code.functions[wanted.kernels[0]].lowered_name)


def run(
    target: CudaTarget, function: Function, packed: bytes, grid: int = 1, block: int = 32, **rest: Any
) -> None:
    target.launch(function, LaunchConfig((grid, 1, 1), (block, 1, 1), **rest), packed, 0, ())  # type: ignore[arg-type]
    target.synchronize(target.current_device())


def test_saxpy(device_target: CudaTarget) -> None:
    random = np.random.default_rng(0)
    x, y = (random.standard_normal(100_003).astype(np.float32) for _ in range(2))
    text = """
    extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = a * x[i] + y[i];
    }"""
    function = load(device_target, program(text, "saxpy", options=("--fmad=false",)))
    on_device = Memory(device_target, x), Memory(device_target, y)
    packed = struct.pack("<f4xQQi", 2.5, on_device[0].address, on_device[1].address, x.size)
    run(device_target, function, packed, grid=-(-x.size // 256), block=256)
    np.testing.assert_array_equal(on_device[1].get(), np.float32(2.5) * x + y)


def test_structs_and_small_types_arrive_where_the_signature_says(device_target: CudaTarget) -> None:
    text = """
    struct Point { char tag; double x; int n; };
    extern "C" __global__ void k(char c, Point p, bool b, short s, double* out) {
        out[0] = c; out[1] = p.tag; out[2] = p.x; out[3] = p.n; out[4] = b; out[5] = s;
    }"""
    wanted = program(text, "k")
    code = device_target.compile(wanted, device_target.arch(0))
    signature = code.functions["k"].signature
    assert signature is not None
    assert [parameter.offset for parameter in signature] == [0, 8, 32, 34, 40]
    out = Memory(device_target, np.full(6, np.nan))
    packed = struct.pack("<b7xb7xdi4x?xh4xQ", -3, 7, 1.5, 11, True, -300, out.address)
    run(device_target, device_target.load(code, 0).function("k"), packed, block=1)
    np.testing.assert_array_equal(out.get(), [-3, 7, 1.5, 11, 1, -300])


def test_complex_numbers_agree_with_numpy(device_target: CudaTarget) -> None:
    text = """
    #include <cupy/complex.cuh>
    #include <limits>
    extern "C" __global__ void k(const complex<double>* x, complex<double>* out) {
        out[0] = x[0] * x[1]; out[1] = x[0] / x[1]; out[2] = exp(x[0]); out[3] = sqrt(x[1]); out[4] = pow(x[0], x[1]);
        out[5] = log(x[1]); out[6] = tanh(x[0]); out[7] = 2.5f * x[0] - 1; out[8] = abs(x[0]);
        out[9] = std::numeric_limits<float>::infinity();
    }"""
    x = np.array([1 + 2j, -3 + 0.5j])
    a, b = x
    on_device, out = Memory(device_target, x), Memory(device_target, np.full(10, np.nan + 0j))
    run(
        device_target,
        load(device_target, program(text, "k")),
        struct.pack("<QQ", on_device.address, out.address),
        block=1,
    )
    expected = [a * b, a / b, np.exp(a), np.sqrt(b), a**b, np.log(b), np.tanh(a), 2.5 * a - 1, abs(a), np.inf]
    np.testing.assert_allclose(out.get(), expected, rtol=1e-13)


@NEEDS_NVIDIA_HEADERS
def test_half_and_cooperative_groups(device_target: CudaTarget) -> None:
    text = """
    #include <cuda_fp16.h>
    #include <cooperative_groups.h>
    extern "C" __global__ void k(__half* x, int* sums, int blocks) {
        atomicAdd(&sums[0], 1);
        cooperative_groups::this_grid().sync();
        if (threadIdx.x == 0) sums[1 + blockIdx.x] = sums[0];
        if (blockIdx.x == 0) x[threadIdx.x] = __hadd(x[threadIdx.x], __float2half(0.5f));
    }"""
    halves = np.arange(32, dtype=np.float16)
    x, sums = Memory(device_target, halves), Memory(device_target, np.zeros(5, np.int32))
    packed = struct.pack("<QQi", x.address, sums.address, 4)
    run(device_target, load(device_target, program(text, "k")), packed, grid=4, cooperative=True)
    np.testing.assert_array_equal(sums.get(), [128] * 5)
    np.testing.assert_array_equal(x.get(), halves + np.float16(0.5))


@pytest.mark.parametrize("shared_mem", [49152, 98304])
def test_dynamic_shared_memory_beside_a_static_byte(device_target: CudaTarget, shared_mem: int) -> None:
    text = """
    extern "C" __global__ void k(int* out, int last) {
        __shared__ volatile char one[1]; extern __shared__ int many[];
        one[0] = 5; many[last] = 7; __syncthreads();
        out[0] = many[last] + one[0];
    }"""
    function = load(device_target, program(text, "k"))
    assert function.attributes().shared_size_bytes >= 1
    out = Memory(device_target, np.zeros(1, np.int32))
    run(device_target, function, struct.pack("<Qi", out.address, shared_mem // 4 - 1), shared_mem=shared_mem)
    assert out.get()[0] == 12
    assert function.attributes().max_dynamic_shared_size_bytes >= shared_mem


def test_constant_memory_is_written_between_launches(device_target: CudaTarget) -> None:
    text = """
    __constant__ float taps[4];
    extern "C" __global__ void k(float* out) { out[threadIdx.x] = taps[threadIdx.x]; }"""
    code = device_target.compile(program(text, "k", globals=("taps",)), device_target.arch(0))
    module = device_target.load(code, 0)
    address, size = module.global_variable(code.globals["taps"])
    assert size == 16
    for values in (np.arange(4, dtype=np.float32), np.full(4, 9, np.float32)):
        device_target.copy(address, values.ctypes.data, size, CopyDirection.HOST_TO_DEVICE, None)
        out = Memory(device_target, np.zeros(4, np.float32))
        run(device_target, module.function("k"), struct.pack("<Q", out.address), block=4)
        np.testing.assert_array_equal(out.get(), values)
    with pytest.raises(KeyError):
        module.function("absent")


def test_ptx_is_translated_by_the_driver(device_target: CudaTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_target.compiler.nvrtc, "architectures", (75,))
    code = device_target.compile(program(_FILL, "fill"), device_target.arch(0))
    assert code.format == "ptx"
    _check_fill(device_target, device_target.load(code, 0).function("fill"))


@pytest.mark.parametrize("form", ["cubin", "ptx", "fatbin"])
def test_object_code_of_users_runs(
    form: str, device_target: CudaTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    if form == "ptx":
        monkeypatch.setattr(device_target.compiler.nvrtc, "architectures", (75,))
    arch = device_target.arch(0)
    code = device_target.compile(program(_FILL, "fill"), arch).code
    if form == "fatbin":
        code = fatbin_of(code, int(arch.removeprefix("sm_")))
    adopted = device_target.adopt(code, form)
    assert (adopted.format, list(adopted.functions)) == (form, ["fill"])
    signature = adopted.functions["fill"].signature
    assert signature is not None
    assert [(parameter.offset, parameter.type.size) for parameter in signature] == [(0, 8), (8, 4)]
    _check_fill(device_target, device_target.load(adopted, 0).function("fill"))


def fatbin_of(cubin: bytes, arch: int) -> bytes:
    """Return a fatbin that holds a cubin as it is."""
    padded = cubin + bytes(-len(cubin) % 8)
    kind, version, header_size, is_64_bit_linux = 2, 0x101, 64, 0x11
    entry = struct.pack(
        "<HHIQIIHHIIIQQQ",
        kind,
        version,
        header_size,
        len(padded),
        0,
        0,
        0,
        1,
        arch,
        0,
        0,
        is_64_bit_linux,
        0,
        0,
    )
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry) + len(padded)) + entry + padded


@NEEDS_NVCC
def test_a_cubin_of_nvcc_runs_as_compiled_and_as_a_binary(device_target: CudaTarget) -> None:
    code = device_target.compile(program(_FILL, "fill", compiler="nvcc"), device_target.arch(0))
    _check_fill(device_target, device_target.load(code, 0).function("fill"))
    _check_fill(
        device_target, device_target.load(device_target.adopt(code.code, "binary"), 0).function("fill")
    )


def test_the_native_routine_launches(device_target: CudaTarget) -> None:
    function = load(device_target, program(_FILL, "fill"))
    entry = function.native_entry()
    if entry is None:
        pytest.skip("the compiled fast path is not built")
    routine = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_ulonglong
    )(entry[0])
    out = Memory(device_target, np.zeros(32, np.int32))
    packed = struct.pack("<Qi", out.address, 3)
    configuration = (ctypes.c_uint * 8)(1, 1, 1, 32, 1, 1, 0, 0)
    assert routine(entry[1], ctypes.addressof(configuration), packed, len(packed), 0) == 0
    device_target.synchronize(0)
    np.testing.assert_array_equal(out.get(), np.arange(32) * 3)


def test_streams_and_events_order_and_time_work(device_target: CudaTarget) -> None:
    stream, other = device_target.create_stream(True), device_target.create_stream(False)
    start, end = device_target.create_event(0), device_target.create_event(EventFlags.BLOCKING)
    values = np.zeros(1 << 22, np.uint8)
    memory = Memory(device_target, values)
    device_target.record_event(start, stream)
    device_target.fill(memory.address, 7, values.nbytes, stream)
    device_target.record_event(end, stream)
    device_target.wait_event(other, end)
    device_target.fill(memory.address, 9, 1, other)
    device_target.synchronize_stream(other)
    assert device_target.event_done(end)
    assert device_target.stream_done(stream)
    assert device_target.elapsed(start, end) > 0
    expected = np.full_like(values, 7)
    expected[0] = 9
    np.testing.assert_array_equal(memory.get(), expected)
    for handle in (stream, other):
        device_target.destroy_stream(handle)
    for handle in (start, end):
        device_target.destroy_event(handle)


def test_the_device_describes_itself(device_target: CudaTarget) -> None:
    limits = device_target.limits(0)
    free, total = device_target.memory_info(0)
    assert 0 < free <= total <= limits.total_memory
    assert limits.warp_size == 32
    assert limits.arch == f"sm_{limits.compute_capability.replace('.', '')}"
    assert limits.attributes["MaxThreadsPerBlock"] == limits.max_threads_per_block


def test_work_on_a_second_device_leaves_the_first_current(device_target: CudaTarget) -> None:
    if device_target.device_count() < 2:
        pytest.skip("there is one device")
    function = load(device_target, program(_FILL, "fill"), device=1)
    assert device_target.current_device() == 0
    device_target.set_device(1)
    _check_fill(device_target, function)
    device_target.set_device(0)


@pytest.mark.parametrize("debug", ["0", "1"])
def test_a_fault_is_an_error_with_its_name(device_target: CudaTarget, debug: str) -> None:
    # In a process of its own, because a fault spoils the context for good.
    done = subprocess.run([sys.executable, "-c", _FAULT, debug], capture_output=True, text=True, check=False)
    assert (
        done.stdout.split()
        == {
            "0": ["synchronize", "CUDA_ERROR_ILLEGAL_ADDRESS"],
            "1": ["launch", "LaunchError", "k", "CUDA_ERROR_ILLEGAL_ADDRESS"],
        }[debug]
    ), done.stderr


_FILL = 'extern "C" __global__ void fill(int* out, int factor) { out[threadIdx.x] = factor * threadIdx.x; }'
_FAULT = """
import os, struct, sys
os.environ["GRIDSTRIDE_DEBUG"] = sys.argv[1]
from gridstride.errors import CUDAError, LaunchError
from gridstride.targets import registry
from gridstride.targets.base import LaunchConfig, Program
from gridstride.targets.options import parse_options
target = registry.get("cuda")
text = 'extern "C" __global__ void k(int* out) { *out = 1; }'
code = target.compile(Program(text, "k", parse_options((), target="cuda"), ("k",)), target.arch(0))
target.set_device(0)
function = target.load(code, 0).function("k")
try:
    target.launch(function, LaunchConfig((1, 1, 1), (1, 1, 1)), struct.pack("<Q", 64), 0, ())
except LaunchError as error:
    print("launch", type(error).__name__, error.kernel, error.name)
    sys.exit()
try:
    target.synchronize(0)
except CUDAError as error:
    print("synchronize", error.name)
"""


def _check_fill(target: CudaTarget, function: Function) -> None:
    out = Memory(target, np.zeros(32, np.int32))
    run(target, function, struct.pack("<Qi", out.address, 3))
    np.testing.assert_array_equal(out.get(), np.arange(32) * 3)
