"""What elementwise calls mean, before any memory is touched: parameters, dtypes, shapes, walks."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridstride
from gridstride import _dtypes, arrays
from gridstride._arguments import axes
from gridstride._arguments.elementwise import bind_elementwise
from gridstride._arguments.parameters import ParameterInfo, declare
from gridstride._arguments.promotion import Weak, promote
from gridstride._source.elementwise import assigned_first
from gridstride.targets.walks import _multiplier_and_shift
from tests.array_strategies import SHAPES, broadcastable, layouts

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
        ("unsigned int k", "k", "unsigned int", "uint32", False),
        ("complex<float> z", "z", "complex<float>", "complex64", False),
        ("  float16   h ", "h", "float16", "float16", False),
        ("Point p", "p", "Point", None, False),
    ],
)
def test_a_declaration_says(text: str, name: str, ctype: str, dtype: str | None, raw: bool) -> None:
    info = ParameterInfo(text)
    assert (info.name, info.ctype, info.raw) == (name, ctype, raw)
    assert info.dtype == (None if dtype is None else np.dtype(dtype))


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
        (("T* x", "T y"), "is no type"),
    ],
)
def test_bad_declarations_say_what_is_wrong(declared: tuple[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        declare("k", *declared, "")


# ---- dtypes ----


@given(
    st.lists(st.sampled_from(NUMERIC), min_size=1, max_size=4),
    st.lists(st.sampled_from((True, 1, 1.0, 1j)), max_size=2),
)
@settings(max_examples=400, deadline=None)
def test_promotion_is_numpys(strong: list[Any], weak: list[Any]) -> None:
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


@given(st.data(), SHAPES)
@settings(max_examples=300, deadline=None)
def test_broadcasting_is_numpys(data: st.DataObject, shape: tuple[int, ...]) -> None:
    x, y = data.draw(broadcastable(shape, "f4")), data.draw(broadcastable(shape, "i2"))
    x = x if x.ndim else x.reshape(1)
    assert bound(("T x, S y", "T z"), x, y).shape == np.broadcast_shapes(x.shape, y.shape)


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


@given(st.data(), st.lists(st.integers(0, 5), max_size=4).map(tuple))
@settings(max_examples=500, deadline=None)
def test_collapsed_axes_reach_the_same_elements(data: st.DataObject, shape: tuple[int, ...]) -> None:
    views = [data.draw(layouts(shape, "f4")) for _ in range(2)]
    strides = [view.strides for view in views]
    lengths, walked = axes.collapse(shape, strides)
    before = {tuple(int(np.dot(index, each)) for each in strides) for index in np.ndindex(*shape)}
    after = {
        tuple(sum(at * step for at, step in zip(index, each, strict=True)) for each in walked)
        for index in itertools.product(*map(range, lengths))
    }
    assert after == before or 0 in shape
    assert 0 in shape or np.prod(lengths) == np.prod(shape)


def test_contiguous_arrays_of_any_shape_are_one_axis() -> None:
    x = np.zeros((3, 4, 5))
    assert axes.collapse(x.shape, [x.strides, x.strides])[0] == (60,)
    y = x.transpose(2, 0, 1)
    assert axes.collapse(y.shape, [y.strides, y.strides])[0] == (60,)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(-24, 24)), max_size=3))
@settings(max_examples=400, deadline=None)
def test_overlap_within_an_array_is_found(laid: list[tuple[int, int]]) -> None:
    shape, strides = [length for length, _ in laid], [stride for _, stride in laid]
    starts = [int(np.dot(index, strides)) if laid else 0 for index in np.ndindex(*shape)]
    occupied = [start + byte for start in starts for byte in range(4)]
    if len(set(occupied)) < len(occupied):
        assert axes.may_overlap_itself(shape, strides, 4)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_shared_memory_is_found(data: st.DataObject) -> None:
    whole = np.zeros(200, "i2")
    views = []
    for _ in range(2):
        start, stop = sorted((data.draw(st.integers(0, 200)), data.draw(st.integers(0, 200))))
        views.append(whole[start:stop][:: data.draw(st.sampled_from((1, 2, 3, -1, -2)))])
    first, second = (arrays.view(view) for view in views)
    assert first is not None
    assert second is not None
    if np.shares_memory(*views):
        assert axes.may_share(first, second)


def test_interleaved_views_share_nothing() -> None:
    x = np.zeros((8, 2))
    first, second = arrays.view(x[:, 0]), arrays.view(x[:, 1])
    assert first is not None
    assert second is not None
    assert not axes.may_share(first, second)


@given(st.integers(1, 2**31 - 1), st.integers(0, 2**31 - 1))
@settings(max_examples=500, deadline=None)
def test_division_by_multiplication(length: int, index: int) -> None:
    multiplier, shift = _multiplier_and_shift(length)
    for number in (index, index // length * length, 2**31 - 1):
        assert (number * multiplier >> 32) + number >> shift == number // length


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
