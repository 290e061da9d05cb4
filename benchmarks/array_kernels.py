"""Elementwise kernels and reductions: on a GPU as fractions of the copy rate, on a CPU beside NumPy and numexpr."""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from measure import interleave, medians, save, table

import gridstride as gs

AXPY = gs.ElementwiseKernel("T a, T x, T y", "T z", "z = a * x + y", "axpy")
ADD = gs.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")
MULTIPLY = gs.ElementwiseKernel("T x, T y", "T z", "z = x * y", "multiply")
INCREMENT = gs.ElementwiseKernel("T x", "T y", "y = x + T(1)", "increment")
TOTAL = gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
TOTAL64 = gs.ReductionKernel("T x", "int64 y", "x", "a + b", "y = a", "0", "total64")


class Row(NamedTuple):
    """One line of a table: the call, what the array library does for the same, and the bytes that must move."""

    id: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any] | None
    bytes: int


def elementwise(xp: Any, size: int, random: Callable[..., Any]) -> Iterator[Row]:
    """Yield the rows of the elementwise table for operands of so many bytes."""
    for dtype in ("int8", "float16", "float32", "float64", "complex64"):
        n = size // np.dtype(dtype).itemsize
        x, y, z = random((n,), dtype), random((n,), dtype), xp.empty(n, dtype)
        scalar = 3 if dtype == "int8" else 2.5
        yield Row(f"axpy.{dtype}", partial(AXPY, scalar, x, y, z), partial(xp.add, x, y, out=z), 3 * size)
        if dtype in ("int8", "float16", "float32"):
            yield Row(f"axpy.{dtype}.off_by_one", partial(AXPY, scalar, x[1:], y[1:], z[1:]), None, 3 * size)
            yield Row(
                f"axpy.{dtype}.one_off_by_one", partial(AXPY, scalar, x[1:], y[:-1], z[:-1]), None, 3 * size
            )
    side = int((size // 4) ** 0.5)
    column, row, z = (
        random((side, 1), "float32"),
        random((1, side), "float32"),
        xp.empty((side, side), "float32"),
    )
    x = random((side, side), "float32")
    yield Row("outer", partial(MULTIPLY, column, row, z), partial(xp.multiply, column, row, out=z), z.nbytes)
    yield Row("row_broadcast", partial(ADD, x, row, z), partial(xp.add, x, row, out=z), 2 * z.nbytes)
    yield Row("transposed", partial(ADD, x.T, x, z), partial(xp.add, x.T, x, out=z), 3 * z.nbytes)
    for dtype in ("float16", "int8", "float64"):
        s = int((size // np.dtype(dtype).itemsize) ** 0.5)
        xt, zt = random((s, s), dtype), xp.empty((s, s), dtype)
        yield Row(
            f"transposed.{dtype}",
            partial(ADD, xt.T, xt, zt),
            partial(xp.add, xt.T, xt, out=zt),
            3 * zt.nbytes,
        )
    half = xp.empty((side, side // 2), "float32")
    one = xp.ones((1, 1), "float32")
    yield Row("every_second", partial(ADD, x[:, : side // 2 * 2 : 2], one, half),
              partial(xp.add, x[:, : side // 2 * 2 : 2], one, out=half), x.nbytes + half.nbytes)  # fmt: skip
    prime = side - 3
    p, q = x[:prime, :prime], z[:prime, :prime]
    yield Row("odd_rows", partial(INCREMENT, p, q), partial(xp.add, p, one, out=q), 8 * prime * prime)
    a = 1 << ((size // 4 // 64).bit_length() - 1) // 2
    b = size // 4 // 64 // a
    four = random((a * b * 64,), "float32").reshape(a // 4, 4, b, 64).transpose(0, 2, 1, 3)
    to = xp.empty(four.shape, "float32")
    yield Row("permuted", partial(INCREMENT, four, to), partial(xp.add, four, 1, out=to), 8 * four.size)
    five = (
        x.reshape(-1)[: (side // 32) ** 2 * 1024]
        .reshape(side // 32, 8, 4, 32, side // 32)
        .transpose(4, 1, 3, 0, 2)
    )
    to5 = z.reshape(-1)[: five.size].reshape(five.shape)
    yield Row(
        "permuted.five", partial(INCREMENT, five, to5), partial(xp.add, five, 1, out=to5), 8 * five.size
    )


def reductions(xp: Any, size: int, random: Callable[..., Any]) -> Iterator[Row]:
    """Yield the rows of the reduction table for arrays of so many bytes."""
    n = size // 4
    x = random((n,), "float32")
    side = int(n**0.5)
    shapes: list[tuple[tuple[int, ...], Any]] = [
        ((n,), None), ((side, side), 1), ((side, side), 0), ((64, n // 64 // 256, 256), 1), ((n // 16, 16), 1),
        ((n // 16, 16), 0), ((16, n // 16), 1), ((16, n // 16), 0), ((n // 2, 2), 1), ((n // 3, 3), 0),
    ]  # fmt: skip
    for shape, axis in shapes:
        y = x[: int(np.prod(shape))].reshape(shape)
        yield Row(
            f"sum{list(shape)}axis{axis}", partial(TOTAL, y, axis=axis), partial(y.sum, axis=axis), y.nbytes
        )
    small = x[:1024]
    yield Row("sum[1024]", partial(TOTAL, small), small.sum, small.nbytes)
    for dtype, kernel in (("float16", TOTAL), ("int8", TOTAL64), ("float64", TOTAL), ("complex64", TOTAL)):
        z = random((size // np.dtype(dtype).itemsize,), dtype)
        yield Row(f"sum.{dtype}", partial(kernel, z), z.sum, z.nbytes)


def on_gpu() -> list[dict[str, Any]]:
    """Time on a GPU by events behind a kernel that keeps the stream busy while the host prepares the call."""
    import cupy
    import torch

    def random(shape: tuple[int, ...], dtype: str) -> Any:
        if dtype == "int8":
            return cupy.random.randint(-100, 100, shape, dtype=cupy.int32).astype(cupy.int8)
        if dtype == "complex64":
            return cupy.random.random((*shape, 2), dtype=cupy.float32).view(cupy.complex64)[..., 0]
        return cupy.random.random(shape, dtype=cupy.float32).astype(dtype)

    def seconds(run: Callable[[], Any], times: int = 15) -> float:
        for _ in range(2):
            run()
        spans = []
        for _ in range(times):
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            torch.cuda._sleep(1_000_000)  # on the default stream, as all of CuPy here
            start.record()
            run()
            end.record()
            end.synchronize()
            spans.append(cupy.cuda.get_elapsed_time(start, end) * 1e-3)
        return statistics.median(spans)

    size = 1 << 30
    x, z = random((size // 4,), "float32"), cupy.empty(size // 4, cupy.float32)
    rate = 2 * size / seconds(partial(cupy.copyto, z, x))
    del x, z
    print(f"copy {rate / 1e9:.0f} GB/s")
    z = cupy.empty(size // 4, cupy.float32)
    fill = size / seconds(partial(z.fill, 1.5)) / rate
    del z
    print(f"fill, the ceiling of calls that only write: {fill:.3f}")
    rows: list[dict[str, Any]] = [{"id": "cuda.fill", "of copy": fill}]
    with_peers = os.environ.get("PEERS", "1") == "1"
    for family in (elementwise, reductions):
        for row in family(cupy, size, random):
            ours = seconds(row.ours)
            line = {"id": f"cuda.{row.id}", "microseconds": ours * 1e6, "of copy": row.bytes / ours / rate}
            if row.theirs is not None and with_peers:
                line["cupy of copy"] = row.bytes / seconds(row.theirs, 3) / rate
            rows.append(line)
            print(
                "  ".join(
                    f"{value:.3f}" if isinstance(value, float) else str(value) for value in line.values()
                )
            )
    return rows


def on_cpu() -> list[dict[str, Any]]:
    """Time on the CPU target, interleaved with NumPy and with a copy of the same bytes."""
    generator = np.random.default_rng(1)

    def random(shape: tuple[int, ...], dtype: str) -> Any:
        if dtype == "int8":
            return generator.integers(-100, 100, shape, np.int8)
        if dtype == "complex64":
            return (generator.random(shape, "f4") + 1j * generator.random(shape, "f4")).astype(dtype)
        return generator.random(shape, "f4").astype(dtype)

    size = 4 << int(os.environ.get("LOG2_ELEMENTS", "25"))
    source, target = np.ones(size, np.int8), np.empty(size, np.int8)
    rows = []
    for family in (elementwise, reductions):
        for row in family(np, size, random):
            cases = {"ours": row.ours, "copy": partial(np.copyto, target, source)}
            if row.theirs is not None:
                cases["numpy"] = row.theirs
            times = medians(interleave(cases, repeats=int(os.environ.get("REPEATS", "7")), warmup=1))
            bound = times["copy"] * row.bytes / (2 * size)
            rows.append({
                "id": f"cpu.{row.id}", "milliseconds": times["ours"] * 1e3, "of the copy's time": times["ours"] / bound,
                "of NumPy's time": times["ours"] / times["numpy"] if "numpy" in times else "",
            })  # fmt: skip
            print(table(rows[-1:]).split("\n")[1])
    return rows


def main() -> None:
    gpu = gs.cuda.is_available() and "cpu" not in sys.argv[1:]
    rows = on_gpu() if gpu else on_cpu()
    print("written to", save("array-kernels-gpu" if gpu else "array-kernels-cpu", rows))


if __name__ == "__main__":
    main()
