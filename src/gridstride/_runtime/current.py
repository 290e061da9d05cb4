"""What is current for the calling thread: the device of a target, and our stream on a device.

One rule holds for devices and streams: leaving a context puts back what was current when it was
entered. A target is asked for its current device, so that switches by other libraries count.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from gridstride import _native
from gridstride.targets.base import Target

if TYPE_CHECKING:
    from gridstride._runtime.stream import BaseStream


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


def current_stream(target: Target, device: int | None) -> BaseStream | None:
    """Return the stream that is current for the calling thread; None for the default stream.

    Parameters
    ----------
    target : Target
    device : int or None
        None: the current one, which is asked for only where the thread has a stream at all.
    """
    of_target: dict[int, BaseStream] | None = _native.thread_streams().get(target)
    if not of_target:
        return None
    return of_target.get(target.current_device() if device is None else device)


def exchange_stream(target: Target, device: int, stream: BaseStream | None) -> BaseStream | None:
    """Make a stream (None: the default one) the calling thread's current one; return what was current."""
    of_target = _native.thread_streams().setdefault(target, {})
    previous: BaseStream | None = of_target.pop(device, None)
    if stream is not None:
        of_target[device] = stream
    _native.streams_entered((stream is not None) - (previous is not None))
    return previous
