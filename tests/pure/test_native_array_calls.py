"""Array kernels on the compiled fast path: what is replayed, and what is left to the pipeline."""

import gc
import itertools
import struct
import sys
import tracemalloc
import weakref
from types import SimpleNamespace

import fake_cupy
import numpy as np
import pytest

import gridstride as gs
from gridstride import _native
from gridstride._runtime import keeping
from gridstride.errors import LaunchError

pytestmark = pytest.mark.skipif(not _native.is_compiled(), reason="the extension is not built")

_numbers = itertools.count()


def add():
    return gs.ElementwiseKernel("T x, T y", "T z", f"z = x + y; // {next(_numbers)}", "add")


def total():
    return gs.ReductionKernel("T x", "T y", "x", "a + b", f"y = a; // {next(_numbers)}", "0", "total")


def arrays(count=3, n=8, xp=np):
    return [xp.empty((n,), np.dtype(np.float32)) for _ in range(count)]


def test_the_third_call_is_a_hit_that_launches_the_same(recorder):
    k, (x, y, z) = add(), arrays()
    for _ in range(3):
        assert k(x, y, z) is z
    assert recorder.who() == ["pipeline", "pipeline", "native"]
    assert recorder.launches[2][1] == recorder.launches[0][1]


def test_addresses_are_those_of_the_call(recorder):
    k = add()
    for _ in range(2):
        k(*arrays())
    x, y, z = arrays()
    k(x, y, z)
    (who, (*_, packed, _)) = recorder.launches[-1]
    assert who == "native"
    for each in (x, y, z):
        assert packed.count(struct.pack("<Q", each.ctypes.data)) == 1


def test_outputs_are_made_by_the_library(recorder):
    k, (x, y) = add(), arrays(2)
    made = [k(x, y) for _ in range(4)]
    assert recorder.who() == ["pipeline", "pipeline", "native", "native"]
    assert len({id(each) for each in made}) == 4
    assert {(type(each), each.dtype.name, each.shape) for each in made} == {(np.ndarray, "float32", (8,))}
    assert struct.pack("<Q", made[3].ctypes.data) in recorder.launches[3][1][4]


@pytest.mark.parametrize(
    "change",
    [
        lambda x, y, z: (x.astype("f8"), y, z.astype("f8")),
        lambda x, y, z: (x[:1], y, z),
        lambda x, y, z: (np.repeat(x, 2)[::2], y, z),
        lambda x, y, z: (x, y, np.repeat(z, 2)[::2]),
        lambda x, y, z: (np.append(x, x)[1:9], y, z),
        lambda x, y, z: (x, 1.0, z),
        lambda x, y, z: (x, np.float32(1), z),
        lambda x, y, z: (x, y),
    ],
    ids=["dtype", "shape", "step", "output", "start", "number", "scalar", "no output"],
)
def test_calls_that_differ_are_no_hits(recorder, change):
    k, given = add(), arrays()
    for _ in range(3):
        k(*given)
    for who in ("pipeline", "pipeline", "native"):
        k(*change(*given))
        assert recorder.who()[-1] == who


def test_another_librarys_dtype_is_known_whenever_it_comes(recorder):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    _native.know_bfloat16(None)  # as before any array of it
    k = add()
    for _ in range(3):
        k(*(np.zeros(8, ml_dtypes.bfloat16) for _ in range(3)))
    assert recorder.who() == ["pipeline", "pipeline", "native"]


def test_bfloat16_scalars_are_known(recorder):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    scale = gs.ElementwiseKernel("T a, T x", "T z", f"z = a * x; // {next(_numbers)}", "scale")
    x, z = (np.zeros(8, ml_dtypes.bfloat16) for _ in range(2))
    for number in (3.0, 3.0, 3.0, -0.5, float("nan")):
        scale(ml_dtypes.bfloat16(number), x, z)
    assert recorder.who() == ["pipeline"] * 2 + ["native"] * 3
    packed = [launch[1][4] for launch in recorder.launches]
    assert packed[2] == packed[0]
    assert packed[3].count(struct.pack("<H", 0xBF00)) == 1


def test_read_only_outputs_get_the_pipelines_error(recorder):
    k, (x, y, z) = add(), arrays()
    for _ in range(3):
        k(x, y, z)
    z.flags.writeable = False
    with pytest.raises(TypeError, match="read-only"):
        k(x, y, z)


