"""Array kernels on the compiled fast path, on targets that run kernels."""

import threading

import numpy as np
import pytest

import gridstride as gs
from gridstride import _native
from tests.crosses import in_turns

pytestmark = pytest.mark.skipif(not _native.is_compiled(), reason="the extension is not built")

AXPY = ("T a, T x, T y", "T z", "z = a * x + y", "axpy_again")
TOTAL = ("T x", "T y", "x", "a + b", "y = a", "0", "total_again")
MODES = pytest.mark.parametrize("mode", ["1", "0", "verify"])


@pytest.fixture(autouse=True)
def on(monkeypatch):
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", "1")


@pytest.fixture
def hits():
    before, _ = _native.statistics()
    return lambda: _native.statistics()[0] - before


@MODES
@pytest.mark.parametrize("given", [True, False])
def test_repeated_elementwise_calls(target, xp, monkeypatch, hits, mode, given):
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", mode)
    k = gs.ElementwiseKernel(*AXPY)
    for round_ in range(6):
        x, y = xp.arange(round_, 1000 + round_, dtype=np.float32), xp.ones(1000, np.float32)
        z = k(round_, x, y, xp.zeros(1000, np.float32)) if given else k(round_, x, y)
        np.testing.assert_array_equal(gs.asnumpy(z), round_ * gs.asnumpy(x) + 1)
    assert hits() == (0 if mode == "0" else 4)


@MODES
@pytest.mark.parametrize(
    ("shape", "axis"),
    in_turns([(100,), (300_000,), (700, 900), (3, 50_000, 2)], [None, 0, -1, (0,)]),
)
def test_repeated_reductions(target, xp, monkeypatch, hits, mode, shape, axis):
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", mode)
    k = gs.ReductionKernel(*TOTAL)
    size = int(np.prod(shape))
    for round_ in range(5):
        x = xp.arange(size, dtype=np.int64).reshape(shape) + round_
        expected = gs.asnumpy(x).sum(axis)
        np.testing.assert_array_equal(gs.asnumpy(k(x, axis=axis)), expected)
        out = xp.zeros(expected.shape, np.int64)
        assert k(x, axis=axis, out=out) is out
        np.testing.assert_array_equal(gs.asnumpy(out), expected)
    assert hits() == (0 if mode == "0" else 6)


@MODES
def test_random_layouts(target, xp, monkeypatch, hits, mode):
    """The same layouts over other memory, with steps, broadcasting, axes in any order and starts anywhere."""
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", mode)
    generator = np.random.default_rng(7)
    add, total = gs.ElementwiseKernel("T x, T y", "T z", "z = 3 * x + y", "three"), gs.ReductionKernel(*TOTAL)
    for _ in range(25):
        ndim = int(generator.integers(1, 5))
        shape = tuple(int(n) for n in generator.integers(1, 7, ndim))
        order = tuple(int(n) for n in generator.permutation(ndim))
        steps = tuple(int(n) for n in generator.choice([1, 2, -1], ndim))
        start, dtype = int(generator.integers(0, 5)), generator.choice(["i1", "i4", "f4", "f8", "c8"])
        narrow = tuple(1 if generator.integers(0, 3) == 0 else n for n in shape)
        axis = int(generator.integers(0, ndim))

        def make(shape, order=order, steps=steps, start=start, dtype=dtype):
            room = [shape[k] * abs(steps[k]) for k in order]
            flat = xp.asarray(generator.integers(0, 100, int(np.prod(room)) + start).astype(dtype))
            whole = flat[start:].reshape(room).transpose(np.argsort(order))
            return whole[tuple(slice(None, None, step) for step in steps)][tuple(slice(n) for n in shape)]

        for _ in range(3):
            x, y, z = make(shape), make(narrow), make(shape)
            expected = (3 * gs.asnumpy(x) + gs.asnumpy(y)).astype(dtype)
            add(x, y, z)
            np.testing.assert_array_equal(gs.asnumpy(z), expected)
            np.testing.assert_array_equal(gs.asnumpy(add(x, y)), expected)
            np.testing.assert_array_equal(gs.asnumpy(total(x, axis=axis)), gs.asnumpy(x).sum(axis, dtype))
    assert hits() == 0 if mode == "0" else hits() >= 40


