"""Inputs that hold the edges of every type, and numbers drawn once."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_EDGES = {
    32: [0, 1, 2, 31, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7F80FF01, 2**31 - 1, 2**31, 2**32 - 1],
    64: [0, 1, 2, 63, 255, 2**31, 2**32 - 1, 2**32, 2**52, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2,
         2**64 - 1],
}  # fmt: skip


def _integers(bits: int, place: int) -> Array:
    """Return edges and draws; those of different places, taken together, hold every pair of edges."""
    dtype = np.dtype(f"u{bits // 8}")
    edges = np.array(_EDGES[bits], dtype)
    grid = (np.repeat(edges, edges.size), np.tile(edges, edges.size), np.roll(np.tile(edges, edges.size), 7))[
        place
    ]
    random = np.random.default_rng(bits + place)
    drawn = random.integers(0, 2**bits, 256, dtype=dtype) >> random.integers(0, bits, 256).astype(dtype)
    return np.concatenate([grid, drawn])


U32 = tuple(_integers(32, place) for place in range(3))
U64 = tuple(_integers(64, place) for place in range(3))
S32 = tuple(array.view(np.int32) for array in U32)
S64 = tuple(array.view(np.int64) for array in U64)
U16 = tuple(array.astype(np.uint16) for array in U32)

_LIMITS = {np.dtype(t): np.finfo(t) for t in ("f4", "f8")}
_RANDOM = np.random.default_rng(17)
_HALVES = np.array(
    [
        0.5,
        1.5,
        2.5,
        3.5,
        1e5 + 0.5,
        8388607.5,
        2.0**23,
        2.0**24 + 2,
        2.0**31,
        2.0**32,
        2.0**52,
        2.0**63,
        2.0**64,
    ]
)
_PLAIN = np.array([1.0, 2.0, 3.0, 0.1, 0.75, 1.25, 10.0, 100.0, np.pi, np.e, 1e-3, 1e-8, 1e10, 7.0])


def _edges(dtype: str) -> Array:
    info = _LIMITS[np.dtype(dtype)]
    of_type = [info.max, info.tiny, info.smallest_subnormal, info.tiny / 3, info.eps, 1 - info.epsneg, 1 + info.eps,
               np.inf, 0.0]  # fmt: skip
    positive = np.concatenate([np.array(of_type, dtype), _HALVES.astype(dtype), _PLAIN.astype(dtype)])
    return np.concatenate([positive, -positive, np.array([np.nan], dtype)])


def _numbers(dtype: str) -> Array:
    """Return edges, numbers around one, numbers of all magnitudes, and numbers in the unit interval."""
    top = 30 if dtype == "f4" else 250
    drawn = [_RANDOM.normal(scale=4, size=80), 10.0 ** _RANDOM.uniform(-top, top, 40) * _RANDOM.choice([-1, 1], 40),
             _RANDOM.uniform(-1, 1, 48)]  # fmt: skip
    return np.concatenate([_edges(dtype), *(array.astype(dtype) for array in drawn)])


def _pairs(dtype: str) -> tuple[Array, Array, Array]:
    """Return three arrays that, taken together, hold pairs of edges and unrelated numbers."""
    info = _LIMITS[np.dtype(dtype)]
    edges = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 3.0, -2.5, info.max, -info.max, info.tiny,
        info.smallest_subnormal,
                      np.inf, -np.inf, np.nan, 1e10], dtype)  # fmt: skip
    grids = np.repeat(edges, edges.size), np.tile(edges, edges.size), np.roll(np.tile(edges, edges.size), 5)
    drawn = [
        (_RANDOM.normal(size=200) * 10.0 ** _RANDOM.integers(-6, 6, 200)).astype(dtype) for _ in range(3)
    ]
    first, second, third = (np.concatenate(parts) for parts in zip(grids, drawn, strict=True))
    return first, second, third


F32, F64 = _numbers("f4"), _numbers("f8")
F32_3, F64_3 = _pairs("f4"), _pairs("f8")
F32_2, F64_2 = F32_3[:2], F64_3[:2]