@pytest.mark.parametrize(
    "unusual", [None, "text", [1.0], object(), np.zeros(8, "U1"), np.zeros(8, ">f4")], ids=range(6)
)
def test_unusual_arguments_get_the_pipelines_errors(recorder, unusual):
    k, (x, y, z) = add(), arrays()
    for _ in range(3):
        k(x, y, z)
    with pytest.raises(TypeError, match="add"):
        k(x, unusual, z)
    assert len(recorder.launches) == 3


@pytest.mark.parametrize("wrong", [{"size": 8}, {"block_size": 0}, {"stream": 1.5}, {"colour": 1}], ids=str)
def test_wrong_keywords_get_the_pipelines_errors(recorder, wrong):
    k, (x, y, z) = add(), arrays()
    for _ in range(3):
        k(x, y, z)
    with pytest.raises((TypeError, ValueError)):
        k(x, y, z, **wrong)


def test_other_array_likes_are_left_to_the_pipeline(recorder):
    class Mine(np.ndarray):
        pass

    k, (x, y, z) = add(), arrays()
    for _ in range(4):
        k(x, y, memoryview(z))
        k(x.view(Mine), y, z)
    assert recorder.who() == ["pipeline"] * 8


def test_while_a_stream_of_ours_is_current(recorder):
    k, (x, y, z) = add(), arrays()
    with gs.cuda.Stream():
        for _ in range(3):
            k(x, y, z)
    for _ in range(3):
        k(x, y, z, stream=None)
    k(x, y, z, stream=0)
    assert recorder.who() == ["pipeline"] * 3 + ["native"] * 4


def test_another_target_chosen_by_the_environment(recorder, monkeypatch):
    k, (x, y, z) = add(), arrays()
    for _ in range(3):
        k(x, y, z)
    monkeypatch.setenv("GRIDSTRIDE_TARGET", "null")
    k(x, y, z)
    assert recorder.who() == ["pipeline", "pipeline", "native"]
    monkeypatch.setenv("GRIDSTRIDE_TARGET", recorder.name)
    k(x, y, z)
    assert len(recorder.launches) == 4


def test_another_target_chosen_by_a_block(recorder):
    k, (x, y, z) = add(), arrays()
    for _ in range(3):
        k(x, y, z)
    with gs.use_target("null"):
        for _ in range(3):
            k(x, y, z)
    assert recorder.who() == ["pipeline", "pipeline", "native"]
    for _ in range(3):
        k(x, y, z)
    assert len(recorder.launches) == 6


def test_arrays_whose_elements_lie_unaligned_are_copied_around_the_launch(recorder):
    k, (x, y, z) = add(), arrays()
    shifted, out = (np.empty(40, np.uint8)[1:33].view(np.float32) for _ in range(2))
    for _ in range(3):
        k(x, y, z)
    del recorder.launches[:]
    for _ in range(3):
        k(shifted, y, out)
    assert recorder.who() == ["pipeline"] * 12
    touched = [
        [struct.pack("<Q", each.ctypes.data) in launch[1][4] for each in (shifted, y, out)]
        for launch in recorder.launches
    ]
    assert touched == 3 * [
        [True, False, False],
        [False, False, True],
        [False, True, False],
        [False, False, True],
    ]
    k(x, y, z)
    assert recorder.who()[-1] == "native"


def test_a_stream_of_cupy_that_is_in_use_stays_so_when_outputs_are_made(recorder, cupy):
    k, (x, y) = add(), arrays(2, xp=cupy)
    cupy.cuda.ExternalStream(77).use()  # as a block of ours does
    for _ in range(2):
        k(x, y)
        k(x, y, stream=gs.cuda.ExternalStream(6))
    assert cupy.cuda.get_current_stream().ptr == 77
    assert [launch[1][-1] for launch in recorder.launches] == [77, 6, 77, 6]
    assert fake_cupy.State.allocated_on[-4:] == [(0, 77), (0, 6)] * 2


def test_a_stream_of_cupy_that_is_in_use_stays_so_when_its_function_is_tried(cupy, monkeypatch):
    from gridstride._native import cupy_shortcuts

    streams = cupy.cuda.Stream
    monkeypatch.setattr(streams, "null", streams(0), raising=False)
    monkeypatch.setattr(streams, "ptds", streams(2), raising=False)
    told = SimpleNamespace(cupy_stream=lambda device: cupy.cuda.get_current_stream(device).ptr)
    monkeypatch.setattr(cupy_shortcuts, "_launcher", told)
    cupy.cuda.ExternalStream(77).use()
    assert cupy_shortcuts._streams_agree(cupy)
    assert cupy.cuda.get_current_stream().ptr == 77


