"""Objects kept alive until the work that uses them is complete.

A library gives freed memory out again in the order of the stream it was made for. Where another
stream still works on it, somebody has to hold it until then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from gridstride import _forks, _native
from gridstride._runtime.current import on_device
from gridstride.targets.base import EventFlags, Target

#: Whether more than one stream is in use.
is_needed = False

_SWEEP_AT = 4
_lock = _forks.RLock()


class _Held(NamedTuple):
    event: int
    what: object


#: By target, device and stream, in the order in which the work is complete.
_held: dict[tuple[Target, int, int], deque[_Held]] = {}
#: Events to use again.
_idle: dict[tuple[Target, int], list[int]] = {}


def begin() -> None:
    """Keep what is launched from now on until it is done, as there is more than one stream."""
    global is_needed
    if not is_needed:
        is_needed = True
        _native.set_keeper(keep)


def keep(target: Target, device: int, stream: int, used: tuple[object, ...]) -> None:
    """Keep what was just issued to a stream until it is done; in a capture the graph keeps it."""
    if "asynchronous" not in target.features or target.capture_of(stream):
        return
    with _lock:
        queue = _held.get((target, device, stream))
        if queue and _are_same(queue[-1].what, used):
            with on_device(target, device):
                target.record_event(queue[-1].event, stream)
            return
    hold(target, device, (stream,), used)


def hold(target: Target, device: int, streams: Sequence[int], what: object) -> None:
    """Keep an object until all work issued so far to some streams of a device is complete."""
    is_long = False
    with on_device(target, device), _lock:
        for stream in streams:
            idle = _idle.setdefault((target, device), [])
            event = idle.pop() if idle else target.create_event(EventFlags.NO_TIMING)
            target.record_event(event, stream)
            queue = _held.setdefault((target, device, stream), deque())
            queue.append(_Held(event, what))
            is_long = len(queue) >= _SWEEP_AT
    if is_long:
        sweep()


def sweep() -> None:
    """Let go of what is no longer needed."""
    if not _held:
        return
    released = []  # objects go after the lock: what they free may come here again
    with _lock:
        for (target, device, stream), queue in list(_held.items()):
            while queue and target.event_done(queue[0].event):
                held = queue.popleft()
                _idle[target, device].append(held.event)
                released.append(held.what)
            if not queue:
                del _held[target, device, stream]
    del released


def count() -> int:
    """Return how many objects are held."""
    with _lock:
        return sum(map(len, _held.values()))


def _are_same(what: object, used: tuple[object, ...]) -> bool:
    return (
        type(what) is tuple
        and len(what) == len(used)
        and all(one is other for one, other in zip(what, used, strict=True))
    )
