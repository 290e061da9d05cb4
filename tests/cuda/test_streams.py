"""Graphs, callbacks, and what lives until streams are done, over the recording stub of the driver."""

import ctypes
import gc
import sys
import weakref

import fake_cupy
import numpy as np
import pytest

from gridstride import _native
from gridstride._runtime import keeping, tracking
from gridstride._runtime.capture import at_begin
from gridstride._runtime.device import Device
from gridstride._runtime.graph import Graph
from gridstride._runtime.memory import Memory
from gridstride._runtime.order import check_stream_order
from gridstride._runtime.pointer import MemoryPointer
from gridstride._runtime.stream import Stream
from gridstride.errors import CUDAError, StreamOrderError
from gridstride.targets.base import Access

THREAD_LOCAL, RELAXED = 1, 2


@pytest.fixture
def stream(cuda):
    return Stream(target=cuda)


def memory(cuda, value, size=8):
    pointer = MemoryPointer(Memory(size, target=cuda), 0)
    pointer.memset(value)
    return pointer


def first_byte(pointer):
    out = np.empty(pointer.size, np.uint8)
    pointer.copy_to_host(out)
    return out[0]


def test_a_graph_is_captured_instantiated_and_launched(cuda, stub, stream):
    pointer, graph = memory(cuda, 1), Graph(target=cuda)
    graph.begin_capture(stream)
    pointer.memset_async(2, stream=stream)
    graph.end_capture(stream)
    assert first_byte(pointer) == 1
    graph.upload(stream)
    graph.launch(stream)
    assert first_byte(pointer) == 2
    (begun,) = stub.calls("cuStreamBeginCapture_v2")
    assert (begun["stream"], begun["mode"]) == (stream.ptr, THREAD_LOCAL)
    (launched,) = stub.calls("cuGraphLaunch")
    assert launched["stream"] == stream.ptr
    assert launched["executable"] == stub.calls("cuGraphUpload")[0]["executable"]
    assert graph.debug_dot_str().startswith("digraph stub { /* 1 nodes")


def test_a_graph_is_destroyed_when_its_launches_are_done(cuda, stub, stream):
    with Graph(target=cuda) as graph:
        pass
    graph.launch(stream)
    stub.clear()
    del graph
    gc.collect()
    keeping.sweep()
    names = [
        name for name in stub.names() if name.startswith(("cuEventRec", "cuEventQ", "cuGraph", "cuGraphExec"))
    ]
    assert names[0] == "cuEventRecord"
    assert names[-2:] == ["cuGraphExecDestroy", "cuGraphDestroy"]
    assert names.index("cuEventQuery") < names.index("cuGraphExecDestroy")


def test_held_objects_wait_for_their_event(cuda, stub, stream):
    class Thing:
        pass

    thing, gone = Thing(), []
    weakref.finalize(thing, gone.append, 1)
    keeping.sweep()
    stub.fail("cuEventQuery", 600)
    keeping.hold(cuda, 0, [stream.ptr], thing)
    del thing
    keeping.sweep()
    assert not gone
    assert keeping.count() == 1
    keeping.sweep()
    assert gone
    assert keeping.count() == 0


def test_every_failing_step_leaves_the_stream_usable(cuda, stub, stream):
    pointer = memory(cuda, 1)
    steps = (
        "cuStreamBeginCapture_v2",
        "cuMemsetD8Async",
        "cuStreamEndCapture",
        "cuGraphInstantiateWithFlags",
    )

    def capture():
        with stream, Graph(target=cuda) as graph:
            pointer.memset_async(2)
        return graph

    before = _native.watchers(0)
    for step in steps:
        stub.fail(step, 700)
        with pytest.raises(CUDAError, match="ILLEGAL_ADDRESS"):
            capture()
        if step == "cuStreamEndCapture":  # the stub's answer alone failed: nothing was ended there
            cuda.driver.cuStreamEndCapture(stream.ptr, ctypes.byref(ctypes.c_void_p()))
        assert not stream.is_capturing()
        assert _native.watchers(0) == before
    capture().launch(stream)
    assert first_byte(pointer) == 2


