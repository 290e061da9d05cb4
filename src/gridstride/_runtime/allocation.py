"""What allocators are, and how requests for memory fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gridstride.errors import CUDAError, OutOfMemoryError
from gridstride.targets.base import Target

Allocator = Callable[[int], Any]
_OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY


def require_allocator(allocator: object) -> None:
    """Raise TypeError for what cannot be called and is not None."""
    if allocator is not None and not callable(allocator):
        raise TypeError(
            f"an allocator is a function of a size, such as MemoryPool().malloc, got {type(allocator).__name__}"
        )


def out_of_memory(
    target: Target, device: int, size: int, used: int, cached: int, limit: int
) -> OutOfMemoryError:
    """Return the error that says why a pool has no memory."""
    free, total = target.memory_info(device)
    bound = f"its limit is {limit} bytes" if limit else "it has no limit"
    message = (
        f"no room for {size} bytes on {target.name} device {device}: the pool has {used} bytes in use and "
        f"{cached} bytes cached, {bound}, and the device has {free} of {total} bytes free"
    )
    return OutOfMemoryError(message, size=size, used=used, cached=cached, limit=limit)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that a device or the host has no more memory."""
    return isinstance(error, MemoryError) or (isinstance(error, CUDAError) and error.code == _OUT_OF_MEMORY)
