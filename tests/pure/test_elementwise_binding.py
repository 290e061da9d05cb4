"""What elementwise calls mean, before any memory is touched: parameters, dtypes, shapes, walks."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gridstride
import gridstride as gs
from gridstride import _dtypes, arrays
from gridstride._arguments import axes, sharing
from gridstride._arguments.elementwise import bind_elementwise
from gridstride._arguments.parameters import ParameterInfo, declare
from gridstride._arguments.promotion import Weak, promote
from gridstride._arguments.reduction import bind_reduction
from gridstride._source.assignments import assigned_first
from gridstride.targets.walks import multiplier_and_shift
from tests.long_runs import in_parts
from tests.random_arrays import Draw, compare_examples, compare_part

NUMERIC = [np.dtype(name) for name in _dtypes.SCALAR_NAMES if name != "bfloat16"]


def bound(declared: tuple[str, str], *arguments: Any, size: int | None = None) -> Any:
    declaration = declare("k", *declared, "")
    return bind_elementwise(declaration, arguments, [arrays.view(each) for each in arguments], size)


# ---- declarations ----


@pytest.mark.parametrize(
    ("text", "name", "ctype", "dtype", "raw"),
    [
        ("T x", "x", "T", None, False),
        ("raw T1 x", "x", "T1", None, True),
        ("float32 y", "y", "float", "float32", False),
        ("raw const int64 k", "k", "long long", "int64", True),
        ("int const k", "k", "int", "int32", False),
        ("T const x", "x", "T", None, False),
        ("raw Point const p", "p", "Point", None, True),
        ("unsigned int k", "k", "unsigned int", "uint32", False),
        ("complex<float> z", "z", "complex<float>", "complex64", False),
        ("  float16   h ", "h", "float16", "float16", False),
        ("Point p", "p", "Point", None, False),
    ],
)
def test_a_declaration_says(text: str, name: str, ctype: str, dtype: str | None, raw: bool) -> None:
    info = ParameterInfo(text)
    assert (info.name, info.ctype, info.raw) == (name, ctype, raw)
    assert info.is_placeholder == (ctype in ("T", "T1"))
    assert info.is_const == ("const" in text)
    assert ParameterInfo(text, True).is_const
    assert info.dtype == (None if dtype is None else np.dtype(dtype))


def test_what_a_declaration_says_stays() -> None:
    info = ParameterInfo("raw float32 x", 5)  # type: ignore[arg-type]
    assert info.is_const is True
    for copied in (copy.copy(info), copy.deepcopy(info), pickle.loads(pickle.dumps(info))):
        assert copied == info
        assert hash(copied) == hash(info)
    with pytest.raises(AttributeError, match="cannot be changed"):
        info.raw = False
    with pytest.raises(AttributeError, match="cannot be changed"):
        del info.name


def test_declarations_are_text() -> None:
    for read in (ParameterInfo, gs._get_param_info):
        with pytest.raises(TypeError, match=r"such as 'T x.*, got int"):
            read(3)  # type: ignore[arg-type]


def test_lists_of_parameters_are_split_outside_of_angle_brackets() -> None:
    infos = gridstride._get_param_info("T x, pair<int, float> y, raw bool z", True)
    assert [(info.ctype, info.name, info.is_const) for info in infos] == [
        ("T", "x", True), ("pair<int, float>", "y", True), ("bool", "z", True),
    ]  # fmt: skip
    assert gridstride._get_param_info("") == ()


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (("flaot32 x", "T y"), "did you mean 'float32'"),
        (("T x, T x", "T y"), "two parameters"),
        (("T i", "T y"), "'i'"),
        (("T n", "T y"), "'n'"),
        (("T", "T y"), "is no parameter"),
        (("T x,", "T y"), "is no parameter"),
        (("T class", "T y"), "word of C"),
        (("T and", "T y"), "word of C"),
        (("T const_cast", "T y"), "word of C"),
        (("T\u0663 x", "T y"), "unknown type 'T"),
        (("T* x", "T y"), "is no type"),
        (("T x y z", "T y"), "'T x y' is no type"),
        (("const x", "T y"), "'const x' is no parameter: write a type and a name"),
        (("T const* x", "T y"), "is no type"),
        (("raw x", "T y"), "unknown type 'raw'"),
        (("int32 unsigned x", "T y"), "is no type"),
    ],
)
def test_bad_declarations_say_what_is_wrong(declared: tuple[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        declare("k", *declared, "")


# ---- dtypes ----


def check_promotion(draw: Draw) -> None:
    """Arrays and Python numbers get NumPy's dtype."""
    strong = [draw.pick(NUMERIC) for _ in range(draw.number(1, 4))]
    weak = [draw.pick((True, 1, 1.0, 1j)) for _ in range(draw.number(0, 2))]
    given_dtypes = [*strong, *(Weak(type(value)) for value in weak)]
    assert promote(given_dtypes) == np.result_type(*strong, *weak)


