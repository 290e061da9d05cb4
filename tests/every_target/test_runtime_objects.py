"""The runtime's objects on each target, compared with NumPy."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import gridstride as gs
from gridstride import cuda
from gridstride.errors import CUDAError

pytestmark = pytest.mark.usefixtures("each_way")


def test_memory_keeps_what_was_copied(target):
    values = np.arange(100, dtype=np.float64)
    pointer = cuda.alloc(values.nbytes)
    pointer.copy_from_host(values)
    other = cuda.alloc(values.nbytes)
    other.copy_from_device(pointer)
    (other + 8).memset(0, 16)
    out = np.empty_like(values)
    other.copy_to_host(out)
    np.testing.assert_array_equal(out, [0, 0, 0, *range(3, 100)])


def test_asynchronous_copies_keep_the_order_of_their_stream(target):
    stream, values, out = cuda.Stream(non_blocking=True), np.arange(1000), np.zeros(1000, int)
    pointer = cuda.alloc(values.nbytes)
    with stream:
        pointer.memset_async(255)
        pointer.copy_from_host_async(values)
        pointer.copy_to_host_async(out)
        event = stream.record()
    event.synchronize()
    np.testing.assert_array_equal(out, values)
    assert event.done
    assert stream.done


def test_a_stream_waits_for_an_event_of_another(target):
    first, second, event = cuda.Stream(), cuda.Stream(), cuda.Event()
    pointer, out = cuda.alloc(8), np.zeros(1, np.int64)
    pointer.copy_from_host_async(np.array([5]), stream=first)
    event.record(first)
    second.wait_event(event)
    pointer.copy_to_host_async(out, stream=second)
    second.synchronize()
    assert out[0] == 5


def test_time_passes_between_events(target):
    start, end = cuda.Event(), cuda.Event()
    start.record()
    cuda.alloc(1 << 20).memset_async(1)
    end.record()
    assert cuda.get_elapsed_time(start, end) >= 0
    assert start.elapsed_time(end) == cuda.get_elapsed_time(start, end)


@pytest.mark.parametrize("make", [lambda: cuda.Stream.null, lambda: cuda.Stream.ptds, cuda.Stream])
def test_each_kind_of_stream_takes_work(target, make):
    pointer, out = cuda.alloc(3), np.zeros(3, np.uint8)
    stream = make()
    with stream:
        pointer.memset_async(9)
        pointer.copy_to_host_async(out)
    stream.synchronize()
    assert out.tolist() == [9, 9, 9]


def test_an_array_over_memory_shares_it(target, xp):
    pointer = cuda.alloc(24)
    x = gs.ndarray((3,), np.float64, memptr=pointer)
    x[...] = xp.arange(3.0)
    cuda.synchronize()
    np.testing.assert_array_equal(gs.asnumpy(x), [0, 1, 2])
    np.testing.assert_array_equal(gs.asnumpy(pointer).view(np.float64), [0, 1, 2])


def test_the_device_names_its_numbers(target):
    device = cuda.Device()
    assert device.id == cuda.get_device_id()
    assert device.name
    assert device.attributes["WarpSize"] == 32
    free, total = device.mem_info
    assert 0 < free <= total
    assert cuda.runtime.getDeviceCount() == target.device_count() > device.id


def test_a_device_beyond_the_last_is_an_error(target):
    count = cuda.runtime.getDeviceCount()
    with pytest.raises(CUDAError, match=f"device {count} does not exist"), cuda.Device(count):
        pass
    with pytest.raises(CUDAError):
        cuda.runtime.setDevice(count)


def test_threads_have_their_own_current_stream(target):
    stream, seen = cuda.Stream(), []

    def look():
        seen.append(cuda.get_current_stream())

    with stream:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert cuda.get_current_stream() is stream
    assert seen == [cuda.Stream.null]


def test_p48_objects_that_outlive_the_program_go_quietly(target):
    program = """
from gridstride import cuda
stream, event, pointer = cuda.Stream(), cuda.Event(), cuda.alloc(64)
current = cuda.Stream().use()
cycle = [cuda.Stream(), cuda.Event(), cuda.alloc(8)]
cycle.append(cycle)
pointer.memset_async(0)
per_thread = cuda.Stream.ptds.ptr
"""
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stderr == ""


def test_contexts_of_two_devices(target, monkeypatch):
    program = """
