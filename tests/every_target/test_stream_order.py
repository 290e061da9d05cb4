"""The stream order checker: what it finds, what it lets pass, and what it says, on each target."""

import gc
import re
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import gridstride as gs
from gridstride import cuda
from gridstride._runtime import tracking
from gridstride.errors import StreamOrderError, StreamOrderWarning

FILL = gs.RawKernel('extern "C" __global__ void fill(float* x) { x[threadIdx.x] = 1; }', "fill")
READ = gs.RawKernel(
    'extern "C" __global__ void read(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }', "read"
)


@pytest.fixture(autouse=True)
def _checked(target):
    with cuda.check_stream_order():
        yield


@pytest.fixture
def pair(target):
    return cuda.Stream(), cuda.Stream()


@pytest.fixture
def x(xp):
    made = xp.zeros(32, "f4")
    cuda.synchronize()
    return made


def use(kernel, stream, *arrays):
    kernel((1,), (32,), arrays, stream=stream)


def line_of(text):
    """Return the number of the line of this file that ends with a text."""
    with open(__file__) as file:
        return next(number for number, line in enumerate(file, 1) if line.rstrip().endswith(text))


def test_the_error_names_both_launches_their_lines_and_the_array(pair, xp, x):
    first, second = pair
    y = xp.zeros_like(x)
    FILL((1,), (32,), (x,), stream=first)  # first launch
    with pytest.raises(StreamOrderError) as caught:
        READ((1,), (32,), (x, y), stream=second)  # second launch
    error = caught.value
    assert re.search(rf"kernel `fill` .*test_stream_order\.py:{line_of('# first launch')}\b", error.first)
    assert re.search(rf"kernel `read` .*test_stream_order\.py:{line_of('# second launch')}\b", error.second)
    assert "shape (32,), dtype float32, 128 bytes" in error.array
    assert all(part in str(error) for part in (error.first.split(" (")[0], hex(first.ptr), hex(second.ptr)))
    second.wait_event(first.record())
    use(READ, second, x, y)


def test_reads_in_several_streams_are_fine_and_a_write_behind_them_is_not(pair, xp, x):
    y, z = xp.zeros_like(x), xp.zeros_like(x)
    use(READ, pair[0], x, y)
    use(READ, pair[1], x, z)
    with pytest.raises(StreamOrderError, match="may still be reading"):
        use(FILL, pair[0], x)


@pytest.mark.parametrize(
    "order",
    [
        lambda first, second: second.wait_event(first.record()),
        lambda first, second: first.synchronize(),
        lambda first, second: first.record().synchronize(),
        lambda first, second: cuda.synchronize(),
        lambda first, second: cuda.Stream.null.synchronize(),
        lambda first, second: cuda.alloc(1).memset_async(0, stream=cuda.Stream.null),
    ],
    ids=["event", "stream", "host waits for event", "device", "default stream", "work of the default stream"],
)
def test_what_orders_streams(pair, x, order):
    use(FILL, pair[0], x)
    order(*pair)
    use(FILL, pair[1], x)


def test_what_does_not_order_streams(pair, x):
    first, second = pair
    independent = cuda.Stream(non_blocking=True)
    early = first.record()
    use(FILL, first, x)
    second.wait_event(early)
    second.synchronize()
    with pytest.raises(StreamOrderError):
        use(FILL, second, x)
    with pytest.raises(StreamOrderError):
        use(FILL, independent, x)
    use(FILL, cuda.Stream.null, x)
    with pytest.raises(StreamOrderError):
        use(FILL, independent, x)


def test_order_is_passed_on(pair, x):
    first, second = pair
    third = cuda.Stream(non_blocking=True)
    use(FILL, first, x)
    second.wait_event(first.record())
    third.wait_event(second.record())
    use(FILL, third, x)


def test_copies_and_fills_count(pair):
    memory, other = cuda.alloc(64), cuda.alloc(64)
    memory.memset_async(1, stream=pair[0])
    for touch in (
        lambda: other.copy_from_device_async(memory, stream=pair[1]),
        lambda: memory.copy_from_device_async(other, stream=pair[1]),
        lambda: memory.memset_async(2, stream=pair[1]),
        lambda: memory.copy_to_host_async(np.empty(64, np.uint8), stream=pair[1]),
    ):
        with pytest.raises(StreamOrderError, match="fill of 64 bytes"):
            touch()
    other.copy_from_device(memory)  # waits for the blocking streams


