"""The compiled fast path: what it replays, and what it leaves to the pipeline."""

import gc
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest
from native_support import kernel, left_to_pipeline, replayed

import gridstride as gs
from gridstride import _native, arrays
from gridstride._compilation.functions import LoadedFunction, forget_programs
from gridstride._pipeline import PreparedKernel
from gridstride.errors import LaunchError
from gridstride.targets.base import CType, Parameter

pytestmark = pytest.mark.skipif(not _native.is_compiled(), reason="the extension is not built")


# ---- the form of a call ----


def test_forms_of_grid_and_block(recorder):
    k = kernel("int a")
    k(1, 32, (0,))
    for grid, block in ((3, 4), ((3,), (4,)), ((3, 1), (4, 1, 1))):
        k(grid, block, (0,))
        assert recorder.launches[-1] == ("native", ((3, 1, 1), (4, 1, 1), 0, 0, bytes(4), 0))
    k((2, 3, 4), (5, 6, 7), (0,))
    assert recorder.launches[-1] == ("native", ((2, 3, 4), (5, 6, 7), 0, 0, bytes(4), 0))


def test_keywords_and_lists(recorder):
    k = kernel("int a")
    k(1, 32, (0,))
    k(block=4, grid=3, args=[7], shared_mem=16, stream=None)
    k(3, 4, shared_mem=16, args=(7,))
    expected = ("native", ((3, 1, 1), (4, 1, 1), 16, 0, b"\7\0\0\0", 0))
    assert recorder.launches[1:] == [expected, expected]


def test_calls_without_arguments(recorder):
    k = kernel("")
    for call in (lambda: k(1, 32), lambda: k(1, 32, ()), lambda: k(1, 32, []), lambda: k(1, 32, args=())):
        call()
    assert recorder.who() == ["pipeline", "native", "native", "native"]


def test_other_forms_are_left_to_the_pipeline(recorder):
    k = kernel("int a")
    k(1, 32, (0,))
    for grid in ([3], np.int64(3), (np.int32(3),), True):
        left_to_pipeline(recorder, lambda grid=grid: k(grid, 4, (0,)))


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda k: k(0, 32, (0,)), ValueError, "at least 1"),
        (lambda k: k(1, (1, 2, 3, 4), (0,)), ValueError, "1 to 3"),
        (lambda k: k(1, 1024, (0,)), ValueError, "512"),
        (lambda k: k(1, 4096, (0,)), ValueError, "block.x"),
        (lambda k: k(1, (2**16, 2**16), (0,)), ValueError, "block.x"),
        (lambda k: k(1, (1, 1, 65), (0,)), ValueError, "block.z"),
        (lambda k: k((1, 65536), 32, (0,)), ValueError, "grid.y"),
        (lambda k: k(2**31, 32, (0,)), ValueError, "grid.x"),
        (lambda k: k(2**40, 32, (0,)), ValueError, "grid.x"),
        (lambda k: k(1, 32, (0,), 232449), ValueError, "shared memory"),
        (lambda k: k(1, 32, (0,), -1), ValueError, "shared_mem"),
        (lambda k: k(1, 32, (0,), 2**33), ValueError, "shared_mem"),
        (lambda k: k(1, 32, (0,), 1.5), TypeError, "shared_mem"),
        (lambda k: k(1, 32, ()), TypeError, "takes 1 arg"),
        (lambda k: k(1, 32), TypeError, "takes 1 arg"),
        (lambda k: k(1, 32, (0, 0)), TypeError, "takes 1 arg"),
        (lambda k: k(1, 32, 0), TypeError, "args"),
        (lambda k: k(1), TypeError, "block"),
        (lambda k: k(), TypeError, "grid"),
        (lambda k: k(1, 32, (0,), 0, None, 0), TypeError, "positional"),
        (lambda k: k(1, 32, (0,), size=3), TypeError, "size"),
        (lambda k: k(1, 32, (0,), grid=3), TypeError, "grid"),
        (lambda k: k(1, 32, (0,), stream="x"), TypeError, "stream"),
    ],
)
def test_wrong_calls_get_the_pipelines_error(recorder, call, error, match):
    k = kernel("int a")
    k(1, 32, (0,))
    with pytest.raises(error, match=match):
        call(k)
    assert recorder.who() == ["pipeline"]
    k(1, 32, (0,))
    assert recorder.who() == ["pipeline", "native"]


