"""Streams: ordered queues of work on a device."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from gridstride import _native
from gridstride._runtime import tracking
from gridstride._runtime.capture import capture_in
from gridstride._runtime.current import current_stream, exchange_stream, on_device
from gridstride._runtime.device import require_target
from gridstride._runtime.foreign_events import let_wait, record_in
from gridstride._runtime.foreign_streams import foreign_handle, has_cuda_streams
from gridstride._runtime.library_streams import enter_in_libraries, put_back, use_in_libraries
from gridstride.targets import registry
from gridstride.targets.base import Target

if TYPE_CHECKING:
    from gridstride._runtime.graph import Graph

_DEFAULT_STREAM = 0
_PER_THREAD_STREAM = 2  # CUDA's CU_STREAM_PER_THREAD


class BaseStream(_native.StreamRecord):
    """Hold a raw stream handle of a target's device.

    As a context manager it makes the stream current for the calling thread, also for CuPy and
    PyTorch where they are loaded; leaving puts back what was current on entry. An exception also ends
    a capture of the stream that began inside.
    """

    _owned = False

    target: Target
    _handle: int
    _device: int | None
    _per_thread: bool

    def __init__(self, target: Target, handle: int, device: int | None, *, per_thread: bool = False) -> None:
        self.target = target
        self._handle = handle
        self._device = device
        self._per_thread = per_thread
        self._entries = _native.Entries()

    @_native.shortcut
    def __enter__(self) -> BaseStream:
        target, device = self.target, self.device_id
        switched = enter_in_libraries(target, self.ptr, device)
        previous = exchange_stream(target, device, self)
        self._entries.push((device, previous, capture_in(self), *switched))
        return self

    @_native.shortcut
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        device, previous, outer_capture, *switched = self._entries.pop()
        exchange_stream(self.target, device, previous)
        put_back(self.target, device, tuple(switched))
        capture = capture_in(self) if kind is not None else None
        if capture is not None and capture is not outer_capture:
            capture.abandon()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BaseStream) and self.ptr == other.ptr and self.target is other.target

    def __hash__(self) -> int:
        return hash((self.target.name, self.ptr))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.ptr:#x} of target {self.target.name!r}>"

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return protocol version and handle, so that other libraries take this stream.

        Raises
        ------
        TypeError
            For a stream of a target whose streams are not CUDA's.
        """
        if not has_cuda_streams(self.target):
            raise TypeError(f"{self!r} is no CUDA stream")
        return 0, self.ptr

    def use(self) -> BaseStream:
        """Make the stream the calling thread's current one, until another takes its place."""
        target, device = self.target, self.device_id
        use_in_libraries(target, self.ptr, device)
        exchange_stream(target, device, self)
        return self

    def synchronize(self) -> None:
        """Wait for the stream's work; raise `CUDAError` for what failed."""
        device = self.device_id
        with on_device(self.target, device):
            tracking.synchronize_stream(self.target, device, self.ptr)

    def add_callback(self, callback: Callable[[BaseStream, int, Any], object], arg: Any) -> None:
        """Call ``callback(stream, 0, arg)`` when the work issued so far is complete.

        Parameters
        ----------
        callback : callable
            It must not wait for streams or issue work on a GPU. What it raises goes to
            ``sys.unraisablehook``.
        arg : object
        """
        self.launch_host_func(_Callback(self, _checked_callback(callback)), arg)

    def launch_host_func(self, callback: Callable[[Any], object], arg: Any) -> None:
        """Call ``callback(arg)`` when the work issued so far is complete; later work waits for it.

        Parameters
        ----------
        callback : callable
            It must not wait for streams or issue work on a GPU. What it raises goes to
            ``sys.unraisablehook``.
        arg : object
        """
        _checked_callback(callback)
        device = self.device_id

        def call() -> None:
            callback(arg)

        with on_device(self.target, device):
            tracking.launch_host_function(self.target, device, self.ptr, call)

    def begin_capture(self) -> None:
        """Record what is issued from now on instead of running it; see `Graph`."""
        from gridstride._runtime import graph

        graph.begin_capture(self)

    def end_capture(self) -> Graph:
        """Return the graph of what was issued since `begin_capture`.

        Raises
        ------
        CUDAError
            Where a call was not allowed during the capture or a stream was not joined; it has ended then too.
        RuntimeError
            Where no capture goes on.
        """
        from gridstride._runtime import graph

        return graph.end_capture(self)

    def is_capturing(self) -> bool:
        """Return whether the stream takes part in a capture."""
        with on_device(self.target, self.device_id):
            return self.target.capture_of(self.ptr) != 0

    def record(self, event: Any = None) -> Any:
        """Record an event behind the work issued so far.

        Parameters
        ----------
        event : Event, CuPy or PyTorch event, optional
            A new one by default.

        Returns
        -------
        Event, CuPy or PyTorch event
            The one that was recorded.
        """
        if event is None:
            from gridstride._runtime.event import Event

            with on_device(self.target, self.device_id):
                event = Event(target=self.target)
        record_in(event, self)
        return event

    @_native.shortcut
    def wait_event(self, event: Any) -> None:
        """Let work issued from now on wait for an event; the caller does not wait.

        Parameters
        ----------
        event : Event, CuPy or PyTorch event

        Raises
        ------
        TypeError
            For anything else, and for an event of another target.
        """
        target, device = self.target, self._device
        if device is None:
            device = target.current_device()
        let_wait(target, device, self.ptr, event)

    def runs_on(self, device: int) -> bool:
        """Return whether the stream can run work of a device: its own, or any for a default stream."""
        return self._device is None or self._device == device

    @property
    def ptr(self) -> int:
        """The raw handle."""
        return self._handle

    @property
    def device_id(self) -> int:
        """Index of the stream's device; of the current device for default streams."""
        return self.target.current_device() if self._device is None else self._device

    @property
    def done(self) -> bool:
        """Whether all work issued so far is complete."""
        device = self.device_id
        with on_device(self.target, device):
            return tracking.stream_done(self.target, device, self.ptr)


