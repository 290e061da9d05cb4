"""The folds for blocks of threads, which GPUs have, run on the CPU target: the same texts, without a GPU."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride._compilation import functions
from gridstride.errors import CompileError
from gridstride.targets import registry
from gridstride.targets.block_loops import writers
from gridstride.targets.walks import FoldLoop
from tests.array_values import values
from tests.cpu.test_block_loops import flat_view, forget_calls
from tests.crosses import cases_in_soak, in_soak, in_turns, pairs_in_soak
from tests.every_target import test_reduction as reduction
from tests.every_target import test_reduction_operands as operands
from tests.every_target.test_large_reductions import check_most_frequent
from tests.every_target.test_reduction_operands import WHOLE, WIDE

pytestmark = pytest.mark.usefixtures("folds_of_much")

DOT = gs.ReductionKernel("T x, U y", "float64 z", "double(x) * y", "a + b", "z = a", "0", "dot_of_two")
LOWEST = gs.ReductionKernel(
    "T x", "int64 y", "Lowest{x, _J}", "a.x < b.x || (a.x == b.x && a.at < b.at) ? a : b", "y = a.at", None, "lowest",
    reduce_type="Lowest", preamble="struct Lowest { T x; long long at; };",
)  # fmt: skip

SUM_AS_IT_IS = gs.ReductionKernel(
    "T x", "U y", "x", "a + b", "y = static_cast<U>(a)", "0", "sum_as_it_is", reduce_type="double"
)
SHARES = gs.ReductionKernel(
    "T x", "float64 y", "double(x) / _fold_size", "a + b",
    "y = a * _fold_size * _out_ind.size() / _in_ind.size()", "0", "shares", reduce_type="double",
)  # fmt: skip
POSITIONS = gs.ReductionKernel(
    "T x", "float64 y", "double(x) * _J", "a + b", "y = a", "0", "positions_times", reduce_type="double"
)
SMALLEST = gs.ReductionKernel("T x", "T y", "x", "(b < a) ? b : a", "y = a", "5", "smallest_below_6")

#: Sums in small numbers, which lose what does not fit, and sizes: texts to which another type would make a difference.
SMALL_SUMS = {
    "assigned": ("plus(a, b)", "__device__ Sum plus(Sum a, Sum b) { a.x += b.x; return a; }"),
    "cast": ("Sum{T(a.x + b.x), 0}", ""),
    "by a macro": ("PLUS", "#define PLUS Sum{T(a.x + b.x), 0}"),
    "by its size": ("true ? a : b", ""),
}


@pytest.fixture(autouse=True)
def _block_loops(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(type(registry.get("cpu")), "writers", None)
    forget_calls(sys.modules[__name__], operands)
    yield
    forget_calls(sys.modules[__name__], operands)


@pytest.mark.parametrize(
    ("shape", "gap", "dtype"),
    [
        ((5000, 3), (0, 1), "int8"),
        ((6, 4099, 5), (1, 1), "float32"),
        *cases_in_soak(
            *(
                (shape, gap, dtype)
                for shape, gap in (
                    ((5000, 3), (1, 0)),
                    ((5000, 19), (0, 13)),
                    ((3, 4099, 7), (2, 0)),
                    ((4099, 15), (1, 0)),
                )
                for dtype in ("int8", "uint16", "float16", "float32", "float64", "complex128")
            )
        ),
    ],
)
def test_narrow_rows_with_gaps(
    shape: tuple[int, ...], gap: tuple[int, int], dtype: str, block_folds: list[FoldLoop]
) -> None:
    before, after = gap
    for start in (0, 1):
        around = flat_view((*shape[:-1], shape[-1] + before + after), dtype, start, 1)
        around[...] = 100
        x = around[..., before : before + shape[-1]]
        x[...] = values(shape, dtype, 2)
        axis = len(shape) - 2
        np.testing.assert_array_equal(WIDE(x, axis=axis), x.sum(axis, dtype="c16"))
        assert block_folds[-1].name.startswith("fold_narrow<")
        assert block_folds[-1].name.endswith(", true>")
        np.testing.assert_array_equal(
            reduction.NUMBERS(x, axis=axis), np.arange(x.size).reshape(shape).sum(axis)
        )
        if dtype != "complex128":
            np.testing.assert_array_equal(
                SUM_AS_IT_IS(x, np.empty(x.sum(axis).shape), axis=axis), x.sum(axis, dtype="f8")
            )
            np.testing.assert_array_equal(SMALLEST(x, axis=axis), np.minimum(x.min(axis), 5))
            np.testing.assert_array_equal(LOWEST(x, axis=axis), x.argmin(axis))
            np.testing.assert_array_equal(reduction.PLACE(x, axis=axis)[0], x.argmax(axis))


@pytest.mark.parametrize(
    ("width", "gap", "dtype"),
    [
        (7, (1, 0), "int8"),
        (33, (0, 3), "float16"),
        (100, (2, 1), "float32"),
        *cases_in_soak(
            *(
                (width, gap, dtype)
                for width, gap in (
                    (3, (1, 0)),
                    (30, (0, 2)),
                    (127, (2, 0)),
                    (28, (4, 0)),
                    (100, (1, 0)),
                    (65, (0, 30)),
                )
                for dtype in ("int8", "uint16", "float16", "float32", "float64", "complex64")
            )
        ),
    ],
)
def test_short_rows_with_gaps(
    width: int, gap: tuple[int, int], dtype: str, block_folds: list[FoldLoop]
) -> None:
    before, after = gap
    for start in (0, 1):
        around = flat_view((4099, width + before + after), dtype, start, 1)
        around[...] = 100
        x = around[:, before : before + width]
        x[...] = values(x.shape, dtype, 2)
        np.testing.assert_array_equal(WIDE(x, axis=1), x.sum(1, dtype="c16"))
        assert block_folds[-1].name.startswith("fold_short<")
        np.testing.assert_array_equal(reduction.NUMBERS(x, axis=1), np.arange(x.size).reshape(x.shape).sum(1))
        if dtype != "complex64":
            expected = x.sum(1, dtype="f8")
            np.testing.assert_array_equal(SUM_AS_IT_IS(x, np.empty_like(expected), axis=1), expected)
            np.testing.assert_array_equal(SMALLEST(x, axis=1), np.minimum(x.min(1), 5))
            np.testing.assert_array_equal(LOWEST(x, axis=1), x.argmin(1))
            np.testing.assert_array_equal(reduction.PLACE(x, axis=1)[0], x.argmax(1))


def test_maps_see_no_gaps_of_rows() -> None:
    """As numbers of an array's elements these would lead anywhere."""
    looked_up = gs.ReductionKernel(
        "T x, raw float64 table", "float64 y", "table[x]", "a + b", "y = a", "0", "looked_up"
    )
    around = np.full((5000, 6), 2**62)
    x = around[:, 2:]
    x[...] = values(x.shape, "uint8", 1) % 7
    table = np.arange(7.0) ** 2
    for axis in (0, 1):
        np.testing.assert_array_equal(looked_up(x, table, axis=axis), table[x].sum(axis))


