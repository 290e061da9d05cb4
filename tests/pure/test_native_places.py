"""Where a call of the compiled fast path runs: streams, CuPy's devices, and the target that is chosen."""

import struct
import sys
import threading

import numpy as np
import pytest
from native_support import Recorder, kernel, left_to_pipeline, replayed

import gridstride as gs
from gridstride import _native
from gridstride._runtime import keeping
from gridstride.targets import registry

pytestmark = pytest.mark.skipif(not _native.is_compiled(), reason="the extension is not built")


# ---- streams ----


def test_the_default_stream_of_host_arrays(recorder):
    x = np.zeros(4, np.float32)
    k = kernel("float* x")
    k(1, 32, (x,))
    for stream in (None, 0, gs.cuda.Stream(null=True)):
        k(1, 32, (x,), stream=stream)
    assert recorder.who() == ["pipeline"] + ["native"] * 3
    stream = gs.cuda.Stream()
    assert left_to_pipeline(recorder, lambda: k(1, 32, (x,), stream=stream))[5] == stream.ptr
    assert left_to_pipeline(recorder, lambda: k(1, 32, (x,), stream=stream.ptr))[5] == stream.ptr


def test_while_a_stream_of_ours_is_current(recorder):
    x = np.zeros(4, np.float32)
    k = kernel("float* x")
    k(1, 32, (x,))
    stream = gs.cuda.Stream()
    with stream:
        assert left_to_pipeline(recorder, lambda: k(1, 32, (x,)))[5] == stream.ptr
        with gs.cuda.Stream():
            pass
        assert left_to_pipeline(recorder, lambda: k(1, 32, (x,)))[5] == stream.ptr
    k(1, 32, (x,))
    assert recorder.launches[-1][0] == "native"


def test_streams_of_other_targets(recorder):
    k = kernel("int a")
    k(1, 32, (0,))
    with pytest.raises(TypeError, match="target"):
        k(1, 32, (0,), stream=gs.cuda.Stream(null=True, target=Recorder()))


def test_extents_are_read_anew_where_they_change(recorder):
    k = kernel("int n")
    k(1, 32, (0,))
    same, lists = (2, 3), [4]
    for grid in (same, same, (2, 4), same, 5, same, 2**12, 2**12, same):
        k(grid, same, (0,))
        expected = (grid, 1, 1) if isinstance(grid, int) else (*grid, 1)
        assert recorder.launches[-1] == ("native", (expected, (2, 3, 1), 0, 0, bytes(4), 0))
    for _ in range(2):
        assert left_to_pipeline(recorder, lambda: k(lists, 32, (0,)))[0] == (lists[0], 1, 1)
        lists[0] += 1


def test_extents_are_let_go(recorder):
    k = kernel("int n")
    grid, block = (2**12, 1), (2**5, 1)
    before = sys.getrefcount(grid), sys.getrefcount(block)
    for _ in range(100):
        k(grid, block, (0,))
    assert (sys.getrefcount(grid), sys.getrefcount(block)) == (before[0] + 1, before[1] + 1)
    k._forget()
    assert (sys.getrefcount(grid), sys.getrefcount(block)) == before


# ---- CuPy ----


def test_cupy_arrays(recorder, cupy):
    x, y = cupy.empty(6, np.float32), cupy.empty((2, 3), np.float32)
    k = kernel("float* x, const float* y, int n")
    got = replayed(recorder, lambda: k(1, 32, (x, y, 6)))
    assert got[4][:16] == b"".join(array.data.ptr.to_bytes(8, "little") for array in (x, y))


def test_cupys_current_stream(recorder, cupy):
    x = cupy.empty(6, np.float32)
    k = kernel("float* x")
    keeping.begin()  # else the first launch in another stream goes through the pipeline
    k(1, 32, (x,))
    with cupy.cuda.ExternalStream(77):
        k(1, 32, (x,))
        k(1, 32, (x,), stream=5)
        k(1, 32, (x,), stream=gs.cuda.ExternalStream(6))
    k(1, 32, (x,))
    assert [(who, what[5]) for who, what in recorder.launches] == [
        ("native", 0), ("native", 77), ("native", 5), ("native", 6), ("native", 0)
    ]  # fmt: skip


def test_streams_of_cupy_as_argument(recorder, cupy):
    x = cupy.empty(6, np.float32)
    k = kernel("float* x")
    k(1, 32, (x,))
    assert left_to_pipeline(recorder, lambda: k(1, 32, (x,), stream=cupy.cuda.ExternalStream(9)))[5] == 9


def test_cupy_arrays_on_two_devices(recorder, cupy):
    k = kernel("float* x")
    recorder.devices = 2
    on = []
    for device in (0, 1):
        with cupy.cuda.Device(device):
            on.append(cupy.empty(6, np.float32))
    for x in (*on, *on):
        k(1, 32, (x,))
    assert recorder.who() == ["native", "pipeline", "native", "native"]
    two = kernel("float* x, float* y")
    two(1, 32, (on[1], on[1]))
    with pytest.raises(TypeError, match="different places"):
        two(1, 32, (on[1], on[0]))


