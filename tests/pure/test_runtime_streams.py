"""Streams and events, and the stream that a launch goes to."""

import gc
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from fake_target import FakeTarget, make_default

from gridstride import _native, arrays, cuda
from gridstride._runtime.launch_stream import resolve_stream
from gridstride._runtime.stream import stream_handle

pytestmark = pytest.mark.usefixtures("each_way")


@pytest.fixture
def fake(monkeypatch):
    target = FakeTarget()
    make_default(monkeypatch, target)
    return target


@pytest.fixture
def gpu(fake):
    """The same target, with devices that CUDA's libraries share."""
    fake.device_types = frozenset({2, 13})
    fake.features = frozenset({"gpu"})
    fake.array_protocol, fake.memory_device_type = "__cuda_array_interface__", 2
    return fake


def on_gpu(library, address=4096, producer_stream=None):
    return arrays.ArrayView(
        None, address, np.dtype("f4"), (2,), None, arrays.CUDA, 0, False, library, False, producer_stream
    )


def test_p42_a_block_makes_a_stream_current(fake):
    stream = cuda.Stream()
    assert cuda.get_current_stream() == cuda.Stream.null
    with stream as entered:
        assert entered is stream
        assert cuda.get_current_stream() is stream
        assert resolve_stream([], None, fake, 0) == stream.ptr
    assert cuda.get_current_stream() == cuda.Stream.null
    assert resolve_stream([], None, fake, 0) == 0


def test_p46_leaving_puts_back_what_was_current_on_entry(fake):
    first, second = cuda.Stream(), cuda.Stream()
    with first:
        second.use()
        with first:
            pass
        assert cuda.get_current_stream() is second
        with pytest.raises(KeyError), first, first, second:
            raise KeyError
        assert cuda.get_current_stream() is second
    assert cuda.get_current_stream() == cuda.Stream.null


def test_each_thread_and_device_has_its_own_current_stream(fake):
    seen = []
    with cuda.Stream() as stream:
        thread = threading.Thread(target=lambda: seen.append(cuda.get_current_stream()))
        thread.start()
        thread.join()
        with cuda.Device(1):
            seen.append(cuda.get_current_stream())
        assert cuda.get_current_stream() is stream
    assert seen == [cuda.Stream.null, cuda.Stream.null]


def test_a_stream_stays_on_its_device(fake):
    with cuda.Device(1):
        stream = cuda.Stream()
    with stream:
        assert cuda.get_current_stream(1) is stream
        assert cuda.get_current_stream(0) == cuda.Stream.null
    fake.synchronize_stream = lambda handle: fake.calls.append(("wait", handle, fake.current_device()))
    stream.synchronize()
    assert fake.made("wait") == [("wait", stream.ptr, 1)]
    assert fake.current_device() == 0


def test_default_streams(fake):
    assert cuda.Stream.null.ptr == cuda.Stream(null=True).ptr == 0
    assert cuda.Stream.null is cuda.Stream.null
    with pytest.raises(ValueError, match="not both"):
        cuda.Stream(null=True, ptds=True)
    with cuda.Stream():
        cuda.Stream.null.use()
        assert cuda.get_current_stream().ptr == 0


def test_each_thread_has_its_own_per_thread_stream(fake):
    handles = []
    threads = [threading.Thread(target=lambda: handles.append(cuda.Stream.ptds.ptr)) for _ in range(2)]
    for thread in threads:
        thread.start()
        thread.join()
    own = cuda.Stream.ptds.ptr
    assert own == cuda.Stream(ptds=True).ptr
    with cuda.Device(1):
        handles.append(cuda.Stream.ptds.ptr)
    assert len({own, *handles}) == 4


def test_cuda_has_a_handle_for_the_per_thread_stream(gpu):
    assert cuda.Stream.ptds.ptr == 2


def test_a_stream_is_destroyed_with_its_object(fake):
    stream = cuda.Stream()
    handle = stream.ptr
    external = cuda.ExternalStream(handle)
    assert external == stream
    assert len({external, stream}) == 1
    del external
    gc.collect()
    assert not fake.made("destroy_stream")
    del stream
    gc.collect()
    assert fake.made("destroy_stream") == [("destroy_stream", handle)]