@pytest.mark.parametrize(
    "shape", [(5000, 3), (6, 4099, 5), *in_soak((4099, 16), (5000, 2), (4100, 33), (4096, 100))]
)
@pytest.mark.parametrize("dtype", ["int8", *in_soak("float16", "float32", "complex128")])
def test_narrow_arrays(shape: tuple[int, ...], dtype: str) -> None:
    x = values(shape, dtype, 1)
    for start in (0, 1):
        flat = np.empty(x.size + 1, dtype)
        flat[start : start + x.size] = x.reshape(-1)
        each = flat[start : start + x.size].reshape(shape)
        for axis in (0, len(shape) - 2, len(shape) - 1):
            np.testing.assert_array_equal(
                WIDE(each, axis=axis), each.sum(axis, dtype="c16"), err_msg=f"{start} {axis}"
            )
            first = np.argmin(each if dtype != "complex128" else each.real, axis)
            np.testing.assert_array_equal(
                LOWEST(each.real if dtype == "complex128" else each, axis=axis), first
            )


@pytest.mark.parametrize("dtype", ["int8", "float32", *in_soak("float16", "float64", "complex128")])
def test_folds_that_a_block_loads_at_once(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    small = writers.fold_small
    monkeypatch.setattr(writers, "fold_small", lambda walk: sizes.append(walk.fold[0]) or small(walk))
    for size in (16, 48, 1008, 1024, 4096):
        x, other = flat_view((size,), dtype, 0, 1), flat_view((size,), "int16", 0, 2)
        for each in (x, flat_view((size,), dtype, 1, 1), flat_view((size * 2,), dtype, 0, 3)[::2], x[1:]):
            np.testing.assert_array_equal(WIDE(each), each.sum(dtype="c16"))
        np.testing.assert_array_equal(reduction.NUMBERS(x), np.arange(size).sum())
        if dtype != "complex128":
            np.testing.assert_array_equal(LOWEST(x), np.argmin(x))
            np.testing.assert_array_equal(DOT(x, other), np.dot(x.astype("f8"), other.astype("f8")))
    assert {16, 1024} <= set(sizes)
    assert 15 not in sizes or dtype == "complex128"  # of which any number are packets


@pytest.mark.parametrize("shape", [(4099, 20), (9, 1008), (300, 37, 13), *in_soak((3, 5003), (1200, 403))])
def test_any_and_all_of_truth_values(shape: tuple[int, ...]) -> None:
    for share in (0.001, 0.1, 0.9, 0.999):
        reduction.check_any_and_all(np, np.random.default_rng(1).random(shape) < share)


@pytest.mark.parametrize("size", [64, 1000, 1024, 1027])
def test_small_sums_do_not_depend_on_where_elements_lie(size: int) -> None:
    x = np.random.default_rng(size).standard_normal(size).astype("f4")
    expected = reduction.TOTAL(flat_copy(x, 0))
    assert expected == reduction.TOTAL(flat_copy(x, 1)) == reduction.TOTAL(np.repeat(x, 2)[::2])


@pytest.mark.parametrize("shape", [(9, 7, 301), (300, 3, 260), *in_soak((2, 5, 20_003))])
@pytest.mark.parametrize("dtype", ["int8", *in_soak("float32", "complex128")])
def test_folds_of_long_rows(shape: tuple[int, ...], dtype: str) -> None:
    x = values((*shape[:2], shape[2] + 3), dtype, 1)[:, :, 2:-1]
    for axis in ((0, 2), (1, 2), (0, 1, 2)):
        np.testing.assert_array_equal(WIDE(x, axis=axis), x.sum(axis, dtype="c16"))
        np.testing.assert_array_equal(
            reduction.NUMBERS(x, axis=axis), np.arange(x.size).reshape(shape).sum(axis)
        )
    if dtype != "complex128":
        np.testing.assert_array_equal(LOWEST(x), np.argmin(x))
    three = values((3, 2, 4, 2, shape[2]), dtype, 1)
    np.testing.assert_array_equal(WIDE(three, axis=(0, 2, 4)), three.sum((0, 2, 4), dtype="c16"))


@pytest.mark.parametrize(
    ("folded", "dtype"),
    in_turns(
        [
            ((9, 6, 8, 9, 5), (2, 4)),
            ((5, 8, 6, 5, 12), (1, 3)),
            ((21, 7, 3, 5, 11), (0, 2)),
        ],
        ["int8", "float32"],
        others=["float16", "int16", "float64", "complex128"],
    )
    + pairs_in_soak(
        [
            ((61, 8, 6, 5, 9), (0, 2, 4)),
            ((30, 3, 211, 5), (0, 2)),
            ((6, 70, 31, 8), (1, 3)),
            ((2, 10, 13, 20, 10), (0, 2, 4)),
            ((3, 2, 7, 310, 5), (1, 3)),
            ((3, 5, 20, 6, 50, 7), (1, 3, 5)),
            ((40, 3, 901, 5), (0, 2)),
        ],
        ["int8", "float32", "float16", "int16", "float64", "complex128"],
    ),
)
def test_folded_axes_between_kept_ones(
    dtype: str, folded: tuple[tuple[int, ...], tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    shape, axes = folded
    total = WHOLE if dtype.startswith("int") else reduction.TOTAL
    chosen: list[str] = []
    loop_for = writers.BlockLoops.reduction

    def choose(*given: Any) -> FoldLoop:
        loop = loop_for(*given)
        chosen.append(loop.name)
        return loop

    monkeypatch.setattr(writers.BlockLoops, "reduction", choose)
    for start in (0, 1):
        x = flat_view(shape, dtype, start, 1)
        for y in (x, x[:, 1:], x[..., 1:]):
            wide = {"float16": "f4"}.get(dtype, dtype if x.dtype.kind in "fc" else "i8")
            found = total(y, axis=axes)
            np.testing.assert_array_equal(found, y.sum(axes, dtype=wide).astype(found.dtype), str(start))
            if x.dtype.kind != "c":
                np.testing.assert_array_equal(reduction.LARGEST(y, axis=axes), y.max(axes), str(start))
    assert chosen[0].startswith(("fold_boxes<", "fold_planes<"))


@pytest.mark.parametrize(
    ("shape", "axis", "dtype"),
    [
        ((901, 5, 7), 1, "int8"),
        ((300, 16, 4), 1, "float32"),
        ((13, 40, 7), 1, "float16"),
        ((9, 700, 5), 1, "float64"),
        ((50, 7, 9, 11), (1, 3), "int16"),
    ],
)
def test_folds_of_planes(shape: tuple[int, ...], axis: Any, dtype: str, block_folds: list[FoldLoop]) -> None:
    for start in (0, 1):
        x = flat_view(shape, dtype, start, 1)
        np.testing.assert_array_equal(WIDE(x, axis=axis), x.sum(axis, dtype="c16"))
        numbers = np.arange(x.size).reshape(shape).sum(axis)
        np.testing.assert_array_equal(reduction.NUMBERS(x, axis=axis), numbers)
        other = flat_view(shape, "int16", 3, 2)
        expected = (x.astype("f8") * other).sum(axis)
        np.testing.assert_array_equal(DOT(x, other, axis=axis), expected)
        out = np.zeros((2, *expected.shape))[:, ::-1]
        DOT(x, other, out[0], axis=axis)
        np.testing.assert_array_equal(out, [expected, np.zeros_like(expected)])
    assert all(each.name.startswith("fold_planes<") for each in block_folds)


def test_folded_axes_of_one_length_in_other_orders() -> None:
    x, y = values((500, 3, 3), "int8", 1), values((500, 3, 3), "int8", 2).swapaxes(1, 2)
    np.testing.assert_array_equal(DOT(x, y, axis=(1, 2)), (x.astype("f8") * y).sum((1, 2)))


@pytest.mark.parametrize(
    ("shape", "dtype"),
    in_turns(
        [(301, 371), (140, 512)],
        ["int8", "float32"],
        others=["float16", "float64", "complex128"],
    )
    + pairs_in_soak([(3, 90, 262)], ["int8", "float32", "float16", "float64", "complex128"]),
)
def test_folds_across_rows_that_begin_anywhere(dtype: str, shape: tuple[int, ...]) -> None:
    axis = len(shape) - 2
    for start in (0, 1):
        x = flat_view(shape, dtype, start, 1)
        np.testing.assert_array_equal(WIDE(x, axis=axis), x.sum(axis, dtype="c16"), err_msg=str(start))
        numbers = np.arange(x.size).reshape(shape).sum(axis)
        np.testing.assert_array_equal(reduction.NUMBERS(x, axis=axis), numbers)
        for each in (x[..., ::2], x[..., 1:], x[..., ::-1, :]):
            np.testing.assert_array_equal(WIDE(each, axis=axis), each.sum(axis, dtype="c16"))
            if dtype != "complex128":
                np.testing.assert_array_equal(LOWEST(each, axis=axis), np.argmin(each, axis))


@pytest.mark.parametrize(
    ("shape", "dtype"),
    in_turns(
        [(2, 1003), (5, 517), (3, 7, 333), (3, 5, 332), (21, 262)],
        ["int8", "float32"],
        others=["float16", "complex128"],
    ),
)
def test_folds_of_a_few_rows(dtype: str, shape: tuple[int, ...]) -> None:
    axis = len(shape) - 2
    for start in (0, 1):
        x = flat_view(shape, dtype, start, 1)
        out = np.zeros(np.delete(shape, axis), "c16")[..., ::-1]
        np.testing.assert_array_equal(WIDE(x, axis=axis), x.sum(axis, dtype="c16"))
        np.testing.assert_array_equal(WIDE(x, out, axis=axis), x.sum(axis, dtype="c16"))
        np.testing.assert_array_equal(
            reduction.NUMBERS(x, axis=axis), np.arange(x.size).reshape(shape).sum(axis)
        )
        if dtype != "complex128":
            np.testing.assert_array_equal(LOWEST(x, axis=axis), np.argmin(x, axis))


@pytest.mark.parametrize("dtype", ["int8", *in_soak("float16", "float32")])
@pytest.mark.parametrize("shape", [(2, 333), (3, 4, 517), (2, 7, 260)])
def test_results_of_a_few_rows_that_lie_anywhere(dtype: str, shape: tuple[int, ...]) -> None:
    """Whichever word of results a packet begins with, nothing beside them is written."""
    axis = len(shape) - 2
    x, results = flat_view(shape, dtype, 1, 1), np.delete(shape, axis)
    expected, size = x.sum(axis, dtype="c16").real, int(np.prod(results))
    for kind in (dtype, "float64"):
        for start in (0, 1, 3):
            around = np.full(size + 9, 77, kind)
            SUM_AS_IT_IS(x, around[start : start + size].reshape(results), axis=axis)
            np.testing.assert_array_equal(
                around[start : start + size].reshape(results), expected.astype(kind)
            )
            np.testing.assert_array_equal(np.delete(around, np.s_[start : start + size]), 77)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((2, 2, 900, 2, 16), "int8"),
        ((2, 3, 500, 2, 8), "float32"),
        *pairs_in_soak(
            [(2, 2, 900, 2, 16), (2, 4, 400, 4, 16), (2, 2, 300, 3, 48)],
            ["int8", "uint16", "float16", "float32", "float64", "complex128"],
        ),
    ],
)
def test_squares_of_pixels(shape: tuple[int, ...], dtype: str, block_folds: list[FoldLoop]) -> None:
    for start in (0, 1):
        x, axes = flat_view(shape, dtype, start, 1), (1, 3)
        x[...] = values(shape, dtype, 2)
        np.testing.assert_array_equal(WIDE(x, axis=axes), x.sum(axes, dtype="c16"))
        assert block_folds[-1].name.startswith("fold_few_rows<")
        np.testing.assert_array_equal(
            reduction.NUMBERS(x, axis=axes), np.arange(x.size).reshape(shape).sum(axes)
        )
        if dtype != "complex128":
            expected = x.sum(axes, dtype="f8")
            np.testing.assert_array_equal(SUM_AS_IT_IS(x, np.empty_like(expected), axis=axes), expected)
            np.testing.assert_array_equal(SMALLEST(x, axis=axes), np.minimum(x.min(axes), 5))
            pixels = x.transpose(0, 2, 4, 1, 3).reshape(*expected.shape, -1)
            np.testing.assert_array_equal(LOWEST(x, axis=axes), pixels.argmin(-1))
            weighted = np.empty(expected.shape)
            POSITIONS(x, weighted, axis=axes)
            np.testing.assert_array_equal(weighted, (pixels * np.arange(pixels.shape[-1])).sum(-1))


@pytest.mark.parametrize(
    ("shape", "dtype", "loop"),
    [
        ((70, 60, 513), "int8", "fold_lines<"),
        ((3, 1400, 301), "float16", "fold_short<"),
        *cases_in_soak(
            ((2, 2050, 2047), "int8", "fold_long_lines<"),
            ((33, 125, 129), "float32", "fold_short<"),
            ((5, 900, 67), "float64", "fold_short<"),
        ),
    ],
)
def test_rows_that_are_parts_of_results(
    shape: tuple[int, ...], dtype: str, loop: str, block_folds: list[FoldLoop]
) -> None:
    x = flat_view(shape, dtype, 1, 1)
    expected = x.sum((0, 2), dtype="f8")
    np.testing.assert_array_equal(
        SUM_AS_IT_IS(x, np.empty(shape[1], dtype), axis=(0, 2)), expected.astype(dtype)
    )
    assert block_folds[-1].name.startswith(loop)
    assert block_folds[-1].parts == shape[0]
    np.testing.assert_array_equal(SMALLEST(x, axis=(0, 2)), x.min((0, 2)))
    assert block_folds[-1].parts == shape[0]
    means = np.full(2 * shape[1], 7.0)
    np.testing.assert_allclose(
        SHARES(x, means[::2], axis=(0, 2)), expected / (shape[0] * shape[2]), 1e-9, 1e-12
    )
    np.testing.assert_array_equal(means[1::2], 7)
    np.testing.assert_array_equal(
        reduction.NUMBERS(x, axis=(0, 2)), np.arange(x.size).reshape(shape).sum((0, 2))
    )
    np.testing.assert_array_equal(LOWEST(x, axis=(0, 2)), x.swapaxes(0, 1).reshape(shape[1], -1).argmin(1))


@pytest.mark.parametrize("dtype", ["float32", *in_soak("int8", "float16", "float64")])
@pytest.mark.parametrize("shape", [(300, 1000), (7, 3001), *in_soak((90, 1030), (3, 40, 70))])
def test_one_weight_for_a_row_or_a_column(dtype: str, shape: tuple[int, ...]) -> None:
    operands.test_one_weight_for_a_row_or_a_column(np, dtype, shape)


@pytest.mark.parametrize("dtype", ["float32", *in_soak("int16", "float64")])
def test_distances_of_points(dtype: str) -> None:
    operands.test_distances_of_points(np, dtype, 3)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((40, 13, 15), "float16"),
        *cases_in_soak(((40, 13, 15), "int8"), ((3, 5, 2, 600), "float16"), ((3, 5, 2, 600), "int8")),
        *pairs_in_soak([(6, 9, 205), (5, 4, 17, 3)], ["float16", "int8"]),
        *pairs_in_soak(operands.WITH_INSIDES, ["float32", "complex128"]),
    ],
)
def test_what_is_inside_of_an_array(dtype: str, shape: tuple[int, ...]) -> None:
    operands.test_what_is_inside_of_an_array(np, dtype, shape)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        *in_turns([(3, 5003), (4, 3, 1007)], ["int8", "float32"]),
        *in_turns([(7, 4002), (5, 9, 334)], ["uint8", "int16"]),
        *pairs_in_soak([(3, 16, 1003)], ["uint8", "int16"]),
        *pairs_in_soak([(3, 5003), (4, 3, 1007)], ["int16", "float64"]),
        *pairs_in_soak([(9, 2, 35), (20, 37, 3)], ["int8", "int16", "float32", "float64"]),
    ],
)
def test_a_few_rows_that_begin_anywhere(dtype: str, shape: tuple[int, ...]) -> None:
    operands.test_a_few_rows_that_begin_anywhere(np, dtype, shape)


