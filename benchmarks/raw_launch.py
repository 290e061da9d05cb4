"""Host time of one raw launch on a GPU, over the driver's own, beside CuPy."""

from __future__ import annotations

import ctypes
import gc
import itertools
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy
import torch
from measure import save, table

import gridstride as gs

BURST, ROUNDS = 300, 31
#: Microseconds over the floor.
GOALS = {"torch tensors": 0.5, "CuPy arrays": 0.9, "prepared": 0.2}

CODE = r"""
extern "C" __global__ void add(const float* x, const float* y, float* z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = x[i] + y[i];
}
"""

FLOOR = r"""
typedef int (*launch_type)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                           void **, void **);
extern "C" int burst(void *launch, void *function, void **parameters, int count) {
    for (int k = 0; k < count; ++k) {
        int code = ((launch_type)launch)(function, 1, 1, 1, 32, 1, 1, 0, 0, parameters, 0);
        if (code) return code;
    }
    return 0;
}
"""


def main() -> None:
    n = 32
    cupy_arrays = [cupy.random.random(n, dtype=cupy.float32) for _ in range(3)]
    torch_arrays = [torch.rand(n, device="cuda") for _ in range(3)]
    ours, theirs = gs.RawKernel(CODE, "add"), cupy.RawKernel(CODE, "add")
    prepared = ours.prepare((1,), (32,), (*torch_arrays, n))
    cases: dict[str, Callable[[], Any]] = {
        "floor": floor(theirs, cupy_arrays, n),
        "torch tensors": burst(ours, (*torch_arrays, n)),
        "CuPy arrays": burst(ours, (*cupy_arrays, n)),
        "prepared": repeat(prepared),
        "CuPy RawKernel": burst(theirs, (*cupy_arrays, n)),
        "torch.add(out=)": repeat(lambda: torch.add(torch_arrays[0], torch_arrays[1], out=torch_arrays[2])),
    }
    check(ours, theirs, cupy_arrays, torch_arrays, n)
    microseconds = time_bursts(cases)
    floor_time = microseconds["floor"]
    rows = [
        {"id": f"cuda.launch.{name}", "microseconds": value, "over the floor": value - floor_time,
         "goal": GOALS.get(name, "")}
        for name, value in microseconds.items()
    ]  # fmt: skip
    print(table(rows))
    print("written to", save("raw-launch", rows))


def burst(kernel: Any, arguments: tuple[Any, ...]) -> Callable[[], None]:
    grid, block = (1,), (32,)

    def run() -> None:
        for _ in itertools.repeat(None, BURST):
            kernel(grid, block, arguments)

    return run


def repeat(call: Callable[[], Any]) -> Callable[[], None]:
    def run() -> None:
        for _ in itertools.repeat(None, BURST):
            call()

    return run


def floor(kernel: Any, arrays: list[Any], n: int) -> Callable[[], None]:
    library = Path(tempfile.mkdtemp()) / "floor.so"
    source = library.with_suffix(".cpp")
    source.write_text(FLOOR)
    subprocess.run(["g++", "-O2", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    loop = ctypes.CDLL(str(library)).burst
    driver = ctypes.CDLL("libcuda.so.1")
    values = [ctypes.c_void_p(array.data.ptr) for array in arrays] + [ctypes.c_int(n)]
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    launch = ctypes.cast(driver.cuLaunchKernel, ctypes.c_void_p)
    function = ctypes.c_void_p(kernel.kernel.ptr)

    def run(keep: object = (values, arrays)) -> None:
        assert loop(launch, function, pointers, BURST) == 0

    return run


def check(ours: Any, theirs: Any, cupy_arrays: list[Any], torch_arrays: list[Any], n: int) -> None:
    for kernel, (x, y, z) in ((ours, cupy_arrays), (theirs, cupy_arrays), (ours, torch_arrays)):
        z[...] = float("nan")
        kernel((1,), (32,), (x, y, z, n))
        assert bool((z == x + y).all())


def time_bursts(cases: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the median microseconds of a call, measured as `timeit` does: without garbage collection."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    gc.collect()
    gc.freeze()  # what the libraries hold would be looked through before every burst
    for round_ in range(ROUNDS + 3):
        for name, case in cases.items():
            elapsed = time_burst(case)
            if round_ >= 3:
                times[name].append(elapsed / BURST * 1e6)
    return {name: sorted(values)[len(values) // 2] for name, values in times.items()}


def time_burst(case: Callable[[], Any]) -> float:
    gc.collect()
    torch.cuda.synchronize()
    gc.disable()
    try:
        start = time.perf_counter()
        case()
        return time.perf_counter() - start
    finally:
        gc.enable()
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
