"""Memory, pools, copies and fills through the NVIDIA driver."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

from gridstride.targets.base import Access, CopyDirection
from gridstride.targets.cuda.capture import GraphCalls
from gridstride.targets.cuda.driver import Driver, IpcHandle, PoolProperties

_LAZY_PEER_ACCESS = 1
_ATTACH_GLOBAL = 1
_PORTABLE, _MAPPED = 1, 2
_ALLOCATION_PINNED, _LOCATION_DEVICE = 1, 1
#: Numbers of CUmemPool_attribute.
_POOL_RELEASE_THRESHOLD, _POOL_RESERVED, _POOL_USED = 4, 5, 7
_KEEP_ALL = (1 << 64) - 1


class MemoryCalls(GraphCalls):
    """The part of the CUDA target that has memory."""

    allocate_async: Callable[[int, int], int]
    allocate_from_pool: Callable[[int, int, int], int]
    free_async: Callable[[int, int], None]

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        # Called often, and all they take are integers: the driver's own functions serve.
        self.allocate_async = driver.new_memory_async
        self.allocate_from_pool = driver.new_memory_of_pool
        self.free_async = driver.cuMemFreeAsync

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
            self.driver.cuIpcOpenMemHandle_v2(byref(address), ipc_handle(handle), _LAZY_PEER_ACCESS)
        return address.value

    def close_memory_handle(self, address: int, device: int) -> None:
        with self._on(device):
            self.driver.cuIpcCloseMemHandle(address)

    def _pool(self, pool: int, device: int) -> int:
        """Return the handle of a pool, 0 standing for the one the device has."""
        if pool:
            return pool
        ordinal, handle = c_int(), c_void_p()
        self.driver.cuDeviceGet(byref(ordinal), device)
        self.driver.cuDeviceGetMemPool(byref(handle), ordinal)
        return handle.value or 0


def ipc_handle(handle: bytes) -> IpcHandle:
    if len(handle) != ctypes.sizeof(IpcHandle):
        raise ValueError(
            f"a handle of memory or an event of another process has {ctypes.sizeof(IpcHandle)} bytes, "
            f"got {len(handle)}: pass its `ipc_handle`"
        )
    return IpcHandle.from_buffer_copy(handle)