def test_parts_of_an_array_are_apart(pair, x):
    use_part = gs.RawKernel('extern "C" __global__ void part(float* x) { x[threadIdx.x] = 1; }', "part")
    use_part((1,), (16,), (x[:16],), stream=pair[0])
    use_part((1,), (16,), (x[16:],), stream=pair[1])
    with pytest.raises(StreamOrderError):
        use_part((1,), (16,), (x[8:24],), stream=pair[1])


def test_memory_given_out_again_is_other_memory(pair):
    for stream in (*pair, *pair):
        cuda.alloc(1 << 12).memset_async(1, stream=stream)
        gc.collect()


def test_p49_a_stream_that_is_gone_orders_nothing(x):
    use(FILL, cuda.Stream(), x)
    gc.collect()
    others = [cuda.Stream() for _ in range(20)]
    for stream in others:
        with pytest.raises(StreamOrderError):
            use(FILL, stream, x)


def test_graphs_are_work_too(pair, x):
    with pair[0], cuda.Graph() as graph:
        use(FILL, None, x)
        use(FILL, None, x)
    use(FILL, pair[1], x)
    with pytest.raises(StreamOrderError, match="graph"):
        graph.launch(pair[0])
    pair[0].wait_event(pair[1].record())
    graph.launch(pair[0])
    with pytest.raises(StreamOrderError, match="graph"):
        use(FILL, pair[1], x)


def test_branches_of_a_graph_are_checked(pair, x):
    first, second = pair

    def capture():
        with first, cuda.Graph():
            second.wait_event(first.record())
            use(FILL, first, x)
            use(FILL, second, x)

    with pytest.raises(StreamOrderError):
        capture()
    assert not first.is_capturing()


def test_work_that_is_refused_is_not_issued(pair):
    memory = cuda.alloc(4)
    memory.memset(1)
    memory.memset_async(2, stream=pair[0])
    with pytest.raises(StreamOrderError):
        memory.memset_async(3, stream=pair[1])
    cuda.synchronize()
    assert gs.asnumpy(memory)[0] == 2


def test_warnings_point_at_the_line_and_the_work_is_issued(pair, monkeypatch):
    memory = cuda.alloc(4)

    def race():
        with cuda.check_stream_order("warn"):
            memory.memset_async(2, stream=pair[0])
            memory.memset_async(3, stream=pair[1])  # warned of

    with monkeypatch.context() as without_the_fixture, warnings.catch_warnings(record=True) as caught:
        without_the_fixture.setattr(tracking, "_observers", ())
        warnings.simplefilter("always")
        race()
    assert [warning.category for warning in caught] == [StreamOrderWarning]
    assert (caught[0].filename, caught[0].lineno) == (__file__, line_of("# warned of"))


def test_an_unknown_action_is_refused(target):
    with pytest.raises(ValueError, match="raise, warn"), cuda.check_stream_order("shout"):
        pass


def test_per_thread_streams_are_apart(target):
    memory, failures = cuda.alloc(4), []

    def work():
        try:
            memory.memset_async(1, stream=cuda.Stream.ptds)
        except StreamOrderError as error:
            failures.append(error)

    for _ in range(8):  # one after another, so that the system gives their identities out again
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(failures) == 7


@pytest.mark.parametrize(("setting", "wanted"), [("1", "StreamOrderError"), ("warn", "StreamOrderWarning")])
def test_the_environment_switches_it_on(target, monkeypatch, setting, wanted):
    program = """
from gridstride import cuda
memory, streams = cuda.alloc(4), (cuda.Stream(), cuda.Stream())
for stream in streams:
    memory.memset_async(1, stream=stream)
"""
    monkeypatch.setenv("GRIDSTRIDE_CHECK_STREAM_ORDER", setting)
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert wanted in ended.stderr
    assert (ended.returncode == 0) == (setting == "warn")
