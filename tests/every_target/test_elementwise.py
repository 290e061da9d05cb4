"""Elementwise kernels: the same calls on every target, compared with NumPy."""

from __future__ import annotations

import copy
import inspect
import pickle
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride import _dtypes
from gridstride.targets.base import Target
from tests.array_values import values
from tests.crosses import cases_in_soak, in_turns

ADD = gs.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")
COPY = gs.ElementwiseKernel("T x", "T y", "y = x", "assign")
MIXED = gs.ElementwiseKernel("X x, Y y", "float64 z, X w", "z = x * 2.0 + y; w = x", "mixed")
NUMBER = gs.ElementwiseKernel("T x", "int64 k", "k = i", "number")

NUMERIC = [name for name in _dtypes.SCALAR_NAMES if name != "bfloat16"]


# ---- layouts and dtypes; random calls are in a file of their own ----


@pytest.mark.parametrize("dtype", NUMERIC)
def test_every_dtype(xp: ModuleType, dtype: str) -> None:
    x, y = values((57, 43), dtype, 1), values((57, 43), dtype, 2)
    expected = (x | y) if dtype == "bool" else x + y
    for given_x, given_y, wanted in ((x, y, expected), (x.T, y.T, expected.T), (x[:, ::2], y[:, 1:2], None)):
        wanted = (given_x | given_y if dtype == "bool" else given_x + given_y) if wanted is None else wanted
        result = ADD(xp.asarray(given_x), xp.asarray(given_y))
        assert result.dtype == dtype
        np.testing.assert_array_equal(gs.asnumpy(result), wanted)


def test_bfloat16(xp: ModuleType) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = values((301,), ml_dtypes.bfloat16, 1)
    special = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], ml_dtypes.bfloat16)
    x = np.concatenate([x, special])
    result = ADD(x, x)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result.astype("f4"), (x + x).astype("f4"))
    for dtype in ("bool", "int8", "uint8", "int16", "float16", "int32"):
        y = values(x.shape, dtype, 2)
        result = ADD(x, y)
        assert result.dtype == (x + y).dtype
        np.testing.assert_array_equal(result.astype("f8"), (x + y).astype("f8"))


@pytest.mark.parametrize("dtype", NUMERIC)
def test_choices_by_an_array_of_bools(xp: ModuleType, dtype: str) -> None:
    text = "u = c ? x : y; if (c) v = x; else v = y; w = y; if (c) w = x;"
    kernel = gs.ElementwiseKernel("bool c, T x, T y", "T u, T v, T w", text, "choose")
    x, y = values((7, 301), dtype, 1), values((7, 301), dtype, 2)
    for shape in ((7, 301), (7, 1), (301,)):
        chosen = values(shape, "int8", 3) > 0
        for result in kernel(xp.asarray(chosen), xp.asarray(x), xp.asarray(y)):
            np.testing.assert_array_equal(gs.asnumpy(result), np.where(chosen, x, y))


def test_float16_is_converted_exactly(xp: ModuleType) -> None:
    every = np.arange(2**16, dtype=np.uint16).view("f2")
    wide = gs.asnumpy(gs.ElementwiseKernel("T x", "float32 y", "y = x", "widen")(xp.asarray(every)))
    np.testing.assert_array_equal(wide, every.astype("f4"))
    numbers = every == every  # a GPU gives what is not a number a sign of its own
    np.testing.assert_array_equal(np.signbit(wide)[numbers], np.signbit(every)[numbers])
    random = np.random.default_rng(1)
    with np.errstate(all="ignore"):
        finite = wide[np.isfinite(wide)]
        middles = ((finite[1:] + finite[:-1]) / 2, np.nextafter(finite, np.float32(1e9)))
        bits = random.integers(0, 2**32, 200_000, np.uint64).astype(np.uint32).view("f4")
        numbers = np.concatenate([finite, *middles, bits]).astype("f4")
        expected = numbers.astype("f2")
    twice = gs.ElementwiseKernel("T x", "T y", "y = __hadd(x, x)", "twice")  # not that of ints
    finite = every[np.abs(wide) < 30_000]
    np.testing.assert_array_equal(gs.asnumpy(twice(xp.asarray(finite))), finite + finite)
    narrow = gs.asnumpy(gs.ElementwiseKernel("T x", "float16 y", "y = x", "narrow")(xp.asarray(numbers)))
    np.testing.assert_array_equal(narrow, expected)
    np.testing.assert_array_equal(
        np.signbit(narrow)[numbers == numbers], np.signbit(expected)[numbers == numbers]
    )


@pytest.mark.parametrize(("stored", "value"), in_turns(NUMERIC, ["float64", "complex128"]))
def test_inputs_are_read_as_the_dtype_that_a_placeholder_gets(
    xp: ModuleType, stored: str, value: str
) -> None:
    x, y = values((65,), stored, 1), values((65,), value, 2)
    if not np.can_cast(stored, value):
        pytest.skip("no such promotion")
    result = ADD(xp.asarray(x), xp.asarray(y))
    np.testing.assert_array_equal(gs.asnumpy(result), x + y)


@pytest.mark.parametrize("stored", ["float32", "float16", "complex64", "int8"])
def test_outputs_are_stored_as_the_dtype_they_have(xp: ModuleType, stored: str) -> None:
    wide = {"float32": "f8", "float16": "f4", "complex64": "c16", "int8": "i4"}[stored]
    x = values((65,), wide, 1)
    out = xp.zeros(65, stored)
    COPY(xp.asarray(x), out)
    np.testing.assert_array_equal(gs.asnumpy(out), x.astype(stored))


def test_several_inputs_and_outputs_of_several_dtypes(xp: ModuleType) -> None:
    x, y = values((7, 129), "i2", 1), values((129,), "f4", 2)
    z, w = MIXED(xp.asarray(x), xp.asarray(y))
    assert (z.dtype, w.dtype) == (np.float64, np.int16)
    np.testing.assert_array_equal(gs.asnumpy(z), x * 2.0 + y)
    np.testing.assert_array_equal(gs.asnumpy(w), x)


