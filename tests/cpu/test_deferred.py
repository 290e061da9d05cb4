"""Deferred mode: work runs at calls that synchronize, in an order that a seed decides."""

import gc
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import gridstride as gs
from gridstride import _native, cuda
from gridstride.errors import CUDAError, LaunchError

ADD = gs.RawKernel('extern "C" __global__ void add(int* x, int by) { x[threadIdx.x] += by; }', "add")
FAIL = gs.RawKernel('extern "C" __global__ void fail(int* x) { __trap(); }', "fail")


@pytest.fixture(autouse=True)
def _deferred(monkeypatch):
    monkeypatch.setenv("GRIDSTRIDE_TARGET", "cpu")
    with cuda.asynchronous_cpu(seed=3):
        yield


def zeros():
    return np.zeros(4, np.int32)


def note(stream, seen, what):
    stream.launch_host_func(seen.append, what)


def test_a_kernel_runs_when_its_stream_is_synchronized():
    x, stream = zeros(), cuda.Stream()
    for _ in range(3):  # the compiled fast path must not overtake
        ADD(1, 4, (x, 2), stream=stream)
        ADD(1, 4, (x, 2))
    assert not x.any()
    stream.synchronize()
    assert x.tolist() == [12] * 4


def test_every_call_that_synchronizes_does():
    stream = cuda.Stream()
    for wait in (
        stream.synchronize,
        cuda.synchronize,
        lambda: stream.record().synchronize(),
        lambda: cuda.alloc(4).memset(0),
        lambda: gs.asnumpy(cuda.alloc(4)),
        lambda: cuda.get_elapsed_time(cuda.Stream.null.record(), stream.record()),
    ):
        x = zeros()
        ADD(1, 4, (x, 1), stream=stream)
        assert x[0] == 0
        wait()
        assert x[0] == 1


def test_asnumpy_waits_for_the_current_stream_alone():
    x, y, other = zeros(), zeros(), cuda.Stream(non_blocking=True)
    ADD(1, 4, (x, 1))
    ADD(1, 4, (y, 1), stream=other)
    assert gs.asnumpy(x)[0] == 1
    assert gs.asnumpy(y)[0] == 0


def test_only_what_must_run_runs():
    x, y = zeros(), zeros()
    first, second = cuda.Stream(), cuda.Stream()
    ADD(1, 4, (x, 1), stream=first)
    early = first.record()
    ADD(1, 4, (x, 1), stream=first)
    ADD(1, 4, (y, 1), stream=second)
    early.synchronize()
    assert (x[0], y[0]) == (1, 0)
    first.synchronize()
    assert (x[0], y[0]) == (2, 0)


def test_streams_wait_for_events():
    seen, first, second = [], cuda.Stream(), cuda.Stream()
    note(first, seen, 1)
    event = first.record()
    note(first, seen, "left")
    second.wait_event(event)
    note(second, seen, 2)
    second.synchronize()
    assert seen == [1, 2]


def test_the_default_stream_waits_for_blocking_streams_and_they_for_it():
    seen, blocking, independent = [], cuda.Stream(), cuda.Stream(non_blocking=True)
    note(blocking, seen, "blocking")
    note(independent, seen, "independent")
    note(cuda.Stream.null, seen, "default")
    note(blocking, seen, "later")
    cuda.Stream.null.synchronize()
    assert seen == ["blocking", "default", "later"] or seen == ["blocking", "default"]
    blocking.synchronize()
    assert seen == ["blocking", "default", "later"]
    independent.synchronize()
    assert seen[-1] == "independent"


def orders(seed):
    seen = []
    with cuda.asynchronous_cpu(seed):
        streams = [cuda.Stream(non_blocking=True) for _ in range(4)]
        for step in range(5):
            for number, stream in enumerate(streams):
                note(stream, seen, (number, step))
        cuda.synchronize()
    return seen


def test_the_seed_decides_the_order():
    assert orders(1) == orders(1)
    assert len({tuple(orders(seed)) for seed in range(5)}) > 1
    for number in range(4):
        assert [step for which, step in orders(2) if which == number] == list(range(5))


def test_code_that_forgets_an_event_goes_wrong():
    """Two streams without order: some seed shows each order."""
    results = set()
    for seed in range(10):
        with cuda.asynchronous_cpu(seed):
            x, first, second = zeros(), cuda.Stream(), cuda.Stream()
            memory, one = cuda.alloc(16), np.ones(4, np.int32)
            memory.copy_from_host_async(one, stream=first)
            memory.copy_to_host_async(x, stream=second)
            memory.memset_async(0, stream=cuda.Stream())
            cuda.synchronize()
            results.add(int(x[0]))
    assert len(results) > 1


def test_arrays_live_until_their_work_has_run():
    stream, memory = cuda.Stream(), cuda.alloc(16)
    memory.copy_from_host_async(np.full(4, 9, np.int32), stream=stream)
    x = zeros()
    weak = weakref.ref(x)
    ADD(1, 4, (x, 1), stream=stream)
    del x
    gc.collect()
    assert weak() is not None
    others = [np.full(4, 1, np.int32) for _ in range(100)]
    stream.synchronize()
    gc.collect()
    assert weak() is None
    assert gs.asnumpy(memory).view(np.int32).tolist() == [9] * 4
    del others


