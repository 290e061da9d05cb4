"""Streams in capture, graphs and callbacks on each target, compared with NumPy."""

import gc
import re
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import gridstride as gs
from gridstride import cuda
from gridstride._runtime import keeping
from gridstride.errors import CUDAError

pytestmark = pytest.mark.usefixtures("each_way")

ADD = gs.RawKernel(
    r"""extern "C" __global__ void add(float* x, const float* y, int n) {
        int i = blockDim.x * blockIdx.x + threadIdx.x;
        if (i < n) x[i] += y[i];
    }""",
    "add",
)
N = 1000
LAUNCH = (8,), (128,)


@pytest.fixture
def stream(target):
    return cuda.Stream()


def filled(value, size=8):
    pointer = cuda.alloc(size)
    pointer.memset(value)
    return pointer


def content(pointer):
    out = np.empty(pointer.size, np.uint8)
    pointer.copy_to_host(out)
    return out.tolist()


def test_a_graph_runs_when_it_is_launched_and_as_often(target, xp, stream):
    x, y = xp.zeros(N, "f4"), xp.arange(N, dtype="f4")
    cuda.synchronize()
    graph = cuda.Graph()
    with stream:
        graph.begin_capture(stream)
        ADD(*LAUNCH, (x, y, N))
        ADD(*LAUNCH, (x, y, N))
        graph.end_capture(stream)
        assert not gs.asnumpy(x).any()
        for _ in range(3):
            graph.launch()
    graph.upload(stream)
    graph.launch(stream)
    stream.synchronize()
    np.testing.assert_array_equal(gs.asnumpy(x), 8 * np.arange(N, dtype="f4"))


def test_copies_and_fills_are_recorded(target, stream):
    source, middle, end = filled(1), filled(2), filled(3)
    with stream:
        stream.begin_capture()
        middle.copy_from_device_async(source)
        end.copy_from_device_async(middle)
        source.memset_async(4)
        assert stream.is_capturing()
        graph = stream.end_capture()
    assert not stream.is_capturing()
    assert [content(p)[0] for p in (source, middle, end)] == [1, 2, 3]
    graph.launch(stream)
    stream.synchronize()
    assert [content(p)[0] for p in (source, middle, end)] == [4, 1, 1]
    graph.launch(stream)
    stream.synchronize()
    assert [content(p)[0] for p in (source, middle, end)] == [4, 4, 4]


def test_a_block_captures_a_stream_of_its_own(target, stream):
    pointer = filled(1)
    with cuda.Graph() as graph:
        pointer.memset_async(2)
    assert cuda.get_current_stream() == cuda.Stream.null
    with stream, graph:
        pointer.memset_async(3)
    assert content(pointer)[0] == 1
    graph.launch(stream)
    stream.synchronize()
    assert content(pointer)[0] == 3


def test_streams_joined_by_events_take_part(target, stream):
    other, fork, join = cuda.Stream(), cuda.Event(disable_timing=True), cuda.Event(disable_timing=True)
    first, second = filled(1), filled(2)
    stream.begin_capture()
    fork.record(stream)
    other.wait_event(fork)
    second.memset_async(5, stream=other)
    first.memset_async(6, stream=stream)
    join.record(other)
    stream.wait_event(join)
    first.copy_from_device_async(second, stream=stream)
    assert other.is_capturing()
    graph = stream.end_capture()
    assert not other.is_capturing()
    assert [content(p)[0] for p in (first, second)] == [1, 2]
    graph.launch(stream)
    stream.synchronize()
    assert [content(p)[0] for p in (first, second)] == [5, 5]


def test_p63_an_exception_ends_the_capture_and_is_what_is_seen(target, xp, stream):
    graph, pointer = cuda.Graph(), filled(1)

    def fail_inside(begin):
        with stream:
            begin()
            pointer.memset_async(9)
            raise KeyError("mine")

    for begin in (lambda: graph.begin_capture(stream), stream.begin_capture):
        with pytest.raises(KeyError, match="mine"):
            fail_inside(begin)
        assert not stream.is_capturing()
    with pytest.raises(KeyError, match="mine"), stream, graph:
        raise KeyError("mine")
    assert content(pointer)[0] == 1
    with stream:
        x = xp.ones(N, "f4")
        ADD(*LAUNCH, (x, x, N))
        with graph:
            pointer.memset_async(2)
        graph.launch()
    stream.synchronize()
    assert content(pointer)[0] == 2
    assert gs.asnumpy(x).sum() == 2 * N


