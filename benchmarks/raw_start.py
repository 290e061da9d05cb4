"""Time to the first result of a raw kernel in a fresh process, beside CuPy's."""

from __future__ import annotations

import tempfile

from fresh_processes import report, run

ROUNDS = 7
#: Seconds.
GOALS = {"ours cold": 0.025, "ours warm": 0.0004}

COMMON = r"""
import time
import cupy
x = cupy.ones(32, cupy.float32)  # the context exists from here on
cupy.cuda.runtime.deviceSynchronize()
import {package} as library
start = time.perf_counter()
kernel = library.RawKernel('''extern "C" __global__ void scale(float* x, float factor, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor; // {salt}
}}''', "scale")
kernel((1,), (32,), (x, cupy.float32(2), cupy.int32(32)))
cupy.cuda.runtime.deviceSynchronize()
print(time.perf_counter() - start)
assert float(x.sum()) == 64
"""

IMPORT = (
    "import time, numpy; start = time.perf_counter(); import {package}; print(time.perf_counter() - start)"
)


def main() -> None:
    times: dict[str, list[float]] = {}
    for round_ in range(ROUNDS + 1):
        for name, package in (("ours", "gridstride"), ("CuPy", "cupy")):
            with tempfile.TemporaryDirectory() as cache:
                program = COMMON.format(package=package, salt=f"{name}{round_}")
                for state in ("cold", "warm"):
                    elapsed = run(program, cache)
                    if round_ > 0:
                        times.setdefault(f"{name} {state}", []).append(elapsed)
                times.setdefault(f"{name} import, over NumPy's", []).append(
                    run(IMPORT.format(package=package), cache)
                )
    report("raw-start", times, GOALS)


if __name__ == "__main__":
    main()
