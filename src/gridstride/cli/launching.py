"""Launch a kernel on a target's memory, time it, and bring back what it wrote."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gridstride import _dtypes, cuda
from gridstride._module import Function
from gridstride.arrays import HOST
from gridstride.cli.arguments import Argument
from gridstride.targets.base import Signature, Target


class Measured(NamedTuple):
    """Hold the seconds of a run and the arrays it wrote, as they were after the first launch.

    Attributes
    ----------
    prepared, first : float
        Compiling and loading, or finding it in the cache; the first launch.
    times : list of float
        The launches after it.
    results : mapping of name to array
    """

    prepared: float
    first: float
    times: list[float]
    results: dict[str, np.ndarray[Any, Any]]


def signature_of(function: Function) -> tuple[float, Signature]:
    """Return the seconds of compiling and loading a kernel, and what the compiler says of its parameters."""
    began = time.perf_counter()
    signature = function._prepare().loaded.signature or ()
    return time.perf_counter() - began, signature


def measure(
    target: Target,
    function: Function,
    grid: Sequence[int],
    block: Sequence[int],
    shared_mem: int,
    arguments: Iterable[Argument],
    repeats: int,
) -> Measured:
    """Launch once, keep what was written, then launch again to measure.

    Raises
    ------
    TypeError, ValueError, OverflowError, GridstrideError
        As a call of the kernel does.
    """
    arguments = list(arguments)
    arrays = {
        each.name: _placed(target, each.value) for each in arguments if isinstance(each.value, np.ndarray)
    }
    values = [arrays[each.name].argument if each.name in arrays else each.value for each in arguments]
    began = time.perf_counter()
    prepared = function.prepare(grid, block, values, shared_mem)
    prepared_seconds = time.perf_counter() - began
    first = _elapsed(prepared)
    results = {each.name: np.array(arrays[each.name].fetch()) for each in arguments if each.is_written}
    return Measured(prepared_seconds, first, [_elapsed(prepared) for _ in range(repeats)], results)


class _HostArray:
    """An array that the target's kernels reach where it is."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.argument: Any = array

    def fetch(self) -> np.ndarray[Any, Any]:
        return self.argument  # type: ignore[no-any-return]


class _DeviceArray:
    """A copy of an array in the target's memory, shown by the attribute that array libraries look for."""

    def __init__(self, array: np.ndarray[Any, Any], protocol: str) -> None:
        self.memory = cuda.alloc(array.nbytes)
        self.memory.copy_from_host(array)
        self.host = np.empty_like(array)
        shown = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "descr": array.dtype.descr,
            "data": (self.memory.ptr, False),
            "version": 3,
        }
        setattr(self, protocol, shown)
        # No type string stands for bfloat16; memory without a type serves any pointer.
        self.argument: Any = self.memory if _dtypes.is_bfloat16(array.dtype) else self

    def fetch(self) -> np.ndarray[Any, Any]:
        self.memory.copy_to_host(self.host)
        return self.host


def _placed(target: Target, array: np.ndarray[Any, Any]) -> _HostArray | _DeviceArray:
    array = np.ascontiguousarray(array).reshape(array.shape)
    return _HostArray(array) if HOST in target.device_types else _DeviceArray(array, target.array_protocol)


def _elapsed(launch: Callable[[], Any]) -> float:
    begin, end = cuda.Event(), cuda.Event()
    begin.record()
    launch()
    end.record()
    end.synchronize()
    return cuda.get_elapsed_time(begin, end) / 1e3