def test_cupy_arrays(recorder, cupy):
    k, given = add(), arrays(xp=cupy)
    for _ in range(3):
        assert k(*given) is given[2]
    made = [k(*given[:2]) for _ in range(3)]
    assert recorder.who() == ["pipeline", "pipeline", "native"] * 2
    assert {type(each) for each in made} == {fake_cupy.Array}
    assert struct.pack("<Q", made[2].data.ptr) in recorder.launches[5][1][4]


def test_memory_becomes_an_array_after_the_launch(recorder, cupy, monkeypatch):
    launches, shapes = [], []

    def ndarray(shape, dtype, memory):
        launches.append(len(recorder.launches))
        shapes.append(shape)
        return fake_cupy.Array(shape, dtype, memory)

    monkeypatch.setattr(cupy, "ndarray", ndarray)
    k, (x, y) = add(), arrays(2, xp=cupy)
    for _ in range(4):
        made = k(x, y)
    assert recorder.who() == ["pipeline", "pipeline", "native", "native"]
    assert (launches, shapes) == ([3, 4], [(8,), (8,)])
    assert struct.pack("<Q", made.data.ptr) in recorder.launches[3][1][4]


def test_memory_that_becomes_no_array_is_let_go(recorder, cupy, monkeypatch):
    def ndarray(shape, dtype, memory):
        if refused:
            raise MemoryError("no array today")
        return fake_cupy.Array(shape, dtype, memory)

    refused = False
    monkeypatch.setattr(cupy, "ndarray", ndarray)
    k, (x, y) = add(), arrays(2, xp=cupy)
    for _ in range(3):
        k(x, y)
    references = sys.getrefcount(x)
    refused = True
    for _ in range(20):
        with pytest.raises(MemoryError, match="no array today"):
            k(x, y)
    assert abs(sys.getrefcount(x) - references) <= 1
    refused = False
    assert k(x, y).shape == (8,)
    assert recorder.who()[-1] == "native"


def test_outputs_are_made_only_on_the_current_stream(recorder, cupy, monkeypatch):
    monkeypatch.setattr(keeping, "is_needed", False)
    k, (x, y) = add(), arrays(2, xp=cupy)
    for _ in range(2):
        k(x, y, stream=0x50)
    with fake_cupy.Stream(0x50):
        k(x, y, stream=0x50)
        k(x, y)
    k(x, y, stream=0x50)
    assert recorder.who() == ["pipeline", "pipeline", "native", "native", "pipeline"]
    assert [what[5] for _, what in recorder.launches] == [0x50] * 5
    assert fake_cupy.State.allocated_on[2:] == [(0, 0x50)] * 5


def test_what_is_launched_beside_other_streams_is_kept(recorder, cupy, monkeypatch):
    kept = []
    monkeypatch.setattr(keeping, "is_needed", True)
    _native.set_keeper(lambda *what: kept.append(what))
    try:
        k, (x, y) = add(), arrays(2, xp=cupy)
        made = [k(x, y) for _ in range(3)]
    finally:
        _native.set_keeper(keeping.keep)
    ((target, device, stream, used),) = kept
    assert [target, device, stream] == [recorder, 0, 0]
    assert [each is other for each, other in zip(used, (x, y, made[2]), strict=True)] == [True] * 3


def test_arrays_on_two_devices(recorder, cupy):
    recorder.devices = 2
    k = add()
    here = arrays(xp=cupy)
    with cupy.cuda.Device(1):
        there = arrays(xp=cupy)
    for _ in range(3):
        k(*here)
    with pytest.raises(TypeError, match="different places"):
        k(here[0], there[1], here[2])
    assert len(recorder.launches) == 3


def test_mixed_libraries_are_left_to_the_pipeline(recorder, cupy):
    recorder.device_types = frozenset({1, 2})
    k, (x, _, z) = add(), arrays(xp=cupy)
    for _ in range(4):
        k(x, np.float32(2), z)
        k(x, np.array(2, np.float32), z)
    assert recorder.who().count("native") == 2


def test_reductions(recorder):
    k, (x,) = total(), arrays(1)
    out = np.zeros((), np.float32)
    for _ in range(4):
        assert k(x).shape == ()
        assert k(x, out=out) is out
        assert k(x, out) is out
        assert k(x, axis=0, keepdims=True).shape == (1,)
    assert recorder.who() == ["pipeline"] * 8 + ["native"] * 8