@pytest.mark.parametrize("shape", [(0,), (3, 0, 4)])
def test_nothing_is_launched_or_compiled_for_no_elements(
    xp: ModuleType, target: Target, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]
) -> None:
    monkeypatch.setenv("GRIDSTRIDE_FORBID_COMPILATION", "1")
    never = gs.ElementwiseKernel("T x", "T y", "y = this is no C++", "never")
    result = never(xp.zeros(shape, "f4"))
    assert (result.shape, result.dtype) == (shape, np.float32)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_outputs_that_are_blocks_of_one_array(xp: ModuleType, dtype: str) -> None:
    both = gs.ElementwiseKernel("T x", "T y, T z", "y = x; z = -x", "both_signs")
    x = values((37, 35), dtype, 1)
    left, right = np.s_[:, :35], np.s_[:, 35:]
    for first, second in (
        (left, right),
        (right, left),
        (np.s_[:, 1::2], np.s_[:, ::2]),
        (np.s_[:, 34::-1], right),
    ):
        out, expected = xp.full((37, 70), 9, dtype), np.full((37, 70), 9, dtype)
        both(xp.asarray(x), out[first], out[second])
        expected[first], expected[second] = x, -x
        np.testing.assert_array_equal(gs.asnumpy(out), expected)
    with pytest.raises(ValueError, match="outputs 'y' and 'z' share memory"):
        both(xp.asarray(x), out[left], out[:, 34:69])


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(70, 300), (5, 12, 131)])
def test_neighbors_in_one_array(xp: ModuleType, dtype: str, shape: tuple[int, ...]) -> None:
    stencil = gs.ElementwiseKernel(
        "T x, T a, T b, T c, T d", "T z", "z = a + b + c + d - T(4) * x", "stencil"
    )
    x, inner, before, behind = values(shape, dtype, 1), slice(1, -1), slice(None, -2), slice(2, None)
    places = [(inner, inner), (inner, before), (inner, behind), (before, inner), (behind, inner)]
    middle, *around = (x[..., row, column] for row, column in places)
    given = xp.asarray(x)
    result = stencil(*(given[..., row, column] for row, column in places))
    expected = sum(around) - np.dtype(dtype).type(4) * middle
    np.testing.assert_allclose(gs.asnumpy(result), expected, rtol=1e-2)
    stencil(*(given[..., row, column] for row, column in places), given[..., inner, inner])
    np.testing.assert_allclose(gs.asnumpy(given)[..., inner, inner], expected, rtol=1e-2)
    np.testing.assert_array_equal(gs.asnumpy(given)[..., 0], x[..., 0])


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "complex128"])
def test_arrays_along_three_axes(xp: ModuleType, dtype: str) -> None:
    total = gs.ElementwiseKernel("T x, T y, T w", "T z", "z = x + y + w", "of_three")
    x = values((37, 37, 37), dtype, 1)
    given = xp.asarray(x)
    result = total(given, given.transpose(1, 2, 0), given.transpose(2, 0, 1))
    np.testing.assert_allclose(gs.asnumpy(result), x + x.transpose(1, 2, 0) + x.transpose(2, 0, 1), rtol=1e-2)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(50, 10, 5), (30, 100, 7), (9, 17, 225), (7, 64, 49)])
def test_factors_of_channels_beside_pixels(xp: ModuleType, dtype: str, shape: tuple[int, ...]) -> None:
    affine = gs.ElementwiseKernel("T x, T s, T b", "T z", "z = s * x + b", "affine")
    x, factor, summand = values(shape, dtype, 1), values(shape[1:2], dtype, 2), values(shape[1:2], dtype, 3)
    out = xp.zeros((shape[0], shape[2], shape[1]), dtype)
    affine(xp.asarray(x).transpose(0, 2, 1), xp.asarray(factor), xp.asarray(summand), out)
    np.testing.assert_allclose(gs.asnumpy(out), factor * x.transpose(0, 2, 1) + summand, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "complex128"])
@pytest.mark.parametrize("parts", [1, 2, 3, 4, 5])
def test_pixels_that_are_repeated(xp: ModuleType, dtype: str, parts: int) -> None:
    copy = gs.ElementwiseKernel("T x", "T y", "y = x", "enlarge")
    pixels = values((6, 2400, parts), dtype, 1)
    for times in (2, 3):
        larger = xp.zeros((6, times, 2400, times, parts), dtype)
        copy(xp.asarray(pixels)[:, None, :, None], larger)
        expected = np.broadcast_to(pixels[:, None, :, None], larger.shape)
        np.testing.assert_array_equal(gs.asnumpy(larger), expected)


def test_hundreds_of_parameters(xp: ModuleType) -> None:
    count = 300
    scalars = ", ".join(f"T s{k}" for k in range(count))
    kernel = gs.ElementwiseKernel(f"T x, {scalars}", "T y", f"y = x + s0 + s{count - 1}", "hundreds")
    x = xp.arange(6.0)
    for _ in range(4):  # the last calls are those of the fast path
        result = gs.asnumpy(kernel(x, *map(float, range(1, count + 1))))
        np.testing.assert_array_equal(result, np.arange(6.0) + 1 + count)


def test_axes_without_limit(xp: ModuleType) -> None:
    shape = (2, 1, 3, 1, 2, 2, 1, 2, 2, 3)
    x = values(shape, "f4", 1)[:, :, ::-1].transpose(9, 3, 5, 1, 7, 0, 2, 8, 6, 4)
    y = values(shape, "f4", 2).transpose(9, 3, 5, 1, 7, 0, 2, 8, 6, 4)
    np.testing.assert_array_equal(gs.asnumpy(ADD(xp.asarray(x), xp.asarray(y))), x + y)


