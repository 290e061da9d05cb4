"""Time to the first result of an array kernel in a fresh process, beside CuPy's."""

from __future__ import annotations

import sys
import tempfile

from fresh_processes import report, run

ROUNDS = 5
#: Seconds.
GOALS = {
    "elementwise, ours cold": 0.040, "elementwise, ours warm": 0.003,
    "reduction, ours cold": 0.050, "reduction, ours warm": 0.003,
}  # fmt: skip

PROGRAM = r"""
import time
import cupy
x = cupy.ones(32, cupy.float32)  # the context exists from here on
cupy.cuda.runtime.deviceSynchronize()
import {package} as library
start = time.perf_counter()
y = {call}
cupy.cuda.runtime.deviceSynchronize()
print(time.perf_counter() - start)
assert float(y.sum()) == {expected}
"""
CALLS = {
    "elementwise": (
        'library.ElementwiseKernel("float32 x", "float32 y", "y = 2 * x; /* {salt} */", "twice")(x)',
        64,
    ),
    "reduction": (
        'library.ReductionKernel("float32 x", "float32 y", "x", "a + b", "y = a /* {salt} */", "0", "total")(x)',
        32,
    ),
}


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    times: dict[str, list[float]] = {}
    for round_ in range(rounds + 1):
        for family, (call, expected) in CALLS.items():
            for name, package in (("ours", "gridstride"), ("CuPy", "cupy")):
                with tempfile.TemporaryDirectory() as cache:
                    salted = call.format(salt=f"{name}{round_}")
                    program = PROGRAM.format(package=package, call=salted, expected=expected)
                    for state in ("cold", "warm"):
                        elapsed = run(program, cache)
                        if round_ > 0:
                            times.setdefault(f"{family}, {name} {state}", []).append(elapsed)
    report("array-start", times, GOALS)


if __name__ == "__main__":
    main()