@pytest.mark.parametrize("dtype", ["uint8", *in_soak("int8", "int16", "uint16")])
def test_sums_of_small_integers_as_floats_are_exact(dtype: str) -> None:
    operands.test_sums_of_small_integers_as_floats_are_exact(np, dtype)


@pytest.mark.parametrize(
    ("length", "dtype"),
    [
        (511, "float16"), (31, "float32"), (127, "float64"), (251, "complex64"),
        *cases_in_soak((600, "float16"), (255, "float32"), (15, "float64")),
    ],
)  # fmt: skip
def test_many_rows_of_some_length(dtype: str, length: int) -> None:
    operands.test_many_rows_of_some_length(np, dtype, length)


@pytest.mark.parametrize("length", [115, 127])
def test_many_rows_of_five_arrays(length: int) -> None:
    operands.test_many_rows_of_five_arrays(np, length)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    in_turns([(70, 19, 13), (2, 150, 21, 5)], ["int8", "float32"], others=["float16", "float64"])
    + pairs_in_soak([(300, 40, 3)], ["int8", "float32", "float16", "float64"]),
)
def test_folds_of_columns_that_make_a_result(dtype: str, shape: tuple[int, ...]) -> None:
    axes = (len(shape) - 3, len(shape) - 1)
    kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
    for start in (0, 1):
        x = flat_view(shape, dtype, start, 1)
        np.testing.assert_array_equal(WIDE(x, axis=axes), x.sum(axes, dtype="c16"), err_msg=str(start))
        folded_last = x.transpose(*kept, *axes).reshape(*(shape[axis] for axis in kept), -1)
        np.testing.assert_array_equal(LOWEST(x, axis=axes), np.argmin(folded_last, -1))
        np.testing.assert_array_equal(
            reduction.NUMBERS(x, axis=axes), np.arange(x.size).reshape(shape).sum(axes)
        )


