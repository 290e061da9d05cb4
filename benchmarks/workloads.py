"""What is measured on the CPU: the data of each workload, the result it must have, and the goals.

Names of arrays are those of the kernels' parameters. A peer gets copies of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]

#: Set to try a change of the benchmarks themselves; nothing is saved then.
QUICK = bool(os.environ.get("BENCH_QUICK"))
N = 100_000 if QUICK else 10_000_000
WIDTH = 256 if QUICK else 2048
BODIES = 512 if QUICK else 8192
MATRIX = 64 if QUICK else 512
BINS = 256
BLOCK = 256
BLOCKS = -(-N // BLOCK)
A = np.float32(1e-3)


class Workload(NamedTuple):
    """One row of the comparison.

    Attributes
    ----------
    name : str
        The kernel's; the id is ``cpu.kernels.NAME``.
    title : str
    make : callable
        Returns the arrays, from a generator.
    expected : callable
        Returns what the result must be, given the arrays as they were; computed in float64.
    result : callable
        Returns what is compared, given the arrays after one call.
    moved : int
        Bytes that must go between memory and processor in a call; 0 where memory is not what limits it.
    goal, later : float or None
        The times of native that gridstride may take in the first release, and later.
    """

    name: str
    title: str
    make: Callable[[np.random.Generator], Arrays]
    expected: Callable[[Arrays], Array]
    result: Callable[[Arrays], Array]
    moved: int
    goal: float | None = None
    later: float | None = None

    @property
    def id(self) -> str:
        """The stable name of the row."""
        return f"cpu.kernels.{self.name}"


def _two(rng: np.random.Generator) -> Arrays:
    x, y = rng.random((2, N), dtype=np.float32)
    return {"x": x, "y": y}


def _axpy(arrays: Arrays) -> Array:
    return A * arrays["x"].astype(np.float64) + arrays["y"]


def _gray_scott(arrays: Arrays) -> Array:
    u, v = arrays["u"].astype(np.float64), arrays["v"].astype(np.float64)
    inner = (slice(1, -1), slice(1, -1))

    def spread(x: Array) -> Array:
        return x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1] - 4 * x[inner]

    reaction = u[inner] * v[inner] ** 2
    next_u = u[inner] + 0.16 * spread(u) - reaction + 0.04 * (1 - u[inner])
    next_v = v[inner] + 0.08 * spread(v) + reaction - 0.1 * v[inner]
    return np.stack([next_u, next_v])


def _pictures(rng: np.random.Generator) -> Arrays:
    u, v = rng.random((2, WIDTH, WIDTH), dtype=np.float32)
    return {"u": u, "v": v, "next_u": np.zeros_like(u), "next_v": np.zeros_like(v)}


def _functions(arrays: Arrays) -> Array:
    x = arrays["x"].astype(np.float64)
    return np.exp(x) * np.sin(x) + np.log(x) * x**1.3


def _n_body(arrays: Arrays) -> Array:
    bodies = arrays["bodies"].astype(np.float64)
    chosen = slice(0, BODIES, 64)  # all of them would take minutes
    d = bodies[None, :, :3] - bodies[chosen, None, :3]
    weight = bodies[:, 3] * (np.square(d).sum(2) + 1e-3) ** -1.5
    return (weight[:, :, None] * d).sum(1)


def _floats(rng: np.random.Generator) -> Arrays:
    return {"x": rng.random(N, dtype=np.float32), "sums": np.zeros(BLOCKS, np.float32)}


def _sum(arrays: Arrays) -> Array:
    return np.array(arrays["x"].sum(dtype=np.float64))


def _total(arrays: Arrays) -> Array:
    return np.array(arrays["sums"].sum(dtype=np.float64))


WORKLOADS = (
    Workload("axpy", "axpy, 10M float32", _two, _axpy, lambda a: a["y"], 12 * N, 1.15, 1.05),
    Workload(
        "gray_scott",
        "Gray-Scott step, 2048 x 2048, block 32x8",
        _pictures,
        _gray_scott,
        lambda a: np.stack([a["next_u"], a["next_v"]])[:, 1:-1, 1:-1],
        16 * WIDTH**2,
        1.15,
        1.05,
    ),
    Workload(
        "functions",
        "exp, sin, log, pow, 10M float32",
        lambda rng: {"x": rng.uniform(0.1, 3, N).astype(np.float32), "y": np.zeros(N, np.float32)},
        _functions,
        lambda a: a["y"],
        0,
        0.35,
        0.25,
    ),
    Workload(
        "grid_stride_axpy",
        "axpy in a grid-stride loop, 10M float32",
        _two,
        _axpy,
        lambda a: a["y"],
        12 * N,
        2.0,
        1.3,
    ),
    Workload(
        "n_body",
        "forces of 8192 bodies",
        lambda rng: {
            "bodies": rng.random((BODIES, 4), dtype=np.float32),
            "forces": np.zeros((BODIES, 4), np.float32),
        },
        _n_body,
        lambda a: a["forces"][::64, :3],
        0,
        1.0,
        0.15,
    ),
    Workload(
        "matmul",
        "matrix product, 512 x 512, tiles of 16x16",
        lambda rng: {
            **dict(zip("ab", rng.random((2, MATRIX, MATRIX), dtype=np.float32))),
            "c": np.zeros((MATRIX, MATRIX), np.float32),
        },
        lambda a: a["a"].astype(np.float64) @ a["b"],
        lambda a: a["c"],
        0,
        28.0,
        0.5,
    ),
    Workload("tree_sum", "sum by a tree in shared memory, 10M float32", _floats, _sum, _total, 4 * N, 250.0, 3.0),
    Workload("shuffle_sum", "sum by warp shuffles, 10M float32", _floats, _sum, _total, 4 * N, 300.0, 8.0),
    Workload(
        "histogram",
        "256 bins by atomicAdd, 10M int32",
        lambda rng: {"values": rng.integers(0, BINS, N, np.int32), "counts": np.zeros(BINS, np.uint32)},
        lambda a: np.bincount(a["values"], minlength=BINS),
        lambda a: a["counts"],
        4 * N,
    ),
)  # fmt: skip
