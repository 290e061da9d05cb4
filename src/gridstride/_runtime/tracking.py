"""What is issued to streams and what waits for them: it passes here, so that observers see it.

With nobody watching, each function costs one look at an empty tuple. While somebody watches, the
compiled fast path is off, so that launches pass here too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gridstride import _forks, _native
from gridstride._runtime import keeping
from gridstride.targets.base import Access, CopyDirection, Function, LaunchConfig, Target


class Work(NamedTuple):
    """Describe work about to be issued.

    Attributes
    ----------
    target : Target
    device : int
    stream : int or None
        Raw handle; None: the default stream, and the caller waits.
    what : str
        For messages, such as "kernel `f`".
    accesses : sequence of Access
        The memory it touches.
    """

    target: Target
    device: int
    stream: int | None
    what: str
    accesses: Sequence[Access]


class Observer:
    """Watch what is issued; the methods here do nothing."""

    def issuing(self, work: Work) -> None:
        """Look at work before it is issued; raising keeps it from being issued."""

    def issued(self, work: Work) -> None:
        """Look at work that was issued."""

    def recorded(self, target: Target, device: int, event: int, stream: int) -> None:
        """See that an event was recorded."""

    def waiting(self, target: Target, device: int, stream: int, event: int) -> None:
        """See that a stream waits for an event."""

    def waiting_for_others(self, target: Target, device: int, stream: int) -> None:
        """See that a stream waits for an event whose recording nobody saw."""

    def finished_stream(self, target: Target, device: int, stream: int) -> None:
        """See that all work of a stream is known to be complete."""

    def finished_event(self, target: Target, event: int) -> None:
        """See that all work in front of an event is known to be complete."""

    def finished_device(self, target: Target, device: int) -> None:
        """See that all work of a device is known to be complete."""

    def destroying_stream(self, target: Target, device: int, stream: int) -> None:
        """See that a stream goes, so that its handle may come to mean another one."""


#: Called with target, device and handle before a stream is destroyed.
at_destroy_stream: list[Callable[[Target, int, int], None]] = []

_observers: tuple[Observer, ...] = ()
_devices: dict[tuple[Target, int], int] = {}
_lock = _forks.Lock()


def watch(observer: Observer) -> None:
    """Let an observer see everything from now on."""
    global _observers
    with _lock:
        _observers = (*_observers, observer)
        _native.watchers(+1)


def unwatch(observer: Observer) -> None:
    """Let an observer see nothing more."""
    global _observers
    with _lock:
        _observers = tuple(other for other in _observers if other is not observer)
        _native.watchers(-1)


def launch(
    target: Target,
    device: int,
    name: str,
    function: Function,
    configuration: LaunchConfig,
    packed: bytes,
    stream: int,
    accesses: Sequence[Access],
) -> None:
    """Launch a kernel of that name on the current device."""
    work = _announce(Work(target, device, stream, f"kernel `{name}`", accesses)) if _observers else None
    target.launch(function, configuration, packed, stream, accesses)
    if work is not None:
        _confirm(work)
    keep_if_needed(target, device, stream, accesses)


def keep_if_needed(target: Target, device: int, stream: int, accesses: Sequence[Access]) -> None:
    """Keep what a launch touches until it is done, where there is more than one stream."""
    if keeping.is_needed:
        _keep(target, device, stream, accesses)


def copy(
    target: Target,
    device: int,
    destination: Access,
    source: Access,
    size: int,
    direction: CopyDirection,
    stream: int | None,
) -> None:
    """Copy bytes on the current device."""
    accesses = destination, source
    work = _announce(Work(target, device, stream, f"copy of {size} bytes", accesses)) if _observers else None
    target.copy(destination.address, source.address, size, direction, stream, accesses)
    if work is not None:
        _confirm(work)
    if stream is not None and (keeping.is_needed or direction is not CopyDirection.DEVICE_TO_DEVICE):
        _keep(target, device, stream, accesses)
    if _observers and stream is None:
        _finish_stream(target, device, 0)


def copy_between_devices(
    target: Target,
    device: int,
    destination: Access,
    source: Access,
    source_device: int,
    size: int,
    stream: int | None,
) -> None:
    """Copy bytes from another device to the current one."""
    accesses = destination, source
    what = f"copy of {size} bytes between devices"
    work = _announce(Work(target, device, stream, what, accesses)) if _observers else None
    target.copy_between_devices(
        destination.address, device, source.address, source_device, size, stream, accesses
    )
    if work is not None:
        _confirm(work)
    if stream is not None:
        _keep(target, device, stream, accesses)
    if _observers and stream is None:
        _finish_stream(target, device, 0)


def fill(target: Target, device: int, destination: Access, value: int, size: int, stream: int | None) -> None:
    """Set bytes on the current device."""
    accesses = (destination,)
    work = _announce(Work(target, device, stream, f"fill of {size} bytes", accesses)) if _observers else None
    target.fill(destination.address, value, size, stream, accesses)
    if work is not None:
        _confirm(work)
    if stream is not None and keeping.is_needed:
        _keep(target, device, stream, accesses)
    if _observers and stream is None:
        _finish_stream(target, device, 0)


def launch_host_function(target: Target, device: int, stream: int, function: Callable[[], None]) -> None:
    """Call a function in stream order."""
    work = _announce(Work(target, device, stream, "host function", ())) if _observers else None
    target.launch_host_function(stream, function)
    if work is not None:
        _confirm(work)


def launch_graph(
    target: Target, device: int, executable: int, stream: int, accesses: Sequence[Access]
) -> None:
    """Launch a graph that touches the memory of `accesses`."""
    work = _announce(Work(target, device, stream, "graph", accesses)) if _observers else None
    target.launch_graph(executable, stream)
    if work is not None:
        _confirm(work)


def record_event(target: Target, device: int, event: int, stream: int) -> None:
    """Record an event on the current device."""
    target.record_event(event, stream)
    for observer in _observers:
        observer.recorded(target, device, event, stream)


def wait_event(target: Target, device: int, stream: int, event: int) -> None:
    """Let a stream of the current device wait for an event."""
    target.wait_event(stream, event)
    for observer in _observers:
        observer.waiting(target, device, stream, event)


def wait_foreign_event(target: Target, device: int, stream: int, event: int) -> None:
    """Let a stream of the current device wait for an event of another library: who recorded it is not known."""
    target.wait_event(stream, event)
    for observer in _observers:
        observer.waiting_for_others(target, device, stream)


def synchronize_stream(target: Target, device: int, stream: int) -> None:
    """Wait for a stream of the current device."""
    target.synchronize_stream(stream)
    keeping.sweep()
    _finish_stream(target, device, stream)


def stream_done(target: Target, device: int, stream: int) -> bool:
    """Return whether a stream of the current device is complete."""
    is_done = target.stream_done(stream)
    if is_done:
        _finish_stream(target, device, stream)
    return is_done


def synchronize_event(target: Target, event: int) -> None:
    """Wait for an event."""
    target.synchronize_event(event)
    keeping.sweep()
    _finish_event(target, event)


def event_done(target: Target, event: int) -> bool:
    """Return whether the work in front of an event is complete."""
    is_done = target.event_done(event)
    if is_done:
        _finish_event(target, event)
    return is_done


def synchronize_device(target: Target, device: int) -> None:
    """Wait for the current device."""
    target.synchronize(device)
    keeping.sweep()
    for observer in _observers:
        observer.finished_device(target, device)


def create_stream(target: Target, device: int, non_blocking: bool) -> int:
    """Return a new stream of the current device."""
    stream = target.create_stream(non_blocking)
    keeping.begin()
    _devices[target, stream] = device
    return stream


def device_of(target: Target, stream: int, current: int) -> int:
    """Return the device of a stream; the current one for default streams and those that others made."""
    return _devices.get((target, stream), current)


def destroy_stream(target: Target, device: int, stream: int) -> None:
    """Destroy a stream."""
    for observer in _observers:
        observer.destroying_stream(target, device, stream)
    for prepare in at_destroy_stream:
        prepare(target, device, stream)
    _devices.pop((target, stream), None)
    target.destroy_stream(stream)


def _keep(target: Target, device: int, stream: int, accesses: Sequence[Access]) -> None:
    """Keep the owners of memory that a target goes on using after the call has returned."""
    keeping.keep(target, device, stream, tuple(access.owner for access in accesses))


def _announce(work: Work) -> Work:
    for observer in _observers:
        observer.issuing(work)
    return work


def _confirm(work: Work) -> None:
    for observer in _observers:
        observer.issued(work)


def _finish_stream(target: Target, device: int, stream: int) -> None:
    for observer in _observers:
        observer.finished_stream(target, device, stream)


def _finish_event(target: Target, event: int) -> None:
    for observer in _observers:
        observer.finished_event(target, event)