@pytest.mark.parametrize("shape", [(301, 371), (140, 512), (9, 1003), (70, 40, 13), (30, 7, 333)])
def test_the_order_of_a_fold_does_not_depend_on_where_data_lie(shape: tuple[int, ...]) -> None:
    axes = (0, 2) if len(shape) == 3 else 0
    x = np.random.default_rng(1).standard_normal(shape).astype("f4")
    expected = reduction.TOTAL(x, axis=axes)
    for start in (1, 2, 3):
        other = flat_view(shape, "f4", start, 1)
        other[...] = x
        np.testing.assert_array_equal(reduction.TOTAL(other, axis=axes), expected)


@pytest.mark.parametrize("dtypes", [("int8", "float32"), ("float32", "int16")])
def test_folds_across_rows_of_several_dtypes(dtypes: tuple[str, str]) -> None:
    for shape in ((150, 262), (4, 262)):
        x, y = values(shape, dtypes[0], 1), values((shape[0], shape[1] + 1), dtypes[1], 2)[:, 1:]
        np.testing.assert_array_equal(DOT(x, y, axis=0), (x.astype("f8") * y).sum(0))


@pytest.mark.parametrize("dtype", ["float16", *in_soak("float32", "float64", "complex64")])
@pytest.mark.parametrize(
    "shape",
    [
        (5, 20_011),
        (40, 1999),
        (4099, 3),
        (4099, 16),
        (4099, 100),
        *in_soak((3, 100_003), (4097, 7), (5000, 2)),
    ],
)
def test_sums_do_not_depend_on_where_elements_lie(dtype: str, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    # Lines of whole words are folded in another order where they begin in a word, which takes an eighth less time.
    are_lines = shape[1] >= 100 and 256 <= x.itemsize * shape[1] < 512 and x.itemsize * shape[1] % 16 == 0
    expected = reduction.TOTAL(flat_copy(x, int(are_lines)), axis=1)
    np.testing.assert_allclose(expected, x.astype("c16").sum(1), rtol=1e-2, atol=1e-1)
    for start in (1, 2, 3):
        np.testing.assert_array_equal(reduction.TOTAL(flat_copy(x, start), axis=1), expected)
    with_gaps = np.repeat(x, 2, axis=1)[:, ::2]
    if with_gaps.itemsize * shape[1] >= 512:
        np.testing.assert_array_equal(reduction.TOTAL(with_gaps, axis=1), expected)


def flat_copy(x: np.ndarray[Any, Any], start: int) -> np.ndarray[Any, Any]:
    """Return the same elements so many into a word."""
    copy = flat_view(x.shape, str(x.dtype), start, 1)
    copy[...] = x
    return copy


@pytest.mark.parametrize(
    ("shape", "dtype"),
    in_turns([(40_003,), (3000, 512)], ["int8", "uint16"], others=["uint8", "int16"])
    + pairs_in_soak([(20_000, 7), (4, 20_001), (20_000, 32)], ["int8", "uint16", "uint8", "int16"]),
)
def test_sums_of_small_integers(dtype: str, shape: tuple[int, ...]) -> None:
    limits = np.iinfo(dtype)
    random = np.random.default_rng(1)
    for x in (
        np.full(shape, limits.min, dtype),
        np.full(shape, limits.max, dtype),
        random.integers(limits.min, limits.max, shape, dtype, endpoint=True),
    ):
        for axis in (None, *range(len(shape))):
            np.testing.assert_array_equal(WHOLE(x, axis=axis), x.sum(axis, dtype="i8"))
            np.testing.assert_array_equal(reduction.TOTAL(x, axis=axis), x.sum(axis, dtype=dtype))


@pytest.mark.parametrize(
    ("shape", "dtype"),
    in_turns(
        [(9, 1999), (4099, 33), (4099, 129), (4099, 7), (4101, 3), (4099, 16)],
        ["int8", "uint16"],
        others=["uint8", "int16"],
    )
    + pairs_in_soak([(2, 40_003), (4099, 100), (4099, 73)], ["int8", "uint16", "uint8", "int16"]),
)
def test_sums_of_small_integers_wherever_rows_begin(dtype: str, shape: tuple[int, int]) -> None:
    limits = np.iinfo(dtype)
    for start in (0, 1, 3, 6):
        x = flat_view(shape, dtype, start, 1)
        x[...] = np.random.default_rng(start).integers(limits.min, limits.max, shape, dtype, endpoint=True)
        for each in (x, x[:, 1:], x[:, 2:-1], x[:, ::2], x[::-1]):
            np.testing.assert_array_equal(WHOLE(each, axis=1), each.sum(1, dtype="i8"))


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        *in_turns(
            [(301, 371), (70, 19, 13), (4099, 16), (4099, 127)],
            ["uint8"],
            others=["int8"],
        ),
        *pairs_in_soak(
            [(4099, 3), (5, 517), (140, 512), (4099, 33), (5, 301, 1000), (2000, 300)], ["int8", "uint8"]
        ),
    ],
)
def test_extremes_of_bytes(dtype: str, shape: tuple[int, ...]) -> None:
    limits = np.iinfo(dtype)
    axis = (0, 2) if shape[-1] == 13 else len(shape) - 2
    for start in (0, 1):
        x = flat_view(shape, dtype, start, 1)
        for low, high in (
            (limits.min, limits.max),
            (limits.min, limits.min + 3),
            (limits.max - 3, limits.max),
        ):
            x[...] = np.random.default_rng(start).integers(low, high, shape, dtype, endpoint=True)
            for each in (x, x[..., ::2], x[::-1]):
                np.testing.assert_array_equal(reduction.LARGEST(each, axis=axis), each.max(axis))
                np.testing.assert_array_equal(SMALLEST(each, axis=axis), np.minimum(each.min(axis), 5))
                np.testing.assert_array_equal(reduction.LARGEST(each, axis=-1), each.max(-1))
                np.testing.assert_array_equal(SMALLEST(each, axis=-1), np.minimum(each.min(-1), 5))


