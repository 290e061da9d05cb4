"""The CPU target's streams: what is issued runs at once, waits in a queue, or is recorded for a graph.

At once is the default, because NumPy knows no streams. In *deferred mode* everything waits until a
call synchronizes, and then only what that call has to wait for runs, in a random order among all that
stream order allows. Between streams the order is CUDA's: the device's default stream waits for every
blocking stream and they for it; non-blocking streams are bound by events alone.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gridstride import _forks, _native
from gridstride.targets.cpu import host
from gridstride.targets.cpu.events import Event
from gridstride.targets.cpu.operations import (
    Execution,
    Operation,
    Run,
    in_random_order,
    needed_for,
    unfinished,
)
from gridstride.targets.cpu.recording import Recording

#: Stream handles that exist without being created, as in CUDA: default, legacy default, per thread.
_DEFAULT, _LEGACY, _PER_THREAD = 0, 1, 2


@dataclass(eq=False, slots=True)
class Lane:
    """Hold what is known of a stream: what its next operation has to wait for, and its capture."""

    device: int
    blocking: bool
    ends: tuple[Operation, ...] = ()
    recording: Recording | None = None
    nodes: tuple[Operation, ...] = ()
    is_destroyed: bool = False


@dataclass(eq=False, slots=True)
class _Device:
    default: Lane
    #: Blocking streams, also those destroyed with work left.
    blocking: list[Lane] = field(default_factory=list)
    independent: list[Lane] = field(default_factory=list)

    def lanes(self) -> Iterator[Lane]:
        yield self.default
        yield from self.blocking
        yield from self.independent


class Queues:
    """Order the work of all streams of the target.

    Parameters
    ----------
    seed : int or None
        Of the order in deferred mode; None: everything runs at once.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._lock = _forks.RLock()
        self._execution = Execution()
        self._devices: dict[int, _Device] = {}
        self._streams: dict[int, Lane] = {}
        self._threads = threading.local()
        self._captures = 0
        self._order: random.Random | None = None
        self.defer(seed)

    # mode

    @property
    def is_deferred(self) -> bool:
        """Whether work waits for a call that synchronizes."""
        return self._order is not None

    def defer(self, seed: int | None) -> None:
        """Let work wait from now on (None: run at once); first everything that waits runs.

        Raises
        ------
        Exception
            What failed of the work that was waiting; the mode has changed then.
        """
        with self._lock:
            waiting = [
                end for device in self._devices.values() for lane in device.lanes() for end in lane.ends
            ]
            before, self._order = self._order, None if seed is None else random.Random(seed)
            _native.watchers((self._order is not None) - (before is not None))
        self._complete(waiting, before or random.Random(0))

    # streams

    def add_stream(self, handle: int, device: int, non_blocking: bool) -> None:
        """Take in a stream that was created."""
        with self._lock:
            lane = self._streams[handle] = Lane(device, not non_blocking)
            of_device = self._device(device)
            (of_device.independent if non_blocking else of_device.blocking).append(lane)

    def remove_stream(self, handle: int) -> None:
        """Forget a stream; the work it still has keeps its order. KeyError where there is none."""
        with self._lock:
            lane = self._streams.pop(handle)
            if lane.recording is not None:
                self._end_recording(lane.recording)
            lane.is_destroyed = True
            of_device = self._device(lane.device)
            for lanes in (of_device.blocking, of_device.independent):
                lanes[:] = [other for other in lanes if not other.is_destroyed or unfinished(other.ends)]

    def is_blocking(self, handle: int) -> bool:
        """Return whether a stream waits for the default stream, and that one for it."""
        self.check_stream(handle, "is_blocking")
        return handle <= _PER_THREAD or self._streams[handle].blocking

    def check_stream(self, handle: int, call: str) -> None:
        """Raise `CUDAError` where there is no such stream."""
        if handle > _PER_THREAD and handle not in self._streams:
            raise host.device_error(
                "CUDA_ERROR_INVALID_HANDLE", f"{handle:#x} is no stream that exists", call
            )

    def submit(self, handle: int, device: int, label: str, run: Run, kept: object = None) -> None:
        """Run, queue or record a piece of work in a stream."""
        lane = self._lane(handle, device, label)
        if not self._captures and self._order is None:
            run()
            return
        with self._lock:
            if lane.recording is not None:
                lane.nodes = (lane.recording.add(Operation(label, run, lane.nodes, kept)),)
                return
            self._check_no_implicit_capture(lane, label)
            if self._order is not None:
                self._enqueue(lane, Operation(label, run, kept=kept))
                return
        run()

    def submit_and_wait(self, device: int, label: str, run: Run) -> None:
        """Run a piece of work of the default stream and wait for it."""
        if not self._captures and self._order is None:
            run()
            return
        self.submit(_DEFAULT, device, label, run)
        self.synchronize_stream(_DEFAULT, device)

    def synchronize_stream(self, handle: int, device: int) -> None:
        """Run what a stream waits for; raise what failed."""
        lane = self._uncaptured(handle, device, "synchronize_stream")
        self._complete(self._waited_for(lane))

    def synchronize_device(self, device: int) -> None:
        """Run all work of a device; raise what failed."""
        with self._lock:
            lanes = list(self._device(device).lanes())
            for lane in lanes:
                if lane.recording is not None:
                    raise _refused_by_capture(lane.recording, "synchronize")
            waiting = [end for lane in lanes for end in lane.ends]
        self._complete(waiting)

    def stream_done(self, handle: int, device: int) -> bool:
        """Return whether a stream has no work left; where it has, let one piece of it run."""
        lane = self._uncaptured(handle, device, "stream_done")
        return self._is_done(self._waited_for(lane))

    # events

    def record_event(self, event: Event, handle: int, device: int) -> None:
        """Mark the work issued to a stream so far."""
        lane = self._lane(handle, device, "record_event")
        with self._lock:
            event.recording, event.nodes = lane.recording, lane.nodes
            if lane.recording is not None:
                return
            self._check_no_implicit_capture(lane, "record_event")
            event.marker = None
            if self._order is not None:
                event.marker = Operation("event", lambda: _note_time(event, marker))
                marker = event.marker
                self._enqueue(lane, marker)
                return
        event.recorded = time.perf_counter()

    def wait_event(self, handle: int, device: int, event: Event) -> None:
        """Let a stream's next work wait for an event."""
        lane = self._lane(handle, device, "wait_event")
        with self._lock:
            if event.recording is not None:
                self._join_capture(lane, handle, event)
            elif lane.recording is not None:
                if event.marker is not None or event.recorded is not None:
                    message = "a stream in capture cannot wait for an event that was recorded outside"
                    raise _invalidated(lane.recording, "ISOLATION", message, "wait_event")
            elif event.marker is not None and not event.marker.done:
                lane.ends = (*unfinished(lane.ends), event.marker)

    def synchronize_event(self, event: Event) -> None:
        """Run what is in front of an event; raise what failed."""
        self._complete(_markers(event, "synchronize_event"))

    def event_done(self, event: Event) -> bool:
        """Return whether all in front of an event has run; where not, let one piece of it run."""
        return self._is_done(_markers(event, "event_done"))

    # capture

    def begin_capture(self, handle: int, device: int) -> None:
        """Record what is issued to a stream from now on."""
        lane = self._lane(handle, device, "begin_capture")
        with self._lock:
            if lane is self._device(lane.device).default:
                message = "the default stream cannot be captured: make another stream current"
                raise host.device_error("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", message, "begin_capture")
            if lane.recording is not None:
                message = "the stream is being captured already"
                raise host.device_error("CUDA_ERROR_ILLEGAL_STATE", message, "begin_capture")
            lane.recording, lane.nodes = Recording(lane), ()
            self._captures += 1
            _native.watchers(+1)

    def end_capture(self, handle: int, device: int) -> Recording:
        """Return what was recorded since `begin_capture`; whatever it raises, the capture has ended."""
        lane = self._lane(handle, device, "end_capture")
        with self._lock:
            recording = lane.recording
            if recording is None:
                message = "the stream is not being captured"
                raise host.device_error("CUDA_ERROR_ILLEGAL_STATE", message, "end_capture")
            if recording.origin is not lane:
                message = "the capture ends with the stream in which it began"
                raise _invalidated(recording, "UNMATCHED", message, "end_capture")
            last = lane.nodes
            self._end_recording(recording)
        recording.check(last)
        return recording

    def capture_of(self, handle: int, device: int) -> int:
        """Return the number of the capture that a stream takes part in; 0 for none."""
        recording = self._lane(handle, device, "capture_of").recording if self._captures else None
        return 0 if recording is None else recording.number

    def replay(self, nodes: Sequence[Operation]) -> None:
        """Run the nodes of a graph, as they were recorded or in a random order that they allow."""
        for node in nodes if self._order is None else in_random_order(nodes, self._order):
            node.run()

    # details

    def _device(self, device: int) -> _Device:
        found = self._devices.get(device)
        if found is None:
            found = self._devices.setdefault(device, _Device(Lane(device, blocking=False)))
        return found

    def _lane(self, handle: int, device: int, call: str) -> Lane:
        if handle in (_DEFAULT, _LEGACY):
            return self._device(device).default
        if handle == _PER_THREAD:
            return self._lane_of_thread(device)
        self.check_stream(handle, call)
        return self._streams[handle]

    def _lane_of_thread(self, device: int) -> Lane:
        lanes: dict[int, Lane] = self._threads.__dict__.setdefault("lanes", {})
        if device not in lanes:
            with self._lock:
                lanes[device] = Lane(device, blocking=True)
                self._device(device).blocking.append(lanes[device])
        return lanes[device]

    def _uncaptured(self, handle: int, device: int, call: str) -> Lane:
        lane = self._lane(handle, device, call)
        with self._lock:
            if lane.recording is not None:
                raise _refused_by_capture(lane.recording, call)
            self._check_no_implicit_capture(lane, call)
        return lane

    def _check_no_implicit_capture(self, lane: Lane, call: str) -> None:
        """Refuse the default stream while a stream that it would wait for is captured."""
        of_device = self._device(lane.device)
        if not self._captures or lane is not of_device.default:
            return
        for other in of_device.blocking:
            if other.recording is not None:
                message = (
                    f"{call}: the default stream would wait for a stream that is being captured; "
                    f"use the captured stream, or capture a stream made with non_blocking=True"
                )
                raise _invalidated(other.recording, "IMPLICIT", message, call)

    def _join_capture(self, lane: Lane, handle: int, event: Event) -> None:
        recording = event.recording
        assert recording is not None
        if recording.is_ended:
            message = "the event was recorded in a capture that has ended: record it again"
            raise host.device_error("CUDA_ERROR_CAPTURED_EVENT", message, "wait_event")
        if handle in (_DEFAULT, _LEGACY):
            message = "the default stream cannot take part in a capture"
            raise _invalidated(recording, "IMPLICIT", message, "wait_event")
        if lane.recording not in (None, recording):
            raise _invalidated(recording, "MERGE", "two captures cannot become one", "wait_event")
        if lane.recording is None:
            lane.recording, lane.nodes = recording, ()
            recording.lanes.append(lane)
        lane.nodes = tuple(dict.fromkeys((*lane.nodes, *event.nodes)))

    def _end_recording(self, recording: Recording) -> None:
        for lane in recording.lanes:
            lane.recording, lane.nodes = None, ()
        recording.is_ended = True
        self._captures -= 1
        _native.watchers(-1)

    def _enqueue(self, lane: Lane, operation: Operation) -> None:
        operation.after = self._waited_for(lane)
        lane.ends = (operation,)

    def _waited_for(self, lane: Lane) -> tuple[Operation, ...]:
        """Return what the next operation of a stream has to wait for."""
        with self._lock:
            lane.ends = unfinished(lane.ends)
            of_device = self._device(lane.device)
            if lane is of_device.default:
                others = [end for other in of_device.blocking for end in unfinished(other.ends)]
                return tuple(dict.fromkeys((*lane.ends, *others)))
            if lane.blocking:
                return tuple(dict.fromkeys((*lane.ends, *unfinished(of_device.default.ends))))
            return lane.ends

    def _is_done(self, wanted: Sequence[Operation]) -> bool:
        needed = needed_for(wanted)
        if needed:
            self._execution.perform(needed[:1])
        return not needed

    def _complete(self, wanted: Iterable[Operation], order: random.Random | None = None) -> None:
        """Run operations and all in front of them; afterwards raise the first failure."""
        needed = needed_for(wanted)
        if needed:
            self._execution.perform(in_random_order(needed, order or self._order or random.Random(0)))


def _markers(event: Event, call: str) -> tuple[Operation, ...]:
    if event.recording is not None:
        message = "the event was recorded in a capture, so it stands for no time: record it again"
        raise host.device_error("CUDA_ERROR_CAPTURED_EVENT", message, call)
    return () if event.marker is None else (event.marker,)


def _note_time(event: Event, marker: Operation) -> None:
    if event.marker is marker:  # else it was recorded again since
        event.recorded = time.perf_counter()


def _refused_by_capture(recording: Recording, call: str) -> Exception:
    message = (
        f"{call}: nothing that is being captured has run, so it cannot be waited for; end the capture first"
    )
    return _invalidated(recording, "UNSUPPORTED", message, call)


def _invalidated(recording: Recording, reason: str, message: str, call: str) -> Exception:
    """Spoil a capture, as CUDA does, and return the error that says so."""
    recording.is_valid = False
    return host.device_error(f"CUDA_ERROR_STREAM_CAPTURE_{reason}", message, call)
