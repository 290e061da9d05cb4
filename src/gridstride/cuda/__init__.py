"""The CUDA runtime as objects, on every target: devices, memory, streams, events, modules.

Without a GPU the same objects drive the CPU target.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gridstride._module import Function, Module
from gridstride._runtime.allocator import (
    alloc,
    get_allocator,
    get_default_memory_pool,
    set_allocator,
    using_allocator,
)
from gridstride._runtime.deferred import asynchronous_cpu
from gridstride._runtime.device import Device
from gridstride._runtime.event import Event, get_elapsed_time
from gridstride._runtime.graph import Graph
from gridstride._runtime.memory import BaseMemory, ManagedMemory, Memory, MemoryAsync, UnownedMemory
from gridstride._runtime.order import check_stream_order
from gridstride._runtime.pointer import MemoryPointer, malloc_async, malloc_managed
from gridstride._runtime.stream import BaseStream, ExternalStream, Stream, get_current_stream
from gridstride.cuda import driver, nvrtc, nvtx, profiler, runtime
from gridstride.cuda.devices import get_cublas_handle, get_device_id, is_available, set_device, synchronize
from gridstride.cuda.environment import (
    get_cuda_path,
    get_hipcc_path,
    get_local_runtime_version,
    get_nvcc_path,
    get_rocm_path,
)
from gridstride.cuda.forwarding import CuPyNamespace
from gridstride.cuda.profiler import profile

if TYPE_CHECKING:
    from gridstride._runtime.async_pool import MemoryAsyncPool
    from gridstride._runtime.function_allocators import CFunctionAllocator, PythonFunctionAllocator
    from gridstride._runtime.hooks import MemoryHook
    from gridstride._runtime.interprocess import InterprocessMemory
    from gridstride._runtime.pinned import (
        PinnedMemory,
        PinnedMemoryPointer,
        PinnedMemoryPool,
        alloc_pinned_memory,
        get_default_pinned_memory_pool,
        set_pinned_memory_allocator,
    )
    from gridstride._runtime.pool import MemoryPool
    from gridstride._runtime.ready_hooks import DebugPrintHook, LaunchHook, LineProfileHook

__all__ = [
    "BaseMemory",
    "BaseStream",
    "CFunctionAllocator",
    "DebugPrintHook",
    "Device",
    "Event",
    "ExternalStream",
    "Function",
    "Graph",
    "InterprocessMemory",
    "LaunchHook",
    "LineProfileHook",
    "ManagedMemory",
    "Memory",
    "MemoryAsync",
    "MemoryAsyncPool",
    "MemoryHook",
    "MemoryPointer",
    "MemoryPool",
    "Module",
    "PinnedMemory",
    "PinnedMemoryPointer",
    "PinnedMemoryPool",
    "PythonFunctionAllocator",
    "Stream",
    "UnownedMemory",
    "alloc",
    "alloc_pinned_memory",
    "asynchronous_cpu",
    "check_stream_order",
    "cublas",
    "curand",
    "cusolver",
    "cusparse",
    "driver",
    "get_allocator",
    "get_cublas_handle",
    "get_cuda_path",
    "get_current_stream",
    "get_default_memory_pool",
    "get_default_pinned_memory_pool",
    "get_device_id",
    "get_elapsed_time",
    "get_hipcc_path",
    "get_local_runtime_version",
    "get_nvcc_path",
    "get_rocm_path",
    "is_available",
    "malloc_async",
    "malloc_managed",
    "nvrtc",
    "nvtx",
    "profile",
    "profiler",
    "runtime",
    "set_allocator",
    "set_device",
    "set_pinned_memory_allocator",
    "synchronize",
    "using_allocator",
]

cublas, curand = CuPyNamespace("cublas"), CuPyNamespace("curand")
cusolver, cusparse = CuPyNamespace("cusolver"), CuPyNamespace("cusparse")

#: What is imported when it is first used, by module.
_LATER = {
    "async_pool": ("MemoryAsyncPool",),
    "function_allocators": ("CFunctionAllocator", "PythonFunctionAllocator"),
    "hooks": ("MemoryHook",),
    "interprocess": ("InterprocessMemory",),
    "pinned": (
        "PinnedMemory",
        "PinnedMemoryPointer",
        "PinnedMemoryPool",
        "alloc_pinned_memory",
        "get_default_pinned_memory_pool",
        "set_pinned_memory_allocator",
    ),
    "pool": ("MemoryPool",),
    "ready_hooks": ("DebugPrintHook", "LaunchHook", "LineProfileHook"),
}
_MODULE_OF = {name: module for module, names in _LATER.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"gridstride._runtime.{module}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
