"""Types of structured dtypes and of preambles: what they are laid out as, and arguments that are something else."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gridstride as gs

ALIGNED = np.dtype([("a", "f4"), ("b", "i8")], align=True)


def structures(dtype: Any) -> Any:
    made = np.zeros(3, dtype)
    for name in made.dtype.names or ():
        made[name] = np.arange(1, 4)
    return made


def test_fields_with_titles_and_names_that_are_none_in_cpp(xp: ModuleType) -> None:
    for other in (("of titles", "b"), "class", "a b", "1", "NAN", "INFINITY", "NULL", "__global__"):
        given = structures([("a", "f4"), (other, "i4"), ("c", "i2")])
        total = gs.ElementwiseKernel("P p", "T r, P q", "r = p.a + p.c; q = p", "titled")
        out = xp.asarray(np.zeros(3, given.dtype))
        result, _ = total(xp.asarray(given), xp.zeros(3), out)
        assert gs.asnumpy(result).tolist() == [2, 4, 6]
        np.testing.assert_array_equal(gs.asnumpy(out), given)


@pytest.mark.parametrize(
    "fields", [[("x", "f4"), ("y", "f8")], [("x", "i1"), ("y", "f8")], [("x", "i2"), ("y", "i1")]]
)
@pytest.mark.parametrize("is_aligned", [False, True])
def test_sums_of_structures_of_any_members(xp: ModuleType, fields: list[Any], is_aligned: bool) -> None:
    total = gs.ReductionKernel(
        "P p", "P q", "p", "add(a, b)", "q = a", None, "totals",
        preamble="__device__ P add(P a, P b) { a.x += b.x; a.y += b.y; return a; }",
    )  # fmt: skip
    dtype = np.dtype(fields, align=is_aligned)
    for shape, axis in (
        ((3, 7), 1),
        ((10,), None),
        ((7, 90), 1),
        ((90, 7), 1),
        ((2, 3, 4), (0, 2)),
        ((3, 7), 0),
    ):
        given = np.zeros(shape, dtype)
        given["x"] = np.arange(given.size).reshape(shape) % 2
        given["y"] = np.arange(given.size).reshape(shape) % 3 == 1
        found = gs.asnumpy(total(xp.asarray(given), axis=axis))
        for name in ("x", "y"):
            np.testing.assert_array_equal(found[name], given[name].sum(axis))


def test_fields_that_share_bytes(xp: ModuleType) -> None:
    union = np.dtype({"names": ["f", "k"], "formats": ["f4", "i4"], "offsets": [0, 0]})
    given = np.zeros(2, union)
    given["f"] = 1
    with pytest.raises(TypeError, match=r"`bits`: parameter `p` \(`P`\) .* its fields share bytes"):
        gs.ElementwiseKernel("P p", "int32 r", "r = p.k", "bits")(xp.asarray(given))
    declared = gs.ElementwiseKernel(
        "either p", "int32 r", "r = p.k", "bits", preamble="union either { float f; int k; };"
    )
    assert gs.asnumpy(declared(xp.asarray(given))).tolist() == [0x3F800000] * 2


def test_structures_of_swapped_bytes_are_named(xp: ModuleType) -> None:
    with pytest.raises(TypeError, match=r"dtype \[\('a', '>f4'\)\] has its bytes swapped"):
        gs.ElementwiseKernel("P p", "float32 r", "r = p.a")(np.zeros(2, [("a", ">f4")]))


@pytest.mark.parametrize("place", ["preamble", "type_preamble"])
def test_structures_of_either_preamble(xp: ModuleType, place: str) -> None:
    texts: dict[str, Any] = {place: "struct record { float a; long long b; };"}
    given = xp.asarray(structures(ALIGNED))
    single = gs.ElementwiseKernel("record p", "float64 r", "r = p.a + p.b", "single", **texts)
    assert gs.asnumpy(single(given)).tolist() == [2, 4, 6]
    total = gs.ReductionKernel("record p", "float64 r", "p.a + p.b", "a + b", "r = a", "0", "total", **texts)
    assert float(total(given)) == 12
    for kernel in (single, total):
        with pytest.raises(
            gs.CompileError, match=r"(?s)layout of record.*record has another size.*hint: the structure"
        ):
            kernel(xp.asarray(structures([("a", "f4"), ("b", "i8")])))


@pytest.mark.parametrize("raw", ["", "raw "])
def test_numbers_of_a_preamble(xp: ModuleType, raw: str) -> None:
    element = "x[i]" if raw else "x"
    twice = gs.ElementwiseKernel(
        f"{raw}real x", "real y", f"y = 2 * {element}", "twice", preamble="typedef float real;"
    )
    out = xp.zeros(3, xp.float32)
    assert gs.asnumpy(twice(xp.ones(3, xp.float32), out)).tolist() == [2] * 3
    for dtype in ("float64", "int32", "float16"):
        with pytest.raises(gs.CompileError, match=f"real is another type than the argument's dtype, {dtype}"):
            twice(xp.ones(3, dtype), out)


PAIR = "struct pair { float x, y; };"
REAL = "struct real { double of; __device__ operator double() const { return of; } };"
ANGLE = "struct angle { double of; angle() = default; __device__ explicit angle(double x) : of(x) {} };"
EITHER = "union either { double x; long long y; };"


@pytest.mark.parametrize(
    ("name", "preamble", "dtype"),
    [("pair", PAIR, "f8"), ("pair", PAIR, "i8"), ("real", REAL, "i4"), ("pair", PAIR, "f4")],
)
def test_structures_are_not_given_numbers(xp: ModuleType, name: str, preamble: str, dtype: str) -> None:
    kernel = gs.ElementwiseKernel(f"{name} p", "int32 r", "r = sizeof(p)", "size_of", preamble=preamble)
    with pytest.raises(gs.CompileError, match=f"{name} is another type than the argument's dtype"):
        kernel(xp.asarray(np.ones(3, dtype)))


@pytest.mark.parametrize(
    ("name", "preamble", "dtype", "text"),
    [
        ("pair", PAIR, "c8", "r = p.x + p.y"),
        ("pair", PAIR, "u8", "r = p.x + p.y"),
        ("real", REAL, "f8", "r = p"),
        ("angle", ANGLE, "f8", "r = p.of"),
        ("either", EITHER, "f8", "r = p.x"),
    ],
)
def test_classes_that_are_numbers_pairs_or_bits(
    xp: ModuleType, name: str, preamble: str, dtype: str, text: str
) -> None:
    bits = {"c8": np.array([1 + 2j], "c8"), "u8": np.array([1 + 2j], "c8").view("u8"), "f8": np.array([3.0])}
    kernel = gs.ElementwiseKernel(f"{name} p", "float64 r", text, "number_of", preamble=preamble)
    assert gs.asnumpy(kernel(xp.asarray(bits[dtype]))).tolist() == [3]


def test_python_numbers_for_types_of_a_preamble(xp: ModuleType) -> None:
    kernel = gs.ElementwiseKernel("real k, T x", "T y", "y = k * x", "scale", preamble="typedef float real;")
    x = xp.ones(3, xp.float32)
    assert gs.asnumpy(kernel(np.float32(2), x)).tolist() == [2] * 3
    with pytest.raises(TypeError, match="a type of a preamble does not say what a Python number becomes"):
        kernel(2.0, x)


def test_vectors_of_cuda(xp: ModuleType) -> None:
    length = gs.ElementwiseKernel("float2 p", "float32 r", "r = sqrt(p.x * p.x + p.y * p.y)", "length")
    given = np.array([(3, 4), (6, 8)], [("x", "f4"), ("y", "f4")])
    assert gs.asnumpy(length(xp.asarray(given))).tolist() == [5, 10]
    packed = xp.asarray(np.arange(13, dtype="f4"))[1:].view(np.dtype([(name, "f4") for name in "xyzw"]))
    last = gs.ElementwiseKernel("float4 p", "float32 r", "r = p.w", "last")
    assert gs.asnumpy(last(packed)).tolist() == [4, 8, 12]  # at places where no float4 may lie


@pytest.mark.parametrize(
    "dtype", ["f8", "i8", "c16", [("x", "i4"), ("y", "i4")], [("x", "f4"), ("y", "f4"), ("z", "f4")]]
)
def test_what_is_no_vector_is_refused(xp: ModuleType, dtype: Any) -> None:
    length = gs.ElementwiseKernel("float2 p", "float32 r", "r = p.x + p.y", "length")
    with pytest.raises(
        TypeError, match=r"`length`: .*`p` .*float2.*structures whose fields x, y are float32"
    ):
        length(xp.asarray(np.zeros(3, dtype)))
    given = xp.asarray(np.array([3 + 4j, 5], "c8"))
    assert gs.asnumpy(length(given)).tolist() == [7, 5]


MEMBERS = "struct record { float a; double b; unsigned char k[2]; bool c; int* at; };"
LAYOUT = {"a": ("f4", 0), "b": ("f8", 8), "k": (("u1", 2), 16), "c": ("?", 18), "at": ("u8", 24)}


def laid_out(**others: Any) -> np.dtype[Any]:
    """Return the dtype of the structure, perhaps with other members."""
    layout = {**LAYOUT, **{name: (dtype, LAYOUT[name][1]) for name, dtype in others.items()}}
    formats, offsets = zip(*layout.values(), strict=True)
    return np.dtype({"names": list(layout), "formats": formats, "offsets": offsets, "itemsize": 32})


WHOLE = laid_out()
DECLARED = gs.ElementwiseKernel("record p", "float64 r", "r = p.a + p.b", "total", preamble=MEMBERS)


def test_members_of_a_structure_of_a_preamble(xp: ModuleType) -> None:
    given = np.zeros(3, WHOLE)
    given["a"], given["b"] = 1, 2
    assert gs.asnumpy(DECLARED(xp.asarray(given))).tolist() == [3, 3, 3]


@pytest.mark.parametrize(
    ("member", "dtype"),
    [("a", "i4"), ("b", "f4"), ("b", "i8"), ("k", "u1"), ("c", "f2")],
)
def test_members_of_other_types_are_refused(xp: ModuleType, member: str, dtype: Any) -> None:
    given = np.zeros(3, laid_out(**{member: dtype}))
    with pytest.raises(
        gs.CompileError, match=rf"(?s)member {member} of record is of another type .*hint: the structure"
    ):
        DECLARED(xp.asarray(given))


def test_types_that_a_preamble_uses(xp: ModuleType) -> None:
    total = gs.ReductionKernel(
        "T x", "T y", "x", "joined(a, b)", "y = a", "0", "total",
        preamble="__device__ type_out0_raw joined(type_out0_raw a, type_in0_raw b) { return a + b; }",
    )  # fmt: skip
    assert int(total(xp.arange(4, dtype="i4"))) == 6