@pytest.mark.parametrize("shape", [(20_011,), (129, 131), (5000, 3), (3, 5000), (8, 65, 66)])
def test_parts_of_large_folds(shape: tuple[int, ...]) -> None:
    x: Any = values(shape, "f4", 1)
    for axis in (None, *range(len(shape))):
        np.testing.assert_array_equal(reduction.TOTAL(x, axis=axis), x.sum(axis, dtype="f8").astype("f4"))
    mean, variance = reduction.MOMENTS(x)
    np.testing.assert_allclose(
        [float(mean), float(variance)], [x.mean(dtype="f8"), x.var(dtype="f8")], rtol=1e-10
    )


@pytest.mark.parametrize("shape", [(16, 16, 0), (0, 300), (300, 0, 3), (0, 2, 512), (512, 0, 512)])
def test_folds_of_nothing(shape: tuple[int, ...]) -> None:
    x: Any = np.zeros(shape, "f4")
    across = np.broadcast_to(np.ones(shape[-1], "f4"), shape)
    for operand in (x, x.T, across, across.T):
        for axis in (None, *range(len(shape)), (0, 1)):
            np.testing.assert_array_equal(reduction.TOTAL(operand, axis=axis), operand.sum(axis, dtype="f4"))


@pytest.mark.parametrize("bins", [44, 126, *in_soak(46)])
@pytest.mark.usefixtures("optimized")
def test_large_structures_are_folded(bins: int) -> None:
    check_most_frequent(np, bins)


