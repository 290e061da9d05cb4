"""The CPU target: host memory as device memory; work is complete when a call returns, except where asked."""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable, Hashable, Sequence
from functools import partial

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
from gridstride.targets.cpu.events import Event
from gridstride.targets.cpu.fingerprint import fingerprint
from gridstride.targets.cpu.handles import Handles, unknown
from gridstride.targets.cpu.queues import Queues
from gridstride.targets.cpu.recording import Recording
from gridstride.targets.cpu.runtime import CpuFunction, CpuModule
from gridstride.targets.cpu.writers import CpuLoops
from gridstride.targets.unshared import Unshared
from gridstride.targets.walks import LoopWriters

DLPACK_HOST = 1


class _Thread(threading.local):
    device = 0


class CpuTarget(Unshared):
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
    unshared = "the CPU target shares no memory or events between processes; use multiprocessing's"
    tiers: tuple[str, ...] = ("flat", "fibers")
    writers: LoopWriters | None = CpuLoops()

    def __init__(self) -> None:
        self._thread = _Thread()
        self._memory = host.HostMemory()
        self._pools = host.CountingPools(self._memory)
        self._deferral = config.cpu_deferral()
        self._queues = Queues(self._deferral)
        self._handles = itertools.count(0x1000)
        self._events = Handles[Event]("event", self._handles)
        self._graphs = Handles[Recording]("graph", self._handles)
        self._executables = Handles[Recording]("executable graph", self._handles)

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
            raise unknown("stream", stream, "destroy_stream") from None

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
            raise NotImplementedError(self.unshared)
        return self._events.add(Event(not flags & EventFlags.NO_TIMING))

    def destroy_event(self, event: int) -> None:
        """Forget an event."""
        self._events.remove(event, "destroy_event")

    def record_event(self, event: int, stream: int) -> None:
        """Mark the work issued to a stream so far; its time is that at which this work is complete."""
        self._queues.record_event(self._events.get(event, "record_event"), stream, self.current_device())

    def synchronize_event(self, event: int) -> None:
        """Run the work in front of an event."""
        self._queues.synchronize_event(self._events.get(event, "synchronize_event"))

    def event_done(self, event: int) -> bool:
        """Return whether the work in front of an event is complete; each question lets one piece run."""
        return self._queues.event_done(self._events.get(event, "event_done"))

    def elapsed(self, start: int, end: int) -> float:
        """Return the milliseconds between two recorded events."""
        since = self._events.get(start, "elapsed").time("start")
        return 1000.0 * (self._events.get(end, "elapsed").time("end") - since)

    def wait_event(self, stream: int, event: int) -> None:
        """Let a stream wait for an event."""
        self._queues.wait_event(stream, self.current_device(), self._events.get(event, "wait_event"))

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
        return self._graphs.add(self._queues.end_capture(stream, self.current_device()))

    def capture_of(self, stream: int) -> int:
        """Return a number that names the capture a stream takes part in; 0 for none."""
        return self._queues.capture_of(stream, self.current_device())

    def instantiate(self, graph: int) -> int:
        """Return an executable of a graph, which outlives it."""
        return self._executables.add(self._graphs.get(graph, "instantiate"))

    def upload_graph(self, executable: int, stream: int) -> None:
        """Check the handles: there is nothing to prepare."""
        self._executables.get(executable, "upload_graph")
        self._queues.check_stream(stream, "upload_graph")

    def launch_graph(self, executable: int, stream: int) -> None:
        """Run what was recorded, in stream order."""
        recording = self._executables.get(executable, "launch_graph")
        self._submit(
            stream, f"graph of {len(recording.nodes)}", partial(self._queues.replay, recording.nodes)
        )

    def graph_dot(self, graph: int) -> str:
        """Return a picture of a graph in the DOT language."""
        return self._graphs.get(graph, "graph_dot").dot()

    def destroy_graph(self, graph: int) -> None:
        """Forget a graph."""
        self._graphs.remove(graph, "destroy_graph")

    def destroy_executable(self, executable: int) -> None:
        """Forget an executable; launches that are queued keep what they need."""
        self._executables.remove(executable, "destroy_executable")

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
