"""Events of CuPy and PyTorch where a stream of ours takes them, and what they know to the stream order checker."""

import sys

import fake_cupy
import pytest
from fake_target import FakeTarget, make_default

from gridstride import cuda
from gridstride.errors import StreamOrderError


class Event:
    """Stands for ``cupy.cuda.Event``, and for ``torch.cuda.Event`` by another module's name."""

    def __init__(self, handle):
        self.ptr = self.cuda_event = handle
        self.recorded = []

    def record(self, stream):
        self.recorded.append(stream)


def event_of(library, handle):
    kind = type("Event", (Event,), {"__module__": f"{library}.cuda"})
    return kind(handle)


@pytest.fixture
def fake(monkeypatch):
    target = FakeTarget()
    make_default(monkeypatch, target)
    return target


@pytest.fixture
def gpu(fake):
    fake.device_types, fake.memory_device_type = frozenset({2, 13}), 2
    fake.array_protocol = "__cuda_array_interface__"
    return fake


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_a_stream_waits_for_an_event_of_a_library(gpu, library):
    stream = cuda.Stream()
    stream.wait_event(event_of(library, 0x77))
    cuda.Stream.null.wait_event(event_of(library, 0x78))
    assert gpu.made("wait_event") == [("wait_event", stream.ptr, 0x77), ("wait_event", 0, 0x78)]


def test_an_event_that_pytorch_has_not_made_yet_is_nothing_to_wait_for(gpu):
    cuda.Stream().wait_event(event_of("torch", 0))
    assert not gpu.made("wait_event")


def test_an_event_of_a_library_is_recorded_by_it_in_its_own_stream(gpu, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.make_module())
    stream, event = cuda.Stream(), event_of("cupy", 5)
    assert stream.record(event) is event
    assert event.recorded[0].ptr == stream.ptr


def test_events_of_libraries_are_of_cuda(fake):
    for use in (cuda.Stream().wait_event, cuda.Stream().record):
        with pytest.raises(TypeError, match="a cupy event is of CUDA, and the call runs on target 'fake'"):
            use(event_of("cupy", 5))


def test_what_is_no_event(gpu):
    stream = cuda.Stream()
    other = type("Stream", (), {"__module__": "cupy.cuda", "ptr": 5})()
    for use in (stream.wait_event, stream.record):
        for wrong in ("event", 5, stream, object(), other):
            with pytest.raises(TypeError, match="must be a gridstride, CuPy or PyTorch event, got"):
                use(wrong)
    for events in ((1, cuda.Event()), (cuda.Event(), event_of("cupy", 5))):
        with pytest.raises(TypeError, match="event must be a gridstride event, got"):
            cuda.get_elapsed_time(*events)


def test_pytorchs_streams_wait_for_our_events(gpu):
    """``torch.cuda.Stream.wait_event(event)`` calls ``event.wait(stream)``."""
    event = cuda.Event()
    theirs = type("Stream", (), {"__module__": "torch.cuda.streams", "cuda_stream": 0x99})()
    event.wait(theirs)
    ours = cuda.Stream()
    with ours:
        event.wait()
    assert gpu.made("wait_event") == [("wait_event", 0x99, event.ptr), ("wait_event", ours.ptr, event.ptr)]


def test_behind_an_event_of_a_library_all_earlier_work_is_known(gpu):
    pointer, first, second = cuda.alloc(8), cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    with cuda.check_stream_order():
        pointer.memset_async(1, stream=first)
        second.wait_event(event_of("cupy", 0x77))
        pointer.memset_async(2, stream=second)
        with pytest.raises(StreamOrderError):
            pointer.memset_async(3, stream=first)
