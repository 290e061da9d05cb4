"""CuPy's arrays on the compiled fast path: their fields are read where they were found, no device is needed."""

import ctypes
import sys
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from native_support import kernel

import gridstride as gs
from gridstride import _native
from gridstride._runtime import keeping
from gridstride.targets.base import CType, Parameter

cupy = pytest.importorskip("cupy", exc_type=ImportError)
pytest.importorskip("gridstride._native._launcher", exc_type=ImportError)
from gridstride._native import cupy_shortcuts  # noqa: E402

ADDRESS = 2**20
NULL = types.SimpleNamespace(ptr=0)


@pytest.fixture
def recorder(recorder):
    """The target with several devices; CuPy's arrays were met, so the first call is made natively."""
    _native.meet()
    recorder.devices = 4
    return recorder


@pytest.fixture(autouse=True)
def null_stream(monkeypatch):
    """Name a current stream where there is no device, on which CuPy names none."""
    if not cupy.is_available():
        monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda device=-1: NULL)


def array(shape, dtype=np.float32, strides=None, offset=0, device=0):
    memory = cupy.cuda.UnownedMemory(ADDRESS, 2**16, None, device)
    return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, offset), strides)


SHAPES = {
    "no axes": ((), None),
    "one axis": ((7,), None),
    "rows": ((2, 3), None),
    "columns": ((2, 3), (16, 32)),
    "steps": ((5,), (32,)),
    "empty": ((0, 3), None),
    "large": ((2**33,), None),
}


@pytest.mark.parametrize(("shape", "strides"), SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "f4", "c16"])
def test_fields_are_where_they_were_found(shape, strides, dtype):
    """Without a layout arrays are read as attributes, which is right but slow."""
    layout = cupy_shortcuts.find_layout(cupy)
    assert layout is not None
    x = array(shape, dtype, strides, offset=32, device=3)

    def read(kind, of, at):
        return kind.from_address(id(of) + at).value

    assert read(ctypes.c_void_p, x, layout.data) == id(x.data)
    assert read(ctypes.c_void_p, x, layout.dtype) == id(x.dtype)
    assert read(ctypes.c_ssize_t, x, layout.size) == x.size
    assert read(ctypes.c_int, x, layout.c_contiguous) == x._c_contiguous
    assert read(ctypes.c_size_t, x.data, layout.ptr) == x.data.ptr == ADDRESS + 32
    assert read(ctypes.c_int, x.data, layout.device_id) == x.data.device_id == 3


def test_hits(recorder):
    k = kernel("float* x, const float* y, const double* z, int n")
    calls = [
        (array(8), array(8, offset=64), array((2, 3), np.float64), 1),
        (array((2, 4), offset=4), array((0, 4)), array((), np.float64, offset=8), 2),
        (array(8).T, array((1, 8), strides=(4, 4)), None, 3),
    ]
    k(1, 32, calls[0])
    for x, y, z, n in calls:
        k(1, 32, (x, y, z, n))
        addresses = [0 if each is None else each.data.ptr for each in (x, y, z)]
        packed = b"".join(address.to_bytes(8, "little") for address in addresses) + n.to_bytes(4, "little")
        assert recorder.launches[-1] == ("native", ((1, 1, 1), (32, 1, 1), 0, 0, packed, 0))


REFUSED = {
    "steps": lambda: array(4, strides=(8,)),
    "columns": lambda: array((2, 4), strides=(4, 8)),
    "dtype": lambda: array(8, np.int32),
    "byte offset": lambda: array(8, offset=4),
    "size": lambda: array(6),
    "device": lambda: array(8, device=1),
}


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("position", [0, 1])
def test_refused_arrays_get_the_pipelines_error(recorder, monkeypatch, refused, position):
    pointer = CType(
        "pointer", "float4 *", 8, 8, pointee=CType("vector", "float4", 16, 16, np.dtype(np.float32), 4)
    )
    recorder.signatures["f"] = (Parameter("x", pointer, 0), Parameter("y", pointer, 8))
    arguments = [array(8), array(8)]
    arguments[position] = refused()
    warm, cold = kernel("float4* x, float4* y"), kernel("float4* x, float4* y")
    warm(1, 32, (array(8), array(8)))
    with pytest.raises(TypeError) as got:
        warm(1, 32, tuple(arguments))
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", "0")
    with pytest.raises(TypeError) as expected:
        cold(1, 32, tuple(arguments))
    assert str(got.value) == str(expected.value)
    assert recorder.who() == ["native"]


def test_an_array_of_another_device_is_launched_there(recorder):
    if cupy.is_available() and cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("CuPy keeps a current stream for each device, and there is one")
    k = kernel("float* x")
    for device in (0, 1, 0, 1):
        k(1, 32, (array(8, device=device),))
    assert recorder.who() == ["native", "pipeline", "native", "native"]


def test_subclasses_are_left_to_the_pipeline(recorder):
    class Sub(cupy.ndarray):
        pass

    k, x = kernel("float* x"), array(8)
    k(1, 32, (x,))
    k(1, 32, (Sub((8,), np.float32, x.data),))
    assert recorder.who() == ["native", "pipeline"]


def test_references_are_balanced(recorder):
    k, x = kernel("float* x"), array(8)
    k(1, 32, (x,))

    def references():
        return [sys.getrefcount(each) for each in (x, x.data, x.dtype)]

    before = references()
    for _ in range(2000):
        k(1, 32, (x,))
    assert all(abs(now - then) < 1000 for now, then in zip(references(), before, strict=True))


@pytest.mark.gpu
def test_the_current_stream_of_every_thread_is_found(recorder):
    k, x = kernel("float* x"), cupy.zeros(8, np.float32)
    keeping.begin()  # else the first launch in another stream goes through the pipeline
    k(1, 32, (x,))
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        k(1, 32, (x,))
        with ThreadPoolExecutor(1) as thread:
            thread.submit(k, 1, 32, (x,)).result()
        with cupy.cuda.Stream.ptds:
            k(1, 32, (x,))
        k(1, 32, (x,))
    k(1, 32, (x,))
    expected = [stream.ptr, 0, cupy.cuda.Stream.ptds.ptr, stream.ptr, 0]
    assert [(who, what[5]) for who, what in recorder.launches[1:]] == [("native", each) for each in expected]
    assert cupy_shortcuts.learn_stream(cupy), "CuPy's own function was not found"


@pytest.mark.parametrize(("shape", "strides"), SHAPES.values(), ids=SHAPES)
def test_axes_are_where_they_were_found(recorder, shape, strides):
    from gridstride._native import _launcher

    layout = cupy_shortcuts.find_layout(cupy)
    assert layout.lengths > 0
    assert layout.steps > 0
    x = array(shape, np.float32, strides)
    assert _launcher.axes_of(x) == (x.shape, None if x.flags.c_contiguous else x.strides)


def test_elementwise_calls(recorder):
    k = gs.ElementwiseKernel("T x", "T y", "y = x", "copy")
    for _ in range(3):
        k(array((3, 4), strides=(64, 8)), array((3, 4), offset=4096))
    assert recorder.who() == ["pipeline", "pipeline", "native"]
    assert recorder.launches[2][1] == recorder.launches[0][1]
    k(array((4, 3), strides=(64, 8)), array((4, 3), offset=4096))
    k(array((3, 4), strides=(128, 8)), array((3, 4), offset=4096))
    assert recorder.who()[3:] == ["pipeline", "pipeline"]
