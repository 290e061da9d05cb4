"""Fiber tier of the CPU target: kernels with barriers and shuffles against native OpenMP C++."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from measure import interleave, medians, save, table

import gridstride as gs

KERNELS = Path(__file__).parent / "kernels"
BLOCK = 256
#: Times of native that the first release may take (the row of the barrier: nanoseconds).
GOALS = {"matmul": 28.0, "tree_sum": 250.0, "shuffle_sum": 300.0, "barrier": 10.0}


def main() -> None:
    module = gs.RawModule((KERNELS / "fibers.cu").read_text())
    native = build_native()
    rng = np.random.default_rng(1)
    rows = [
        matmul(module, native, rng),
        *sums(module, native, rng),
        barrier(module),
        axpy(module, native, rng),
    ]
    print(table(rows))
    print("written to", save("cpu-fibers", rows))


def matmul(module: gs.RawModule, native: ctypes.CDLL, rng: np.random.Generator) -> dict[str, object]:
    n = 512
    a, b = rng.random((2, n, n), dtype=np.float32)
    ours, theirs = np.full((2, n, n), np.nan, np.float32)
    kernel = module.get_function("matmul")
    cases = {
        "ours": lambda: kernel((n // 16, n // 16), (16, 16), (a, b, ours, n)),
        "native": lambda: native.native_matmul(*map(pointer, (a, b, theirs)), n),
    }
    for case in cases.values():
        case()
    np.testing.assert_allclose(ours, a.astype(np.float64) @ b, rtol=1e-4)
    np.testing.assert_allclose(theirs, ours, rtol=1e-4)
    return row("matmul", "512^3, tiles of 16x16", medians(interleave(cases)))


def sums(module: gs.RawModule, native: ctypes.CDLL, rng: np.random.Generator) -> list[dict[str, object]]:
    n = 10_000_000
    x = rng.random(n, dtype=np.float32)
    blocks = -(-n // BLOCK)
    partial = np.full(blocks, np.nan, np.float32)
    native.native_sum.restype = ctypes.c_float
    rows = []
    for name, shared in (("tree_sum", 4 * BLOCK), ("shuffle_sum", 0)):
        kernel = module.get_function(name)
        cases = {
            "ours": lambda kernel=kernel, shared=shared: kernel(
                (blocks,), (BLOCK,), (x, partial, n), shared_mem=shared
            ),
            "native": lambda: native.native_sum(pointer(x), ctypes.c_ssize_t(n)),
        }
        partial.fill(np.nan)
        cases["ours"]()
        np.testing.assert_allclose(partial.sum(dtype=np.float64), x.sum(dtype=np.float64), rtol=1e-5)
        rows.append(row(name, "10M float32", medians(interleave(cases))))
    return rows


def barrier(module: gs.RawModule) -> dict[str, object]:
    count, blocks = 1000, 64
    kernel = module.get_function("barriers")
    times = interleave({"ours": lambda: kernel((blocks,), (BLOCK,), (count,))})
    workers = min(gs.get_num_threads(), blocks)
    nanoseconds = medians(times)["ours"] * 1e9 * workers / (count * blocks * BLOCK)
    return {"id": "cpu.fibers.barrier", "case": f"{BLOCK} threads, one barrier of one thread, ns",
            "ours": nanoseconds, "native": 0.0, "ratio": nanoseconds, "goal": GOALS["barrier"]}  # fmt: skip


def axpy(module: gs.RawModule, native: ctypes.CDLL, rng: np.random.Generator) -> dict[str, object]:
    n = 10_000_000
    x, y = rng.random((2, n), dtype=np.float32)
    kernel = module.get_function("axpy")
    expected = np.float32(1e-3) * x + y
    kernel((-(-n // BLOCK),), (BLOCK,), (1e-3, x, y, n))
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    cases = {
        "ours": lambda: kernel((-(-n // BLOCK),), (BLOCK,), (1e-3, x, y, n)),
        "native": lambda: native.native_axpy(
            ctypes.c_float(1e-3), pointer(x), pointer(y), ctypes.c_ssize_t(n)
        ),
    }
    return row("axpy", "10M float32, no barrier", medians(interleave(cases)))


def row(name: str, case: str, seconds: dict[str, float]) -> dict[str, object]:
    return {"id": f"cpu.fibers.{name}", "case": case, "ours": seconds["ours"], "native": seconds["native"],
            "ratio": seconds["ours"] / seconds["native"], "goal": GOALS.get(name, "")}  # fmt: skip


def build_native() -> ctypes.CDLL:
    library = Path(tempfile.mkdtemp()) / "native.so"
    flags = ["-O3", "-march=native", "-fopenmp", "-fno-math-errno", "-fno-trapping-math", "-fassociative-math",
             "-fno-signed-zeros", "-shared", "-fPIC"]  # fmt: skip
    subprocess.run(["g++", *flags, str(KERNELS / "native.cpp"), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


if __name__ == "__main__":
    main()