def test_static_shared_memory_counts(recorder):
    recorder.shared_size = 232448 - 100
    k = kernel("int a")
    k(1, 32, (0,))
    k(1, 32, (0,), 100)
    assert recorder.who() == ["pipeline", "native"]
    with pytest.raises(ValueError, match="static"):
        k(1, 32, (0,), 101)


def test_cooperative_launches(recorder):
    k = kernel("int a", enable_cooperative_groups=True)
    assert replayed(recorder, lambda: k(1, 32, (0,)))[3] == 1


def test_setting_an_attribute_forgets_what_was_launched(recorder):
    k = kernel("int a")
    k(1, 32, (0,))
    k.max_dynamic_shared_size_bytes = 65536
    k(1, 32, (0,))
    k(1, 32, (0,))
    assert recorder.who() == ["pipeline", "pipeline", "native"]


def test_functions_that_serve_one_configuration(recorder):
    recorder.specializes = True
    k = kernel("int a")
    for block in (32, 64, 32, 64, 32):
        k(1, block, (0,))
    assert recorder.who() == ["pipeline"] * 2 + ["native"] * 3


def test_the_oldest_of_many_configurations_is_forgotten(recorder):
    recorder.specializes = True
    k = kernel("int a")
    for block in range(1, 18):
        k(1, block, (0,))
    k(1, 17, (0,))
    k(1, 1, (0,))
    assert recorder.who() == ["pipeline"] * 17 + ["native", "pipeline"]


def test_kernels_with_other_parameters_are_left_to_the_pipeline(recorder):
    recorder.signatures["f"] = (Parameter("a", CType("vector", "float2", 8, 8, np.dtype(np.float32), 2), 0),)
    k = kernel("float2 a")
    for _ in range(3):
        k(1, 32, ((1.0, 2.0),))
    assert recorder.who() == ["pipeline"] * 3


# ---- modes and counts ----


def test_switched_off(recorder, monkeypatch):
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", "0")
    k = kernel("int a")
    for _ in range(3):
        k(1, 32, (0,))
    assert recorder.who() == ["pipeline"] * 3


def test_verify_mode_sends_hits_through_the_pipeline(recorder, monkeypatch):
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", "verify")
    k = kernel("int a, float* x")
    x = np.zeros(4, np.float32)
    hits, misses = _native.statistics()
    for _ in range(3):
        k(1, 32, (0, x))
    assert recorder.who() == ["pipeline"] * 3
    assert _native.statistics() == (hits + 2, misses + 1)


def use_signature(kernel, signature):
    """Let the pipeline see other parameters than those that the fast path was told of."""
    for place, prepared in list(kernel.prepared.items()):
        loaded = LoadedFunction(prepared.loaded.name, prepared.loaded.function, signature)
        kernel.prepared[place] = PreparedKernel(
            prepared.name, place[0], prepared.program, loaded, prepared.attributes, prepared.limits,
            prepared.layouts,
        )  # fmt: skip


def test_verify_mode_finds_differences(recorder, monkeypatch):
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", "verify")
    k = kernel("int a")
    k(1, 32, (1,))
    use_signature(k, (Parameter("a", CType("scalar", "long long", 8, 8, np.dtype(np.int64)), 0),))
    with pytest.raises(AssertionError, match=r"(?s)pipeline launched.*fast path would launch"):
        k(1, 32, (1,))


def test_verify_mode_finds_calls_that_the_pipeline_refuses(recorder, monkeypatch):
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", "verify")
    k = kernel("int a")
    k(1, 32, (1,))
    use_signature(k, ())
    with pytest.raises(AssertionError, match=r"(?s)would launch.*takes 0 arguments"):
        k(1, 32, (1,))


