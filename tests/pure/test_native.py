"""The compiled fast path: what it replays, and what it leaves to the pipeline."""

import ctypes
import gc
import itertools
import struct
import sys
import threading
import tracemalloc
import weakref

import fake_cupy
import numpy as np
import pytest
from native_support import Recorder

import gridstride as gs
from gridstride import _native, arrays
from gridstride._compilation.functions import LoadedFunction, forget_programs
from gridstride._pipeline import PreparedKernel
from gridstride._runtime import keeping
from gridstride.errors import LaunchError
from gridstride.targets import registry
from gridstride.targets.base import CType, Parameter

pytestmark = pytest.mark.skipif(not _native.is_compiled(), reason="the extension is not built")

SCALARS = {
    "bool": np.bool_,
    "signed char": np.int8,
    "unsigned char": np.uint8,
    "short": np.int16,
    "unsigned short": np.uint16,
    "int": np.int32,
    "unsigned": np.uint32,
    "long": np.int64,
    "unsigned long": np.uint64,
    "long long": np.int64,
    "unsigned long long": np.uint64,
    "float": np.float32,
    "double": np.float64,
    "complex<float>": np.complex64,
    "complex<double>": np.complex128,
}
INTEGERS = {ctype: dtype for ctype, dtype in SCALARS.items() if np.dtype(dtype).kind in "iu"}
HALVES = {"__half": np.float16}
TEXT = 'extern "C" __global__ void f({}) {{}}'
_numbers = itertools.count()


@pytest.fixture
def recorder(monkeypatch):
    target = Recorder()
    monkeypatch.setitem(registry._targets, target.name, target)
    monkeypatch.setattr(registry, "_found", {})
    monkeypatch.setenv("GRIDSTRIDE_TARGET", target.name)
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", "1")
    return target


@pytest.fixture
def cupy(monkeypatch):
    """CuPy with arrays that the C code has met."""
    module = fake_cupy.make_module()
    monkeypatch.setitem(sys.modules, "cupy", module)
    _native.meet()
    return module


def kernel(parameters, **options):
    """Return a kernel that no other test has compiled."""
    return gs.RawKernel(TEXT.format(parameters) + f"// {next(_numbers)}", "f", **options)


def replayed(recorder, call):
    """Make a call through the pipeline, let it be learnt, and make it natively with the same result."""
    through_pipeline(call)
    call()
    call()
    (first, expected), _, (second, got) = recorder.launches[-3:]
    assert (first, second) == ("pipeline", "native")
    assert got == expected
    return got


def through_pipeline(call):
    """Make a call while somebody watches."""
    _native.watchers(+1)
    try:
        call()
    finally:
        _native.watchers(-1)


def left_to_pipeline(recorder, call):
    """Make a call that the pipeline makes though the kernel was launched before."""
    call()
    assert recorder.who()[-1] == "pipeline"
    return recorder.launches[-1][1]


# ---- arrays ----


@pytest.mark.parametrize("ctype", [*SCALARS, *HALVES])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 1, 4)])
def test_arrays_of_every_dtype(recorder, ctype, shape):
    x = np.zeros(shape, {**SCALARS, **HALVES}[ctype])
    k = kernel(f"{ctype}* x, const {ctype}* y")
    got = replayed(recorder, lambda: k(1, 32, (x, x)))
    assert got[4] == 2 * x.__array_interface__["data"][0].to_bytes(8, "little")


def test_arrays_of_bfloat16(recorder):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.zeros(5, ml_dtypes.bfloat16)
    k = kernel("__nv_bfloat16* x")
    replayed(recorder, lambda: k(1, 32, (x,)))


@pytest.mark.parametrize("dtype", ["l", "q", "L", "Q"])
def test_both_integers_of_64_bits_are_one(recorder, dtype):
    x = np.zeros(5, dtype)
    k = kernel("unsigned long long* x" if dtype.isupper() else "long long* x")
    replayed(recorder, lambda: k(1, 32, (x,)))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_char_takes_both_signs(recorder, dtype):
    x = np.zeros(5, dtype)
    k = kernel("char* x")
    replayed(recorder, lambda: k(1, 32, (x,)))


