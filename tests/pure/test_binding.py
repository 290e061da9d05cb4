"""Arguments of raw kernels, converted by a signature: values, bytes, accesses and errors."""

import ctypes
import struct

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridstride import arrays
from gridstride._arguments.raw import bind_raw, packed_size
from gridstride._arguments.structs import StructLayout
from gridstride.errors import ArgumentRangeError, ArgumentTypeError, CompileError
from gridstride.targets.base import CType, Parameter

INTEGERS = {
    "signed char": np.int8,
    "short": np.int16,
    "int": np.int32,
    "long": np.int64,
    "unsigned char": np.uint8,
    "unsigned short": np.uint16,
    "unsigned int": np.uint32,
    "unsigned long": np.uint64,
}
FLOATS = {"__half": np.float16, "float": np.float32, "double": np.float64}
COMPLEX = {"complex<float>": np.complex64, "complex<double>": np.complex128}
SCALARS = INTEGERS | FLOATS | COMPLEX | {"bool": np.bool_, "__nv_bfloat16": ml_dtypes.bfloat16}


def scalar(name):
    dtype = np.dtype(SCALARS[name])
    return CType("scalar", name, dtype.itemsize, dtype.itemsize, dtype)


def pointer(pointee, const=False):
    if const:
        pointee = CType(
            pointee.kind,
            pointee.name,
            pointee.size,
            pointee.alignment,
            pointee.dtype,
            pointee.components,
            True,
        )
    return CType("pointer", f"{'const ' if const else ''}{pointee.name} *", 8, 8, pointee=pointee)


VOID = CType("void", "void", 0, 0)
FLOAT4 = CType("vector", "float4", 16, 16, np.dtype(np.float32), 4)
FLOAT2 = CType("vector", "float2", 8, 8, np.dtype(np.float32), 2)
HALF2 = CType("vector", "half2", 4, 4, np.dtype(np.float16), 2)
STRUCT = CType("struct", "S", 24, 8)
S = np.dtype([("a", "i1"), ("b", "f8"), ("c", "i4")], align=True)


def layout_of(position, members, otherwise):
    known = {"a": (0, 1), "b": (8, 8), "c": (16, 4)}
    if not set(members) <= known.keys():
        members = otherwise
    if not set(members) <= known.keys():
        raise CompileError("no such member")
    return StructLayout(24, 8, {name: known[name] for name in members})


def bind(types, arguments):
    parameters, offset = [], 0
    for name, ctype in zip("abcdefgh", types):
        offset = -(-offset // ctype.alignment) * ctype.alignment
        parameters.append(Parameter(name, ctype, offset))
        offset += ctype.size
    return bind_raw("k", tuple(parameters), arguments, [arrays.view(a) for a in arguments], layout_of)


def bind_one(ctype, argument):
    return bind([ctype], [argument]).packed


# ---- numbers ----


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_at_their_limits(name):
    info = np.iinfo(INTEGERS[name])
    for value in (int(info.min), int(info.max), 0, 1):
        assert bind_one(scalar(name), value) == np.array(value, INTEGERS[name]).tobytes()
    for value in (int(info.min) - 1, int(info.max) + 1, 2**70, -(2**70)):
        with pytest.raises(ArgumentRangeError, match=rf"`k`: argument 0, parameter `a` \(`{name}`\)"):
            bind_one(scalar(name), value)


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from(sorted(INTEGERS)))
def test_integers_are_exact_or_refused(value, name):
    info = np.iinfo(INTEGERS[name])
    if info.min <= value <= info.max:
        assert np.frombuffer(bind_one(scalar(name), value), INTEGERS[name])[0] == value
    else:
        with pytest.raises(OverflowError):
            bind_one(scalar(name), value)


@given(st.floats(width=64), st.sampled_from(sorted(FLOATS)))
def test_floats_round_as_numpy_or_are_refused(value, name):
    with np.errstate(all="ignore"):
        expected = np.array(value).astype(FLOATS[name])
    if np.isfinite(value) and not np.isfinite(expected):
        with pytest.raises(OverflowError):
            bind_one(scalar(name), value)
    else:
        np.testing.assert_array_equal(np.frombuffer(bind_one(scalar(name), value), FLOATS[name])[0], expected)


@given(st.floats(width=32))
def test_bfloat16_rounds_as_ml_dtypes(value):
    with np.errstate(all="ignore"):
        expected = np.float32(value).astype(ml_dtypes.bfloat16)
    ctype = scalar("__nv_bfloat16")
    if np.isfinite(value) and not np.isfinite(expected):
        with pytest.raises(OverflowError):
            bind_one(ctype, value)
    elif np.isnan(value):
        assert np.isnan(np.frombuffer(bind_one(ctype, value), ml_dtypes.bfloat16)[0])
    else:
        assert bind_one(ctype, value) == expected.tobytes()


