"""Objects kept alive until the work that uses them is complete.

A library gives freed memory out again in the order of the stream it was made for. Where another
stream still works on it, somebody has to hold it until then.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from gridstride._runtime.current import on_device
from gridstride.targets.base import Target

_lock = threading.RLock()


class _Held(NamedTuple):
    event: int
    what: object


#: By target, device and stream, in the order in which the work is complete.
_held: dict[tuple[Target, int, int], deque[_Held]] = {}
#: Events to use again.
_idle: dict[tuple[Target, int], list[int]] = {}


def hold(target: Target, device: int, streams: Sequence[int], what: object) -> None:
    """Keep an object until all work issued so far to some streams of a device is complete."""
    with on_device(target, device), _lock:
        for stream in streams:
            idle = _idle.setdefault((target, device), [])
            event = idle.pop() if idle else target.create_event(timing=False, blocking=False)
            target.record_event(event, stream)
            _held.setdefault((target, device, stream), deque()).append(_Held(event, what))
    sweep()


def sweep() -> None:
    """Let go of what is no longer needed."""
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
