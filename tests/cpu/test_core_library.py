"""The core libraries on the CPU target: which headers, from where, and what the cache knows of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gridstride as gs
from gridstride.targets import toolkit
from gridstride.targets.cpu import core_library

from .conftest import MakeProgram

NEEDS_CCCL = pytest.mark.skipif(core_library.folder() is None, reason="CCCL is not installed")
KERNEL = 'extern "C" __global__ void k(int* out) { out[0] = 1; }'


def compile_error(text: str) -> str:
    with pytest.raises(gs.CompileError) as caught:
        gs.RawKernel(text, "k", options=("--std=c++17",)).compile()
    return str(caught.value)


@NEEDS_CCCL
@pytest.mark.parametrize(
    "name", ["cub/cub.cuh", "cuda/barrier", "cuda/pipeline", "cuda/stream_ref", "cuda/std/chrono"]
)
def test_what_is_no_host_code_is_refused_by_name_and_line(name):
    message = compile_error(f"\n// #include <cuda/latch>\n#include <{name}>\n{KERNEL}")
    assert f"k.cu:3:11: error: <{name}> cannot run on the CPU target: " in message


@NEEDS_CCCL
def test_every_header_compiles_alone():
    installed = core_library.folder()
    assert installed is not None
    names = [name for name in core_library.HEADERS if (installed / name).is_file()]
    assert len(names) > 35
    first = "cuda/std/complex"  # takes the longest
    text = "".join(f"#include <{name}>\n" for name in [first, *names])
    gs.RawKernel(text + KERNEL, "k", options=("--std=c++17",)).compile()


@NEEDS_CCCL
def test_headers_of_the_users_include_them_beside_shared_memory(tmp_path: Path):
    (tmp_path / "rows.cuh").write_text("""
    #include <cuda/std/array>
    template <class T> struct Rows { __device__ static T turned(T v) {
        __shared__ cuda::std::array<T, 32> s;
        s[threadIdx.x] = v; __syncthreads(); return s[31 - threadIdx.x];
    } };""")
    text = """#include "rows.cuh"
    extern "C" __global__ void k(int* out) { out[threadIdx.x] = Rows<int>::turned(threadIdx.x); }"""
    out = np.zeros(32, np.int32)
    gs.RawKernel(text, "k", options=("--std=c++17", f"-I{tmp_path}"))((1,), (32,), (out,))
    np.testing.assert_array_equal(out, np.arange(31, -1, -1))


@NEEDS_CCCL
def test_cub_in_a_header_of_the_users_is_refused_on_its_line(tmp_path: Path):
    (tmp_path / "mine.cuh").write_text("#include <cuda/std/array>\n#include <cub/cub.cuh>\n")
    with pytest.raises(gs.CompileError) as caught:
        gs.RawKernel(f'#include "mine.cuh"\n{KERNEL}', "k", options=(f"-I{tmp_path}",)).compile()
    assert "mine.cuh:2:10: error: cub/cub.cuh: No such file" in str(caught.value)
    assert "cub/cub.cuh cannot run on the CPU target" in str(caught.value)


@NEEDS_CCCL
def test_their_version_stands_for_all_of_them_in_the_cache(make_program: MakeProgram):
    from gridstride.targets.cpu.compiler import compile_program

    code = compile_program(make_program(f"#include <cuda/std/type_traits>\n{KERNEL}", "k"))
    assert [Path(path).name for path, _ in code.dependencies or ()] == ["version.h"]


def test_without_cccl_the_message_says_what_is_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(toolkit, "include_folders", lambda: ())
    message = compile_error(f"#include <cuda/std/array>\n{KERNEL}")
    assert "k.cu:1:10: error: cuda/std/array: No such file or directory" in message
    assert "pip install nvidia-cuda-cccl" in message


def test_versions_that_need_a_library_below_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in (core_library.VERSION_HEADER, "cuda/std/__cccl/compiler.h", "cuda/std/array"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setattr(toolkit, "include_folders", lambda: (tmp_path,))
    message = compile_error(f"#include <cuda/std/array>\n{KERNEL}")
    assert "k.cu:1:11: error: <cuda/std/array> of the installed CCCL is too old" in message


def test_headers_of_the_users_under_such_names_are_theirs(tmp_path: Path):
    (tmp_path / "cub").mkdir()
    (tmp_path / "cub" / "cub.cuh").write_text("#define VALUE 5\n")
    out = np.zeros(1, np.int32)
    text = '#include <cub/cub.cuh>\nextern "C" __global__ void k(int* out) { out[0] = VALUE; }'
    gs.RawKernel(text, "k", options=(f"-I{tmp_path}",))((1,), (1,), (out,))
    assert out[0] == 5