def test_an_invalidated_capture_ends_with_the_error_of_the_driver(cuda, stream):
    graph = Graph(target=cuda)
    graph.begin_capture(stream)
    with pytest.raises(CUDAError, match="UNSUPPORTED"):
        stream.synchronize()
    assert stream.is_capturing()
    with pytest.raises(CUDAError, match="INVALIDATED"):
        graph.end_capture()
    assert not stream.is_capturing()
    with Graph(target=cuda):
        pass


def test_memory_can_be_allocated_while_the_thread_captures(cuda, stub, stream):
    with stream, Graph(target=cuda):
        stub.clear()
        pointer = MemoryPointer(Memory(16, target=cuda), 0)
        del pointer
        calls = stub.calls("cuThreadExchangeStreamCaptureMode", "cuMemAlloc_v2", "cuMemFree_v2")
    exchange = "cuThreadExchangeStreamCaptureMode"
    assert [call["call"] for call in calls] == [
        *(exchange, "cuMemAlloc_v2", exchange),
        *(exchange, "cuMemFree_v2", exchange),
    ]
    assert calls[0]["mode"] == calls[3]["mode"] == RELAXED
    stub.clear()
    Memory(16, target=cuda)
    assert "cuThreadExchangeStreamCaptureMode" not in stub.names()


def test_what_joins_a_capture_is_called_at_its_begin_and_end(cuda, stream, monkeypatch):
    seen = []

    def begin(capture):
        seen.append(("begin", stream.is_capturing()))
        capture.kept.append("pool")
        return lambda: seen.append(("end", stream.is_capturing()))

    def fail():
        with stream, Graph(target=cuda):
            raise KeyError

    monkeypatch.setattr("gridstride._runtime.capture.at_begin", [begin])
    with stream, Graph(target=cuda) as graph:
        pass
    assert graph._content.kept == ["pool"]
    with pytest.raises(KeyError):
        fail()
    assert seen == [("begin", True), ("end", False)] * 2
    assert begin not in at_begin


def test_host_functions_are_called_with_what_they_were_given(cuda, stub, stream):
    seen = []
    stream.launch_host_func(seen.append, 1)
    stream.add_callback(lambda *call: seen.append(call), 2)
    assert seen == [1, (stream, 0, 2)]
    assert [call["stream"] for call in stub.calls("cuLaunchHostFunc")] == [stream.ptr] * 2
    stub.fail("cuLaunchHostFunc", 700)
    with pytest.raises(CUDAError):
        stream.launch_host_func(seen.append, 3)
    functions = cuda._host_functions
    assert not functions._once


def test_host_functions_of_a_graph_live_as_long_as_it(cuda, stream):
    seen = []
    with stream, Graph(target=cuda) as graph:
        stream.launch_host_func(seen.append, 1)
    graph.launch(stream)
    graph.launch(stream)
    assert seen == [1, 1]
    assert len(cuda._host_functions._captured) == 1
    del graph
    gc.collect()
    keeping.sweep()
    assert not cuda._host_functions._captured

    def fail():
        with stream, Graph(target=cuda):
            stream.launch_host_func(seen.append, 2)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not cuda._host_functions._captured


def test_what_a_callback_raises_is_reported(cuda, stream, monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda failure: reported.append(failure.exc_value))
    stream.launch_host_func({}.__getitem__, "missing")
    assert [type(error) for error in reported] == [KeyError]


def test_copies_between_devices(cuda, stub, stream):
    here = memory(cuda, 1)
    with Device(1, target=cuda):
        there = memory(cuda, 2)
    here.copy_from_device_async(there, stream=stream)
    assert first_byte(here) == 2
    (copied,) = stub.calls("cuMemcpyPeerAsync")
    assert (copied["to"], copied["from"], copied["size"], copied["stream"]) == (0, 1, 8, stream.ptr)
    there.copy_from_device(here)
    (copied,) = stub.calls("cuMemcpyPeer")
    assert (copied["to"], copied["from"]) == (1, 0)


