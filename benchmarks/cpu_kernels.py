"""Kernels on the CPU target beside native code and other ways to write them, interleaved in one process."""

from __future__ import annotations

import argparse
import os

# Threads that spin while they wait would slow whoever runs next in this process.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("NUMBA_THREADING_LAYER", "workqueue")

import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import peers
from measure import compiler_suffix, interleave, medians, save, table
from workloads import BLOCK, BLOCKS, BODIES, MATRIX, QUICK, WIDTH, WORKLOADS, A, Arrays, N, Workload

import gridstride as gs

KERNELS = Path(__file__).parent / "kernels" / "cpu.cu"
#: Nanoseconds that one thread may spend at a barrier.
BARRIER_GOAL = 10.0
_BARRIERS, _BARRIER_BLOCKS = 1000, 64
#: Workloads whose threads meet at the same memory: more cores must not make them slower.
CONTENDED = frozenset({"histogram"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="workloads to measure; nothing is saved then"
    )
    parser.add_argument("--repeats", type=int, default=15)
    parsed = parser.parse_args()
    module = gs.RawModule(code=KERNELS.read_text())
    found = peers.available()
    rows = []
    for workload in WORKLOADS:
        if not parsed.only or workload.name in parsed.only:
            rows.append(measure(workload, module, found, parsed.repeats))
            print(table([shown(rows[-1])]), flush=True)
    if parsed.only or QUICK:
        return
    rows.append(barrier(module, parsed.repeats))
    print(table([{"id": rows[-1]["id"], "ns": rows[-1]["median_ns"], "goal": BARRIER_GOAL}]))
    print("written to", save(f"cpu-kernels{compiler_suffix()}", rows))


def measure(
    workload: Workload, module: gs.RawModule, found: Mapping[str, Any], repeats: int
) -> dict[str, Any]:
    """Return a workload's row: the seconds of every call of every case."""
    original = workload.make(np.random.default_rng(1))
    expected = workload.expected(original)
    cases: dict[str, Callable[[], object]] = {}
    for name, make in (("ours", ours(module)), *((name, peer.case) for name, peer in found.items())):
        arrays = {key: array.copy() for key, array in original.items()}
        case = make(workload.name, arrays)
        if case is not None:
            case()
            check(f"{workload.name} by {name}", workload.result(arrays), expected)
            cases[name] = case
    if workload.name in CONTENDED:
        cases["ours, one core"] = on_one_core(cases["ours"])
    if "native" in found and workload.moved:
        source = np.random.default_rng(2).random(N, dtype=np.float32)
        cases["copy"] = found["native"].copy(source, np.empty_like(source))
    return {
        "id": workload.id,
        "title": workload.title,
        "tier": module.get_function(workload.name).explain().tier,
        "moved_bytes": workload.moved,
        "goal": workload.goal,
        "later": workload.later,
        "seconds": interleave(cases, repeats),
    }


def ours(module: gs.RawModule) -> Callable[[str, Arrays], Callable[[], object]]:
    """Return what makes gridstride's call for a workload."""

    def case(name: str, a: Arrays) -> Callable[[], object]:
        kernel = module.get_function(name)
        match name:
            case "axpy":
                return lambda: kernel((BLOCKS,), (BLOCK,), (A, a["x"], a["y"], N))
            case "grid_stride_axpy":
                return lambda: kernel((64,), (BLOCK,), (A, a["x"], a["y"], N))
            case "gray_scott":
                return lambda: kernel((WIDTH // 32, WIDTH // 8), (32, 8), (*a.values(), WIDTH, WIDTH))
            case "n_body":
                return lambda: kernel((BODIES // BLOCK,), (BLOCK,), (*a.values(), BODIES))
            case "matmul":
                return lambda: kernel((MATRIX // 16, MATRIX // 16), (16, 16), (*a.values(), MATRIX))
            case "tree_sum":
                return lambda: kernel((BLOCKS,), (BLOCK,), (*a.values(), N), shared_mem=4 * BLOCK)
            case "histogram":
                return lambda: (a["counts"].fill(0), kernel((BLOCKS,), (BLOCK,), (*a.values(), N)))
        return lambda: kernel((BLOCKS,), (BLOCK,), (*a.values(), N))

    return case


def on_one_core(case: Callable[[], object]) -> Callable[[], object]:
    """Return a call on one core of what is usually run on all."""

    def run() -> None:
        threads = gs.get_num_threads()
        gs.set_num_threads(1)
        case()
        gs.set_num_threads(threads)

    return run


def check(what: str, got: np.ndarray, expected: np.ndarray) -> None:
    """Compare a result with float64 arithmetic: sums of ten million floats keep four digits."""
    error = np.abs(got - expected)
    if not error.max() <= 2e-4 * max(1.0, float(np.abs(expected).max())):
        raise AssertionError(f"{what}: wrong by up to {error.max()}")


def barrier(module: gs.RawModule, repeats: int) -> dict[str, Any]:
    """Return the nanoseconds that a thread spends at a barrier, with 256 threads in a block."""
    kernel = module.get_function("barriers")
    times = interleave({"ours": lambda: kernel((_BARRIER_BLOCKS,), (BLOCK,), (_BARRIERS,))}, repeats)
    workers = min(gs.get_num_threads(), _BARRIER_BLOCKS)
    passed = _BARRIERS * _BARRIER_BLOCKS * BLOCK / workers
    return {
        "id": "cpu.kernels.barrier",
        "title": "a barrier, for each thread of a block of 256",
        "goal_ns": BARRIER_GOAL,
        "median_ns": statistics.median(times["ours"]) / passed * 1e9,
        "seconds": times,
    }


def shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as it is printed: milliseconds of ours, and everything over native."""
    middle = medians(row["seconds"])
    base = middle.get("native", middle["ours"])
    ratios = {name: value / base for name, value in middle.items() if name not in ("native", "copy")}
    return {"id": row["id"], "ours ms": middle["ours"] * 1e3, **ratios, "goal": row["goal"] or ""}


if __name__ == "__main__":
    main()
