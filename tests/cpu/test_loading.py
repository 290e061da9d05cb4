"""Object code loaded and launched: modules, functions, failures, and the cache of the runtime."""

from __future__ import annotations

import ctypes
import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from shutil import which

import numpy as np
import pytest

from gridstride.errors import CompileError, CUDAError, LaunchError
from gridstride.targets.base import LaunchConfig, ObjectCode, Program
from gridstride.targets.cpu import abi, library, toolchain
from gridstride.targets.cpu.runtime import CpuFunction, CpuModule
from gridstride.targets.cpu.target import CpuTarget
from gridstride.targets.options import CompileOptions

TEXT = r"""
__constant__ float scale[2];
__device__ int calls;
__device__ float helper() { __shared__ float mine[10]; mine[0] = 1; return mine[0]; }
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i] * scale[0];
}
__global__ void __launch_bounds__(128) reverse(int* x) {
    __shared__ int tile[128];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
__global__ void dynamic(double* x) {
    extern __shared__ double work[];
    work[threadIdx.x] = threadIdx.x + helper();
    __syncthreads();
    x[threadIdx.x] = work[(threadIdx.x + 1) % blockDim.x];
}
__global__ void fault(int* x) { if (threadIdx.x == 3) *x = 1; }
__global__ void count() { atomicAdd(&calls, 1); }
"""
KERNELS = ("saxpy", "reverse", "dynamic", "fault", "count")


@pytest.fixture(scope="module")
def object_code(cpu_target: CpuTarget) -> ObjectCode:
    program = Program(TEXT, "test", CompileOptions(), kernels=KERNELS, globals=("scale", "calls"))
    return cpu_target.compile(program, cpu_target.arch(0))