import threading
import numpy as np
from gridstride import cuda
assert cuda.runtime.getDeviceCount() == 2
barrier, after = threading.Barrier(2), {}
def work(own):
    cuda.set_device(own)
    barrier.wait(10)
    with cuda.Device(1 - own):
        barrier.wait(10)
        stream, pointer, out = cuda.Stream(), cuda.alloc(4), np.zeros(4, np.uint8)
        with stream:
            pointer.memset_async(own + 1)
            pointer.copy_to_host_async(out)
        stream.synchronize()
        assert pointer.device_id == stream.device_id == 1 - own
    after[own] = cuda.get_device_id(), out.tolist()
threads = [threading.Thread(target=work, args=(own,)) for own in (0, 1)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert after == {0: (0, [1] * 4), 1: (1, [2] * 4)}, after
assert cuda.get_device_id() == 0
with cuda.Device(1):
    cuda.Device(0).use()
    with cuda.Device(1):
        pass
    assert cuda.get_device_id() == 0
assert cuda.get_device_id() == 0
"""
    if "gpu" in target.features and target.device_count() < 2:
        pytest.skip("one device answers")
    monkeypatch.setenv("GRIDSTRIDE_CPU_DEVICES", "2")
    subprocess.run([sys.executable, "-c", program], check=True)


def test_warming_up_changes_nothing(target):
    before = target.current_device(), target.memory_info(target.current_device())[1]
    target.warm_up()
    target.warm_up()
    assert (target.current_device(), target.memory_info(target.current_device())[1]) == before


def test_a_thread_that_never_chose_a_device_uses_what_others_made(target):
    stream, event, pointer = cuda.Stream(), cuda.Event(), cuda.alloc(4)
    calls = (
        lambda: event.record(stream),
        lambda: event.record(cuda.Stream.null),
        lambda: stream.wait_event(event),
        lambda: cuda.Stream.null.wait_event(event),
        stream.synchronize,
        cuda.Stream.null.synchronize,
        cuda.Stream.ptds.synchronize,
        event.synchronize,
        lambda: stream.done,
        lambda: event.done,
        lambda: pointer.memset_async(1, stream=stream),
        lambda: pointer.memset_async(1),
        lambda: cuda.Event().record(),
        cuda.Stream,
        lambda: cuda.malloc_async(8),
        cuda.synchronize,
    )
    failures = []

    def attempt(call):
        try:
            call()
        except Exception as error:
            failures.append(error)

    for call in calls:
        thread = threading.Thread(target=attempt, args=(call,))
        thread.start()
        thread.join()
    assert failures == []


def test_a_launch_runs_where_its_memory_lies(target, monkeypatch):
    monkeypatch.setenv("GRIDSTRIDE_CPU_DEVICES", "2")
    if target.device_count() < 2:
        pytest.skip("needs two devices")
    add = gs.RawKernel(
        'extern "C" __global__ void add(unsigned char* x, unsigned char* y) { x[0] += y[0]; }', "add"
    )
    double = gs.ElementwiseKernel("uint8 x", "uint8 y", "y = 2 * x", "double_it")
    devices = []

    class Watch(cuda.LaunchHook):
        def launch_preprocess(self, work):
            devices.append(work.device)

    with cuda.Device(1):
        there, also_there = cuda.alloc(4), cuda.alloc(4)
        there.memset(3)
        also_there.memset(4)
    here, pinned = cuda.alloc(4), cuda.alloc_pinned_memory(4)
    seen = cuda.MemoryPointer(pinned, 0)
    seen.memset(5)
    with Watch():
        add(1, 1, (there, also_there))
        add(1, 1, (there, seen))
        add(1, 1, (seen, there))
        double(there, also_there)
    assert devices == [1] * 4
    assert cuda.get_device_id() == 0
    cuda.Device(1).synchronize()
    assert [gs.asnumpy(each)[0] for each in (there, seen, also_there)] == [12, 17, 24]
    for call in (lambda: add(1, 1, (there, here)), lambda: double(there, here)):
        with pytest.raises(TypeError, match="different places"):
            call()