def test_overlap_is_seen_anew(target, xp, hits):
    """An input that comes to overlap the output is copied first, as at the first call."""
    k = gs.ElementwiseKernel("T x", "T y", "y = 2 * x + 1", "twice_again")
    for _ in range(3):
        k(xp.arange(60, dtype=np.float32), xp.zeros(60, np.float32))
    whole = xp.arange(64, dtype=np.float32)
    k(whole[:60], whole[4:])
    np.testing.assert_array_equal(gs.asnumpy(whole)[4:], 2 * np.arange(60) + 1)
    assert hits() == 1
    x = xp.arange(60, dtype=np.float32)
    assert k(x, x) is x
    np.testing.assert_array_equal(gs.asnumpy(x), 2 * np.arange(60) + 1)
    assert hits() == 2
    total = gs.ReductionKernel(*TOTAL)
    for _ in range(3):
        total(xp.ones((4, 4), np.float32), axis=0, out=xp.zeros(4, np.float32))
    whole = xp.ones((4, 4), np.float32)
    total(whole, axis=0, out=whole[2])
    np.testing.assert_array_equal(gs.asnumpy(whole), [[1] * 4, [1] * 4, [4] * 4, [1] * 4])


def test_outputs_that_come_to_overlap_are_refused(target, xp):
    k = gs.ElementwiseKernel("T x", "T y, T z", "y = x; z = -x", "both_again")
    x, whole = xp.arange(8, dtype=np.float64), xp.zeros(16, np.float64)
    for _ in range(3):
        k(x, whole[:8], whole[8:])
    with pytest.raises(ValueError, match="share memory"):
        k(x, whole[:8], whole[2:10])
    np.testing.assert_array_equal(gs.asnumpy(whole)[:8], np.arange(8))


def test_layouts_and_starts_are_told_apart(target, xp):
    k = gs.ElementwiseKernel("T x", "T y", "y = x + 1", "one_more")
    whole = xp.arange(256, dtype=np.int8)
    for _ in range(3):
        for start in (0, 1, 5, 16):
            for step in (1, 2, -1):
                x = whole[start : start + 96 : step] if step > 0 else whole[start : start + 96][::-1]
                np.testing.assert_array_equal(gs.asnumpy(k(x)), gs.asnumpy(x) + 1)
        np.testing.assert_array_equal(
            gs.asnumpy(k(whole.reshape(16, 16).T)), np.arange(256).reshape(16, 16).T.astype("i1") + 1
        )


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"])
def test_numbers_of_every_dtype(target, xp, hits, dtype):
    k = gs.ElementwiseKernel("T x, T a", "T y", "y = a", "constant_again")
    x = xp.zeros(5, dtype)
    for number in (1, True, np.dtype(dtype).type(1)):
        for _ in range(4):
            np.testing.assert_array_equal(gs.asnumpy(k(x, number)), np.ones(5, dtype))
    assert hits() == 6


@pytest.mark.parametrize(("dtype", "wrong"), [("i1", 128), ("u2", -1), ("f4", 1e39), ("f2", 1e6)])
def test_numbers_that_do_not_fit_get_the_pipelines_error(target, xp, dtype, wrong):
    k = gs.ElementwiseKernel("T x, T a", "T y", "y = a", "constant_refused")
    x = xp.zeros(5, dtype)
    for _ in range(3):
        k(x, type(wrong)(1))
    with pytest.raises(OverflowError, match="constant_refused"):
        k(x, wrong)