@pytest.fixture
def module(cpu_target: CpuTarget, object_code: ObjectCode) -> CpuModule:
    return cpu_target.load(object_code, 0)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache and a process without a runtime."""
    monkeypatch.setenv("GRIDSTRIDE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(library, "_runtime", None)
    monkeypatch.setattr(library, "prebuilt_runtime", lambda: None)
    return tmp_path / "cache"


def _launch(
    target: CpuTarget, function: CpuFunction, grid: int, block: int, packed: bytes, shared_mem: int = 0
) -> None:
    target.launch(function, LaunchConfig((grid, 1, 1), (block, 1, 1), shared_mem), packed, 0, ())


def _pointer(array: np.ndarray) -> bytes:
    return array.ctypes.data.to_bytes(8, "little")


def _variable(module: CpuModule, name: str, dtype: str) -> np.ndarray:
    address, size = module.global_variable(name)
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype=dtype)


def test_a_kernel_runs(cpu_target: CpuTarget, module: CpuModule) -> None:
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    _variable(module, "scale", "f4")[:] = 2
    packed = np.float32(3).tobytes() + bytes(4) + _pointer(x) + _pointer(y) + np.int32(1000).tobytes()
    _launch(cpu_target, module.function("saxpy"), 4, 256, packed)
    np.testing.assert_array_equal(y, 1 + 6 * x)


def test_static_and_dynamic_shared_memory(cpu_target: CpuTarget, module: CpuModule) -> None:
    x = np.arange(128, dtype=np.int32)
    _launch(cpu_target, module.function("reverse"), 1, 128, _pointer(x))
    np.testing.assert_array_equal(x, np.arange(128)[::-1])
    y = np.zeros(64)
    _launch(cpu_target, module.function("dynamic"), 1, 64, _pointer(y), 64 * 8)
    np.testing.assert_array_equal(y, (np.arange(64) + 1) % 64 + 1)


def test_shared_memory_of_many_kernels_and_instances(cpu_target: CpuTarget) -> None:
    text = """
    __device__ int* mine() { __shared__ int place[4]; return place; }
    template <int N> __device__ int* own() { __shared__ int place[1]; return place; }
    template <int N> __global__ void fill(int* x) {
        __shared__ int first[N], second[6000];
        mine()[threadIdx.x] = 1000;
        own<1>()[0] = 100; own<2>()[0] = 200;
        first[threadIdx.x] = N; second[threadIdx.x] = 10 * N;
        __syncthreads();
        x[threadIdx.x] = first[threadIdx.x] + second[threadIdx.x] + mine()[threadIdx.x] + own<1>()[0] + own<2>()[0];
    }
    __global__ void other(int* x) { __shared__ int only[4]; only[threadIdx.x] = 7; x[threadIdx.x] = only[threadIdx.x]; }
    """
    names = (*(f"fill<{n}>" for n in range(4, 20)), "other")
    code = cpu_target.compile(Program(text, "test", CompileOptions(), kernels=names), "")
    module = cpu_target.load(code, 0)
    x = np.zeros(4, np.int32)
    for n in (4, 19, 7):
        _launch(cpu_target, module.function(f"fill<{n}>"), 1, 4, _pointer(x))
        np.testing.assert_array_equal(x, [11 * n + 1300] * 4)
    _launch(cpu_target, module.function("other"), 1, 4, _pointer(x))
    np.testing.assert_array_equal(x, [7] * 4)
    assert module.function("fill<4>").attributes().shared_size_bytes == 4 * (4 + 2 + 19 + 6000)
    assert module.function("other").attributes().shared_size_bytes == 4 * (4 + 2 + 4)


def test_shared_memory_of_conversions_and_namespaces(cpu_target: CpuTarget) -> None:
    text = """
    extern __shared__ double pool[];
    namespace room { __shared__ int count;
        __device__ void set(int value) { count = value; }
        __device__ void add() { atomicAdd(&count, 1); }
        __device__ int get() { return count; }
    }
    template <class T> struct Shared { __device__ operator T*() { extern __shared__ char raw[]; return (T*)raw; } };
    template <class T> __global__ void k(T* x) {
        T* mine = Shared<T>();
        if (threadIdx.x == 0) { room::set(5); pool[1] = 0.5; }
        __syncthreads();
        room::add();
        if (threadIdx.x == 0) mine[0] = 2;
        __syncthreads();
        int count = room::get();
        x[threadIdx.x] = count + mine[0] + pool[1];
    }
    """
    code = cpu_target.compile(Program(text, "test", CompileOptions(), kernels=("k<float>",)), "")
    x = np.zeros(8, np.float32)
    _launch(cpu_target, cpu_target.load(code, 0).function("k<float>"), 1, 8, _pointer(x), 16)
    np.testing.assert_array_equal(x, [5 + 8 + 2 + 0.5] * 8)


def test_casts_saturate_as_on_the_device(cpu_target: CpuTarget) -> None:
    text = """
    __global__ void convert(const float* x, int* a, unsigned* b, long long* c, unsigned char* d, int* e, short* f) {
        int i = threadIdx.x;
        a[i] = (int)x[i]; b[i] = static_cast<unsigned int>(x[i]); c[i] = (long long)x[i];
        d[i] = (unsigned char)x[i]; e[i] = int((double)x[i] * 2); f[i] = short(x[i]);
    }
    """
    code = cpu_target.compile(Program(text, "test", CompileOptions(), kernels=("convert",)), "")
    x = np.array([1.9, -1.9, 3e9, -3e9, 1e20, -1e20, np.nan, np.inf, 300], np.float32)
    results = [np.zeros(len(x), dtype) for dtype in ("i4", "u4", "i8", "u1", "i4", "i2")]
    packed = b"".join(map(_pointer, [x, *results]))
    _launch(cpu_target, cpu_target.load(code, 0).function("convert"), 1, len(x), packed)
    top, bottom = 2**31 - 1, -(2**31)
    highest, lowest = 2**63 - 1, -(2**63)
    expected = [
        [1, -1, top, bottom, top, bottom, 0, top, 300],
        [1, 0, 3000000000, 0, 2**32 - 1, 0, 0, 2**32 - 1, 300],
        [1, -1, 3000000000, -3000000000, highest, lowest, lowest, highest, 300],
        [1, 0, 3000000000 % 256, 0, 255, 0, 0, 255, 300 % 256],
        [3, -3, top, bottom, top, bottom, bottom, top, 600],
        [1, -1, -1, 0, -1, 0, 0, -1, 300],
    ]
    assert [result.tolist() for result in results] == expected


def test_variables_have_their_true_size(module: CpuModule) -> None:
    assert module.global_variable("scale")[1] == 8
    assert module.global_variable("calls")[1] == 4
    with pytest.raises(KeyError, match="other"):
        module.global_variable("other")


def test_every_load_has_its_own_variables(cpu_target: CpuTarget, object_code: ObjectCode) -> None:
    modules = [cpu_target.load(object_code, 0) for _ in range(2)]
    for module, times in zip(modules, (1, 3), strict=True):
        for _ in range(times):
            _launch(cpu_target, module.function("count"), 2, 5, b"")
    assert [int(_variable(module, "calls", "i4")[0]) for module in modules] == [10, 30]


def test_attributes_of_functions(module: CpuModule) -> None:
    reverse, dynamic = (module.function(name).attributes() for name in ("reverse", "dynamic"))
    assert (reverse.max_threads_per_block, dynamic.max_threads_per_block) == (128, 1024)
    assert (reverse.shared_size_bytes, dynamic.shared_size_bytes) == (40 + 512, 40)
    assert (dynamic.max_dynamic_shared_size_bytes, dynamic.num_regs) == (49152, -1)


def test_settable_attributes(module: CpuModule) -> None:
    function = module.function("reverse")
    function.set_attribute("max_dynamic_shared_size_bytes", 98304)
    function.set_attribute("preferred_shared_memory_carveout", 50)
    found = function.attributes()
    assert (found.max_dynamic_shared_size_bytes, found.preferred_shared_memory_carveout) == (98304, 50)
    for name, value in (
        ("max_dynamic_shared_size_bytes", 232448),
        ("preferred_shared_memory_carveout", 101),
        ("num_regs", 3),
    ):
        with pytest.raises(CUDAError, match=name):
            function.set_attribute(name, value)
    assert function.attributes() == found


def test_functions_are_found_once_by_name(module: CpuModule) -> None:
    assert module.function("count") is module.function("count")
    with pytest.raises(KeyError, match="nothing"):
        module.function("nothing")


def test_a_fault_becomes_an_error_with_its_place(cpu_target: CpuTarget, module: CpuModule) -> None:
    with pytest.raises(LaunchError, match="fault") as caught:
        _launch(cpu_target, module.function("fault"), 1, 8, bytes(8))
    error = caught.value
    assert (error.kernel, error.name, error.code) == ("fault", "CUDA_ERROR_ILLEGAL_ADDRESS", 700)
    assert (error.block, error.thread, error.address) == ((0, 0, 0), (3, 0, 0), 0)
    assert pickle.loads(pickle.dumps(error)).thread == (3, 0, 0)


def test_the_native_entry_launches(module: CpuModule) -> None:
    routine, context = module.function("count").native_entry()
    launch = ctypes.CFUNCTYPE(
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.POINTER(abi.Configuration),
        ctypes.c_char_p,
        ctypes.c_ulong,
        ctypes.c_ulonglong,
    )(routine)
    assert launch(context, abi.Configuration((3, 1, 1), (4, 1, 1), 0, 0), b"", 0, 0) == 0
    assert _variable(module, "calls", "i4")[0] == 12


def test_bytes_that_are_no_library_are_refused(cpu_target: CpuTarget) -> None:
    with pytest.raises(CUDAError, match="cannot be loaded") as caught:
        cpu_target.load(ObjectCode("shared object", b"not a library"), 0)
    assert caught.value.name == "CUDA_ERROR_INVALID_IMAGE"


# ---- the runtime in the cache ----


@pytest.fixture(scope="module")
def runtime_code() -> bytes:
    """What the compiler makes of the runtime's sources, once for all tests that do not look into it."""
    return library.build_runtime(toolchain.find_toolchain())