def test_the_order_of_streams_is_checked(cuda, stub):
    pointer = memory(cuda, 1)
    first, second = Stream(target=cuda), Stream(non_blocking=True, target=cuda)
    with check_stream_order():
        pointer.memset_async(1, stream=first)
        stub.clear()
        with pytest.raises(StreamOrderError):
            pointer.memset_async(2, stream=second)
        assert "cuMemsetD8Async" not in stub.names()
        second.wait_event(first.record())
        pointer.memset_async(2, stream=second)
        with pytest.raises(StreamOrderError):
            pointer.memset_async(3, stream=0)


def test_a_graph_launched_into_a_capture_becomes_a_child(cuda, stub, stream):
    pointer, seen = memory(cuda, 1), []
    with stream, Graph(target=cuda) as inner:
        pointer.memset_async(5)
        stream.launch_host_func(seen.append, 1)
    inner.launch(stream)
    inner.launch(stream)
    with stream, Graph(target=cuda) as outer:
        inner.launch(stream)
        inner.launch()
    assert [call["dependencies"] for call in stub.calls("cuGraphAddChildGraphNode")] == [0, 1]
    assert [call["flags"] for call in stub.calls("cuStreamUpdateCaptureDependencies")] == [1, 1]
    assert len(stub.calls("cuGraphLaunch")) == 2
    del inner
    gc.collect()
    outer.launch(stream)
    assert first_byte(pointer) == 5
    assert seen == [1, 1, 1, 1]
    del outer
    gc.collect()
    keeping.sweep()
    assert not cuda._host_functions._captured


def test_branches_of_a_capture_are_checked(cuda, stub):
    pointer = memory(cuda, 1)
    first, second = Stream(target=cuda), Stream(target=cuda)
    graph = Graph(target=cuda)
    with check_stream_order():
        graph.begin_capture(first)
        second.wait_event(first.record())
        pointer.memset_async(2, stream=first)
        with pytest.raises(StreamOrderError):
            pointer.memset_async(3, stream=second)
        graph.end_capture()
    assert not stub.calls("cuStreamGetFlags")  # forbidden in a capture


def test_streams_of_others_are_asked_for_their_flags_outside_of_captures(cuda, stub):
    pointer, other = memory(cuda, 1), memory(cuda, 1)
    external = cuda.driver.new_stream(1)
    graph = Graph(target=cuda)
    with check_stream_order():
        graph.begin_capture(external)
        pointer.memset_async(2, stream=external)
        graph.end_capture()
        assert not stub.calls("cuStreamGetFlags")
        for _ in range(2):
            other.memset_async(2, stream=external)
        with pytest.raises(StreamOrderError):
            other.memset_async(3, stream=0)
    assert len(stub.calls("cuStreamGetFlags")) == 1


def test_arrays_are_followed_whose_memory_refuses_weak_references(cuda, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.make_module())
    first, second = Stream(target=cuda), Stream(non_blocking=True, target=cuda)
    arrays = [fake_cupy.Array(8, np.uint8)]
    address, host = arrays[0].data.ptr, arrays[0]._host

    def view():
        made = fake_cupy.Array(8, np.uint8, arrays[0].data)
        made.base = arrays[0]
        return made

    def fill(array, stream):
        tracking.fill(cuda, 0, Access(array, address, 8, written=True), 1, 8, stream.ptr)

    with pytest.raises(TypeError, match="weak reference"):
        weakref.ref(arrays[0].data.mem)
    with check_stream_order():
        fill(view(), first)
        gc.collect()  # the view is gone, its memory is not
        with pytest.raises(StreamOrderError):
            fill(view(), second)
        keeping.sweep()
        arrays.clear()
        gc.collect()
        fill(memory(cuda, 1), second)  # other memory at the same address
    assert host.tolist() == [1] * 8


class Stubborn:
    mem = object()


def test_owners_that_refuse_weak_references_are_kept_until_the_host_has_waited(cuda):
    owner = Stubborn()
    gone, pointer = [], memory(cuda, 1)
    weakref.finalize(owner, gone.append, 1)
    stream = Stream(non_blocking=True, target=cuda)
    with check_stream_order():
        tracking.fill(cuda, 0, Access(owner, pointer.ptr, 8, written=True), 1, 8, stream.ptr)
        del owner
        gc.collect()
        keeping.sweep()
        assert not gone
        stream.synchronize()
        gc.collect()
        assert gone