@pytest.mark.parametrize("dtype", ["i1", "f4", "c16"])
def test_axes_backwards(xp: ModuleType, dtype: str) -> None:
    """Calls like earlier ones too, of which the third is made by the compiled fast path."""
    x, numbers = values((3, 70, 33), dtype, 1), np.arange(3 * 70 * 33).reshape(3, 70, 33)
    for signs in ((-1, 1, 1), (1, -1, 1), (1, 1, -1), (-1, -1, -1)):
        back = tuple(slice(None, None, sign) for sign in signs)
        read, room = xp.asarray(x)[back], xp.zeros((5, 70, 33), dtype)
        for source, out, expected in (
            (read, room[1:4], x[back]),
            (xp.asarray(x), room[1:4][back], x),
            (read, room[1:4][back], x[back]),
            (read.transpose(2, 1, 0), room[1:4].transpose(2, 1, 0)[::-1], x[back].transpose(2, 1, 0)),
        ):
            for _ in range(3):
                room[1:4] = 0
                COPY(source, out)
                np.testing.assert_array_equal(gs.asnumpy(out), expected)
        turned = xp.zeros((33, 70, 3), dtype)
        COPY(read.transpose(2, 1, 0), turned)
        np.testing.assert_array_equal(gs.asnumpy(turned), x[back].transpose(2, 1, 0))
        places = xp.zeros((3, 70, 33), "i8")
        NUMBER(read, places[back])
        np.testing.assert_array_equal(gs.asnumpy(places[back]), numbers)
        assert not gs.asnumpy(room)[[0, 4]].any()


@pytest.mark.parametrize(("longest", "dtype"), [(8, "int8"), *cases_in_soak((64, "float32"))])
def test_a_thousand_shapes_and_twelve_layouts_compile_a_few_texts(
    xp: ModuleType, loaded_texts: list[object], longest: int, dtype: str
) -> None:
    call_in_twelve_layouts(xp, dtype, longest, f"difference_up_to_{longest}")
    assert 1 <= len(loaded_texts) <= 6


def call_in_twelve_layouts(xp: ModuleType, dtype: str, longest: int, name: str) -> None:
    """Call a new kernel with a thousand shapes of axes up to a length, in one of twelve layouts each."""
    fresh = gs.ElementwiseKernel("T x, T y", "T z", "z = x - y", name)
    random = np.random.default_rng(1)
    for count in range(1000):
        a, b, c = (int(length) for length in random.integers(1, longest, 3, endpoint=True))
        x = xp.ones((a, b, c), dtype)
        views = [
            (x, x), (x, x[:1]), (x, x[:, :1]), (x, x[..., :1]), (x[..., :1], x[:1]), (x.T, x.T), (x[::2], x[::2]),
            (x[..., ::2], x[..., ::2]), (x[::-1], x), (x.transpose(1, 0, 2), x[0, 0]), (x[0], x[0]), (x, 2),
        ]  # fmt: skip
        fresh(*views[count % 12])
    big = xp.ones((40, 50, 60), dtype)
    fresh(big, xp.ones((60, 50, 40), dtype).T)


# ---- the body ----


@pytest.mark.parametrize("how", ["option", "file", "pasted"])
def test_numbers_that_macros_ask_for(xp: ModuleType, how: str, tmp_path: Path) -> None:
    """Axes that nobody numbers go forwards in memory."""
    header = tmp_path / "number.h"
    header.write_text("#define NUMBER i\n")
    preamble = {"file": f'#include "{header}"', "pasted": "#define JOIN(a, b) a##b"}.get(how, "")
    operation, options = ("y = JOIN(NUM, BER)" if how == "pasted" else "y = NUMBER"), ("-DNUMBER=i",)
    numbered = gs.ElementwiseKernel(
        "T x",
        "T y",
        operation,
        f"numbered_by_{how}",
        preamble=preamble,
        options=() if how == "file" else options,
    )
    x = xp.zeros((5, 7), "f4")
    for view in (x, x[::-1], x[:, ::-1], x.T, x.T[::-1], x[::-1, ::-1]):
        expected = np.arange(view.size, dtype="f4").reshape(view.shape)
        np.testing.assert_array_equal(gs.asnumpy(numbered(view)), expected)


def test_the_index_by_a_macro_of_the_options(xp: ModuleType) -> None:
    kernel = gs.ElementwiseKernel(
        "T x", "int64 k", "k = COLUMN", "columns", options=("-DCOLUMN=_ind.get()[1]",)
    )
    np.testing.assert_array_equal(gs.asnumpy(kernel(xp.zeros((3, 4)))), [range(4)] * 3)


def test_raw_arrays_are_indexed(xp: ModuleType) -> None:
    x, table = values((100,), "i4", 1) % 7, values((7,), "f4", 2)
    look = gs.ElementwiseKernel("int32 k, raw T table", "T y", "y = table[k]", "look")
    np.testing.assert_array_equal(gs.asnumpy(look(xp.asarray(x), xp.asarray(table))), table[x])


def test_raw_arrays_of_any_layout(xp: ModuleType) -> None:
    whole = values((8, 12), "f4", 1)
    gather = gs.ElementwiseKernel(
        "raw T x",
        "T y, T z, T w",
        "y = x[i]; z = x[{i / x.shape()[1], i % x.shape()[1]}]; w = x.size() + x.ndim",
        "gather",
    )
    for x in (whole, whole.T, whole[::2, ::-3]):
        y, z, w = (xp.empty(x.shape, "f4") for _ in range(3))
        gather(xp.asarray(x), y, z, w)
        np.testing.assert_array_equal(gs.asnumpy(y), x)
        np.testing.assert_array_equal(gs.asnumpy(z), x)
        assert (gs.asnumpy(w) == x.size + 2).all()