@pytest.mark.parametrize("dtype", ["int8", "float16", *in_soak("uint8", "int16", "uint16")])
def test_small_numbers_are_widened_only_where_that_makes_no_difference(dtype: str) -> None:
    largest = 1 if dtype == "float16" else 2  # sums of halves are exact, those of integers are not
    x = np.random.default_rng(1).integers(-1, largest, (3, 20_000), endpoint=True).astype(dtype)
    for axis in (0, 1):
        np.testing.assert_array_equal(LOWEST(x, axis=axis), np.argmin(x, axis))
    declared = "enum T : int" if x.dtype.kind in "iu" else "as_float<float16> T"
    assert declared in LOWEST.cached_codes[np.dtype(dtype),]
    for name, (reduce_expr, preamble) in SMALL_SUMS.items():
        kernel = gs.ReductionKernel(
            "T x", "T y, int32 size", "Sum{x, sizeof(T)}" if "size" in name else "Sum{x, 0}", reduce_expr,
            "y = a.x; size = a.size", None, "small_sum", reduce_type="Sum",
            preamble=f"struct Sum {{ T x; int size; }};\n{preamble}",
        )  # fmt: skip
        total, size = kernel(x, axis=1)
        if "size" in name:
            np.testing.assert_array_equal(size, x.itemsize)
        else:
            np.testing.assert_array_equal(total, x.sum(1, dtype=dtype), err_msg=name)
        assert not re.search("enum T|as_float", kernel.cached_code), name