class Stream(BaseStream):
    """Make a stream on the current device of the default target.

    Parameters
    ----------
    null : bool
        Stand for the default stream instead.
    non_blocking : bool
        Do not order the stream against the default stream.
    ptds : bool
        Stand for the calling thread's own default stream instead.
    target : Target, optional
        The default target unless given.

    Attributes
    ----------
    null, ptds : Stream
        The default stream, and the per-thread default stream, of the default target.
    """

    null: _DefaultStream
    ptds: _DefaultStream

    def __init__(
        self,
        null: bool = False,
        non_blocking: bool = False,
        ptds: bool = False,
        *,
        target: Target | None = None,
    ) -> None:
        if null and ptds:
            raise ValueError("a stream is the default stream (null) or the per-thread one (ptds), not both")
        target = registry.default() if target is None else target
        if null or ptds:
            super().__init__(target, _DEFAULT_STREAM, None, per_thread=ptds)
        else:
            device = target.current_device()
            super().__init__(target, tracking.create_stream(target, device, non_blocking), device)
            self._owned = True

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if self._owned and not finalizing():
            self._owned = False
            tracking.destroy_stream(self.target, self.device_id, self._handle)

    @property
    def ptr(self) -> int:
        """The raw handle; for the per-thread default stream, of the calling thread."""
        return _per_thread_handle(self.target) if self._per_thread else self._handle


class ExternalStream(BaseStream):
    """Use a stream that somebody else made and keeps.

    Parameters
    ----------
    ptr : int
        Its raw handle.
    device_id : int, optional
        Its device; the current device by default.
    target : Target, optional
        The default target unless given.
    """

    def __init__(self, ptr: int, device_id: int = -1, *, target: Target | None = None) -> None:
        target = registry.default() if target is None else target
        super().__init__(target, int(ptr), target.current_device() if device_id < 0 else device_id)


def _checked_callback(callback: Callable[..., object]) -> Callable[..., object]:
    if not callable(callback):
        raise TypeError(f"callback must be callable, got {type(callback).__name__}")
    return callback


class _Callback:
    """Call back as CUDA's stream callbacks do, with the stream as first argument."""

    def __init__(self, stream: BaseStream, callback: Callable[[BaseStream, int, Any], object]) -> None:
        self._stream = stream
        self._callback = callback

    def __call__(self, arg: Any) -> None:
        self._callback(self._stream, 0, arg)


class _DefaultStream(dict[Target, Stream]):
    """Hold a default stream of each target; as an attribute of a class it is the default target's."""

    def __init__(self, per_thread: bool) -> None:
        self._per_thread = per_thread

    def __missing__(self, target: Target) -> Stream:
        made = Stream(null=not self._per_thread, ptds=self._per_thread, target=target)
        return self.setdefault(target, made)

    def __get__(self, instance: object, owner: type) -> Stream:
        return self[registry.default()]


_null, _ptds = _DefaultStream(per_thread=False), _DefaultStream(per_thread=True)
_native.know_null_streams(_null)
Stream.null = _null
Stream.ptds = _ptds


@_native.shortcut
def get_current_stream(device_id: int | None = None, *, target: Target | None = None) -> BaseStream:
    """Return the calling thread's current stream.

    Parameters
    ----------
    device_id : int, optional
        The current device by default.
    target : Target, optional
        The default target unless given.
    """
    target = registry.default() if target is None else target
    return current_stream(target, device_id) or _null[target]


def stream_handle(stream: Any, target: Target) -> int:
    """Return the raw handle of anything that stands for a stream of a target.

    Parameters
    ----------
    stream : Stream, ExternalStream, int, CuPy or PyTorch stream, or an object with ``__cuda_stream__``
    target : Target
        What the handle is for.

    Raises
    ------
    TypeError
        For anything else, and for a stream of another target.
    """
    if isinstance(stream, BaseStream):
        if stream.target is not target:
            require_target("the stream", stream.target, target)
        return stream.ptr
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    handle = foreign_handle(stream)
    if handle is None:
        raise TypeError(
            f"stream must be a gridstride, CuPy or PyTorch stream, an object with __cuda_stream__ or a raw "
            f"handle, got {type(stream).__name__}"
        )
    if not has_cuda_streams(target):
        raise TypeError(
            f"a {type(stream).__name__} is a CUDA stream, and the call runs on target {target.name!r}"
        )
    return handle


class _ThreadStreams(threading.local):
    def __init__(self) -> None:
        self.by_device: dict[tuple[Target, int], Stream] = {}


_thread_streams = _ThreadStreams()


def _per_thread_handle(target: Target) -> int:
    """Return the handle of the calling thread's default stream; a target without the notion gets one stream a
    thread and device."""
    if has_cuda_streams(target):
        return _PER_THREAD_STREAM
    key = target, target.current_device()
    stream = _thread_streams.by_device.get(key)
    if stream is None:
        stream = _thread_streams.by_device[key] = Stream(target=target)
    return stream.ptr
