"""Devices, streams, events, modules and launches through the NVIDIA driver."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_void_p
from functools import cached_property
from typing import TYPE_CHECKING, cast

from gridstride import config
from gridstride.errors import CUDAError
from gridstride.targets.base import (
    Access,
    Function,
    LaunchConfig,
    Limits,
    ObjectCode,
    Program,
    Target,
)
from gridstride.targets.cuda import attributes
from gridstride.targets.cuda.driver import (
    INVALID_VALUE,
    Driver,
    IpcHandle,
)
from gridstride.targets.cuda.fingerprint import fingerprint
from gridstride.targets.cuda.functions import CudaFunction, CudaModule, FunctionContext
from gridstride.targets.cuda.memory import MemoryCalls, ipc_handle
from gridstride.targets.cuda.nvrtc import Nvrtc
from gridstride.targets.options import CompileOptions

if TYPE_CHECKING:
    from gridstride.targets.cuda.compiler import Compiler
    from gridstride.targets.cuda.elf import ParameterLayout
    from gridstride.targets.walks import LoopWriters

DLPACK_CUDA = 2
DLPACK_MANAGED = 13

_STREAM_NON_BLOCKING = 1
#: The default stream, the legacy one by its other name, and the calling thread's.
_DEFAULT_STREAMS = (0, 1, 2)
_PARAMETER_BYTES = 4096
#: What a driver of CUDA 12.1 and a device of compute capability 7.0 take.
_LARGE_PARAMETER_BYTES = 32764
_LARGE_PARAMETERS_SINCE = 12010
#: What the launch routine of the compiled fast path calls, in the order of `FunctionContext`.
_LAUNCHING = ("cuLaunchKernel", "cuLaunchKernelEx", "cuCtxGetCurrent")
#: Options of cuModuleLoadDataEx: where to write messages of the driver's own compiler.
_LOG_OPTIONS = (5, 6)
_LOG_SIZE = 16384


class CudaTarget(MemoryCalls):
    """Compile with NVRTC and run on NVIDIA devices.

    Only primary contexts are used, retained at first use and shared with every other library of
    the process. Modules stay loaded as long as the process lives, because graphs and work in
    flight may refer to them.

    Parameters
    ----------
    driver : Driver
        Initialized.
    nvrtc : Nvrtc
    """

    name = "cuda"
    device_types = frozenset({DLPACK_CUDA, DLPACK_MANAGED})
    memory_device_type = DLPACK_CUDA
    features = frozenset(
        {
            "gpu",
            "cooperative launch",
            "binary modules",
            "printf",
            "atomics",
            "warps",
            "shared memory",
            "asynchronous",
        }
    )
    array_protocol = "__cuda_array_interface__"
    tiers: tuple[str, ...] = ("device",)
    create_event: Callable[[int], int]
    destroy_event: Callable[[int], None]
    record_event: Callable[[int, int], None]
    wait_event: Callable[[int, int], None]
    writers: LoopWriters | None = None

    def __init__(self, driver: Driver, nvrtc: Nvrtc) -> None:
        super().__init__(driver)
        self.nvrtc = nvrtc
        # Called often, and all they take are integers: the driver's own functions serve.
        self.create_event = driver.new_event
        self.destroy_event = driver.cuEventDestroy_v2
        self.record_event = driver.cuEventRecord
        self.wait_event = driver.cuStreamWaitEvent
        self._limits: dict[int, Limits] = {}
        #: Whether the default stream waits for a stream. The driver must not be asked during captures.
        self._blocking = dict.fromkeys(_DEFAULT_STREAMS, True)

    # devices

    def warm_up(self) -> Target | None:
        """Read the device's limits, find and wake the driver's functions, and import what compiling needs."""
        device = self.current_device()
        arch = self.arch(device)
        self._primary_context(device)
        for name in ("function_of_module", "function_attribute"):
            getattr(self.driver, name)
        FunctionContext(*self._launching)
        self._load_nothing(device)
        self.fingerprint(Program("", "", CompileOptions()), arch)
        self.compiler.warm_up()
        from gridstride.targets.cuda.rehearsal import rehearsal_of

        return cast("Target | None", rehearsal_of(self, device))

    def device_count(self) -> int:
        count = c_int()
        self.driver.cuDeviceGetCount(byref(count))
        return count.value

    def limits(self, device: int) -> Limits:
        found = self._limits.get(device)
        if found is None:
            found = self._limits[device] = self._read_limits(device)
        return found

    def synchronize(self, device: int) -> None:
        with self._on(device):
            self.driver.cuCtxSynchronize()

    # streams and events

    def create_stream(self, non_blocking: bool) -> int:
        stream: int = self.driver.new_stream(_STREAM_NON_BLOCKING if non_blocking else 0)
        self._blocking[stream] = not non_blocking
        return stream

    def destroy_stream(self, stream: int) -> None:
        self._blocking.pop(stream, None)
        self.driver.cuStreamDestroy_v2(stream)

    def is_blocking(self, stream: int) -> bool:
        known = self._blocking.get(stream)
        if known is not None:
            return known
        self._ensure_context()
        flags = c_uint()
        self.driver.cuStreamGetFlags(stream, byref(flags))
        return not flags.value & _STREAM_NON_BLOCKING

    def synchronize_stream(self, stream: int) -> None:
        self.driver.cuStreamSynchronize(stream)

    def stream_done(self, stream: int) -> bool:
        return self.driver.cuStreamQuery(stream) is None

    def event_handle(self, event: int) -> bytes:
        handle = IpcHandle()
        self.driver.cuIpcGetEventHandle(byref(handle), event)
        return bytes(handle)

    def open_event_handle(self, handle: bytes) -> int:
        self._ensure_context()
        event = c_void_p()
        self.driver.cuIpcOpenEventHandle(byref(event), ipc_handle(handle))
        return event.value or 0

    def synchronize_event(self, event: int) -> None:
        self.driver.cuEventSynchronize(event)

    def event_done(self, event: int) -> bool:
        with self._during_captures():
            return self.driver.cuEventQuery(event) is None

    def elapsed(self, start: int, end: int) -> float:
        milliseconds = c_float()
        self.driver.cuEventElapsedTime(byref(milliseconds), start, end)
        return milliseconds.value

    def start_profiler(self) -> None:
        self._ensure_context()
        self.driver.cuProfilerStart()

    def stop_profiler(self) -> None:
        self._ensure_context()
        self.driver.cuProfilerStop()

    # compile and load

    def arch(self, device: int) -> str:
        return self.limits(device).arch

    def compiler_name(self) -> str:
        return "NVRTC {}.{}".format(*self.compiler.nvrtc.version)

    def fingerprint(self, program: Program, arch: str) -> str:
        return fingerprint(self.nvrtc, program, arch)

    def compile(self, program: Program, arch: str) -> ObjectCode:
        return self.compiler.compile(program, arch)

    def adopt(self, code: bytes, name: str) -> ObjectCode:
        from gridstride.targets.cuda.binaries import object_code_from_binary

        try:
            return object_code_from_binary(code, self._layouts_in_fatbin)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    def load(self, object_code: ObjectCode, device: int) -> CudaModule:
        with self._through_captures_on(device):
            return CudaModule(self, self._load(object_code), device)

    def chosen_tier(self) -> str:
        return ""

    def specializes_on(self, configuration: LaunchConfig) -> Hashable:
        return ()

    # launch

    def launch(
        self,
        function: Function,
        configuration: LaunchConfig,
        packed: bytes,
        stream: int,
        accesses: Sequence[Access],
    ) -> None:
        if not isinstance(function, CudaFunction):
            raise TypeError(f"a function of the CUDA target is needed, got {type(function).__name__}")
        self._ensure_context()
        function.launch(configuration, packed, stream)
        if config.debug() and not self.capture_of(stream):
            function.wait(stream)

    @cached_property
    def compiler(self) -> Compiler:
        """The compiler; imported when it is first needed, which a warm cache delays for good."""
        from gridstride.targets.cuda.compiler import Compiler

        return Compiler(self.nvrtc)

    # details

    def _load(self, object_code: ObjectCode) -> int:
        try:
            module: int = self.driver.new_module(object_code.code)
        except CUDAError as error:
            log = self._load_log(object_code)
            if log:
                error.args = (f"{error}: {log}",)
            raise
        return module

    def _layouts_in_fatbin(self, fatbin: bytes) -> dict[str, tuple[ParameterLayout, ...]]:
        from gridstride.targets.cuda.binaries import layouts_of_module

        with self._through_captures_on(self.current_device()):
            module = self.driver.new_module(fatbin)
            try:
                return layouts_of_module(self.driver, module)
            finally:
                self.driver.cuModuleUnload(module)

    def _load_nothing(self, device: int) -> None:
        """Let the driver refuse a module: it takes half as long again for the first one of a process."""
        with self._relaxed_on(device), suppress(CUDAError):
            self.driver.cuModuleUnload(self.driver.new_module(bytes(64)))

    def _load_log(self, object_code: ObjectCode) -> str:
        """Return what the driver's own compiler says of object code that it does not load."""
        module = c_void_p()
        log = ctypes.create_string_buffer(_LOG_SIZE)
        options = (c_int * 2)(*_LOG_OPTIONS)
        values = (c_void_p * 2)(ctypes.addressof(log), _LOG_SIZE)
        with suppress(CUDAError):
            self.driver.cuModuleLoadDataEx(byref(module), object_code.code, 2, options, values)
        return log.value.decode("utf-8", "replace").strip()

    def _read_limits(self, device: int) -> Limits:
        ordinal = c_int()
        self.driver.cuDeviceGet(byref(ordinal), device)
        name = ctypes.create_string_buffer(256)
        self.driver.cuDeviceGetName(name, len(name), ordinal)
        memory = c_size_t()
        self.driver.cuDeviceTotalMem_v2(byref(memory), ordinal)
        values = dict(self._read_attributes(ordinal))
        major, minor = values["ComputeCapabilityMajor"], values["ComputeCapabilityMinor"]
        large = self._driver_version >= _LARGE_PARAMETERS_SINCE and major >= 7
        return Limits(
            name=name.value.decode("utf-8", "replace"),
            arch=f"sm_{major}{minor}",
            multiprocessors=values["MultiProcessorCount"],
            warp_size=values["WarpSize"],
            max_threads_per_block=values["MaxThreadsPerBlock"],
            max_block=(values["MaxBlockDimX"], values["MaxBlockDimY"], values["MaxBlockDimZ"]),
            max_grid=(values["MaxGridDimX"], values["MaxGridDimY"], values["MaxGridDimZ"]),
            shared_memory_per_block=values["MaxSharedMemoryPerBlock"],
            shared_memory_per_block_optin=values["MaxSharedMemoryPerBlockOptin"],
            total_memory=memory.value,
            max_parameter_bytes=_LARGE_PARAMETER_BYTES if large else _PARAMETER_BYTES,
            compute_capability=f"{major}.{minor}",
            attributes=values,
        )

    @cached_property
    def _launching(self) -> tuple[int, ...]:
        return tuple(map(self.driver.address, _LAUNCHING))

    @cached_property
    def _driver_version(self) -> int:
        version = c_int()
        self.driver.cuDriverGetVersion(byref(version))
        return version.value

    def _read_attributes(self, ordinal: c_int) -> Iterator[tuple[str, int]]:
        value = c_int()
        for name, number in attributes.NUMBERS.items():
            try:
                self.driver.cuDeviceGetAttribute(byref(value), number, ordinal)
            except CUDAError as error:
                if error.code != INVALID_VALUE:  # a driver older than the attribute
                    raise
                continue
            yield name, value.value