def test_python_numbers_alone_take_numpys_defaults() -> None:
    for value in (True, 1, 1.0, 1j):
        assert promote([Weak(type(value))]) == np.asarray(value).dtype


def test_bfloat16_gives_way_to_float32_alone() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    small = np.dtype(ml_dtypes.bfloat16)
    assert promote([small, Weak(float)]) == small
    assert promote([small, Weak(int)]) == small
    assert promote([small, Weak(complex)]) == np.complex64
    assert promote([small, np.dtype(np.float32)]) == np.float32
    for others in (*itertools.combinations(NUMERIC, 1), *itertools.combinations(NUMERIC, 2)):
        assert promote([small, *others]) == np.result_type(small, *others)


def test_bfloat16_where_numpy_knows_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = np.dtype([("bfloat16", np.uint16)])
    monkeypatch.setattr(_dtypes, "bfloat16", lambda: bits)
    for dtype, common in (
        ("int8", bits),
        ("int16", "f4"),
        ("float16", "f4"),
        ("int32", "f8"),
        ("complex64", "c8"),
    ):
        assert promote([bits, np.dtype(dtype)]) == common


def test_a_placeholder_that_nothing_binds_is_an_error() -> None:
    with pytest.raises(TypeError, match="no argument says what U"):
        bound(("T x", "U y"), np.ones(2))
    assert bound(("T x", "U y"), np.ones(2), np.ones(2, "f4")).types == {"T": np.float64, "U": np.float32}


@pytest.mark.parametrize("given_dtype", ["float64", "int64", "complex64"])
def test_inputs_are_cast_only_safely(given_dtype: str) -> None:
    with pytest.raises(TypeError, match="astype"):
        bound(("float32 x", "T y"), np.ones(2, given_dtype), np.ones(2))


def test_outputs_must_be_able_to_hold_the_result() -> None:
    with pytest.raises(TypeError, match="cannot hold"):
        bound(("T x", "T y"), np.ones(2, "f8"), np.ones(2, "i8"))
    bound(("T x", "T y"), np.ones(2, "f8"), np.ones(2, "f4"))


# ---- shapes ----


def check_broadcasting(draw: Draw) -> None:
    """Shapes broadcast as NumPy's do, or are refused where they do not."""
    shape, other = draw.shape(), draw.shape()
    x, y = draw.operand(np, shape, "f4").host, draw.operand(np, draw.pick((shape, other)), "i2").host
    try:
        expected = np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        with pytest.raises(ValueError, match="broadcast"):
            bound(("T x, S y", "T z"), x, y)
        return
    assert bound(("T x, S y", "T z"), x, y).shape == expected


def test_case_p03_an_output_is_never_broadcast() -> None:
    with pytest.raises(ValueError, match=r"non-broadcastable output.*\(4,\).*\(3, 4\)"):
        bound(("T x", "T y"), np.ones((3, 4)), np.ones(4))


def test_inputs_broadcast_to_the_output() -> None:
    assert bound(("T x", "T y"), np.ones(4), np.ones((3, 4))).shape == (3, 4)


