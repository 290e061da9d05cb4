"""Elementwise kernels and reductions: on a GPU as fractions of the copy rate, on a CPU of the time of a copy.

Without arguments everything is measured and written to `results/`; parts are with --save, into the file of the day.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import supervise
from array_rows import Layout
from measure import Record

import gridstride as gs

#: The last ones are those of which peers have the slowest rows: what others leave of the time is theirs.
DTYPES = ("float32", "bfloat16", "int32", "complex64", "float64", "float16", "int8")
FAMILIES = ("elementwise", "reductions", "everyday")
SCALAR = 3

_TEXTS = {
    "axpy": ("T a, T x, T y", "T z", "z = a * x + y"),
    "add": ("T x, T y", "T z", "z = x + y"),
    "multiply": ("T x, T y", "T z", "z = x * y"),
    "increment": ("T x", "T z", "z = x + T(1)"),
    "copy": ("T x", "T z", "z = x"),
    "subtract": ("T x, T y", "T z", "z = x - y"),
    "add3": ("T x, T y, T w", "T z", "z = x + y + w"),
    "affine": ("T x, T s, T b", "T z", "z = s * x + b"),
    "stencil5": ("T x, T a, T b, T c, T d", "T z", "z = a + b + c + d - T(4) * x"),
    "stencil7": ("T x, T a, T b, T c, T d, T e, T f", "T z", "z = a + b + c + d + e + f - T(6) * x"),
}
_PLACE = """
struct candidate { T value; long long place; };
__device__ inline candidate earlier(candidate a, candidate b) {
    return a.value > b.value || (a.value == b.value && a.place < b.place) ? a : b;
}"""
_SUMS = """
struct sums { ACCUMULATOR values, squares; };
__device__ inline sums added(sums a, sums b) { return sums{a.values + b.values, a.squares + b.squares}; }
template <class R> __device__ inline sums of(const R& x) {
    const ACCUMULATOR value = ACCUMULATOR(x);
    return sums{value, value * value};
}"""
_VARIANCE = "y = (a.squares - a.values * (a.values / _fold_size)) / _fold_size"


class Case(NamedTuple):
    """One line of a table.

    Attributes
    ----------
    id : str
    ours : callable
        Makes the call and returns the result.
    peers : dict of callable
        The same by others.
    check : callable
        Given our result, raises where it is wrong.
    bytes, sectors : int
        That must move, and of the sectors that the layout touches.
    goal : float or None
    operations : int
        See `array_rows`.
    """

    id: str
    ours: Callable[[], Any]
    peers: dict[str, Callable[[], Any]]
    check: Callable[[Any], None]
    bytes: int
    sectors: int
    goal: float | None
    operations: int = 0


@cache
def elementwise_kernels(library: Any) -> dict[str, Any]:
    """Return the kernels by operation, of gridstride or CuPy."""
    distances = library.ReductionKernel(
        "T x, T y", "T z", "(x - y) * (x - y)", "a + b", "z = a", "0", "distances"
    )
    return {name: library.ElementwiseKernel(*texts, name) for name, texts in _TEXTS.items()} | {
        "distances": partial(distances, axis=2)
    }


@cache
def reduction_kernel(library: Any, kind: str, dtype: str) -> Any:
    """Return the kernel of a kind of reduction, of gridstride or (sums) CuPy."""
    if kind == "sum":
        result = "int64 y" if dtype.startswith("int") else "T y"
        return library.ReductionKernel("T x", result, "x", "a + b", "y = a", "0", "kernel_sum")
    if kind == "max":
        return library.ReductionKernel("T x", "T y", "x", "a > b ? a : b", "y = a", None, "kernel_max")
    if kind == "mean":
        return library.ReductionKernel(
            "T x", "T y", "x", "a + b", "y = a * (1.0 / _fold_size)", "0", "kernel_mean"
        )
    if kind == "var":
        return library.ReductionKernel(
            "T x", "T y", "of(x)", "added(a, b)", _VARIANCE, "sums{0, 0}", "kernel_var", "sums",
            preamble=_SUMS.replace("ACCUMULATOR", "double" if dtype == "float64" else "float"),
        )  # fmt: skip
    return library.ReductionKernel(
        "T x", "int64 k, T v", "candidate{x, _J}", "earlier(a, b)", "k = a.place; v = a.value", None, "kernel_argmax",
        "candidate", preamble=_PLACE,
    )  # fmt: skip


def call(kernel: Any, layout: Layout) -> Callable[[], Any]:
    """Return the call of a kernel with a layout's operands."""
    scalar = (SCALAR,) if layout.operation == "axpy" else ()
    return partial(kernel, *scalar, *layout.operands)


def main() -> int:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*FAMILIES, *DTYPES, "cpu", []], help="by default all")
    parser.add_argument("--rows", nargs="+", help="ids without target and dtype: sum.square.0 or 'permuted*'")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no row begins")
    parser.add_argument("--row-seconds", type=float, default=60, help="after which a row is given up")
    parser.add_argument("--save", action="store_true", help="let the rows join those of the day's file")
    wanted = parser.parse_args()
    on_gpu = "cpu" not in wanted.parts and gs.cuda.is_available()
    plan = supervise.Plan(
        f"arrays_on_{'gpu' if on_gpu else 'cpu'}",
        [each for each in FAMILIES if each in wanted.parts] or FAMILIES,
        [each for each in DTYPES if each in wanted.parts] or DTYPES,
        wanted.rows,
        not wanted.no_peers,
        time.monotonic() + wanted.seconds,
        wanted.row_seconds,
        "peers.arrays_by_cupy" if on_gpu else "",
    )
    is_whole = not set(wanted.parts) - {"cpu"} and wanted.rows is None and plan.with_peers
    record = Record(f"array-kernels-{'gpu' if on_gpu else 'cpu'}", is_whole or wanted.save, wanted.save)
    outcome = supervise.measure(plan, record)
    if is_whole or wanted.save:
        print("written to", record.path)
    return int(bool(outcome.failed or outcome.left_out))


if __name__ == "__main__":
    sys.exit(main())
