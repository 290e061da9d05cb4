"""Compiling for an NVIDIA device without one."""

from __future__ import annotations

import hashlib
import pickle
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from cuda_support import ARCH, program

from gridstride.errors import CompileError
from gridstride.targets import toolkit
from gridstride.targets.base import ObjectCode
from gridstride.targets.cuda import elf, nvcc, nvrtc, source
from gridstride.targets.cuda.binaries import recognize
from gridstride.targets.cuda.compiler import Compiler
from gridstride.targets.cuda.fingerprint import fingerprint, own_headers
from gridstride.targets.cuda.includes import DEVICE_FOLDERS, NVRTC_FOLDERS, walk
from gridstride.targets.cuda.runtime import CudaTarget
from tests.crosses import in_turns

PLAIN = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] = 1; }'
BOTH_COMPILERS = pytest.mark.parametrize(
    "backend",
    [
        "nvrtc",
        pytest.param("nvcc", marks=pytest.mark.skipif(toolkit.nvcc() is None, reason="there is no nvcc")),
    ],
)
NEEDS_NVIDIA_HEADERS = pytest.mark.skipif(
    not toolkit.include_folders(), reason="NVIDIA's headers are not installed"
)

CORPUS = {
    "names without includes": """
        template <int size, class T> struct sized { static_assert(sizeof(T) == size, ""); };
        extern "C" __global__ void k(int8_t* a, uint64_t b, intptr_t c, size_t d) {
            sized<1, int8_t>(); sized<2, int16_t>(); sized<4, uint32_t>(); sized<8, int64_t>(); sized<8, uintptr_t>();
            a[0] = (int8_t)(b + c + d);
        }""",
    "user repeats a typedef": """
        typedef unsigned long long uint64_t; typedef unsigned int uint32_t;
        extern "C" __global__ void k(uint64_t* a, uint32_t b) { a[0] = b; }""",
    "shared memory and barriers": """
        extern "C" __global__ void k(float* x) {
            __shared__ float tile[32]; extern __shared__ float more[];
            tile[threadIdx.x] = x[threadIdx.x]; __syncthreads();
            more[threadIdx.x] = tile[31 - threadIdx.x]; __syncthreads();
            x[threadIdx.x] = more[threadIdx.x];
        }""",
    "warps and atomics": """
        extern "C" __global__ void k(int* x) {
            int v = __shfl_down_sync(0xffffffffu, x[threadIdx.x], 1);
            if (__any_sync(0xffffffffu, v > 3)) atomicAdd(x, __popc(__ballot_sync(0xffffffffu, v & 1)));
        }""",
    "printf and assert": """
        #include <assert.h>
        #include <stdio.h>
        extern "C" __global__ void k(int* x) { assert(x); printf("%d\\n", x[0]); }""",
    "cuComplex": """
        #include <cuComplex.h>
        extern "C" __global__ void k(cuFloatComplex* x, cuDoubleComplex* y) {
            x[0] = cuCmulf(x[0], x[1]); y[0] = cuCadd(y[0], make_cuDoubleComplex(1, 2));
        }""",
    "complex": """
        #include <cupy/complex.cuh>
        extern "C" __global__ void k(complex<float>* x, complex<double> z, double r) {
            x[0] = r * x[1] + x[2]; x[1] *= x[0]; x[3].imag(abs(x[2]));
            x[2] = exp(x[3]) + sqrt(z) * pow(x[0], 2) / x[4];
        }""",
    "standard headers": """
        #include <cuda_runtime.h>
        #include <algorithm>
        #include <cfloat>
        #include <climits>
        #include <cmath>
        #include <complex>
        #include <cstdint>
        #include <limits>
        #include <type_traits>
        static_assert(std::is_same<std::decay_t<const int&>, int>::value && !std::is_signed<unsigned>::value, "");
        static_assert(std::numeric_limits<int>::max() == INT_MAX && INT64_MIN < 0, "");
        __global__ void other(float* x, const double y);
        static_assert(std::is_same<gridstride_parameter_t<decltype(&other), 1>, double>::value, "");
        extern "C" __global__ void k(float* x, std::int64_t n, std::complex<float> z) {
            x[0] = std::sin(x[1]) + std::max(FLT_MAX, std::numeric_limits<float>::infinity()) + std::abs(z);
        }""",
    "lambdas and constants": """
        __constant__ float taps[5]; __device__ int counter;
        template <class F> __device__ float apply(F f, float v) { return f(v); }
        extern "C" __global__ void __launch_bounds__(128) k(float* __restrict__ x) {
            #pragma unroll
            for (int i = 0; i < 5; i++) x[i] = apply([=](float v) { return v * taps[i]; }, x[i]);
            atomicAdd(&counter, 1);
        }""",
}
NVIDIA_CORPUS = {
    "half": """
        #include <cuda_fp16.h>
        #include <cuda_bf16.h>
        extern "C" __global__ void k(half* x, __nv_bfloat16* y) {
            x[0] = __hfma(x[0], x[1], x[2]); y[0] = y[0] * y[1];
        }""",
    "cooperative groups": """
        #include <cooperative_groups.h>
        namespace cg = cooperative_groups;
        extern "C" __global__ void k(uint64_t* x) {
            auto tile = cg::tiled_partition<16>(cg::this_thread_block());
            x[0] = tile.shfl_down(x[threadIdx.x], 1); cg::this_grid().sync();
        }""",
}