def test_watchers_see_every_call(recorder):
    k = kernel("int a")
    k(1, 32, (0,))
    prepared = k.prepare(1, 32, (0,))
    _native.watchers(+1)
    try:
        k(1, 32, (0,))
        prepared()
    finally:
        assert _native.watchers(-1) == 0
    k(1, 32, (0,))
    prepared()
    assert recorder.who() == ["pipeline"] * 3 + ["native"] * 2


def test_hits_and_misses_are_counted(recorder):
    k = kernel("int a")
    hits, misses = _native.statistics()
    for _ in range(5):
        k(1, 32, (0,))
    assert _native.statistics() == (hits + 4, misses + 1)


# ---- failures ----


def test_failures_are_worded_by_the_function(recorder):
    k = kernel("int a")
    k(1, 32, (0,))
    recorder.code = 719
    with pytest.raises(LaunchError, match="`f` failed with code 719") as caught:
        k(1, 32, (0,))
    assert caught.value.code == 719
    recorder.code = 0
    k(1, 32, (0,))
    assert recorder.who() == ["pipeline", "native"]


def test_routines_may_leave_a_call_to_the_pipeline(recorder):
    k = kernel("int a")
    prepared = k.prepare(1, 32, (0,))
    k(1, 32, (0,))
    recorder.code = -1
    k(1, 32, (0,))
    prepared()
    assert recorder.who() == ["pipeline"] * 3