def test_a_stream_that_could_not_be_made_destroys_nothing(fake):
    def fail(non_blocking):
        raise MemoryError

    fake.create_stream = fail
    with pytest.raises(MemoryError):
        cuda.Stream()
    gc.collect()
    assert not fake.made("destroy_stream")


def test_streams_show_themselves_as_cuda_streams_on_a_gpu_alone(fake):
    stream = cuda.Stream()
    with pytest.raises(TypeError, match="no CUDA stream"):
        stream.__cuda_stream__()
    fake.device_types = frozenset({2})
    assert stream.__cuda_stream__() == (0, stream.ptr)


def test_what_stands_for_a_stream(gpu, cupy):
    stream = cuda.Stream()
    torch_stream = type("Stream", (), {"__module__": "torch.cuda.streams", "cuda_stream": 12})()
    assert stream_handle(stream, gpu) == stream.ptr
    assert stream_handle(1234, gpu) == 1234
    assert stream_handle(cupy.cuda.ExternalStream(11, 0), gpu) == 11
    assert stream_handle(torch_stream, gpu) == 12
    assert stream_handle(SimpleNamespace(__cuda_stream__=lambda: (0, 13)), gpu) == 13
    assert stream_handle(SimpleNamespace(__cuda_stream__=(0, 14)), gpu) == 14
    for wrong in ("stream", True, 1.5, object()):
        with pytest.raises(TypeError, match="__cuda_stream__"):
            stream_handle(wrong, gpu)


def test_a_stream_of_another_target_is_refused(fake):
    other = FakeTarget()
    other.name = "other"
    with pytest.raises(TypeError, match=r"belongs to target 'other'.*runs on target 'fake'"):
        stream_handle(cuda.Stream(target=other), fake)
    with pytest.raises(TypeError, match="CUDA stream"):
        stream_handle(SimpleNamespace(__cuda_stream__=lambda: (0, 13)), fake)


def test_a_current_stream_of_another_target_is_ignored(fake):
    other = FakeTarget()
    with cuda.Stream(target=other):
        assert resolve_stream([arrays.view(np.zeros(1)), None], None, fake, 0) == 0


def test_a_block_makes_the_stream_current_for_cupy(gpu, cupy):
    first, second = cuda.Stream(), cuda.Stream()
    with first:
        assert cupy.cuda.get_current_stream(0).ptr == first.ptr
        cupy.cuda.ExternalStream(77, 0).use()
        with second:
            assert cupy.cuda.get_current_stream(0).ptr == second.ptr
        assert cupy.cuda.get_current_stream(0).ptr == 77
    assert cupy.cuda.get_current_stream(0).ptr == 0


@pytest.mark.parametrize("are_on", [False, True], ids=["definition", "shortcut"])
def test_a_block_of_cupy_s_ends_in_the_stream_of_ours_around_it(gpu, cupy, are_on):
    before = _native.use_shortcuts(are_on)
    try:
        outer, ours = cupy.cuda.ExternalStream(55, 0), cuda.Stream()
        with outer:
            cupy.cuda.ExternalStream(66, 0).use()
            for _ in range(2):
                with ours:
                    with cupy.cuda.ExternalStream(77, 0):
                        assert cupy.cuda.get_current_stream().ptr == 77
                    assert cupy.cuda.get_current_stream().ptr == ours.ptr
                assert cupy.cuda.get_current_stream().ptr == 66
            ours.use()
        assert cupy.cuda.get_current_stream().ptr == 0
    finally:
        _native.use_shortcuts(before)


def test_cupy_s_stream_stays_where_the_target_has_no_gpu(fake, cupy):
    with cuda.Stream():
        assert cupy.cuda.get_current_stream(0).ptr == 0


def test_a_library_that_refuses_a_stream_leaves_all_as_it_was(gpu, cupy):
    def refuse(ptr, device):
        raise RuntimeError("no")

    cupy.cuda.ExternalStream = refuse
    with pytest.raises(RuntimeError, match="no"):
        cuda.Stream().__enter__()
    assert cuda.get_current_stream() == cuda.Stream.null


