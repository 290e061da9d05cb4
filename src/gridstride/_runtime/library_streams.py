"""The current streams of array libraries, which follow ours."""

from __future__ import annotations

from typing import Any

from gridstride import _native, arrays
from gridstride._runtime.current import on_device
from gridstride.targets.base import Target

#: What puts back the current streams of libraries: functions, each followed by what it is called with.
Switched = tuple[Any, ...]


def switch_libraries(target: Target, handle: int, device: int) -> Switched:
    """Make a stream current for the loaded libraries whose streams the target has.

    Returns
    -------
    Switched
        For `put_back`. Where a library refuses, none is switched.
    """
    switches = _switches_of(target)
    if not switches:
        return ()
    switched: list[Any] = []
    try:
        with on_device(target, device):
            for switch in switches:
                before = switch.current(device)
                switch.use(switch.of(handle, device))
                switched += switch.use, before
    except BaseException:
        put_back(target, device, tuple(switched))
        raise
    return tuple(switched)


def put_back(target: Target, device: int, switched: Switched) -> None:
    """Make the streams current again that were so before `switch_libraries`."""
    if switched:
        with on_device(target, device):
            for use, before in reversed([*zip(switched[::2], switched[1::2], strict=True)]):
                use(before)


def _switches_of(target: Target) -> tuple[arrays.StreamSwitch, ...]:
    return arrays.stream_switches(target.device_types)


_native.follow_libraries(arrays.LIBRARIES_WITH_STREAMS, _switches_of)
