"""Numbers for tests: small ones, so that most results are exact."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def values(shape: tuple[int, ...], dtype: Any, seed: int) -> Array:
    """Return small numbers of both signs, fractions where the dtype has them."""
    random = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return random.integers(0, 2, shape).astype(bool)
    if dtype.kind == "u":
        return random.integers(0, 100, shape).astype(dtype)
    if dtype.kind == "i":
        return random.integers(-50, 50, shape).astype(dtype)
    numbers = random.integers(-64, 64, shape) / 8
    if dtype.kind == "c":
        return (numbers + 1j * random.integers(-64, 64, shape) / 8).astype(dtype)
    return np.asarray(numbers).astype(dtype)
