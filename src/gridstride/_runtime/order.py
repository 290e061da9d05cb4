"""Find memory that two streams use with nothing between them that orders them.

Every stream has a vector clock: how much of each stream's work is known to be in front of its next
piece of work. Events, synchronizations and the rules of the default stream carry this knowledge
from one clock to another. Two pieces of work that touch the same bytes, one of them writing, must be
ordered by it.
"""

from __future__ import annotations

import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from gridstride import _forks, arrays, config
from gridstride._runtime import tracking
from gridstride._runtime.tracking import Observer, Work
from gridstride.errors import StreamOrderError, StreamOrderWarning
from gridstride.targets.base import Access, Target

_PACKAGE = str(Path(__file__).parents[1])
_ACTIONS = ("raise", "warn")
_DEFAULT, _LEGACY, _PER_THREAD = 0, 1, 2


class _Lane(NamedTuple):
    """Name a stream; `instance` tells apart those that had or have the same handle, by time or by thread."""

    device: int
    stream: int
    instance: int = 0


_Clock = dict[_Lane, int]


class _Use(NamedTuple):
    """Say that work touched a range of memory."""

    lane: _Lane
    tick: int
    written: bool
    what: str
    where: str


@dataclass(slots=True)
class _Range:
    """Hold the last uses of a range of memory."""

    owner: Callable[[], object]
    uses: dict[tuple[_Lane, bool], _Use] = field(default_factory=dict)


@dataclass(slots=True)
class _World:
    """Hold what is known of streams that can meet: those that run, or those of one capture."""

    clocks: dict[_Lane, _Clock] = field(default_factory=dict)
    host: _Clock = field(default_factory=dict)
    ranges: dict[tuple[int, int], _Range] = field(default_factory=dict)


class _Threads(threading.local):
    """Number the threads; the system gives an ended thread's identity to the next one, which this never does."""

    _numbers = count(1)

    def __init__(self) -> None:
        self.number = next(self._numbers)


class StreamOrderChecker(Observer):
    """Check all work while it watches.

    Parameters
    ----------
    action : {"raise", "warn"}
        What to do about work without order; ``"raise"`` keeps it from being issued.
    """

    def __init__(self, action: str = "raise") -> None:
        if action not in _ACTIONS:
            raise ValueError(f"action must be one of {', '.join(_ACTIONS)}, got {action!r}")
        self._action = action
        self._lock = _forks.RLock()
        self._worlds: dict[tuple[Target, int], _World] = {}
        self._events: dict[tuple[Target, int], tuple[_World, _Clock]] = {}
        self._instances: dict[tuple[Target, int], int] = {}
        self._threads = _Threads()
        self._blocking: dict[_Lane, bool] = {}

    def issuing(self, work: Work) -> None:
        """Check the memory that work touches against all earlier work."""
        stream = _DEFAULT if work.stream is None else work.stream
        with self._lock:
            world, lane = self._find(work.target, work.device, stream)
            clock = self._advanced(world, lane)
            where = _caller()
            for access in work.accesses:
                if access.extent:
                    self._check(world, clock, lane, work, access, where)
            for access in work.accesses:
                if access.extent:
                    _note(world, access, _Use(lane, clock[lane], access.written, work.what, where))

    def recorded(self, target: Target, device: int, event: int, stream: int) -> None:
        """Let an event know what its stream knows."""
        with self._lock:
            world, lane = self._find(target, device, stream)
            self._events[target, event] = world, dict(self._known(world, lane))

    def waiting(self, target: Target, device: int, stream: int, event: int) -> None:
        """Let a stream know what an event knows."""
        with self._lock:
            if (target, event) in self._events:
                world, clock = self._events[target, event]
                _, lane = self._find(target, device, stream)
                _join(world.clocks.setdefault(lane, {}), clock)

    def waiting_for_others(self, target: Target, device: int, stream: int) -> None:
        """Let a stream know all work so far: the event may have been recorded behind any of it."""
        with self._lock:
            world, lane = self._find(target, device, stream)
            clock = self._known(world, lane)
            for others_clock in list(world.clocks.values()):
                _join(clock, others_clock)

    def finished_stream(self, target: Target, device: int, stream: int) -> None:
        """Let all later work know what the stream knows."""
        with self._lock:
            world, lane = self._find(target, device, stream)
            _finish(world, self._known(world, lane))

    def finished_event(self, target: Target, event: int) -> None:
        """Let all later work know what the event knows."""
        with self._lock:
            if (target, event) in self._events:
                _finish(*self._events[target, event])

    def finished_device(self, target: Target, device: int) -> None:
        """Let all later work know what all streams of the device know."""
        with self._lock:
            world = self._world(target, 0)
            for lane, clock in list(world.clocks.items()):
                if lane.device == device:
                    _finish(world, clock)

    def destroying_stream(self, target: Target, device: int, stream: int) -> None:
        """Let the stream's handle mean another stream from now on."""
        with self._lock:
            self._instances[target, stream] = self._instances.get((target, stream), 0) + 1

    def _find(self, target: Target, device: int, stream: int) -> tuple[_World, _Lane]:
        capture, lane = target.capture_of(stream), self._lane(target, device, stream)
        if (
            not capture and lane not in self._blocking
        ):  # in a capture nobody may ask, and nothing follows from it
            self._blocking[lane] = target.is_blocking(stream)
        return self._world(target, capture), lane

    def _lane(self, target: Target, device: int, stream: int) -> _Lane:
        if stream == _PER_THREAD:
            return _Lane(device, stream, self._threads.number)
        if stream == _LEGACY:
            return _Lane(device, _DEFAULT)
        instance = self._instances.get((target, stream), 0)
        return _Lane(tracking.device_of(target, stream, device), stream, instance)

    def _world(self, target: Target, capture: int) -> _World:
        return self._worlds.setdefault((target, capture), _World())

    def _known(self, world: _World, lane: _Lane) -> _Clock:
        """Return the clock of a stream's next piece of work, which also follows from the default stream's rules."""
        clock = world.clocks.setdefault(lane, {})
        _join(clock, world.host)
        default = _Lane(lane.device, _DEFAULT)
        if lane == default:
            for other, others_clock in world.clocks.items():
                if other.device == lane.device and other != lane and self._blocking.get(other, True):
                    _join(clock, others_clock)
        elif default in world.clocks and self._blocking.get(lane, True):
            _join(clock, world.clocks[default])
        return clock

    def _advanced(self, world: _World, lane: _Lane) -> _Clock:
        clock = self._known(world, lane)
        clock[lane] = clock.get(lane, 0) + 1
        return clock

    def _check(
        self, world: _World, clock: _Clock, lane: _Lane, work: Work, access: Access, where: str
    ) -> None:
        low, high = access.address, access.address + access.extent
        for (start, end), touched in list(world.ranges.items()):
            if end <= low or high <= start:
                continue
            if touched.owner() is None:  # the memory was freed and given out again since
                del world.ranges[start, end]
                continue
            for use in touched.uses.values():
                if (use.written or access.written) and clock.get(use.lane, 0) < use.tick:
                    self._report(use, _Use(lane, 0, access.written, work.what, where), access)
                    return

    def _report(self, first: _Use, second: _Use, access: Access) -> None:
        message = _message(first, second, access)
        if self._action == "raise":
            raise StreamOrderError(
                message,
                first=f"{first.what} ({first.where})",
                second=f"{second.what} ({second.where})",
                array=describe(access),
            )
        file, _, line = second.where.rpartition(":")
        warnings.warn_explicit(message, StreamOrderWarning, file, int(line))


