"""The seam: what a place that compiles and runs CUDA C++ must offer, and the values that cross it.

Everything above this file is written once. A target is one folder beside it with ``compiler.py``
(text to object code), ``runtime.py`` (devices, memory, streams, launches) and what they need.
Nothing above may ask which target it has: it reads `Limits` and ``features``.

The values are named tuples: a frozen dataclass takes nine times as long to define, which every
program would pay for at its start.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import Enum, IntFlag
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from gridstride.targets.options import CompileOptions

if TYPE_CHECKING:
    from gridstride.targets.walks import LoopWriters

Dim3 = tuple[int, int, int]


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


class Module(Protocol):
    """Hold object code that is loaded on a device."""

    def function(self, lowered_name: str) -> Function:
        """Return an entry; KeyError if there is none."""
        ...

    def global_variable(self, lowered_name: str) -> tuple[int, int]:
        """Return address and size in bytes; KeyError if there is none."""
        ...


class Function(Protocol):
    """Hold an entry of a module, ready to launch."""

    def attributes(self) -> FunctionAttributes:
        """Return what the compiler and the device say of it."""
        ...

    def set_attribute(self, name: str, value: int) -> None:
        """Set ``max_dynamic_shared_size_bytes`` or ``preferred_shared_memory_carveout``."""
        ...

    def native_entry(self) -> tuple[int, int] | None:
        """Return (address of a C launch routine, its context) for the compiled fast path, or None.

        The routine has the type ``gridstride_launch_routine`` of ``_native/launch_abi.h``.
        """
        ...

    def failure(self, code: int) -> BaseException:
        """Return the exception for a code other than 0 that the launch routine returned.

        It is a `LaunchError`, or ``KeyboardInterrupt`` where Ctrl-C ended the launch.
        """
        ...


class Limits(NamedTuple):
    """Say what a device allows."""

    name: str
    arch: str
    multiprocessors: int
    warp_size: int
    max_threads_per_block: int
    max_block: Dim3
    max_grid: Dim3
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    total_memory: int
    max_parameter_bytes: int = 4096
    compute_capability: str = ""
    #: Further attributes under CUDA's names without the prefix, for example "ClockRate".
    attributes: Mapping[str, int] = MappingProxyType({})


class Program(NamedTuple):
    """Name everything a compiler is given.

    Attributes
    ----------
    text : str
        The user's CUDA C++ text.
    name : str
        A readable name for messages and the cache.
    options : CompileOptions
    kernels : tuple of str
        Names and name expressions wanted as functions, in the user's spelling.
    globals : tuple of str
        Names and name expressions of variables wanted, in the user's spelling.
    constants : tuple of str
        Integral constant expressions over the text whose values the compiler is asked for.
    headers : tuple of (name, text)
        Headers that are given as text.
    includes : tuple of str
        Names of headers to include before the text (``<name>``), which keeps its own line numbers.
    path : str
        The file name that messages use for the text.
    specialization : Hashable
        What ``Target.specializes_on`` said.
    tier : str
        The tier that is asked for, one of the target's `tiers`; "" for the fastest that takes a kernel.
    """

    text: str
    name: str
    options: CompileOptions
    kernels: tuple[str, ...] = ()
    globals: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    includes: tuple[str, ...] = ()
    path: str = ""
    specialization: Hashable = ()
    tier: str = ""


class CType(NamedTuple):
    """Describe a C++ type as the compiler sees it (typedefs resolved, top-level const dropped).

    Attributes
    ----------
    kind : str
        "scalar", "vector" (built-in vectors such as ``float4``, also ``half2``), "struct",
        "pointer", "void" or "function" (only behind a pointer).
    name : str
        Canonical C++ spelling, for example ``unsigned int``, ``float4``, ``S``, ``float *``.
    size, alignment : int
        Bytes; 0 where unknown (void, functions, a struct behind a pointer).
    dtype : numpy.dtype or None
        Of a scalar, or of a vector's components. Complex numbers are scalars.
    components : int
        Of a vector (2 for ``half2``), else 1.
    const : bool
        Whether it is const-qualified (meaningful behind a pointer).
    pointee : CType or None
        Of a pointer.
    """

    kind: str
    name: str
    size: int
    alignment: int
    dtype: np.dtype[Any] | None = None
    components: int = 1
    const: bool = False
    pointee: CType | None = None


class Parameter(NamedTuple):
    """Describe one parameter of a kernel: its name in the source ("" if none), type and offset."""

    name: str
    type: CType
    offset: int


Signature = tuple[Parameter, ...]


class TierObstacle(NamedTuple):
    """Say what kept a kernel from a tier: a construct, with the file and line (0: none) where it stands."""

    tier: str
    reason: str
    path: str
    line: int


class FunctionRecord(NamedTuple):
    """Tie a name the user asked for to the object code.

    Attributes
    ----------
    lowered_name : str
    signature : Signature or None
        None where nothing is known.
    tier : str
        One of the target's `tiers`; "" where it has only one.
    obstacles : tuple of TierObstacle
        What kept it from faster tiers.
    """

    lowered_name: str
    signature: Signature | None
    tier: str = ""
    obstacles: tuple[TierObstacle, ...] = ()


class ObjectCode(NamedTuple):
    """Hold compiled bytes and what the compiler said about them.

    Attributes
    ----------
    format : str
        "cubin", "ptx", "fatbin" or "shared object".
    code : bytes
    functions : mapping of requested kernel name to FunctionRecord
    globals : mapping of requested variable name to lowered name
    constants : mapping of requested constant expression to value
    dependencies : tuple of (path, SHA-256 of the content) or None
        Every file read besides the text; None: they are not known and the entry is not cached.
    log : str
        Warnings.
    """

    format: str
    code: bytes
    functions: Mapping[str, FunctionRecord] = MappingProxyType({})
    globals: Mapping[str, str] = MappingProxyType({})
    constants: Mapping[str, int] = MappingProxyType({})
    dependencies: tuple[tuple[str, str], ...] | None = ()
    log: str = ""


class LaunchConfig(NamedTuple):
    """Say how a function is launched: grid and block (x, y, z), dynamic shared memory in bytes."""

    grid: Dim3
    block: Dim3
    shared_mem: int = 0
    cooperative: bool = False

    @property
    def threads(self) -> int:
        """Threads of one block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]


class FunctionAttributes(NamedTuple):
    """Name what is known of a function; the fields are CUDA's (sizes in bytes).

    A target that has no such number gives -1.
    """

    max_threads_per_block: int
    shared_size_bytes: int
    const_size_bytes: int = -1
    local_size_bytes: int = -1
    num_regs: int = -1
    ptx_version: int = -1
    binary_version: int = -1
    cache_mode_ca: int = -1
    max_dynamic_shared_size_bytes: int = 49152
    preferred_shared_memory_carveout: int = -1


class Access(NamedTuple):
    """Say that a launch touches memory: who owns it, where, how far, and whether it may be written."""

    owner: object
    address: int
    extent: int
    written: bool


class EventFlags(IntFlag):
    """Say what is special about an event; the numbers are CUDA's."""

    BLOCKING = 1
    NO_TIMING = 2
    INTERPROCESS = 4


class CopyDirection(Enum):
    """Say between which memories a copy goes."""

    HOST_TO_DEVICE = 1
    DEVICE_TO_HOST = 2
    DEVICE_TO_DEVICE = 3


TargetFactory = Callable[[], Target]
