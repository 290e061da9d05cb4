"""Reductions of every kind of row and column: short, long, apart, backwards, of every size of element."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import gridstride as gs
from tests.array_values import values
from tests.crosses import in_soak
from tests.every_target.test_reduction import LARGEST, NUMBERS, PLACE, TOTAL

WIDE = gs.ReductionKernel("T x", "int64 y", "x", "a + b", "y = a", "0", "wide_total")
PRODUCT = gs.ReductionKernel("T x", "T y", "x", "a * b", "y = a", "1", "product")
#: Of elements of 1, 2, 4, 8 and 16 bytes.
DTYPES = ["int8", "uint16", "float32", "int32", "complex64", "float64", "complex128"]
#: Rows and columns around the sizes of vectors, of what is brought apart at once, and of blocks and chunks.
WIDTHS = [1, 2, 3, 4, 5, 7, 8, 11, 15, 16, 17, 31, 33, 47, 64, 100, 129, 255, 256, 257, 300]
LENGTHS = [63, 64, 65, 127, 511, 513, 1023, 1024, 4095, 4096, 4097, 16383, 16385, 70_001]


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_and_columns_of_every_width(xp: ModuleType, dtype: str) -> None:
    for width in WIDTHS:
        x = values((20_003 // width + 70, width), dtype, 1)
        for view in (x, x[1:, :], x[::-1], x[:, ::-1], x[::3]):
            for axis in (0, 1):
                np.testing.assert_array_equal(
                    gs.asnumpy(TOTAL(xp.asarray(view), axis=axis)),
                    view.sum(axis, dtype=dtype),
                    str((width, axis)),
                )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_take_nothing_from_others(xp: ModuleType, dtype: str) -> None:
    for width in WIDTHS:
        rows = 20_003 // width + 70
        x = np.random.default_rng(width).standard_normal((rows + 1, width + 3)).astype(dtype)
        for view in (x[:rows, :width], x[:rows, :width].copy(), x[:rows, :width].copy()[::-1]):
            view[1::2] = np.nan
            sums = gs.asnumpy(TOTAL(xp.asarray(view), axis=1))
            assert np.isnan(sums[1::2]).all(), width
            assert not np.isnan(sums[::2]).any(), width
        # Nor does it matter where a row is.
        x = np.repeat(x[:1, :width], rows, axis=0)
        sums = gs.asnumpy(TOTAL(xp.asarray(x), axis=1))
        np.testing.assert_array_equal(sums, sums[:1].repeat(rows))


@pytest.mark.parametrize("dtype", ["int8", "float32", "complex64"])
def test_lines_of_every_length(xp: ModuleType, dtype: str) -> None:
    for length in LENGTHS:
        x = values((length,), dtype, 1)
        for view in (x, x[1:], x[::-1], x[::2]):
            np.testing.assert_array_equal(gs.asnumpy(TOTAL(xp.asarray(view))), view.sum(dtype=dtype))


@pytest.mark.parametrize(
    "dtype",
    [
        "int8",
        "uint8",
        "int16",
        *in_soak("uint16", "int32", "uint32"),
    ],
)
def test_sums_of_the_extremes_of_small_integers(xp: ModuleType, dtype: str) -> None:
    for extreme in (np.iinfo(dtype).min, np.iinfo(dtype).max):
        for shape in ((70_000,), (700, 130), (20_000, 3), (3, 20_000), (5000, 16), (300, 5000)):
            x = np.full(shape, extreme, dtype)
            for axis in (None, *range(len(shape))):
                np.testing.assert_array_equal(
                    gs.asnumpy(WIDE(xp.asarray(x), axis=axis)), x.sum(axis, dtype="int64")
                )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_wide_sums_wherever_rows_lie(xp: ModuleType, dtype: str) -> None:
    info = np.iinfo(dtype)
    for width, rows in (
        (5, 9000),
        (33, 3000),
        (200, 1300),
        (256, 600),
        (300, 1030),
        (2049, 257),
        (9000, 300),
    ):
        x = np.random.default_rng(width).integers(
            info.min, info.max, (rows, width + 70), dtype, endpoint=True
        )
        for view in (
            x[:, :width],
            x[:, :width].copy(),
            x[::-1, 1 : width + 1],
            x[::2, :width],
            x[:, width::-1],
        ):
            for axis in (0, 1):
                np.testing.assert_array_equal(
                    gs.asnumpy(WIDE(xp.asarray(view), axis=axis)),
                    view.sum(axis, dtype="int64"),
                    str((width, axis)),
                )


@pytest.mark.parametrize(
    "shape",
    [
        (300_007, 5),
        (4096, 10),
        (1000, 300, 3),
        (40, 50, 60),
        (90_001, 2),
        (2, 90_000),
        (5003, 33),
        (1501, 100),
    ],
)
def test_many_rows(xp: ModuleType, shape: tuple[int, ...]) -> None:
    x = values(shape, "float32", 3)
    for axis in (0, 1, (0, len(shape) - 1), (0, 1)):
        np.testing.assert_array_equal(
            gs.asnumpy(TOTAL(xp.asarray(x), axis=axis)), x.sum(axis, dtype="f8").astype("f4")
        )
        expected = np.sum(np.arange(x.size).reshape(shape), axis=axis)
        np.testing.assert_array_equal(gs.asnumpy(NUMBERS(xp.asarray(x), axis=axis)), expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_halves(xp: ModuleType, dtype: str) -> None:
    if dtype == "bfloat16" and xp is not np:
        pytest.skip("CuPy has no bfloat16")
    total = gs.ReductionKernel("T x", "float32 y", "x", "a + b", "y = a", "0", "total_of_halves", "float")
    named = pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype
    for shape in ((1030, 1000), (75, 5000), (23, 5000), (2, 9000), (3, 9000), (5003, 7), (40, 13, 70)):
        x = np.random.default_rng(5).integers(-9, 9, shape).astype(named)
        for axis in (*range(len(shape)), (0, len(shape) - 1)):
            found = gs.asnumpy(total(xp.asarray(x), axis=axis))
            np.testing.assert_array_equal(found, x.astype("f8").sum(axis))
            found = gs.asnumpy(total(xp.asarray(x)[:, : shape[1] - 3], axis=axis))
            np.testing.assert_array_equal(found, x[:, : shape[1] - 3].astype("f8").sum(axis))


@pytest.mark.parametrize("width", [2, 3, 7, 16, 33, 200, 3000])
def test_places_and_extremes(xp: ModuleType, width: int) -> None:
    x = np.random.default_rng(width).standard_normal((130_000 // width, width), np.float32)
    for axis in (None, 0, 1):
        place, largest = PLACE(xp.asarray(x), axis=axis)
        np.testing.assert_array_equal(gs.asnumpy(place), x.argmax(axis))
        np.testing.assert_array_equal(gs.asnumpy(largest), x.max(axis))
        np.testing.assert_array_equal(gs.asnumpy(LARGEST(xp.asarray(x), axis=axis)), x.max(axis))
        signs = np.sign(x).astype(np.int32)
        np.testing.assert_array_equal(
            gs.asnumpy(PRODUCT(xp.asarray(signs), axis=axis)), signs.prod(axis, dtype="i4")
        )


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32"])
def test_places_among_several_axes(xp: ModuleType, dtype: str) -> None:
    for shape, axes in (((7, 3, 1100), (0, 2)), ((5, 3, 2, 600), (0, 1, 3)), ((6, 5, 4, 3), (1, 3))):
        x = np.random.default_rng(1).integers(0, 100, shape).astype(dtype)
        for view in (x, x[..., ::-1]):
            moved = np.moveaxis(view, axes, range(-len(axes), 0))
            folded = moved.reshape(*moved.shape[: -len(axes)], -1)
            place, largest = PLACE(xp.asarray(view), axis=axes)
            np.testing.assert_array_equal(gs.asnumpy(place), folded.argmax(-1), str(shape))
            np.testing.assert_array_equal(gs.asnumpy(largest), folded.max(-1))


@pytest.mark.parametrize(
    "dtype",
    [
        "int8",
        *in_soak("uint16", "int32", "float16"),
        "float64",
    ],
)
def test_the_first_of_equal_elements(xp: ModuleType, dtype: str) -> None:
    for length in (31, 33, 127, 129, 255, 300, 2047, 2049, 5000, 70_001):
        x = np.random.default_rng(length).integers(0, 50, (140_000 // length, length)).astype(dtype)
        for view in (x, x[:, ::-1], x[:, : length - 3]):
            place, largest = PLACE(xp.asarray(view), axis=1)
            np.testing.assert_array_equal(gs.asnumpy(place), view.argmax(1), str(length))
            np.testing.assert_array_equal(gs.asnumpy(largest), view.max(1))


@pytest.mark.parametrize(
    "members",
    [
        "int count; float most;",
        "int count = 7; float most = 1;",
        "float most; short count : 12; bool any;",
        "float most; int counts[1]; int& count() { return counts[0]; }",
        pytest.param("float mosts[2]; int count; float& most() { return mosts[1]; }", marks=pytest.mark.soak),
        "struct { float a; int b; } pair; float& most() { return pair.a; } int& count() { return pair.b; }",
        pytest.param("int a, b, c, d, count; float most;", marks=pytest.mark.soak),
    ],
)  # fmt: skip
def test_structures_of_any_members(xp: ModuleType, members: str) -> None:
    at = {name: f"{name}()" if f"{name}()" in members else name for name in ("most", "count")}
    kernel = gs.ReductionKernel(
        "T x", "T y, int32 n", "of(x)", "both(a, b)", f"y = a.{at['most']}; n = a.{at['count']}", None,
        "most_and_count", "both_values",
        preamble=f"""
        struct both_values {{ {members} }};
        __device__ inline both_values of(float x) {{
            both_values result = both_values();
            result.{at['most']} = x;
            result.{at['count']} = x > 1;
            return result;
        }}
        __device__ inline both_values both(both_values a, both_values b) {{
            if (b.{at['most']} > a.{at['most']}) a.{at['most']} = b.{at['most']};
            a.{at['count']} = a.{at['count']} + b.{at['count']};
            return a;
        }}""",
    )  # fmt: skip
    x = np.random.default_rng(3).standard_normal((40, 5000), np.float32)
    for axis in (0, 1):
        most, count = kernel(xp.asarray(x), axis=axis)
        np.testing.assert_array_equal(gs.asnumpy(most), x.max(axis))
        np.testing.assert_array_equal(gs.asnumpy(count), (x > 1).sum(axis))


@pytest.mark.parametrize("text", ["i", "_J", "NUMBER", "PLACE"])
def test_numbers_of_elements_in_narrow_columns(xp: ModuleType, text: str) -> None:
    kernel = gs.ReductionKernel(
        "T x", "int64 s", f"{text} * (x == x)", "a + b", "s = a", "0", "numbers_by_macro",
        preamble="#define NUMBER i", options=("-DPLACE=_J",),
    )  # fmt: skip
    for view in (np.ones((70_001, 3), "f4"), np.ones((3, 70_001), "f4").T):
        numbers = np.arange(view.size).reshape(view.shape)
        if text in ("_J", "PLACE"):
            numbers = numbers // 3
        np.testing.assert_array_equal(gs.asnumpy(kernel(xp.asarray(view), axis=0)), numbers.sum(0))


def test_results_of_any_step(xp: ModuleType) -> None:
    for shape in ((5000, 3), (3, 5000), (200, 300), (5000, 40)):
        x = values(shape, "float32", 2)
        for axis in (0, 1):
            expected = x.sum(axis)
            for out in (np.zeros((expected.size, 2), "f4")[:, 0], np.zeros(expected.size, "f4")[::-1]):
                out = xp.asarray(out)
                TOTAL(xp.asarray(x), axis=axis, out=out)
                np.testing.assert_array_equal(gs.asnumpy(out), expected)


@pytest.mark.parametrize(
    "shape", [(1 << 20,), (3, 300_000), (300_000, 3), (30_000, 40), (700, 3000), (6000, 300)]
)
def test_sums_of_every_shape_are_as_accurate_as_numpys(xp: ModuleType, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(5).random(shape, "f4")
    for axis in (None, *range(len(shape))):
        exact = x.sum(axis, dtype="f8")
        ours, numpys = gs.asnumpy(TOTAL(xp.asarray(x), axis=axis)), x.sum(axis)
        error, allowed = np.abs(ours - exact).mean(), np.abs(numpys - exact).mean()
        # Of the result alone; of a few results chance decides which error is the smaller one.
        rounding = np.spacing(np.float32(np.max(exact))) / (2 if np.size(ours) > 100 else 1)
        assert error <= max(allowed, rounding), axis