def test_case_p04_size_is_for_raw_arrays() -> None:
    with pytest.raises(ValueError, match="'x' decide"):
        bound(("T x", "T y"), np.ones(3), size=2)
    with pytest.raises(ValueError, match="loop size undecided"):
        bound(("raw T x", "raw T y"), np.ones(3), np.ones(3))
    assert bound(("", "raw float64 y"), size=2).made == ((np.dtype("f8"), (2,)),)
    assert bound(("T x", "T y"), 1.5, size=3).shape == (3,)


# ---- walks ----


def check_collapsed_axes(draw: Draw) -> None:
    """The fewest axes reach the same elements of all operands."""
    shape = draw.shape(range(6), least=0)
    strides = [draw.array(np, shape, "f4").host.strides for _ in range(2)]
    lengths, walked = axes.collapse(shape, strides)
    before = {tuple(int(np.dot(index, each)) for each in strides) for index in np.ndindex(*shape)}
    after = {
        tuple(sum(at * step for at, step in zip(index, each, strict=True)) for each in walked)
        for index in itertools.product(*map(range, lengths))
    }
    assert after == before
    assert np.prod(lengths) == np.prod(shape)
    assert len(lengths) <= max(len(shape), 1)
    assert 0 not in shape or lengths == (0,)


def test_contiguous_arrays_of_any_shape_are_one_axis() -> None:
    x = np.zeros((3, 4, 5))
    assert axes.collapse(x.shape, [x.strides, x.strides])[0] == (60,)
    y = x.transpose(2, 0, 1)
    assert axes.collapse(y.shape, [y.strides, y.strides])[0] == (60,)


def check_overlap_within_an_array(draw: Draw) -> None:
    """Arrays of which two elements share a byte are known, and no others taken for such."""
    shape = [draw.number(1, 4) for _ in range(draw.number(0, 3))]
    strides = [draw.number(-24, 24) for _ in shape]
    starts = [int(np.dot(index, strides)) if shape else 0 for index in np.ndindex(*shape)]
    occupied = [start + byte for start in starts for byte in range(4)]
    assert sharing.may_overlap_itself(shape, strides, 4) == (len(set(occupied)) < len(occupied))


def check_shared_memory(draw: Draw) -> None:
    """Arrays that share a byte are known, and no others taken for such."""
    shape = tuple(draw.number(1, 9) for _ in range(draw.number(1, 3)))
    whole, views = np.zeros(shape, draw.pick(("i2", "f8", "c16"))), []
    for _ in range(2):
        cuts = [sorted((draw.number(0, length), draw.number(0, length))) for length in shape]
        view = whole[tuple(slice(start, stop) for start, stop in cuts)]
        view = view[tuple(slice(None, None, draw.pick((1, 2, 3, -1, -2))) for _ in shape)]
        view = draw.pick((view.real, view.imag, view)) if view.dtype.kind == "c" else view
        views.append(view.T if draw.number(0, 1) else view)
    first, second = (arrays.view(view) for view in views)
    assert first is not None
    assert second is not None
    assert sharing.may_share(first, second) == np.shares_memory(*views)


def test_interleaved_views_share_nothing() -> None:
    x = np.zeros((8, 2))
    first, second = arrays.view(x[:, 0]), arrays.view(x[:, 1])
    assert first is not None
    assert second is not None
    assert not sharing.may_share(first, second)