@pytest.fixture
def builds(runtime_code: bytes, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The compilers that were asked to build the runtime."""
    seen: list[str] = []

    def build(compiler: toolchain.Toolchain) -> bytes:
        seen.append(compiler.kind)
        return runtime_code

    monkeypatch.setattr(library, "build_runtime", build)
    return seen


def _load_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_runtime", None)
    assert library.runtime().launch_address


def test_the_runtime_is_built_once(cache: Path, builds: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        _load_anew(monkeypatch)
    assert len(builds) == len(list(cache.glob("cpu-runtime/*/*.bin"))) == 1


@pytest.mark.parametrize("kept_bytes", [0, 20, 1000, -1])
def test_a_damaged_runtime_is_built_anew(
    cache: Path, builds: list[str], monkeypatch: pytest.MonkeyPatch, kept_bytes: int
) -> None:
    _load_anew(monkeypatch)
    (kept,) = cache.glob("cpu-runtime/*/*.bin")
    content = kept.read_bytes()
    kept.write_bytes(content[:kept_bytes])
    _load_anew(monkeypatch)
    assert kept.read_bytes() == content
    assert len(builds) == 2


def test_the_runtime_works_where_the_cache_cannot_be_written(
    tmp_path: Path, builds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRIDSTRIDE_CACHE_DIR", str(tmp_path / "file" / "below"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file" / "temporary"))
    monkeypatch.setattr(library, "prebuilt_runtime", lambda: None)
    for _ in range(2):
        _load_anew(monkeypatch)
    assert len(builds) == 2


def test_forbidden_compilation_covers_the_runtime(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSTRIDE_FORBID_COMPILATION", "1")
    with pytest.raises(CompileError, match="GRIDSTRIDE_FORBID_COMPILATION"):
        library.runtime()


def test_a_runtime_that_cannot_be_built_says_why(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "runtime.cpp").write_text("#error no such machine\n")
    monkeypatch.setattr(library, "_RUNTIME_FOLDER", tmp_path)
    with pytest.raises(CompileError, match="no such machine") as caught:
        library.build_runtime(toolchain.find_toolchain())
    assert "runtime.cpp" in caught.value.command


PROGRAM = """
import sys
import numpy as np
from gridstride.targets import cpu
from gridstride.targets.base import LaunchConfig, Program
from gridstride.targets.cpu import toolchain
from gridstride.targets.options import CompileOptions

text = '''
template <class T> __global__ void reverse(T* x) {
    __shared__ T tile[64];
    tile[threadIdx.x] = sqrtf(x[threadIdx.x]);
    __syncthreads();
    x[threadIdx.x] = tile[63 - threadIdx.x];
}
'''
target = cpu.create()
code = target.compile(Program(text, "test", CompileOptions(), kernels=("reverse<float>",)), "")
function = target.load(code, 0).function("reverse<float>")
x = np.arange(64, dtype=np.float32)
target.launch(function, LaunchConfig((1, 1, 1), (64, 1, 1)), x.ctypes.data.to_bytes(8, "little"), 0, ())
np.testing.assert_array_equal(x, np.sqrt(np.arange(64, dtype=np.float32))[::-1])
print(toolchain.find_toolchain().kind)
"""


def _run_alone(tmp_path: Path, **environment: str) -> str:
    """Run the program above in a process of its own with an empty cache; return what it prints."""
    variables = {**os.environ, "GRIDSTRIDE_CACHE_DIR": str(tmp_path / "cache"), **environment}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(PROGRAM)],
        check=False,
        capture_output=True,
        text=True,
        env=variables,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_packaged_compiler_alone_is_enough(tmp_path: Path) -> None:
    pytest.importorskip("ziglang")
    assert _run_alone(tmp_path, PATH=str(tmp_path), GRIDSTRIDE_CXX="") == "zig"


@pytest.mark.parametrize(("name", "kind"), [("g++", "gcc"), ("clang++", "clang")])
def test_each_compiler_of_the_system(tmp_path: Path, name: str, kind: str) -> None:
    if which(name) is None:
        pytest.skip(f"{name} is not installed")
    assert _run_alone(tmp_path, GRIDSTRIDE_CXX=name) == kind
