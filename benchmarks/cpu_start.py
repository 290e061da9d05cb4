"""First launches on the CPU target in fresh processes, and the host time of a warm launch."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

from measure import compiler_suffix, save, table

ROUNDS = 15
#: Seconds.
GOALS = {"cpu.start.cold": 0.150, "cpu.start.new_kernel": 0.150, "cpu.launch.warm": 10e-6}

PROGRAM = r"""
import sys, time
import numpy as np
import gridstride as gs
code = '''extern "C" __global__ void scale(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor; // %s
}'''
x = np.ones(32, np.float32)
for suffix in sys.argv[1:]:
    start = time.perf_counter()
    kernel = gs.RawKernel(code % suffix, "scale")
    kernel((1,), (32,), (x, 2.0, 32))
    print(time.perf_counter() - start)
"""

WARM = r"""
import time
import numpy as np
import gridstride as gs
kernel = gs.RawKernel('''extern "C" __global__ void scale(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}''', "scale")
x = np.ones(32, np.float32)
grid, block, args = (1,), (32,), (x, 1.0, 32)
for _ in range(100):
    kernel(grid, block, args)
for _ in range(15):
    start = time.perf_counter()
    for _ in range(300):
        kernel(grid, block, args)
    print((time.perf_counter() - start) / 300)
"""


def main() -> None:
    cold, new, warm_disk = [], [], []
    for round_ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as cache:
            first, second = run(PROGRAM, cache, f"a{round_}", f"b{round_}")
            cold.append(first)
            new.append(second)
            warm_disk += run(PROGRAM, cache, f"a{round_}")
    with tempfile.TemporaryDirectory() as cache:
        warm = run(WARM, cache)
    rows = [
        row("cpu.start.cold", "first kernel of a process, empty cache", cold),
        row("cpu.start.new_kernel", "a further new kernel", new),
        row("cpu.start.warm", "first kernel of a process, found in the cache", warm_disk),
        row("cpu.launch.warm", "one block of 32 threads, warm", warm),
    ]
    print(table(rows))
    print("written to", save(f"cpu-start{compiler_suffix()}", rows))


def run(program: str, cache: str, *arguments: str) -> list[float]:
    # An installed package has its bytecode; here the first process writes it.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = {**inherited, "GRIDSTRIDE_CACHE_DIR": cache}
    result = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(line) for line in result.stdout.split()]


def row(id_: str, case: str, seconds: list[float]) -> dict[str, object]:
    return {"id": id_, "case": case, "median": statistics.median(seconds), "minimum": min(seconds),
            "maximum": max(seconds), "goal": GOALS.get(id_, "")}  # fmt: skip


if __name__ == "__main__":
    main()
