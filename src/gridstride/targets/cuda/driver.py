"""The NVIDIA driver, through ctypes: one table of functions, every call checked."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from typing import Any

from gridstride import _native
from gridstride.errors import CUDAError

LIBRARY = "libcuda.so.1"
NOT_FOUND = 500
NOT_READY = 600
INVALID_VALUE = 1
INVALID_CONTEXT = 201

_HANDLE = c_void_p
_ADDRESS = c_uint64


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: a number and a value of 64 bytes."""

    _fields_ = (("id", c_uint), ("padding", c_uint), ("value", c_uint * 16))


class LaunchConfiguration(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_mem", c_uint),
        ("stream", _HANDLE),
        ("attributes", POINTER(LaunchAttribute)),
        ("attribute_count", c_uint),
    )


#: CUhostFn: what the driver calls in stream order, with a number of ours.
HOST_FUNCTION = ctypes.CFUNCTYPE(None, c_void_p)


class IpcHandle(ctypes.Structure):
    """CUipcMemHandle and CUipcEventHandle: 64 bytes, passed by value."""

    _fields_ = (("reserved", c_ubyte * 64),)


class PoolProperties(ctypes.Structure):
    """CUmemPoolProps: memory of one device, shared with no other process."""

    _fields_ = (
        ("allocation_type", c_int),
        ("handle_types", c_int),
        ("location_type", c_int),
        ("location", c_int),
        ("security_attributes", c_void_p),
        ("reserved", c_ubyte * 64),
    )


_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceTotalMem_v2": (POINTER(c_size_t), c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(_HANDLE), c_int),
    "cuCtxSynchronize": (),
    "cuMemAlloc_v2": (POINTER(_ADDRESS), c_size_t),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuMemAllocManaged": (POINTER(_ADDRESS), c_size_t, c_uint),
    "cuMemHostAlloc": (POINTER(c_void_p), c_size_t, c_uint),
    "cuMemFreeHost": (c_void_p,),
    "cuMemPoolCreate": (POINTER(_HANDLE), POINTER(PoolProperties)),
    "cuMemPoolDestroy": (_HANDLE,),
    "cuMemPoolSetAttribute": (_HANDLE, c_int, c_void_p),
    "cuMemPoolGetAttribute": (_HANDLE, c_int, c_void_p),
    "cuMemPoolTrimTo": (_HANDLE, c_size_t),
    "cuDeviceGetMemPool": (POINTER(_HANDLE), c_int),
    "cuMemcpyHtoD_v2": (_ADDRESS, c_void_p, c_size_t),
    "cuMemcpyDtoH_v2": (c_void_p, _ADDRESS, c_size_t),
    "cuMemcpyDtoD_v2": (_ADDRESS, _ADDRESS, c_size_t),
    "cuMemsetD8_v2": (_ADDRESS, c_ubyte, c_size_t),
    "cuMemcpyPeer": (_ADDRESS, _HANDLE, _ADDRESS, _HANDLE, c_size_t),
    "cuMemcpyPeerAsync": (_ADDRESS, _HANDLE, _ADDRESS, _HANDLE, c_size_t, _HANDLE),
    "cuIpcGetMemHandle": (POINTER(IpcHandle), _ADDRESS),
    "cuIpcOpenMemHandle_v2": (POINTER(_ADDRESS), IpcHandle, c_uint),
    "cuIpcCloseMemHandle": (_ADDRESS,),
    "cuIpcGetEventHandle": (POINTER(IpcHandle), _HANDLE),
    "cuIpcOpenEventHandle": (POINTER(_HANDLE), IpcHandle),
    "cuStreamGetFlags": (_HANDLE, POINTER(c_uint)),
    "cuEventElapsedTime": (POINTER(c_float), _HANDLE, _HANDLE),
    "cuLaunchHostFunc": (_HANDLE, HOST_FUNCTION, c_void_p),
    "cuStreamBeginCapture_v2": (_HANDLE, c_int),
    "cuStreamEndCapture": (_HANDLE, POINTER(_HANDLE)),
    "cuStreamGetCaptureInfo_v2": (
        _HANDLE, POINTER(c_int), POINTER(c_uint64), POINTER(_HANDLE), POINTER(POINTER(_HANDLE)), POINTER(c_size_t),
    ),
    "cuStreamUpdateCaptureDependencies": (_HANDLE, POINTER(_HANDLE), c_size_t, c_uint),
    "cuGraphAddChildGraphNode": (POINTER(_HANDLE), _HANDLE, POINTER(_HANDLE), c_size_t, _HANDLE),
    "cuThreadExchangeStreamCaptureMode": (POINTER(c_int),),
    "cuGraphInstantiateWithFlags": (POINTER(_HANDLE), _HANDLE, c_uint64),
    "cuGraphUpload": (_HANDLE, _HANDLE),
    "cuGraphDebugDotPrint": (_HANDLE, c_char_p, c_uint),
    "cuGraphDestroy": (_HANDLE,),
    "cuGraphExecDestroy": (_HANDLE,),
    "cuProfilerStart": (),
    "cuProfilerStop": (),
    "cuModuleLoadDataEx": (POINTER(_HANDLE), c_char_p, c_uint, POINTER(c_int), POINTER(c_void_p)),
    "cuModuleGetGlobal_v2": (POINTER(_ADDRESS), POINTER(c_size_t), _HANDLE, c_char_p),
    "cuModuleGetFunctionCount": (POINTER(c_uint), _HANDLE),
    "cuModuleEnumerateFunctions": (POINTER(_HANDLE), c_uint, _HANDLE),
    "cuFuncGetName": (POINTER(c_char_p), _HANDLE),
    "cuFuncGetParamInfo": (_HANDLE, c_size_t, POINTER(c_size_t), POINTER(c_size_t)),
    "cuFuncSetAttribute": (_HANDLE, c_int, c_int),
    "cuLaunchKernel": (
        _HANDLE, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, _HANDLE, POINTER(c_void_p), c_void_p,
    ),
    "cuLaunchKernelEx": (POINTER(LaunchConfiguration), _HANDLE, POINTER(c_void_p), c_void_p),
}  # fmt: skip
#: Called often, or where every microsecond counts, and with integers and bytes alone, so not through ctypes.
_OF_INTEGERS = frozenset(
    {
        "cuCtxSetCurrent",
        "cuEventDestroy_v2",
        "cuEventQuery",
        "cuEventRecord",
        "cuEventSynchronize",
        "cuGraphLaunch",
        "cuMemFreeAsync",
        "cuMemFree_v2",
        "cuMemcpyDtoDAsync_v2",
        "cuMemcpyDtoHAsync_v2",
        "cuMemcpyHtoDAsync_v2",
        "cuMemsetD8Async",
        "cuModuleUnload",
        "cuStreamDestroy_v2",
        "cuStreamQuery",
        "cuStreamSynchronize",
        "cuStreamWaitEvent",
    }
)
#: Our names for those of them that write an integer.
_WITH_RESULT = {
    "current_context": "cuCtxGetCurrent",
    "current_device": "cuCtxGetDevice",
    "function_attribute": "cuFuncGetAttribute",
    "function_of_module": "cuModuleGetFunction",
    "new_event": "cuEventCreate",
    "new_memory_async": "cuMemAllocAsync",
    "new_memory_of_pool": "cuMemAllocFromPoolAsync",
    "new_module": "cuModuleLoadDataEx",
    "new_stream": "cuStreamCreate",
}
#: Called to explain a failure, so not checked themselves.
_EXPLANATIONS = ("cuGetErrorName", "cuGetErrorString")


