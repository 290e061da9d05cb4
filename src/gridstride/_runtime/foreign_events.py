"""Events where a stream of ours takes them: our own, CuPy's and PyTorch's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gridstride import _native, arrays
from gridstride._runtime import tracking
from gridstride._runtime.current import on_device
from gridstride._runtime.device import require_target
from gridstride.targets.base import Target

if TYPE_CHECKING:
    from gridstride._runtime.stream import BaseStream

#: Where the events of a library keep their handles, which are 0 before the first recording.
_HANDLES = {"cupy": "ptr", "torch": "cuda_event"}


def record_in(event: Any, stream: BaseStream) -> None:
    """Record an event in a stream; one of a library by the library, which makes it only then."""
    if isinstance(event, _native.EventRecord):
        event.record(stream)  # type: ignore[attr-defined]
        return
    adapter = arrays.adapter_of(_library_of(event, stream.target))
    switch = None if adapter is None else adapter.stream_switch()
    assert switch is not None
    with on_device(stream.target, stream.device_id):
        event.record(switch.of(stream.ptr, stream.device_id))


def let_wait(target: Target, device: int, stream: int, event: Any) -> None:
    """Let a stream of a target wait for an event; for one that was never recorded there is nothing to wait for."""
    if isinstance(event, _native.EventRecord):
        require_target("the event", event.target, target)  # type: ignore[attr-defined]
        tracking.wait_event(target, device, stream, event.ptr)  # type: ignore[attr-defined]
        return
    handle = int(getattr(event, _HANDLES[_library_of(event, target)]) or 0)
    if handle:
        with on_device(target, device):
            tracking.wait_foreign_event(target, device, stream, handle)


def _library_of(event: Any, target: Target) -> str:
    kind = type(event)
    library = kind.__module__.partition(".")[0]
    if library not in _HANDLES or not any(base.__name__ == "Event" for base in kind.__mro__):
        raise TypeError(f"event must be a gridstride, CuPy or PyTorch event, got {kind.__name__}")
    adapter = arrays.adapter_of(library)
    if adapter is None or adapter.stream_device_type not in target.device_types:
        raise TypeError(f"a {library} event is of CUDA, and the call runs on target {target.name!r}")
    return library
