"""OpenMP C++, compiled with g++ and the flags that the CPU target gives its kernels."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from workloads import BODIES, MATRIX, WIDTH, A, Array, Arrays, N

from gridstride.targets.cpu.toolchain import Toolchain
from gridstride.targets.options import CompileOptions

_SOURCE = Path(__file__).parents[1] / "kernels" / "native.cpp"


def case(name: str, arrays: Arrays) -> Callable[[], object] | None:
    """Return the call for a workload."""
    p = {key: _pointer(array) for key, array in arrays.items()}
    library, n = _library(), ctypes.c_ssize_t(N)
    match name:
        case "axpy" | "grid_stride_axpy":
            return lambda: library.native_axpy(ctypes.c_float(A), p["x"], p["y"], n)
        case "gray_scott":
            return lambda: library.native_gray_scott(p["u"], p["v"], p["next_u"], p["next_v"], WIDTH, WIDTH)
        case "functions":
            return lambda: library.native_functions(p["x"], p["y"], n)
        case "n_body":
            return lambda: library.native_n_body(p["bodies"], p["forces"], BODIES)
        case "matmul":
            return lambda: library.native_matmul(p["a"], p["b"], p["c"], MATRIX)
        case "tree_sum" | "shuffle_sum":
            return lambda: library.native_sum(p["x"], p["sums"], n)
        case "histogram":
            return lambda: library.native_histogram(p["values"], p["counts"], n)
    return None


def copy(source: Array, destination: Array) -> Callable[[], object]:
    """Return a call that copies N floats with all cores."""
    library, first, second = _library(), _pointer(source), _pointer(destination)
    return lambda: library.native_copy(first, second, ctypes.c_ssize_t(N))


@cache
def _library() -> ctypes.CDLL:
    compiler = Toolchain(("g++",), "gcc", "")
    flags = [flag for flag in compiler.compile_flags(CompileOptions()) if flag != "-fvisibility=hidden"]
    library = Path(tempfile.mkdtemp(prefix="gridstride-bench-")) / "native.so"
    subprocess.run(["g++", *flags, "-fopenmp", "-shared", str(_SOURCE), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def _pointer(array: Array) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)  # it keeps the array
