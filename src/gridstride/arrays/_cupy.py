"""CuPy arrays."""

from __future__ import annotations

import atexit
from functools import lru_cache, partial
from math import prod
from typing import Any

import numpy as np

from gridstride.arrays.adapter import (
    Adapter,
    Allocation,
    Leave,
    Malloc,
    StreamSwitch,
    descends_from,
    library_module,
)
from gridstride.arrays.view import CUDA, ArrayView, Shape, make_view

_ARRAYS = frozenset({"ndarray"})


class CuPyAdapter(Adapter):
    """CuPy arrays; CuPy keeps a current stream for every thread and device."""

    name = "cupy"
    stream_device_type = CUDA
    allocation_device_type = CUDA

    def recognizes(self, kind: type, array: object) -> bool:
        return descends_from(kind, "cupy", _ARRAYS)

    def view(self, array: Any) -> ArrayView:
        memory = array.data
        return make_view(
            (
                array,
                memory.ptr,
                array.dtype,
                array.shape,
                None if array.flags.c_contiguous else array.strides,
                CUDA,
                memory.device_id,
                False,
                "cupy",
                False,
                None,
            )
        )

    def allocate(self, like: Any, shape: Shape, dtype: np.dtype[Any], stream: int) -> Any:
        cupy = library_module("cupy")
        device = cupy.cuda.runtime.getDevice() if like is None else like.data.device_id
        with cupy.cuda.Device(device):
            current = cupy.cuda.get_current_stream(device)
            if current.ptr == stream:
                return cupy.empty(shape, dtype)
            # Leaving a block of CuPy's makes the stream of the block around it current, not one that is in use.
            _foreign_stream(cupy, stream, device).use()
            try:
                return cupy.empty(shape, dtype)
            finally:
                current.use()

    def allocation(self, like: Any, shape: Shape, dtype: np.dtype[Any]) -> Allocation:
        cupy = library_module("cupy")
        size = prod(shape) * dtype.itemsize
        return Allocation(cupy.cuda.alloc, (size,), {}, partial(cupy.ndarray, shape, dtype))

    def current_stream(self, device: int) -> int:
        cupy = library_module("cupy")
        handle: int = cupy.cuda.get_current_stream(device).ptr
        return handle

    def stream_switch(self) -> StreamSwitch:
        cupy = library_module("cupy")
        kind = cupy.cuda.Stream  # its methods are those of all its classes of streams
        of = partial(_foreign_stream, cupy)
        return StreamSwitch(cupy.cuda.get_current_stream, of, kind.use, kind.__enter__, kind.__exit__)

    def memory_of(self, array: Any) -> object | None:
        # CuPy's memory cannot be referred to weakly; all views of it hold the array that it was made for.
        whole: object = array if array.base is None else array.base
        return whole

    def enter_allocator(self, malloc: Malloc | None) -> Leave:
        cupy = library_module("cupy")
        block = cupy.cuda.using_allocator(_allocator(cupy, malloc))
        block.__enter__()
        _entered_blocks[id(block)] = block
        return lambda: _leave_block(id(block))

    def set_allocator(self, malloc: Malloc | None) -> None:
        cupy = library_module("cupy")
        cupy.cuda.set_allocator(_allocator(cupy, malloc))

    def default_pool(self) -> Any:
        return library_module("cupy").get_default_memory_pool()

    def default_pinned_pool(self) -> Any:
        return library_module("cupy").get_default_pinned_memory_pool()

    def release_cached(self) -> None:
        cupy = library_module("cupy")
        cupy.get_default_memory_pool().free_all_blocks()

    def wrap(self, memory: Any, shape: Shape, dtype: np.dtype[Any], strides: Shape | None = None) -> Any:
        cupy = library_module("cupy")
        from gridstride.arrays.registry import view

        seen = view(memory)
        if seen is None or seen.device_type == 1:
            raise TypeError(f"CuPy makes arrays over CUDA memory, got {type(memory).__name__}")
        low, high = seen.extent
        whole = cupy.cuda.UnownedMemory(low, high - low, memory, seen.device)
        return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(whole, 0), strides)


#: CuPy's blocks that were not left yet.
_entered_blocks: dict[int, Any] = {}


def _leave_block(key: int) -> None:
    block = _entered_blocks.pop(key, None)
    if block is not None:
        block.__exit__(None, None, None)


@atexit.register
def _leave_all_blocks() -> None:
    """Leave what is left open at exit: the interpreter would do it when CuPy's functions are gone."""
    for key in reversed(list(_entered_blocks)):
        _leave_block(key)


def _allocator(cupy: Any, malloc: Malloc | None) -> Malloc | None:
    """Return a function that hands memory of `malloc` to CuPy."""
    if malloc is None:
        return None

    def allocate(size: int) -> Any:
        pointer = malloc(size)
        inner = getattr(pointer.mem, "owner", None)
        if isinstance(inner, cupy.cuda.MemoryPointer):  # from a pool of CuPy's own
            return inner
        memory = cupy.cuda.UnownedMemory(pointer.ptr, pointer.size, pointer, pointer.device_id)
        return cupy.cuda.MemoryPointer(memory, 0)

    return allocate


class _Handle:
    """Show a raw stream handle as the CUDA stream protocol asks."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


@lru_cache(maxsize=64)
def _foreign_stream(cupy: Any, stream: int, device: int) -> Any:
    """Return CuPy's object for a stream of ours; CuPy 14 deprecates `ExternalStream`."""
    make = getattr(getattr(cupy.cuda, "Stream", None), "from_external", None)
    with cupy.cuda.Device(device):
        return cupy.cuda.ExternalStream(stream, device) if make is None else make(_Handle(stream))
