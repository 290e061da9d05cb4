"""Arguments that the compiled fast path packs, and those that it leaves to the pipeline."""

import ctypes

import numpy as np
import pytest
from native_support import kernel, left_to_pipeline, replayed

from gridstride import _native
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