@pytest.mark.parametrize("dtype", [np.bool_, np.float32, np.complex128, np.float16])
def test_void_pointers_take_every_dtype(recorder, dtype):
    x = np.zeros(5, dtype)
    k = kernel("const void* x")
    replayed(recorder, lambda: k(1, 32, (x,)))


def test_null_pointers(recorder):
    x = np.zeros(5, np.float32)
    k = kernel("float* x, float* y")
    assert replayed(recorder, lambda: k(1, 32, (None, x)))[4][:8] == bytes(8)


def test_pointers_to_pointers(recorder):
    x = np.zeros(5, np.uint64)
    k = kernel("float** x")
    replayed(recorder, lambda: k(1, 32, (x,)))


def test_parts_of_arrays(recorder):
    x = np.zeros((6, 4), np.float32)
    k = kernel("float* x")
    for part in (x[2:], x[1], x[:, :1][:1], x.reshape(3, 8), x.T[:1, :1]):
        k(1, 32, (part,))
        assert recorder.launches[-1][1][4] == part.__array_interface__["data"][0].to_bytes(8, "little")
    assert recorder.who() == ["pipeline"] + ["native"] * 4


def vector_pointer(name, dtype, components, alignment):
    pointee = CType(
        "vector", name, np.dtype(dtype).itemsize * components, alignment, np.dtype(dtype), components
    )
    return (Parameter("x", CType("pointer", f"{name} *", 8, 8, pointee=pointee), 0),)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_vectors_of_two_take_components_and_complex_numbers(recorder, dtype):
    recorder.signatures["f"] = vector_pointer("float2", np.float32, 2, 8)
    x = np.zeros(8, dtype)
    k = kernel("float2* x")
    replayed(recorder, lambda: k(1, 32, (x,)))


def test_vectors_need_whole_elements(recorder):
    recorder.signatures["f"] = vector_pointer("float4", np.float32, 4, 4)
    k = kernel("float4* x")
    k(1, 32, (np.zeros(8, np.float32),))
    with pytest.raises(TypeError, match="whole `float4`"):
        k(1, 32, (np.zeros(7, np.float32),))
    assert recorder.who() == ["pipeline"]


UNUSUAL = {
    "wrong dtype": lambda: np.zeros(4, np.float64),
    "swapped bytes": lambda: np.zeros(4, np.dtype(np.float32).newbyteorder()),
    "strided": lambda: np.zeros(8, np.float32)[::2],
    "Fortran order": lambda: np.zeros((3, 4), np.float32, "F"),
    "misaligned": lambda: np.zeros(17, np.uint8)[1:].view(np.float32),
    "read-only": lambda: np.broadcast_to(np.float32(1), (1,)),
    "masked": lambda: np.ma.zeros(4, np.float32),
    "structured": lambda: np.zeros(4, [("a", np.float32)]),
    "objects": lambda: np.array([None]),
    "an address": lambda: 4096,
    "a float": lambda: 1.0,
    "a scalar": lambda: np.float32(1),
    "text": lambda: "x",
    "an object": object,
}


@pytest.mark.parametrize("unusual", UNUSUAL.values(), ids=UNUSUAL)
@pytest.mark.parametrize("position", [0, 1])
def test_unusual_arguments_get_the_pipelines_errors(recorder, monkeypatch, unusual, position):
    x, argument = np.zeros(4, np.float32), unusual()
    arguments = [x, x]
    arguments[position] = argument
    warm, cold = kernel("float* x, float* y"), kernel("float* x, float* y")
    warm(1, 32, (x, x))
    with pytest.raises((TypeError, OverflowError)) as got:
        warm(1, 32, tuple(arguments))
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", "0")
    with pytest.raises(type(got.value)) as expected:
        cold(1, 32, tuple(arguments))
    assert str(got.value) == str(expected.value)
    assert recorder.who() == ["pipeline"]
    warm(1, 32, (x, x))
    assert recorder.who() == ["pipeline", "native"]


def test_read_only_arrays_go_to_const_pointers(recorder):
    x = np.zeros(4, np.float32)
    x.flags.writeable = False
    k = kernel("const float* x")
    replayed(recorder, lambda: k(1, 32, (x,)))


