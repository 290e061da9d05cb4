"""Between which bounds the results of a kernel lie, whichever of its products a compiler contracts.

The kernel itself is run with numbers that carry their bounds (``fusing.h``). Integers that depend on
floating-point numbers, and branches, are decided by the bounds where these allow one answer only.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import gridstride as gs
from generated_kernels.kernels import Batch
from generated_kernels.running import Outputs, inputs_of, outputs_of

_HEADER = Path(__file__).with_name("fusing.h").read_text()
_REAL = re.compile(r"\b(make_)?(float|double)([234]?)\b")


class Range(NamedTuple):
    """What a kernel may write.

    Attributes
    ----------
    low, high : dict of numpy.ndarray
        The bounds of each element.
    is_decided : bool
        False if a thread's way, or an integer, depends on which products are contracted: then the bounds say nothing.
    """

    low: Outputs
    high: Outputs
    is_decided: bool

    def has(self, found: Outputs) -> bool:
        """Return whether all elements are within their bounds."""
        return all(self._holds(name, array).all() for name, array in found.items())

    def _holds(self, name: str, array: np.ndarray) -> np.ndarray:
        low, high = self.low[name], self.high[name]
        if array.dtype.kind != "f":
            return array == low
        return ((low <= array) & (array <= high)) | (np.isnan(array) & np.isnan(low))


def ranges(batch: Batch) -> Iterator[Range]:
    """Run each kernel of a batch and yield what it may write."""
    module = gs.RawModule(
        code=_HEADER + _with_bounds(batch.text), tier="fibers", options=("--fmad=false", "-O1")
    )
    inputs = {name: _widened(array) for name, array in inputs_of(batch.seed).items()}
    undecided = module.get_global("undecided")
    for kernel in batch.kernels:
        written = {name: _widened(array) for name, array in outputs_of(kernel).items()}
        values = {**inputs, **written, **batch.uniforms}
        undecided.memset(0, undecided.size)
        module.get_function(kernel.name)(
            batch.grid, batch.block, tuple(_argument(values[name]) for name in kernel.parameters)
        )
        flag = np.zeros(1, "i4")
        undecided.copy_to_host(flag)
        yield Range(_ends(written, "low"), _ends(written, "high"), not flag[0])


def _with_bounds(text: str) -> str:
    """Return a text whose floating-point types are those of ``fusing.h``."""

    def replaced(found: re.Match[str]) -> str:
        make, real, count = found.groups(default="")
        if make:
            return f"make_fusing{count}<Fusing<{real}>>"
        return f"Fusing{count}<Fusing<{real}>>" if count else f"Fusing<{real}>"

    return _REAL.sub(replaced, text)


def _widened(array: np.ndarray) -> np.ndarray:
    """Return floating-point numbers as the class of ``fusing.h`` holds them, integers as they are."""
    if array.dtype.kind != "f":
        return array
    fields = [("low", array.dtype), ("high", array.dtype), ("factors", array.dtype, 4), ("is_product", "?")]
    widened = np.zeros(array.shape, np.dtype(fields, align=True))
    widened["low"] = widened["high"] = array
    return widened


def _argument(value: object) -> object:
    return ctypes.c_void_p(value.ctypes.data) if isinstance(value, np.ndarray) else value


def _ends(written: Outputs, end: str) -> Outputs:
    return {name: array[end] if array.dtype.names else array for name, array in written.items()}
