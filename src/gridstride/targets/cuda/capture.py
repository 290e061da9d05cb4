"""Host functions, captures and graphs through the NVIDIA driver."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from ctypes import POINTER, byref, c_int, c_size_t, c_uint64, c_void_p
from pathlib import Path
from weakref import WeakValueDictionary

from gridstride import _forks
from gridstride.errors import CUDAError
from gridstride.targets.cuda.contexts import ContextCalls
from gridstride.targets.cuda.driver import HOST_FUNCTION, Driver

_THREAD_LOCAL, _RELAXED = 1, 2
_NOT_CAPTURING = 0
_SET_DEPENDENCIES = 1
#: What the driver says of the default stream while a stream that it would wait for is captured.
_CAPTURE_IMPLICIT = 906
#: Show the parameters of kernel, copy, fill and host nodes.
_DOT_FLAGS = 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5


class HostFunctions:
    """Let the driver call Python functions through one C function, which finds them by number.

    A function that runs once is forgotten when it is called; one in a graph lives as long as the
    graph and its executables.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._once: dict[int, Callable[[], None]] = {}
        self._captured: WeakValueDictionary[int, _Captured] = WeakValueDictionary()
        self._of_capture: dict[int, list[_Captured]] = {}
        self._of_graph: dict[int, list[_Captured]] = {}
        self.address = HOST_FUNCTION(self._call)

    def add(self, function: Callable[[], None], capture: int) -> int:
        """Keep a function, issued to a stream in a capture (0: in none); return its number."""
        number = next(self._numbers)
        if capture:
            captured = self._captured[number] = _Captured(function)
            self._of_capture.setdefault(capture, []).append(captured)
        else:
            self._once[number] = function
        return number

    def remove(self, number: int) -> None:
        """Forget a function that the driver did not take."""
        self._once.pop(number, None)

    def end_capture(self, capture: int, graph: int | None) -> None:
        """Let the functions of a capture live with its graph; None: there is none."""
        captured = self._of_capture.pop(capture, [])
        if captured and graph is not None:
            self._of_graph[graph] = captured

    def include(self, graph: int, capture: int) -> None:
        """Let the functions of a graph also live with a capture."""
        if graph in self._of_graph:
            self._of_capture.setdefault(capture, []).extend(self._of_graph[graph])

    def share(self, graph: int, executable: int) -> None:
        """Let the functions of a graph also live with an executable."""
        if graph in self._of_graph:
            self._of_graph[executable] = self._of_graph[graph]

    def release(self, graph: int) -> None:
        """Forget the functions of a graph or executable unless another one has them."""
        self._of_graph.pop(graph, None)

    def _call(self, number: int) -> None:
        function = self._once.pop(number, None) or self._captured[number].function
        function()  # ctypes hands what it raises to sys.unraisablehook


class _Captured:
    """Hold a function for those graphs that call it."""

    __slots__ = ("__weakref__", "function")

    def __init__(self, function: Callable[[], None]) -> None:
        self.function = function