@pytest.mark.parametrize("integer", ["ptrdiff_t", "long long", "int64_t"])
def test_numbers_for_each_axis_are_pointers_to_either_integer(xp: ModuleType, integer: str) -> None:
    kernel = gs.ElementwiseKernel(
        "T x, raw T whole", "T y, int64 k",
        f"const {integer}* shape = whole.shape(); const {integer}* strides = whole.strides();"
        f"const {integer}* at = _ind.get(); {integer} index[] = {{at[0], at[1]}}; y = whole[index];"
        "k = shape[0] + 100 * shape[1] + 10000 * strides[1] + 1000000 * *(whole.shape() + 1)", "axes_by_pointers",
    )  # fmt: skip
    x = xp.asarray(values((5, 18), "f4", 1))[:, ::2]
    y, k = kernel(x, x)
    np.testing.assert_array_equal(gs.asnumpy(y), gs.asnumpy(x))
    assert (gs.asnumpy(k) == 5 + 900 + 10000 * x.strides[1] + 9000000).all()


def test_raw_outputs_need_a_size(xp: ModuleType) -> None:
    scatter = gs.ElementwiseKernel("raw T x", "raw T y", "y[n - 1 - i] = x[i]", "scatter")
    x, y = xp.arange(9.0), xp.zeros(9)
    scatter(x, y, size=9)
    np.testing.assert_array_equal(gs.asnumpy(y), np.arange(9.0)[::-1])


def test_the_index_along_each_axis(xp: ModuleType) -> None:
    indices = gs.ElementwiseKernel(
        "T x, raw T whole", "int64 k, T y",
        "k = _ind.get()[0] * 100 + _ind.get()[1] + 0 * _ind.size(); y = whole[_ind.get()]", "indices",
    )  # fmt: skip
    x = values((5, 9), "f4", 1)
    for each in (x, x.T, x[:, ::-1]):
        k, y = indices(xp.asarray(each), xp.asarray(each))
        rows, columns = np.indices(each.shape)
        np.testing.assert_array_equal(gs.asnumpy(k), rows * 100 + columns)
        np.testing.assert_array_equal(gs.asnumpy(y), each)


def test_earlier_values_of_outputs_can_be_used_and_kept(xp: ModuleType) -> None:
    x, out = values((7, 41), "f4", 1), values((7, 41), "f4", 2)
    for view in (out.copy(), out.copy()[:, ::-1], np.asfortranarray(out)):
        before, given_out = view.copy(), xp.asarray(view)
        gs.ElementwiseKernel("T x", "T y", "y += x", "accumulate")(xp.asarray(x), given_out)
        np.testing.assert_array_equal(gs.asnumpy(given_out), before + x)
        gs.ElementwiseKernel("T x", "T y", "if (x > 0) y = x", "keep")(xp.asarray(x), given_out)
        np.testing.assert_array_equal(gs.asnumpy(given_out), np.where(x > 0, x, before + x))


@pytest.mark.parametrize("way", ["preamble", "options", "file", "directive"])
def test_macros_that_end_an_element_keep_what_is_there(xp: ModuleType, way: str, tmp_path: Path) -> None:
    header = tmp_path / "leave.h"
    header.write_text("#define LEAVE(v) if (v < 0) return\n")
    operation, given = "LEAVE(x); y = x; z = KEPT + x", {"preamble": "#define KEPT z\n"}
    if way == "directive":
        operation = "\n#ifdef NEVER\n y = x;\n#endif\n LEAVE(x); z = KEPT + x"
    if way == "options":
        given["options"] = ("-DLEAVE(v)=if (v < 0) return",)
    else:
        given["preamble"] += f'#include "{header}"' if way == "file" else header.read_text()
    x = values((300,), "f4", 1)
    y, z = xp.full(300, 7, "f4"), xp.full(300, 8, "f4")
    gs.ElementwiseKernel("T x", "T y, T z", operation, f"leave_by_{way}", **given)(xp.asarray(x), y, z)
    kept = x < 0 if way != "directive" else np.full(300, True)
    np.testing.assert_array_equal(gs.asnumpy(y), np.where(kept, 7, x))
    np.testing.assert_array_equal(gs.asnumpy(z), np.where(x < 0, 8, 8 + x))


def test_names_that_only_hosts_have_taken(xp: ModuleType) -> None:
    taken = np.dtype([("linux", "f4"), ("errno", "f4"), ("not", "f4"), ("or", "i4")])
    x = np.zeros(5, taken)
    x["linux"], x["errno"], x["not"], x["or"] = np.arange(5), 1, 2, 3
    kernel = gs.ElementwiseKernel(
        "P p, T unix", "P linux, T errno", "linux = p; errno = p.linux + unix", "taken"
    )
    out = xp.asarray(np.zeros_like(x))
    _, total = kernel(xp.asarray(x), 2.5, out, xp.zeros(5))
    np.testing.assert_array_equal(gs.asnumpy(out), x)
    np.testing.assert_array_equal(gs.asnumpy(total), np.arange(5) + 2.5)


def test_return_and_continue_end_an_element(xp: ModuleType) -> None:
    x = values((300,), "i4", 1)
    body = "y = 0; if (x < 0) return; if (x % 2) continue; y = x"
    result = gs.ElementwiseKernel("T x", "T y", body, "leave")(xp.asarray(x))
    np.testing.assert_array_equal(gs.asnumpy(result), np.where((x >= 0) & (x % 2 == 0), x, 0))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_signs_of_every_float(xp: ModuleType, dtype: str) -> None:
    x = np.array([1, -1, 0.0, -0.0, np.inf, -np.inf] * 9, dtype)
    kernel = gs.ElementwiseKernel("T x", "bool y, int32 z", "y = signbit(x); z = x < T(0)", "signs")
    for each in (
        gs.ElementwiseKernel("T x", "bool y", "y = signbit(x)", "sign")(xp.asarray(x)),
        kernel(xp.asarray(x))[0],
    ):
        np.testing.assert_array_equal(gs.asnumpy(each), np.signbit(x))


