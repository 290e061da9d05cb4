"""Time array kernels on the CPU target, in turn with NumPy, numexpr, numba, PyTorch (bfloat16) and a copy."""

from __future__ import annotations

import os

# Threads that spin while they wait would take a core from whoever runs next in this process.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from math import prod
from typing import Any

import array_kernels
import numpy as np
from array_kernels import SCALAR, Case
from array_rows import Fold, Layout, folds, layouts, takes
from everyday_rows import everyday_layouts
from measure import interleave, medians, one_line
from peers import arrays_by_numba, arrays_by_numexpr, arrays_by_torch
from supervise import Plan

import gridstride as gs

ELEMENTS = 1 << int(os.environ.get("LOG2_ELEMENTS", "25"))
REPEATS = int(os.environ.get("REPEATS", "15"))
_PEERS = {"numexpr": arrays_by_numexpr, "numba": arrays_by_numba, "PyTorch": arrays_by_torch}
#: Operations that all peers have.
_OF_ALL = ("axpy", "add", "multiply", "increment")
#: What a row may take of the time in which a copy moves its bytes.
_GOAL, _GOAL_TRANSPOSED = 1.3, 2.0
_TRANSPOSED_ORDERS = ("41302", "24031", "30421", "021", "04213", "210")
_NUMPY_REDUCTIONS = {"sum": np.sum, "max": np.max, "mean": np.mean, "var": np.var, "argmax": np.argmax}
_NUMPY = {
    "axpy": lambda a, x, y, z: np.add(np.multiply(x, a, out=z), y, out=z),
    "add": lambda x, y, z: np.add(x, y, out=z),
    "multiply": lambda x, y, z: np.multiply(x, y, out=z),
    "increment": lambda x, z: np.add(x, x.dtype.type(1), out=z),
    "distances": lambda x, y, z: np.sum((x - y) ** 2, axis=2, dtype=z.dtype, out=z),
    "copy": lambda x, z: np.copyto(z, x),
    "subtract": lambda x, y, z: np.subtract(x, y, out=z),
    "add3": lambda x, y, w, z: np.add(x + y, w, out=z),
    "affine": lambda x, s, b, z: np.add(np.multiply(x, s, out=z), b, out=z),
    "stencil5": lambda x, a, b, c, d, z: np.subtract(a + b + c + d, 4 * x, out=z),
    "stencil7": lambda x, a, b, c, d, e, f, z: np.subtract(a + b + c + d + e + f, 6 * x, out=z),
}


def begin() -> list[dict[str, Any]]:
    """Return no lines: the copy is timed beside each row."""
    return []


@cache
def copy() -> Callable[[], Any]:
    """Return the call that copies as many bytes as an operand of four bytes has."""
    source, target = np.ones(4 * ELEMENTS, np.int8), np.empty(4 * ELEMENTS, np.int8)
    return partial(np.copyto, target, source)


def cases(dtype: str, plan: Plan) -> Iterator[Case]:
    """Yield the rows of a dtype."""
    flat = [_random(_dtype(dtype)) for _ in range(3)]
    if "elementwise" in plan.families:
        yield from _elementwise(_dtype(dtype), flat, layouts, _goal)
    if "everyday" in plan.families:
        yield from _elementwise(_dtype(dtype), flat, everyday_layouts, _everyday_goal)
    if "reductions" in plan.families:
        yield from _reductions(dtype, flat[0], plan)


def clean() -> None:
    """Do nothing: arrays go by themselves."""


def _dtype(name: str) -> np.dtype[Any]:
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def _random(dtype: np.dtype[Any]) -> Any:
    generator = np.random.default_rng(1)
    if dtype.kind == "i":
        return generator.integers(-100, 100, ELEMENTS, dtype)
    found = generator.standard_normal(ELEMENTS, np.float32)
    return found.astype(dtype) * dtype.type(1 + 0.5j) if dtype.kind == "c" else found.astype(dtype)


def _elementwise(
    dtype: np.dtype[Any],
    flat: Sequence[Any],
    rows: Callable[..., Iterator[Layout]],
    goal: Callable[[Layout], float],
) -> Iterator[Case]:
    ours = array_kernels.elementwise_kernels(gs)
    for layout in rows(*flat, dtype.itemsize):
        scalar = (dtype.type(SCALAR),) if layout.operation == "axpy" else ()
        by_numpy = partial(_NUMPY[layout.operation], *scalar, *layout.operands)
        peers = {"NumPy": by_numpy}
        for name, module in _PEERS.items():
            run = module.elementwise(layout, scalar) if layout.operation in _OF_ALL else None
            if run is not None:
                peers[name] = run
        yield Case(
            f"cpu.{layout.id}.{dtype.name}", array_kernels.call(ours[layout.operation], layout), peers,
            partial(_check_elements, by_numpy, layout), layout.bytes, layout.bytes, goal(layout),
        )  # fmt: skip


