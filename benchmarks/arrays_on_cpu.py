"""Time array kernels on the CPU target, in turn with NumPy, numexpr, numba and a copy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any

import array_kernels
import numpy as np
from array_kernels import SCALAR, Case
from array_rows import Fold, Layout, folds, layouts
from measure import interleave, medians
from peers import arrays_by_numba, arrays_by_numexpr

import gridstride as gs

ELEMENTS = 1 << int(os.environ.get("LOG2_ELEMENTS", "25"))
REPEATS = int(os.environ.get("REPEATS", "15"))
#: What a row may take of the time in which a copy moves its bytes.
_GOAL, _GOAL_TRANSPOSED = 1.3, 2.0
_TRANSPOSED = ("transposed", "odd_transposed", "both_transposed", "permuted41302", "permuted30421")
_NUMPY = {
    "axpy": lambda a, x, y, z: np.add(np.multiply(x, a, out=z), y, out=z),
    "add": lambda x, y, z: np.add(x, y, out=z),
    "multiply": lambda x, y, z: np.multiply(x, y, out=z),
    "increment": lambda x, z: np.add(x, x.dtype.type(1), out=z),
}


def measure(
    lines: list[dict[str, Any]],
    families: Sequence[str],
    dtypes: Sequence[str],
    rows: Sequence[str] | None,
    with_peers: bool,
) -> None:
    """Append the lines of the tables, which are printed as they are made."""
    source, target = np.ones(4 * ELEMENTS, np.int8), np.empty(4 * ELEMENTS, np.int8)
    copy = partial(np.copyto, target, source)
    for dtype in dtypes:
        if dtype == "bfloat16":
            continue  # no peer has it
        flat = [_random(dtype) for _ in range(3)]
        for family in families:
            for case in (_elementwise if family == "elementwise" else _reductions)(dtype, flat):
                if rows is None or case.id.rpartition(f".{dtype}")[0].partition(".")[2] in rows:
                    lines.append(_line(case, copy, with_peers))
                    print(_shown(lines[-1]), flush=True)


def _random(dtype: str) -> Any:
    generator = np.random.default_rng(1)
    if np.dtype(dtype).kind == "i":
        return generator.integers(-100, 100, ELEMENTS, dtype)
    found = generator.standard_normal(ELEMENTS, np.float32)
    return found.astype(dtype) * (1 + 0.5j) if dtype == "complex64" else found.astype(dtype)


def _elementwise(dtype: str, flat: Sequence[Any]) -> Iterator[Case]:
    ours = array_kernels.elementwise_kernels(gs)
    for layout in layouts(*flat, np.dtype(dtype).itemsize):
        scalar = (np.dtype(dtype).type(SCALAR),) if layout.operation == "axpy" else ()
        by_numpy = partial(_NUMPY[layout.operation], *scalar, *layout.operands)
        peers = {"NumPy": by_numpy}
        for name, module in (("numexpr", arrays_by_numexpr), ("numba", arrays_by_numba)):
            run = module.elementwise(layout, scalar)
            if run is not None:
                peers[name] = run
        yield Case(
            f"cpu.{layout.id}.{dtype}", array_kernels.call(ours[layout.operation], layout), peers,
            partial(_check_elements, by_numpy, layout), layout.bytes, layout.bytes, _goal(layout),
        )  # fmt: skip


def _goal(layout: Layout) -> float:
    return _GOAL_TRANSPOSED if layout.id in _TRANSPOSED else _GOAL


def _check_elements(by_numpy: Callable[[], Any], layout: Layout, _: Any) -> None:
    own = layout.operands[-1].copy()
    by_numpy()
    np.testing.assert_allclose(own[..., ::997], layout.operands[-1][..., ::997], rtol=1e-2, atol=1e-2)


def _reductions(dtype: str, flat: Sequence[Any]) -> Iterator[Case]:
    ours = array_kernels.reduction_kernels(gs)
    is_integer = np.dtype(dtype).kind == "i"
    for fold in folds(ELEMENTS):
        x = flat[0][: prod(fold.shape)].reshape(fold.shape)
        # Given an output, as numba is: else the time of new pages is most of that of many results.
        out = np.empty(x.sum(fold.axis).shape, np.int64 if is_integer else dtype)
        peers = {"NumPy": partial(np.sum, x, axis=fold.axis, out=out)}
        for name, module in (("numexpr", arrays_by_numexpr), ("numba", arrays_by_numba)):
            run = module.reduction(x, fold.axis)
            if run is not None:
                peers[name] = run
        yield Case(
            f"cpu.sum.{fold.id}.{dtype}", partial(ours["sum64" if is_integer else "sum"], x, axis=fold.axis, out=out),
            peers, partial(_check_sum, fold, x), x.nbytes, x.nbytes, _GOAL,
        )  # fmt: skip


def _check_sum(fold: Fold, x: Any, result: Any) -> None:
    exact = np.complex128 if x.dtype.kind == "c" else np.float64
    folded = prod(fold.shape) if fold.axis is None else fold.shape[fold.axis]
    np.testing.assert_allclose(result, x.sum(fold.axis, exact), rtol=1e-2, atol=1e-3 * folded**0.5)


def _line(case: Case, copy: Callable[[], Any], with_peers: bool) -> dict[str, Any]:
    case.check(case.ours())
    cases = {"ours": case.ours, "copy": copy, **(case.peers if with_peers else {})}
    times = medians(interleave(cases, repeats=REPEATS, warmup=1))
    bound = times["copy"] * case.bytes / (8 * ELEMENTS)
    line = {"id": case.id, "milliseconds": times["ours"] * 1e3, "of the copy's time": times["ours"] / bound}
    best = min((times[name] for name in cases if name not in ("ours", "copy")), default=0.0)
    line |= {
        f"of {name}'s time": times["ours"] / times[name] for name in cases if name not in ("ours", "copy")
    }
    is_bound = (
        times["ours"] <= case.goal * bound or case.id.startswith("cpu.sum.small") or "float16" in case.id
    )
    line["goal"] = case.goal
    line["is met"] = bool(is_bound and (not best or times["ours"] <= 1.02 * best))
    return line


def _shown(line: dict[str, Any]) -> str:
    cells = [f"{line['id']:34}"]
    for name, value in line.items():
        if isinstance(value, bool):
            cells.append("" if value else "BELOW")
        elif isinstance(value, float) and name != "goal":
            cells.append(f"{name.removeprefix('of ').removesuffix(chr(39) + 's time')} {value:.3f}")
    return "  ".join(cells)
