"""Time array kernels on a GPU by events, beside CuPy's kernels and PyTorch over the same memory."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from math import prod
from typing import Any

import array_kernels
import cupy
import torch
from array_kernels import SCALAR, Case
from array_rows import FLIPPED, Fold, Layout, folds, layouts, sectors, takes
from everyday_rows import everyday_layouts
from measure import one_line
from peers import arrays_by_cupy
from supervise import Plan

import gridstride as gs

SIZE = 1 << 30  # bytes of an operand
BILLION = 10**9  # elements of the longest fold
REPEATS = int(os.environ.get("REPEATS", "15"))
_LEAST_RUNS, _ENOUGH = 3, 0.08  # seconds
_SHORT = 1e-4  # seconds, of calls that are timed more often, after some that do not count
_SHORT_RUNS, _SKIPPED = 300, 30
_ROUNDS, _PAUSE = 15, 0.2  # of calls that wait for the host, which others may slow down; seconds between
_LEAST_SHARE = 0.85  # of what a row that has no goal of its own allows
_MOST_RESULTS = 1 / 16  # of the bytes read
_SLOW = 0.05  # seconds, of calls that are timed once
_VERY_SLOW = 0.2  # seconds, of calls that are not made twice
_CLEARED = 2e11  # bytes a second of memory that is given back, which the device clears: an H200 twice as many
#: Results of additions, and of multiplications that are added, of a multiprocessor in a cycle, as the CUDA C++
#: Programming Guide lists them by compute capability. Two-byte floats are calculated as float.
_LANES = {"90": {"float": 128, "float64": 64, "int": 64}}
_EVERY_SECOND = """extern "C" __global__ void every_second(float2* z) {
    for (int k = 0; k < 4; ++k) z[(4ull * blockIdx.x + k) * 256 + threadIdx.x].x = 1.5f;
}"""
_TORCH = {
    "axpy": lambda a, x, y, z: torch.add(y, x, alpha=a, out=z),
    "add": lambda x, y, z: torch.add(x, y, out=z),
    "multiply": lambda x, y, z: torch.mul(x, y, out=z),
    "increment": lambda x, z: torch.add(x, 1, out=z),
    "distances": lambda x, y, z: z.copy_(((x - y) ** 2).sum(2)),
    "copy": lambda x, z: z.copy_(x),
    "subtract": lambda x, y, z: torch.sub(x, y, out=z),
    "add3": lambda x, y, w, z: torch.add(x + y, w, out=z),
    "affine": lambda x, s, b, z: torch.addcmul(b, x, s, out=z),
    "stencil5": lambda x, a, b, c, d, z: torch.sub(a + b + c + d, x, alpha=4, out=z),
    "stencil7": lambda x, a, b, c, d, e, f, z: torch.sub(a + b + c + d + e + f, x, alpha=6, out=z),
}
#: By how much results of two-byte floats may differ, of which PyTorch rounds each step of several.
_ROUNDED = {"float16": 0.1, "bfloat16": 0.5}
_TORCH_REDUCTIONS = {
    "sum": torch.sum, "max": torch.amax, "mean": torch.mean, "var": partial(torch.var, correction=0),
    "argmax": torch.argmax,
}  # fmt: skip


def begin() -> list[dict[str, Any]]:
    """Return the lines that all others refer to."""
    return [
        {"id": "cuda.copy", "GB/s": copy_rate() / 1e9},
        {"id": "cuda.fill", "of copy": _fill_rate() / copy_rate()},
        {"id": "cuda.partial_writes", "of copy": 2 * _sectors_written_in_part() / copy_rate()},
        {"id": "cuda.empty_kernel", **_microseconds(_empty_kernel())},
    ]


@cache
def copy_rate() -> float:
    """Return bytes read and written a second by a copy on the device."""
    x, z = (torch.rand(SIZE // 4, device="cuda") for _ in range(2))
    return 2 * SIZE / seconds(lambda: z.copy_(x))


def _fill_rate() -> float:
    z = torch.empty(SIZE // 4, device="cuda")
    return SIZE / seconds(lambda: z.fill_(1.5))


def _sectors_written_in_part() -> float:
    """Return bytes a second of sectors of which every second word is written: half of what moves."""
    kernel = gs.RawKernel(_EVERY_SECOND, "every_second")
    z = torch.empty(SIZE // 4, device="cuda")
    return SIZE / seconds(kernel.prepare((SIZE // 8 // 1024,), (256,), (z,)))


def _empty_kernel() -> Callable[[], Any]:
    """Return the least that any call takes: one launch, of nothing."""
    kernel = gs.RawKernel('extern "C" __global__ void nothing() {}', "nothing")
    prepared: Callable[[], Any] = kernel.prepare((1,), (32,), ())
    return prepared


def _microseconds(run: Callable[[], Any]) -> dict[str, float]:
    """Return what a call takes on an idle stream, and what the device takes for it."""
    return {
        "microseconds": _least_seconds(run)[0] * 1e6,
        "device microseconds": seconds(run) * 1e6,
    }


def cases(dtype: str, plan: Plan) -> Iterator[Case]:
    """Yield the rows of a dtype."""
    flat = [_random(dtype, SIZE // getattr(torch, dtype).itemsize) for _ in range(3)]
    if "elementwise" in plan.families:
        yield from _elementwise(dtype, flat, layouts)
    if "everyday" in plan.families:
        yield from _elementwise(dtype, flat, everyday_layouts)
    if "reductions" in plan.families:
        yield from _reductions(dtype, flat[0])


def line(case: Case) -> dict[str, Any]:
    """Check and time a case."""
    case.check(case.ours())
    rate = copy_rate()
    is_small = case.bytes < 1 << 28
    calls = (case.ours, *case.peers.values())
    ours, *others = _least_seconds(*calls) if is_small else map(seconds, calls)
    peers = dict(zip(case.peers, others, strict=True))
    found: dict[str, Any] = {"id": case.id, "microseconds": ours * 1e6}
    if is_small:
        found |= {f"{name} microseconds": time * 1e6 for name, time in peers.items()}
        result = case.ours()
        (given,) = _least_seconds(partial(case.ours, out=result))
        found["given an output microseconds"] = given * 1e6
        found["device microseconds"] = seconds(case.ours) * 1e6
        found["goal"] = case.goal or ""
        best = 1.05 * min(peers.values(), default=1)
        found["is met"] = ours <= (case.goal * 1.02e-6 if case.goal else best)
        return found
    found["of copy"], found["of sectors"] = case.bytes / ours / rate, case.sectors / ours / rate
    found |= {f"{name} of copy": case.bytes / time / rate for name, time in peers.items()}
    found["goal"] = case.goal or ""
    # Goals count bytes read, of which floats' results are a sixteenth at most; integers' sums are wider.
    reached = found["of copy"] if case.sectors <= (1 + _MOST_RESULTS) * case.bytes else found["of sectors"]
    found["judged"] = reached if case.goal else found["of sectors"]
    if case.operations:
        found["of arithmetic"] = _arithmetic_seconds(case) / ours
        found["judged"] = max(found["judged"], found["of arithmetic"])
    found["is met"] = found["judged"] >= 0.98 * (case.goal or _LEAST_SHARE)
    return found


def _arithmetic_seconds(case: Case) -> float:
    """Return the least time that a case's operations take on all lanes of a device, 0 where their number is unknown."""
    device = cupy.cuda.Device()
    dtype = case.id.rpartition(".")[2]
    kind = "int" if dtype.startswith("int") else "float64" if dtype == "float64" else "float"
    lanes = _LANES.get(device.compute_capability, {}).get(kind, 0)
    # Three of a complex operation's numbers: two to add or subtract, four to multiply and add.
    operations = case.operations * (3 if dtype.startswith("complex") else 1)
    each = lanes * device.attributes["MultiProcessorCount"] * device.attributes["ClockRate"] * 1e3
    return operations / each if each else 0.0


