"""The device headers: compilers and standards, layouts, short macros, and what must not compile."""

from __future__ import annotations

import ctypes
import platform
import shutil
import string
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import gridstride as gs
from gridstride.targets.cpu.library import INCLUDE_FOLDERS

SYSTEM_HEADERS = [
    "algorithm", "array", "assert.h", "bit", "cassert", "cfloat", "climits", "cmath", "concepts", "cstddef",
    "cstdint", "cstdio", "cstdlib", "cstring", "float.h", "functional", "initializer_list", "limits",
    "limits.h", "math.h", "new", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h", "type_traits",
    "utility",
]  # fmt: skip
CUDA_HEADERS = [
    "cuda_fp16.h", "cuda_fp16.hpp", "cuda_bf16.h", "cuda_bf16.hpp", "cuComplex.h", "cupy/complex.cuh",
    "thrust/complex.h", "cooperative_groups.h", "cooperative_groups/reduce.h", "cooperative_groups/scan.h",
        "cooperative_groups/memcpy_async.h",
    "cuda_runtime.h", "cuda.h", "cuda_runtime_api.h", "device_launch_parameters.h", "vector_types.h",
    "vector_functions.h", "math_constants.h", "device_functions.h",
    "sm_20_intrinsics.h", "sm_60_atomic_functions.h", "gridstride/view.h", "gridstride/index.h",
    "curand_kernel.h",
]  # fmt: skip
HEADERS = SYSTEM_HEADERS + CUDA_HEADERS

# component, then (size, alignment) of the vectors of 1, 2, 3 and 4 components
VECTORS = {
    "char": [(1, 1), (2, 2), (3, 1), (4, 4)], "uchar": [(1, 1), (2, 2), (3, 1), (4, 4)],
    "short": [(2, 2), (4, 4), (6, 2), (8, 8)], "ushort": [(2, 2), (4, 4), (6, 2), (8, 8)],
    "int": [(4, 4), (8, 8), (12, 4), (16, 16)], "uint": [(4, 4), (8, 8), (12, 4), (16, 16)],
    "float": [(4, 4), (8, 8), (12, 4), (16, 16)],
    **{name: [(8, 8), (16, 16), (24, 8), (32, 16)] for name in ("long", "ulong", "longlong", "ulonglong", "double")},
}  # fmt: skip
OTHER_LAYOUTS = {
    **{f"{name}4_16a": (32, 16) for name in ("long", "ulong", "longlong", "ulonglong", "double")},
    **{f"{name}4_32a": (32, 32) for name in ("long", "ulong", "longlong", "ulonglong", "double")},
    "dim3": (12, 4), "__half": (2, 2), "__half2": (4, 4), "__nv_bfloat16": (2, 2), "__nv_bfloat162": (4, 4),
    "complex<float>": (8, 8), "complex<double>": (16, 16), "cuFloatComplex": (8, 8), "cuDoubleComplex": (16, 16),
    "curandStatePhilox4_32_10_t": (64, 16), "gridstride::view<float, 1>": (24, 8),
        "gridstride::view<char, 3>": (56, 8), "int64_t": (8, 8), "size_t": (8, 8),
}  # fmt: skip


def compilers() -> dict[str, list[str]]:
    found = {name: [path] for name in ("g++", "clang++") if (path := shutil.which(name))}
    if find_spec("ziglang"):
        found["zig"] = [sys.executable, "-m", "ziglang", "c++", "-fno-sanitize=all"]
    return found


COMPILERS = compilers()


