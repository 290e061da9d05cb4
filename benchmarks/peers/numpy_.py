"""NumPy, with temporaries made once where it lets them be given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from workloads import BINS, A, Arrays


def case(name: str, arrays: Arrays) -> Callable[[], object] | None:
    """Return the call for a workload."""
    a: Any = arrays
    match name:
        case "axpy" | "grid_stride_axpy":
            temporary = np.empty_like(a["x"])
            return lambda: np.add(np.multiply(a["x"], A, out=temporary), a["y"], out=a["y"])
        case "gray_scott":
            return lambda: _gray_scott(a["u"], a["v"], a["next_u"], a["next_v"])
        case "functions":
            return lambda: _functions(a["x"], a["y"])
        case "matmul":
            return lambda: np.matmul(a["a"], a["b"], out=a["c"])
        case "tree_sum" | "shuffle_sum":
            return lambda: np.sum(a["x"], out=a["sums"][:1].reshape(()))
        case "histogram":
            return lambda: a["counts"].__setitem__(slice(None), np.bincount(a["values"], minlength=BINS))
    return None


def _gray_scott(u: Any, v: Any, next_u: Any, next_v: Any) -> None:
    inner = (slice(1, -1), slice(1, -1))
    reaction = u[inner] * v[inner] * v[inner]
    next_u[inner] = u[inner] + np.float32(0.16) * _spread(u) - reaction + np.float32(0.04) * (1 - u[inner])
    next_v[inner] = v[inner] + np.float32(0.08) * _spread(v) + reaction - np.float32(0.1) * v[inner]


def _spread(x: Any) -> Any:
    return x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1] - 4 * x[1:-1, 1:-1]


def _functions(x: Any, y: Any) -> None:
    np.add(np.exp(x) * np.sin(x), np.log(x) * x ** np.float32(1.3), out=y)
