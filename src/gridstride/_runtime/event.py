"""Events: markers in streams."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from gridstride import _native
from gridstride._runtime import tracking
from gridstride._runtime.current import on_device
from gridstride._runtime.device import require_target
from gridstride._runtime.stream import BaseStream, get_current_stream, stream_handle
from gridstride.targets import registry
from gridstride.targets.base import EventFlags, Target


class Event(_native.EventRecord):
    """Make an event on the current device.

    Parameters
    ----------
    block : bool
        Let `synchronize` sleep instead of spinning.
    disable_timing : bool
        Do without the time, which makes recording cheaper.
    interprocess : bool
        Let other processes open it with `open_handle`; it keeps no time then.
    target : Target, optional
        The default target unless given.

    Raises
    ------
    NotImplementedError
        For interprocess events on a target without them.
    ValueError
        For an interprocess event that is to keep time.
    """

    target: Target
    device_id: int
    _handle: int | None
    _times: bool
    _recorded: bool

    @_native.shortcut
    def __init__(
        self,
        block: bool = False,
        disable_timing: bool = False,
        interprocess: bool = False,
        *,
        target: Target | None = None,
    ) -> None:
        if interprocess and not disable_timing:
            raise ValueError("an event for several processes keeps no time: pass disable_timing=True")
        self.target = registry.default() if target is None else target
        self.device_id = self.target.current_device()
        self._times = not disable_timing
        self._recorded = False
        flags = 0 if self._times else int(EventFlags.NO_TIMING)
        if block:
            flags |= int(EventFlags.BLOCKING)
        if interprocess:
            flags |= int(EventFlags.INTERPROCESS)
        self._handle = self.target.create_event(flags)

    @classmethod
    def open_handle(cls, handle: bytes, *, target: Target | None = None) -> Event:
        """Return the event of another process.

        Parameters
        ----------
        handle : bytes
            Its `ipc_handle`.
        target : Target, optional
            The default target unless given.
        """
        event = cls.__new__(cls)
        event.target = registry.default() if target is None else target
        event.device_id = event.target.current_device()
        event._times, event._recorded = False, True
        event._handle = event.target.open_event_handle(handle)
        return event

    @property
    def ipc_handle(self) -> bytes:
        """What another process opens the event with; the event must be made with ``interprocess=True``."""
        return self.target.event_handle(self.ptr)

    @_native.shortcut
    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None and not finalizing():
            self._handle = None
            self.target.destroy_event(handle)

    def __repr__(self) -> str:
        return f"<Event {self.ptr:#x} of target {self.target.name!r}>"

    @_native.shortcut
    def record(self, stream: Any = None) -> None:
        """Record the event behind the work issued so far.

        Parameters
        ----------
        stream : Stream, int, CuPy or PyTorch stream, or an object with ``__cuda_stream__``, optional
            The current stream of the event's device by default.

        Raises
        ------
        TypeError
            For a stream of another target.
        ValueError
            For a stream of another device.
        """
        if stream is None:
            stream = get_current_stream(self.device_id, target=self.target)
        is_ours = isinstance(stream, BaseStream)
        if is_ours and stream._device == self.device_id and stream.target is self.target:
            self._record(stream._handle)
            return
        if is_ours and not stream.runs_on(self.device_id):
            raise ValueError(
                f"an event of device {self.device_id} cannot be recorded in a stream of device "
                f"{stream.device_id}"
            )
        with on_device(self.target, self.device_id):
            self._record(stream_handle(stream, self.target))

    def _record(self, handle: int) -> None:
        tracking.record_event(self.target, self.device_id, self.ptr, handle)
        self._recorded = True

    def wait(self, stream: Any = None) -> None:
        """Let later work of a stream wait for the event, as PyTorch's streams ask of events.

        Parameters
        ----------
        stream : Stream, int, CuPy or PyTorch stream, or an object with ``__cuda_stream__``, optional
            The current stream by default.
        """
        device = self.target.current_device()
        if stream is None:
            stream = get_current_stream(device, target=self.target)
        tracking.wait_event(self.target, device, stream_handle(stream, self.target), self.ptr)

    def synchronize(self) -> None:
        """Wait for the work in front of the event; return at once where it was never recorded."""
        with on_device(self.target, self.device_id):
            tracking.synchronize_event(self.target, self.ptr)

    def query(self) -> bool:
        """Return whether the work in front of the event is complete; True where it was never recorded."""
        with on_device(self.target, self.device_id):
            return tracking.event_done(self.target, self.ptr)

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this event to another; see `get_elapsed_time`."""
        return get_elapsed_time(self, end_event)

    @property
    def done(self) -> bool:
        """Whether the work in front of the event is complete."""
        return self.query()

    @property
    def ptr(self) -> int:
        """The raw handle."""
        assert self._handle is not None
        return self._handle


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Return the milliseconds between two events, waiting for the end event.

    Parameters
    ----------
    start_event, end_event : Event
        Of one target, both recorded and keeping times; negative where the end was reached first.

    Raises
    ------
    TypeError
        For events of different targets, and for those of other libraries.
    ValueError
        Where one was never recorded, or made with ``disable_timing=True``.
    """
    for name, event in (("start", start_event), ("end", end_event)):
        if not isinstance(event, Event):
            raise TypeError(f"the {name} event must be a gridstride event, got {type(event).__name__}")
    require_target("the end event", end_event.target, start_event.target)
    for name, event in (("start", start_event), ("end", end_event)):
        if not event._times:
            raise ValueError(f"the {name} event keeps no time: make it with disable_timing=False")
        if not event._recorded:
            raise ValueError(f"the {name} event was never recorded: call its record() first")
    end_event.synchronize()
    with on_device(start_event.target, start_event.device_id):
        return start_event.target.elapsed(start_event.ptr, end_event.ptr)