def test_what_was_refused_with_wider_numbers_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither for another layout nor in another run."""
    target, seen = registry.get("cpu"), []
    compile_ = target.compile

    def counted(program: Any, arch: str) -> Any:
        seen.append(program.text)
        return compile_(program, arch)

    monkeypatch.setattr(target, "compile", counted)
    x = np.ones((3, 20_000), np.int8)

    def compiled(axis: int) -> list[bool]:
        """Return for each text that was compiled whether its numbers were wider."""
        kernel = gs.ReductionKernel(
            "T x", "T y", "Sum{x, 0}", "plus(a, b)", "y = a.x", None, "refused_sum", reduce_type="Sum",
            preamble="""struct Sum { T x; int size; };
            __device__ Sum plus(Sum a, Sum b) { a.x += b.x; return a; }""",
        )  # fmt: skip
        seen.clear()
        np.testing.assert_array_equal(kernel(x, axis=axis), x.sum(axis, dtype=np.int8))
        return ["enum T" in text for text in seen]

    assert compiled(axis=1) == [True, False]
    assert compiled(axis=0) == [False]
    functions.forget_programs()
    assert compiled(axis=1) == []
    functions.forget_programs()
    monkeypatch.setenv("GRIDSTRIDE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("GRIDSTRIDE_FORBID_COMPILATION", "1")
    with pytest.raises(CompileError, match="forbidden"):
        compiled(axis=1)
    monkeypatch.delenv("GRIDSTRIDE_FORBID_COMPILATION")
    assert compiled(axis=1) == [True, False]


@pytest.mark.parametrize("of", ["sums", "places", "flags"])
def test_usual_folds_in_one_text(
    monkeypatch: pytest.MonkeyPatch, loaded_texts: list[Any], folds_of_much: None, of: str
) -> None:
    reduction.test_usual_folds_in_one_text_give_the_same_bits(
        np, monkeypatch, loaded_texts, folds_of_much, of
    )
    assert max(len(program.kernels) for program in loaded_texts) > 6