def test_a_failed_launch_inside_spoils_nothing(target, xp, stream):
    graph, pointer = cuda.Graph(), filled(1)
    with stream, graph:
        with pytest.raises(TypeError, match="add"):
            ADD(*LAUNCH, (xp.zeros(N), xp.zeros(N), N))
        pointer.memset_async(2)
    graph.launch(stream)
    stream.synchronize()
    assert content(pointer)[0] == 2


def test_waiting_during_a_capture_is_an_error_and_ends_well(target, stream):
    pointer = filled(1)

    def capture_and(wait):
        with stream, cuda.Graph():
            pointer.memset_async(9)
            wait()

    for wait in (stream.synchronize, lambda: stream.done, cuda.synchronize):
        with pytest.raises(CUDAError, match="CAPTURE"):
            capture_and(wait)
        stream.synchronize()

    def wait_and_go_on():
        with pytest.raises(CUDAError, match="UNSUPPORTED"):
            stream.synchronize()

    with pytest.raises(CUDAError, match="INVALIDATED"):
        capture_and(wait_and_go_on)
    assert content(pointer)[0] == 1


def test_p61_reading_during_a_capture_is_an_error(target, stream):
    pointer = filled(1)
    with pytest.raises(CUDAError), stream, cuda.Graph():
        content(pointer)
    assert content(pointer)[0] == 1


def test_p61_each_graph_owns_what_is_allocated_inside(target, xp, stream):
    least = gs.RawKernel(
        """extern "C" __global__ void least(const float* x, float* y, int n) {
            float found = x[0];
            for (int k = 1; k < n; ++k) found = x[k] < found ? x[k] : found;
            *y = found;
        }""",
        "least",
    )
    x, graphs, results = xp.ones(N, "f4"), [], []
    cuda.synchronize()
    for _ in range(2):
        with stream, cuda.Graph() as graph:
            results.append(xp.empty(1, "f4"))
            least(1, 1, (x, results[-1], N))
        graphs.append(graph)
    graphs[0].launch(stream)
    stream.synchronize()
    x[:] = 2
    cuda.synchronize()
    graphs[1].launch(stream)
    stream.synchronize()
    assert [float(gs.asnumpy(result)[0]) for result in results] == [1, 2]


def test_p65_the_graph_keeps_what_it_refers_to(target, stream):
    result = filled(0, 64)
    with stream, cuda.Graph() as graph:
        temporary, source = filled_later(7), np.full(64, 8, np.uint8)
        result.copy_from_device_async(temporary, 32)
        (result + 32).copy_from_host_async(source[:32])
    del temporary, source
    gc.collect()
    others = [filled(99, 64) for _ in range(50)] + [np.full(64, 99, np.uint8) for _ in range(50)]
    for _ in range(2):
        graph.launch(stream)
    stream.synchronize()
    assert content(result) == [7] * 32 + [8] * 32
    del others


def filled_later(value):
    """Memory that the capture itself fills."""
    pointer = cuda.alloc(64)
    pointer.memset_async(value)
    return pointer


def test_a_graph_lets_go_of_its_memory(target, stream):
    memory = cuda.Memory(64)
    freed = []
    weakref.finalize(memory, freed.append, 1)
    with stream, cuda.Graph() as graph:
        cuda.MemoryPointer(memory, 0).memset_async(1)
    del memory
    gc.collect()
    assert not freed
    graph.launch(stream)
    stream.synchronize()
    del graph
    gc.collect()
    cuda.Stream().record().synchronize()
    keeping.sweep()
    assert freed


def test_a_graph_in_a_graph(target, stream):
    pointer, count = filled(1), []
    with stream, cuda.Graph() as inner:
        pointer.memset_async(5)
        stream.launch_host_func(count.append, 1)
    with stream, cuda.Graph() as outer:
        inner.launch()
        inner.launch()
    del inner
    gc.collect()
    outer.launch(stream)
    stream.synchronize()
    assert content(pointer)[0] == 5
    assert count == [1, 1]


def test_a_graph_can_be_recorded_again(target, stream):
    pointer, graph = filled(1), cuda.Graph()
    for value in (2, 3):
        with stream, graph:
            pointer.memset_async(value)
        graph.launch(stream)
        stream.synchronize()
        assert content(pointer)[0] == value