def test_other_array_likes_are_left_to_the_pipeline(recorder):
    x = np.zeros(4, np.float32)
    k = kernel("float* x")
    k(1, 32, (x,))

    class Sub(np.ndarray):
        pass

    for other in (memoryview(x), x.view(Sub), ctypes.c_void_p(x.ctypes.data)):
        expected = x.ctypes.data.to_bytes(8, "little")
        assert left_to_pipeline(recorder, lambda other=other: k(1, 32, (other,)))[4] == expected


# ---- scalars ----


def near_limits(dtype):
    info = np.iinfo(dtype)
    return [info.min, info.min + 1, 0, 1, info.max - 1, info.max]


@pytest.mark.parametrize("ctype", INTEGERS)
def test_integers_within_limits(recorder, ctype):
    k = kernel(f"{ctype} a, signed char b")
    k(1, 32, (0, 0))
    for number in near_limits(INTEGERS[ctype]):
        k(1, 32, (number, -1))
        size = np.dtype(INTEGERS[ctype]).itemsize
        expected = number.to_bytes(size, "little", signed=number < 0) + b"\xff"
        assert recorder.launches[-1] == ("native", ((1, 1, 1), (32, 1, 1), 0, 0, expected, 0))


@pytest.mark.parametrize("ctype", INTEGERS)
def test_integers_beyond_limits_get_the_pipelines_error(recorder, ctype):
    k = kernel(f"{ctype} a")
    k(1, 32, (0,))
    info = np.iinfo(INTEGERS[ctype])
    for number in (int(info.min) - 1, int(info.max) + 1, -(2**70), 2**70):
        with pytest.raises(OverflowError, match="cannot hold"):
            k(1, 32, (number,))
    assert recorder.who() == ["pipeline"]


FLOATS = [
    0.0,
    -0.0,
    1.0,
    -2.5,
    0.1,
    1e-40,
    1e-320,
    3e38,
    float("inf"),
    float("-inf"),
    float("nan"),
    2**53 + 1,
    7,
    True,
]


@pytest.mark.parametrize("ctype", ["float", "double", "complex<float>", "complex<double>"])
@pytest.mark.parametrize("number", FLOATS)
def test_floating_point(recorder, ctype, number):
    k = kernel(f"{ctype} a")
    assert (
        replayed(recorder, lambda: k(1, 32, (number,)))[4]
        == np.array(number).astype(SCALARS[ctype]).tobytes()
    )


def test_every_rounding_to_float16(recorder):
    """Each float16, what lies halfway to the next one, and its neighbors among float64."""
    k, finite = kernel("__half a"), np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    halfway = (finite[1:] + finite[:-1]) / 2
    chosen = np.concatenate(
        [finite, halfway, np.nextafter(halfway, 0), np.nextafter(halfway, 9e9), [65519.99, np.inf]]
    )
    numbers = [float(x) for x in np.concatenate([chosen, -chosen])[::7]]
    k(1, 32, (1.0,))
    for number in numbers:
        k(1, 32, (number,))
    packed = np.frombuffer(b"".join(what[4][:2] for _, what in recorder.launches[1:]), np.uint16)
    assert set(recorder.who()[1:]) == {"native"}
    np.testing.assert_array_equal(packed, np.array(numbers).astype(np.float16).view(np.uint16))


@pytest.mark.parametrize("number", [65520.0, -1e300, float("nan")])
def test_numbers_that_are_no_float16_are_left_to_the_pipeline(recorder, number):
    k = kernel("__half a")
    k(1, 32, (1.0,))
    if number == number:
        with pytest.raises(OverflowError, match="float16"):
            k(1, 32, (number,))
    else:
        k(1, 32, (number,))
        assert recorder.who()[-1] == "pipeline"


@pytest.mark.parametrize("number", [0.0, -0.0, 1, 1.00390625, 1.01171875, 3e38, -2.5e-40, float("inf"), True])
def test_bfloat16(recorder, number):
    k = kernel("__nv_bfloat16 a")
    replayed(recorder, lambda: k(1, 32, (number,)))


