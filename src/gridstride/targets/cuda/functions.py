"""Loaded modules and their kernels: find, look at and launch them through the NVIDIA driver."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_size_t, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any

from gridstride import _native, config
from gridstride.errors import CUDAError, LaunchError
from gridstride.targets.base import FunctionAttributes, LaunchConfig
from gridstride.targets.cuda.driver import NOT_FOUND, LaunchAttribute, LaunchConfiguration

if TYPE_CHECKING:
    from gridstride.targets.cuda.runtime import CudaTarget

#: Numbers of CUfunction_attribute, which are those of the fields of `FunctionAttributes`.
_NUMBERS_OF_ATTRIBUTES = range(len(FunctionAttributes._fields))
_SETTABLE = ("max_dynamic_shared_size_bytes", "preferred_shared_memory_carveout")
#: Static and dynamic shared memory together that every launch may have; more needs the attribute.
_SHARED_WITHOUT_OPT_IN = 48 * 1024
#: How cuLaunchKernel is told that arguments come as one buffer.
_BUFFER_POINTER, _BUFFER_SIZE, _END = 1, 2, 0
_COOPERATIVE = 2


class CudaModule:
    """Hold a module that is loaded on a device."""

    def __init__(self, target: CudaTarget, handle: int, device: int) -> None:
        self.target = target
        self.handle = handle
        self.device = device
        self._functions: dict[str, CudaFunction] = {}

    def function(self, lowered_name: str, shown_name: str = "") -> CudaFunction:
        found = self._functions.get(lowered_name)
        if found is None:
            found = self._find(lowered_name, shown_name or lowered_name)
            found = self._functions.setdefault(lowered_name, found)
        return found

    def global_variable(self, lowered_name: str) -> tuple[int, int]:
        address, size = c_uint64(), c_size_t()
        with self.target._on(self.device):
            try:
                self.target.driver.cuModuleGetGlobal_v2(
                    byref(address), byref(size), self.handle, lowered_name.encode()
                )
            except CUDAError as error:
                raise _not_found(error, lowered_name) from None
        return address.value, size.value

    def _find(self, lowered_name: str, shown_name: str) -> CudaFunction:
        target = self.target
        with target._through_captures_on(self.device):
            try:
                handle = target.driver.function_of_module(self.handle, lowered_name.encode())
            except CUDAError as error:
                raise _not_found(error, lowered_name) from None
            return CudaFunction(self, handle, shown_name)


class FunctionContext(ctypes.Structure):
    """Hold what launching a function from C needs: ``struct gridstride_cuda_function`` of ``launch_abi.h``."""

    _fields_ = (
        ("launch", c_void_p),
        ("launch_extended", c_void_p),
        ("get_current_context", c_void_p),
        ("context", c_void_p),
        ("function", c_void_p),
        ("dynamic_shared_limit", ctypes.c_uint),
    )


class ArgumentBuffer(ctypes.Structure):
    """Tell the driver that arguments come as one buffer: what its launches take as ``extra``."""

    _fields_ = (
        ("pointer_follows", c_void_p),
        ("packed", ctypes.c_char_p),
        ("size_follows", c_void_p),
        ("size", ctypes.POINTER(c_size_t)),
        ("end", c_void_p),
    )


class CudaFunction:
    """Hold an entry of a module, ready to launch on the module's device, which is current while it is made."""

    def __init__(self, module: CudaModule, handle: int, name: str) -> None:
        self.module = module
        self.handle = handle
        self.name = name
        self._driver = module.target.driver
        self._attributes = self._read_attributes()
        self.context = FunctionContext(
            *module.target._launching,
            module.target._primary_context(module.device),
            handle,
            max(0, _SHARED_WITHOUT_OPT_IN - self._attributes.shared_size_bytes),
        )

    def attributes(self) -> FunctionAttributes:
        return self._attributes

    def set_attribute(self, name: str, value: int) -> None:
        if name not in _SETTABLE:
            raise ValueError(
                f"{self.name}: attribute {name!r} cannot be set; those that can are {', '.join(_SETTABLE)}"
            )
        with self.module.target._on(self.module.device):
            self._driver.cuFuncSetAttribute(self.handle, FunctionAttributes._fields.index(name), value)
            self._attributes = self._read_attributes()
        if name == "max_dynamic_shared_size_bytes":
            self.context.dynamic_shared_limit = value

    def native_entry(self) -> tuple[int, int] | None:
        if config.debug():
            return None
        routine = _native.cuda_launch_routine()
        return None if routine is None else (routine, ctypes.addressof(self.context))

    def failure(self, code: int) -> Exception:
        error = self._driver.error(code, "cuLaunchKernel")
        return CUDAError(f"{self.name}: {error}", name=error.name, code=code, call=error.call)

    def launch(self, configuration: LaunchConfig, packed: bytes, stream: int) -> None:
        """Launch with the argument bytes `packed`."""
        if configuration.shared_mem > self.context.dynamic_shared_limit:
            self.set_attribute("max_dynamic_shared_size_bytes", configuration.shared_mem)
        buffer = _argument_buffer(packed)
        arguments = None if buffer is None else byref(buffer)
        try:
            if configuration.cooperative:
                self._launch_cooperatively(configuration, stream, arguments)
            else:
                self._driver.cuLaunchKernel(
                    self.handle, *configuration.grid, *configuration.block, configuration.shared_mem, stream,
                    None, arguments,
                )  # fmt: skip
        except CUDAError as error:
            raise CUDAError(
                f"{self.name}: {error}", name=error.name, code=error.code, call=error.call
            ) from None

    def wait(self, stream: int) -> None:
        """Wait for a stream in which only this function can have failed."""
        try:
            self._driver.cuStreamSynchronize(stream)
        except CUDAError as error:
            raise LaunchError(
                f"{self.name}: {error}", kernel=self.name, name=error.name, code=error.code, call=error.call
            ) from None

    def _launch_cooperatively(self, configuration: LaunchConfig, stream: int, arguments: Any) -> None:
        attribute = LaunchAttribute(_COOPERATIVE, 0, (ctypes.c_uint * 16)(1))
        launch = LaunchConfiguration(
            configuration.grid,
            configuration.block,
            configuration.shared_mem,
            stream,
            ctypes.pointer(attribute),
            1,
        )
        self._driver.cuLaunchKernelEx(byref(launch), self.handle, None, arguments)

    def _read_attributes(self) -> FunctionAttributes:
        read, handle = self._driver.function_attribute, self.handle
        values = [read(number, handle) for number in _NUMBERS_OF_ATTRIBUTES]
        # The driver writes ints.
        return FunctionAttributes(*[value - (1 << 32) if value >> 31 else value for value in values])


def _argument_buffer(packed: bytes) -> ArgumentBuffer | None:
    """Return the driver's description of packed argument bytes; it keeps them alive."""
    if not packed:
        return None
    size = c_size_t(len(packed))
    return ArgumentBuffer(_BUFFER_POINTER, packed, _BUFFER_SIZE, ctypes.pointer(size), _END)


def _not_found(error: CUDAError, name: str) -> Exception:
    """Return what the absence of a name in a module is to callers; any other error stays."""
    return KeyError(name) if error.code == NOT_FOUND else error
