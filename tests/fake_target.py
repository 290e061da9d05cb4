"""A target that runs nothing and yet has real memory and as many devices as a test asks for."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable, Sequence

import pytest

from gridstride.errors import CUDAError
from gridstride.targets import registry
from gridstride.targets.base import Access, CopyDirection, Target
from gridstride.targets.null import NullTarget


def make_default(monkeypatch: pytest.MonkeyPatch, target: Target) -> None:
    """Make a target the default one until the end of a test."""
    monkeypatch.setitem(registry._targets, target.name, target)
    monkeypatch.setattr(registry, "_found", {})
    monkeypatch.setenv("GRIDSTRIDE_TARGET", target.name)


class FakeTarget(NullTarget):
    """Record calls with the device they were made on; keep memory in Python buffers."""

    name = "fake"

    def __init__(self, devices: int = 2) -> None:
        super().__init__()
        self.features: frozenset[str] = frozenset()
        self.device_types: frozenset[int] = frozenset({1})
        self.array_protocol = "__array_interface__"
        self.writers = None
        self.memory: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self._devices = devices
        self._current = threading.local()

    def device_count(self) -> int:
        return self._devices

    def more_devices(self, device: int) -> str:
        return f"GRIDSTRIDE_CPU_DEVICES={device + 1} makes more"

    def current_device(self) -> int:
        return getattr(self._current, "device", 0)

    def set_device(self, device: int) -> None:
        if not 0 <= device < self._devices:
            raise CUDAError("invalid device ordinal", name="CUDA_ERROR_INVALID_DEVICE", code=101)
        self._current.device = device

    def allocate(self, size: int, device: int) -> int:
        if not size:
            return 0
        buffer = ctypes.create_string_buffer(b"\xcd" * size, size)
        address = ctypes.addressof(buffer)
        self.memory[address] = buffer
        return address

    def free(self, address: int, device: int) -> None:
        del self.memory[address]
        super().free(address, device)

    def copy(
        self,
        destination: int,
        source: int,
        size: int,
        direction: CopyDirection,
        stream: int | None,
        accesses: Sequence[Access] = (),
    ) -> None:
        self.calls.append(("copy", direction, size, stream, self.current_device()))
        ctypes.memmove(destination, source, size)

    def fill(
        self, address: int, value: int, size: int, stream: int | None, accesses: Sequence[Access] = ()
    ) -> None:
        self.calls.append(("fill", size, stream, self.current_device()))
        ctypes.memset(address, value, size)

    def record_event(self, event: int, stream: int) -> None:
        self.calls.append(("record_event", event, stream, self.current_device()))

    def elapsed(self, start: int, end: int) -> float:
        return float(end - start)

    def made(self, name: str) -> list[tuple[object, ...]]:
        """Return the recorded calls of one name."""
        return [call for call in self.calls if call[0] == name]


class SmallTarget(FakeTarget):
    """Run out of memory beyond `capacity` bytes; the work in front of `unfinished` events is not done."""

    def __init__(self, capacity: int = 1 << 30, devices: int = 2, features: Iterable[str] = ()) -> None:
        super().__init__(devices)
        self.features = frozenset(features)
        self.capacity = capacity
        self.unfinished: set[int] = set()

    def allocate(self, size: int, device: int) -> int:
        if size > self.memory_info(device)[0]:
            raise CUDAError("out of memory", name="CUDA_ERROR_OUT_OF_MEMORY", code=2, call="cuMemAlloc")
        return super().allocate(size, device)

    def memory_info(self, device: int) -> tuple[int, int]:
        return self.capacity - sum(map(len, list(self.memory.values()))), self.capacity

    def event_done(self, event: int) -> bool:
        return event not in self.unfinished
