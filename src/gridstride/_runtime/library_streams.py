"""The current streams of array libraries, which follow ours."""

from __future__ import annotations

from typing import Any

from gridstride import _native, arrays
from gridstride._runtime.current import on_device
from gridstride.targets.base import Target

#: What puts back the current streams of libraries: functions (or None), each followed by what it is called with.
Switched = tuple[Any, ...]


def use_in_libraries(target: Target, handle: int, device: int) -> None:
    """Make a stream current for the loaded libraries whose streams the target has; where one refuses, for none."""
    _switch(target, handle, device, is_block=False)


def enter_in_libraries(target: Target, handle: int, device: int) -> Switched:
    """Do so at the beginning of a block, which ends with `put_back`."""
    return _switch(target, handle, device, is_block=True)


def put_back(target: Target, device: int, switched: Switched) -> None:
    """Make the streams current again that were so before."""
    if switched:
        with on_device(target, device):
            for do, stream in reversed([*zip(switched[::2], switched[1::2], strict=True)]):
                if do is not None:
                    do(stream)


def _switch(target: Target, handle: int, device: int, is_block: bool) -> Switched:
    switches = _switches_of(target)
    if not switches:
        return ()
    switched: list[Any] = []
    try:
        with on_device(target, device):
            for switch in switches:
                before, twin = switch.current(device), switch.of(handle, device)
                (switch.enter if is_block else switch.use)(twin)
                switched += switch.use, before, switch.leave if is_block else None, twin
    except BaseException:
        put_back(target, device, tuple(switched))
        raise
    return tuple(switched)


def _switches_of(target: Target) -> tuple[arrays.StreamSwitch, ...]:
    return arrays.stream_switches(target.device_types)


_native.follow_libraries(arrays.LIBRARIES_WITH_STREAMS, _switches_of)
