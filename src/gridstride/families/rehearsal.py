"""Array kernels before their first call, where a device is in use already when the package is imported."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from gridstride import _native, arrays
from gridstride._compilation.functions import forget_programs
from gridstride.families.elementwise import ElementwiseKernel
from gridstride.families.reduction import ReductionKernel
from gridstride.targets import registry
from gridstride.targets.base import Target

_REHEARSALS = 2


def rehearse(target: Target) -> None:
    """Call kernels on a target that runs nothing, so that the first real call finds no code cold.

    Nothing is rehearsed while somebody watches launches.
    """
    if _native.watchers(0):
        return
    # What fails here fails again, and is reported, where somebody makes a call. An import does not.
    with suppress(Exception), registry.rehearsing(target):
        make_calls(target)
    forget_programs()


def make_calls(target: Target) -> None:
    """Call elementwise kernels with an array that they only seem to touch; nothing is allocated."""
    array = np.empty(1, np.float32) if arrays.HOST in target.device_types else _native.meet()
    for salt in range(_REHEARSALS):
        kernel = ElementwiseKernel("float32 x", "float32 y", f"y = x + {salt}", "rehearsal")
        ReductionKernel("float32 x", "float32 y", "x", "a + b", f"y = a + {salt}", "0", "rehearsal")
        if array is not None:
            kernel._launch(array, array)
