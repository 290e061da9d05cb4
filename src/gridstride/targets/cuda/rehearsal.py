"""A CUDA target whose driver does nothing: launches on it run the code that launches on the real one will run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gridstride import _native
from gridstride.targets.base import CType, FunctionRecord, Limits, ObjectCode, Parameter, Program
from gridstride.targets.cuda.driver import Driver
from gridstride.targets.cuda.nvrtc import Nvrtc
from gridstride.targets.cuda.runtime import CudaTarget

#: Of every function: enough threads for a block, and not too much shared memory.
_ATTRIBUTE = 1024
_FLOAT = CType("scalar", "float", 4, 4, np.dtype(np.float32))
_INT = CType("scalar", "int", 4, 4, np.dtype(np.int32))
_POINTER = CType("pointer", "float *", 8, 8, pointee=_FLOAT)


class Rehearsal(CudaTarget):
    """Go the way of a CUDA target up to the driver, with one device and no context.

    Every program is taken for one whose kernels have the parameters ``(float *, float, int)``.

    Parameters
    ----------
    nvrtc : Nvrtc
    limits : Limits
        Of a device.
    nothing : int
        Address of a function that takes anything, does nothing and returns 0.
    """

    name = "rehearsal"

    def __init__(self, nvrtc: Nvrtc, limits: Limits, nothing: int) -> None:
        super().__init__(SilentDriver(nothing), nvrtc)
        self._limits[0] = limits
        self._primary[0] = 0
        self._contexts.know(0, 0)

    def compile(self, program: Program, arch: str) -> ObjectCode:
        signature = Parameter("x", _POINTER, 0), Parameter("y", _FLOAT, 8), Parameter("n", _INT, 12)
        functions = {name: FunctionRecord(name, signature) for name in program.kernels}
        return ObjectCode("cubin", b"", functions, dependencies=None)


class SilentDriver(Driver):
    """Answer every call with success and every question with 0, but for the attributes of functions.

    Parameters
    ----------
    nothing : int
        Address of the function that does so.
    """

    def __init__(self, nothing: int) -> None:
        self._nothing = nothing
        self.provide_context = lambda: False
        self.function_attribute = lambda number, function: _ATTRIBUTE

    def address(self, name: str) -> int:
        return self._nothing

    def _checked(self, name: str) -> Callable[..., Any]:
        return lambda *arguments: 0


def rehearsal_of(target: CudaTarget, device: int) -> Rehearsal | None:
    """Return a rehearsal for launches on a device of a target; None without the compiled fast path."""
    nothing = _native.nothing_routine()
    return None if nothing is None else Rehearsal(target.nvrtc, target.limits(device), nothing)
