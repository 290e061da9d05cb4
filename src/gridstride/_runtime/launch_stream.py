"""Which stream a launch goes to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gridstride import arrays
from gridstride._runtime import keeping, tracking
from gridstride._runtime.current import current_stream, on_device
from gridstride._runtime.stream import stream_handle
from gridstride.arrays import HOST, ArrayView
from gridstride.targets.base import EventFlags, Target


def resolve_stream(views: Iterable[ArrayView | None], stream: Any, target: Target, device: int) -> int:
    """Return the raw handle of the stream for a launch, ordered behind streams that the arrays announce.

    It is the `stream` argument; else the current stream of the library the arrays belong to; else ours.

    Parameters
    ----------
    views : iterable of ArrayView or None
        Of the arguments.
    stream : object or None
        What the caller passed; see `stream_handle`.
    target : Target
    device : int
        Where the launch runs.

    Raises
    ------
    TypeError
        For something that is no stream, or one of another target.
    ValueError
        Where the libraries' current streams differ and no stream is given.
    """
    placed = [view for view in views if view is not None and view.device_type != HOST]
    handle = _current_handle(placed, target, device) if stream is None else stream_handle(stream, target)
    for view in placed:
        if view.producer_stream is not None and view.producer_stream != handle:
            _order_behind(view.producer_stream, handle, target, device)
    if handle and not keeping.is_needed:
        keeping.begin()
    return handle


def _current_handle(views: list[ArrayView], target: Target, device: int) -> int:
    current = _library_streams(views, device) if views else {}
    handles = set(current.values())
    if len(handles) > 1:
        listing = ", ".join(f"{library}'s is {handle:#x}" for library, handle in current.items())
        raise ValueError(f"the current streams of the arrays' libraries differ ({listing}): pass stream=")
    if handles:
        return handles.pop()
    ours = current_stream(target, device)
    return 0 if ours is None else ours.ptr


def _library_streams(views: list[ArrayView], device: int) -> dict[str, int]:
    current = {}
    for library in {view.library: None for view in views}:
        adapter = arrays.adapter_of(library)
        handle = None if adapter is None else adapter.current_stream(device)
        if handle is not None:
            current[library] = handle
    return current


def _order_behind(producer: int, handle: int, target: Target, device: int) -> None:
    with on_device(target, device):
        event = target.create_event(EventFlags.NO_TIMING)
        try:
            tracking.record_event(target, device, event, producer)
            tracking.wait_event(target, device, handle, event)
        finally:
            target.destroy_event(event)
