"""Random numbers and matrix products for streams in capture, where CuPy refuses to call its libraries."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gridstride import _dtypes
from gridstride._module import Function, Module
from gridstride._runtime import capture
from gridstride._runtime.capture import Capture
from gridstride._runtime.memory import Memory
from gridstride._runtime.pointer import MemoryPointer
from gridstride._runtime.stream import Stream, get_current_stream

#: Makes an uninitialized array: shape, dtype.
Empty = Callable[[tuple[int, ...], Any], Any]

_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
_THREADS, _SIDE = 256, 16


def draw(kind: str, shape: tuple[int, ...], dtype: Any, empty: Empty, current: Capture) -> Any:
    """Record the drawing of random numbers; every replay of the graph draws new ones.

    Parameters
    ----------
    kind : {"uniform", "normal"}
        From 0 to 1, or with mean 0 and variance 1.
    shape : tuple of int
    dtype : dtype
        float32 or float64.
    empty : callable
        Makes the result.
    current : Capture
        Of the current stream.

    Raises
    ------
    TypeError
        For another dtype.
    """
    out = empty(shape, _checked(np.dtype(dtype)))
    size = int(np.prod(shape, dtype=np.int64))
    launches = _launch_counter(current)
    if size:
        arguments = out, size, secrets.randbits(63), launches
        _function(kind, out.dtype)(-(-size // _THREADS), _THREADS, arguments, stream=current.stream)
        _function("advance")(1, 1, (launches,), stream=current.stream)
    return out


def matmul(a: Any, b: Any, empty: Empty, stream: Any) -> Any:
    """Record the product of two matrices.

    Parameters
    ----------
    a, b : arrays
        C-contiguous, two-dimensional, both of dtype float32 or float64.
    empty : callable
        Makes the result.
    stream : Stream
        That is captured.

    Raises
    ------
    TypeError, ValueError
        For other arrays.
    """
    if a.dtype != b.dtype:
        raise TypeError(f"inside a capture both matrices need one dtype, got {a.dtype} and {b.dtype}")
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"matrices of shapes {tuple(a.shape)} and {tuple(b.shape)} have no product")
    (rows, inner), columns = a.shape, b.shape[1]
    out = empty((rows, columns), _checked(a.dtype))
    if rows and columns:
        grid = -(-columns // _SIDE), -(-rows // _SIDE)
        _function("matmul", a.dtype)(grid, (_SIDE, _SIDE), (a, b, out, rows, inner, columns), stream=stream)
    return out


def current_capture() -> Capture | None:
    """Return the capture that the current stream of the default target takes part in."""
    stream = get_current_stream()
    return capture.find(stream.target, stream.ptr)


def _checked(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype not in _DTYPES:
        raise TypeError(f"inside a capture dtype must be float32 or float64, got {dtype}")
    return dtype


def _function(name: str, dtype: np.dtype[Any] | None = None) -> Function:
    return _functions(name if dtype is None else f"{name}<{_dtypes.ctype_of_dtype(dtype)}>")


@cache
def _functions(expression: str) -> Function:
    return _module().get_function(expression)


@cache
def _module() -> Module:
    return Module.load_from_string(Path(__file__).with_name("captured.cu").read_text())


def _launch_counter(current: Capture) -> MemoryPointer:
    """Return the memory in which a graph counts its draws.

    It is zeroed on a stream of its own, because work of the captured one would be done at every replay.
    """
    for kept in current.kept:
        if isinstance(kept, _Counter):
            return kept.memory
    counter = _Counter(current)
    current.kept.append(counter)
    return counter.memory


class _Counter:
    def __init__(self, current: Capture) -> None:
        self.memory = MemoryPointer(Memory(8, target=current.target), 0)
        stream = Stream(non_blocking=True, target=current.target)
        self.memory.memset_async(0, stream=stream)
        current.at_end(stream.synchronize)