@pytest.mark.parametrize("ctype", ["__nv_bfloat16", "__half", "float", "double", "complex<float>"])
@pytest.mark.parametrize("number", [0.0, -1.5, 1.00390625, 65280.0, float("-inf")])
def test_scalars_of_bfloat16(recorder, ctype, number):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    k = kernel(f"{ctype} a")
    replayed(recorder, lambda: k(1, 32, (ml_dtypes.bfloat16(number),)))


def test_integers_take_no_scalars_of_bfloat16(recorder):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    k = kernel("int a")
    k(1, 32, (1,))
    with pytest.raises(TypeError, match="takes no float"):
        k(1, 32, (ml_dtypes.bfloat16(1),))


def test_numbers_beyond_bfloat16_are_left_to_the_pipeline(recorder):
    k = kernel("__nv_bfloat16 a")
    k(1, 32, (1.0,))
    with pytest.raises(OverflowError, match="bfloat16"):
        k(1, 32, (3.4e38,))


@pytest.mark.parametrize("number", [1 + 2j, complex("nan+infj"), -0.0 - 1e-40j])
@pytest.mark.parametrize("ctype", ["complex<float>", "complex<double>"])
def test_complex_numbers(recorder, ctype, number):
    k = kernel(f"{ctype} a")
    replayed(recorder, lambda: k(1, 32, (number,)))


def test_bool(recorder):
    k = kernel("bool a, bool b, bool c, bool d, int e")
    got = replayed(recorder, lambda: k(1, 32, (True, False, 1, 0, True)))
    assert got[4] == b"\1\0\1\0\1\0\0\0"


@pytest.mark.parametrize("ctype", [*SCALARS, *HALVES])
def test_numpy_scalars(recorder, ctype):
    dtype = {**SCALARS, **HALVES}[ctype]
    value = np.ones(1, dtype)[0] if dtype is np.bool_ else np.array([41.5]).astype(dtype)[0]
    k = kernel(f"{ctype} a")
    assert replayed(recorder, lambda: k(1, 32, (value,)))[4] == value.tobytes()


@pytest.mark.parametrize(
    "given", [np.int8(-3), np.uint64(2**63), np.float32(0.1), np.bool_(True), np.complex64(1j)]
)
def test_numpy_scalars_are_converted(recorder, given):
    k = kernel("complex<double> a")
    replayed(recorder, lambda: k(1, 32, (given,)))


@pytest.mark.parametrize(
    ("ctype", "value"),
    [
        ("int", 1.0),
        ("int", np.float32(1)),
        ("float", 1j),
        ("float", 1e39),
        ("float", 10**400),
        ("complex<float>", 1e39j),
        ("bool", 2),
        ("int", None),
        ("int", "1"),
        ("int", np.zeros(3, np.int32)),
        ("unsigned", np.int8(-1)),
        ("unsigned char", np.int32(256)),
    ],
)
def test_wrong_numbers_get_the_pipelines_error(recorder, ctype, value):
    k = kernel(f"{ctype} a")
    k(1, 32, (0,))
    with pytest.raises((TypeError, OverflowError), match="argument 0"):
        k(1, 32, (value,))
    assert recorder.who() == ["pipeline"]


def test_other_numbers_are_left_to_the_pipeline(recorder):
    k = kernel("int a, float b")
    k(1, 32, (0, 0))
    for number in (ctypes.c_int(7), np.array(7)):
        assert left_to_pipeline(recorder, lambda number=number: k(1, 32, (number, 1.0)))[4][:4] == b"\7\0\0\0"
    k(1, 32, (7, 1.0))
    assert recorder.who()[-1] == "native"


def test_parameters_are_packed_at_their_offsets(recorder):
    x = np.zeros(4, np.float64)
    k = kernel("signed char a, double b, short c, double* d, bool e")
    got = replayed(recorder, lambda: k(1, 32, (-1, 2.0, 3, x, True)))[4]
    address = x.ctypes.data.to_bytes(8, "little")
    assert got == b"\xff" + bytes(7) + np.float64(2).tobytes() + b"\3" + bytes(7) + address + b"\1"


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