def test_p26_a_python_float_is_a_float():
    assert bind_one(scalar("float"), 2.0) == struct.pack("<f", 2.0)
    assert bind_one(scalar("signed char"), 65) == b"A"


@pytest.mark.parametrize("name", SCALARS)
def test_numpy_scalars_and_zero_dimensional_arrays(name):
    value = np.array(1).astype(SCALARS[name])
    assert bind_one(scalar(name), value) == value.tobytes()
    assert bind_one(scalar(name), value[()]) == value.tobytes()


def test_numpy_scalars_of_another_width_convert_by_value():
    assert bind_one(scalar("int"), np.int64(7)) == struct.pack("<i", 7)
    assert bind_one(scalar("float"), np.float64(0.1)) == np.float32(0.1).tobytes()
    with pytest.raises(OverflowError):
        bind_one(scalar("int"), np.int64(2**31))


def test_ctypes_scalars():
    assert bind_one(scalar("int"), ctypes.c_int(7)) == struct.pack("<i", 7)
    assert bind_one(scalar("double"), ctypes.c_double(0.5)) == struct.pack("<d", 0.5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("int", 2.0),
        ("int", np.float32(2)),
        ("int", 1j),
        ("float", 1j),
        ("int", None),
        ("int", "7"),
        ("float", np.ones(1, np.float32)),
        ("bool", 0.0),
        ("int", object()),
    ],
)
def test_wrong_kinds_of_numbers(name, value):
    with pytest.raises(ArgumentTypeError, match=rf"argument 0, parameter `a` \(`{name}`\), got") as error:
        bind_one(scalar(name), value)
    assert (error.value.kernel, error.value.parameter, error.value.position) == ("k", "a", 0)
    assert error.value.expected == name


def test_bool_takes_truth_values_only():
    assert bind_one(scalar("bool"), True) == b"\1"
    assert bind_one(scalar("bool"), 0) == b"\0"
    with pytest.raises(OverflowError, match="it holds 0 to 1"):
        bind_one(scalar("bool"), 2)


# ---- pointers ----


@pytest.mark.parametrize("name", SCALARS)
def test_arrays_by_dtype(name):
    array = np.zeros(3, SCALARS[name])
    bound = bind([pointer(scalar(name))], [array])
    assert bound.packed == struct.pack("<Q", array.ctypes.data)
    (access,) = bound.accesses
    assert (access.owner is array, access.address, access.extent, access.written) == (
        True,
        array.ctypes.data,
        array.nbytes,
        True,
    )


@pytest.mark.parametrize("name", SCALARS)
def test_other_dtypes_are_refused(name):
    for other in SCALARS.values():
        if np.dtype(other) != np.dtype(SCALARS[name]):
            with pytest.raises(ArgumentTypeError, match="parameter `a`"):
                bind([pointer(scalar(name))], [np.zeros(3, other)])


def test_p28_swapped_arguments_name_the_parameter():
    types = [pointer(scalar("float")), pointer(scalar("float")), scalar("int")]
    x = np.zeros(4, np.float32)
    with pytest.raises(ArgumentTypeError, match="argument 1, parameter `b`"):
        bind(types, [x, 4, x])
    for arguments in ([x, x], [x, x, 4, 4]):
        with pytest.raises(
            ArgumentTypeError, match=r"`k` takes 3 arguments \(float \* a, float \* b, int c\)"
        ):
            bind(types, arguments)


def test_char_takes_both_signs():
    char = CType("scalar", "char", 1, 1, np.dtype(np.int8))
    for dtype in (np.int8, np.uint8):
        assert bind([pointer(char)], [np.zeros(3, dtype)])
    with pytest.raises(TypeError):
        bind([pointer(char)], [np.zeros(3, np.bool_)])


def test_null_and_explicit_addresses():
    assert bind_one(pointer(scalar("float")), None) == bytes(8)
    assert bind_one(pointer(scalar("float")), ctypes.c_void_p(4096)) == struct.pack("<Q", 4096)
    assert bind_one(pointer(scalar("float")), ctypes.c_void_p(None)) == bytes(8)


@pytest.mark.parametrize("value", [4096, np.int64(4096), 0])
def test_a_number_is_no_pointer(value):
    with pytest.raises(ArgumentTypeError, match=r"ctypes\.c_void_p"):
        bind_one(pointer(scalar("float")), value)


@pytest.mark.parametrize("name", ["int", "short", "float"])
def test_an_address_is_no_number(name):
    for address in (4096, None):
        with pytest.raises(ArgumentTypeError):
            bind_one(scalar(name), ctypes.c_void_p(address))


