"""Array calls of bfloat16 by PyTorch on a CPU, since other peers take none or slowly; None for other dtypes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

try:
    import torch
except ImportError:
    torch = None


def elementwise(layout: Any, scalar: tuple[Any, ...]) -> Callable[[], Any] | None:
    """Return the call that calculates a layout."""
    if not _takes(*layout.operands):
        return None
    x, *others, out = map(_tensor, layout.operands)
    if layout.operation == "axpy":
        return partial(torch.add, others[0], x, alpha=float(scalar[0]), out=out)
    if layout.operation == "increment":
        return partial(torch.add, x, 1, out=out)
    return partial({"add": torch.add, "multiply": torch.mul}[layout.operation], x, others[0], out=out)


def reduction(x: Any, axis: int | tuple[int, ...] | None) -> Callable[[], Any] | None:
    """Return the call that sums along an axis."""
    if not _takes(x):
        return None
    tensor = _tensor(x)
    axes = tuple(range(x.ndim)) if axis is None else axis
    return partial(torch.sum, tensor, axes, out=torch.sum(tensor, axes))


def _takes(*arrays: Any) -> bool:
    has_steps_back = any(stride < 0 for array in arrays for stride in array.strides)
    return torch is not None and arrays[0].dtype.name == "bfloat16" and not has_steps_back


def _tensor(array: Any) -> Any:
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
