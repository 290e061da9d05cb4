"""Allocators made of functions: of Python, or of C."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from operator import index
from typing import Any

from gridstride import arrays
from gridstride._runtime.memory import BaseMemory, UnownedMemory, checked_size
from gridstride._runtime.pointer import MemoryPointer
from gridstride.targets import registry
from gridstride.targets.base import Target

Free = Callable[[int, int], object]


class PythonFunctionAllocator:
    """Allocate with a Python function.

    Parameters
    ----------
    func : callable
        ``func(size, arg)`` returns a `MemoryPointer`, other memory, an array, or the address of memory
        that somebody else keeps.
    arg : object
        Handed to it. Where it is a function itself the two are CuPy's pair: ``func(size, device_id)``
        returns an address and ``arg(address, device_id)`` gives the memory back.

    Examples
    --------
    >>> import gridstride as gs
    >>> sizes = []
    >>> def allocate(size, pool):
    ...     sizes.append(size)
    ...     return pool.malloc(size)
    >>> allocator = gs.cuda.PythonFunctionAllocator(allocate, gs.cuda.MemoryPool())
    >>> with gs.cuda.using_allocator(allocator.malloc):
    ...     memory = gs.cuda.alloc(100)
    >>> sizes
    [100]
    """

    def __init__(self, func: Callable[[int, Any], Any], arg: Any, *, target: Target | None = None) -> None:
        if not callable(func):
            raise TypeError(f"func must be a function, got {type(func).__name__}")
        self.target: Target = registry.default() if target is None else target
        self._func = func
        self._arg = arg

    def __call__(self, size: int) -> MemoryPointer:
        return self.malloc(size)

    def malloc(self, size: int) -> MemoryPointer:
        """Allocate memory.

        Parameters
        ----------
        size : int
            Bytes.

        Raises
        ------
        TypeError
            Where the function returns something else than memory.
        MemoryError
            Where it returns address 0.
        """
        size = checked_size(size)
        if callable(self._arg):
            device = self.target.current_device()
            address = self._func(size, device)
            return MemoryPointer(FunctionMemory(address, size, device, self.target, self._arg), 0)
        return _pointer_to(self._func(size, self._arg), size, self.target, self)


class CFunctionAllocator:
    """Allocate with a C function.

    Parameters
    ----------
    func : int or ctypes function
        The address of a ``void *func(size_t size, int device, void *arg)``; null means that there is
        no memory.
    arg : int, ctypes.c_void_p or None
        Handed to it.
    free : int or ctypes function, optional
        The address of a ``void free(void *memory, int device, void *arg)`` that gives memory back;
        without it nobody does.

    Notes
    -----
    Objects that hold the functions, such as a ctypes library, are kept alive with the allocator.
    """

    def __init__(self, func: Any, arg: Any, free: Any = None, *, target: Target | None = None) -> None:
        self.target: Target = registry.default() if target is None else target
        self._given = func, free
        self._arg = arg if isinstance(arg, ctypes.c_void_p) else ctypes.c_void_p(arg)
        self._malloc = _ALLOCATE(_address_of(func))
        self._free = None if free is None else _RELEASE(_address_of(free))

    def __call__(self, size: int) -> MemoryPointer:
        return self.malloc(size)

    def malloc(self, size: int) -> MemoryPointer:
        """Allocate memory.

        Parameters
        ----------
        size : int
            Bytes.

        Raises
        ------
        MemoryError
            Where the function returns null.
        """
        size = checked_size(size)
        device = self.target.current_device()
        address = self._malloc(size, device, self._arg) or 0
        return MemoryPointer(FunctionMemory(address, size, device, self.target, self._give_back), 0)

    def _give_back(self, address: int, device: int) -> None:
        if self._free is not None:
            self._free(address, device, self._arg)


class FunctionMemory(BaseMemory):
    """Stand for memory that a function gave out and another one takes back."""

    __slots__ = ("_free",)

    def __init__(self, ptr: int, size: int, device_id: int, target: Target, free: Free) -> None:
        ptr = index(ptr)
        self._free: Free | None = None
        if not ptr and size:
            raise MemoryError(f"the allocating function has no {size} bytes")
        super().__init__(size, ptr, device_id, target=target)
        if ptr:
            self._free = free

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if self._free is not None and not finalizing():
            free, self._free = self._free, None
            free(self.ptr, self.device_id)


_ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)


def _address_of(function: Any) -> int:
    address = function if isinstance(function, int) else ctypes.cast(function, ctypes.c_void_p).value
    if not address:
        raise ValueError("the address of a C function cannot be 0")
    return address


def _pointer_to(allocated: Any, size: int, target: Target, owner: object) -> MemoryPointer:
    """Return a pointer to what a function returned as memory."""
    if isinstance(allocated, MemoryPointer):
        return allocated
    if isinstance(allocated, BaseMemory):
        return MemoryPointer(allocated, 0)
    if isinstance(allocated, int) and not isinstance(allocated, bool):
        if not allocated and size:
            raise MemoryError(f"the allocating function has no {size} bytes")
        return MemoryPointer(UnownedMemory(allocated, size, owner, target=target), 0)
    seen = arrays.view(allocated)
    if seen is None or not seen.c_contiguous or seen.nbytes < size:
        raise TypeError(
            f"an allocating function returns a MemoryPointer, memory, a contiguous array of {size} bytes or an "
            f"address, got {type(allocated).__name__}"
        )
    return MemoryPointer(UnownedMemory(seen.address, seen.nbytes, allocated, target=target), 0)