def test_misuse_of_graphs(target, stream):
    graph = cuda.Graph()
    with pytest.raises(RuntimeError, match="empty"):
        graph.launch()
    with pytest.raises(RuntimeError, match="not recording"):
        graph.end_capture()
    with pytest.raises(RuntimeError, match="not being captured"):
        stream.end_capture()
    with pytest.raises(CUDAError, match="UNSUPPORTED"):
        graph.begin_capture(cuda.Stream.null)
    graph.begin_capture(stream)
    with pytest.raises(RuntimeError, match="recording already"):
        graph.begin_capture(cuda.Stream())
    with pytest.raises(CUDAError, match="ILLEGAL_STATE"):
        cuda.Graph().begin_capture(stream)
    with pytest.raises(RuntimeError, match="still recording"):
        graph.launch()
    with pytest.raises(ValueError, match="ends there"):
        graph.end_capture(cuda.Stream())
    assert "capturing" in repr(graph)
    graph.end_capture(stream)
    assert "ready" in repr(graph)


def test_a_capture_ends_with_its_graph_object(target, stream):
    graph = cuda.Graph()
    graph.begin_capture(stream)
    del graph
    gc.collect()
    assert not stream.is_capturing()


def test_the_picture_shows_the_work(target, stream, tmp_path):
    pointer = filled(1)
    with stream, cuda.Graph() as graph:
        pointer.memset_async(2)
        pointer.memset_async(3)
    graph.debug_dot_print(tmp_path / "graph.dot")
    text = (tmp_path / "graph.dot").read_text()
    assert text == graph.debug_dot_str()
    assert text.startswith("digraph")
    assert len(re.findall("->", text)) == 1


def test_callbacks_run_in_stream_order(target, stream):
    seen, pointer, out = [], filled(1), np.zeros(8, np.uint8)
    pointer.copy_to_host_async(out, stream=stream)
    stream.add_callback(lambda *call: seen.append((*call, out[0])), "argument")
    stream.launch_host_func(seen.append, 5)
    stream.synchronize()
    assert seen == [(stream, 0, "argument", 1), 5]


def test_what_a_callback_raises_is_reported(target, stream, monkeypatch):
    reported, after = [], []
    monkeypatch.setattr(sys, "unraisablehook", lambda failure: reported.append(failure.exc_value))
    error = KeyError("in a callback")
    stream.launch_host_func(lambda _: (_ for _ in ()).throw(error), None)
    stream.launch_host_func(after.append, 1)
    stream.synchronize()
    assert reported == [error]
    assert after == [1]


def test_callbacks_in_a_graph_run_at_every_launch(target, stream):
    seen = []
    with stream, cuda.Graph() as graph:
        stream.launch_host_func(seen.append, "again")
    assert seen == []
    for _ in range(3):
        graph.launch(stream)
    stream.synchronize()
    assert seen == ["again"] * 3


@pytest.mark.parametrize("last", ["", "graph.begin_capture(stream)", "stream.begin_capture()", "1 / 0"])
def test_p48_graphs_that_outlive_the_program_go_quietly(target, last):
    program = f"""
from gridstride import cuda
stream, graph, memory = cuda.Stream(), cuda.Graph(), cuda.alloc(8)
with stream, graph:
    memory.memset_async(1)
    stream.launch_host_func(print, "called")
graph.launch(stream)
stream.synchronize()
graph.launch(stream)
{last}
"""
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program], check=False, capture_output=True, text=True
    )
    assert "called" in ended.stdout
    if "/" in last:
        assert ended.stderr.rstrip().endswith("ZeroDivisionError: division by zero")
        assert ended.stderr.count("Error") == 1
    else:
        assert ended.stderr == ""


def test_captures_of_several_threads(target):
    results = {}
    barrier = threading.Barrier(4)

    def work(own):
        pointer, stream = filled(0), cuda.Stream(non_blocking=True)
        barrier.wait(20)
        with stream, cuda.Graph() as graph:
            pointer.memset_async(own)
        barrier.wait(20)
        graph.launch(stream)
        stream.synchronize()
        out = np.empty(8, np.uint8)
        pointer.copy_to_host_async(out, stream=stream)
        stream.synchronize()
        results[own] = out[0]

    threads = [threading.Thread(target=work, args=(own,)) for own in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {own: own for own in range(1, 5)}
