"""numexpr: one expression, evaluated in blocks by all cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numexpr
import numpy as np
from workloads import A, Arrays

_U = "u + c16 * (w + e + n + s - c4 * u) - u * v * v + c04 * (c1 - u)"
_V = "v + c08 * (w + e + n + s - c4 * v) + u * v * v - c10 * v"
_CONSTANTS = {
    "c16": np.float32(0.16), "c08": np.float32(0.08), "c04": np.float32(0.04), "c10": np.float32(0.1),
    "c4": np.float32(4), "c1": np.float32(1),
}  # fmt: skip


def case(name: str, arrays: Arrays) -> Callable[[], object] | None:
    """Return the call for a workload."""
    a: Any = arrays
    match name:
        case "axpy" | "grid_stride_axpy":
            return lambda: numexpr.evaluate("f * x + y", {"f": A, "x": a["x"], "y": a["y"]}, out=a["y"])
        case "gray_scott":
            return lambda: _gray_scott(a)
        case "functions":
            power = np.float32(1.3)
            return lambda: numexpr.evaluate(
                "exp(x) * sin(x) + log(x) * x ** p", {"x": a["x"], "p": power}, out=a["y"]
            )
        case "tree_sum" | "shuffle_sum":
            return lambda: _sum(a)
    return None


def _gray_scott(arrays: Any) -> None:
    for expression, source, out in ((_U, "u", "next_u"), (_V, "v", "next_v")):
        x = arrays[source]
        values = {
            "u": arrays["u"][1:-1, 1:-1], "v": arrays["v"][1:-1, 1:-1], "w": x[1:-1, :-2], "e": x[1:-1, 2:],
            "n": x[:-2, 1:-1], "s": x[2:, 1:-1], **_CONSTANTS,
        }  # fmt: skip
        numexpr.evaluate(expression, values, out=arrays[out][1:-1, 1:-1])


def _sum(arrays: Any) -> None:
    arrays["sums"][0] = numexpr.evaluate("sum(x)", {"x": arrays["x"]})
