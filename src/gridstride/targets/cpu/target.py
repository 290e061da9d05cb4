"""The CPU target: host memory as device memory; work is complete when a call returns, except where asked."""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from gridstride import config
from gridstride.targets.base import (
    Access,
    CopyDirection,
    EventFlags,
    Function,
    LaunchConfig,
    Limits,
    ObjectCode,
    Program,
)
from gridstride.targets.cpu import host, library, toolchain
from gridstride.targets.cpu.fingerprint import fingerprint
from gridstride.targets.cpu.queues import Event, Queues
from gridstride.targets.cpu.recording import Recording
from gridstride.targets.cpu.runtime import CpuFunction, CpuModule
from gridstride.targets.cpu.writers import CpuLoops
from gridstride.targets.walks import LoopWriters

DLPACK_HOST = 1

Value = TypeVar("Value")

_NOT_BETWEEN_PROCESSES = "the CPU target shares no memory or events between processes; use multiprocessing's"


class _Thread(threading.local):
    device = 0


class CpuTarget:
    """Compile CUDA C++ with a host compiler and run it on all processors."""

    name = "cpu"
    device_types = frozenset({DLPACK_HOST})
    memory_device_type = DLPACK_HOST
    features = frozenset(
        {
            "cooperative launch",
            "printf",
            "atomics",
            "warps",
            "shared memory",
            "faults are errors",
            "threads",
            "deferred mode",
            "devices on request",
        }
    )
    array_protocol = "__array_interface__"
    tiers: tuple[str, ...] = ("flat", "fibers")
    writers: LoopWriters | None = CpuLoops()

    def __init__(self) -> None:
        self._thread = _Thread()
        self._memory = host.HostMemory()
        self._pools = host.CountingPools(self._memory)
        self._deferral = config.cpu_deferral()
        self._queues = Queues(self._deferral)
        self._events: dict[int, Event] = {}
        self._graphs: dict[int, Recording] = {}
        self._executables: dict[int, Recording] = {}
        self._handles = itertools.count(0x1000)

    # devices
    def warm_up(self) -> None:
        """Find the compiler and load the runtime."""
        toolchain.find_toolchain()
        library.runtime()

    def device_count(self) -> int:
        """Return the number of devices: 1, or what ``GRIDSTRIDE_CPU_DEVICES`` says."""
        return config.cpu_devices()

    def more_devices(self, device: int) -> str:
        """Say how to get so many devices that this one is among them."""
        return f"GRIDSTRIDE_CPU_DEVICES={max(device, self.device_count()) + 1} makes more"

    def limits(self, device: int) -> Limits:
        """Return the numbers of a device; they are modeled on those of a GPU."""
        self._check_device(device)
        return host.limits(self.num_threads())

    def current_device(self) -> int:
        """Return the calling thread's current device."""
        return self._thread.device

    def set_device(self, device: int) -> None:
        """Make a device the calling thread's current one."""
        self._check_device(device)
        self._thread.device = device

    def synchronize(self, device: int) -> None:
        """Run all work of a device."""
        self._check_device(device)
        self._queues.synchronize_device(device)

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
        """Give memory back, even where fewer devices are shown now than when it was made."""
        self._memory.free(address)

    def memory_info(self, device: int) -> tuple[int, int]:
        """Return free and total bytes."""
        self._check_device(device)
        return host.memory_info()

    def allocate_managed(self, size: int, device: int) -> int:
        """Return the address of new memory: every processor sees all of it."""
        return self.allocate(size, device)

    def allocate_pinned(self, size: int) -> int:
        """Return the address of new memory; there is no device that could ask for locked pages."""
        return self._memory.allocate(size)

    def free_pinned(self, address: int) -> None:
        """Give memory back."""
        self._memory.free(address)

    def create_pool(self, device: int) -> int:
        """Return a new pool, which counts what it gives out."""
        self._check_device(device)
        return next(self._handles)

    def destroy_pool(self, pool: int) -> None:
        """Give a pool up; memory in use stays valid."""

    def allocate_async(self, size: int, stream: int) -> int:
        """Return the address of new memory, usable at once."""
        return self.allocate_from_pool(size, 0, stream)

    def allocate_from_pool(self, size: int, pool: int, stream: int) -> int:
        """Return the address of new memory, usable at once, and count it for a pool."""
        self._queues.check_stream(stream, "allocate_async")
        return self._pools.allocate(size, pool, self.current_device())

    def free_async(self, address: int, stream: int) -> None:
        """Give memory back behind the work issued to a stream."""
        self._submit(stream, "free", partial(self._pools.free, address))

    def pool_bytes(self, pool: int, device: int) -> tuple[int, int]:
        """Return the bytes in use twice: what is given back goes to the system."""
        used = self._pools.used(pool, device)
        return used, used

    def trim_pool(self, pool: int, device: int, keep: int) -> None:
        """Return: a pool holds nothing that is not in use."""

    def copy(
        self,
        destination: int,
        source: int,
        size: int,
        direction: CopyDirection,
        stream: int | None,
        accesses: Sequence[Access] = (),
    ) -> None:
        """Copy bytes; the ranges may overlap."""
        label = f"copy {size} bytes {direction.name.lower().replace('_', ' ')}"
        self._submit(stream, label, partial(ctypes.memmove, destination, source, size), accesses)

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
        """Copy bytes as `copy` does: all devices share the host's memory."""
        self._check_device(destination_device)
        self._check_device(source_device)
        self.copy(destination, source, size, CopyDirection.DEVICE_TO_DEVICE, stream, accesses)

    def fill(
        self, address: int, value: int, size: int, stream: int | None, accesses: Sequence[Access] = ()
    ) -> None:
        """Set bytes."""
        self._submit(
            stream, f"fill {size} bytes with {value}", partial(ctypes.memset, address, value, size), accesses
        )

    def memory_handle(self, address: int) -> bytes:
        """Refuse: host memory of one process is not seen by others."""
        raise NotImplementedError(_NOT_BETWEEN_PROCESSES)

    def open_memory_handle(self, handle: bytes, device: int) -> int:
        """Refuse: host memory of one process is not seen by others."""
        raise NotImplementedError(_NOT_BETWEEN_PROCESSES)

    def close_memory_handle(self, address: int, device: int) -> None:
        """Refuse: host memory of one process is not seen by others."""
        raise NotImplementedError(_NOT_BETWEEN_PROCESSES)

    # streams and events
    def create_stream(self, non_blocking: bool) -> int:
        """Return a new stream."""
        handle = next(self._handles)
        self._queues.add_stream(handle, self.current_device(), non_blocking)
        return handle

    def destroy_stream(self, stream: int) -> None:
        """Forget a stream; work that is queued in it is not lost."""
        try:
            self._queues.remove_stream(stream)
        except KeyError:
            raise _unknown("stream", stream, "destroy_stream") from None

    def is_blocking(self, stream: int) -> bool:
        """Return whether a stream waits for the default stream, and that one for it."""
        return self._queues.is_blocking(stream)

    def synchronize_stream(self, stream: int) -> None:
        """Run what a stream waits for."""
        self._queues.synchronize_stream(stream, self.current_device())

    def stream_done(self, stream: int) -> bool:
        """Return whether all work of a stream is complete; each question lets one piece of work run."""
        return self._queues.stream_done(stream, self.current_device())

    def launch_host_function(self, stream: int, function: Callable[[], None]) -> None:
        """Call a function in stream order; ctypes hands what it raises to ``sys.unraisablehook``."""
        self._submit(stream, "host function", ctypes.CFUNCTYPE(None)(function))

    def create_event(self, flags: int) -> int:
        """Return a new event."""
        if flags & EventFlags.INTERPROCESS:
            raise NotImplementedError(_NOT_BETWEEN_PROCESSES)
        handle = next(self._handles)
        self._events[handle] = Event(not flags & EventFlags.NO_TIMING)
        return handle

    def event_handle(self, event: int) -> bytes:
        """Refuse: events of one process are not seen by others."""
        raise NotImplementedError(_NOT_BETWEEN_PROCESSES)

    def open_event_handle(self, handle: bytes) -> int:
        """Refuse: events of one process are not seen by others."""
        raise NotImplementedError(_NOT_BETWEEN_PROCESSES)

    def destroy_event(self, event: int) -> None:
        """Forget an event."""
        if self._events.pop(event, None) is None:
            raise _unknown("event", event, "destroy_event")

    def record_event(self, event: int, stream: int) -> None:
        """Mark the work issued to a stream so far; its time is that at which this work is complete."""
        self._queues.record_event(self._event(event, "record_event"), stream, self.current_device())

    def synchronize_event(self, event: int) -> None:
        """Run the work in front of an event."""
        self._queues.synchronize_event(self._event(event, "synchronize_event"))

    def event_done(self, event: int) -> bool:
        """Return whether the work in front of an event is complete; each question lets one piece run."""
        return self._queues.event_done(self._event(event, "event_done"))

    def elapsed(self, start: int, end: int) -> float:
        """Return the milliseconds between two recorded events."""
        times = []
        for which, handle in (("start", start), ("end", end)):
            event = self._event(handle, "elapsed")
            if event.marker is not None and not event.marker.done:
                raise host.device_error(
                    "CUDA_ERROR_NOT_READY", f"the work in front of the {which} event has not run", "elapsed"
                )
            if event.recorded is None or not event.timing:
                reason = "was never recorded" if event.timing else "was created without timing"
                raise host.device_error("CUDA_ERROR_INVALID_HANDLE", f"the {which} event {reason}", "elapsed")
            times.append(event.recorded)
        return 1000.0 * (times[1] - times[0])

    def wait_event(self, stream: int, event: int) -> None:
        """Let a stream wait for an event."""
        self._queues.wait_event(stream, self.current_device(), self._event(event, "wait_event"))

    @property
    def is_deferred(self) -> bool:
        """Whether work waits for calls that synchronize."""
        return self._queues.is_deferred

    def defer(self, seed: int | None) -> int | None:
        """Let work wait for calls that synchronize (None: run at once); return what was set before."""
        before, self._deferral = self._deferral, seed
        self._queues.defer(seed)
        return before

    # capture and graphs
    def begin_capture(self, stream: int) -> None:
        """Record what is issued to a stream instead of running it."""
        self._queues.begin_capture(stream, self.current_device())

    def end_capture(self, stream: int) -> int:
        """Return the graph of what was recorded."""
        handle = next(self._handles)
        self._graphs[handle] = self._queues.end_capture(stream, self.current_device())
        return handle

    def capture_of(self, stream: int) -> int:
        """Return a number that names the capture a stream takes part in; 0 for none."""
        return self._queues.capture_of(stream, self.current_device())

    def instantiate(self, graph: int) -> int:
        """Return an executable of a graph, which outlives it."""
        handle = next(self._handles)
        self._executables[handle] = _found(self._graphs, graph, "graph", "instantiate")
        return handle

    def upload_graph(self, executable: int, stream: int) -> None:
        """Check the handles: there is nothing to prepare."""
        _found(self._executables, executable, "executable graph", "upload_graph")
        self._queues.check_stream(stream, "upload_graph")

    def launch_graph(self, executable: int, stream: int) -> None:
        """Run what was recorded, in stream order."""
        recording = _found(self._executables, executable, "executable graph", "launch_graph")
        self._submit(
            stream, f"graph of {len(recording.nodes)}", partial(self._queues.replay, recording.nodes)
        )

    def graph_dot(self, graph: int) -> str:
        """Return a picture of a graph in the DOT language."""
        return _found(self._graphs, graph, "graph", "graph_dot").dot()

    def destroy_graph(self, graph: int) -> None:
        """Forget a graph."""
        _found(self._graphs, graph, "graph", "destroy_graph")
        del self._graphs[graph]

    def destroy_executable(self, executable: int) -> None:
        """Forget an executable; launches that are queued keep what they need."""
        _found(self._executables, executable, "executable graph", "destroy_executable")
        del self._executables[executable]

    def start_profiler(self) -> None:
        """Return: profilers of the host need no sign."""

    def stop_profiler(self) -> None:
        """Return: profilers of the host need no sign."""

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
        return fingerprint(program)

    def compile(self, program: Program, arch: str) -> ObjectCode:
        """Compile; raise `CompileError` that points at the user's lines."""
        from gridstride.targets.cpu import compiler  # a launch that hits the cache needs none of it

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

    def chosen_tier(self) -> str:
        """Return what ``GRIDSTRIDE_CPU_TIER`` says."""
        return config.cpu_tier(self.tiers)

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
        """Run a function in stream order."""
        if not isinstance(function, CpuFunction):
            raise TypeError(f"a function of the CPU target is needed, got {type(function).__name__}")
        self._submit(stream, function.name, partial(function.launch, configuration, packed, stream), accesses)

    def _submit(
        self, stream: int | None, label: str, run: Callable[[], object], kept: Sequence[Access] = ()
    ) -> None:
        device = self.current_device()
        if stream is None:
            self._queues.submit_and_wait(device, label, run)
        else:
            self._queues.submit(stream, device, label, run, kept)

    def _check_device(self, device: int) -> None:
        count = self.device_count()
        if not 0 <= device < count:
            message = (
                f"there is no device {device}: the CPU target has {count}, numbered from 0; "
                f"{self.more_devices(device)}"
            )
            raise host.device_error("CUDA_ERROR_INVALID_DEVICE", message, "device")

    def _event(self, event: int, call: str) -> Event:
        return _found(self._events, event, "event", call)


def _found(known: Mapping[int, Value], handle: int, what: str, call: str) -> Value:
    try:
        return known[handle]
    except KeyError:
        raise _unknown(what, handle, call) from None


def _unknown(what: str, handle: int, call: str) -> Exception:
    return host.device_error("CUDA_ERROR_INVALID_HANDLE", f"{handle:#x} is no {what} that exists", call)
