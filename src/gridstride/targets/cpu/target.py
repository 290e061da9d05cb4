"""The CPU target: host memory as device memory, ordered work that is complete when a call returns."""

from __future__ import annotations

import ctypes
import itertools
import threading
import time
from collections.abc import Hashable, Sequence

from gridstride import config
from gridstride.targets.base import (
    Access,
    CopyDirection,
    Function,
    LaunchConfig,
    Limits,
    ObjectCode,
    Program,
)
from gridstride.targets.cpu import compiler, host, library, toolchain
from gridstride.targets.cpu.runtime import CpuFunction, CpuModule, Event

#: Stream handles that exist without being created, as in CUDA: default, legacy, per thread.
_STANDING_STREAMS = frozenset({0, 1, 2})


class CpuTarget:
    """Compile CUDA C++ with a host compiler and run it on all processors."""

    name = "cpu"
    device_types = frozenset({1})
    features = frozenset(
        {"cooperative launch", "printf", "atomics", "warps", "shared memory", "faults are errors", "threads"}
    )
    array_protocol = "__array_interface__"

    def __init__(self) -> None:
        self._thread = threading.local()
        self._memory = host.HostMemory()
        self._streams: set[int] = set()
        self._events: dict[int, Event] = {}
        self._handles = itertools.count(0x1000)

    # devices
    def device_count(self) -> int:
        """Return the number of devices: 1, or what ``GRIDSTRIDE_CPU_DEVICES`` says."""
        return config.cpu_devices()

    def limits(self, device: int) -> Limits:
        """Return the numbers of a device; they are modeled on those of a GPU."""
        self._check_device(device)
        return host.limits(self.num_threads())

    def current_device(self) -> int:
        """Return the calling thread's current device."""
        return getattr(self._thread, "device", 0)

    def set_device(self, device: int) -> None:
        """Make a device the calling thread's current one."""
        self._check_device(device)
        self._thread.device = device

    def synchronize(self, device: int) -> None:
        """Return: all work is complete."""
        self._check_device(device)

    def num_threads(self) -> int:
        """Return how many threads run a launch."""
        return library.num_threads()

    def set_num_threads(self, count: int) -> None:
        """Set how many threads run a launch."""
        if count < 1:
            raise ValueError(f"the number of threads must be at least 1, got {count}")
        library.set_num_threads(count)

    # memory
    def allocate(self, size: int, device: int) -> int:
        """Return the address of new memory (0 for size 0)."""
        self._check_device(device)
        return self._memory.allocate(size)

    def free(self, address: int, device: int) -> None:
        """Give memory back."""
        self._check_device(device)
        self._memory.free(address)

    def memory_info(self, device: int) -> tuple[int, int]:
        """Return free and total bytes."""
        self._check_device(device)
        return host.memory_info()

    def copy(
        self, destination: int, source: int, size: int, direction: CopyDirection, stream: int | None
    ) -> None:
        """Copy bytes; the ranges may overlap."""
        self._check_stream(stream, "copy")
        if size:
            ctypes.memmove(destination, source, size)

    def fill(self, address: int, value: int, size: int, stream: int | None) -> None:
        """Set bytes."""
        self._check_stream(stream, "fill")
        if size:
            ctypes.memset(address, value, size)

    # streams and events
    def create_stream(self, non_blocking: bool) -> int:
        """Return a new stream; all streams are in order and complete."""
        handle = next(self._handles)
        self._streams.add(handle)
        return handle

    def destroy_stream(self, stream: int) -> None:
        """Forget a stream."""
        if stream not in self._streams:
            raise _unknown("stream", stream, "destroy_stream")
        self._streams.discard(stream)

    def synchronize_stream(self, stream: int) -> None:
        """Return: all work is complete."""
        self._check_stream(stream, "synchronize_stream")

    def stream_done(self, stream: int) -> bool:
        """Return True: all work is complete."""
        self._check_stream(stream, "stream_done")
        return True

    def create_event(self, timing: bool, blocking: bool) -> int:
        """Return a new event."""
        handle = next(self._handles)
        self._events[handle] = Event(timing)
        return handle

    def destroy_event(self, event: int) -> None:
        """Forget an event."""
        if self._events.pop(event, None) is None:
            raise _unknown("event", event, "destroy_event")

    def record_event(self, event: int, stream: int) -> None:
        """Note the time at which the work so far was complete: now."""
        self._check_stream(stream, "record_event")
        self._event(event, "record_event").recorded = time.perf_counter()

    def synchronize_event(self, event: int) -> None:
        """Return: all work is complete."""
        self._event(event, "synchronize_event")

    def event_done(self, event: int) -> bool:
        """Return True: all work is complete."""
        self._event(event, "event_done")
        return True

    def elapsed(self, start: int, end: int) -> float:
        """Return the milliseconds between two recorded events."""
        times = []
        for which, handle in (("start", start), ("end", end)):
            event = self._event(handle, "elapsed")
            if event.recorded is None or not event.timing:
                reason = "was never recorded" if event.timing else "was created without timing"
                raise host.device_error("CUDA_ERROR_INVALID_HANDLE", f"the {which} event {reason}", "elapsed")
            times.append(event.recorded)
        return 1000.0 * (times[1] - times[0])

    def wait_event(self, stream: int, event: int) -> None:
        """Return: there is nothing to wait for."""
        self._check_stream(stream, "wait_event")
        self._event(event, "wait_event")

    # compile and load
    def arch(self, device: int) -> str:
        """Return the level of the processor, such as ``x86-64-v3``."""
        self._check_device(device)
        return toolchain.host_arch()

    def compiler_name(self) -> str:
        """Return what the host compiler says of itself."""
        return toolchain.find_toolchain().version

    def fingerprint(self, program: Program, arch: str) -> str:
        """Return compiler, version, flags, the processor's features, and the digest of our headers."""
        return compiler.fingerprint(program)

    def compile(self, program: Program, arch: str) -> ObjectCode:
        """Compile; raise `CompileError` that points at the user's lines."""
        return compiler.compile_program(program)

    def adopt(self, code: bytes, name: str) -> ObjectCode:
        """Refuse: code for NVIDIA devices does not run here."""
        raise NotImplementedError(
            f"{name}: cubin, fatbin and PTX do not run on the CPU target; give the CUDA C++ source"
        )

    def load(self, object_code: ObjectCode, device: int) -> CpuModule:
        """Load object code; every device has its own copy of the variables."""
        self._check_device(device)
        return CpuModule(object_code)

    def specializes_on(self, configuration: LaunchConfig) -> Hashable:
        """Return (): the object code serves every configuration."""
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
        """Run a function; it is complete on return."""
        if not isinstance(function, CpuFunction):
            raise TypeError(f"a function of the CPU target is needed, got {type(function).__name__}")
        self._check_stream(stream, "launch")
        function.launch(configuration, packed, stream)

    def _check_device(self, device: int) -> None:
        count = self.device_count()
        if not 0 <= device < count:
            message = (
                f"there is no device {device}: the CPU target has {count}, numbered from 0 "
                f"(GRIDSTRIDE_CPU_DEVICES={device + 1} would show more)"
            )
            raise host.device_error("CUDA_ERROR_INVALID_DEVICE", message, "device")

    def _check_stream(self, stream: int | None, call: str) -> None:
        if stream is not None and stream not in _STANDING_STREAMS and stream not in self._streams:
            raise _unknown("stream", stream, call)

    def _event(self, event: int, call: str) -> Event:
        found = self._events.get(event)
        if found is None:
            raise _unknown("event", event, call)
        return found


def _unknown(what: str, handle: int, call: str) -> Exception:
    return host.device_error("CUDA_ERROR_INVALID_HANDLE", f"{handle:#x} is no {what} that exists", call)