def test_texts_around_the_loop(xp: ModuleType) -> None:
    kernel = gs.ElementwiseKernel(
        "T x, T s", "T y", "y = scaled(x) + offset", "around",
        preamble="__device__ T scaled(T x) { return x * FACTOR; }", type_preamble="#define FACTOR 3",
        loop_prep="T offset = s + n", after_loop="offset = 0",
    )  # fmt: skip
    x = np.arange(5.0)
    np.testing.assert_array_equal(gs.asnumpy(kernel(xp.asarray(x), 2.0)), x * 3 + 2 + 5)


def test_options_reach_the_compiler(xp: ModuleType) -> None:
    kernel = gs.ElementwiseKernel("T x", "T y", "y = x + SHIFT", "shifted", options=("-DSHIFT=4", "-O3"))
    np.testing.assert_array_equal(gs.asnumpy(kernel(xp.arange(3))), [4, 5, 6])
    with pytest.raises(ValueError, match="--unknown"):
        gs.ElementwiseKernel("T x", "T y", "y = x", "bad", options=("--unknown",))(xp.arange(3))


def test_structures(xp: ModuleType) -> None:
    points = np.zeros(11, np.dtype([("x", "f4"), ("k", "i8"), ("flag", "?")], align=True))
    points["x"], points["k"] = np.arange(11) / 2, np.arange(11)
    norm = gs.ElementwiseKernel("P p, P origin", "float64 r", "r = (p.x - origin.x) + p.k", "norm")
    np.testing.assert_array_equal(
        gs.asnumpy(norm(xp.asarray(points), points[1])), points["x"] - 0.5 + points["k"]
    )
    named = gs.ElementwiseKernel(
        "Point p", "Point q", "q = p; q.flag = p.k > 5", "flags",
        type_preamble="struct Point { float x; long long k; bool flag; };",
    )  # fmt: skip
    out = xp.asarray(np.zeros_like(points))
    np.testing.assert_array_equal(gs.asnumpy(named(xp.asarray(points), out))["flag"], points["k"] > 5)


def test_large_structures(xp: ModuleType) -> None:
    large = np.zeros((300, 4), [("head", "f8"), ("rest", "u1", (6000,))])
    large["head"] = np.arange(1200).reshape(300, 4)
    heads = gs.ElementwiseKernel("P p, T k", "float64 y", "y = p.head * k", "heads")
    result = heads(xp.asarray(large[::2, ::-1]), xp.asarray(np.arange(4.0)))
    np.testing.assert_array_equal(gs.asnumpy(result), large["head"][::2, ::-1] * np.arange(4.0))