@pytest.mark.parametrize("standard", ["", "c++14", "c++17", "c++20"])
@pytest.mark.parametrize("name", CORPUS)
def test_what_ordinary_kernels_use_compiles(compiler: Compiler, name: str, standard: str) -> None:
    options = (f"--std={standard}",) if standard else ()
    code = compiler.compile(program(CORPUS[name], "k", options=options), ARCH)
    assert "k" in elf.parameter_layouts(code.code)
    assert code.dependencies == ()
    assert code.log == ""


@NEEDS_NVIDIA_HEADERS
@pytest.mark.parametrize("name", NVIDIA_CORPUS)
def test_headers_of_nvidia_compile_and_are_dependencies(compiler: Compiler, name: str) -> None:
    code = compiler.compile(program(NVIDIA_CORPUS[name], "k"), ARCH)
    assert "k" in elf.parameter_layouts(code.code)
    assert code.dependencies == tuple((str(path), _digest(path)) for path in toolkit.version_headers())


def _own_headers() -> list[str]:
    folders = (*DEVICE_FOLDERS, *NVRTC_FOLDERS)
    names = {
        str(path.relative_to(folder)) for folder in folders for path in folder.rglob("*") if path.is_file()
    }
    return sorted(name for name in names if not name.startswith(("std/", "nvrtc/")))


@pytest.mark.parametrize(("header", "standard"), in_turns(_own_headers(), ["c++14", "c++20"]))
def test_every_header_of_ours_compiles_alone(compiler: Compiler, header: str, standard: str) -> None:
    text = f"#include <{header}>\n{PLAIN}"
    code = compiler.compile(program(text, "k", options=(f"--std={standard}",)), ARCH)
    assert code.log == ""


