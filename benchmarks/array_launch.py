"""Host time of one call of an array kernel on a GPU, over the driver's own, beside CuPy and PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import cupy
import torch
from measure import save, table
from raw_launch import CODE, floor, repeat, time_bursts

import gridstride as gs

ADD = ("float32 x, float32 y", "float32 z", "z = x + y", "add")
SUM = ("float32 x", "float32 y", "x", "a + b", "y = a", "0", "total")
#: Microseconds over the floor, with PyTorch's tensors and with CuPy's arrays; allocating: over their `empty` too.
GOALS = {"elementwise": (0.9, 1.3), "reduction": (1.9, 2.3)}
N = 32


def main() -> None:
    arrays = {
        "torch": [torch.rand(N, device="cuda") for _ in range(3)],
        "CuPy": [cupy.random.random(N, dtype=cupy.float32) for _ in range(3)],
    }
    results = {"torch": torch.zeros((), device="cuda"), "CuPy": cupy.zeros((), cupy.float32)}
    theirs = cupy.RawKernel(CODE, "add")
    cases = {"floor": floor(theirs, arrays["CuPy"], N)}
    for library, held in arrays.items():
        for name, case in ours(held, results[library]).items():
            cases[f"{name}, {library}"] = repeat(case)
    cases |= {name: repeat(case) for name, case in peers(arrays, results).items()}
    microseconds = time_bursts(cases)
    rows = [row(name, value, microseconds) for name, value in microseconds.items()]
    print(table(rows))
    print("written to", save("array-launch", rows))


def ours(held: list[Any], result: Any) -> dict[str, Callable[[], Any]]:
    """Return our calls with arrays of one library."""
    add, total = gs.ElementwiseKernel(*ADD), gs.ReductionKernel(*SUM)
    x, y, z = held
    assert bool((add(x, y, z) == x + y).all())
    assert abs(float(total(x)) - float(x.sum())) < 1e-4
    return {
        "elementwise with output": partial(add, x, y, z),
        "elementwise allocating": partial(add, x, y),
        "reduction with output": partial(total, x, out=result),
        "reduction allocating": partial(total, x),
    }


def peers(arrays: dict[str, list[Any]], results: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """Return what other libraries take for the same, and to make an array."""
    add, total = cupy.ElementwiseKernel(*ADD), cupy.ReductionKernel(*SUM)
    x, y, z = arrays["CuPy"]
    s, t, u = arrays["torch"]
    return {
        "CuPy ElementwiseKernel with output": partial(add, x, y, z),
        "CuPy ElementwiseKernel allocating": partial(add, x, y),
        "CuPy ReductionKernel with output": partial(total, x, results["CuPy"]),
        "CuPy ReductionKernel allocating": partial(total, x),
        "torch.add(out=)": partial(torch.add, s, t, out=u),
        "torch.add": partial(torch.add, s, t),
        "torch.sum": partial(torch.sum, s),
        "empty, CuPy": partial(cupy.empty, (N,), cupy.float32),
        "empty, torch": partial(torch.empty, (N,), dtype=torch.float32, device="cuda"),
    }


def row(name: str, value: float, microseconds: dict[str, float]) -> dict[str, Any]:
    """Return a line: a call, what it takes over the floor, and what it may."""
    what, _, library = name.partition(", ")
    goal: float | str = ""
    family, _, form = what.partition(" ")
    if family in GOALS and library:
        goal = GOALS[family][library == "CuPy"]
        if form == "allocating":
            goal += microseconds[f"empty, {library}"]
    return {
        "id": f"cuda.launch.{name}", "microseconds": value, "over the floor": value - microseconds["floor"],
        "goal": goal,
    }  # fmt: skip


if __name__ == "__main__":
    main()