def _everyday_goal(_: Layout) -> float:
    return _GOAL_TRANSPOSED


def _goal(layout: Layout) -> float:
    order = layout.id.rpartition("permuted")[2]
    is_transposed = "transposed" in layout.id or layout.id == "channels" or order in _TRANSPOSED_ORDERS
    return _GOAL_TRANSPOSED if is_transposed else _GOAL


def _check_elements(by_numpy: Callable[[], Any], layout: Layout, _: Any) -> None:
    own = layout.operands[-1].copy()
    by_numpy()
    found, expected = (_widened(each[..., ::997]) for each in (own, layout.operands[-1]))
    # NumPy rounds the product too, to 8 bits.
    tolerance = 1e-1 if own.dtype.name == "bfloat16" else 1e-2
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def _widened(x: Any) -> Any:
    return x.astype(np.float32) if x.dtype.name == "bfloat16" else x


def _reductions(dtype: str, x: Any, plan: Plan) -> Iterator[Case]:
    for fold in folds(ELEMENTS):
        # What makes a case compiles the kernel.
        if takes(fold.kind, dtype) and plan.wants_row(f"{fold.kind}.{fold.id}"):
            yield _reduction(fold, dtype, x[: prod(fold.shape)].reshape(fold.shape))


def _reduction(fold: Fold, dtype: str, x: Any) -> Case:
    kernel = array_kernels.reduction_kernel(gs, fold.kind, dtype)
    # Given outputs, as numba is: else the time of new pages is most of that of many results.
    results = kernel(x, axis=fold.axis)
    ours = partial(kernel, x, axis=fold.axis, out=results)
    first = results[0] if fold.kind == "argmax" else results
    peers = {"NumPy": partial(_NUMPY_REDUCTIONS[fold.kind], x, axis=fold.axis, out=first)}
    if fold.kind == "sum":
        for name, module in _PEERS.items():
            run = module.reduction(x, fold.axis)
            if run is not None:
                peers[name] = run
    moved = x.nbytes + fold.result_bytes(dtype, x.itemsize)
    return Case(
        f"cpu.{fold.kind}.{fold.id}.{dtype}", ours, peers, partial(_check_reduction, fold, x), moved, moved, _GOAL
    )  # fmt: skip


def _check_reduction(fold: Fold, x: Any, result: Any) -> None:
    if fold.kind == "argmax":
        np.testing.assert_array_equal(result[0], np.argmax(x, fold.axis))
        np.testing.assert_array_equal(result[1], np.max(x, fold.axis))
        return
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    options = {} if fold.kind == "max" else {"dtype": wide}
    tolerance = {"sum": 1e-3 * fold.folded**0.5, "max": 0.0, "mean": 1e-3, "var": 1e-2}[fold.kind]
    expected = _NUMPY_REDUCTIONS[fold.kind](x, axis=fold.axis, **options)
    np.testing.assert_allclose(
        _widened(np.asarray(result)), _widened(np.asarray(expected)), rtol=1e-2, atol=tolerance
    )


def line(case: Case) -> dict[str, Any]:
    """Check and time a case."""
    case.check(case.ours())
    times = medians(interleave({"ours": case.ours, "copy": copy(), **case.peers}, repeats=REPEATS, warmup=1))
    bound = times["copy"] * case.bytes / (8 * ELEMENTS)
    found = {"id": case.id, "milliseconds": times["ours"] * 1e3, "of the copy's time": times["ours"] / bound}
    best = min((times[name] for name in case.peers), default=0.0)
    found |= {f"of {name}'s time": times["ours"] / times[name] for name in case.peers}
    is_bound = (
        times["ours"] <= case.goal * bound
        or case.id.startswith("cpu.sum.small")
        or case.id.endswith(".float16")
    )
    found["goal"] = case.goal
    found["is met"] = bool(is_bound and (not best or times["ours"] <= 1.02 * best))
    return found


def shown(line: dict[str, Any]) -> str:
    """Return a line as text."""
    return one_line(line, lambda name: name.removeprefix("of ").removesuffix("'s time"))