def test_a_launch_goes_to_the_argument_then_the_library_s_stream_then_ours(gpu, cupy):
    stream = cuda.Stream()
    cupy.cuda.ExternalStream(55, 0).use()
    assert resolve_stream([on_gpu("cupy")], stream, gpu, 0) == stream.ptr
    assert resolve_stream([on_gpu("cupy"), None], None, gpu, 0) == 55
    with stream:
        assert resolve_stream([on_gpu("cupy")], None, gpu, 0) == stream.ptr
        assert resolve_stream([on_gpu("interface")], None, gpu, 0) == stream.ptr
    assert resolve_stream([on_gpu("interface"), on_gpu("memory")], None, gpu, 0) == 0


def test_libraries_whose_streams_differ_need_the_argument(gpu, cupy, monkeypatch):
    monkeypatch.setattr(type(arrays.adapter_of("torch")), "current_stream", lambda self, device: 66)
    cupy.cuda.ExternalStream(55, 0).use()
    both = [on_gpu("cupy"), on_gpu("torch")]
    with pytest.raises(ValueError, match=r"cupy's is 0x37, torch's is 0x42.*pass stream="):
        resolve_stream(both, None, gpu, 0)
    assert resolve_stream(both, 5, gpu, 0) == 5
    cupy.cuda.ExternalStream(66, 0).use()
    assert resolve_stream(both, None, gpu, 0) == 66


def test_a_launch_is_ordered_behind_the_stream_that_an_array_announces(gpu):
    assert resolve_stream([on_gpu("interface", producer_stream=9)], 9, gpu, 1) == 9
    assert not gpu.calls
    resolve_stream([on_gpu("interface", producer_stream=9)], 5, gpu, 1)
    (recorded,), (waited,), (destroyed,) = map(gpu.made, ("record_event", "wait_event", "destroy_event"))
    event = recorded[1]
    assert recorded == ("record_event", event, 9, 1)
    assert waited == ("wait_event", 5, event)
    assert destroyed == ("destroy_event", event)
    assert gpu.current_device() == 0


def test_events_are_recorded_in_the_current_stream(fake):
    stream, event = cuda.Stream(), cuda.Event()
    with stream:
        event.record()
    event.record(cuda.Stream.null)
    event.record(77)
    assert [call[2] for call in fake.made("record_event")] == [stream.ptr, 0, 77]
    made = stream.record()
    assert fake.made("record_event")[-1][1:3] == (made.ptr, stream.ptr)
    assert stream.record(event) is event
    stream.wait_event(made)
    assert fake.made("wait_event") == [("wait_event", stream.ptr, made.ptr)]
    assert event.done
    assert event.query()
    assert stream.done


def test_events_stay_on_their_device(fake):
    with cuda.Device(1):
        event, stream = cuda.Event(), cuda.Stream()
    event.record()
    assert fake.made("record_event") == [("record_event", event.ptr, 0, 1)]
    with pytest.raises(ValueError, match=r"event of device 1.*stream of device 0"):
        event.record(cuda.Stream())
    assert stream.record().device_id == 1


def test_an_event_is_destroyed_with_its_object(fake):
    event = cuda.Event()
    handle = event.ptr
    del event
    gc.collect()
    assert fake.made("destroy_event") == [("destroy_event", handle)]


def test_elapsed_time_waits_for_the_end(fake):
    start, end = cuda.Event(), cuda.Event()
    with pytest.raises(ValueError, match="start event was never recorded"):
        cuda.get_elapsed_time(start, end)
    start.record()
    with pytest.raises(ValueError, match="end event was never recorded"):
        start.elapsed_time(end)
    end.record()
    assert start.elapsed_time(end) == cuda.get_elapsed_time(start, end) == end.ptr - start.ptr
    assert fake.made("synchronize_event")[-1] == ("synchronize_event", end.ptr)
    untimed = cuda.Event(disable_timing=True)
    untimed.record()
    with pytest.raises(ValueError, match="keeps no time"):
        cuda.get_elapsed_time(start, untimed)


def test_events_of_other_targets_and_processes_are_refused(fake):
    other = cuda.Event(target=FakeTarget())
    for use in (cuda.Stream().wait_event, other.record, cuda.Event().elapsed_time):
        with pytest.raises(TypeError, match="belongs to target"):
            use(cuda.Stream() if use == other.record else other)
    with pytest.raises(NotImplementedError, match="processes could share"):
        cuda.Event.open_handle(bytes(64))
    with pytest.raises(ValueError, match="disable_timing=True"):
        cuda.Event(interprocess=True)