def test_long_axes_are_told_apart_at_once() -> None:
    whole = np.lib.stride_tricks.as_strided(np.zeros(1), (10**9, 3), (24, 8), writeable=False)
    parts = [
        whole[:, 0],
        whole[::-1, 1],
        whole[5 : 10**8, 2],
        whole[: 10**9 // 2, ::2],
        whole[10**9 // 2 :, 1:],
    ]
    for view, other in itertools.combinations(parts, 2):
        first, second = arrays.view(view), arrays.view(other)
        assert first is not None
        assert second is not None
        assert sharing.may_share(first, second) == (np.shares_memory(view, other))


def test_what_takes_too_long_to_tell_may_share() -> None:
    strides = [2 * 7**k + 2 * 5**k for k in range(2, 12)]
    assert sharing.may_overlap_itself([40] * len(strides), strides, 1)


def check_division(draw: Draw) -> None:
    """Multiplying and shifting divides any index by any length."""
    length, index = draw.number(1, 2 ** draw.number(1, 31) - 1), draw.number(0, 2**31 - 1)
    multiplier, shift = multiplier_and_shift(length)
    for number in (index, index // length * length, 2**31 - 1):
        assert (number * multiplier >> 32) + number >> shift == number // length


def check_folded_axes(draw: Draw) -> None:
    """Results of folds have NumPy's shape, and every input element is folded into one of them."""
    shape = draw.shape(range(6), least=0)
    x, axis, keepdims = draw.array(np, shape, "i4").host, draw.axes(len(shape)), draw.one_in(2)
    fold = bind_reduction(
        declare("k", "T x", "T y", ""), (x,), [arrays.view(x)], axis, keepdims, dtype=None, has_identity=True
    )
    assert fold.made[0][1] == np.sum(x, axis=axis, keepdims=keepdims).shape
    assert np.prod(fold.result) * fold.fold_size == x.size


CHECKS = [
    check_promotion, check_broadcasting, check_collapsed_axes, check_overlap_within_an_array, check_shared_memory,
    check_division, check_folded_axes,
]  # fmt: skip


@pytest.mark.parametrize("check", CHECKS)
def test_random_calls(check: Callable[[Draw], None]) -> None:
    compare_examples(check, -(-2_000 // len(CHECKS)))


@pytest.mark.soak
@in_parts
@pytest.mark.parametrize("check", CHECKS)
def test_random_calls_for_long(part: int, check: Callable[[Draw], None]) -> None:
    compare_part(check, -(-50_000 // len(CHECKS)), part)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y = x", True), ("y = x; y += 1", True), ("T t = x; y = t", True), ("y = y + x", False), ("y += x", False),
        ("if (x > 0) y = x", False), ("if (x > 0) return; y = x", False), ("{ y = x; }", False), ("y == x", False),
        ("f(y); y = x", False), ("/* y */ y = x", True), ("x > 0 ? y = 1 : y = 2", False), ("", False),
    ],
)  # fmt: skip
def test_what_is_assigned_first(text: str, expected: bool) -> None:
    assert assigned_first(text, "y") is expected


@pytest.mark.parametrize(
    ("text", "preambles", "options", "expected"),
    [
        ("SKIP(x); y = x", "#define SKIP(v) if (v < 0) return", (), False),
        ("SKIP(x); y = x", "#define SKIP(v) \\\n  LEAVE(v)\n#define LEAVE(v) if (v < 0) continue", (), False),
        ("SKIP(x); y = x", "#define PASTE(u, v) u##v\n#define SKIP PASTE(ret, urn)", (), False),
        ("OLD; y = x + old", "#define OLD T old = y", (), False),
        ("y = x + OLD", "#define OLD y", (), False),
        ("y = x + OLD", "", ("-DOLD=y",), False),
        ("SKIP(x); y = x", "", ("-DSKIP(v)=if (v < 0) return",), False),
        ("SKIP; y = x", "", ("-O3", "-D", "SKIP=if (x < 0) return"), False),
        ("SKIP; y = x", "", ("--define-macro=SKIP=return", "-O3"), False),
        ("f(x); y = x", "", ("-I/for/y", "-DOTHER=if", "-std=c++17"), True),
        ("y = LARGER(x, T(0))", "#define LARGER(x, y) ((x) > (y) ? (x) : (y))", ("-DN=3", "-O3"), True),
        ("y = f(x)", "#define EACH(k, n) for (int k = 0; k < n; k++)\n// #define f return", (), True),
        ("#ifdef FAST\nT t = x;\ny = t;\n#endif", "", (), False),
        ("CHECK(x); y = x", '#include "check.h"', (), False),
        ("CHECK; y = x", '#include "check.h"', (), False),
        ("T t = scaled(x); y = t * CUDART_PI_F", "#include <math_constants.h>", (), True),
        ("CHECK(x); y = x", "#include <gridstride/random.h>", (), True),
    ],
)
def test_what_is_assigned_first_where_macros_stand_between(
    text: str, preambles: str, options: tuple[str, ...], expected: bool
) -> None:
    assert assigned_first(text, "y", preambles, options) is expected
