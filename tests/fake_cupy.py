"""A module with as much of CuPy's interface as the adapter uses, over host memory."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np


class Memory:
    def __init__(self, ptr: int, size: int, owner: object, device_id: int) -> None:
        self.ptr, self.size, self.owner, self.device_id = ptr, size, owner, device_id


class Pointer:
    def __init__(self, mem: Memory, offset: int) -> None:
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, mem.device_id


class Array:
    """Stands for ``cupy.ndarray``: attributes of a NumPy array, memory said to be on a device."""

    def __init__(
        self,
        shape: Any,
        dtype: Any = float,
        memptr: Pointer | None = None,
        strides: Any = None,
        order: str = "C",
    ) -> None:
        self._host = np.zeros(shape, dtype, order)  # type: ignore[call-overload]
        self.shape, self.dtype, self.size = self._host.shape, self._host.dtype, self._host.size
        self.strides = strides or self._host.strides
        self.flags = SimpleNamespace(c_contiguous=strides is None and self._host.flags.c_contiguous)
        self._c_contiguous = self.flags.c_contiguous
        owned = Memory(self._host.ctypes.data, self._host.nbytes, self._host, current_device())
        self.data = memptr or Pointer(owned, 0)


Array.__name__, Array.__module__ = "ndarray", "cupy"


class State:
    """What is current: CuPy keeps a device for the thread and a stream for each device."""

    device = 0
    streams: dict[int, Stream]
    allocated_on: list[tuple[int, int]]


class Device:
    def __init__(self, device: int) -> None:
        self.id = device

    def __enter__(self) -> Device:
        self._previous, State.device = State.device, self.id
        return self

    def __exit__(self, *_: object) -> None:
        State.device = self._previous


class Stream:
    def __init__(self, ptr: int, device_id: int = -1) -> None:
        self.ptr, self.device_id = ptr, device_id

    def use(self) -> Stream:
        assert State.device == self.device_id or self.device_id < 0
        State.streams[State.device] = self
        return self

    def __enter__(self) -> Stream:
        self._previous = get_current_stream()
        return self.use()

    def __exit__(self, *_: object) -> None:
        State.streams[State.device] = self._previous


Stream.__module__ = "cupy.cuda.stream"


def current_device() -> int:
    return State.device


def get_current_stream(device_id: int = -1) -> Stream:
    device = State.device if device_id < 0 else device_id
    return State.streams.get(device, Stream(0, device))


def empty(shape: Any, dtype: Any) -> Array:
    State.allocated_on.append((State.device, get_current_stream().ptr))
    return Array(shape, dtype)


def make_module(available: bool = True) -> ModuleType:
    """Return a fresh module ``cupy``; put it into ``sys.modules`` with a monkeypatch."""
    State.device, State.streams, State.allocated_on = 0, {}, []
    module = ModuleType("cupy")
    module.ndarray = Array  # type: ignore[attr-defined]
    module.empty = empty  # type: ignore[attr-defined]
    module.is_available = lambda: available  # type: ignore[attr-defined]
    module.asnumpy = lambda a, *rest, **more: a._host.copy()  # type: ignore[attr-defined]
    module.cuda = SimpleNamespace(  # type: ignore[attr-defined]
        Device=Device,
        ExternalStream=Stream,
        get_current_stream=get_current_stream,
        UnownedMemory=Memory,
        MemoryPointer=Pointer,
        runtime=SimpleNamespace(getDevice=current_device),
        device=SimpleNamespace(get_cublas_handle=lambda: 77),
    )
    return module
