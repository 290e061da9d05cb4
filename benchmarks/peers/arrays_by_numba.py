"""Array calls by numba's parallel loops, as its users write them; None for what it does not take."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

try:
    import numba
except ImportError:
    numba = None

_EXPRESSIONS = {
    "axpy": "a * x{at} + y{at}", "add": "x{at} + y{at}", "multiply": "x{at} * y{at}", "increment": "x{at} + one",
}  # fmt: skip
_CHUNKS = 64


def elementwise(layout: Any, scalar: tuple[Any, ...]) -> Callable[[], Any] | None:
    """Return the call that calculates a layout, the first axis in parallel."""
    out = layout.operands[-1]
    if numba is None or out.dtype.itemsize == 2:
        return None
    inputs = [np.broadcast_to(each, out.shape) for each in layout.operands[:-1]]
    one = (out.dtype.type(1),) if layout.operation == "increment" else ()
    return partial(_loops(layout.operation, out.ndim), *scalar, *inputs, *one, out)


@cache
def _loops(operation: str, ndim: int) -> Any:
    names = [f"i{k}" for k in range(ndim)]
    at = f"[{', '.join(names)}]"
    expression = _EXPRESSIONS[operation].format(at=at)
    parameters = [name for name in ("a", "x", "y", "one") if name in expression.replace(at, " ").split()]
    lines = [f"def loops({', '.join([*parameters, 'z'])}):"]
    for k, name in enumerate(names):
        lines.append("    " * (k + 1) + f"for {name} in {'prange' if k == 0 else 'range'}(z.shape[{k}]):")
    lines.append("    " * (ndim + 1) + f"z{at} = {expression}")
    space: dict[str, Any] = {"prange": numba.prange}
    exec("\n".join(lines), space)
    return numba.njit(parallel=True)(space["loops"])


def reduction(x: Any, axis: int | tuple[int, ...] | None) -> Callable[[], Any] | None:
    """Return the call that sums along an axis."""
    if numba is None or x.dtype.itemsize == 2 or isinstance(axis, tuple):
        return None
    zero = np.int64(0) if x.dtype.kind == "i" else x.dtype.type(0)
    if axis is None:
        return partial(_functions()["all"], x, zero)
    before, length = int(np.prod(x.shape[:axis])), x.shape[axis]
    split = x.reshape(before, length, -1)
    out = np.empty((before, split.shape[2]), type(zero))
    if split.shape[2] == 1:
        return partial(_functions()["inner"], split, zero, out)
    if length > before * split.shape[2]:
        return partial(_functions()["tall"], split, zero, out, np.empty((_CHUNKS, *out.shape), out.dtype))
    return partial(_functions()["outer"], split, zero, out)


@cache
def _functions() -> dict[str, Any]:
    prange = numba.prange

    def all_(x: Any, zero: Any) -> Any:
        total = zero
        for i in prange(x.shape[0]):
            total += x[i]
        return total

    def inner(x: Any, zero: Any, out: Any) -> None:
        for i in prange(x.shape[0]):
            total = zero
            for k in range(x.shape[1]):
                total += x[i, k, 0]
            out[i, 0] = total

    def outer(x: Any, zero: Any, out: Any) -> None:
        width = -(-x.shape[2] // 64)
        for part in prange(x.shape[0] * 64):
            i, first = part // 64, part % 64 * width
            last = min(first + width, x.shape[2])
            for j in range(first, last):
                out[i, j] = zero
            for k in range(x.shape[1]):
                for j in range(first, last):
                    out[i, j] += x[i, k, j]

    def tall(x: Any, zero: Any, out: Any, parts: Any) -> None:
        chunks = parts.shape[0]
        rows = -(-x.shape[1] // chunks)
        for chunk in prange(chunks):
            parts[chunk] = zero
            for i in range(x.shape[0]):
                for k in range(chunk * rows, min(chunk * rows + rows, x.shape[1])):
                    for j in range(x.shape[2]):
                        parts[chunk, i, j] += x[i, k, j]
        out[:] = zero
        for chunk in range(chunks):
            out += parts[chunk]

    compiled = numba.njit(parallel=True, fastmath=True)
    return {"all": compiled(all_), "inner": compiled(inner), "outer": compiled(outer), "tall": compiled(tall)}
