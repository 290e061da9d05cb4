"""Captures of streams that are under way, and what they keep alive."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gridstride._runtime import tracking
from gridstride._runtime.current import on_device
from gridstride._runtime.tracking import Observer, Work
from gridstride.errors import CUDAError
from gridstride.targets.base import Access, Target

if TYPE_CHECKING:
    from gridstride._runtime.stream import BaseStream

Leave = Callable[[], None]

#: Called when a capture has begun; what it returns is called when the capture ends, however it ends.
at_begin: list[Callable[[Capture], Leave]] = []

_active: dict[tuple[Target, int], Capture] = {}


class Capture(Observer):
    """Record what is issued to a stream, and to those that wait for its events, from now on.

    Parameters
    ----------
    stream : BaseStream

    Attributes
    ----------
    target : Target
    device : int
    number : int
        Names the capture on its target.
    kept : list of object
        What the graph has to keep alive: the owners of all memory that the captured work touches.
    accesses : list of Access
        The memory that the captured work touches.

    Raises
    ------
    CUDAError
        Where the stream cannot be captured.
    """

    def __init__(self, stream: BaseStream) -> None:
        self.stream = stream
        self.target = stream.target
        self.device = stream.device_id
        self.kept: list[object] = []
        self.accesses: list[Access] = []
        self._leaves: list[Leave] = []
        self._handle = stream.ptr
        with on_device(self.target, self.device):
            self.target.begin_capture(self._handle)
            self.number = self.target.capture_of(self._handle)
        self.is_active = True
        _active[self.target, self._handle] = self
        tracking.watch(self)
        try:
            for begin in at_begin:
                self._leaves.append(begin(self))
        except BaseException:
            self.abandon()
            raise

    def issuing(self, work: Work) -> None:
        """Keep what captured work touches."""
        if work.stream is None or work.target is not self.target:
            return
        if self.target.capture_of(work.stream) == self.number:
            self.kept.extend(access.owner for access in work.accesses)
            self.accesses.extend(work.accesses)

    def end(self) -> int:
        """End the capture and return the graph.

        Raises
        ------
        CUDAError
            Where a call was not allowed during the capture or a stream was not joined; it has ended then too.
        """
        self.is_active = False
        del _active[self.target, self._handle]
        tracking.unwatch(self)
        try:
            with on_device(self.target, self.device):
                return self.target.end_capture(self._handle)
        finally:
            for leave in reversed(self._leaves):
                leave()

    def at_end(self, leave: Leave) -> None:
        """Let a function be called when the capture has ended, however it ends."""
        self._leaves.append(leave)

    def abandon(self) -> None:
        """End the capture where it is still going on, and throw away what was recorded."""
        if self.is_active:
            try:
                graph = self.end()
            except CUDAError:
                return  # what was recorded was no graph
            self.target.destroy_graph(graph)


def capture_in(stream: BaseStream) -> Capture | None:
    """Return the capture that began in a stream and goes on."""
    return _active.get((stream.target, stream.ptr)) if _active else None


def keep(target: Target, stream: int, what: object) -> None:
    """Let the graph of the capture that a stream takes part in keep an object alive."""
    number = target.capture_of(stream)
    for capture in _active.values():
        if capture.target is target and capture.number == number:
            capture.kept.append(what)


def is_capturing(target: Target, stream: int) -> bool:
    """Return whether a stream takes part in a capture of ours."""
    return bool(_active) and target.capture_of(stream) != 0


def find(target: Target, stream: int) -> Capture | None:
    """Return the capture of ours that a stream takes part in."""
    if not _active:
        return None
    number = target.capture_of(stream)
    found = (capture for capture in _active.values() if capture.target is target)
    return next((capture for capture in found if capture.number == number), None)
