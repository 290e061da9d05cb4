"""The machine as a device: memory, processors, and the numbers that CUDA code expects of a device."""

from __future__ import annotations

import ctypes
import os
import re
from functools import cache
from pathlib import Path

from gridstride import _forks
from gridstride.errors import CUDAError
from gridstride.targets.base import Limits
from gridstride.targets.cpu import toolchain

ALIGNMENT = 256
WARP_SIZE = 32
MAX_THREADS_PER_BLOCK = 1024
SHARED_MEMORY_PER_BLOCK = 48 * 1024
SHARED_MEMORY_PER_BLOCK_OPTIN = 227 * 1024
_MAX_BLOCK = (1024, 1024, 64)
_MAX_GRID = (2**31 - 1, 65535, 65535)
_COMPUTE_CAPABILITY = (9, 0)
#: Compilers move types that are aligned to 16 bytes by instructions that fault elsewhere on x86.
_LARGEST_UNALIGNED = 8


class HostMemory:
    """Give out host memory as a device does: aligned, and freed only at addresses it gave out."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}
        self._lock = _forks.Lock()
        library = ctypes.CDLL(None)
        self._allocate = library.aligned_alloc
        self._allocate.argtypes = (ctypes.c_size_t, ctypes.c_size_t)
        self._allocate.restype = ctypes.c_void_p
        self._free = library.free
        self._free.argtypes = (ctypes.c_void_p,)
        self._free.restype = None

    def allocate(self, size: int) -> int:
        """Return the address of new memory, 0 for size 0."""
        if size < 0:
            raise device_error("CUDA_ERROR_INVALID_VALUE", f"cannot allocate {size} bytes", "allocate")
        if size == 0:
            return 0
        total = _total_memory()
        rounded = -(-size // ALIGNMENT) * ALIGNMENT
        address = self._allocate(ALIGNMENT, rounded) if size <= total else None
        if not address:
            message = f"cannot allocate {size} bytes of {total} bytes of memory"
            raise device_error("CUDA_ERROR_OUT_OF_MEMORY", message, "allocate")
        with self._lock:
            self._sizes[address] = size
        return int(address)

    def free(self, address: int) -> None:
        """Give memory back; address 0 is nothing."""
        if address == 0:
            return
        with self._lock:
            known = self._sizes.pop(address, None)
        if known is None:
            message = f"{address:#x} is no address that was allocated and not yet freed"
            raise device_error("CUDA_ERROR_INVALID_VALUE", message, "free")
        self._free(address)


class CountingPools:
    """Count the bytes that each pool has given out; the memory is the system's.

    Parameters
    ----------
    memory : HostMemory
    """

    def __init__(self, memory: HostMemory) -> None:
        self._memory = memory
        self._given: dict[int, tuple[int, int, int]] = {}
        self._lock = _forks.Lock()

    def allocate(self, size: int, pool: int, device: int) -> int:
        """Return the address of new memory, 0 for size 0."""
        address = self._memory.allocate(size)
        if address:
            with self._lock:
                self._given[address] = pool, device, size
        return address

    def free(self, address: int) -> None:
        """Give memory back; address 0 is nothing."""
        with self._lock:
            self._given.pop(address, None)
        self._memory.free(address)

    def used(self, pool: int, device: int) -> int:
        """Return the bytes that a pool has given out on a device."""
        with self._lock:
            return sum(size for of, on, size in self._given.values() if (of, on) == (pool, device))


@cache
def limits(threads: int) -> Limits:
    """Return the numbers of the device when that many threads run launches."""
    total = memory_info()[1]
    major, minor = _COMPUTE_CAPABILITY
    return Limits(
        name=_processor_name(),
        arch=toolchain.host_arch(),
        multiprocessors=threads,
        warp_size=WARP_SIZE,
        max_threads_per_block=MAX_THREADS_PER_BLOCK,
        max_block=_MAX_BLOCK,
        max_grid=_MAX_GRID,
        shared_memory_per_block=SHARED_MEMORY_PER_BLOCK,
        shared_memory_per_block_optin=SHARED_MEMORY_PER_BLOCK_OPTIN,
        total_memory=total,
        compute_capability=f"{major}.{minor}",
        largest_unaligned=_LARGEST_UNALIGNED,
        attributes={
            "AsyncEngineCount": 0,
            "CanMapHostMemory": 1,
            "ClockRate": _clock_rate(),
            "ComputeCapabilityMajor": major,
            "ComputeCapabilityMinor": minor,
            "ConcurrentKernels": 0,
            "ConcurrentManagedAccess": 1,
            "CooperativeLaunch": 1,
            "EccEnabled": 0,
            "Integrated": 1,
            "KernelExecTimeout": 1,
            # As on a GPU, the cache that comes last.
            "L2CacheSize": _last_cache_bytes(),
            "ManagedMemory": 1,
            "MaxBlockDimX": _MAX_BLOCK[0],
            "MaxBlockDimY": _MAX_BLOCK[1],
            "MaxBlockDimZ": _MAX_BLOCK[2],
            "MaxGridDimX": _MAX_GRID[0],
            "MaxGridDimY": _MAX_GRID[1],
            "MaxGridDimZ": _MAX_GRID[2],
            "MaxSharedMemoryPerBlock": SHARED_MEMORY_PER_BLOCK,
            "MaxSharedMemoryPerBlockOptin": SHARED_MEMORY_PER_BLOCK_OPTIN,
            "MaxSharedMemoryPerMultiprocessor": SHARED_MEMORY_PER_BLOCK_OPTIN,
            "MaxThreadsPerBlock": MAX_THREADS_PER_BLOCK,
            "MaxThreadsPerMultiProcessor": MAX_THREADS_PER_BLOCK,
            "MultiProcessorCount": threads,
            "PageableMemoryAccess": 1,
            "TotalConstantMemory": 64 * 1024,
            "UnifiedAddressing": 1,
            "WarpSize": WARP_SIZE,
        },
    )


def memory_info() -> tuple[int, int]:
    """Return free and total bytes, within the limit of the container."""
    text = _read("/proc/meminfo")
    fields = {
        name: 1024 * int(value) for name, value in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)
    }
    total = fields.get("MemTotal", os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    free = fields.get("MemAvailable", total)
    limit = _read("/sys/fs/cgroup/memory.max").strip()
    if limit.isdigit():
        used = int(_read("/sys/fs/cgroup/memory.current").strip() or 0)
        total = min(total, int(limit))
        free = max(0, min(free, total - used))
    return free, total


@cache
def _total_memory() -> int:
    return memory_info()[1]


def usable_processors() -> int:
    """Return how many processors this process may use, by affinity and container quota."""
    count = len(os.sched_getaffinity(0))
    quota, _, period = _read("/sys/fs/cgroup/cpu.max").strip().partition(" ")
    if quota.isdigit() and period.isdigit() and int(period) > 0:
        count = min(count, -(-int(quota) // int(period)))
    return max(1, count)


_ERROR_CODES = {
    "CUDA_ERROR_INVALID_VALUE": 1,
    "CUDA_ERROR_OUT_OF_MEMORY": 2,
    "CUDA_ERROR_INVALID_DEVICE": 101,
    "CUDA_ERROR_INVALID_HANDLE": 400,
    "CUDA_ERROR_ILLEGAL_STATE": 401,
    "CUDA_ERROR_NOT_READY": 600,
    "CUDA_ERROR_NOT_PERMITTED": 800,
    "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": 900,
    "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED": 901,
    "CUDA_ERROR_STREAM_CAPTURE_MERGE": 902,
    "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED": 903,
    "CUDA_ERROR_STREAM_CAPTURE_UNJOINED": 904,
    "CUDA_ERROR_STREAM_CAPTURE_ISOLATION": 905,
    "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT": 906,
    "CUDA_ERROR_CAPTURED_EVENT": 907,
}


def device_error(name: str, message: str, call: str) -> CUDAError:
    """Return the error of a device call under CUDA's name for it."""
    return CUDAError(f"{message} ({name})", name=name, code=_ERROR_CODES[name], call=call)


@cache
def _processor_name() -> str:
    match = re.search(r"^model name\s*:\s*(.+)$", _read("/proc/cpuinfo", 16384), re.MULTILINE)
    return match[1].strip() if match else toolchain.host_arch()


@cache
def _clock_rate() -> int:
    """Return kHz, or 0 where the system does not say."""
    text = _read("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").strip()
    match = re.search(r"^cpu MHz\s*:\s*([\d.]+)", _read("/proc/cpuinfo", 16384), re.MULTILINE)
    return int(text) if text.isdigit() else int(1000 * float(match[1])) if match else 0


def _last_cache_bytes() -> int:
    """Return the size of the largest cache that a core reaches, or 0 where the system does not say."""
    folders = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")
    found = (re.match(r"(\d+)([KM])", _read(str(folder / "size"))) for folder in folders)
    return max((int(size[1]) << (10 if size[2] == "K" else 20) for size in found if size), default=0)


def _read(path: str, size: int = -1) -> str:
    try:
        with Path(path).open() as file:
            return file.read(size)
    except OSError:
        return ""