def test_reductions_in_two_launches(recorder):
    k, x = total(), np.zeros(1 << 22, np.float32)
    for _ in range(3):
        k(x)
    assert recorder.who() == ["pipeline"] * 4 + ["native"] * 2
    first, second = recorder.launches[4:]
    assert first[1][:3] == recorder.launches[0][1][:3]
    assert second[1][:3] == recorder.launches[1][1][:3]


def test_failures_are_worded_by_the_function(recorder):
    k, given = add(), arrays()
    for _ in range(3):
        k(*given)
    recorder.code = 7
    with pytest.raises(LaunchError, match="code 7"):
        k(*given)


def test_routines_may_leave_a_call_to_the_pipeline(recorder):
    k, given = add(), arrays()
    for _ in range(3):
        k(*given)
    recorder.code = -1
    k(*given)
    k(*given[:2])
    assert recorder.who()[2:] == ["native", "pipeline", "pipeline"]


def test_watchers_see_every_call(recorder):
    k, given = add(), arrays()
    for _ in range(3):
        k(*given)
    _native.watchers(+1)
    try:
        k(*given)
    finally:
        _native.watchers(-1)
    assert recorder.who()[2:] == ["native", "pipeline"]


def test_switched_off(recorder, monkeypatch):
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", "0")
    k, given = add(), arrays()
    for _ in range(5):
        k(*given)
    assert recorder.who() == ["pipeline"] * 5


def test_verify_mode_sends_hits_through_the_pipeline(recorder, monkeypatch):
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", "verify")
    k, t, given = add(), total(), arrays()
    before, _ = _native.statistics()
    for _ in range(4):
        k(*given)
        k(*given[:2])
        t(given[0])
    assert recorder.who() == ["pipeline"] * 12
    assert _native.statistics()[0] - before == 6


def test_verify_mode_finds_differences(recorder, monkeypatch):
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", "verify")
    from gridstride._array_pipeline import finished

    real = finished._step

    def wrong(step, operands):
        made = real(step, operands)
        return made._replace(packed=made.packed[:-1] + b"\x55")

    monkeypatch.setattr(finished, "_step", wrong)
    k = gs.ElementwiseKernel("int8 x, int8 a", "int8 z", f"z = x; // {next(_numbers)}", "differs")
    x = np.zeros(4, np.int8)
    k(x, 1, x)
    k(x, 1, x)
    with pytest.raises(AssertionError, match="the fast path would launch"):
        k(x, 1, x)


def test_references_are_balanced(recorder, cupy):
    recorder.devices = 2
    for xp in (np, cupy):
        k, t, (x, y, z) = add(), total(), arrays(xp=xp)

        def calls(k=k, t=t, x=x, y=y, z=z):
            for _ in range(50):
                k(x, y, z)
                k(x, 2.0)
                k(x, y)
                t(x, axis=0)
                t(x, out=z[:1].reshape(()) if isinstance(z, np.ndarray) else None)
            recorder.launches.clear()

        for _ in range(3):
            calls()
        watched = (x, y, z, np.float32, recorder, None, np.dtype("f4"))
        before = [sys.getrefcount(each) for each in watched[:5]]
        calls()
        gc.collect()
        assert [sys.getrefcount(each) for each in watched[:5]] == before


def test_kernels_are_collected_with_what_they_remember(recorder):
    k, given = add(), arrays()
    for _ in range(4):
        k(*given)
    k.itself = k
    seen = weakref.ref(given[0])
    kernel = weakref.ref(k) if hasattr(type(k), "__weakref__") else None
    del k, given
    recorder.launches.clear()
    gc.collect()
    assert seen() is None
    assert kernel is None or kernel() is None


def test_many_calls_need_no_memory(recorder):
    k, (x, y, _) = add(), arrays()

    def calls():
        for _ in range(300):
            k(x, y)
        recorder.launches.clear()

    calls()
    tracemalloc.start()
    try:
        calls()
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        calls()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 4000


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 1, 4, 1, 2, 2)])
def test_axes_are_read_as_they_are(cupy, shape):
    from gridstride._native import _launcher

    x = np.zeros(shape, np.int16)
    assert _launcher.axes_of(x) == (shape, None)
    y = np.zeros((*shape, 2), np.int16)[..., 0]
    expected = None if y.flags.c_contiguous else y.strides
    assert _launcher.axes_of(y) == (shape, expected)
    assert _launcher.axes_of(cupy.ndarray(shape, np.int16)) == (shape, None)
    assert _launcher.axes_of("text") is None
