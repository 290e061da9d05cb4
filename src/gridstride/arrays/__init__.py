"""Look at arrays of any library: where their memory is, what it holds, and how to make more of it.

Libraries are recognized by the names of their classes and imported only once an array of theirs is at hand.
"""

from gridstride.arrays.adapter import Adapter, StreamSwitch, library_module
from gridstride.arrays.registry import (
    LIBRARIES_WITH_STREAMS,
    adapter_of,
    allocating_adapters,
    library_of,
    loaded_adapters,
    makes_outputs,
    may_show_memory,
    memory_of,
    resolved,
    stream_switches,
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
    "LIBRARIES_WITH_STREAMS",
    "MANAGED",
    "PINNED",
    "UNKNOWN_DEVICE",
    "Adapter",
    "ArrayView",
    "StreamSwitch",
    "adapter_of",
    "allocating_adapters",
    "library_module",
    "library_of",
    "loaded_adapters",
    "makes_outputs",
    "may_show_memory",
    "memory_of",
    "resolved",
    "stream_switches",
    "view",
]
