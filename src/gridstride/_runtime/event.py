"""Events: markers in streams."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from gridstride._runtime.current import on_device
from gridstride._runtime.device import require_target
from gridstride._runtime.stream import BaseStream, get_current_stream, stream_handle
from gridstride.targets import registry
from gridstride.targets.base import Target


class Event:
    """Make an event on the current device.

    Parameters
    ----------
    block : bool
        Let `synchronize` sleep instead of spinning.
    disable_timing : bool
        Do without the time, which makes recording cheaper.
    interprocess : bool
        Not offered.
    target : Target, optional
        The default target unless given.

    Raises
    ------
    NotImplementedError
        For interprocess events.
    """

    _handle: int | None = None

    def __init__(
        self,
        block: bool = False,
        disable_timing: bool = False,
        interprocess: bool = False,
        *,
        target: Target | None = None,
    ) -> None:
        if interprocess:
            raise NotImplementedError(
                "events shared between processes are not offered: no target hands them out"
            )
        self.target: Target = registry.default() if target is None else target
        self.device_id = self.target.current_device()
        self._times = not disable_timing
        self._recorded = False
        self._handle = self.target.create_event(timing=self._times, blocking=block)

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        handle = self._handle
        if handle is not None and not finalizing():
            self._handle = None
            self.target.destroy_event(handle)

    def __repr__(self) -> str:
        return f"<Event {self.ptr:#x} of target {self.target.name!r}>"

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
        with on_device(self.target, self.device_id):
            handle = stream_handle(stream, self.target)
            if isinstance(stream, BaseStream) and not stream.runs_on(self.device_id):
                raise ValueError(
                    f"an event of device {self.device_id} cannot be recorded in a stream of device "
                    f"{stream.device_id}"
                )
            self.target.record_event(self.ptr, handle)
        self._recorded = True

    def synchronize(self) -> None:
        """Wait for the work in front of the event; return at once where it was never recorded."""
        with on_device(self.target, self.device_id):
            self.target.synchronize_event(self.ptr)

    def query(self) -> bool:
        """Return whether the work in front of the event is complete; True where it was never recorded."""
        with on_device(self.target, self.device_id):
            return self.target.event_done(self.ptr)

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

    Raises
    ------
    TypeError
        For events of different targets.
    ValueError
        Where one was never recorded, or made with ``disable_timing=True``.
    """
    require_target("the end event", end_event.target, start_event.target)
    for name, event in (("start", start_event), ("end", end_event)):
        if not event._times:
            raise ValueError(f"the {name} event keeps no time: make it with disable_timing=False")
        if not event._recorded:
            raise ValueError(f"the {name} event was never recorded: call its record() first")
    end_event.synchronize()
    with on_device(start_event.target, start_event.device_id):
        return start_event.target.elapsed(start_event.ptr, end_event.ptr)
