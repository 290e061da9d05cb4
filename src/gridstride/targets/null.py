"""The target that records calls and runs nothing: the smallest complete example of the seam.

It takes every program, gives each requested kernel the signature its declaration spells, and keeps
what was asked of it in ``calls``. Tests use it to see what a call would do.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from gridstride import _dtypes
from gridstride._syntax import kernels
from gridstride.errors import CUDAError
from gridstride.targets.base import (
    Access,
    CopyDirection,
    CType,
    EventFlags,
    FunctionAttributes,
    FunctionRecord,
    LaunchConfig,
    Limits,
    ObjectCode,
    Parameter,
    Program,
)
from gridstride.targets.unshared import Unshared

if TYPE_CHECKING:
    from gridstride.targets.walks import LoopWriters

HOST = 1
_LIMITS = Limits(
    name="null", arch="null", multiprocessors=1, warp_size=32, max_threads_per_block=1024,
    max_block=(1024, 1024, 64), max_grid=(2**31 - 1, 65535, 65535), shared_memory_per_block=49152,
    shared_memory_per_block_optin=232448, total_memory=1 << 40, compute_capability="9.0",
)  # fmt: skip


class NullTarget(Unshared):
    """Record every call in `calls`; memory and handles are numbers, nothing runs."""

    name = "null"
    device_types = frozenset({HOST})
    memory_device_type = HOST
    features: frozenset[str] = frozenset({"no memory"})
    array_protocol = "__array_interface__"
    unshared = "the null target has no memory or events that processes could share"
    tiers: tuple[str, ...] = ("null",)
    writers: LoopWriters | None = None

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._handles = itertools.count(1)
        self._independent: set[int] = set()
        self._captures: dict[int, int] = {}
        self._pools: dict[int, dict[int, int]] = {}
        self._captured_events: dict[int, int] = {}
        self._addresses = itertools.count(1 << 40, 1 << 32)

    def warm_up(self) -> None:
        pass

    def device_count(self) -> int:
        return 1

    def limits(self, device: int) -> Limits:
        return _LIMITS

    def current_device(self) -> int:
        return 0

    def set_device(self, device: int) -> None:
        if device != 0:
            raise CUDAError(f"device {device} does not exist: there is 1 device", name="CUDA_ERROR_INVALID_DEVICE",
                            code=101, call="set_device")  # fmt: skip

    def synchronize(self, device: int) -> None:
        self.calls.append(("synchronize", device))

    def allocate(self, size: int, device: int) -> int:
        address = next(self._addresses) if size else 0
        self.calls.append(("allocate", size, address))
        return address

    def free(self, address: int, device: int) -> None:
        self.calls.append(("free", address))

    def memory_info(self, device: int) -> tuple[int, int]:
        return _LIMITS.total_memory, _LIMITS.total_memory

    def allocate_managed(self, size: int, device: int) -> int:
        return self.allocate(size, device)

    def allocate_pinned(self, size: int) -> int:
        return self.allocate(size, 0)

    def free_pinned(self, address: int) -> None:
        self.free(address, 0)

    def create_pool(self, device: int) -> int:
        return next(self._handles)

    def destroy_pool(self, pool: int) -> None:
        self.calls.append(("destroy_pool", pool))

    def allocate_async(self, size: int, stream: int) -> int:
        return self.allocate_from_pool(size, 0, stream)

    def allocate_from_pool(self, size: int, pool: int, stream: int) -> int:
        self._pools.setdefault(pool, {})[address := self.allocate(size, 0)] = size
        return address

    def free_async(self, address: int, stream: int) -> None:
        self.calls.append(("free_async", address, stream))
        for sizes in self._pools.values():
            sizes.pop(address, None)

    def pool_bytes(self, pool: int, device: int) -> tuple[int, int]:
        used = sum(self._pools.get(pool, {}).values())
        return used, used

    def trim_pool(self, pool: int, device: int, keep: int) -> None:
        self.calls.append(("trim_pool", pool, keep))

    def copy(
        self,
        destination: int,
        source: int,
        size: int,
        direction: CopyDirection,
        stream: int | None,
        accesses: Sequence[Access] = (),
    ) -> None:
        self.calls.append(("copy", destination, source, size, direction, stream))

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
        self.calls.append(
            ("copy_between_devices", destination, destination_device, source, source_device, size, stream)
        )

    def fill(
        self, address: int, value: int, size: int, stream: int | None, accesses: Sequence[Access] = ()
    ) -> None:
        self.calls.append(("fill", address, value, size, stream))

    def create_stream(self, non_blocking: bool) -> int:
        handle = next(self._handles)
        if non_blocking:
            self._independent.add(handle)
        return handle

    def is_blocking(self, stream: int) -> bool:
        return stream not in self._independent

    def destroy_stream(self, stream: int) -> None:
        self.calls.append(("destroy_stream", stream))

    def synchronize_stream(self, stream: int) -> None:
        self.calls.append(("synchronize_stream", stream))

    def stream_done(self, stream: int) -> bool:
        return True

    def launch_host_function(self, stream: int, function: Callable[[], None]) -> None:
        self.calls.append(("launch_host_function", stream, function))

    def create_event(self, flags: int) -> int:
        if flags & EventFlags.INTERPROCESS:
            raise NotImplementedError("the null target has no events that processes could share")
        return next(self._handles)

    def destroy_event(self, event: int) -> None:
        self.calls.append(("destroy_event", event))

    def record_event(self, event: int, stream: int) -> None:
        self.calls.append(("record_event", event, stream))
        self._captured_events[event] = self.capture_of(stream)

    def synchronize_event(self, event: int) -> None:
        self.calls.append(("synchronize_event", event))

    def event_done(self, event: int) -> bool:
        return True

    def elapsed(self, start: int, end: int) -> float:
        return 0.0

    def wait_event(self, stream: int, event: int) -> None:
        self.calls.append(("wait_event", stream, event))
        capture = self._captured_events.get(event, 0)
        if capture in self._captures.values():
            self._captures[stream] = capture

    def begin_capture(self, stream: int) -> None:
        self.calls.append(("begin_capture", stream))
        self._captures[stream] = next(self._handles)

    def end_capture(self, stream: int) -> int:
        self.calls.append(("end_capture", stream))
        graph = self._captures[stream]
        self._captures = {joined: capture for joined, capture in self._captures.items() if capture != graph}
        return graph

    def capture_of(self, stream: int) -> int:
        return self._captures.get(stream, 0)

    def instantiate(self, graph: int) -> int:
        self.calls.append(("instantiate", graph))
        return next(self._handles)

    def upload_graph(self, executable: int, stream: int) -> None:
        self.calls.append(("upload_graph", executable, stream))

    def launch_graph(self, executable: int, stream: int) -> None:
        self.calls.append(("launch_graph", executable, stream))

    def graph_dot(self, graph: int) -> str:
        return f"digraph graph_{graph} {{\n}}\n"

    def destroy_graph(self, graph: int) -> None:
        self.calls.append(("destroy_graph", graph))

    def destroy_executable(self, executable: int) -> None:
        self.calls.append(("destroy_executable", executable))

    def start_profiler(self) -> None:
        self.calls.append(("start_profiler",))

    def stop_profiler(self) -> None:
        self.calls.append(("stop_profiler",))

    def arch(self, device: int) -> str:
        return _LIMITS.arch

    def compiler_name(self) -> str:
        return "no compiler"

    def fingerprint(self, program: Program, arch: str) -> str:
        return "null 1"

    def compile(self, program: Program, arch: str) -> ObjectCode:
        self.calls.append(("compile", program))
        declared = {kernel.name: kernel for kernel in kernels(program.text)}
        records = {}
        for name in program.kernels:
            declaration = declared.get(re.sub(r"<.*", "", name, flags=re.S).strip())
            signature = None if declaration is None or declaration.is_template else _signature(declaration)
            records[name] = FunctionRecord(name, signature)
        digest = hashlib.sha256(program.text.encode()).digest()
        variables = {name: name for name in program.globals}
        constants = dict.fromkeys(program.constants, 1)
        return ObjectCode("null", digest, records, variables, constants, dependencies=None)  # nothing to keep

    def adopt(self, code: bytes, name: str) -> ObjectCode:
        raise NotImplementedError(f"{name}: the null target takes source only")

    def load(self, object_code: ObjectCode, device: int) -> NullModule:
        self.calls.append(("load", object_code, device))
        return NullModule(object_code, self)

    def chosen_tier(self) -> str:
        return ""

    def specializes_on(self, configuration: LaunchConfig) -> Hashable:
        return ()

    def launch(
        self,
        function: Any,
        configuration: LaunchConfig,
        packed: bytes,
        stream: int,
        accesses: Sequence[Access],
    ) -> None:
        self.calls.append(("launch", function.name, configuration, packed, stream, tuple(accesses)))


class NullModule:
    """Hand out functions by name."""

    def __init__(self, object_code: ObjectCode, target: NullTarget) -> None:
        self.object_code = object_code
        self.target = target

    def function(self, lowered_name: str, shown_name: str = "") -> NullFunction:
        return NullFunction(lowered_name)

    def global_variable(self, lowered_name: str) -> tuple[int, int]:
        return self.target.allocate(256, 0), 256


class NullFunction:
    """Name an entry."""

    def __init__(self, name: str) -> None:
        self.name = name

    def attributes(self) -> FunctionAttributes:
        return FunctionAttributes(max_threads_per_block=1024, shared_size_bytes=0)

    def set_attribute(self, name: str, value: int) -> None:
        pass

    def native_entry(self) -> tuple[int, int] | None:
        return None

    def failure(self, code: int) -> Exception:
        return CUDAError(f"the null target reports code {code}", code=code, call="launch")


def create() -> NullTarget:
    """Create the target."""
    return NullTarget()


def _signature(declaration: Any) -> tuple[Parameter, ...] | None:
    parameters, offset = [], 0
    for parameter in declaration.parameters:
        ctype = _spelled_type(parameter.type)
        if ctype is None:
            return None
        offset = -(-offset // ctype.alignment) * ctype.alignment
        parameters.append(Parameter(parameter.name, ctype, offset))
        offset += ctype.size
    return tuple(parameters)


def _spelled_type(text: str) -> CType | None:
    """Return the type that fundamental type names spell; None for anything that needs a compiler."""
    text = re.sub(r"\b(__restrict__|__restrict|restrict|volatile)\b", "", text).strip()
    if text.endswith("*"):
        pointee = _spelled_type(text[:-1])
        return pointee and CType(
            "pointer", f"{'const ' if pointee.const else ''}{pointee.name} *", 8, 8, pointee=pointee
        )
    words = text.split()
    const = "const" in words
    name = " ".join(word for word in words if word != "const")
    if name == "void":
        return CType("void", "void", 0, 0, const=const)
    dtype = _dtypes.dtype_of_ctype(name)
    return dtype and CType("scalar", name, dtype.itemsize, dtype.alignment, dtype, const=const)