@contextmanager
def check_stream_order(action: str = "raise") -> Iterator[None]:
    """Find kernels, copies and fills that touch memory of another stream's work without an order.

    Two pieces of work in different streams touch the same bytes, one of them writes, and no event,
    no synchronization and no rule of the default stream orders them: then the second is not issued
    and `StreamOrderError` names both, the lines they were issued from, and the array. Nothing has to
    go wrong for that, so one run on the CPU target is enough.

    What counts as writing is what a kernel may do: declare parameters that are only read ``const``.
    Work that array libraries issue themselves is not seen.

    Parameters
    ----------
    action : {"raise", "warn"}
        ``"warn"`` gives a `StreamOrderWarning` instead and issues the work.

    Raises
    ------
    ValueError
        For another action.
    """
    checker = StreamOrderChecker(action)
    tracking.watch(checker)
    try:
        yield
    finally:
        tracking.unwatch(checker)


def follow_setting() -> None:
    """Check for the whole process where ``GRIDSTRIDE_CHECK_STREAM_ORDER`` asks for it."""
    action = config.stream_order_check()
    if action:
        tracking.watch(StreamOrderChecker(action))


def describe(access: Access) -> str:
    """Return what a message says of the memory that is touched."""
    owner = access.owner
    kind = f"{type(owner).__module__.partition('.')[0]}.{type(owner).__name__}"
    shape, dtype = getattr(owner, "shape", None), getattr(owner, "dtype", None)
    details = "" if shape is None else f" of shape {tuple(shape)}, dtype {dtype}"
    return f"{kind}{details}, {access.extent} bytes at {access.address:#x}"


def _message(first: _Use, second: _Use, access: Access) -> str:
    does = "writes" if second.written else "reads"
    did = "writing" if first.written else "reading"
    advice = _CONST if "kernel" in first.what + second.what else ""
    return (
        f"{second.what} ({second.where}) in stream {second.lane.stream:#x} {does} memory that {first.what} "
        f"({first.where}) in stream {first.lane.stream:#x} may still be {did}: {describe(access)}. "
        f"Nothing orders the two: let the second stream wait for an event recorded behind the first "
        f"(second.wait_event(first.record())), or synchronize{advice}"
    )


_CONST = ". If a kernel only reads the memory, declare its parameter const"


def _join(clock: _Clock, other: _Clock) -> None:
    for lane, tick in other.items():
        if tick > clock.get(lane, 0):
            clock[lane] = tick


def _finish(world: _World, clock: _Clock) -> None:
    """Note what the host has waited for, and forget uses that nothing later can meet."""
    _join(world.host, clock)
    for key, touched in list(world.ranges.items()):
        touched.uses = {
            which: use for which, use in touched.uses.items() if use.tick > world.host.get(use.lane, 0)
        }
        if not touched.uses:
            del world.ranges[key]


def _note(world: _World, access: Access, use: _Use) -> None:
    key = access.address, access.address + access.extent
    touched = world.ranges.get(key)
    if touched is None or touched.owner() is None:
        touched = world.ranges[key] = _Range(_while_alive(access.owner))
    touched.uses[use.lane, use.written] = use


def _while_alive(owner: object) -> Callable[[], object]:
    """Return what gives an object as long as the memory lives; where nobody can tell, the owner is kept alive."""
    memory: Any = getattr(owner, "mem", None) or arrays.memory_of(owner)
    if memory is not None:
        with suppress(TypeError):  # from a class of some library that cannot be referred to weakly
            return weakref.ref(memory)
    return lambda: owner


def _caller() -> str:
    """Return file and line of the innermost call from outside the package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
