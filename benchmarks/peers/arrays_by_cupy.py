"""Array calls by CuPy's own kernels and functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import array_kernels
import cupy
from array_rows import Fold, Layout, folds, layouts, takes
from everyday_rows import everyday_layouts

#: Lengths beyond which CuPy takes the same text for every fold.
_LONGEST = 4096
_ELEMENTS, _EVERYDAY_ELEMENTS = 1 << 16, 1 << 20


def has(dtype: str) -> bool:
    """Return whether CuPy has a dtype."""
    return dtype != "bfloat16"


def elementwise(layout: Layout) -> dict[str, Callable[[], Any]]:
    """Return the calls of a layout by name."""
    kernel = array_kernels.elementwise_kernels(cupy)[layout.operation]
    return {"CuPy": array_kernels.call(kernel, layout)}


def reduction(fold: Fold, x: Any) -> dict[str, Callable[[], Any]]:
    """Return the calls of a reduction by name."""
    calls: dict[str, Callable[[], Any]] = {
        f"cupy.{fold.kind}": partial(getattr(cupy, fold.kind), x, axis=fold.axis)
    }
    if fold.kind == "sum":
        kernel = array_kernels.reduction_kernel(cupy, "sum", x.dtype.name)
        calls["CuPy"] = partial(kernel, x, axis=fold.axis)
    return calls


def compile_ahead(dtype: str) -> None:
    """Fill CuPy's cache with the texts that the rows need, by calls on a few elements."""
    if not has(dtype):
        return
    for rows, elements in ((layouts, _ELEMENTS), (everyday_layouts, _EVERYDAY_ELEMENTS)):
        flat = [cupy.ones(elements, dtype) for _ in range(3)]
        for layout in rows(*flat, flat[0].itemsize):
            _run(elementwise(layout))
    for fold in folds(1 << 28):
        if takes(fold.kind, dtype):
            _run(reduction(fold, cupy.ones(_shortened(fold), dtype)))
    cupy.cuda.Device().synchronize()


def _shortened(fold: Fold) -> tuple[int, ...]:
    most = (_LONGEST if axis in fold.axes else 64 for axis in range(len(fold.shape)))
    return tuple(map(min, fold.shape, most))


def _run(calls: dict[str, Callable[[], Any]]) -> None:
    for call in calls.values():
        call()