class Driver:
    """Call the driver's functions as methods; each raises `CUDAError` unless it succeeds.

    Queries return None where the work is done, and False where it is not.

    Parameters
    ----------
    library : str
        File name of the driver's library.

    Raises
    ------
    OSError
        There is no such library.
    """

    #: Called where a function of integers finds no context; returns whether there is one now.
    provide_context: Callable[[], bool]

    def __init__(self, library: str = LIBRARY) -> None:
        self._library = ctypes.CDLL(library)
        self._addresses: dict[str, int] = {}
        self.provide_context = lambda: False

    def __getattr__(self, name: str) -> Callable[..., Any]:
        is_of_integers = name in _OF_INTEGERS or name in _WITH_RESULT
        function = self._of_integers(name) if is_of_integers else self._checked(name)
        setattr(self, name, function)
        return function

    def _checked(self, name: str) -> Callable[..., Any]:
        argument_types = _FUNCTIONS.get(name)
        if argument_types is None:
            raise AttributeError(name)
        function = self._library[name]
        function.argtypes = argument_types
        function.restype = c_int
        function.errcheck = self._check  # type: ignore[assignment]
        return function

    def _of_integers(self, name: str) -> Callable[..., Any]:
        function = _WITH_RESULT.get(name, name)

        def fail(code: int) -> object:
            if code == NOT_READY:
                return False
            if code == INVALID_CONTEXT and self.provide_context():
                return NotImplemented
            raise self.error(code, function)

        return _native.DriverFunction(self.address(function), name in _WITH_RESULT, fail).call

    def address(self, name: str) -> int:
        """Return the address of a function; 0 where this driver lacks it."""
        found = self._addresses.get(name)
        if found is None:
            found = self._addresses[name] = self._find(name)
        return found

    def _find(self, name: str) -> int:
        try:
            return ctypes.cast(self._library[name], c_void_p).value or 0
        except AttributeError:
            return 0

    def error(self, code: int, call: str) -> CUDAError:
        """Return the exception for an error code."""
        name, text = (self._explain(explanation, code) for explanation in _EXPLANATIONS)
        name = name or f"CUDA_ERROR_{code}"
        return CUDAError(f"{name}: {text or 'unknown error'} ({call})", name=name, code=code, call=call)

    def _check(self, code: int, function: Any, arguments: tuple[object, ...]) -> int:
        if code:
            raise self.error(code, function.__name__)
        return code

    def _explain(self, function: str, code: int) -> str:
        text = c_char_p()
        self._library[function](code, byref(text))
        return (text.value or b"").decode()