def test_launches_release_the_interpreter(recorder):
    """A launch that waits for another thread ends only if that thread can run."""
    k = kernel("int a")
    k(1, 32, (0,))
    barrier = threading.Barrier(2, timeout=60)
    launch = recorder._launch_natively
    recorder.routine = type(recorder.routine)(lambda *call: (barrier.wait(), launch(*call))[1])
    k = kernel("int a")
    k(1, 32, (0,))
    threads = [threading.Thread(target=k, args=(1, 32, (number,))) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(recorder.who()) == ["native"] * 2 + ["pipeline"] * 2


def test_many_threads(recorder):
    k = kernel("int a, float* x")
    x = np.zeros(4, np.float32)

    def launch(first):
        for number in range(first, first + 200):
            k(1, 32, (number, x))

    threads = [threading.Thread(target=launch, args=(1000 * t,)) for t in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    packed = sorted(int.from_bytes(what[4][:4], "little") for _, what in recorder.launches)
    assert packed == sorted(1000 * t + number for t in range(8) for number in range(200))


# ---- prepared launches ----


def test_prepared_launches_repeat(recorder):
    x = np.zeros(4, np.float32)
    k = kernel("float* x, int n", enable_cooperative_groups=True)
    k((2, 3), (4, 5), (x, 7), 16)
    prepared = k.prepare((2, 3), (4, 5), args=(x, 7), shared_mem=16)
    assert len(recorder.launches) == 1
    assert prepared() is None
    prepared()
    assert recorder.launches[1:] == [("native", recorder.launches[0][1])] * 2


def test_prepared_launches_are_checked_when_they_are_made(recorder):
    k = kernel("float* x")
    with pytest.raises(TypeError, match="parameter `x`"):
        k.prepare(1, 32, (np.zeros(4),))
    with pytest.raises(ValueError, match="at least 1"):
        k.prepare(0, 32, (None,))
    prepared = k.prepare(1, 32, (None,))
    with pytest.raises(TypeError, match="no arguments"):
        prepared(1)
    with pytest.raises(TypeError):
        type(prepared)()


def test_prepared_launches_keep_their_arrays(recorder):
    x = np.zeros(4, np.float32)
    address, owner = x.ctypes.data, weakref.ref(x)
    prepared = kernel("float* x").prepare(1, 32, (x,))
    del x
    gc.collect()
    assert owner() is not None
    prepared()
    assert recorder.launches[-1][1][4] == address.to_bytes(8, "little")
    del prepared
    gc.collect()
    assert owner() is None


def test_prepared_launches_fail_like_calls(recorder):
    prepared = kernel("int a").prepare(1, 32, (0,))
    recorder.code = 700
    with pytest.raises(LaunchError, match="code 700"):
        prepared()


def test_prepared_launches_keep_their_stream(recorder):
    stream = gs.cuda.Stream()
    k = kernel("int a")
    with stream:
        prepared = k.prepare(1, 32, (0,))
    prepared()
    assert recorder.launches == [("pipeline", ((1, 1, 1), (32, 1, 1), 0, 0, bytes(4), stream.ptr))]


# ---- lifetimes ----


def test_kernels_are_collected_with_what_they_remember(recorder):
    k = kernel("float* x")
    x = np.zeros(4, np.float32)
    k(1, 32, (x,))
    k(1, 32, (x,))
    k.cycle = k
    gone = weakref.ref(k)
    function = weakref.ref(next(iter(k.prepared.values())).loaded.function)
    forget_programs()
    del k
    gc.collect()
    assert gone() is None
    assert function() is None


def test_functions_live_as_long_as_they_can_be_launched(recorder):
    k = kernel("int a")
    k(1, 32, (0,))
    function = weakref.ref(next(iter(k.prepared.values())).loaded.function)
    k.prepared.clear()
    forget_programs()
    gc.collect()
    assert function() is not None
    k(1, 32, (0,))
    assert recorder.who() == ["pipeline", "native"]


def test_references_are_balanced(recorder, cupy):
    k = kernel("float* x, int n, float a, complex<double> z")
    x, c, stream = np.zeros(4, np.float32), cupy.empty(4, np.float32), gs.cuda.Stream(null=True)
    objects = [x, c, stream, x.dtype, 123456789, 2.5, 3j, np.float32(7), np.int8(3), recorder, None]
    grid, arguments = (
        (1,),
        [(x, 123456789, 2.5, 3j), (x, np.int8(3), np.float32(7), 3j), (c, 123456789, 2.5, 3j)],
    )

    def everything():
        for args in arguments:
            k(grid, 32, args)
            k(grid, 32, list(args), stream=stream)
            k(grid, 32, args, shared_mem=4, stream=0)
            with pytest.raises(TypeError):
                k(grid, 32, (*args, 0))

    for _ in range(20):
        everything()
        recorder.launches.clear()
    gc.collect()
    before = [sys.getrefcount(each) for each in objects]
    for _ in range(300):
        everything()
        recorder.launches.clear()
    gc.collect()
    assert all(abs(sys.getrefcount(each) - count) < 100 for each, count in zip(objects, before, strict=True))


def test_many_calls_need_no_memory(recorder):
    k = kernel("float* x, int n")
    x = np.zeros(4, np.float32)
    prepared = k.prepare(1, 32, (x, 5))
    recorder.code = -2  # so that the recorder keeps nothing

    def calls(count):
        for _ in range(count):
            for call in (prepared, lambda: k((1, 1), (32,), (x, 123456))):
                try:
                    call()
                except LaunchError:
                    pass

    recorder.code = 0
    k(1, 32, (x, 5))
    recorder.code = -2
    calls(100)
    tracemalloc.start()
    try:
        calls(100)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        calls(10_000)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()


def test_views_agree_with_the_adapters(recorder):
    """What C reads of an array is what the adapter says."""
    rng = np.random.default_rng(0)
    k = kernel("const void* x")
    k(1, 32, (np.zeros(1),))
    for _ in range(200):
        x = np.zeros(rng.integers(0, 4, rng.integers(1, 5)), rng.choice([np.int8, np.float64]))
        x = x[tuple(slice(int(rng.integers(0, 2)), None) for _ in x.shape)]
        x = x.transpose(rng.permutation(x.ndim))
        seen = arrays.view(x)
        if seen.c_contiguous:
            k(1, 32, (x,))
            assert recorder.launches[-1][1][4] == seen.address.to_bytes(8, "little")
            assert recorder.who()[-1] == "native"
        else:
            with pytest.raises(TypeError, match="contiguous"):
                k(1, 32, (x,))
