"""What is current for the calling thread: the device of a target, and our stream on a device.

One rule holds for devices and streams: leaving a context puts back what was current when it was
entered. A target is asked for its current device, so that switches by other libraries count.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Generic, TypeVar

from gridstride import _native
from gridstride.targets.base import Target

if TYPE_CHECKING:
    from gridstride._runtime.stream import BaseStream

Value = TypeVar("Value")


class on_device:  # noqa: N801 - reads as a statement: with on_device(target, 1)
    """Make a device current inside a ``with`` block that does not itself switch devices.

    Parameters
    ----------
    target : Target
    device : int
        Its index.
    """

    __slots__ = ("_device", "_previous", "_target")

    def __init__(self, target: Target, device: int) -> None:
        self._target = target
        self._device = device

    def __enter__(self) -> None:
        self._previous = self._target.current_device()
        if self._previous != self._device:
            self._target.set_device(self._device)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._previous != self._device:
            self._target.set_device(self._previous)


class Entries(Generic[Value]):
    """Keep what a context manager has to put back, for each thread and each time it was entered."""

    __slots__ = ("_by_thread",)

    def __init__(self) -> None:
        self._by_thread: dict[int, list[Value]] = {}

    def push(self, value: Value) -> None:
        """Remember a value at entry."""
        thread = get_ident()
        values = self._by_thread.get(thread)
        if values is None:
            values = self._by_thread[thread] = []
        values.append(value)

    def pop(self) -> Value:
        """Return the value of the calling thread's last entry and forget it."""
        return self._by_thread[get_ident()].pop()  # the empty list stays: the next entry comes soon


class _Streams(threading.local):
    def __init__(self) -> None:
        self.current: dict[tuple[Target, int], BaseStream] = {}


_streams = _Streams()


def current_stream(target: Target, device: int | None) -> BaseStream | None:
    """Return the stream that is current for the calling thread; None for the default stream.

    Parameters
    ----------
    target : Target
    device : int or None
        None: the current one, which is asked for only where the thread has a stream at all.
    """
    current = _streams.current
    if not current:
        return None
    return current.get((target, target.current_device() if device is None else device))


def exchange_stream(target: Target, device: int, stream: BaseStream) -> Callable[[], None]:
    """Make a stream the calling thread's current one; calling the result puts back what was current."""
    current = _streams.current
    key = target, device
    previous = current.get(key)
    if previous is None:
        _native.streams_entered(+1)
    current[key] = stream
    return partial(_put_back, current, key, previous)


def _put_back(
    current: dict[tuple[Target, int], BaseStream], key: tuple[Target, int], previous: BaseStream | None
) -> None:
    if previous is None:
        if current.pop(key, None) is not None:
            _native.streams_entered(-1)
        return
    if key not in current:
        _native.streams_entered(+1)
    current[key] = previous
