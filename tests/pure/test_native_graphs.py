"""Graphs launched again in C: by a driver's function and numbers that were read once."""

import ctypes
import gc
import threading
import time
import weakref

import pytest
from fake_target import FakeTarget, make_default

from gridstride import _native, cuda

compiled = pytest.mark.skipif(not _native.is_compiled(), reason="the extension is not built")
Launch = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64)


class DriverTarget(FakeTarget):
    """Launch graphs by a C function, as the CUDA target does.

    Attributes
    ----------
    launched : list of (executable, stream)
    codes : list of int
        What the next launches return; those after them succeed.
    failures : list of int
        The codes that were asked about.
    """

    def __init__(self):
        super().__init__()
        self.launched, self.codes, self.failures = [], [], []
        self.function = Launch(self._launch)
        self.launch_graph = _native.DriverFunction(address(self.function), False, self._fail).call

    def _launch(self, executable, stream):
        self.launched.append((executable, stream))
        return self.codes.pop(0) if self.codes else 0

    def _fail(self, code):
        self.failures.append(code)
        if code == 201:
            return NotImplemented
        raise OSError(code, "the driver failed")


def address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


@pytest.fixture
def driver(monkeypatch):
    target = DriverTarget()
    make_default(monkeypatch, target)
    return target


@pytest.fixture
def graph(driver):
    return captured(cuda.Graph())


def captured(graph):
    stream = cuda.Stream()
    graph.begin_capture(stream)
    graph.end_capture()
    return graph


def launches_of(graph, *streams):
    return [(graph._content.executable, stream.ptr) for stream in streams]


def test_each_launch_goes_to_its_stream(driver, graph):
    one, other, null = cuda.Stream(), cuda.Stream(), cuda.Stream.null
    order = [one, one, other, one, null, null, other, other, one]
    for stream in order:
        assert graph.launch(stream) is None
    assert driver.launched == launches_of(graph, *order)
    assert set(graph._content.streams) == {one.ptr, other.ptr, null.ptr}


def test_without_a_stream_it_goes_to_the_current_one(driver, graph):
    one, other = cuda.Stream(), cuda.Stream()
    graph.launch()
    with one:
        graph.launch()
        graph.launch()
        with other:
            graph.launch(stream=None)
            graph.launch(None)
        graph.launch()
    null = cuda.Stream.null
    assert driver.launched == launches_of(graph, null, one, one, other, other, one)


def test_two_graphs_share_a_stream(driver):
    graphs, stream = [captured(cuda.Graph()), captured(cuda.Graph())], cuda.Stream()
    for which in (0, 1, 1, 0):
        graphs[which].launch(stream)
    assert driver.launched == [(graphs[which]._content.executable, stream.ptr) for which in (0, 1, 1, 0)]


def test_a_graph_recorded_anew_launches_what_is_new(driver, graph):
    stream = cuda.Stream()
    graph.launch(stream)
    first = graph._content.executable
    captured(graph)
    graph.launch(stream)
    graph.launch(stream)
    second = graph._content.executable
    assert first != second
    assert driver.launched == [(first, stream.ptr), (second, stream.ptr), (second, stream.ptr)]
    graph.begin_capture(stream)
    with pytest.raises(RuntimeError, match="still recording"):
        graph.launch(stream)
    graph.end_capture()


def test_a_failed_launch_raises_and_the_next_one_goes_on(driver, graph):
    stream = cuda.Stream()
    for _ in range(2):
        driver.codes = [700]
        with pytest.raises(OSError, match="the driver failed"):
            graph.launch(stream)
        graph.launch(stream)
    assert driver.failures == [700, 700]
    assert driver.launched == launches_of(graph, *[stream] * 4)


def test_what_was_missing_is_provided_and_the_launch_made_once_more(driver, graph):
    stream = cuda.Stream()
    graph.launch(stream)
    driver.codes, driver.failures = [201, 0, 201, 700], []
    graph.launch(stream)
    with pytest.raises(OSError, match="the driver failed"):
        graph.launch(stream)
    assert driver.failures == [201, 201, 700]