def compile_text(
    folder: Path, text: str, *flags: str, compiler: str = "g++", std: str = "c++17"
) -> subprocess.CompletedProcess[str]:
    source = folder / "text.cpp"
    source.write_text("#include <gridstride_cpu/prelude.h>\n" + text)
    folders = [f"-I{path}" for path in INCLUDE_FOLDERS]
    command = [*COMPILERS[compiler], f"-std={std}", "-nostdinc", *folders, "-fPIC", *flags, str(source)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("std", ["c++14", "c++17", "c++20"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_all_headers_compile_without_a_warning(tmp_path, compiler, std):
    text = "".join(f"#include <{name}>\n" for name in HEADERS) + 'extern "C" __global__ void kernel() {}\n'
    output = str(tmp_path / "text.so")
    done = compile_text(
        tmp_path, text, "-shared", "-nostdlib", "-Wall", "-Wextra", "-o", output, compiler=compiler, std=std
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_each_header_stands_alone_behind_short_macros(tmp_path):
    """Users' macros come before headers that they include later in their text."""
    names = [*string.ascii_letters, "i0", "n1", "value_", "size_", "result", "first", "second", "last", "mask", "lane",
             "bits", "index", "count", "left", "right", "low", "high", "a1", "out", "in", "tmp"]  # fmt: skip
    members = {"x", "y", "z", "w", "first", "second"}  # public names, which are the user's to spoil
    macros = "".join(f"#define {name} 1 +\n" for name in names if name not in members)
    for header in HEADERS:
        done = compile_text(tmp_path, f"{macros}#include <{header}>\n", "-fsyntax-only")
        assert done.returncode == 0, (header, done.stderr[:1000])


def test_layouts_are_those_of_a_gpu(tmp_path):
    layouts = {
        f"{name}{count}": layout for name, row in VECTORS.items() for count, layout in enumerate(row, 1)
    } | OTHER_LAYOUTS
    text = "#include <cuda_bf16.h>\n#include <cupy/complex.cuh>\n#include <cuComplex.h>\n#include <gridstride/view.h>\n"
    text += "#include <curand_kernel.h>\n"
    text += "".join(
        f'static_assert(sizeof({name}) == {size} && alignof({name}) == {alignment}, "{name}");\n'
        for name, (size, alignment) in layouts.items()
    )
    text += """
    static_assert(offsetof(float4, w) == 12 && offsetof(double3, z) == 16, "");
    static_assert(offsetof(gridstride::view<int, 2>, __strides) == 24, "");
    static_assert(__is_trivially_copyable(gridstride::view<int, 2>) && __is_trivially_copyable(__half2), "");
    """
    done = compile_text(tmp_path, text, "-fsyntax-only")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_prelude_predefines_what_a_device_compiler_does(tmp_path):
    text = """
    static_assert(__CUDA_ARCH__ == 900 && __CUDACC__ && __CUDACC_RTC__ && __CUDACC_VER_MAJOR__ >= 13, "");
    #ifdef __NVCC__
    #error "no nvcc here"
    #endif
    """
    assert compile_text(tmp_path, text, "-fsyntax-only").returncode == 0
    other = 'static_assert(__CUDA_ARCH__ == 750, "");'
    assert compile_text(tmp_path, other, "-fsyntax-only", "-D__CUDA_ARCH__=750").returncode == 0


@pytest.mark.parametrize(
    "statement",
    [
        "max(1LL, 2)", "max(1.0f, 2)", "isnan(3)", "sqrt(3)", "__ldg((user*)p)", "__ldg((int3*)p)",
        "cooperative_groups::tiled_partition<2048>(cooperative_groups::this_thread_block())",
        "cooperative_groups::tiled_partition<3>(cooperative_groups::this_thread_block())",
        "__half(1.0f) + 1.0f", "thrust::complex<float>() < 1",
    ],
)  # fmt: skip
def test_what_no_gpu_compiles_does_not_compile_here(tmp_path, statement):
    headers = "".join(
        f"#include <{name}>\n" for name in ("cuda_fp16.h", "cooperative_groups.h", "cupy/complex.cuh")
    )
    text = (
        headers
        + "struct user { int member; }; __global__ void kernel(void* p) { (void)p; (void)(STATEMENT); }"
    )
    assert compile_text(tmp_path, text, "-fsyntax-only", "-DSTATEMENT=p").returncode == 0
    assert compile_text(tmp_path, text, "-fsyntax-only", f"-DSTATEMENT={statement}").returncode != 0


def test_host_headers_are_out_of_reach(tmp_path):
    done = compile_text(tmp_path, "#include <vector>\n", "-fsyntax-only")
    assert done.returncode != 0
    assert "vector" in done.stderr


@pytest.mark.parametrize("compiler", COMPILERS)
def test_halves_without_hardware_are_the_same(tmp_path, compiler):
    """The conversions written out for processors without F16C, on every value."""
    text = """
    #include <cuda_fp16.h>
    #define EXPORT extern "C" __attribute__((visibility("default")))
    EXPORT void to_float(const unsigned short* x, float* y) {
        for (int i = 0; i < 65536; ++i) y[i] = gridstride_binary16::__decode(x[i]);
    }
    EXPORT void to_half(const float* x, unsigned short* y, int n) {
        for (int i = 0; i < n; ++i) y[i] = gridstride_binary16::__encode(x[i]);
    }
    """
    output = tmp_path / "half.so"
    plain = (
        ["-mcpu=x86_64" if compiler == "zig" else "-march=x86-64"] if platform.machine() == "x86_64" else []
    )
    done = compile_text(
        tmp_path, text, "-shared", "-nostdlib", "-O2", *plain, "-o", str(output), compiler=compiler
    )
    assert done.returncode == 0, done.stderr
    library = ctypes.CDLL(str(output))
    bits = np.arange(2**16, dtype=np.uint16)
    floats = np.empty(2**16, np.float32)
    library.to_float(ctypes.c_void_p(bits.ctypes.data), ctypes.c_void_p(floats.ctypes.data))
    np.testing.assert_array_equal(floats, bits.view(np.float16).astype(np.float32))
    values = bits.view(np.float16).astype(np.float32).view(np.uint32)
    x = np.concatenate([(values + step).view(np.float32) for step in (0, 1, 4095, 4096, 4097, 8191)])
    x = np.concatenate(
        [x, np.random.default_rng(0).integers(0, 2**32, 2**17, dtype=np.uint32).view(np.float32)]
    )
    halves = np.empty(x.size, np.uint16)
    library.to_half(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(halves.ctypes.data), x.size)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = x.astype(np.float16).view(np.uint16)
    numbers = ~np.isnan(x)
    np.testing.assert_array_equal(halves[numbers], expected[numbers])
    assert np.all((halves[~numbers] & 0x7FFF) > 0x7C00)


def test_masks_of_groups() -> None:
    """CUDA 13.0 keeps them to itself, so programs for every target cannot ask."""
    code = """#include <cooperative_groups.h>
    extern "C" __global__ void k(unsigned* out) {
        auto block = cooperative_groups::this_thread_block();
        out[threadIdx.x] = cooperative_groups::tiled_partition<4>(block).get_mask();
        if (threadIdx.x % 3) out[40 + threadIdx.x] = cooperative_groups::coalesced_threads().get_mask();
    }"""
    out = np.zeros(80, np.uint32)
    with gs.use_target("cpu"):
        gs.RawKernel(code, "k")((1,), (40,), (out,))
    lane = np.arange(40) % 32
    np.testing.assert_array_equal(out[:40], 0xF << (lane // 4 * 4))
    thread = np.arange(40)
    warps = [
        sum(1 << int(t) % 32 for t in range(first, last) if t % 3) for first, last in ((0, 32), (32, 40))
    ]
    np.testing.assert_array_equal(out[40:], np.where(thread % 3 > 0, np.take(warps, thread // 32), 0))


def test_switches_of_fibers_keep_nothing_in_registers() -> None:
    """Compilers keep numbers in mask registers too, also in the first."""
    text = next(
        path.read_text() for folder in INCLUDE_FOLDERS for path in Path(folder).rglob("switch_x86_64.h")
    )
    vectors, masks = (f"xmm{k}" for k in range(32)), (f"k{k}" for k in range(8))
    assert not [name for name in (*vectors, *masks) if f'"{name}"' not in text]
