"""First calls of kernels, rehearsed where a device is in use already when the package is imported."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from gridstride import _native, _store, arrays
from gridstride._compilation.encoding import decode, encode
from gridstride._compilation.functions import forget_programs
from gridstride._lazy_module import default_place
from gridstride.families.elementwise import ElementwiseKernel
from gridstride.families.raw import RawKernel
from gridstride.families.reduction import ReductionKernel
from gridstride.targets import registry
from gridstride.targets.base import Target

#: Python's interpreter adapts code to its data while it runs the first times.
_ARRAY_REHEARSALS, _RAW_REHEARSALS = 2, 3


def rehearse(target: Target) -> None:
    """Call kernels of each family on a target that runs nothing, so that the first real calls find no code cold.

    Raw kernels come last: their first launch is short, and what runs in between makes their code cold again.
    """
    rehearse_array_kernels(target)
    rehearse_raw_kernels(target)


def rehearse_array_kernels(target: Target) -> None:
    """Call elementwise kernels with an array that they only seem to touch; nothing is allocated."""
    _rehearse(target, _call_array_kernels)


def rehearse_raw_kernels(target: Target) -> None:
    """Launch raw kernels, and write and read what the cache keeps of them."""
    _rehearse(target, _call_raw_kernels)


def _rehearse(target: Target, make_calls: Callable[[Target, Any], None]) -> None:
    """Make calls with an array, or None, on a target; nothing is rehearsed while somebody watches launches."""
    if _native.watchers(0):
        return
    # What fails here fails again, and is reported, where somebody makes a call. An import does not.
    with suppress(Exception), registry.rehearsing(target):
        make_calls(target, np.empty(1, np.float32) if arrays.HOST in target.device_types else _native.meet())
    forget_programs()


def _call_array_kernels(target: Target, array: Any) -> None:
    for salt in range(_ARRAY_REHEARSALS):
        kernel = ElementwiseKernel("float32 x", "float32 y", f"y = x + {salt}", "rehearsal")
        ReductionKernel("float32 x", "float32 y", "x", "a + b", f"y = a + {salt}", "0", "rehearsal")
        if array is not None:
            kernel._launch(array, array)


def _call_raw_kernels(target: Target, array: Any) -> None:
    for salt in range(_RAW_REHEARSALS):
        kernel = RawKernel(
            f'extern "C" __global__ void rehearsal(float *, float, int) {{}} // {salt}', "rehearsal"
        )
        if array is None:
            kernel._foresee(target.memory_device_type, 0, (1, 1, 1), (32, 1, 1), 0)
        else:
            kernel((1,), (32,), (array, np.float32(1), np.int32(1)))
        entry = _store.pack("", encode(kernel.load(default_place(), None).object_code))
        decode(_store.unpack("", entry) or b"")