def test_p29_views_are_refused_unless_contiguous():
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    for view in (x[:, :4], x.T, x[:, ::2], x[::-1]):
        with pytest.raises(ArgumentTypeError, match="not C-contiguous") as error:
            bind([pointer(scalar("float"))], [view])
        assert "gridstride::view" in str(error.value)
    for view in (x[1:], x[:1, :4], x.reshape(5, 2)):
        assert bind([pointer(scalar("float"))], [view]).packed == struct.pack("<Q", view.ctypes.data)


def test_read_only_arrays_go_to_const_pointers_only():
    x = np.zeros(3, np.float32)
    x.flags.writeable = False
    (access,) = bind([pointer(scalar("float"), const=True)], [x]).accesses
    assert not access.written
    with pytest.raises(ArgumentTypeError, match="read-only"):
        bind([pointer(scalar("float"))], [x])


def test_misaligned_arrays_are_refused():
    x = np.zeros(17, np.uint8)[1:].view(np.float32)
    with pytest.raises(ArgumentTypeError, match="not a multiple of the 4 bytes"):
        bind([pointer(scalar("float"))], [x])


def test_void_takes_any_array():
    for dtype in (*SCALARS.values(), S):
        assert bind([pointer(VOID)], [np.zeros(2, dtype)])


def test_pointers_to_pointers_take_addresses():
    ctype = pointer(pointer(scalar("float")))
    assert bind([ctype], [np.zeros(2, np.uint64)])
    with pytest.raises(ArgumentTypeError, match="uint64 array of addresses"):
        bind([ctype], [np.zeros(2, np.float32)])


def test_arrays_of_size_zero():
    assert len(bind([pointer(scalar("float"))], [np.zeros((0, 3), np.float32)]).packed) == 8


# ---- built-in vectors ----


def aligned(dtype, count, alignment=16):
    raw = np.zeros(count * np.dtype(dtype).itemsize + alignment, np.uint8)
    start = -raw.ctypes.data % alignment
    return raw[start : start + count * np.dtype(dtype).itemsize].view(dtype)


def test_vector_pointers_take_components_or_structures():
    assert bind([pointer(FLOAT4)], [aligned(np.float32, 8)])
    assert bind([pointer(FLOAT4)], [aligned([(c, "f4") for c in "xyzw"], 2)])
    assert bind([pointer(HALF2)], [aligned(np.float16, 2)])
    assert bind([pointer(FLOAT2)], [aligned(np.complex64, 2)])


@pytest.mark.parametrize(
    ("ctype", "array", "words"),
    [
        (FLOAT4, aligned(np.float32, 7), "1 whole `float4` and 12 bytes"),
        (FLOAT4, aligned(np.float32, 9)[1:], "not a multiple of the 16 bytes"),
        (FLOAT4, aligned(np.float64, 8), "array of float32"),
        (FLOAT4, aligned(np.complex64, 8), "array of float32"),
        (FLOAT4, aligned([("x", "f4"), ("y", "i4"), ("z", "f4"), ("w", "f4")], 2), "array of float32"),
        (FLOAT2, aligned(np.complex128, 2), "array of float32"),
    ],
)
def test_vector_pointers_refuse(ctype, array, words):
    with pytest.raises(ArgumentTypeError, match=words):
        bind([pointer(ctype)], [array])


def test_vectors_by_value():
    expected = np.array([1, 2, 3, 4], np.float32).tobytes()
    structured = np.array((1, 2, 3, 4), [(c, "f4") for c in "xyzw"])
    for value in ((1, 2, 3, 4), [1.0, 2.0, 3.0, 4.0], np.arange(1, 5), structured, structured[()]):
        assert bind_one(FLOAT4, value) == expected
    assert bind_one(FLOAT2, 1 + 2j) == np.complex64(1 + 2j).tobytes()
    for value in ((1, 2, 3), 1.0, None, np.zeros((2, 2))):
        with pytest.raises(ArgumentTypeError, match="4 numbers"):
            bind_one(FLOAT4, value)


# ---- structs ----


def test_p31_structs_by_value_are_checked_against_the_compiler():
    element = np.zeros((), S)
    element["b"] = 2.5
    for value in (element[()], element, element.reshape(1)):
        assert bind_one(STRUCT, value) == element.tobytes()
    packed = np.zeros((), [("a", "i1"), ("b", "f8"), ("c", "i4")])
    with pytest.raises(
        ArgumentTypeError, match=r"the struct has 24 bytes, the dtype 13; member `b` is at offset 8"
    ):
        bind_one(STRUCT, packed)