class GraphCalls(ContextCalls):
    """The part of the CUDA target that captures streams and runs graphs."""

    launch_graph: Callable[[int, int], None]

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self.launch_graph = driver.cuGraphLaunch
        self._host_functions = HostFunctions()
        self._captures = 0
        self._graph_of: dict[int, int] = {}
        self._capture_lock = _forks.Lock()

    def launch_host_function(self, stream: int, function: Callable[[], None]) -> None:
        self._ensure_context()
        functions = self._host_functions
        number = functions.add(function, self.capture_of(stream))
        try:
            self.driver.cuLaunchHostFunc(stream, functions.address, number)
        except CUDAError:
            functions.remove(number)
            raise

    def begin_capture(self, stream: int) -> None:
        self._ensure_context()
        self.driver.cuStreamBeginCapture_v2(stream, _THREAD_LOCAL)
        self._count_captures(+1)

    def end_capture(self, stream: int) -> int:
        capture, graph = self.capture_of(stream), c_void_p()
        try:
            self.driver.cuStreamEndCapture(stream, byref(graph))
        finally:
            if capture:
                self._count_captures(-1)
                self._host_functions.end_capture(capture, graph.value)
        return graph.value or 0

    def capture_of(self, stream: int) -> int:
        self._ensure_context()
        status, number = c_int(), c_uint64()
        try:
            self.driver.cuStreamGetCaptureInfo_v2(stream, byref(status), byref(number), None, None, None)
        except CUDAError as error:
            if error.code != _CAPTURE_IMPLICIT:
                raise
            return 0
        if status.value == _NOT_CAPTURING:
            return 0
        return number.value or -1  # a capture that a forbidden call spoiled has no number

    def instantiate(self, graph: int) -> int:
        made = c_void_p()
        self.driver.cuGraphInstantiateWithFlags(byref(made), graph, 0)
        executable = made.value or 0
        self._graph_of[executable] = graph
        self._host_functions.share(graph, executable)
        return executable

    def upload_graph(self, executable: int, stream: int) -> None:
        self._ensure_context()
        self.driver.cuGraphUpload(executable, stream)

    def graph_dot(self, graph: int) -> str:
        with tempfile.TemporaryDirectory(prefix="gridstride-") as folder:
            path = Path(folder) / "graph.dot"
            self.driver.cuGraphDebugDotPrint(graph, str(path).encode(), _DOT_FLAGS)
            return path.read_text(errors="replace")

    def destroy_graph(self, graph: int) -> None:
        self.driver.cuGraphDestroy(graph)
        self._host_functions.release(graph)

    def destroy_executable(self, executable: int) -> None:
        del self._graph_of[executable]
        self.driver.cuGraphExecDestroy(executable)
        self._host_functions.release(executable)

    def _count_captures(self, difference: int) -> None:
        """Let graphs go straight to the driver where none can come into a capture."""
        with self._capture_lock:
            self._captures += difference
            self.launch_graph = self._launch_or_capture if self._captures else self.driver.cuGraphLaunch

    def _launch_or_capture(self, executable: int, stream: int) -> None:
        if self.capture_of(stream):
            self._add_to_capture(self._graph_of[executable], stream)
        else:
            self.driver.cuGraphLaunch(executable, stream)

    def _add_to_capture(self, graph: int, stream: int) -> None:
        """Let a captured stream go on behind a copy of a graph; the driver refuses to launch one there."""
        status, number, captured, node = c_int(), c_uint64(), c_void_p(), c_void_p()
        last, count = POINTER(c_void_p)(), c_size_t()
        self.driver.cuStreamGetCaptureInfo_v2(
            stream, byref(status), byref(number), byref(captured), byref(last), byref(count)
        )
        self.driver.cuGraphAddChildGraphNode(byref(node), captured, last, count, graph)
        self.driver.cuStreamUpdateCaptureDependencies(stream, byref(node), 1, _SET_DEPENDENCIES)
        self._host_functions.include(graph, number.value)

    def _during_captures(self) -> AbstractContextManager[None]:
        """Let the calling thread do, while we capture, what is safe though the driver forbids it then.

        Allocating and loading may wait for other streams, never for the one being captured.
        """
        return self._relaxed() if self._captures else nullcontext()

    @contextmanager
    def _relaxed(self) -> Iterator[None]:
        """As `_during_captures`, also for captures that others began."""
        mode = c_int(_RELAXED)
        self.driver.cuThreadExchangeStreamCaptureMode(byref(mode))
        try:
            yield
        finally:
            self.driver.cuThreadExchangeStreamCaptureMode(byref(mode))

    def _through_captures_on(self, device: int) -> AbstractContextManager[None]:
        """As `_on` and `_during_captures`, in one step where nothing is captured."""
        return self._relaxed_on(device) if self._captures else self._on(device)

    @contextmanager
    def _relaxed_on(self, device: int) -> Iterator[None]:
        with self._on(device), self._relaxed():
            yield