@compiled
def test_numbers_are_read_anew_where_somebody_changed_what_they_were_read_from(driver, graph):
    stream = cuda.Stream()
    graph.launch(stream)
    handle, executable = stream._handle, graph._content.executable
    stream._handle, graph._content.executable = 1 << 40, 1 << 41
    graph.launch(stream)
    assert driver.launched[-1] == (1 << 41, 1 << 40)
    del graph._content.executable
    with pytest.raises(AttributeError):
        graph.launch(stream)
    graph._content.executable, stream._handle = executable, handle
    content, graph._content = graph._content, "none"
    with pytest.raises(AttributeError):
        graph.launch(stream)
    graph._content = content


@compiled
def test_the_method_belongs_to_the_class_and_not_to_the_record():
    """The interpreter calls it without a detour only on objects of its own class."""
    for kind, name in ((cuda.Graph, "launch"), (cuda.Event, "record"), (cuda.MemoryPool, "malloc")):
        method = vars(kind)[name]
        assert method.__objclass__ is kind
        assert method.__qualname__ == f"{kind.__name__}.{name}"
        assert method.__doc__ == _native.definition_of(method.__qualname__).__doc__


@compiled
def test_a_shortcut_is_for_objects_of_its_record():
    definition = _native.definition_of("Graph.launch")
    with pytest.raises((TypeError, RuntimeError)) as raised:  # RuntimeError until Python 3.12
        type("Other", (), {"launch": _native.shortcut(definition)})
    assert "Graph.launch" in str(raised.value) + str(raised.value.__cause__)


def test_derived_classes_launch(driver):
    class Derived(cuda.Graph):
        def launch(self, stream=None):
            told.append(stream)
            super().launch(stream)

    class Plain(cuda.Graph):
        pass

    told, stream = [], cuda.Stream()
    for graph in (captured(Derived()), captured(Plain())):
        graph.launch(stream)
        graph.launch(stream)
        assert driver.launched[-2:] == launches_of(graph, stream, stream)
    assert told == [stream, stream]


def test_a_graph_lets_go_of_what_it_remembers(driver):
    graph, stream = captured(cuda.Graph()), cuda.Stream()
    graph.launch(stream)
    graph.launch(stream)
    gone = weakref.ref(stream), weakref.ref(graph._content)
    del graph, stream
    gc.collect()
    assert [each() for each in gone] == [None, None]


class TimeSpec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def test_a_launch_that_waits_lets_other_threads_run(driver, monkeypatch):
    """A driver whose queue is full waits for work, and that may wait for a function of Python."""
    libc = ctypes.CDLL(None)
    semaphore = ctypes.create_string_buffer(64)
    deadline = TimeSpec(int(time.time()) + 60, 0)
    assert libc.sem_init(semaphore, 0, 0) == 0
    wait = _native.DriverFunction(address(libc.sem_timedwait), False, driver._fail).call
    monkeypatch.setattr(driver, "instantiate", lambda graph: ctypes.addressof(semaphore))
    monkeypatch.setattr(driver, "create_stream", lambda non_blocking: ctypes.addressof(deadline))
    monkeypatch.setattr(driver, "launch_graph", wait)
    graph = captured(cuda.Graph())
    stream = cuda.Stream()
    for _ in range(3):
        is_launching, posted = threading.Event(), []

        def post(is_launching=is_launching, posted=posted):
            is_launching.wait()
            posted.append(libc.sem_post(semaphore))

        thread = threading.Thread(target=post)
        thread.start()
        is_launching.set()
        graph.launch(stream)
        thread.join()
        assert posted == [0]


def test_threads_launch_one_graph_while_it_is_recorded_anew(driver, graph):
    streams, failures = [cuda.Stream() for _ in range(3)], []

    def use(stream):
        try:
            for _ in range(300):
                graph.launch(stream)
        except BaseException as error:
            failures.append(error)

    def renew():
        try:
            for _ in range(30):
                graph._take(fresh_capture())
        except BaseException as error:
            failures.append(error)

    def fresh_capture():
        other = cuda.Graph()
        other.begin_capture(cuda.Stream())
        capture, other._capture = other._capture, None
        return capture

    threads = [threading.Thread(target=use, args=(stream,)) for stream in streams]
    threads.append(threading.Thread(target=renew))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(driver.launched) == 900
