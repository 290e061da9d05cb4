"""A target that launches nothing and tells who asked it to: the pipeline, or the compiled fast path."""

from __future__ import annotations

import ctypes
import itertools
import sys
from collections.abc import Callable
from typing import Any

import pytest

import gridstride as gs
from gridstride import _native
from gridstride.errors import LaunchError
from gridstride.targets.base import FunctionAttributes, FunctionRecord, LaunchConfig, ObjectCode, Program
from gridstride.targets.null import NullFunction, NullModule, NullTarget

#: Objects of our own are buffers through the compiled extension, and by themselves from Python 3.12 on.
shows_buffers = pytest.mark.skipif(
    not _native.is_compiled() and sys.version_info < (3, 12),
    reason="needs the compiled extension or Python 3.12",
)
follows_numpy = pytest.mark.skipif(not _native.is_compiled(), reason="needs the compiled extension")


class Configuration(ctypes.Structure):
    """``struct gridstride_configuration`` of ``launch_abi.h``."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_mem", ctypes.c_uint),
        ("flags", ctypes.c_uint),
    )


Routine = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.POINTER(Configuration),
    ctypes.c_void_p,
    ctypes.c_ulong,
    ctypes.c_ulonglong,
)


class Recorder(NullTarget):
    """Record each launch as (who, what), where who is "pipeline" or "native".

    Attributes
    ----------
    launches : list
    code : int
        What the launch routine returns.
    signatures : dict of kernel name to signature
        For types that need a compiler to be known.
    """

    name = "recorder"
    device_types = frozenset({1, 2, 13})

    def __init__(self) -> None:
        super().__init__()
        self.launches: list[tuple[str, tuple[Any, ...]]] = []
        self.code = 0
        self.devices = 1
        self.shared_size = 0
        self.specializes = False
        self.signatures: dict[str, Any] = {}
        self.routine = Routine(self._launch_natively)

    @property
    def address(self) -> int:
        return ctypes.cast(self.routine, ctypes.c_void_p).value or 0

    def who(self) -> list[str]:
        return [who for who, _ in self.launches]

    def device_count(self) -> int:
        return self.devices

    def set_device(self, device: int) -> None:
        pass

    def specializes_on(self, configuration: LaunchConfig) -> Any:
        return configuration.block if self.specializes else ()

    def compile(self, program: Program, arch: str) -> ObjectCode:
        code = super().compile(program, arch)
        records = {
            name: FunctionRecord(record.lowered_name, self.signatures.get(name, record.signature))
            for name, record in code.functions.items()
        }
        return code._replace(functions=records)

    def load(self, object_code: ObjectCode, device: int) -> NullModule:
        return RecorderModule(object_code, self)

    def launch(
        self, function: Any, configuration: LaunchConfig, packed: bytes, stream: int, accesses: Any
    ) -> None:
        what = (
            configuration.grid,
            configuration.block,
            configuration.shared_mem,
            int(configuration.cooperative),
        )
        self.launches.append(("pipeline", (*what, packed, stream)))

    def _launch_natively(self, context: int, configuration: Any, packed: int, size: int, stream: int) -> int:
        assert context == RecorderFunction.CONTEXT
        if self.code == 0:
            how = configuration.contents
            what = (tuple(how.grid), tuple(how.block), how.shared_mem, how.flags)
            self.launches.append(("native", (*what, ctypes.string_at(packed, size), stream)))
        return self.code


class RecorderModule(NullModule):
    target: Recorder

    def function(self, lowered_name: str, shown_name: str = "") -> RecorderFunction:
        return RecorderFunction(lowered_name, self.target)


class RecorderFunction(NullFunction):
    CONTEXT = 0x1234

    def __init__(self, name: str, target: Recorder) -> None:
        super().__init__(name)
        self.target = target

    def attributes(self) -> FunctionAttributes:
        return FunctionAttributes(max_threads_per_block=512, shared_size_bytes=self.target.shared_size)

    def native_entry(self) -> tuple[int, int] | None:
        return self.target.address, self.CONTEXT

    def failure(self, code: int) -> Exception:
        return LaunchError(f"`{self.name}` failed with code {code}", kernel=self.name, code=code)


_numbers = itertools.count()


def kernel(parameters: str, **options: Any) -> gs.RawKernel:
    """Return a kernel that no other test has compiled."""
    return gs.RawKernel(
        f'extern "C" __global__ void f({parameters}) {{}}  // {next(_numbers)}', "f", **options
    )


def replayed(recorder: Recorder, call: Callable[[], object]) -> tuple[Any, ...]:
    """Make a call through the pipeline, let it be learnt, and make it natively with the same result."""
    through_pipeline(call)
    call()
    call()
    (first, expected), _, (second, got) = recorder.launches[-3:]
    assert (first, second) == ("pipeline", "native")
    assert got == expected
    return got


def through_pipeline(call: Callable[[], object]) -> None:
    """Make a call while somebody watches."""
    _native.watchers(+1)
    try:
        call()
    finally:
        _native.watchers(-1)


def left_to_pipeline(recorder: Recorder, call: Callable[[], object]) -> tuple[Any, ...]:
    """Make a call that the pipeline makes though the kernel was launched before."""
    call()
    assert recorder.who()[-1] == "pipeline"
    return recorder.launches[-1][1]
