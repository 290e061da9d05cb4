"""Graphs: work recorded once and launched many times."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from gridstride import _native
from gridstride._runtime import keeping, tracking
from gridstride._runtime.capture import Capture, capture_in
from gridstride._runtime.current import on_device
from gridstride._runtime.stream import BaseStream, ExternalStream, Stream, get_current_stream, stream_handle
from gridstride.targets import registry
from gridstride.targets.base import Access, Target


class Graph(_native.GraphRecord):
    """Record the work of a stream, and launch it again as a whole.

    Between `begin_capture` and `end_capture` nothing runs: kernels, copies, fills, host functions and
    launches of other graphs are recorded, in the stream and in every stream that waits for its events.
    The graph keeps all memory alive that they touch.

    As a context manager it captures the current stream; where that is the default stream, which
    cannot be captured, it captures one of its own, which it makes current. An exception inside ends
    the capture, and the graph stays what it was.

    Parameters
    ----------
    target : Target, optional
        The default target unless given.

    Notes
    -----
    On the CPU target what NumPy does by itself is not recorded: it runs at once.

    Examples
    --------
    >>> import gridstride as gs
    >>> memory = gs.cuda.alloc(4)
    >>> with gs.cuda.Graph() as graph:
    ...     memory.memset_async(7)
    >>> graph.launch()
    >>> gs.cuda.synchronize()
    >>> gs.asnumpy(memory)
    array([7, 7, 7, 7], dtype=uint8)
    """

    target: Target
    _content: _Content | None
    _capture: Capture | None

    def __init__(self, *, target: Target | None = None) -> None:
        self._content = self._capture = None
        self.target = registry.default() if target is None else target
        self._blocks: list[BaseStream] = []

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not finalizing():
            capture = getattr(self, "_capture", None)
            if capture is not None:
                capture.abandon()
            self._let_go()

    def __enter__(self) -> Graph:
        stream = get_current_stream(target=self.target)
        if stream == Stream(null=True, target=self.target):
            stream = Stream(non_blocking=True, target=self.target)
        stream.__enter__()
        try:
            self.begin_capture(stream)
        except BaseException:
            stream.__exit__(None, None, None)
            raise
        self._blocks.append(stream)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        stream = self._blocks.pop()
        try:
            if self._capture is not None and kind is not None:
                self._capture.abandon()
                self._capture = None
            elif self._capture is not None:
                self.end_capture(stream)
        finally:
            stream.__exit__(None, None, None)

    def __repr__(self) -> str:
        state = "capturing" if self._is_capturing else "empty" if self._content is None else "ready"
        return f"<Graph, {state}, of target {self.target.name!r}>"

    def begin_capture(self, stream: Any = None) -> None:
        """Record what is issued to a stream from now on.

        Parameters
        ----------
        stream : Stream, int, CuPy or PyTorch stream, optional
            The current stream by default.

        Raises
        ------
        CUDAError
            For the default stream, and for one that is being captured.
        RuntimeError
            Where this graph is recording already.
        """
        if self._is_capturing:
            raise RuntimeError("the graph is recording already: call end_capture() first")
        self._capture = Capture(self._stream(stream))

    def end_capture(self, stream: Any = None) -> None:
        """End the recording; what the graph held before is replaced.

        Parameters
        ----------
        stream : Stream, int, CuPy or PyTorch stream, optional
            The stream in which the capture began; only checked.

        Raises
        ------
        CUDAError
            Where a call was not allowed during the capture or a stream was not joined. The capture has
            ended then too, and the graph stays what it was.
        ValueError
            For another stream.
        RuntimeError
            Where nothing is being recorded.
        """
        capture = self._capture
        if capture is None or not capture.is_active:
            self._capture = None
            raise RuntimeError("the graph is not recording: call begin_capture() first")
        if stream is not None and stream_handle(stream, self.target) != capture.stream.ptr:
            raise ValueError(f"the capture began in {capture.stream!r} and ends there")
        self._capture = None
        self._take(capture)

    @_native.shortcut
    def launch(self, stream: Any = None) -> None:
        """Run what was recorded, in the order of a stream.

        Parameters
        ----------
        stream : Stream, int, CuPy or PyTorch stream, optional
            The current stream by default.

        Raises
        ------
        RuntimeError
            Where nothing was recorded yet.
        """
        content, target = self._recorded(), self.target
        if stream is None:
            stream = get_current_stream(target=target)
        handle = stream_handle(stream, target)
        tracking.launch_graph(target, content.device, content.executable, handle, content.accesses)
        content.streams[handle] = stream

    def upload(self, stream: Any = None) -> None:
        """Prepare the next launch, so that it takes less time.

        Parameters
        ----------
        stream : Stream, int, CuPy or PyTorch stream, optional
            The current stream by default.
        """
        content = self._recorded()
        with on_device(self.target, content.device):
            self.target.upload_graph(content.executable, self._stream(stream).ptr)

    def debug_dot_str(self) -> str:
        """Return a picture of the graph in the DOT language."""
        return self.target.graph_dot(self._recorded().graph)

    def debug_dot_print(self, path: str | Path) -> None:
        """Write a picture of the graph in the DOT language to a file."""
        Path(path).write_text(self.debug_dot_str())

    @property
    def _is_capturing(self) -> bool:
        return self._capture is not None and self._capture.is_active

    def _stream(self, stream: Any) -> BaseStream:
        if isinstance(stream, BaseStream):
            stream_handle(stream, self.target)  # refuses one of another target
            return stream
        if stream is None:
            return get_current_stream(target=self.target)
        return ExternalStream(stream_handle(stream, self.target), target=self.target)

    def _take(self, capture: Capture) -> None:
        graph = capture.end()
        try:
            with on_device(self.target, capture.device):
                content = _Content(capture, graph)
        except BaseException:
            self.target.destroy_graph(graph)
            raise
        self._let_go()
        self._content = content

    def _recorded(self) -> _Content:
        if self._capture is not None and self._capture.is_active:
            raise RuntimeError("the graph is still recording: call end_capture() first")
        content = self._content
        if content is None:
            raise RuntimeError("the graph is empty: record something with begin_capture() and end_capture()")
        return content

    def _let_go(self) -> None:
        """Give the content up; where launches may still be under way, later."""
        content, self._content = getattr(self, "_content", None), None
        if content is not None and content.streams and "asynchronous" in self.target.features:
            keeping.hold(self.target, content.device, list(content.streams), content)


class _Content(_native.ContentRecord):
    """Own a graph, its executable and all they refer to."""

    def __init__(self, capture: Capture, graph: int) -> None:
        self.target = capture.target
        self.device = capture.device
        self.graph = graph
        self.kept = capture.kept
        touched = {(each.address, each.extent, each.written): each for each in capture.accesses}
        #: The last one stands for the graph itself, so that a graph that launches it keeps it alive.
        self.accesses: tuple[Access, ...] = (*touched.values(), Access(self.kept, 0, 0, written=False))
        #: Where it was launched; kept, because the work may be waited for there.
        self.streams: dict[int, Any] = {}
        self.executable = self.target.instantiate(graph)

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not finalizing() and hasattr(self, "executable"):
            self.target.destroy_executable(self.executable)
            self.target.destroy_graph(self.graph)


def begin_capture(stream: BaseStream) -> None:
    """Begin a capture that `end_capture` ends."""
    Capture(stream)


def end_capture(stream: BaseStream) -> Graph:
    """End the capture that began in a stream and return its graph.

    Raises
    ------
    RuntimeError
        Where none goes on.
    """
    capture = capture_in(stream)
    if capture is None:
        raise RuntimeError(f"{stream!r} is not being captured: call begin_capture() first")
    graph = Graph(target=stream.target)
    graph._take(capture)
    return graph