@pytest.mark.parametrize("header", _own_headers())
def test_no_short_macro_breaks_a_header_of_ours(compiler: Compiler, header: str) -> None:
    letters = tuple(f"-D{letter}=@" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijlmnopqrstuvwyz")
    text = f"#include <{header}>\n__global__ void k() {{}}"
    compiler.compile(program(text, "k", options=letters), ARCH)


@BOTH_COMPILERS
def test_no_macro_breaks_what_is_asked_of_a_text(compiler: Compiler, backend: str) -> None:
    words = tuple(
        f"-D{name}=@" for name in ("type", "value", "size", "first", "T", "P", "name", "Kernel", "Index")
    )
    code = compiler.compile(
        program("__global__ void k(float* x, int n) {}", "k", options=words, compiler=backend), ARCH
    )
    assert len(code.functions["k"].signature or ()) == 2


@BOTH_COMPILERS
def test_templates_globals_and_constants_are_found_in_any_spelling(compiler: Compiler, backend: str) -> None:
    text = """
    namespace room { template <class T, int N> __global__ void fill(T* x) { x[0] = N; } __device__ int counter; }
    __constant__ float taps[4];
    struct Point { char tag; double x; };
    """
    names = ("room::fill<float,3>", "room::fill< unsigned long long , 4 >", "&room::fill<int, 5>")
    asked = program(
        text, *names, compiler=backend, globals=("taps", "&room::counter"),
        constants=("sizeof(Point)", "offsetof(Point, x)", "-7", "1 << 20"),
    )  # fmt: skip
    code = compiler.compile(asked, ARCH)
    lowered = [code.functions[name].lowered_name for name in names]
    assert lowered == ["_ZN4room4fillIfLi3EEEvPT_", "_ZN4room4fillIyLi4EEEvPT_", "_ZN4room4fillIiLi5EEEvPT_"]
    assert set(lowered) == set(elf.parameter_layouts(code.code))
    assert code.globals == {"taps": "taps", "&room::counter": "_ZN4room7counterE"}
    assert code.constants == {"sizeof(Point)": 16, "offsetof(Point, x)": 8, "-7": -7, "1 << 20": 1 << 20}


LONG = {
    "a texture": """
        extern "C" __global__ void k(cudaTextureObject_t t, float* x) { x[0] = tex1Dfetch<float>(t, 0); }""",
    "a texture by its function alone": """
        extern "C" __global__ void k(unsigned long long t, float* x) { x[0] = tex1Dfetch<float>(t, 0); }""",
    "an error of the runtime": """
        extern "C" __global__ void k(int* x) { x[0] = cudaSuccess + sizeof(cudaError_t); }""",
    "a stream": """
        extern "C" __global__ void k(int* x) { x[0] = sizeof(cudaStream_t); }""",
}


@pytest.mark.parametrize("name", LONG)
def test_what_a_short_compilation_leaves_out_compiles(compiler: Compiler, name: str) -> None:
    assert compiler.compile(program(LONG[name], "k"), ARCH).functions["k"].signature is not None


def test_a_short_compilation_gives_the_same_code_and_is_tried_where_it_can_serve(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    if compiler.nvrtc.version < (12, 4):
        pytest.skip("this NVRTC has no short compilations")
    asked = []
    compile_once = nvrtc.Nvrtc.compile

    def counted(self: nvrtc.Nvrtc, *arguments: Any, options: list[str], **rest: Any) -> nvrtc.Compilation:
        asked.append("--minimal" in options)
        return compile_once(self, *arguments, options=options, **rest)

    monkeypatch.setattr(nvrtc.Nvrtc, "compile", counted)
    short = compiler.compile(program(PLAIN, "k"), ARCH)
    monkeypatch.setattr(nvrtc.Nvrtc, "version", (12, 3))
    assert compiler.compile(program(PLAIN, "k"), ARCH) == short
    monkeypatch.setattr(nvrtc.Nvrtc, "version", (12, 4))
    compiler.compile(program(LONG["a texture"], "k"), ARCH)
    compiler.compile(program("// cudaError_t\n" + PLAIN, "k"), ARCH)
    assert asked == [True, False, False, True]
    with pytest.raises(CompileError) as caught:
        compiler.compile(program(PLAIN.replace("= 1", "= nothing"), "k"), ARCH)
    assert asked[4:] == [True, False]
    assert "--minimal" not in caught.value.command


@BOTH_COMPILERS
def test_an_error_points_at_the_users_line(compiler: Compiler, backend: str) -> None:
    text = 'extern "C" __global__ void k(float* x)\n{\n    x[0] = wrong;\n}'
    asked = program(text, "k", options=("-DSOMETHING=1",), compiler=backend, path="/somewhere/my.cu")
    with pytest.raises(CompileError) as caught:
        compiler.compile(asked, ARCH)
    lines = str(caught.value).splitlines()
    assert lines[1] == '/somewhere/my.cu(3): error: identifier "wrong" is undefined'
    assert lines[2].rstrip() == "      x[0] = wrong;"
    assert lines[3].index("^") == lines[2].index("wrong")
    assert caught.value.name == "test"
    assert caught.value.source == text
    assert lines[1] in caught.value.log


@BOTH_COMPILERS
@pytest.mark.parametrize(
    ("asked", "quoted", "wrong"),
    [
        ({"kernels": ("missing",)}, "missing", "missing"),
        ({"kernels": ("f<absent, 3>",)}, "f<absent, 3>", "absent"),
        ({"globals": ("missing",)}, "missing", "missing"),
        ({"constants": ("sizeof(Missing)",)}, "sizeof(Missing)", "Missing"),
    ],
    ids=["kernel", "template argument", "variable", "constant"],
)
def test_an_unknown_name_is_shown_with_those_there_are(
    compiler: Compiler, backend: str, asked: dict[str, Any], quoted: str, wrong: str
) -> None:
    text = 'template <class T, int N> __global__ void f(T* x) {}\nextern "C" __global__ void g() {}'
    with pytest.raises(CompileError) as caught:
        compiler.compile(program(text, compiler=backend)._replace(**asked), ARCH)
    _, message, source_line, caret, *_, last = str(caught.value).splitlines()
    assert message == f'name expression: error: identifier "{wrong}" is undefined'
    assert source_line.strip() == quoted
    assert caret.index("^") == source_line.index(wrong)
    assert last == "Kernels in the text: f, g"


@BOTH_COMPILERS
def test_a_function_that_is_no_kernel_is_refused(compiler: Compiler, backend: str) -> None:
    with pytest.raises(CompileError, match=r"non-__global__|not a __global__"):
        compiler.compile(program("__device__ void f(int) {}", "f", compiler=backend), ARCH)


def test_lambdas_with_templates_are_compiled_in_kernels(compiler: Compiler) -> None:
    text = """
    template <class F> __device__ void twice(const F& f) { f(1); f(2.0f); }
    __global__ void k(float* x) { twice([&](const auto& v) { x[threadIdx.x] += v; }); }
    """
    assert compiler.compile(program(text, "k"), ARCH).code


def test_options_reach_the_compiler(compiler: Compiler) -> None:
    options = (
        "-DVALUE=3", "-DFLAG", "-DSQUARE(v)=((v) * (v))", "-UFLAG", "-O3", "-lineinfo", "--maxrregcount=40",
        "--use_fast_math", "--extra-device-vectorization", "--fmad=false", "--std=c++14",
    )  # fmt: skip
    asked = program(PLAIN, "k", options=options)
    flags = source.nvrtc_options(asked, walk(asked), ARCH)
    assert [flag for flag in flags if not flag.startswith("--include-path")] == [
        "--gpu-architecture=sm_90", "--std=c++14", "--fmad=false", "--device-as-default-execution-space",
        "--generate-line-info", "--use_fast_math", "--maxrregcount=40", "--ptxas-options=-O3",
        "--extra-device-vectorization",
    ]  # fmt: skip
    text = """
    #ifdef FLAG
    #error "undefined again"
    #endif
    static_assert(SQUARE(VALUE) == 9 && __cplusplus == 201402L, "");
    """
    assert compiler.compile(program(text + PLAIN, "k", options=options), ARCH).code


@pytest.mark.parametrize(
    "options", [("-G",), ("-O0",), ("-std=c++11",), ("-G", "-O2", "-lineinfo")], ids=" ".join
)
def test_every_option_is_accepted(compiler: Compiler, options: tuple[str, ...]) -> None:
    assert compiler.compile(program(PLAIN, "k", options=options), ARCH).code


def test_contraction_shows_in_the_code(compiler: Compiler) -> None:
    text = 'extern "C" __global__ void k(float* x) { x[0] = x[1] * x[2] + x[3]; }'
    fused, apart = (
        compiler.compile(program(text, "k", options=(f"--fmad={flag}",)), "sm_9999").code
        for flag in ("true", "false")
    )
    assert b"fma.rn" in fused
    assert b"fma.rn" not in apart


def test_debug_mode_adds_lines(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = program(PLAIN, "k")
    assert b".debug_line" not in compiler.compile(asked, ARCH).code
    monkeypatch.setenv("GRIDSTRIDE_DEBUG", "1")
    assert b".debug_line" in compiler.compile(asked, ARCH).code


@BOTH_COMPILERS
def test_headers_come_as_text_and_from_folders(compiler: Compiler, tmp_path: Path, backend: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "outer.h").write_text('#pragma once\n#include "inner.h"\n')
    (tmp_path / "mine" / "inner.h").write_text("#define INNER 5\n")
    (tmp_path / "beside.h").write_text("#define BESIDE 7\n")
    text = """
    #include "mine/outer.h"
    #include "beside.h"
    #include <given.h>
    // #include "commented out.h"
    #if 0
    #include "absent.h"
    #endif
    extern "C" __global__ void k(int* x) { x[0] = INNER + BESIDE + GIVEN + FIRST; }
    """
    asked = program(
        text, "k", options=(f"-I{tmp_path}",), compiler=backend, path=str(tmp_path / "my.cu"),
        headers=(("given.h", "#define GIVEN 9"), ("first.h", "#define FIRST 1")), includes=("first.h",),
    )  # fmt: skip
    code = compiler.compile(asked, ARCH)
    files = [tmp_path / "mine" / "outer.h", tmp_path / "mine" / "inner.h", tmp_path / "beside.h"]
    read = [(path, digest) for path, digest in code.dependencies or () if digest]
    assert sorted(read) == sorted((str(path), _digest(path)) for path in files)


@pytest.mark.parametrize(
    "text",
    [
        '#define HEADER "there.h"\n#include HEADER\n',
        '#if __has_include("absent.h")\n#include "absent.h"\n#endif\n',
    ],
    ids=["computed", "conditional on existence"],
)
def test_dependencies_that_cannot_be_told_are_none(compiler: Compiler, tmp_path: Path, text: str) -> None:
    (tmp_path / "there.h").write_text("")
    asked = program(text + PLAIN, "k", options=(f"-I{tmp_path}",))
    assert compiler.compile(asked, ARCH).dependencies is None


def test_a_fingerprint_depends_on_all_that_shapes_the_code(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def take() -> str:
        own_headers.cache_clear()
        return fingerprint(compiler.nvrtc, program(PLAIN, "k"), ARCH)

    monkeypatch.setattr("gridstride.targets.cuda.fingerprint.HEADER_ROOTS", (tmp_path,))
    header = tmp_path / "folder" / "header.h"
    header.parent.mkdir()
    header.write_text("one")
    seen = {take()}
    assert take() in seen
    header.write_text("three")
    seen.add(take())
    seen.add(fingerprint(compiler.nvrtc, program(PLAIN, "k"), "sm_80"))
    monkeypatch.setenv("GRIDSTRIDE_DEBUG", "1")
    seen.add(take())
    assert len(seen) == 4
    own_headers.cache_clear()


def test_an_old_arch_names_the_remedy(compiler: Compiler) -> None:
    with pytest.raises(CompileError, match=r"sm_20 is older .* pip install"):
        compiler.compile(program(PLAIN, "k"), "sm_20")


def test_a_new_arch_gives_ptx(compiler: Compiler) -> None:
    code = compiler.compile(program(PLAIN, "k"), "sm_9999")
    assert code.format == "ptx"
    assert f".target sm_{compiler.nvrtc.architectures[-1]}".encode() in code.code


def test_nvcc_that_is_not_there_is_named(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "nvcc", lambda: None)
    with pytest.raises(CompileError, match="CUDA toolkit"):
        compiler.compile(program(PLAIN, "k", compiler="nvcc"), ARCH)


def test_many_threads_compile_at_once(compiler: Compiler) -> None:
    codes: dict[int, ObjectCode] = {}

    def work(number: int) -> None:
        text = f'extern "C" __global__ void k{number}(float* x) {{ x[0] = {number}; }}'
        codes[number] = compiler.compile(program(text, f"k{number}"), ARCH)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {number: list(elf.parameter_layouts(code.code)) for number, code in codes.items()} == {
        number: [f"k{number}"] for number in range(8)
    }


def test_object_code_can_be_pickled(compiler: Compiler) -> None:
    code = compiler.compile(program(PLAIN, "k"), ARCH)
    assert pickle.loads(pickle.dumps(code)) == code


def test_formats_are_recognized(compiler: Compiler) -> None:
    asked = program(PLAIN, "k")
    assert recognize(compiler.compile(asked, ARCH).code) == "cubin"
    assert recognize(compiler.compile(asked, "sm_9999").code) == "ptx"
    assert recognize(bytes.fromhex("50ed55ba01001000")) == "fatbin"
    assert recognize(PLAIN.encode()) is None


@pytest.mark.parametrize("data", [b"text", b"\x7fELF" + bytes(60)])
def test_what_is_no_object_code_is_refused_by_its_name(cuda: CudaTarget, data: bytes) -> None:
    with pytest.raises(ValueError, match=r"my kernels: .*cubin"):
        cuda.adopt(data, "my kernels")


def test_nvrtc_is_found_by_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "nvidia" / "cuda_nvrtc" / "lib"
    folder.mkdir(parents=True)
    (folder / "libnvrtc.so.12").touch()
    (folder / "libnvrtc.so.13").touch()
    (folder / "libnvrtc-builtins.so.12.9").touch()
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    monkeypatch.setattr(nvrtc, "_loaded", lambda major: None)
    assert [file.name for file in toolkit.library_files("libnvrtc.so")][:2] == [
        "libnvrtc.so.13",
        "libnvrtc.so.12",
    ]
    found = nvrtc.find(12)
    assert found is not None
    assert found.path == folder / "libnvrtc.so.12"


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
def test_nvcc_is_found_where_cuda_path_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvcc").write_text("")
    (tmp_path / "bin" / "nvcc").chmod(0o755)
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    assert nvcc.find().path == tmp_path / "bin" / "nvcc"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
