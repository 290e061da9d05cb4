"""NumPy's own allocations, taken from elsewhere (NEP 49)."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

from gridstride import _native
from gridstride.arrays.adapter import Leave, Malloc


class Allocations:
    """Give NumPy memory of `malloc`, and keep each piece until NumPy gives it back.

    Parameters
    ----------
    malloc : callable
    """

    def __init__(self, malloc: Malloc) -> None:
        self._malloc = malloc
        self._pieces: dict[int, Any] = {}
        #: What `malloc` raised last: NumPy replaces it by an error of its own.
        self.failure: BaseException | None = None

    def allocate(self, size: int) -> int:
        """Return the address of new memory; 0 where there is none."""
        leave = _exchange(None)  # what `malloc` itself makes of NumPy's arrays
        try:
            pointer = self._malloc(max(size, 1))
        except BaseException as failure:
            self.failure = failure
            return 0
        finally:
            leave()
        address: int = pointer.ptr
        self._pieces[address] = pointer
        return address

    def reallocate(self, address: int, size: int) -> int:
        """Return the address of memory with the same content and another size; 0 where there is none."""
        moved = self.allocate(size)
        if moved and address:
            ctypes.memmove(moved, address, min(size, self._pieces[address].size))
            self.release(address)
        return moved

    def release(self, address: int) -> None:
        """Give memory back."""
        self._pieces.pop(address, None)


def enter_allocator(malloc: Malloc | None) -> Leave:
    """Let NumPy take its memory from `malloc` in this thread or task; see `Adapter.enter_allocator`."""
    if malloc is None:
        return _exchange(None)
    allocations = Allocations(malloc)
    handler = _native.numpy_handler(allocations.allocate, allocations.reallocate, allocations.release)
    leave_handler = _exchange(handler)

    def leave() -> None:
        leave_handler()
        if allocations.failure is not None:
            failure, allocations.failure = allocations.failure, None
            _explain(failure)

    return leave


def _exchange(handler: object | None) -> Leave:
    api = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    previous = _native.exchange_numpy_handler(api, handler)

    def leave() -> None:
        _native.exchange_numpy_handler(api, previous)

    return leave


def _explain(failure: BaseException) -> None:
    """Say in NumPy's error, where one is on its way, why there was no memory."""
    error = sys.exc_info()[1]
    if isinstance(error, MemoryError) and error.__cause__ is None and error is not failure:
        error.__cause__ = failure
        error.add_note(str(failure))
