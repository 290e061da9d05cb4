"""Look at arrays of any library: where their memory is, what it holds, and how to make more of it.

Libraries are recognized by the names of their classes and imported only once an array of theirs is at hand.
"""

from gridstride.arrays.adapter import Adapter, library_module
from gridstride.arrays.registry import (
    adapter_of,
    allocating_adapters,
    library_of,
    loaded_adapters,
    memory_of,
    resolved,
    view,
)
from gridstride.arrays.view import (
    CUDA,
    HOST,
    MANAGED,
    PINNED,
    UNKNOWN_DEVICE,
    ArrayView,
)

__all__ = [
    "CUDA",
    "HOST",
    "MANAGED",
    "PINNED",
    "UNKNOWN_DEVICE",
    "Adapter",
    "ArrayView",
    "adapter_of",
    "allocating_adapters",
    "library_module",
    "library_of",
    "loaded_adapters",
    "memory_of",
    "resolved",
    "view",
]