def test_p52_memory_is_not_freed_under_a_kernel():
    a, b, out = cuda.Stream(), cuda.Stream(), np.zeros(8, np.uint8)
    memory = cuda.alloc(8)
    with a:
        memory.memset(5)
    memory.copy_to_host_async(out, stream=b)
    del memory
    with a:
        for _ in range(10):
            cuda.alloc(8).memset_async(77)
    a.synchronize()
    b.synchronize()
    assert out.tolist() == [5] * 8


def test_p54_a_copy_to_the_host_fills_the_given_array_later():
    memory, out, stream = cuda.alloc(8), np.zeros(8, np.uint8), cuda.Stream()
    memory.memset(3)
    memory.copy_to_host_async(out, stream=stream)
    assert not out.any()
    stream.synchronize()
    assert out.tolist() == [3] * 8
    with pytest.raises(ValueError, match="other side has 4"):
        memory.copy_to_host_async(out[:4], 8, stream=stream)


def test_p49_work_of_a_destroyed_stream_keeps_its_order():
    seen, stream = [], cuda.Stream()
    note(stream, seen, 1)
    del stream
    gc.collect()
    other = cuda.Stream()
    note(other, seen, 2)
    other.synchronize()
    assert 1 not in seen
    cuda.Stream.null.synchronize()
    assert sorted(seen) == [1, 2]


def test_failures_surface_where_the_work_runs():
    x, stream = zeros(), cuda.Stream()
    FAIL(1, 1, (x,), stream=stream)
    ADD(1, 4, (x, 1), stream=stream)
    with pytest.raises(LaunchError, match="fail"):
        stream.synchronize()
    stream.synchronize()
    assert x.tolist() == [1] * 4


def test_asking_lets_work_run_so_that_polling_ends():
    stream, seen = cuda.Stream(), []
    for step in range(3):
        note(stream, seen, step)
    event = stream.record()
    assert not event.done
    assert not stream.done
    questions = 0
    while not event.done:
        questions += 1
    assert questions < 5
    assert seen == [0, 1, 2]
    assert stream.done


def test_times_are_those_of_the_work():
    stream, start, end = cuda.Stream(), cuda.Event(), cuda.Event()
    start.record(stream)
    end.record(stream)
    with pytest.raises(CUDAError, match="NOT_READY"):
        start.target.elapsed(start.ptr, end.ptr)
    assert start.elapsed_time(end) >= 0


def test_an_event_recorded_again_stands_for_the_later_place():
    stream, seen, event = cuda.Stream(), [], cuda.Event()
    note(stream, seen, 1)
    event.record(stream)
    other = cuda.Stream()
    other.wait_event(event)
    note(stream, seen, 2)
    event.record(stream)
    other.synchronize()
    assert seen == [1]
    event.synchronize()
    assert seen == [1, 2]


def test_callbacks_cannot_wait():
    stream, seen = cuda.Stream(), []

    def wait(_):
        try:
            stream.synchronize()
        except CUDAError as error:
            seen.append(error.name)

    stream.launch_host_func(wait, None)
    note(stream, seen, "after")
    stream.synchronize()
    assert seen == ["CUDA_ERROR_NOT_PERMITTED", "after"]


def test_graphs_wait_too():
    x, stream = zeros(), cuda.Stream()
    with stream, cuda.Graph() as graph:
        ADD(1, 4, (x, 1))
        ADD(1, 4, (x, 1))
    graph.launch(stream)
    graph.launch(stream)
    del graph
    gc.collect()
    assert not x.any()
    stream.synchronize()
    assert x.tolist() == [4] * 4


def test_threads_share_the_queues():
    x, stream = zeros(), cuda.Stream()

    def work():
        for _ in range(50):
            ADD(1, 4, (x, 1), stream=stream)
            if threading.get_ident() % 3:
                stream.synchronize()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stream.synchronize()
    assert x.tolist() == [200] * 4


def test_leaving_runs_what_is_left_and_tells_what_failed():
    x = zeros()

    def leave_failing_work(error=None):
        with cuda.asynchronous_cpu():
            ADD(1, 4, (x, 1))
            FAIL(1, 1, (x,))
            if error:
                raise error

    with pytest.raises(LaunchError):
        leave_failing_work()
    assert x[0] == 1
    with pytest.raises(KeyError) as caught:
        leave_failing_work(KeyError())
    assert "failed too" in caught.value.__notes__[0]


def test_blocks_can_be_nested_and_end_with_the_outer_mode():
    x = zeros()
    with cuda.asynchronous_cpu(5):
        ADD(1, 4, (x, 1))
    assert x[0] == 1
    ADD(1, 4, (x, 1))
    assert x[0] == 1
    cuda.synchronize()
    assert x[0] == 2


def test_the_environment_switches_it_on(monkeypatch):
    program = """
import numpy as np
from gridstride import cuda
memory, out, stream = cuda.alloc(4), np.zeros(4, np.uint8), cuda.Stream()
memory.memset_async(7, stream=stream)
memory.copy_to_host_async(out, stream=stream)
assert not out.any()
stream.synchronize()
assert out.all()
memory.memset_async(8, stream=stream)
"""
    monkeypatch.setenv("GRIDSTRIDE_CPU_ASYNC", "1")
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stderr == ""


def test_the_fast_path_is_off_meanwhile():
    before = _native.statistics()
    x = zeros()
    for _ in range(3):
        ADD(1, 4, (x, 1))
    assert _native.statistics()[0] == before[0]