@pytest.mark.parametrize("change", ["strides", "dtype", "offset"])
def test_unusual_cupy_arrays_get_the_pipelines_error(recorder, cupy, change):
    x = cupy.empty(8, np.float32)
    if change == "strides":
        y = cupy.ndarray((4,), np.float32, x.data, (8,))
    elif change == "dtype":
        y = cupy.empty(8, np.int32)
    else:
        y = cupy.ndarray((4,), np.float32, cupy.cuda.MemoryPointer(x.data.mem, 2))
    k = kernel("float* x")
    k(1, 32, (x,))
    with pytest.raises(TypeError, match="argument 0"):
        k(1, 32, (y,))


def test_mixed_libraries(recorder, cupy):
    k = kernel("float* x, float* y")
    x, y = cupy.empty(8, np.float32), np.zeros(8, np.float32)
    k(1, 32, (x, x))
    recorder.device_types = frozenset({2})
    with pytest.raises(TypeError, match="different places"):
        k(1, 32, (x, y))


def test_cupys_fields_are_found_only_without_doubt(cupy):
    shortcuts = pytest.importorskip("gridstride._native.cupy_shortcuts", exc_type=ImportError)
    search = pytest.importorskip("gridstride._native.memory_search", exc_type=ImportError)

    def place(objects, values):
        samples = search.memories([id(each) for each in objects], complex.__basicsize__)
        return search.place_of(
            samples, [int.from_bytes(struct.pack("d", value), sys.byteorder) for value in values], 8
        )

    objects = [complex(1, 2), complex(1, 3)]
    assert place(objects, [2, 3]) == place(objects, [1, 1]) + 8 == complex.__basicsize__ - 8
    assert place([complex(1, 2), complex(3, 3)], [1, 3]) == complex.__basicsize__ - 16
    assert place([complex(1, 1), complex(3, 3)], [1, 3]) == 0, "two places"
    assert place(objects, [3, 2]) == 0, "no place"
    assert shortcuts.find_layout(cupy) is None, "attributes of Python objects"


# ---- which target ----


def test_a_host_array_passed_by_value_decides_nothing(recorder, monkeypatch, cupy):
    recorder.device_types = frozenset({2})
    host = Recorder()
    host.name, host.device_types = "host", frozenset({1})
    monkeypatch.setitem(registry._targets, "host", host)
    monkeypatch.setattr(registry, "candidates", lambda: ["recorder", "host"])
    k = kernel("int n, float* x")
    on_device, on_host = cupy.empty(4, np.float32), np.zeros(4, np.float32)
    for _ in range(2):
        k(1, 32, (np.array(7), on_device))
        k(1, 32, (7, on_host))
    assert recorder.who() == ["pipeline", "pipeline"]
    assert host.who() == ["pipeline", "native"]


def test_another_target_chosen_by_a_block(recorder, monkeypatch):
    other = Recorder()
    other.name = "other"
    monkeypatch.setitem(registry._targets, "other", other)
    k = kernel("int a")
    x = np.zeros(4, np.float32)
    takes_array = kernel("float* x")
    k(1, 32, (0,))
    takes_array(1, 32, (x,))
    with gs.use_target("other"):
        for _ in range(2):
            k(1, 32, (0,))
            takes_array(1, 32, (x,))
    k(1, 32, (0,))
    takes_array(1, 32, (x,))
    assert other.who() == ["pipeline"] * 2 + ["native"] * 2
    assert recorder.who() == ["pipeline"] * 2 + ["native"] * 2


def test_a_block_in_another_thread(recorder, monkeypatch):
    other = Recorder()
    other.name = "other"
    monkeypatch.setitem(registry._targets, "other", other)
    k = kernel("int a")
    k(1, 32, (0,))
    entered, leave = threading.Event(), threading.Event()

    def stay():
        with gs.use_target("other"):
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=stay)
    thread.start()
    entered.wait(60)
    k(1, 32, (0,))
    leave.set()
    thread.join()
    k(1, 32, (0,))
    assert set(recorder.who()[1:]) == {"native"}
    assert other.who() == []


def test_another_target_chosen_by_the_environment(recorder, monkeypatch):
    other = Recorder()
    other.name = "other"
    monkeypatch.setitem(registry._targets, "other", other)
    k = kernel("int a")
    for name in ("recorder", "other", "recorder", "other"):
        monkeypatch.setenv("GRIDSTRIDE_TARGET", name)
        k(1, 32, (0,))
    assert recorder.who() == other.who() == ["pipeline", "native"]


def test_targets_that_were_forgotten(recorder, monkeypatch):
    k = kernel("int a")
    k(1, 32, (0,))
    monkeypatch.setattr(registry, "_targets", {})
    registry.forget()
    again = Recorder()
    monkeypatch.setitem(registry._targets, recorder.name, again)
    k(1, 32, (0,))
    assert again.who() == ["pipeline"]
    assert recorder.who() == ["pipeline"]


def test_host_arrays_where_the_current_device_decides(recorder):
    recorder.devices = 2
    k = kernel("int a")
    for _ in range(3):
        k(1, 32, (0,))
    assert recorder.who() == ["pipeline"] * 3
