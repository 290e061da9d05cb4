"""The CUDA runtime as objects, on every target: devices, memory, streams, events, modules.

Without a GPU the same objects drive the CPU target.
"""

from gridstride._module import Function, Module
from gridstride._runtime.deferred import asynchronous_cpu
from gridstride._runtime.device import Device
from gridstride._runtime.event import Event, get_elapsed_time
from gridstride._runtime.graph import Graph
from gridstride._runtime.memory import BaseMemory, Memory, MemoryPointer, UnownedMemory, alloc
from gridstride._runtime.order import check_stream_order
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

__all__ = [
    "BaseMemory",
    "BaseStream",
    "Device",
    "Event",
    "ExternalStream",
    "Function",
    "Graph",
    "Memory",
    "MemoryPointer",
    "Module",
    "Stream",
    "UnownedMemory",
    "alloc",
    "asynchronous_cpu",
    "check_stream_order",
    "cublas",
    "curand",
    "cusolver",
    "cusparse",
    "driver",
    "get_cublas_handle",
    "get_cuda_path",
    "get_current_stream",
    "get_device_id",
    "get_elapsed_time",
    "get_hipcc_path",
    "get_local_runtime_version",
    "get_nvcc_path",
    "get_rocm_path",
    "is_available",
    "nvrtc",
    "nvtx",
    "profile",
    "profiler",
    "runtime",
    "set_device",
    "synchronize",
]

cublas, curand = CuPyNamespace("cublas"), CuPyNamespace("curand")
cusolver, cusparse = CuPyNamespace("cusolver"), CuPyNamespace("cusparse")
