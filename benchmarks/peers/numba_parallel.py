"""numba: plain loops under ``njit(parallel=True)``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import njit, prange
from workloads import BINS, A, Arrays


def case(name: str, arrays: Arrays) -> Callable[[], object] | None:
    """Return the call for a workload."""
    a: Any = arrays
    match name:
        case "axpy" | "grid_stride_axpy":
            return lambda: _axpy(A, a["x"], a["y"])
        case "gray_scott":
            return lambda: _gray_scott(a["u"], a["v"], a["next_u"], a["next_v"])
        case "functions":
            return lambda: _functions(a["x"], a["y"])
        case "n_body":
            return lambda: _n_body(a["bodies"], a["forces"])
        case "matmul":
            return lambda: _matmul(a["a"], a["b"], a["c"])
        case "tree_sum" | "shuffle_sum":
            return lambda: _store_sum(a["x"], a["sums"])
        case "histogram":
            return lambda: _histogram(a["values"], a["counts"], numba.get_num_threads())
    return None


@njit(parallel=True)
def _axpy(a: Any, x: Any, y: Any) -> None:
    for i in prange(x.size):
        y[i] = a * x[i] + y[i]


@njit(parallel=True)
def _gray_scott(u: Any, v: Any, next_u: Any, next_v: Any) -> None:
    quarter, tenth, four = np.float32(0.04), np.float32(0.1), np.float32(4)
    for y in prange(1, u.shape[0] - 1):
        for x in range(1, u.shape[1] - 1):
            spread_u = u[y, x - 1] + u[y, x + 1] + u[y - 1, x] + u[y + 1, x] - four * u[y, x]
            spread_v = v[y, x - 1] + v[y, x + 1] + v[y - 1, x] + v[y + 1, x] - four * v[y, x]
            reaction = u[y, x] * v[y, x] * v[y, x]
            next_u[y, x] = (
                u[y, x] + np.float32(0.16) * spread_u - reaction + quarter * (np.float32(1) - u[y, x])
            )
            next_v[y, x] = v[y, x] + np.float32(0.08) * spread_v + reaction - tenth * v[y, x]


@njit(parallel=True)
def _functions(x: Any, y: Any) -> None:
    for i in prange(x.size):
        y[i] = math.exp(x[i]) * math.sin(x[i]) + math.log(x[i]) * x[i] ** np.float32(1.3)


@njit(parallel=True)
def _n_body(bodies: Any, forces: Any) -> None:
    one, softening = np.float32(1), np.float32(1e-3)
    for i in prange(bodies.shape[0]):
        x = y = z = np.float32(0)
        for k in range(bodies.shape[0]):
            dx = bodies[k, 0] - bodies[i, 0]
            dy = bodies[k, 1] - bodies[i, 1]
            dz = bodies[k, 2] - bodies[i, 2]
            inverse = one / np.sqrt(dx * dx + dy * dy + dz * dz + softening)
            weight = bodies[k, 3] * inverse * inverse * inverse
            x += weight * dx
            y += weight * dy
            z += weight * dz
        forces[i, 0], forces[i, 1], forces[i, 2] = x, y, z


@njit(parallel=True)
def _matmul(a: Any, b: Any, c: Any) -> None:
    for i in prange(a.shape[0]):
        c[i, :] = 0
        for k in range(a.shape[1]):
            factor = a[i, k]
            for j in range(b.shape[1]):
                c[i, j] += factor * b[k, j]


@njit(parallel=True, fastmath={"reassoc"})
def _sum(x: Any) -> Any:
    total = np.float32(0)
    for i in prange(x.size):
        total += x[i]
    return total


def _store_sum(x: Any, sums: Any) -> None:
    sums[0] = _sum(x)


@njit(parallel=True)
def _histogram(values: Any, counts: Any, threads: int) -> None:
    bins = np.zeros((threads, BINS), np.uint32)
    length = -(-values.size // threads)
    for thread in prange(threads):
        for i in range(thread * length, min((thread + 1) * length, values.size)):
            bins[thread, values[i]] += 1
    counts[:] = 0
    for thread in range(threads):
        for k in range(BINS):
            counts[k] += bins[thread, k]
