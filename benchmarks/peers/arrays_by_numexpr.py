"""Array calls by numexpr; None for what it does not take."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

try:
    import numexpr
except ImportError:
    numexpr = None

_DTYPES = ("float32", "float64", "int32")
_TEXTS = {"axpy": "a * x + y", "add": "x + y", "multiply": "x * y", "increment": "x + 1"}


def elementwise(layout: Any, scalar: tuple[Any, ...]) -> Callable[[], Any] | None:
    """Return the call that calculates a layout."""
    *inputs, out = layout.operands
    if numexpr is None or out.dtype.name not in _DTYPES:
        return None
    names = ("a", "x", "y") if scalar else ("x", "y")
    values = dict(zip(names, (*scalar, *inputs), strict=False))
    text = _TEXTS[layout.operation]
    return partial(numexpr.evaluate, text, values, {}, out=out, casting="unsafe")


def reduction(x: Any, axis: int | tuple[int, ...] | None) -> Callable[[], Any] | None:
    """Return the call that sums along an axis."""
    if numexpr is None or x.dtype.name not in _DTYPES or isinstance(axis, tuple):
        return None
    text = "sum(x)" if axis is None else f"sum(x, axis={axis})"
    return partial(numexpr.evaluate, text, {"x": x}, {})