def test_what_a_call_returns(target, xp, hits):
    x = xp.arange(4, dtype=np.float32)
    nothing = gs.ElementwiseKernel("T x", "T y", "y = x", "nothing", no_return=True)
    one = gs.ElementwiseKernel("T x", "T y", "y = x", "one", return_tuple=True)
    two = gs.ElementwiseKernel("T x", "T y, T z", "y = x; z = 2 * x", "two")
    y, z = xp.zeros(4, np.float32), xp.zeros(4, np.float32)
    for _ in range(3):
        assert nothing(x, y) is None
        assert [type(one(x)), len(one(x))] == [tuple, 1]
        made, twice = two(x)
        np.testing.assert_array_equal(gs.asnumpy(twice), 2 * gs.asnumpy(made))
        given = two(x, y, z)
        assert given[0] is y
        assert given[1] is z
    assert hits() == 7


def test_keywords_of_reductions(target, xp, hits):
    k = gs.ReductionKernel(*TOTAL)
    x = xp.arange(24, dtype=np.int32).reshape(2, 3, 4)
    host = gs.asnumpy(x)
    for _ in range(3):
        for axis in (None, 0, 1, (0, 2), (0, 1, 2), ()):
            for keepdims in (False, True):
                found = k(x, axis=axis, keepdims=keepdims)
                np.testing.assert_array_equal(gs.asnumpy(found), host.sum(axis=axis, keepdims=keepdims))
        for dtype in (np.int32, np.float64, "float32", np.dtype("i8")):
            found = k(x, dtype=dtype)
            assert found.dtype == dtype
            assert int(found) == host.sum()
    assert hits() == 12 + 4
    with pytest.raises(TypeError, match="twice"):
        k(x, xp.zeros((), np.int32), out=xp.zeros((), np.int32))


def test_sizes_and_raw_arrays(target, xp, hits):
    k = gs.ElementwiseKernel("raw T x", "raw T y", "y[i] = x[n - 1 - i]", "backwards_again")
    for _ in range(3):
        x, y = xp.arange(10, dtype=np.int16), xp.zeros(10, np.int16)
        k(x, y, size=10)
        np.testing.assert_array_equal(gs.asnumpy(y), np.arange(10)[::-1])
    k(x, y, size=4)
    np.testing.assert_array_equal(gs.asnumpy(y)[:4], [3, 2, 1, 0])
    assert hits() == 1


def test_many_shapes(target, xp, hits):
    k = gs.ElementwiseKernel("T x", "T y", "y = x + 1", "shapes_again")
    for _ in range(3):
        for n in range(1, 100):
            np.testing.assert_array_equal(gs.asnumpy(k(xp.zeros(n, np.float32))), np.ones(n))
    assert hits() >= 90  # few share a place


def test_threads_share_a_kernel(target, xp):
    k = gs.ElementwiseKernel(*AXPY)
    wrong = []

    def run(number):
        x, y = xp.arange(number, 100 + number, dtype=np.float32), xp.ones(100, np.float32)
        expected = number * gs.asnumpy(x) + 1
        for _ in range(50):
            if not np.array_equal(gs.asnumpy(k(number, x, y)), expected):
                wrong.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_streams(target, xp):
    k = gs.ElementwiseKernel(*AXPY)
    x, y = xp.arange(100, dtype=np.float32), xp.zeros(100, np.float32)
    stream = gs.cuda.Stream()
    for _ in range(3):
        k(1.0, x, y, y, stream=stream)
    with stream:
        for _ in range(3):
            k(1.0, x, y, y)
    stream.synchronize()
    np.testing.assert_array_equal(gs.asnumpy(y), 6 * np.arange(100))


def test_launches_follow_the_number_of_threads(target, xp, hits):
    if "threads" not in target.features:
        pytest.skip("the target runs kernels on no host threads")
    k, x = gs.ElementwiseKernel("T x", "T y", "y = x + 1", "threads_again"), xp.zeros(1 << 18, np.float32)
    before = gs.get_num_threads()
    blocks = []
    try:
        for count in (1, 3):
            gs.set_num_threads(count)
            for _ in range(3):
                k(x)
            (how,) = (step.configuration for step in k._launch(x).prepared.steps)
            blocks.append(how.grid[0])
    finally:
        gs.set_num_threads(before)
    assert blocks[0] == 1
    assert blocks[1] >= 3
    assert hits() == 3