def shown(line: dict[str, Any]) -> str:
    """Return a line as text."""
    return one_line(line, lambda name: name.replace(" of copy", "").replace("microseconds", "us"))


def clean() -> None:
    """Give back what the last row left, and wait until it is cleared; raise where the device can do nothing more."""
    torch.cuda.synchronize()
    free, _ = torch.cuda.mem_get_info()
    cupy.get_default_memory_pool().free_all_blocks()
    torch.cuda.empty_cache()
    given_back = torch.cuda.mem_get_info()[0] - free
    time.sleep(max(0, given_back) / _CLEARED)


def seconds(run: Callable[[], Any], busy: bool = True) -> float:
    """Return the median time between events around a call.

    Parameters
    ----------
    run : callable
    busy : bool
        Whether the stream is kept busy while the host prepares the call, so that only the device's time counts.
    """
    first = _between_events(run, busy)
    if first > _VERY_SLOW:
        return first
    if first > _SLOW:
        return _between_events(run, busy)
    if _between_events(run, busy) < _SHORT:
        spans = [_between_events(run, busy) for _ in range(_SKIPPED + _SHORT_RUNS)]
        return statistics.median(spans[_SKIPPED:])
    spans = []
    while len(spans) < _LEAST_RUNS or (len(spans) < REPEATS and sum(spans) < _ENOUGH):
        spans.append(_between_events(run, busy))
    return statistics.median(spans)


def _least_seconds(*runs: Callable[[], Any]) -> list[float]:
    """Return the least of the medians of some rounds for each call, as the host prepares it on an idle stream.

    All calls are timed in each round, so that what slows the host down for a while meets them alike.
    """
    rounds = []
    for _ in range(_ROUNDS):
        rounds.append([seconds(run, busy=False) for run in runs])
        time.sleep(_PAUSE)
    return [min(times) for times in zip(*rounds, strict=True)]


@cache
def _events() -> tuple[Any, Any]:
    """Return two events of CuPy's, which are recorded at once; to record PyTorch's takes the host 5 us."""
    return cupy.cuda.Event(), cupy.cuda.Event()


