"""Kernels loaded and launched: modules, functions, and what their failures mean."""

from __future__ import annotations

import ctypes

from gridstride import _forks, config
from gridstride.errors import LaunchError
from gridstride.targets.base import FunctionAttributes, LaunchConfig, ObjectCode
from gridstride.targets.cpu import abi, host, library, unit
from gridstride.targets.cpu.abi import FailureCode
from gridstride.targets.cpu.shared import SharedLayout

_COOPERATIVE = 1
#: CUDA's name and number for each way in which a launch fails.
_FAILURES: dict[FailureCode, tuple[str, int]] = {
    FailureCode.SEGMENTATION: ("CUDA_ERROR_ILLEGAL_ADDRESS", 700),
    FailureCode.BUS: ("CUDA_ERROR_MISALIGNED_ADDRESS", 716),
    FailureCode.ARITHMETIC: ("CUDA_ERROR_LAUNCH_FAILED", 719),
    FailureCode.ILLEGAL: ("CUDA_ERROR_ILLEGAL_INSTRUCTION", 715),
    FailureCode.STACK_OVERFLOW: ("CUDA_ERROR_HARDWARE_STACK_ERROR", 714),
    FailureCode.DIVERGENCE: ("CUDA_ERROR_LAUNCH_FAILED", 719),
    FailureCode.ASSERTION: ("CUDA_ERROR_ASSERT", 710),
    FailureCode.TRAP: ("CUDA_ERROR_LAUNCH_FAILED", 719),
    FailureCode.TIMEOUT: ("CUDA_ERROR_LAUNCH_TIMEOUT", 702),
    FailureCode.TOO_MANY_BLOCKS: ("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", 720),
    FailureCode.OUT_OF_MEMORY: ("CUDA_ERROR_OUT_OF_MEMORY", 2),
    FailureCode.UNSUPPORTED: ("CUDA_ERROR_NOT_SUPPORTED", 801),
}


class CpuModule:
    """Hold object code that is loaded; it stays loaded as long as the process lives."""

    def __init__(self, object_code: ObjectCode) -> None:
        self.runtime = library.runtime()
        self.runtime.set_launch_timeout(config.launch_timeout())
        self.library = library.KernelLibrary(object_code.code, "kernels")
        self.library.bind(self.runtime.services)
        self.shared = SharedLayout()
        self.shared.place(self.library.shared_slots())
        self._bounds = {
            name.removeprefix(unit.LAUNCH_BOUNDS): value
            for name, value in object_code.constants.items()
            if name.startswith(unit.LAUNCH_BOUNDS)
        }
        self._kernels = self.library.kernels()
        self._globals = self.library.globals()
        self._functions: dict[str, CpuFunction] = {}
        self._lock = _forks.Lock()

    def function(self, lowered_name: str, shown_name: str = "") -> CpuFunction:
        """Return an entry, which messages call so, or by its own name; KeyError if there is none."""
        with self._lock:
            found = self._functions.get(lowered_name)
            if found is None:
                kernel = self._kernels[lowered_name]
                found = CpuFunction(self, lowered_name, kernel, shown_name or lowered_name)
                self._functions[lowered_name] = found
            return found

    def global_variable(self, lowered_name: str) -> tuple[int, int]:
        """Return address and size in bytes; KeyError if there is none."""
        return self._globals[lowered_name]

    def max_threads(self, name: str) -> int:
        """Return the threads a block of a kernel may have."""
        return min(self._bounds.get(name, host.MAX_THREADS_PER_BLOCK), host.MAX_THREADS_PER_BLOCK)


class CpuFunction:
    """Hold a kernel, ready to launch."""

    def __init__(self, module: CpuModule, entry: str, kernel: abi.Kernel, name: str) -> None:
        self._module = module
        self._entry = entry
        self._name = name.encode()
        self._max_dynamic = host.SHARED_MEMORY_PER_BLOCK
        self._carveout = -1
        self.name = name
        self.context = abi.FunctionContext(
            ctypes.pointer(kernel),
            self._name,
            module.shared.total(),
            module.library.source_path,
        )
        self._address = ctypes.addressof(self.context)

    def attributes(self) -> FunctionAttributes:
        """Return what the compiler said of the kernel, and what was set."""
        return FunctionAttributes(
            max_threads_per_block=self._module.max_threads(self._entry),
            shared_size_bytes=self._module.shared.bytes_of(self._entry),
            max_dynamic_shared_size_bytes=self._max_dynamic,
            preferred_shared_memory_carveout=self._carveout,
        )

    def set_attribute(self, name: str, value: int) -> None:
        """Set ``max_dynamic_shared_size_bytes`` or ``preferred_shared_memory_carveout``."""
        if name == "preferred_shared_memory_carveout":
            _check_range(name, value, -1, 100)
            self._carveout = value
        elif name == "max_dynamic_shared_size_bytes":
            static = self._module.shared.bytes_of(self._entry)
            _check_range(name, value, 0, host.SHARED_MEMORY_PER_BLOCK_OPTIN - static)
            self._max_dynamic = value
        else:
            raise host.device_error(
                "CUDA_ERROR_INVALID_VALUE", f"attribute {name!r} cannot be set", "set_attribute"
            )

    def native_entry(self) -> tuple[int, int]:
        """Return (address of the launch routine, address of this function's record)."""
        return self._module.runtime.launch_address, self._address

    def launch(self, configuration: LaunchConfig, packed: bytes, stream: int) -> None:
        """Run the kernel; the work is complete on return."""
        record = abi.Configuration(
            configuration.grid,
            configuration.block,
            configuration.shared_mem,
            _COOPERATIVE if configuration.cooperative else 0,
        )
        code = self._module.runtime.launch(self._address, record, packed, len(packed), stream)
        if code:
            raise self.failure(code)

    def failure(self, code: int) -> BaseException:
        """Return the exception for a launch that failed in this thread."""
        if code == FailureCode.INTERRUPTED:
            return KeyboardInterrupt()
        failure = self._module.runtime.last_failure()
        name, number = _FAILURES[FailureCode(code)]
        return LaunchError(
            failure.message.decode(errors="replace"),
            kernel=self.name,
            block=tuple(failure.block) if failure.has_thread else None,
            thread=tuple(failure.thread) if failure.has_thread else None,
            address=failure.address if failure.has_address else None,
            name=name,
            code=number,
        )


def _check_range(name: str, value: int, lowest: int, highest: int) -> None:
    if not lowest <= value <= highest:
        message = f"{name} must be between {lowest} and {highest}, got {value}"
        raise host.device_error("CUDA_ERROR_INVALID_VALUE", message, "set_attribute")
