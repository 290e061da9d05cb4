"""What array kernels refuse: messages name kernel, parameter, what was expected, what came and what to do."""

from __future__ import annotations

import array
import decimal
import fractions
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest

import gridstride as gs
from gridstride.errors import ArgumentRangeError, ArgumentTypeError, CompileError
from gridstride.targets.base import Target
from tests.every_target.test_elementwise import ADD
from tests.every_target.test_reduction import TOTAL

TWO = gs.ElementwiseKernel("T x", "T y, T z", "y = x; z = x", "two_copies")
PICK = gs.ElementwiseKernel("raw T x", "T y", "y = x[0]", "pick")
BYTES = np.ones(2, np.int8)


def ones(*shape: int, dtype: Any = "f8") -> Any:
    return np.ones(shape, dtype)


def read_only(x: Any) -> Any:
    x.flags.writeable = False
    return x


#: A call of host arrays, the error, the parameter that it is about, and the rest of the message in order.
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str, str]] = {
    "number beyond int8": (
        lambda: ADD(BYTES, 200),
        ArgumentRangeError,
        "y",
        r"`T`.*got 200, which it cannot hold: it holds -128 to 127",
    ),
    "negative of unsigned": (
        lambda: ADD(BYTES.view("u1"), -1),
        ArgumentRangeError,
        "y",
        "got -1.*it holds 0 to 255",
    ),
    "huge": (lambda: ADD(BYTES, 2**70), ArgumentRangeError, "y", "got 1180591620717411303424"),
    "huge alone": (lambda: ADD(2**63, 1), ArgumentRangeError, "x", "got 9223372036854775808"),
    "beyond float32": (
        lambda: ADD(ones(2, dtype="f4"), 1e40),
        ArgumentRangeError,
        "y",
        "beyond the largest float32",
    ),
    "beyond float16": (
        lambda: ADD(ones(2, dtype="f2"), 7e4),
        ArgumentRangeError,
        "y",
        "beyond the largest float16",
    ),
    "beyond a double": (lambda: ADD(ones(2), 10**400), ArgumentRangeError, "y", "beyond the largest float64"),
    "text": (lambda: ADD(BYTES, "3"), ArgumentTypeError, "y", "type builtins.str. Pass an array or a number"),
    "text of NumPy": (lambda: ADD(BYTES, np.str_("3")), ArgumentTypeError, "y", "Pass an array or a number"),
    "date": (
        lambda: ADD(BYTES, np.datetime64("2020")),
        ArgumentTypeError,
        "y",
        "datetime64.*Pass an array or a number",
    ),
    "bytes alone": (lambda: ADD(BYTES, np.void(b"abc")), ArgumentTypeError, "y", "Pass an array or a number"),
    "None": (lambda: ADD(BYTES, None), ArgumentTypeError, "y", "got None. Pass an array or a number"),
    "list": (lambda: ADD(BYTES, [1, 2]), ArgumentTypeError, "y", "builtins.list. Pass an array or a number"),
    "fraction": (
        lambda: ADD(BYTES, fractions.Fraction(1, 2)),
        ArgumentTypeError,
        "y",
        "Fraction. Pass an array or",
    ),
    "decimal": (lambda: ADD(BYTES, decimal.Decimal(1)), ArgumentTypeError, "y", "Decimal. Pass an array or"),
    "long double": (
        lambda: ADD(ones(2), np.longdouble(1)),
        ArgumentTypeError,
        "x",
        r"`T`.*float128.*no CUDA C\+\+ counterpart. Pass",
    ),
    "long doubles": (
        lambda: ADD(ones(2, dtype="g"), 1),
        ArgumentTypeError,
        "x",
        "float128.*: convert it to float64",
    ),
    "swapped bytes": (
        lambda: ADD(1, ones(2, dtype=">f4")),
        ArgumentTypeError,
        "y",
        "`T`.*>f4 has its bytes swapped.*astype",
    ),
    "swapped output": (
        lambda: ADD(1, 1, ones(dtype=">f8")),
        ArgumentTypeError,
        "z",
        ">f8 has its bytes swapped: pass",
    ),
    "dates": (
        lambda: ADD(ones(2, dtype="M8[s]"), 1),
        ArgumentTypeError,
        "x",
        r"datetime64\[s\].*view it as int64",
    ),
    "spans": (
        lambda: ADD(ones(2, dtype="m8[s]"), 1),
        ArgumentTypeError,
        "x",
        r"timedelta64\[s\].*view it as int64",
    ),
    "objects": (
        lambda: ADD(ones(2, dtype="O"), 1),
        ArgumentTypeError,
        "x",
        "dtype object.*convert it to numbers",
    ),
    "strings": (lambda: ADD(ones(2, dtype="U3"), 1), ArgumentTypeError, "x", "<U3.*encode"),
    "bytes": (lambda: ADD(np.zeros(2, "S3"), 1), ArgumentTypeError, "x", "S3.*view it as uint8"),
    "unknown bytes": (
        lambda: ADD(np.zeros(2, "V5"), np.zeros(2, "V5")),
        ArgumentTypeError,
        "x",
        r"V5.*no CUDA C\+\+ counterpart. Pass",
    ),
    "fields of dates": (
        lambda: TWO(np.zeros(2, [("at", "M8[s]")])),
        ArgumentTypeError,
        "x",
        r"datetime64\[s\] has no CUDA C\+\+ counterpart",
    ),
    "masked": (
        lambda: ADD(np.ma.masked_equal([1.0, 2], 2), 1),
        ArgumentTypeError,
        "x",
        "lose its mask: pass x.filled",
    ),
    "read-only output": (
        lambda: ADD(1.0, 2.0, read_only(ones())),
        ArgumentTypeError,
        "z",
        "float64 array of shape .*read-only: pass an array",
    ),
    "integers for floats": (
        lambda: ADD(ones(2), 1, ones(2, dtype="i4")),
        ArgumentTypeError,
        "z",
        "got an int32 array.*float64, which it cannot hold: pass",
    ),
    "output that is none": (lambda: ADD(1, 2, 3), ArgumentTypeError, "z", "got the int 3. Pass an array"),
    "raw number": (lambda: PICK(3.0, size=3), ArgumentTypeError, "x", "got the float 3.0. Pass an array"),
    "smaller output": (
        lambda: ADD(ones(2, 3), 1, ones(3)),
        ValueError,
        "z",
        r"\(3,\), the result \(2, 3\): pass an array of that shape",
    ),
    "outputs of two shapes": (
        lambda: TWO(ones(3), ones(3), ones(2, 3)),
        ValueError,
        "z",
        r"\(2, 3\), the result \(3,\): pass",
    ),
    "outputs that are one": (
        lambda: (lambda o: TWO(ones(3), o, o))(ones(3)),
        ValueError,
        "z",
        "share memory: pass",
    ),
    "output that repeats elements": (
        lambda: ADD(ones(2), 1, np.lib.stride_tricks.as_strided(ones(1), (2,), (0,))),
        ValueError,
        "z",
        "share memory.*pass",
    ),
    "shapes": (
        lambda: ADD(ones(3), ones(4)),
        ValueError,
        "y",
        r"\(4,\): each axis must have one length, or 1",
    ),
    "too large": (
        lambda: PICK(ones(3), size=2**62),
        ValueError,
        "",
        "no output of dtype float64 and shape .* can be made",
    ),
    "size beside arrays": (lambda: ADD(ones(3), 1, size=3), ValueError, "x", "decide it"),
    "no size": (lambda: PICK(ones(3)), ValueError, "", "loop size undecided.*pass size="),
    "size of a float": (lambda: PICK(ones(3), size=3.0), TypeError, "", "size must be an int, got 3.0"),
    "negative size": (lambda: PICK(ones(3), size=-1), ValueError, "", "size must not be negative, got -1"),
    "huge size": (lambda: PICK(ones(3), size=2**63), ValueError, "", r"size must be below 2\*\*63, got"),
    "block size": (
        lambda: ADD(ones(3), 1, block_size="x"),
        TypeError,
        "",
        "block_size must be an int from 1 to 1024, got 'x'",
    ),
    "too many": (
        lambda: ADD(1, 2, 3, 4),
        ArgumentTypeError,
        "x",
        r"takes 2 inputs \(T x, T y\).*got 4 arguments",
    ),
    "unknown keyword": (lambda: ADD(1, 2, sizes=3), TypeError, "", "no keyword 'sizes'; did you mean 'size'"),
    "buffer without output": (
        lambda: TWO(array.array("d", [1, 2])),
        TypeError,
        "",
        "known only by an interface. Pass the outputs",
    ),
    "axis": (
        lambda: TOTAL(ones(2, 3), axis=2),
        np.exceptions.AxisError,
        "",
        "axis 2 is out of bounds for arrays of 2",
    ),
    "axis twice": (lambda: TOTAL(ones(2, 3), axis=(1, -1)), ValueError, "", r"duplicate axis in \(1, -1\)"),
    "axis of a float": (lambda: TOTAL(ones(2, 3), axis=1.0), TypeError, "", "axis must be an int.*got 1.0"),
    "axis of a boolean": (
        lambda: TOTAL(ones(2, 3), axis=True),
        TypeError,
        "",
        "axis must be an int.*got True",
    ),
    "many axes": (
        lambda: TOTAL(ones(2), axis=tuple(range(99))),
        np.exceptions.AxisError,
        "",
        "axis 1 is out of bounds",
    ),
    "axis of none": (lambda: TOTAL(ones(), axis=0), np.exceptions.AxisError, "", "axis 0 is out of bounds"),
    "dtype": (lambda: TOTAL(ones(2), dtype="nope"), TypeError, "", "dtype='nope' is none"),
    "dtype of dates": (
        lambda: TOTAL(ones(2), dtype="M8[s]"),
        ArgumentTypeError,
        "x",
        r"datetime64\[s\] has no CUDA",
    ),
    "dtype of objects": (lambda: TOTAL(ones(2), dtype=object), ArgumentTypeError, "x", "object has no CUDA"),
    "narrower dtype": (
        lambda: TOTAL(ones(2), dtype="i4"),
        ArgumentTypeError,
        "x",
        "float64 array.*int32.*cast it first",
    ),
    "shape of a result": (
        lambda: TOTAL(ones(2, 3), axis=0, out=ones(2)),
        ValueError,
        "y",
        r"\(2,\), the result \(3,\): pass",
    ),
    "results twice": (lambda: TOTAL(ones(2), ones(), out=ones()), TypeError, "", "passed twice"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_is_named(what: str, xp: ModuleType) -> None:
    call, kind, parameter, rest = REFUSED[what]
    if xp is not np:
        pytest.skip("host arrays")
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert message.startswith("`"), message
    assert not parameter or re.search(rf"[`' ]{parameter}[`', )]", message), message
    assert re.search(rest, message, re.DOTALL), message
    if isinstance(caught.value, ArgumentTypeError | ArgumentRangeError):
        assert caught.value.kernel
        assert caught.value.parameter in (parameter, "")


#: Texts that end in the middle of something, and what is said of them.
OPEN_ENDS = {
    "brace": (("if (x > 0) {\n  y = x;", {}), "the operation of open_end does not close the '{' of line 1"),
    "bracket": (("y = x;\ny = (x;", {}), "the operation of open_end does not close the '.' of line 2"),
    "closed twice": (("y = x;\n}", {}), "the operation of open_end closes a '}' that it did not open, in line 2"),
    "preamble": (("y = x", {"preamble": "__device__ int f() {\n"}), "the preamble of open_end does not close the '{'"),
    "structure": (
        ("y = x", {"preamble": "struct s { int a; struct { int b; } c; }"}), "a semicolon follows its brace",
    ),
    "quoted": (('y = xx; // "(" { \n char c = \'}\'; const char* s = "("', {}), "known there are"),
    "comment": (("y = xx /* (", {}), "unterminated comment|/\\*"),
}  # fmt: skip


@pytest.mark.parametrize("what", OPEN_ENDS)
def test_texts_that_end_in_the_middle_of_something(what: str, xp: ModuleType) -> None:
    (operation, options), message = OPEN_ENDS[what]
    kernel = gs.ElementwiseKernel("T x", "T y", operation, "open_end", **options)
    with pytest.raises(CompileError, match=message):
        kernel(xp.ones(3))


def test_expressions_of_reductions_that_end_in_the_middle_of_something(xp: ModuleType) -> None:
    for texts, message in (
        (("(x", "a + b"), "the map_expr of open_fold does not close the '\\(' of line 1"),
        (("x", "a + b)"), "the reduce_expr of open_fold closes a '\\)'"),
    ):
        with pytest.raises(CompileError, match=message):
            gs.ReductionKernel("T x", "T y", *texts, "y = a", "0", "open_fold")(xp.ones(3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: gs.ElementwiseKernel("T __global__", "T y", "y = 1"),
            "'__global__' has a name as compilers' own words have",
        ),
        (lambda: gs.ElementwiseKernel("T T", "T y", "y = 1"), "'T' has a name that the kernel's text has"),
        (
            lambda: gs.ElementwiseKernel("T threadIdx", "T y", "y = 1"),
            "'threadIdx' has a name that the kernel's",
        ),
        (lambda: gs.ElementwiseKernel("T x, T not", "T y", "y = x"), "'not' is a word of C"),
        (
            lambda: gs.ReductionKernel("T x", "T y", "x", "a + 1 /* b */"),
            "reduce_expr .* does not join a and b: it has no b",
        ),
        (lambda: gs.ElementwiseKernel("AB x", "T y", "y = x"), r"unknown type 'AB'\. Known are dtypes"),
        (lambda: gs.ReductionKernel("T x", "T y", "", "a + b"), "map_expr must be an expression, got ''"),
        (lambda: gs.ReductionKernel("T x", "T y", "x", " "), "reduce_expr must be an expression, got ' '"),
        (
            lambda: gs.ReductionKernel("T x", "T y", "x", "a + b", name="total", reduce_type=" "),
            "`total`: reduce_type must be a type, .* got ' ': leave it out",
        ),
        (
            lambda: gs.ReductionKernel("T x", "raw T y", "x", "a + b"),
            "output 'y' of a reduction cannot be raw",
        ),
    ],
)
def test_what_is_no_kernel_is_refused_at_once(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(("options", "got"), [(None, "None"), (("-O3", 3), "3"), ([b"-O3"], "b'-O3'")])
def test_options_that_are_no_texts_are_refused_at_once(options: Any, got: str) -> None:
    for make, texts in (
        (gs.ElementwiseKernel, ("y = x",)),
        (gs.ReductionKernel, ("x", "a + b", "y = a", "0")),
    ):
        with pytest.raises(TypeError, match=f"`kept`: options must be a tuple of strings, got {got}"):
            make("T x", "T y", *texts, name="kept", options=options)  # type: ignore[operator]


@pytest.mark.parametrize("text", ["y += x", "if (x > 2) y = x"])
def test_earlier_values_that_are_complex(text: str, xp: ModuleType) -> None:
    kernel = gs.ElementwiseKernel("T x", "T y", text, "kept")
    out = xp.ones(6, "c16")
    with pytest.raises(ArgumentTypeError, match=r"`kept`: .* output `y` as float64, .* is complex128: pass"):
        kernel(xp.ones(6), out)
    total = gs.ReductionKernel("T x", "T y", "x", "a + b", "y += a", "0", "kept_sum")
    with pytest.raises(ArgumentTypeError, match=r"`kept_sum`: .* output `y` as float64"):
        total(xp.ones((2, 3)), axis=1, out=xp.ones(2, "c16"))


def test_accumulators_without_a_constructor_of_no_arguments(xp: ModuleType) -> None:
    preamble = "struct sum { double v; __device__ explicit sum(double x) : v(x) {}OTHER };"
    texts = "T x", "T y", "sum(x)", "sum(a.v + b.v)", "y = a.v", "sum(0)", "wrapped", "sum"
    with pytest.raises(
        CompileError, match=r"reduce_type of wrapped, line 1: .*constructor without arguments"
    ):
        gs.ReductionKernel(*texts, preamble=preamble.replace("OTHER", ""))(xp.ones(3))
    kernel = gs.ReductionKernel(*texts, preamble=preamble.replace("OTHER", " sum() = default;"))
    assert float(kernel(xp.ones(3))) == 3


def test_types_of_a_preamble_that_are_named_like_placeholders(xp: ModuleType) -> None:
    kernel = gs.ElementwiseKernel(
        "P p", "float32 y", "y = p.x", "clash", type_preamble="struct P { float x; };"
    )
    with pytest.raises(CompileError, match=r"type placeholder: give a type of a preamble another name"):
        kernel(xp.ones(3, xp.float32))


#: Members and types of our headers, and words around the user's texts, which programs use for macros.
MACROS = (
    "size",
    "outputs",
    "part",
    "parts",
    "at",
    "folded",
    "input",
    "T",
    "int",
    "value",
    "row",
    "step",
    "data",
    "type",
    "length",
    "width",
    "get",
    "element",
    "copy",
    "count",
    "first",
    "end",
    "N",
)


@pytest.mark.parametrize("way", ["options", "preamble", "type_preamble"])
def test_no_macro_breaks_a_text_of_ours(way: str, xp: ModuleType) -> None:
    lines = "\n".join(f"#define {name} 5" for name in MACROS)
    given: Any = {"options": tuple(f"-D{name}=5" for name in MACROS)} if way == "options" else {way: lines}
    x = xp.arange(6.0).reshape(2, 3)
    five = gs.ElementwiseKernel("T x, raw T z, int64 k", "T y", "y = x + z[0] + step * k", "macros", **given)
    np.testing.assert_array_equal(gs.asnumpy(five(x, x, 1)), gs.asnumpy(x) + 5)
    total = gs.ReductionKernel(
        "T x", "T y", "x", "a + b", "y = a + count - parts + size", "0", "macros_total", **given
    )
    np.testing.assert_array_equal(gs.asnumpy(total(x, axis=0)), gs.asnumpy(x).sum(0) + 5)


def test_a_macro_that_changes_the_text_around_a_kernel_is_named(xp: ModuleType) -> None:
    for name in ("n", "i", "x"):
        for given in ({"preamble": f"#define {name} 7"}, {"options": (f"-D{name}=7",)}):
            kernel = gs.ElementwiseKernel("T x", "T y", "y = x", "renamed", **given)
            with pytest.raises(CompileError, match=f"the macro '{name}' changes the text around the kernel"):
                kernel(xp.ones(3))


@pytest.mark.parametrize("way", ["options", "type_preamble", "preamble"])
def test_macros_of_types_leave_those_of_arguments(way: str, xp: ModuleType) -> None:
    given: Any = {"options": ("-Dfloat=double",)} if way == "options" else {way: "#define float double"}
    kernel = gs.ElementwiseKernel("float32 x, T z, float32 k", "float32 y, int32 s", "y = x + z * k; s = sizeof(float)",
                                  "wide", **given)  # fmt: skip
    y, size = kernel(xp.arange(5, dtype=xp.float32), xp.ones(5, xp.float32), 0.5)
    assert gs.asnumpy(y).tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
    assert gs.asnumpy(size).tolist() == [8] * 5
    real = gs.ElementwiseKernel(
        "real x", "real y", "y = x / 2", "of_macro", type_preamble="#define real float"
    )
    assert gs.asnumpy(real(xp.ones(3, xp.float32), xp.zeros(3, xp.float32))).tolist() == [0.5] * 3


def test_arrays_of_many_axes(xp: ModuleType) -> None:
    ndim = 64 if xp is np else 32
    x = xp.arange(6.0).reshape((1,) * (ndim - 2) + (2, 3))
    y = xp.arange(3.0)
    total = gs.asnumpy(ADD(x, y))
    assert total.shape == x.shape
    np.testing.assert_array_equal(total.reshape(2, 3), gs.asnumpy(x).reshape(2, 3) + gs.asnumpy(y))
    sums = TOTAL(x, axis=(*range(-ndim, -2), -1), keepdims=True)
    assert sums.shape == (1,) * (ndim - 2) + (2, 1)
    assert TOTAL(x, axis=-ndim).shape == x.shape[1:]
    np.testing.assert_array_equal(gs.asnumpy(sums).ravel(), [3, 12])


@pytest.mark.usefixtures("optimized")
def test_more_elements_than_32_bits_count(xp: ModuleType) -> None:
    """Of an array that has one element in memory: the last axis alone is longer than an int holds."""
    count = 2**31 + 5
    x = xp.broadcast_to(xp.ones(1, xp.int8), (count,))
    wide = gs.ReductionKernel("int8 x", "int64 s, int64 last", "P{x, i}", "P{a.s + b.s, a.at > b.at ? a.at : b.at}",
                              "s = a.s; last = a.at", "P{0, 0}", "wide_count", reduce_type="P",
                              preamble="struct P { long long s, at; };")  # fmt: skip
    total, last = wide(x)
    assert (total.item(), last.item()) == (count, count - 1)


@pytest.mark.parametrize(
    ("text", "what"), [("y = x; // \udc80", "half of a character"), ("y = x\x00 + 3", "a NUL character")]
)
def test_texts_that_no_compiler_reads(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=f"`shown`: operation has .*{what},? in line 1"):
        gs.ElementwiseKernel("T x", "T y", text, "shown")
    with pytest.raises(ValueError, match=f"`shown`: post_map_expr has .*{what},? in line 2"):
        gs.ReductionKernel("T x", "T y", "x", "a + b", f"\n{text}", "0", "shown")


def test_a_macro_that_is_a_keyword(xp: ModuleType) -> None:
    kernel = gs.ElementwiseKernel("T x", "T y", "y = x", "shown", preamble="#define void int")
    with pytest.raises(ValueError, match="`shown`: the macro `void` has the name of a keyword"):
        kernel(xp.ones(3))


def test_settings_may_be_words_of_their_own(xp: ModuleType) -> None:
    kernel = gs.ElementwiseKernel(
        "T x", "T y", "y = x", "shown", options=("--std", "c++17", "-fmad", "false")
    )
    np.testing.assert_array_equal(gs.asnumpy(kernel(xp.ones(3))), np.ones(3))
    with pytest.raises(ValueError, match="`shown`: option '--std' needs a value, as in '--std=c"):
        gs.ElementwiseKernel("T x", "T y", "y = x", "shown", options=("--std",))(xp.ones(3))


@pytest.mark.parametrize("shown", [{"strides": (4, 4)}, {"data": (-4, False)}, {"data": (1 << 70, False)}])
def test_array_interfaces_that_are_wrong(shown: dict[str, Any], xp: ModuleType) -> None:
    class Shown:
        __array_interface__: ClassVar[dict[str, Any]] = {
            "shape": (3,),
            "typestr": "<f4",
            "data": (4096, False),
            "version": 3,
            **shown,
        }

    with pytest.raises(
        ArgumentTypeError, match=r"`shown`: argument 0, parameter `x` .* cannot be read: (strides|data) "
    ):
        gs.ElementwiseKernel("T x", "T y", "y = x", "shown")(Shown(), xp.ones(3, "f4"))


@pytest.mark.parametrize(
    "kernel",
    [
        gs.ElementwiseKernel("T x", "T y", "assert(x > 1); y = x", "roots"),
        gs.ElementwiseKernel("T x", "T y", "assert(x > 1); y = x"),
        gs.ReductionKernel("T x", "T y", "x", "a + b", "assert(a > 3); y = a", "0", "all_of_them"),
    ],
    ids=lambda kernel: kernel.name,
)
def test_failed_launches_name_the_kernel(target: Target, xp: ModuleType, kernel: Any) -> None:
    if "gpu" in target.features:
        pytest.skip("an assertion would end the process's use of the device")
    with pytest.raises(gs.LaunchError, match=f"kernel `{kernel.name}`: assertion") as failed:
        kernel(xp.asarray(ones(3)))
    assert failed.value.kernel == kernel.name
