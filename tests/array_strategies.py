"""Arrays of all layouts for property tests: permuted, stepped, reversed, broadcast, offset, empty."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

Array = np.ndarray[Any, Any]

LENGTHS = st.sampled_from((0, 1, 1, 2, 3, 4, 5, 7, 16, 17, 33))
SHAPES = st.lists(LENGTHS, max_size=4).map(tuple)


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


@st.composite
def layouts(draw: st.DrawFn, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array of a shape whose elements lie in some strange way."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from((1, 1, 1, 2, -1, -2))) for _ in shape]
    offset = draw(st.sampled_from((0, 0, 1)))
    stored = [shape[axis] * abs(steps[axis]) for axis in order]
    seed = draw(st.integers(0, 2**16))
    flat = values((int(np.prod(stored)) + offset,), dtype, seed)
    array = flat[offset:].reshape(stored).transpose(np.argsort(order)) if shape else flat[offset:].reshape(())
    return array[tuple(slice(None, None, step) for step in steps)]


@st.composite
def broadcastable(draw: st.DrawFn, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array that broadcasts to a shape: axes are missing, of length 1, or broadcast already."""
    missing = draw(st.integers(0, len(shape)))
    own = [1 if draw(st.integers(0, 3)) == 0 else length for length in shape[missing:]]
    array: Array = draw(layouts(tuple(own), dtype))
    if draw(st.integers(0, 4)) == 0:
        return np.broadcast_to(array, shape)
    return array