def test_structs_with_other_members_of_the_same_size():
    moved = np.dtype(
        {"names": ["a", "b", "c"], "formats": ["i1", "f8", "i4"], "offsets": [0, 8, 20], "itemsize": 24}
    )
    with pytest.raises(
        ArgumentTypeError, match="member `c` is at offset 16 with 4 bytes, the dtype has offset 20"
    ):
        bind_one(STRUCT, np.zeros((), moved))


def test_ctypes_structures():
    class Structure(ctypes.Structure):
        _fields_ = (("a", ctypes.c_int8), ("b", ctypes.c_double), ("c", ctypes.c_int32))

    value = Structure(1, 2.0, 3)
    assert bind_one(STRUCT, value) == bytes(value)


@pytest.mark.parametrize("value", [1, None, np.zeros(2, S), np.zeros(3, np.uint8), b"x" * 24])
def test_no_structs(value):
    with pytest.raises(ArgumentTypeError, match="structured NumPy scalar"):
        bind_one(STRUCT, value)


def test_struct_pointers():
    assert bind([pointer(STRUCT)], [np.zeros(3, S)])
    assert bind([pointer(STRUCT)], [np.zeros((2, 3))])
    with pytest.raises(ArgumentTypeError, match="24 bytes, aligned to 8"):
        bind([pointer(STRUCT)], [np.zeros(24, np.uint8)])
    with pytest.raises(ArgumentTypeError, match="no whole number of structs"):
        bind([pointer(STRUCT)], [np.zeros(4)])


def test_fields_of_a_row_of_equal_parts_stand_for_an_array():
    """Nothing in the struct is called `b.x`: a field of parts without gaps is then checked as a whole."""
    row = np.dtype({"names": ["x", "y"], "formats": ["f4", "f4"]})
    dtype = np.dtype(
        {"names": list("abc"), "formats": ["i1", row, "i4"], "offsets": [0, 8, 16], "itemsize": 24}
    )
    element = np.zeros((), dtype)
    element["b"]["y"] = 2
    assert bind_one(STRUCT, element) == element.tobytes()
    moved = np.dtype(
        {"names": list("abc"), "formats": ["i1", row, "i4"], "offsets": [0, 4, 16], "itemsize": 24}
    )
    with pytest.raises(ArgumentTypeError, match="member `b` is at offset 8"):
        bind_one(STRUCT, np.zeros((), moved))
    mixed = np.dtype([("a", "i1"), ("b", [("x", "f4"), ("y", "i4")]), ("c", "i4")], align=True)
    with pytest.raises(ArgumentTypeError, match="members by name"):
        bind_one(STRUCT, np.zeros((), mixed))


# ---- strided views ----


def view_type(name, ndim):
    return CType("struct", f"gridstride::view<{name}, {ndim}>", 8 + 16 * ndim, 8)


def test_strided_arrays_go_to_views():
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    for view in (x, x.T, x[:, ::2], x[::-1], x[1:3, 2:5]):
        bound = bind([view_type("float", 2)], [view])
        elements = [stride // 4 for stride in view.strides]
        assert bound.packed == struct.pack("<Q4q", view.ctypes.data, *view.shape, *elements)
        (access,) = bound.accesses
        low, high = np.lib.array_utils.byte_bounds(view)
        assert (access.address, access.extent, access.written) == (low, high - low, True)


def test_views_check_dtype_dimensions_and_writing():
    x = np.zeros((4, 6), np.float32)
    with pytest.raises(ArgumentTypeError, match="array of float64"):
        bind([view_type("double", 2)], [x])
    with pytest.raises(ArgumentTypeError, match="array of 1 dimensions"):
        bind([view_type("float", 1)], [x])
    read_only = np.broadcast_to(np.float32(1), (4, 6))
    assert bind([view_type("const float", 2)], [read_only])
    with pytest.raises(ArgumentTypeError, match="read-only"):
        bind([view_type("float", 2)], [read_only])


# ---- binary modules ----


def test_parameters_of_which_only_the_size_is_known():
    unknown4, unknown8 = CType("struct", "", 4, 4), CType("struct", "", 8, 8)
    x = np.zeros(3, np.float32)
    assert bind_one(unknown8, x) == struct.pack("<Q", x.ctypes.data)
    assert bind_one(unknown4, np.float32(2)) == struct.pack("<f", 2)
    for value in (2.0, 2, np.float64(2), x):
        with pytest.raises(ArgumentTypeError, match="has 4 bytes: pass a NumPy scalar"):
            bind_one(unknown4, value)


def test_packed_size_counts_to_the_last_byte():
    assert packed_size(()) == 0
    assert (
        len(bind([scalar("signed char"), scalar("double"), scalar("signed char")], [1, 2.0, 3]).packed) == 17
    )
