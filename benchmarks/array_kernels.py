"""Elementwise kernels and reductions: on a GPU as fractions of the copy rate, on a CPU of the time of a copy.

usage: array_kernels.py [cpu] [elementwise] [reductions] [dtype ...] [--rows ID ...]   (all by default)
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from array_rows import Layout
from measure import save

import gridstride as gs

DTYPES = ("float32", "float16", "bfloat16", "float64", "int8", "int32", "complex64")
FAMILIES = ("elementwise", "reductions")

_TEXTS = {
    "axpy": ("T a, T x, T y", "T z", "z = a * x + y"),
    "add": ("T x, T y", "T z", "z = x + y"),
    "multiply": ("T x, T y", "T z", "z = x * y"),
    "increment": ("T x", "T z", "z = x + T(1)"),
}
_SUMS = {
    "sum": ("T x", "T y", "x", "a + b", "y = a", "0"),
    "sum64": ("T x", "int64 y", "x", "a + b", "y = a", "0"),
}
SCALAR = 3


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
        See `array_rows`.
    """

    id: str
    ours: Callable[[], Any]
    peers: dict[str, Callable[[], Any]]
    check: Callable[[Any], None]
    bytes: int
    sectors: int
    goal: float | None


def elementwise_kernels(library: Any) -> dict[str, Any]:
    """Return the kernels by operation, of gridstride or CuPy."""
    return {name: library.ElementwiseKernel(*texts, name) for name, texts in _TEXTS.items()}


def reduction_kernels(library: Any) -> dict[str, Any]:
    """Return the sums, of gridstride or CuPy."""
    return {name: library.ReductionKernel(*texts, f"kernel_{name}") for name, texts in _SUMS.items()}


def call(kernel: Any, layout: Layout) -> Callable[[], Any]:
    """Return the call of a kernel with a layout's operands."""
    scalar = (SCALAR,) if layout.operation == "axpy" else ()
    return partial(kernel, *scalar, *layout.operands)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*FAMILIES, *DTYPES, "cpu", []])
    parser.add_argument("--rows", nargs="*", help="ids without target and dtype, such as square.0")
    parser.add_argument("--no-peers", action="store_true")
    wanted = parser.parse_args()
    families = [each for each in FAMILIES if each in wanted.parts] or FAMILIES
    dtypes = [each for each in DTYPES if each in wanted.parts] or DTYPES
    on_gpu = gs.cuda.is_available() and "cpu" not in wanted.parts
    if on_gpu:
        import arrays_on_gpu as machine
    else:
        import arrays_on_cpu as machine
    rows: list[dict[str, Any]] = []
    whole = not wanted.parts and wanted.rows is None and not wanted.no_peers
    try:
        machine.measure(rows, families, dtypes, wanted.rows, not wanted.no_peers)
    finally:  # what was measured before an interrupt counts
        if whole or on_gpu:
            print("written to", save(f"array-kernels-{'gpu' if on_gpu else 'cpu'}", rows))


if __name__ == "__main__":
    main()
