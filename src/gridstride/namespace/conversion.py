"""Names of CuPy that mean the same over any array library: `asnumpy`, `get_array_module`, `ndarray`."""

from __future__ import annotations

from operator import index
from types import ModuleType
from typing import Any

import numpy as np

from gridstride import arrays
from gridstride._runtime.deferred import catch_up
from gridstride._runtime.pointer import MemoryPointer
from gridstride.arrays import CUDA, HOST
from gridstride.namespace.backend import active_library, get_backend


def asnumpy(
    a: Any,
    stream: Any = None,
    order: str = "C",
    out: np.ndarray[Any, Any] | None = None,
    *,
    blocking: bool = True,
) -> np.ndarray[Any, Any]:
    """Return an array's values as a NumPy array.

    Host arrays come back without a copy where they can; in deferred mode (`cuda.asynchronous_cpu`) the
    current stream catches up first, as the copy from a GPU would wait for it.

    Parameters
    ----------
    a : array of any library, memory pointer, or anything ``numpy.asarray`` takes
    stream : optional
        For CuPy arrays: the stream the copy goes to.
    order : str
        ``"C"``, ``"F"`` or ``"A"``.
    out : numpy.ndarray, optional
        Filled and returned.
    blocking : bool
        For CuPy arrays: whether the call waits for the copy.
    """
    if arrays.library_of(a) == "cupy":
        cupy = arrays.library_module("cupy")
        copied: np.ndarray[Any, Any] = cupy.asnumpy(a, stream, order, out, blocking=blocking)
        return copied
    catch_up()
    host = _on_host(a)
    if out is None:
        return np.asarray(host, order=order)  # type: ignore[call-overload, no-any-return]
    np.copyto(out, host)
    return out


def get_array_module(*args: Any) -> ModuleType:
    """Return CuPy where an argument is a CuPy array, else NumPy."""
    if any(arrays.library_of(argument) == "cupy" for argument in args):
        return arrays.library_module("cupy")
    return np


class _ArrayClass(type):
    """Let a class stand for the active library's array class."""

    def __call__(
        cls, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: str = "C"
    ) -> Any:
        if memptr is None:
            return active_library().ndarray(shape, dtype, strides=strides, order=order)
        return _array_over(memptr, shape, np.dtype(dtype), strides, order)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, active_library().ndarray)

    def __getattr__(cls, name: str) -> Any:
        return getattr(active_library().ndarray, name)


class ndarray(metaclass=_ArrayClass):  # noqa: N801 - the libraries' spelling
    """Make an array of the active library, or one over memory of ours.

    ``isinstance`` tells arrays of the active library.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : dtype
    memptr : MemoryPointer or PinnedMemoryPointer, optional
        Memory to use and keep alive: a NumPy array over host memory, a CuPy array over CUDA memory; over
        a `MemoryPointer` to pinned or managed memory one of the active library.
    strides : tuple of int, optional
        In bytes.
    order : str
        ``"C"`` or ``"F"``.

    Raises
    ------
    ValueError
        Where the elements reach outside the memory.
    """


def _array_over(memory: Any, shape: Any, dtype: np.dtype[Any], strides: Any, order: str) -> Any:
    shape = tuple(map(index, (shape,) if hasattr(shape, "__index__") else shape))
    if any(length < 0 for length in shape):
        raise ValueError(f"a shape cannot be negative, got {shape}")
    if dtype.hasobject:
        raise TypeError(f"an array over memory holds numbers, not Python objects, got dtype {dtype}")
    if strides is not None and len(strides) != len(shape):
        raise ValueError(f"{len(shape)} axes need as many strides, got {len(strides)}")
    if order not in ("C", "F"):
        raise ValueError(f"order must be 'C' or 'F', got {order!r}")
    if strides is None and order == "F":
        strides = _column_major(shape, dtype.itemsize)
    seen = arrays.view(memory)
    if seen is None or seen.library != "memory":
        raise TypeError(f"memptr must be a memory pointer, got {type(memory).__name__}")
    highest = arrays.ArrayView(None, 0, dtype, shape, strides, HOST, 0, False, "memory").extent
    if highest[0] < 0 or highest[1] > seen.nbytes:
        raise ValueError(
            f"an array of {dtype.name} {shape} reaches bytes {highest[0]} to {highest[1]} of memory of {seen.nbytes}"
        )
    adapter = arrays.adapter_of(_library_over(memory, seen.device_type))
    assert adapter is not None
    return adapter.wrap(memory, shape, dtype, strides)


def _library_over(memory: Any, device_type: int) -> str:
    """Return the library for arrays over memory: the active one where both can reach it."""
    if isinstance(memory, MemoryPointer) and memory.mem.is_on_host and device_type == CUDA:
        return get_backend()
    return "cupy" if device_type == CUDA else "numpy"


def _column_major(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides = []
    for length in shape:
        strides.append(itemsize)
        itemsize *= length
    return tuple(strides)


def _on_host(a: Any) -> Any:
    if isinstance(a, MemoryPointer):
        content = np.empty(a.size, np.uint8)
        a.copy_to_host(content)
        return content
    if arrays.library_of(a) == "torch":
        return a.detach().cpu().resolve_conj().resolve_neg().numpy()
    return a
