"""The seam: what a place that compiles and runs CUDA C++ must offer; with the values that cross it.

Everything above this file is written once. A target is one folder beside it with ``compiler.py``
(text to object code), ``runtime.py`` (devices, memory, streams, launches) and what they need.
Nothing above may ask which target it has: it reads `Limits` and ``features``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from gridstride.targets.modules import Function, Module
from gridstride.targets.values import (
    Access,
    CopyDirection,
    CType,
    Dim3,
    EventFlags,
    FunctionAttributes,
    FunctionRecord,
    LaunchConfig,
    Limits,
    ObjectCode,
    Parameter,
    Program,
    Signature,
    TierObstacle,
)

if TYPE_CHECKING:
    from gridstride.targets.walks import LoopWriters


class Target(Protocol):
    """Compile CUDA C++ and run it on the devices of one kind.

    A target is created once per process. Its methods may be called from any thread. Devices are
    numbered from 0; handles (streams, events, addresses) are plain integers; stream 0 is the
    device's default stream. Methods raise `CUDAError` when the device refuses.
    """

    name: str
    #: DLPack device types of the arrays this target runs on (1 host, 2 CUDA, 3 pinned, 13 managed).
    device_types: frozenset[int]
    #: The one among them that its own memory has.
    memory_device_type: int
    #: What it can do: "gpu" (a real device), "cooperative launch", "binary modules", "printf",
    #: "atomics", "warps", "shared memory", "faults are errors", "asynchronous" (work goes on after a call
    #: returns), "no memory" (addresses are mere numbers), "devices on request" (a setting shows more) ...
    features: frozenset[str]
    #: The attribute through which memory of this target is shown to array libraries.
    array_protocol: str
    #: The ways in which it can run a kernel, the fastest first; the last one takes every kernel.
    tiers: tuple[str, ...]
    #: Its choice of loops for elementwise kernels and reductions; None: those for blocks of threads.
    writers: LoopWriters | None

    def warm_up(self) -> Target | None:
        """Do ahead what the first launch on the current device would wait for; change nothing on it.

        Returns
        -------
        Target or None
            One whose launches run the same code and reach no device, for launches that are only
            rehearsed. Each of its programs is taken for one of kernels with the parameters
            ``(float *, float, int)``. None: there is none.
        """
        ...

    # devices
    def device_count(self) -> int:
        """Return how many devices answer."""
        ...

    def limits(self, device: int) -> Limits:
        """Return the numbers of a device."""
        ...

    def current_device(self) -> int:
        """Return the calling thread's current device."""
        ...

    def set_device(self, device: int, /) -> None:
        """Make a device the calling thread's current one."""
        ...

    def synchronize(self, device: int) -> None:
        """Wait for all work on a device; raise what failed."""
        ...

    # memory
    def allocate(self, size: int, device: int) -> int:
        """Return the address of new device memory (0 for size 0)."""
        ...

    def free(self, address: int, device: int) -> None:
        """Give memory back."""
        ...

    def memory_info(self, device: int) -> tuple[int, int]:
        """Return free and total bytes."""
        ...

    def allocate_managed(self, size: int, device: int) -> int:
        """Return the address of new memory that host and devices see; `free` gives it back."""
        ...

    def allocate_pinned(self, size: int) -> int:
        """Return the address of new page-locked host memory, which all devices see at the same address."""
        ...

    def free_pinned(self, address: int) -> None:
        """Give page-locked memory back."""
        ...

    def create_pool(self, device: int) -> int:
        """Return a new pool that memory is taken from and given back to in stream order.

        Where a pool is asked about, 0 stands for the one that every device has.
        """
        ...

    def destroy_pool(self, pool: int) -> None:
        """Give a pool up; memory in use stays valid."""
        ...

    def allocate_async(self, size: int, stream: int, /) -> int:
        """Return the address of memory (not of size 0) from the current device's own pool, usable in stream order."""
        ...

    def allocate_from_pool(self, size: int, pool: int, stream: int, /) -> int:
        """Return the address of memory as `allocate_async`, from a pool that `create_pool` made."""
        ...

    def free_async(self, address: int, stream: int, /) -> None:
        """Give memory back to its pool in stream order."""
        ...

    def pool_bytes(self, pool: int, device: int) -> tuple[int, int]:
        """Return the bytes of a pool that are in use, and all bytes that it holds."""
        ...

    def trim_pool(self, pool: int, device: int, keep: int) -> None:
        """Give unused memory of a pool back to the device until it holds no more than `keep` bytes."""
        ...

    def copy(
        self,
        destination: int,
        source: int,
        size: int,
        direction: CopyDirection,
        stream: int | None,
        accesses: Sequence[Access] = (),
    ) -> None:
        """Copy bytes on the current device; with stream None the call waits.

        Where the target runs the copy after the call it keeps the owners of `accesses` until then.
        """
        ...

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
        """Copy bytes from one device to another; with stream None the call waits."""
        ...

    def fill(
        self, address: int, value: int, size: int, stream: int | None, accesses: Sequence[Access] = ()
    ) -> None:
        """Set bytes on the current device; with stream None the call waits."""
        ...

    def memory_handle(self, address: int) -> bytes:
        """Return a handle with which another process opens memory; NotImplementedError where there is none."""
        ...

    def open_memory_handle(self, handle: bytes, device: int) -> int:
        """Return the address of memory of another process."""
        ...

    def close_memory_handle(self, address: int, device: int) -> None:
        """Give up what `open_memory_handle` returned."""
        ...

    # streams and events
    def create_stream(self, non_blocking: bool) -> int:
        """Return a new stream of the current device."""
        ...

    def destroy_stream(self, stream: int) -> None: ...

    def is_blocking(self, stream: int) -> bool:
        """Return whether a stream waits for the default stream, and that one for it."""
        ...

    def synchronize_stream(self, stream: int) -> None:
        """Wait for a stream of the current device; raise what failed."""
        ...

    def stream_done(self, stream: int) -> bool:
        """Return whether all work of a stream is complete."""
        ...

    def launch_host_function(self, stream: int, function: Callable[[], None]) -> None:
        """Call a Python function in stream order; what it raises goes to ``sys.unraisablehook``."""
        ...

    def create_event(self, flags: int, /) -> int:
        """Return a new event of some `EventFlags`; NotImplementedError where processes cannot share one."""
        ...

    def event_handle(self, event: int) -> bytes:
        """Return a handle with which another process opens an interprocess event."""
        ...

    def open_event_handle(self, handle: bytes) -> int:
        """Return the event of another process."""
        ...

    def destroy_event(self, event: int, /) -> None: ...

    def record_event(self, event: int, stream: int, /) -> None: ...

    def synchronize_event(self, event: int) -> None: ...

    def event_done(self, event: int) -> bool: ...

    def elapsed(self, start: int, end: int) -> float:
        """Return the milliseconds between two recorded events."""
        ...

    def wait_event(self, stream: int, event: int, /) -> None:
        """Let a stream wait for an event."""
        ...

    # capture and graphs
    def begin_capture(self, stream: int) -> None:
        """Record what is issued to a stream, and to streams that wait for its events, instead of running it.

        Until the end the calling thread must not synchronize the stream.
        """
        ...

    def end_capture(self, stream: int) -> int:
        """Return the graph of what was recorded; whatever it raises, the stream captures no more."""
        ...

    def capture_of(self, stream: int) -> int:
        """Return a number that names the capture a stream takes part in; 0 for none."""
        ...

    def instantiate(self, graph: int) -> int:
        """Return an executable of a graph."""
        ...

    def upload_graph(self, executable: int, stream: int) -> None:
        """Prepare a launch in stream order."""
        ...

    def launch_graph(self, executable: int, stream: int, /) -> None:
        """Run a graph in stream order."""
        ...

    def graph_dot(self, graph: int) -> str:
        """Return a picture of a graph in the DOT language."""
        ...

    def destroy_graph(self, graph: int) -> None: ...

    def destroy_executable(self, executable: int) -> None: ...

    def start_profiler(self) -> None:
        """Let an attached profiler collect from now on."""
        ...

    def stop_profiler(self) -> None:
        """Let an attached profiler collect no more."""
        ...

    # compile and load
    def arch(self, device: int) -> str:
        """Return what object code for a device is compiled for (``sm_90``, ``x86-64-v3`` ...)."""
        ...

    def compiler_name(self) -> str:
        """Return the compiler's name and version as people know it; `TargetUnavailable` where there is none."""
        ...

    def fingerprint(self, program: Program, arch: str) -> str:
        """Return all that shapes the object code besides the program: compiler, version, flags."""
        ...

    def compile(self, program: Program, arch: str) -> ObjectCode:
        """Compile; raise `CompileError` that points at the user's lines."""
        ...

    def adopt(self, code: bytes, name: str) -> ObjectCode:
        """Return object code that was compiled elsewhere, with the entries found in it.

        Raises
        ------
        NotImplementedError
            Where the target takes source only.
        ValueError
            Where the bytes are of no known format.
        """
        ...

    def load(self, object_code: ObjectCode, device: int) -> Module:
        """Load object code on a device."""
        ...

    def chosen_tier(self) -> str:
        """Return the tier that a setting asks for; "" for the fastest that takes a kernel."""
        ...

    def specializes_on(self, configuration: LaunchConfig) -> Hashable:
        """Return what of a launch configuration the object code depends on; () for nothing."""
        ...

    # launch
    def launch(
        self,
        function: Function,
        configuration: LaunchConfig,
        packed: bytes,
        stream: int,
        accesses: Sequence[Access],
    ) -> None:
        """Run a function on the current device, in stream order.

        `packed` holds the argument bytes at the offsets of the function's parameters. `accesses`
        says which memory is touched; a target may ignore it.
        """
        ...


class Listings(Protocol):
    """Show what a program becomes; needs a target's compiler and none of its devices.

    A target that has some has a file ``listings.py`` with ``create()``.
    """

    #: The forms there are, the most readable first, each with what it is.
    forms: Mapping[str, str]

    def arch(self) -> str:
        """Return what programs are listed for where nobody says it."""
        ...

    def text(self, program: Program, arch: str, form: str) -> str:
        """Return a program in a form.

        Raises
        ------
        CompileError
            The compiler refused it.
        TargetUnavailable
            A program that makes this form is missing.
        """
        ...


TargetFactory = Callable[[], Target]

__all__ = [
    "Access",
    "CType",
    "CopyDirection",
    "Dim3",
    "EventFlags",
    "Function",
    "FunctionAttributes",
    "FunctionRecord",
    "LaunchConfig",
    "Limits",
    "Listings",
    "Module",
    "ObjectCode",
    "Parameter",
    "Program",
    "Signature",
    "Target",
    "TargetFactory",
    "TierObstacle",
]
