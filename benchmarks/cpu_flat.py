"""Flat tier of the CPU target: kernels whose threads never wait, against native OpenMP C++ of the same flags."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from measure import interleave, medians, save, table

import gridstride as gs
from gridstride.targets.cpu import toolchain

KERNELS = Path(__file__).parent / "kernels"
SIZE, PLANE, BODIES, BLOCK = 10_000_000, 2048, 8192, 256
#: Times of native that the first release may take.
GOALS = {
    "axpy": 1.15,
    "gray_scott": 1.15,
    "transcendental": 0.35,
    "axpy_grid_stride": 2.0,
    "bodies": 1.0,
    "histogram": 1.0,
}
FLAGS = (
    "-O3",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    "-shared",
    "-fPIC",
)


def main() -> None:
    """Print a table and keep the numbers; arguments choose rows."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    module = gs.RawModule((KERNELS / "flat.cu").read_text())
    native = build_native()
    chosen = sys.argv[1:] or list(GOALS)
    rows = [ROWS[name](module, native) for name in chosen]
    print(toolchain.find_toolchain().version)
    print(table(rows))
    if len(chosen) == len(GOALS):
        print("written to", save(f"cpu-flat-{toolchain.find_toolchain().kind}", rows))


def axpy(module: gs.RawModule, native: ctypes.CDLL, name: str = "axpy") -> dict[str, object]:
    x, ours, theirs = vectors()
    kernel = module.get_function(name)
    blocks = -(-SIZE // BLOCK) if name == "axpy" else 256
    cases = {
        "ours": lambda: kernel((blocks,), (BLOCK,), (1e-3, x, ours, SIZE)),
        "native": lambda: native.native_axpy(ctypes.c_float(1e-3), pointer(x), pointer(theirs), SIZE),
    }
    return compared(name, f"{SIZE} float32", kernel, cases, ours, theirs)


def grid_stride(module: gs.RawModule, native: ctypes.CDLL) -> dict[str, object]:
    return axpy(module, native, "axpy_grid_stride")


def gray_scott(module: gs.RawModule, native: ctypes.CDLL) -> dict[str, object]:
    u, v = generator().random((2, PLANE, PLANE), dtype=np.float32)
    ours, theirs = np.zeros((2, 2, PLANE, PLANE), np.float32)
    kernel = module.get_function("gray_scott")
    numbers = (0.16, 0.08, 0.035, 0.065, 1.0)
    cases = {
        "ours": lambda: kernel(
            (PLANE // 32, PLANE // 8), (32, 8), (u, v, ours[0], ours[1], PLANE, PLANE, *numbers)
        ),
        "native": lambda: native.native_gray_scott(
            *map(pointer, (u, v, theirs[0], theirs[1])), PLANE, PLANE, *map(ctypes.c_float, numbers)
        ),
    }
    return compared("gray_scott", f"{PLANE}^2, blocks of 32x8", kernel, cases, ours, theirs)


def transcendental(module: gs.RawModule, native: ctypes.CDLL) -> dict[str, object]:
    x, ours, theirs = vectors()
    kernel = module.get_function("transcendental")
    cases = {
        "ours": lambda: kernel((-(-SIZE // BLOCK),), (BLOCK,), (x, ours, SIZE)),
        "native": lambda: native.native_transcendental(pointer(x), pointer(theirs), SIZE),
    }
    return compared("transcendental", f"exp sin log pow, {SIZE} float32", kernel, cases, ours, theirs)


def bodies(module: gs.RawModule, native: ctypes.CDLL) -> dict[str, object]:
    position = generator().random((BODIES, 4), dtype=np.float32)
    ours, theirs = np.zeros((2, BODIES, 4), np.float32)
    kernel = module.get_function("bodies")
    cases = {
        "ours": lambda: kernel((BODIES // BLOCK,), (BLOCK,), (position, ours, BODIES, 1e-3)),
        "native": lambda: native.native_bodies(
            pointer(position), pointer(theirs), BODIES, ctypes.c_float(1e-3)
        ),
    }
    return compared("bodies", f"{BODIES} bodies", kernel, cases, ours, theirs, atol=1e-2)


def histogram(module: gs.RawModule, native: ctypes.CDLL) -> dict[str, object]:
    """Compare with one core of our own: contention must not make more cores slower."""
    data = generator().integers(0, 256, SIZE, dtype=np.uint8)
    ours, theirs = np.zeros((2, 256), np.uint32)
    kernel = module.get_function("histogram")
    threads = gs.get_num_threads()

    def count(bins: np.ndarray, workers: int) -> None:
        gs.set_num_threads(workers)
        bins.fill(0)
        kernel((-(-SIZE // BLOCK),), (BLOCK,), (data, bins, SIZE))
        gs.set_num_threads(threads)

    cases = {"ours": lambda: count(ours, threads), "native": lambda: count(theirs, 1)}
    return compared("histogram", f"256 bins, {SIZE} bytes, against one core", kernel, cases, ours, theirs)


ROWS: dict[str, Callable[[gs.RawModule, ctypes.CDLL], dict[str, object]]] = {
    "axpy": axpy,
    "gray_scott": gray_scott,
    "transcendental": transcendental,
    "axpy_grid_stride": grid_stride,
    "bodies": bodies,
    "histogram": histogram,
}


def compared(
    name: str,
    case: str,
    kernel: gs.RawKernel,
    cases: dict[str, Callable[[], object]],
    ours: np.ndarray,
    theirs: np.ndarray,
    atol: float = 1e-6,
) -> dict[str, object]:
    """Check that the results agree, time the cases, and return a row."""
    for run in cases.values():
        run()
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=atol)
    seconds = medians(interleave(cases, repeats=15 if name not in ("bodies", "transcendental") else 7))
    return {"id": f"cpu.flat.{name}", "case": case, "tier": kernel.explain().tier, "ours": seconds["ours"],
            "native": seconds["native"], "ratio": seconds["ours"] / seconds["native"], "goal": GOALS[name]}  # fmt: skip


def vectors() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, y = generator().random((2, SIZE), dtype=np.float32)
    return x, y, y.copy()


def generator() -> np.random.Generator:
    return np.random.default_rng(1)


def build_native() -> ctypes.CDLL:
    """Build the OpenMP programs with g++: the packaged compiler brings no OpenMP."""
    library = Path(tempfile.mkdtemp()) / "native.so"
    command = ["g++", *FLAGS, "-fopenmp", str(KERNELS / "flat_native.cpp"), "-o", str(library)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


if __name__ == "__main__":
    main()