@pytest.mark.parametrize("count", [50, pytest.param(120, marks=pytest.mark.soak)])
def test_many_operands(xp: ModuleType, count: int) -> None:
    names = [f"x{k}" for k in range(count)]
    many = gs.ElementwiseKernel(
        ", ".join(f"T {name}" for name in names), "T y", f"y = {' + '.join(names)}", "many"
    )
    x = xp.asarray(values((40, 600), "i4", 1))[:, ::2]
    turned = xp.ascontiguousarray(x.T).T
    expected = gs.asnumpy(x) * count
    for arguments in ([x] * count, [x, turned] * (count // 2)):
        np.testing.assert_array_equal(gs.asnumpy(many(*arguments)), expected)


def test_packed_structures(xp: ModuleType) -> None:
    packed = np.zeros(9, [("flag", "?"), ("x", "f8"), ("small", "i2", (2,))])
    packed["x"], packed["small"] = np.arange(9), [[1, 2]] * 9
    total = gs.ElementwiseKernel("P p", "float64 r", "r = p.x + p.small[1]", "packed")
    np.testing.assert_array_equal(gs.asnumpy(total(xp.asarray(packed))), packed["x"] + 2)


#: Of numbers that are classes, at places where these cannot lie, and at others.
CLASSES: dict[str, Any] = {
    "behind a byte": [("k", "u1"), ("h", "f2"), ("c", "c8"), ("d", "c16")],
    "of half the size": [("k", "i4"), ("c", "c8"), ("h", "f2"), ("d", "c16"), ("z", "f2")],
    "where they can": [("d", "c16"), ("c", "c8"), ("h", "f2"), ("k", "u1"), ("z", "u1", (5,))],
    "aligned as fields": np.dtype([("k", "i4"), ("c", "c8"), ("h", "f2"), ("d", "c16")], align=True),
}


TURN_CLASSES = gs.ElementwiseKernel(
    "P p", "P q, complex128 s, float32 r",
    "q = p; q.h = p.h + p.k; q.c *= 2; q.d = -p.d; s = p.d + p.c * p.d - 1; r = p.h * 2 + p.c.real() + q.d.imag()",
    "turn_classes",
)  # fmt: skip


@pytest.mark.parametrize("how", CLASSES)
def test_classes_in_packed_structures(xp: ModuleType, how: str) -> None:
    if xp is not np:
        pytest.skip("host arrays")
    dtype = np.dtype(CLASSES[how])
    x, whole = np.zeros((9, 31), dtype), np.full(9 * 31 * dtype.itemsize + 64, 0xAB, np.uint8)
    x["k"], x["h"] = values(x.shape, "u1", 1) % 50, values(x.shape, "f2", 2)
    x["c"], x["d"] = values(x.shape, "c8", 3), values(x.shape, "c16", 4)
    out = whole[:-64].view(dtype).reshape(x.shape)
    _, s, r = TURN_CLASSES(x, out, np.zeros(x.shape, "c16"), np.zeros(x.shape, "f4"))
    np.testing.assert_array_equal(out["h"], x["h"] + x["k"].astype("f2"))
    np.testing.assert_array_equal(out["c"], x["c"] * 2)
    np.testing.assert_array_equal(out["d"], -x["d"])
    np.testing.assert_array_equal(out["k"], x["k"])
    np.testing.assert_array_equal(s, x["d"] + x["c"] * x["d"] - 1)
    np.testing.assert_array_equal(r, x["h"].astype("f4") * 2 + x["c"].real - x["d"].imag)
    assert (whole[-64:] == 0xAB).all()
    if how != "behind a byte":
        return
    sums = gs.ReductionKernel("P p", "complex128 s", "p.d + p.c", "a + b", "s = a", "0", "sum_of_classes")
    for axis in (None, 0, 1):
        np.testing.assert_array_equal(sums(x, axis=axis), (x["d"] + x["c"]).sum(axis))
    nested = np.zeros(7, [("k", "u1"), ("n", dtype, (2,))])
    nested["n"]["c"] = values((7, 2), "c8", 5)
    last = gs.ElementwiseKernel("P p", "P q, complex64 c", "q = p; c = p.n[1].c", "nested_classes")
    copied, c = last(nested, np.zeros_like(nested), np.zeros(7, "c8"))
    np.testing.assert_array_equal(copied, nested)
    np.testing.assert_array_equal(c, nested["n"]["c"][:, 1])


def test_a_structure_of_another_layout_is_refused(xp: ModuleType) -> None:
    wrong = gs.ElementwiseKernel(
        "Point p", "T r", "r = p.x", "wrong", type_preamble="struct Point { double x; };"
    )
    with pytest.raises(gs.CompileError, match="Point has another size"):
        wrong(xp.asarray(np.zeros(3, [("x", "f4")])), xp.zeros(3))


# ---- what comes back ----


def test_what_calls_return(xp: ModuleType) -> None:
    x = xp.arange(3.0)
    assert gs.ElementwiseKernel("T x", "T y", "y = x", "none", no_return=True)(x) is None
    assert isinstance(gs.ElementwiseKernel("T x", "T y", "y = x", "one", return_tuple=True)(x), tuple)
    out = xp.zeros(3)
    assert COPY(x, out) is out
    assert COPY(x, y := xp.zeros(3)) is y
    assert type(COPY(x)) is type(x)


def test_results_without_axes(xp: ModuleType) -> None:
    result = ADD(2.5, 3)
    assert (result.shape, result.dtype) == ((), np.float64)
    assert float(result) == 5.5
    assert ADD(xp.asarray(np.float32(2)), 3).dtype == np.float32


def test_unknown_keywords_are_refused_by_the_names_that_there_are(xp: ModuleType) -> None:
    for _ in range(4):  # also by the compiled fast path
        COPY(xp.ones(3))
        with pytest.raises(
            TypeError, match=r"`assign`: a call has no keyword 'out'; there are size, block_size and"
        ):
            COPY(xp.ones(3), out=xp.ones(3))
    with pytest.raises(TypeError, match="did you mean 'stream'"):
        COPY(xp.ones(3), streams=None)
    assert list(inspect.signature(COPY).parameters) == ["args", "size", "block_size", "stream"]


def test_what_kernels_tell_of_themselves(xp: ModuleType) -> None:
    kernel = gs.ElementwiseKernel(
        "T x, raw S y", "T z", "z = F(x)", "told", preamble="#define F(x) x", type_preamble="struct P {};",
        options=["-DA=1"], loop_prep="T t = 0", after_loop="t = 1",
    )  # fmt: skip
    assert (kernel.name, kernel.__name__, type(kernel).__name__) == ("told", "told", "ElementwiseKernel")
    assert (kernel.nin, kernel.nout, kernel.nargs, kernel.reduce_dims) == (2, 1, 3, True)
    assert [parameter.name for parameter in kernel.params] == ["x", "y", "z"]
    assert kernel.in_params + kernel.out_params == kernel.params
    assert (kernel.preamble, kernel.type_preamble, kernel.options) == (
        "#define F(x) x",
        "struct P {};",
        ("-DA=1",),
    )
    assert (kernel.operation, kernel.loop_prep, kernel.after_loop) == ("z = F(x)", "T t = 0", "t = 1")
    assert kernel.cached_codes == {}
    with pytest.raises(ValueError, match="`told` has no text yet"):
        _ = kernel.cached_code
    for dtype in ("f4", "i2"):
        kernel(xp.ones(3, dtype), xp.ones(2, "f8"))
    assert list(kernel.cached_codes) == [(np.dtype("f4"), np.dtype("f8")), (np.dtype("i2"), np.dtype("f8"))]
    assert "z = F(x)" in kernel.cached_code


class WithSlots(gs.ElementwiseKernel):
    """A kernel with attributes of its own, one of which is not in its dictionary."""

    __slots__ = ("unit",)
    unit: str


def test_attributes_in_slots_are_copied() -> None:
    kernel = WithSlots("T x", "T y", "y = 2 * x", "with_slots")
    kernel.unit = "m"
    for copied in (pickle.loads(pickle.dumps(kernel)), copy.copy(kernel), copy.deepcopy(kernel)):
        assert copied.unit == "m"
        assert vars(copied).keys() == vars(kernel).keys()
    kernel.scale = 3  # type: ignore[attr-defined]
    copied = pickle.loads(pickle.dumps(kernel))
    assert (copied.unit, copied.scale) == ("m", 3)


@pytest.mark.parametrize("kind", [gs.ElementwiseKernel, gs.ReductionKernel, WithSlots])
def test_kernels_that_were_not_made(kind: Any) -> None:
    kernel = kind.__new__(kind)
    for use in (lambda: kernel(np.ones(3)), lambda: repr(kernel), lambda: kernel.nin):
        with pytest.raises(AttributeError, match=f"this {kind.__name__} is no kernel yet: make it as"):
            use()


def test_kernels_can_be_pickled(xp: ModuleType) -> None:
    for how in ({"no_return": True}, {"return_tuple": True}, {"reduce_dims": False}):
        kernel = gs.ElementwiseKernel("T x", "T y", "y = x", "kept", **how)
        copied = pickle.loads(pickle.dumps(kernel))
        assert [getattr(copied, name) for name in how] == list(how.values())
        assert (copied(xp.ones(2)) is None) == copied.no_return
    copied = pickle.loads(pickle.dumps(MIXED))
    assert (copied.name, copied.nin, copied.nout, copied.nargs) == ("mixed", 2, 2, 4)
    np.testing.assert_array_equal(gs.asnumpy(copied(xp.arange(3), 1.0)[0]), [1.0, 3.0, 5.0])


@pytest.mark.parametrize("family", [gs.ElementwiseKernel, gs.ReductionKernel])
def test_copies_keep_what_others_set(family: Any) -> None:
    class Tagged(family):  # type: ignore[misc]
        def __init__(self) -> None:
            texts = ("y = x",) if family is gs.ElementwiseKernel else ("x", "a + b", "y = a", "0")
            super().__init__("T x", "T y", *texts, "tagged")
            self.tag = [5]

    kernel = Tagged()
    assert copy.copy(kernel).tag is kernel.tag
    assert copy.deepcopy(kernel).tag == [5]
    assert int(copy.deepcopy(kernel)(np.ones(1, int))[...].sum()) == 1


def test_calls_like_earlier_ones_look_at_their_own_arguments(xp: ModuleType) -> None:
    scale = gs.ElementwiseKernel("T x, T k", "T y", "y = x * k", "scale_again")
    x = xp.arange(6, dtype="u1")
    for k in (2, 3):
        np.testing.assert_array_equal(gs.asnumpy(scale(x, k)), np.arange(6) * k)
    with pytest.raises(OverflowError, match="300"):
        scale(x, 300)
    for start in range(4):
        part = xp.arange(20, dtype="f4")[start : start + 5]
        np.testing.assert_array_equal(gs.asnumpy(scale(part, 2)), np.arange(start, start + 5) * 2)
    whole = xp.arange(10, dtype="f4")
    scale(whole[1:6], 2, whole[0:5])  # after calls with the same shapes that did not overlap
    np.testing.assert_array_equal(gs.asnumpy(whole), [2, 4, 6, 8, 10, 5, 6, 7, 8, 9])
    with pytest.raises(TypeError, match="size must be an int"):
        gs.ElementwiseKernel("", "raw float64 y", "y[i] = 1", "sized")(size=True)


@pytest.mark.parametrize(
    ("block_size", "error"), [(0, ValueError), (1025, ValueError), (-32, ValueError), (64.0, TypeError)]
)
def test_sizes_of_blocks_are_checked(xp: ModuleType, block_size: Any, error: type[Exception]) -> None:
    np.testing.assert_array_equal(gs.asnumpy(COPY(xp.ones(3), block_size=np.int64(1024))), 1)
    with pytest.raises(error, match="`assign`: block_size must be"):
        COPY(xp.ones(3), block_size=block_size)


def test_the_stream_of_a_call(xp: ModuleType) -> None:
    stream = gs.cuda.Stream()
    x = xp.arange(5.0)
    result = ADD(x, x, stream=stream)
    stream.synchronize()
    np.testing.assert_array_equal(gs.asnumpy(result), np.arange(5.0) * 2)


# ---- errors ----


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((), TypeError, "takes 2 inputs"),
        (([1, 2], 1), TypeError, "parameter `x`"),
        ((np.ones(2), "a"), TypeError, "parameter `y`"),
        ((np.ones(2), np.ones(3)), ValueError, r"x \(2,\), y \(3,\)"),
        ((np.ones(2), np.ones(2), 1.0), TypeError, "Pass an array"),
        ((np.ones(2), np.ones(2), np.broadcast_to(0.0, 2)), TypeError, "read-only"),
        ((np.ones(2, "u1"), -1), OverflowError, "-1"),
    ],
)
def test_wrong_calls(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ADD(*arguments)


@pytest.mark.parametrize("name", ["double", "2x", "a b", "printf", ""])
def test_case_p120_names_that_cannot_be(name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a kernel"):
        gs.ElementwiseKernel("T x", "T y", "y = x", name)


# ---- what went wrong elsewhere ----


def test_case_p01_an_input_that_is_the_transposed_output(xp: ModuleType) -> None:
    x = xp.arange(10000).reshape(100, 100)
    ADD(x, x.T, x)
    assert int(x.sum()) == 99990000


def test_case_p03_nothing_is_written_where_the_output_is_too_small(xp: ModuleType) -> None:
    out = xp.full(4, 7.0)
    with pytest.raises(ValueError, match="non-broadcastable output"):
        COPY(xp.ones((3, 4)), out)
    assert (gs.asnumpy(out) == 7).all()


def test_case_p04_the_size_of_raw_calls(xp: ModuleType) -> None:
    ones = gs.ElementwiseKernel("", "raw float64 out", "out[i] = 1", "ones")
    np.testing.assert_array_equal(gs.asnumpy(ones(size=2)), [1.0, 1.0])
    filled = gs.ElementwiseKernel("T x", "T y", "y = x", "filled")
    np.testing.assert_array_equal(gs.asnumpy(filled(2.5, size=3)), [2.5, 2.5, 2.5])


def check_far_strides(xp: ModuleType) -> None:
    """Compare arrays of few elements that lie up to 2**31 bytes and more from each other with NumPy."""
    whole, out = xp.zeros(2**31 + 16, "i1"), xp.zeros(2**31 + 16, "i1")
    for apart, count in ((2**31 + 1, 2), (2**30 + 5, 2)):
        far = [whole[start:][::apart][:count] for start in range(6)]
        for start, line in enumerate(far):
            line[...] = xp.arange(start, start + count, dtype="i1")
        host = np.stack([np.arange(start, start + count, dtype="i1") for start in range(6)])
        view = xp.lib.stride_tricks.as_strided(whole, (6, count), (1, apart))
        given_out = xp.lib.stride_tricks.as_strided(out, (6, count), (1, apart))
        np.testing.assert_array_equal(gs.asnumpy(ADD(view, view)), host + host)
        np.testing.assert_array_equal(gs.asnumpy(ADD(view.T, view[:, ::-1].T)), (host + host[:, ::-1]).T)
        ADD(view, view, given_out)
        np.testing.assert_array_equal(gs.asnumpy(given_out.copy()), host + host)
        total = gs.ReductionKernel("T x", "int64 y", "x", "a + b", "y = a", "0", "total_of_far")
        for axis in (None, 0, 1):
            np.testing.assert_array_equal(gs.asnumpy(total(view, axis=axis)), host.sum(axis, dtype="i8"))


def test_case_p06_strides_that_reach_far(xp: ModuleType) -> None:
    check_far_strides(xp)


@pytest.mark.usefixtures("optimized")
def test_case_p07_more_than_two_to_the_31_bytes(xp: ModuleType) -> None:
    x = xp.zeros(2**31 + 9, "i1")
    last = gs.ElementwiseKernel(
        "T x, raw T whole", "raw int64 out",
        "if (i < n - 1) return; out[0] = i; out[1] = x; "
        "out[2] = whole[i]; out[3] = whole.size(); out[4] = *whole.shape()", "last",
    )  # fmt: skip
    x[-1], out = 5, xp.zeros(5, "i8")
    for whole in (x, xp.lib.stride_tricks.as_strided(x, (2, 2**30 + 4), (2**30 + 5, 1))):
        last(x if whole is x else whole, whole, out)
        assert gs.asnumpy(out).tolist() == [whole.size - 1, 5, 5, whole.size, len(whole)]


def test_case_p09_a_python_float_beside_complex_numbers(xp: ModuleType) -> None:
    kernel = gs.ElementwiseKernel("S a, T x, T y", "T z", "z = a * x + y", "scaled")
    x = values((9,), "c8", 1)
    result = kernel(2.5, xp.asarray(x), xp.asarray(x))
    assert result.dtype == np.complex64
    np.testing.assert_array_equal(gs.asnumpy(result), 3.5 * x)


def test_case_p12_small_integers_wrap(xp: ModuleType) -> None:
    result = ADD(xp.asarray(np.array([255], "u1")), 1)
    assert (int(result[0]), result.dtype) == (0, np.uint8)
    with pytest.raises(OverflowError, match="300"):
        ADD(xp.asarray(np.array([255], "u1")), 300)


def test_case_p119_a_newline_in_a_string(xp: ModuleType) -> None:
    kernel = gs.ElementwiseKernel("T x", "T y", 'y = x;\nprintf("hi\n");', "greeting")
    with pytest.raises(gs.CompileError, match="use a raw string") as caught:
        kernel(xp.ones(2))
    assert "operation of greeting, line 2" in str(caught.value)


def test_case_p122_carets_stand_below_the_mistake(xp: ModuleType) -> None:
    for operation, below in (
        ("/* äöü */ y = tt", "    /* äöü */ y = tt\n                  ^\n"),
        ("/* 漢字 */\ty = tt", "    /* 漢字 */\ty = tt\n              \t    ^\n"),
        (f"y = {'x + ' * 200}tt", f"... {'x + ' * 29}x + tt\n{' ' * 128}^\n"),
        ("T t = x;\r\n  y = tt;\r\n", "      y = tt;\n          ^\n"),
    ):
        with pytest.raises(gs.CompileError) as caught:
            gs.ElementwiseKernel("T x", "T y", operation, "typo")(xp.ones(2, "f4"))
        assert below in str(caught.value), caught.value


def test_case_p122_a_typo_in_the_second_line(xp: ModuleType) -> None:
    kernel = gs.ElementwiseKernel("T x", "T y", "T t = x;\n  y = tt * 2;", "typo")
    with pytest.raises(gs.CompileError) as caught:
        kernel(xp.ones(2, "f4"))
    message = str(caught.value)
    assert "operation of typo, line 2" in message
    assert "      y = tt * 2;\n          ^" in message
    assert "T = float32" in message
    assert "gridstride_operation" in caught.value.source


# ---- programs ----


def test_documents_add_and_scale(xp: ModuleType) -> None:
    kernel = gs.ElementwiseKernel("T x, T y, T scale", "T z", "z = (x + y) * scale", "add_scale_kernel")
    x, y = xp.array([1, 2, 3, 4], dtype=xp.float32), xp.array([5, 6, 7, 8], dtype=xp.float32)
    np.testing.assert_array_equal(gs.asnumpy(kernel(x, y, xp.float32(2.0))), [12, 16, 20, 24])


def test_documents_three_outputs(xp: ModuleType) -> None:
    body = """
    sum = x + y;
    diff = x - y;
    prod = x * y;
    """
    kernel = gs.ElementwiseKernel("T x, T y", "T sum, T diff, T prod", body, "complex_ops")
    results = kernel(xp.array([10, 20, 30]), xp.array([1, 2, 3]))
    for result, expected in zip(results, ([11, 22, 33], [9, 18, 27], [10, 40, 90]), strict=True):
        np.testing.assert_array_equal(gs.asnumpy(result), expected)


def test_documents_memoized_kernel(xp: ModuleType) -> None:
    @gs.memoize(for_each_device=True)
    def make() -> gs.ElementwiseKernel:
        return gs.ElementwiseKernel(
            "T x, T y, T alpha, T beta", "T z", "z = alpha * x + beta * y", "axpy_kernel", options=("-O3",)
        )

    kernel = make()
    x = xp.arange(5.0)
    for _ in range(3):
        result = kernel(x, x, 2.0, 0.5)
    np.testing.assert_array_equal(gs.asnumpy(result), np.arange(5.0) * 2.5)


def test_documents_fused_operations(xp: ModuleType) -> None:
    body = """
    T temp1 = x * alpha + y * beta;  // Linear combination
    T temp2 = temp1 * temp1;         // Square
    result = sqrt(temp2 + z);        // Final computation
    """
    kernel = gs.ElementwiseKernel("T x, T y, T z, T alpha, T beta", "T result", body, "fused_operations")
    x = np.linspace(0, 2, 50, dtype="f4")
    result = kernel(*(xp.asarray(x),) * 3, 2.0, 3.0)
    np.testing.assert_allclose(gs.asnumpy(result), np.sqrt((x * 5) ** 2 + x), rtol=1e-6)