def _between_events(run: Callable[[], Any], busy: bool) -> float:
    start, end = _events()
    if busy:
        torch.cuda._sleep(600_000)
    start.record()
    run()
    end.record()
    end.synchronize()
    return cupy.cuda.get_elapsed_time(start, end) * 1e-3


def _random(dtype: str, count: int) -> Any:
    kind = getattr(torch, dtype)
    if kind.is_floating_point or kind.is_complex:
        return torch.randn(count, device="cuda", dtype=kind)
    return torch.randint(-100, 100, (count,), device="cuda", dtype=kind)


def _cupy(tensor: Any) -> Any:
    """Return CuPy's array over a tensor's memory; the tensor where CuPy has no such dtype."""
    return tensor if tensor.dtype == torch.bfloat16 else cupy.asarray(tensor)


def _elementwise(dtype: str, flat: Sequence[Any], rows: Callable[..., Iterator[Layout]]) -> Iterator[Case]:
    ours = array_kernels.elementwise_kernels(gs)
    itemsize = flat[0].element_size()
    of_cupy = rows(*map(_cupy, flat), itemsize)
    for layout, tensors in zip(of_cupy, rows(*flat, itemsize), strict=True):
        scalar = (SCALAR,) if layout.operation == "axpy" else ()
        by_torch = partial(_TORCH[layout.operation], *scalar, *tensors.operands)
        peers = arrays_by_cupy.elementwise(layout) if arrays_by_cupy.has(dtype) else {}
        if layout.id not in FLIPPED:
            peers["torch"] = by_torch
        *inputs, output = layout.operands
        read = inputs[:1] if layout.of_one else inputs
        touched = sum(map(_sectors, read)) + _sectors(output, is_written=True)
        yield Case(
            f"cuda.{layout.id}.{dtype}", array_kernels.call(ours[layout.operation], layout), peers,
            partial(_check_elements, by_torch, tensors.operands[-1]), layout.bytes, touched, layout.goal,
            layout.operations,
        )  # fmt: skip


def _check_elements(by_torch: Callable[[], Any], out: Any, _: Any) -> None:
    own = out.clone()
    by_torch()
    tolerance = _ROUNDED.get(str(out.dtype).removeprefix("torch."), 1e-2)
    assert torch.allclose(own, out, rtol=2e-2, atol=tolerance), "another result than PyTorch's"


def _reductions(dtype: str, flat: Any) -> Iterator[Case]:
    for fold in folds(flat.shape[0]):
        if takes(fold.kind, dtype):
            yield _reduction(fold, dtype, flat)
    yield _reduction(Fold("billion", (BILLION,), None), dtype, _random(dtype, BILLION))


def _reduction(fold: Fold, dtype: str, flat: Any) -> Case:
    tensor = flat[: prod(fold.shape)].reshape(fold.shape)
    array = _cupy(tensor)
    by_torch = partial(_by_torch, fold, tensor)
    peers = {"torch": by_torch}
    if arrays_by_cupy.has(dtype):
        peers |= arrays_by_cupy.reduction(fold, array)
    kernel = array_kernels.reduction_kernel(gs, fold.kind, dtype)
    size = tensor.numel() * tensor.element_size()
    moved = size + fold.result_bytes(dtype, tensor.element_size())
    return Case(
        f"cuda.{fold.kind}.{fold.id}.{dtype}", partial(kernel, array, axis=fold.axis), peers,
        partial(_check_reduction, fold, tensor, by_torch), size, moved, fold.goal,
    )  # fmt: skip


def _by_torch(fold: Fold, tensor: Any) -> Any:
    function = _TORCH_REDUCTIONS[fold.kind]
    return function(tensor) if fold.axis is None else function(tensor, dim=fold.axis)


def _check_reduction(fold: Fold, tensor: Any, by_torch: Callable[[], Any], result: Any) -> None:
    if fold.kind == "argmax":
        _check_places(fold, tensor, *(torch.as_tensor(each, device="cuda") for each in result))
        return
    tolerance = {"sum": 4e-3 * fold.folded**0.5, "max": 0.0, "mean": 1e-3, "var": 1e-2}[fold.kind]
    own, expected = torch.as_tensor(result, device="cuda"), by_torch()
    assert torch.allclose(own, expected, rtol=2e-2, atol=tolerance), "another result than PyTorch's"


def _check_places(fold: Fold, tensor: Any, places: Any, values: Any) -> None:
    if fold.axis is None:
        found, best = tensor[places], tensor.amax()
    else:
        found = torch.take_along_dim(tensor, places.unsqueeze(fold.axis), fold.axis).squeeze(fold.axis)
        best = tensor.amax(fold.axis)
    assert torch.equal(found, best), "places of other elements than the largest"
    assert torch.equal(values, best), "another largest element than PyTorch's"


def _sectors(array: Any, is_written: bool = False) -> int:
    strides = array.strides if hasattr(array, "strides") else None
    if strides is None:
        strides = tuple(step * array.element_size() for step in array.stride())
    return sectors(tuple(array.shape), tuple(strides), array.dtype.itemsize, is_written)
