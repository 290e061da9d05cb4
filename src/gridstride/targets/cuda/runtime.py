"""Devices, memory, streams and launches through the NVIDIA driver."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from functools import cached_property
from typing import TYPE_CHECKING, cast

from gridstride import _forks, _native, config
from gridstride.errors import CUDAError
from gridstride.targets.base import (
    Access,
    CopyDirection,
    LaunchConfig,
    Limits,
    ObjectCode,
    Program,
    Target,
)
from gridstride.targets.cuda import attributes
from gridstride.targets.cuda.capture import GraphCalls
from gridstride.targets.cuda.driver import (
    INVALID_VALUE,
    Driver,
    IpcHandle,
    PoolProperties,
)
from gridstride.targets.cuda.fingerprint import fingerprint
from gridstride.targets.cuda.functions import CudaFunction, CudaModule, FunctionContext
from gridstride.targets.cuda.nvrtc import Nvrtc
from gridstride.targets.options import CompileOptions

if TYPE_CHECKING:
    from gridstride.targets.cuda.compiler import Compiler

DLPACK_CUDA = 2
DLPACK_MANAGED = 13

_STREAM_NON_BLOCKING = 1
#: The default stream, the legacy one by its other name, and the calling thread's.
_DEFAULT_STREAMS = (0, 1, 2)
_LAZY_PEER_ACCESS = 1
_ATTACH_GLOBAL = 1
_PORTABLE, _MAPPED = 1, 2
_ALLOCATION_PINNED, _LOCATION_DEVICE = 1, 1
#: Numbers of CUmemPool_attribute.
_POOL_RELEASE_THRESHOLD, _POOL_RESERVED, _POOL_USED = 4, 5, 7
_KEEP_ALL = (1 << 64) - 1
_PARAMETER_BYTES = 4096
#: What a driver of CUDA 12.1 and a device of compute capability 7.0 take.
_LARGE_PARAMETER_BYTES = 32764
_LARGE_PARAMETERS_SINCE = 12010
#: What the launch routine of the compiled fast path calls, in the order of `FunctionContext`.
_LAUNCHING = ("cuLaunchKernel", "cuLaunchKernelEx", "cuCtxGetCurrent")
#: Options of cuModuleLoadDataEx: where to write messages of the driver's own compiler.
_LOG_OPTIONS = (5, 6)
_LOG_SIZE = 16384


class CudaTarget(GraphCalls):
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
    current_device: Callable[[], int]
    set_device: Callable[[int], None]
    allocate_async: Callable[[int, int], int]
    allocate_from_pool: Callable[[int, int, int], int]
    free_async: Callable[[int, int], None]
    create_event: Callable[[int], int]
    destroy_event: Callable[[int], None]
    record_event: Callable[[int, int], None]
    wait_event: Callable[[int, int], None]
    writers = None

    def __init__(self, driver: Driver, nvrtc: Nvrtc) -> None:
        super().__init__(driver)
        driver.provide_context = self._ensure_context
        self.nvrtc = nvrtc
        self._primary: dict[int, int] = {}
        self._contexts = _native.Contexts(
            driver.address("cuCtxGetCurrent"),
            driver.address("cuCtxSetCurrent"),
            self._device_of_unknown_context,
            self._enter_device,
        )
        # Called often, and all they take are integers: the driver's own functions serve.
        self.allocate_async = driver.new_memory_async
        self.allocate_from_pool = driver.new_memory_of_pool
        self.free_async = driver.cuMemFreeAsync
        self.create_event = driver.new_event
        self.destroy_event = driver.cuEventDestroy_v2
        self.record_event = driver.cuEventRecord
        self.wait_event = driver.cuStreamWaitEvent
        self.current_device = self._contexts.current_device
        self.set_device = self._contexts.set_device
        self._limits: dict[int, Limits] = {}
        self._lock = _forks.Lock()
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

    # memory

    def allocate(self, size: int, device: int) -> int:
        if size == 0:
            return 0
        address = c_uint64()
        with self._through_captures_on(device):
            self.driver.cuMemAlloc_v2(byref(address), size)
        return address.value

    def free(self, address: int, device: int) -> None:
        if address:
            with self._through_captures_on(device):
                self.driver.cuMemFree_v2(address)

    def memory_info(self, device: int) -> tuple[int, int]:
        free, total = c_size_t(), c_size_t()
        with self._on(device):
            self.driver.cuMemGetInfo_v2(byref(free), byref(total))
        return free.value, total.value

    def allocate_managed(self, size: int, device: int) -> int:
        if size == 0:
            return 0
        address = c_uint64()
        with self._through_captures_on(device):
            self.driver.cuMemAllocManaged(byref(address), size, _ATTACH_GLOBAL)
        return address.value

    def allocate_pinned(self, size: int) -> int:
        if size == 0:
            return 0
        self._ensure_context()
        address = c_void_p()
        with self._during_captures():
            self.driver.cuMemHostAlloc(byref(address), size, _PORTABLE | _MAPPED)
        return address.value or 0

    def free_pinned(self, address: int) -> None:
        if address:
            self._ensure_context()
            with self._during_captures():
                self.driver.cuMemFreeHost(address)

    def create_pool(self, device: int) -> int:
        ordinal, pool = c_int(), c_void_p()
        with self._on(device):
            self.driver.cuDeviceGet(byref(ordinal), device)
            properties = PoolProperties(_ALLOCATION_PINNED, 0, _LOCATION_DEVICE, ordinal.value)
            self.driver.cuMemPoolCreate(byref(pool), byref(properties))
            # A pool that gives all memory back at every synchronization would not be one.
            self.driver.cuMemPoolSetAttribute(pool, _POOL_RELEASE_THRESHOLD, byref(c_uint64(_KEEP_ALL)))
        return pool.value or 0

    def destroy_pool(self, pool: int) -> None:
        self.driver.cuMemPoolDestroy(pool)

    def pool_bytes(self, pool: int, device: int) -> tuple[int, int]:
        used, reserved = c_uint64(), c_uint64()
        with self._on(device):
            handle = self._pool(pool, device)
            self.driver.cuMemPoolGetAttribute(handle, _POOL_USED, byref(used))
            self.driver.cuMemPoolGetAttribute(handle, _POOL_RESERVED, byref(reserved))
        return used.value, reserved.value

    def trim_pool(self, pool: int, device: int, keep: int) -> None:
        with self._on(device):
            self.driver.cuMemPoolTrimTo(self._pool(pool, device), keep)

    def copy(
        self,
        destination: int,
        source: int,
        size: int,
        direction: CopyDirection,
        stream: int | None,
        accesses: Sequence[Access] = (),
    ) -> None:
        if size == 0:
            return
        self._ensure_context()
        route = {
            CopyDirection.HOST_TO_DEVICE: "cuMemcpyHtoD",
            CopyDirection.DEVICE_TO_HOST: "cuMemcpyDtoH",
            CopyDirection.DEVICE_TO_DEVICE: "cuMemcpyDtoD",
        }[direction]
        if stream is not None:
            getattr(self.driver, f"{route}Async_v2")(destination, source, size, stream)
            return
        getattr(self.driver, f"{route}_v2")(destination, source, size)
        if direction is CopyDirection.DEVICE_TO_DEVICE:
            self.driver.cuStreamSynchronize(0)  # this route alone returns before the copy is done

    def copy_between_devices(
        self,
        destination: int,
        destination_device: int,
        source: int,
        source_device: int,
        size: int,
        stream: int | None,
        accesses: Sequence[Access] = (),
    ) -> None:
        if size == 0:
            return
        self._ensure_context()
        to, from_ = self._primary_context(destination_device), self._primary_context(source_device)
        if stream is not None:
            self.driver.cuMemcpyPeerAsync(destination, to, source, from_, size, stream)
            return
        self.driver.cuMemcpyPeer(destination, to, source, from_, size)
        self.driver.cuStreamSynchronize(0)

    def fill(
        self, address: int, value: int, size: int, stream: int | None, accesses: Sequence[Access] = ()
    ) -> None:
        if size == 0:
            return
        self._ensure_context()
        if stream is not None:
            self.driver.cuMemsetD8Async(address, value, size, stream)
            return
        self.driver.cuMemsetD8_v2(address, value, size)
        self.driver.cuStreamSynchronize(0)

    def memory_handle(self, address: int) -> bytes:
        handle = IpcHandle()
        self.driver.cuIpcGetMemHandle(byref(handle), address)
        return bytes(handle)

    def open_memory_handle(self, handle: bytes, device: int) -> int:
        address = c_uint64()
        with self._on(device):
            self.driver.cuIpcOpenMemHandle_v2(byref(address), _ipc_handle(handle), _LAZY_PEER_ACCESS)
        return address.value

    def close_memory_handle(self, address: int, device: int) -> None:
        with self._on(device):
            self.driver.cuIpcCloseMemHandle(address)

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
        self.driver.cuIpcOpenEventHandle(byref(event), _ipc_handle(handle))
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
        function: CudaFunction,
        configuration: LaunchConfig,
        packed: bytes,
        stream: int,
        accesses: Sequence[Access],
    ) -> None:
        self._ensure_context()
        function.launch(configuration, packed, stream)
        if config.debug() and not self.capture_of(stream):
            function.wait(stream)

    @cached_property
    def compiler(self) -> Compiler:
        """The compiler; imported when it is first needed, which a warm cache delays for good."""
        from gridstride.targets.cuda.compiler import Compiler

        return Compiler(self.nvrtc)

    # contexts

    def _primary_context(self, device: int) -> int:
        context = self._primary.get(device)
        if context is None:
            with self._lock:
                context = self._primary.get(device)
                if context is None:
                    context = self._primary[device] = self._retain(device)
                    self._contexts.know(device, context)
        return context

    def _device_of_unknown_context(self) -> int:
        if not self.driver.current_context():
            return 0  # what the CUDA runtime, hence every other library, takes then
        device: int = self.driver.current_device()
        return device

    def _enter_device(self, device: int) -> None:
        self.driver.cuCtxSetCurrent(self._primary_context(device))

    def _retain(self, device: int) -> int:
        ordinal, context = c_int(), c_void_p()
        self.driver.cuDeviceGet(byref(ordinal), device)
        self.driver.cuDevicePrimaryCtxRetain(byref(context), ordinal)
        return context.value or 0

    def _ensure_context(self) -> bool:
        """Make a device current where none is, and return whether that was so.

        The driver's functions of integers come here by themselves.
        """
        if self.driver.current_context():
            return False
        self.set_device(0)
        return True

    def _on(self, device: int) -> _Switch:
        """Make a device current inside a ``with`` block, and afterwards what was current on entry."""
        return _Switch(self.driver, self._primary_context(device))

    def _through_captures_on(self, device: int) -> AbstractContextManager[None]:
        """As `_on` and `_during_captures`, in one step where nothing is captured."""
        return self._relaxed_on(device) if self._captures else self._on(device)

    @contextmanager
    def _relaxed_on(self, device: int) -> Iterator[None]:
        with self._on(device), self._relaxed():
            yield

    # details

    def _pool(self, pool: int, device: int) -> int:
        """Return the handle of a pool, 0 standing for the one the device has."""
        if pool:
            return pool
        ordinal, handle = c_int(), c_void_p()
        self.driver.cuDeviceGet(byref(ordinal), device)
        self.driver.cuDeviceGetMemPool(byref(handle), ordinal)
        return handle.value or 0

    def _load(self, object_code: ObjectCode) -> int:
        try:
            module: int = self.driver.new_module(object_code.code)
        except CUDAError as error:
            log = self._load_log(object_code)
            if log:
                error.args = (f"{error}: {log}",)
            raise
        return module

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


class _Switch:
    """Make a context current inside a ``with`` block; a function with `contextmanager` takes several times as long."""

    __slots__ = ("_driver", "_previous", "_wanted")

    def __init__(self, driver: Driver, wanted: int) -> None:
        self._driver = driver
        self._wanted = wanted

    def __enter__(self) -> None:
        self._previous: int = self._driver.current_context()
        if self._previous != self._wanted:
            self._driver.cuCtxSetCurrent(self._wanted)

    def __exit__(self, *_: object) -> None:
        if self._previous != self._wanted:
            self._driver.cuCtxSetCurrent(self._previous)


def _ipc_handle(handle: bytes) -> IpcHandle:
    if len(handle) != ctypes.sizeof(IpcHandle):
        raise ValueError(
            f"a handle of memory or an event of another process has {ctypes.sizeof(IpcHandle)} bytes, "
            f"got {len(handle)}: pass its `ipc_handle`"
        )
    return IpcHandle.from_buffer_copy(handle)
