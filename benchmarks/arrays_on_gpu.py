"""Time array kernels on a GPU by events, beside CuPy's kernels and PyTorch over the same memory."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any

import array_kernels
import cupy
import torch
from array_kernels import SCALAR, Case
from array_rows import Fold, Layout, folds, layouts, sectors

import gridstride as gs

SIZE = 1 << 30  # bytes of an operand
_TORCH = {
    "axpy": lambda a, x, y, z: torch.add(y, x, alpha=a, out=z),
    "add": lambda x, y, z: torch.add(x, y, out=z),
    "multiply": lambda x, y, z: torch.mul(x, y, out=z),
    "increment": lambda x, z: torch.add(x, 1, out=z),
}
_MOST_RUNS, _LEAST_RUNS, _ENOUGH = 15, 3, 0.08  # seconds


def measure(
    lines: list[dict[str, Any]],
    families: Sequence[str],
    dtypes: Sequence[str],
    rows: Sequence[str] | None,
    with_peers: bool,
) -> None:
    """Append the lines of the tables, which are printed as they are made."""
    rate = copy_rate()
    print(f"copy {rate / 1e9:.0f} GB/s")
    lines += [{"id": "cuda.copy", "GB/s": rate / 1e9}, _fill(rate)]
    for dtype in dtypes:
        flat = [_random(dtype) for _ in range(3)]
        for family in families:
            for case in _cases(family, dtype, flat, with_peers):
                if rows is None or case.id.rpartition(f".{dtype}")[0].partition(".")[2] in rows:
                    lines.append(_line(case, rate))
                    print(_shown(lines[-1]), flush=True)
        del flat
        torch.cuda.empty_cache()


def copy_rate() -> float:
    """Return bytes read and written a second by a copy on the device."""
    x, z = (torch.rand(SIZE // 4, device="cuda") for _ in range(2))
    return 2 * SIZE / seconds(lambda: z.copy_(x))


def seconds(run: Callable[[], Any], busy: bool = True) -> float:
    """Return the median time between events around a call.

    Parameters
    ----------
    run : callable
    busy : bool
        Whether the stream is kept busy while the host prepares the call, so that only the device's time counts.
    """
    run()
    spans: list[float] = []
    while len(spans) < _LEAST_RUNS or (len(spans) < _MOST_RUNS and sum(spans) < _ENOUGH):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if busy:
            torch.cuda._sleep(600_000)
        start.record()
        run()
        end.record()
        end.synchronize()
        spans.append(start.elapsed_time(end) * 1e-3)
    return statistics.median(spans)


def _fill(rate: float) -> dict[str, Any]:
    z = torch.empty(SIZE // 4, device="cuda")
    fill = SIZE / seconds(lambda: z.fill_(1.5)) / rate
    print(f"fill, the ceiling of calls that only write: {fill:.3f}")
    return {"id": "cuda.fill", "of copy": fill}


def _random(dtype: str) -> Any:
    kind = getattr(torch, dtype)
    if kind.is_floating_point or kind.is_complex:
        return torch.randn(SIZE // kind.itemsize, device="cuda", dtype=kind)
    return torch.randint(-100, 100, (SIZE // kind.itemsize,), device="cuda", dtype=kind)


def _cases(family: str, dtype: str, flat: Sequence[Any], with_peers: bool) -> Iterator[Case]:
    make = _elementwise if family == "elementwise" else _reductions
    for case in make(dtype, flat):
        yield case if with_peers else case._replace(peers={})


def _cupy(tensor: Any) -> Any:
    """Return CuPy's array over a tensor's memory; the tensor where CuPy has no such dtype."""
    return tensor if tensor.dtype == torch.bfloat16 else cupy.asarray(tensor)


def _elementwise(dtype: str, flat: Sequence[Any]) -> Iterator[Case]:
    ours, theirs = array_kernels.elementwise_kernels(gs), array_kernels.elementwise_kernels(cupy)
    has_cupy = dtype != "bfloat16"
    itemsize = flat[0].element_size()
    of_torch = list(layouts(*flat, itemsize))
    of_cupy: list[Layout] = list(layouts(*map(_cupy, flat), itemsize))
    for layout, tensors in zip(of_cupy, of_torch, strict=True):
        scalar = (SCALAR,) if layout.operation == "axpy" else ()
        by_torch = partial(_TORCH[layout.operation], *scalar, *tensors.operands)
        peers = {"CuPy": array_kernels.call(theirs[layout.operation], layout)} if has_cupy else {}
        if layout.id != "reversed":
            peers["torch"] = by_torch
        touched = sum(_sectors(each) for each in layout.operands)
        yield Case(
            f"cuda.{layout.id}.{dtype}", array_kernels.call(ours[layout.operation], layout), peers,
            partial(_check_elements, by_torch, tensors.operands[-1], layout.id), layout.bytes, touched, layout.goal,
        )  # fmt: skip


def _check_elements(by_torch: Callable[[], Any], out: Any, layout: str, _: Any) -> None:
    if layout == "reversed":
        return
    own = out.clone()
    by_torch()
    assert torch.allclose(own, out, rtol=1e-2, atol=1e-2), "another result than PyTorch's"


def _reductions(dtype: str, flat: Sequence[Any]) -> Iterator[Case]:
    ours, theirs = array_kernels.reduction_kernels(gs), array_kernels.reduction_kernels(cupy)
    kernel = "sum64" if dtype.startswith("int") else "sum"
    for fold in folds(flat[0].shape[0]):
        tensor = flat[0][: prod(fold.shape)].reshape(fold.shape)
        array = _cupy(tensor)
        by_torch = partial(_torch_sum, tensor, fold.axis)
        peers = {"torch": by_torch}
        if dtype != "bfloat16":
            peers["CuPy"] = partial(theirs[kernel], array, axis=fold.axis)
            peers["cupy.sum"] = partial(array.sum, axis=fold.axis)
        size = tensor.numel() * tensor.element_size()
        yield Case(
            f"cuda.sum.{fold.id}.{dtype}", partial(ours[kernel], array, axis=fold.axis), peers,
            partial(_check_sum, fold, by_torch), size, size + _result_bytes(fold, dtype), fold.goal,
        )  # fmt: skip


def _torch_sum(tensor: Any, axis: int | None) -> Any:
    return tensor.sum() if axis is None else tensor.sum(axis)


def _result_bytes(fold: Fold, dtype: str) -> int:
    if fold.axis is None:
        return 0
    itemsize = 8 if dtype.startswith("int") else getattr(torch, dtype).itemsize
    return prod(fold.shape) // fold.shape[fold.axis] * itemsize


def _check_sum(fold: Fold, by_torch: Callable[[], Any], result: Any) -> None:
    own, expected = torch.as_tensor(result, device="cuda"), by_torch()
    folded = prod(fold.shape) if fold.axis is None else fold.shape[fold.axis]
    assert torch.allclose(own, expected, rtol=2e-2, atol=4e-3 * folded**0.5), "another sum than PyTorch's"


def _sectors(array: Any) -> int:
    strides = array.strides if hasattr(array, "strides") else None
    if strides is None:
        strides = tuple(step * array.element_size() for step in array.stride())
    itemsize = array.dtype.itemsize
    return sectors(tuple(array.shape), tuple(strides), itemsize)


def _line(case: Case, rate: float) -> dict[str, Any]:
    case.check(case.ours())
    is_small = case.bytes < 1 << 28
    ours = seconds(case.ours, busy=not is_small)
    peers = {name: seconds(run, busy=not is_small) for name, run in case.peers.items()}
    line: dict[str, Any] = {"id": case.id, "microseconds": ours * 1e6}
    if is_small:
        line |= {f"{name} microseconds": time * 1e6 for name, time in peers.items()}
        line["device microseconds"] = seconds(case.ours) * 1e6
        line["is met"] = (
            ours * 1e6 <= case.goal * 1.02 if case.goal else ours <= 1.05 * min(peers.values(), default=1)
        )
        return line
    line["of copy"], line["of sectors"] = case.bytes / ours / rate, case.sectors / ours / rate
    line |= {f"{name} of copy": case.bytes / time / rate for name, time in peers.items()}
    line["goal"] = case.goal or ""
    line["is met"] = line["of copy"] >= 0.98 * case.goal if case.goal else line["of sectors"] >= 0.85
    return line


def _shown(line: dict[str, Any]) -> str:
    cells = [f"{line['id']:34}"]
    for name, value in line.items():
        if isinstance(value, bool):
            cells.append("" if value else "BELOW")
        elif isinstance(value, float):
            cells.append(f"{name.replace(' of copy', '').replace('microseconds', 'us')} {value:.3f}")
    return "  ".join(cells)
