"""Write a GPU kernel in CUDA C++ from Python and run it on an NVIDIA GPU or on the CPU, from the same call.

Raw kernels are imported at once, so that the first launch finds everything in place; every other
public name when it is first used. A name that is not ours is looked up in the
active array library, so that ``gridstride.zeros`` makes a NumPy or a CuPy array.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gridstride.families.raw import RawKernel, RawModule, compile_with_cache

if TYPE_CHECKING:
    from gridstride import cuda
    from gridstride._arguments.parameters import ParameterInfo
    from gridstride._runtime.allocator import get_default_memory_pool
    from gridstride._runtime.pinned import get_default_pinned_memory_pool
    from gridstride._runtime.threads import get_num_threads, set_num_threads
    from gridstride.errors import (
        ArgumentRangeError,
        ArgumentTypeError,
        CompileError,
        CUDAError,
        GridstrideError,
        LaunchError,
        OutOfMemoryError,
        StreamOrderError,
        StreamOrderWarning,
        SymbolNotFound,
        TargetUnavailable,
    )
    from gridstride.families.elementwise import ElementwiseKernel, create_elementwise_kernel
    from gridstride.families.fuse import fuse
    from gridstride.families.memoize import clear_memo, memoize
    from gridstride.families.reduction import ReductionKernel, create_reduction_kernel
    from gridstride.namespace import (
        asnumpy,
        get_array_module,
        get_backend,
        ndarray,
        set_backend,
        use_backend,
    )
    from gridstride.targets.registry import use_target

__version__ = "0.1.0"

__all__ = [
    "ArgumentRangeError",
    "ArgumentTypeError",
    "CUDAError",
    "CompileError",
    "ElementwiseKernel",
    "GridstrideError",
    "LaunchError",
    "OutOfMemoryError",
    "ParameterInfo",
    "RawKernel",
    "RawModule",
    "ReductionKernel",
    "StreamOrderError",
    "StreamOrderWarning",
    "SymbolNotFound",
    "TargetUnavailable",
    "asnumpy",
    "clear_memo",
    "compile_with_cache",
    "create_elementwise_kernel",
    "create_reduction_kernel",
    "cuda",
    "fuse",
    "get_array_module",
    "get_backend",
    "get_default_memory_pool",
    "get_default_pinned_memory_pool",
    "get_num_threads",
    "memoize",
    "ndarray",
    "set_backend",
    "set_num_threads",
    "use_backend",
    "use_target",
]

_ROOMS = {
    "_runtime.allocator": ("get_default_memory_pool",),
    "_runtime.pinned": ("get_default_pinned_memory_pool",),
    "_runtime.threads": ("get_num_threads", "set_num_threads"),
    "errors": (
        "ArgumentRangeError",
        "ArgumentTypeError",
        "CUDAError",
        "CompileError",
        "GridstrideError",
        "LaunchError",
        "OutOfMemoryError",
        "StreamOrderError",
        "StreamOrderWarning",
        "SymbolNotFound",
        "TargetUnavailable",
    ),
    "_arguments.parameters": ("ParameterInfo", "_get_param_info"),
    "families.elementwise": ("ElementwiseKernel", "create_elementwise_kernel"),
    "families.fuse": ("fuse",),
    "families.memoize": ("clear_memo", "memoize"),
    "families.reduction": ("ReductionKernel", "create_reduction_kernel"),
    "namespace": (
        "asnumpy",
        "get_array_module",
        "get_backend",
        "ndarray",
        "set_backend",
        "use_backend",
    ),
    "targets.registry": ("use_target",),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}
#: Python asks the package for an attribute before it imports a submodule of that name.
_SUBMODULES = frozenset(
    {"arrays", "cli", "config", "cuda", "demo", "errors", "families", "namespace", "targets"}
)


for _target in import_module("gridstride.targets.registry").anticipate():
    import_module("gridstride.families.rehearsal").rehearse(_target)


def __getattr__(name: str) -> Any:
    room = _ROOM_OF.get(name)
    if room is not None:
        value = getattr(import_module(f"{__name__}.{room}"), name)
        value.__module__ = __name__  # a pickle or a traceback then names what users import
        globals()[name] = value
        return value
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gridstride import namespace

    return namespace.forward(name)


def __dir__() -> list[str]:
    from gridstride import namespace

    return sorted({*globals(), *__all__, *namespace.forwarded_names()})
