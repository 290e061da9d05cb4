"""Reductions: the same calls on every target, compared with NumPy."""

from __future__ import annotations

import inspect
import math
import pickle
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride import _dtypes
from gridstride._array_pipeline import usual_folds
from gridstride.targets.base import Target
from gridstride.targets.block_loops import writers
from tests.array_values import values
from tests.crosses import cases_in_soak, in_turns

#: Before fixtures choose instead.
READS_LITTLE = writers.reads_little

TOTAL = gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
LARGEST = gs.ReductionKernel("T x", "T y", "x", "a > b ? a : b", name="largest")


def place_kernel(name: str) -> gs.ReductionKernel:
    return gs.ReductionKernel(
        "T x", "int64 k, T v", "candidate{x, _J}", "earlier(a, b)", "k = a.place; v = a.value", name=name,
        reduce_type="candidate",
        preamble="""
        struct candidate { T value; long long place; };
        __device__ candidate earlier(candidate a, candidate b) {
            return a.value > b.value || (a.value == b.value && a.place < b.place) ? a : b;
        }""",
    )  # fmt: skip


PLACE = place_kernel("argmax")
MOMENTS = gs.ReductionKernel(
    "T x", "float64 mean, float64 variance", "moments{1, double(x), 0}", "joined(a, b)",
    "mean = a.mean; variance = a.squares / a.count", "moments{0, 0, 0}", "moments_of", reduce_type="moments",
    preamble="""
    struct moments { double count, mean, squares; };
    __device__ moments joined(moments a, moments b) {
        if (a.count == 0) return b;
        if (b.count == 0) return a;
        double n = a.count + b.count, d = b.mean - a.mean;
        return moments{n, a.mean + d * b.count / n, a.squares + b.squares + d * d * a.count * b.count / n};
    }""",
)  # fmt: skip
DOT = gs.ReductionKernel("T x, T y, T scale", "T z", "x * y", "a + b", "z = a * scale", "0", "dot")
NUMBERS = gs.ReductionKernel("T x", "int64 s", "i", "a + b", "s = a", "0", "numbers")

NUMERIC = [name for name in _dtypes.SCALAR_NAMES if name not in ("bool", "bfloat16")]


# ---- large and lopsided ----

LARGE = [(300_007,), (1021, 1031), (64, 129, 65), (100_003, 3), (3, 100_003), (2, 3, 4, 5, 6, 7, 8)]


@pytest.mark.parametrize("shape", LARGE)
def test_large_arrays_along_every_axis(xp: ModuleType, shape: tuple[int, ...]) -> None:
    x = values(shape, "f4", 3)
    given_x = xp.asarray(x)
    for axis in (None, *range(len(shape)), tuple(range(0, len(shape), 2))):
        for array, host in ((given_x, x), (given_x.T, x.T)):
            np.testing.assert_array_equal(
                gs.asnumpy(TOTAL(array, axis=axis)), host.sum(axis, dtype="f8").astype("f4")
            )


@pytest.mark.parametrize("dtype", ["int8", "float32", "complex128"])
def test_wide_rows_of_any_step(xp: ModuleType, dtype: str) -> None:
    x = values((9, 4500), dtype, 1)
    for view in (x[:, ::2], x[::2, ::-3], x[:, 1::4].T, np.broadcast_to(x[:, :1], x.shape)):
        for axis in (None, 0, 1):
            np.testing.assert_array_equal(
                gs.asnumpy(TOTAL(xp.asarray(view), axis=axis)), view.sum(axis, dtype=dtype)
            )


def test_large_structures_and_many_inputs(xp: ModuleType) -> None:
    large = np.zeros((700, 3), [("head", "f8"), ("rest", "u1", (1500,))])
    large["head"] = np.arange(2100).reshape(700, 3)
    heads = gs.ReductionKernel("P p", "float64 y", "p.head", "a + b", "y = a", "0", "heads")
    kept = gs.ReductionKernel(
        "T x", "T y", "chest{x}", "chest{a.held + b.held}", "y = a.held", name="kept", reduce_type="chest",
        preamble="struct chest { T held; char room[2000]; chest() = default; "
                 "__host__ __device__ chest(T h) : held(h) {} };",
    )  # fmt: skip
    for axis in (0, 1):
        expected = large["head"].sum(axis)
        if xp is np:
            np.testing.assert_array_equal(heads(large, axis=axis), expected)
            np.testing.assert_array_equal(kept(large["head"].copy(), axis=axis), expected)
    names = [f"x{k}" for k in range(50)]
    many = gs.ReductionKernel(
        ", ".join(f"T {name}" for name in names), "T y", " + ".join(names), "a + b", "y = a", "0", "many"
    )
    x = np.arange(40.0 * 600).reshape(40, 600)[:, ::2]
    for axis in (0, 1):
        np.testing.assert_array_equal(gs.asnumpy(many(*[xp.asarray(x)] * 50, axis=axis)), x.sum(axis) * 50)


@pytest.mark.parametrize("dtype", NUMERIC)
def test_every_dtype(xp: ModuleType, dtype: str) -> None:
    x = values((50, 700), dtype, 1)
    for axis in (None, 0, 1):
        result = TOTAL(xp.asarray(x), axis=axis)
        assert result.dtype == dtype
        exact = x.astype("f8" if dtype == "float16" else dtype).sum(
            axis, dtype="f8" if dtype == "float16" else dtype
        )
        np.testing.assert_array_equal(gs.asnumpy(result), exact.astype(dtype))


def test_bfloat16(xp: ModuleType) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = values((50, 70), ml_dtypes.bfloat16, 1)
    result = TOTAL(x, axis=1)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(
        result.astype("f4"), x.astype("f4").sum(1).astype(ml_dtypes.bfloat16).astype("f4")
    )


def test_texts_of_an_older_standard(xp: ModuleType) -> None:
    total = gs.ReductionKernel(
        "T x", "T y", "x", "a + b", identity="0", name="older_total", options=("--std=c++14",)
    )
    x = values((300, 5, 7), "f4", 1)
    for axis in (1, 2):
        np.testing.assert_array_equal(gs.asnumpy(total(xp.asarray(x), axis=axis)), x.sum(axis))


def test_float16_is_folded_in_float32(xp: ModuleType) -> None:
    ones = xp.ones(5000, "f2")
    assert float(TOTAL(ones)) == 5000  # in float16 it would stop at 2048


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_sums_are_as_accurate_as_numpys(xp: ModuleType, axis: int | None) -> None:
    errors, allowed, rounding = [], [], 0.0
    for seed in range(12 if axis is None else 1):  # one result alone may be off by luck, of anybody's
        x = np.random.default_rng(seed).random((1000, 3000), "f4")
        exact = x.sum(axis, dtype="f8")
        errors.append(np.abs(gs.asnumpy(TOTAL(xp.asarray(x), axis=axis)) - exact).mean())
        allowed.append(np.abs(x.sum(axis) - exact).mean())
        rounding = np.spacing(np.float32(np.max(exact))) / 2  # of the result alone
    assert np.mean(errors) <= max(np.mean(allowed), rounding)


def test_results_repeat(xp: ModuleType) -> None:
    x = xp.asarray(np.random.default_rng(6).random((700, 900), "f4"))
    for axis in (None, 0, 1):
        first = gs.asnumpy(TOTAL(x, axis=axis)).tobytes()
        assert all(gs.asnumpy(TOTAL(x, axis=axis)).tobytes() == first for _ in range(3))


def test_moments_in_one_pass(xp: ModuleType) -> None:
    x = values((60, 511), "f4", 4)
    for axis in (None, 0, 1):
        mean, variance = MOMENTS(xp.asarray(x), axis=axis)
        np.testing.assert_allclose(gs.asnumpy(mean), x.mean(axis, dtype="f8"), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(gs.asnumpy(variance), x.var(axis, dtype="f8"), rtol=1e-10)


@pytest.mark.parametrize("dtype", ["int8", "uint16"])
def test_wide_results_of_small_elements_that_are_repeated(xp: ModuleType, dtype: str) -> None:
    """What moves elements of the results' size is linked too."""
    x = np.broadcast_to(np.arange(32, dtype=dtype)[::-2], (7, 17, 16))
    found = MOMENTS(xp.broadcast_to(xp.asarray(x[0, 0]), x.shape), axis=0)
    np.testing.assert_array_equal(gs.asnumpy(found[0]), x[0])
    np.testing.assert_array_equal(gs.asnumpy(found[1]), np.zeros((17, 16)))


ANY = gs.ReductionKernel("T x", "bool y", "x != 0", "a || b", "y = a", "false", "any_of")
ALL = gs.ReductionKernel("T x", "bool y", "x != 0", "a && b", "y = a", "true", "all_of")


def test_any_and_all(xp: ModuleType) -> None:
    x = values((40, 3), "i4", 1) % 3
    check_any_and_all(xp, x)
    for shape in ((40, 3), (4099, 20), (9, 1008), (3, 5003), (40, 37, 13)):
        for share in (0.001, 0.1, 0.9, 0.999):
            check_any_and_all(xp, np.random.default_rng(1).random(shape) < share)


def check_any_and_all(xp: ModuleType, x: np.ndarray[Any, Any]) -> None:
    """Check which results are true of an array's lines, rows and all."""
    for view in (x, x[1:, ..., 1:]):
        for axis in (None, 0, 1, (0, view.ndim - 1)):
            np.testing.assert_array_equal(gs.asnumpy(ANY(xp.asarray(view), axis=axis)), np.any(view, axis))
            np.testing.assert_array_equal(gs.asnumpy(ALL(xp.asarray(view), axis=axis)), np.all(view, axis))


def test_products_and_extremes(xp: ModuleType) -> None:
    product = gs.ReductionKernel("T x", "T y", "x", "a * b", "y = a", "1", "product")
    x = values((9, 40), "i8", 2)
    np.testing.assert_array_equal(gs.asnumpy(product(xp.asarray(x), axis=1)), x.prod(1))
    np.testing.assert_array_equal(gs.asnumpy(LARGEST(xp.asarray(x), axis=0)), x.max(0))


@pytest.mark.parametrize(
    ("text", "dtype"),
    in_turns(
        ["a > b ? a : b", "(b <= a) ? a : b", "a >= b ? b : a", "max(b, a)", "(b > a) ? a : b"],
        ["int8", "uint8"],
    ),
)
def test_the_larger_or_the_smaller_of_two(xp: ModuleType, text: str, dtype: str) -> None:
    kernel = gs.ReductionKernel("T x", "T y", "x", text, name="kept")
    limits = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(limits.min, limits.max, (70, 300), dtype, endpoint=True)
    keeps_larger = text in ("a > b ? a : b", "(b <= a) ? a : b", "max(b, a)")
    for axis in (0, 1):
        expected = x.max(axis) if keeps_larger else x.min(axis)
        np.testing.assert_array_equal(gs.asnumpy(kernel(xp.asarray(x), axis=axis)), expected)


# ---- forms and options ----


def test_the_dtype_of_the_result(xp: ModuleType) -> None:
    x = values((30, 50), "i1", 1)
    result = TOTAL(xp.asarray(x), axis=0, dtype="i8")
    assert result.dtype == np.int64
    np.testing.assert_array_equal(gs.asnumpy(result), x.sum(0, dtype="i8"))
    with pytest.raises(TypeError, match=r"`total`: parameter .* its bytes are swapped"):
        TOTAL(xp.ones(3, "f4"), dtype=np.dtype("f8").newbyteorder())
    with pytest.raises(TypeError, match="dtype="):
        TOTAL(xp.ones(3, "f4"), dtype="i4")
    with pytest.raises(TypeError, match="always"):
        NUMBERS(xp.ones(3), dtype="f4")


@pytest.mark.parametrize(
    "identity",
    [
        0,
        -7,
        2**63,
        -(2**63),
        True,
        False,
        1.5,
        1e30,
        -np.inf,
        np.nan,
        np.float32(0.1),
        np.int8(3),
        np.array(2.0),
        1 - 2j,
    ],
)
def test_identities_may_be_numbers(xp: ModuleType, identity: Any) -> None:
    dtype = np.result_type(identity) if isinstance(identity, np.generic) else np.asarray(identity).dtype
    first = gs.ReductionKernel("T x", "T y", "x", "true ? a : b", "y = a", identity, "first")
    result = first(xp.ones((0, 2), dtype), axis=0)
    np.testing.assert_array_equal(gs.asnumpy(result), np.full(2, identity, dtype))


def test_identities_may_be_integers_of_many_digits(xp: ModuleType) -> None:
    least = gs.ReductionKernel("T x", "T y", "x", "a < b ? a : b", "y = a", 10**30, "least")
    assert least(xp.ones(0)) == 1e30


@pytest.mark.parametrize("dtype", ["int8", "uint16"])
def test_infinite_identities_of_integers(xp: ModuleType, dtype: str) -> None:
    limits = np.iinfo(dtype)
    x = xp.asarray(np.array([limits.min, limits.min + 1, limits.min + 3], dtype))
    y = xp.asarray(np.array([limits.max, limits.max - 1, limits.max - 3], dtype))
    largest = gs.ReductionKernel("T x", "T y", "x", "max(a, b)", "y = a", -np.inf, "largest")
    smallest = gs.ReductionKernel("T x", "T y", "x", "min(a, b)", "y = a", "INFINITY", "smallest")
    assert (int(largest(x)), int(largest(x[:0]))) == (limits.min + 3, limits.min)
    assert (int(smallest(y)), int(smallest(y[:0]))) == (limits.max - 3, limits.max)


def test_identities_are_text_or_numbers() -> None:
    with pytest.raises(TypeError, match="`sum`: identity must be CUDA C\\+\\+ text or a number, got list"):
        gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", [0], "sum")  # type: ignore[arg-type]


def test_empty_folds_have_the_identity(xp: ModuleType) -> None:
    assert gs.asnumpy(TOTAL(xp.zeros((0,), "f4"))) == 0
    np.testing.assert_array_equal(gs.asnumpy(TOTAL(xp.zeros((3, 0, 2), "f4"), axis=1)), np.zeros((3, 2)))
    assert TOTAL(xp.zeros((3, 0, 2), "f4"), axis=0).shape == (0, 2)
    with pytest.raises(ValueError, match="no identity"):
        LARGEST(xp.zeros((0,)))


def test_raw_parameters_and_numbers_of_elements(xp: ModuleType) -> None:
    weighted = gs.ReductionKernel(
        "T x, raw T w", "T y", "x * w[_J]", "a + b", "y = a + w[0] * i", "0", "weighted"
    )
    x, w = values((6, 40), "i4", 1), values((40,), "i4", 2)
    expected = (x * w).sum(1) + w[0] * np.arange(6)
    np.testing.assert_array_equal(gs.asnumpy(weighted(xp.asarray(x), xp.asarray(w), axis=1)), expected)


def test_inputs_may_be_named_as_what_is_folded(xp: ModuleType) -> None:
    x, w = values((3, 40), "f8", 1), values((3, 40), "f8", 2)
    dot = gs.ReductionKernel("T a, T b", "T c", "a * b", "a + b", "c = a", "0", "dot")
    np.testing.assert_allclose(gs.asnumpy(dot(xp.asarray(x), xp.asarray(w), axis=1)), (x * w).sum(1))
    scaled = gs.ReductionKernel("T x, T b", "T c", "x * b", "a + b", "c = a * b", "0", "scaled")
    np.testing.assert_allclose(gs.asnumpy(scaled(xp.asarray(x), 2.5)), x.sum() * 6.25)
    looked_up = gs.ReductionKernel("T x, raw T b", "T c", "x * b[_J]", "a + b", "c = a", "0", "looked_up")
    np.testing.assert_allclose(
        gs.asnumpy(looked_up(xp.asarray(x), xp.asarray(w[0]), axis=1)), (x * w[0]).sum(1)
    )
    largest = gs.ReductionKernel("T a", "T c", "a", "max(a, b)", "c = a", None, "largest")
    np.testing.assert_array_equal(
        gs.asnumpy(largest(xp.asarray(x.astype("i1")), axis=0)), x.astype("i1").max(0)
    )
    with pytest.raises(ValueError, match="'a' has a name that the kernel's text has already"):
        gs.ReductionKernel("T x", "T a", "x", "a + b", "a = a", "0", "unclear")


@pytest.mark.parametrize("keepdims", ["no", None, 1.0])
def test_keepdims_is_a_flag(xp: ModuleType, keepdims: Any) -> None:
    with pytest.raises(TypeError, match="keepdims must be True or False, got"):
        TOTAL(xp.ones((2, 3)), axis=0, keepdims=keepdims)


def test_sizes(xp: ModuleType) -> None:
    x = values((6, 40), "f8", 1)
    mean = gs.ReductionKernel(
        "T x", "T y", "x", "a + b", "a / (_in_ind.size() / _out_ind.size())", "0", "mean"
    )
    np.testing.assert_allclose(gs.asnumpy(mean(xp.asarray(x), axis=1)), x.mean(1))
    own = gs.ReductionKernel("T x", "T y", "x", "a + b", "a / _fold_size", "0", "mean_too")
    np.testing.assert_allclose(gs.asnumpy(own(xp.asarray(x), axis=0)), x.mean(0))
    alone = gs.ReductionKernel("T x", "T y", "x", "a + b", "a / _in_ind.size()", "0", "mean_of_all")
    np.testing.assert_allclose(gs.asnumpy(alone(xp.asarray(x))), x.mean())
    with pytest.raises(ValueError, match="_fold_size"):
        alone(xp.asarray(x), axis=1)


def test_the_fifth_expression_can_be_the_identity(xp: ModuleType) -> None:
    kernel = gs.ReductionKernel("T x", "T y", "x", "a + b", "0", "total_too")
    assert (kernel.identity, kernel.name, kernel.post_map_expr) == ("0", "total_too", "y = a")
    assert gs.ReductionKernel("T x", "T y", "x", "a + b", "0").identity == "0"
    assert gs.ReductionKernel("T x", "T y", "x", "a + b", "0 // a").identity == "0 // a"
    with pytest.raises(ValueError, match=r"post_map_expr='0', identity='1'.*identity='0', name='1'"):
        gs.ReductionKernel("T x", "T y", "x", "a + b", "0", "1")
    kernel = gs.ReductionKernel("T x", "T c", "x", "a + b", "0", "into_c", options=("-std=c++17", "-I/a/c"))
    assert (kernel.identity, kernel.name) == ("0", "into_c")
    by_macro = gs.ReductionKernel(
        "T x", "T y", "x", "a + b", "FINISH", "0", "twice", preamble="#define FINISH y = 2 * a"
    )
    assert (by_macro.identity, by_macro.name, float(by_macro(xp.arange(4.0)))) == ("0", "twice", 12.0)
    with pytest.raises(ValueError, match="two names"):
        gs.ReductionKernel("T x", "T y", "x", "a + b", "0", "one", "two")


@pytest.mark.parametrize(
    "post",
    [
        "a * 2", "y = a * 2", "T t = a * 2; y = t", "if (a > 0) y = a * 2; else y = a * 2", "a * 2;",
        "a * 2; /* y = ; */", "[=] { T t = a; return t * 2; }()", "T t = a; TWICE(t)",
    ],
)  # fmt: skip
def test_post_maps_are_expressions_or_statements(xp: ModuleType, post: str) -> None:
    kernel = gs.ReductionKernel(
        "T x", "T y", "x", "a + b", post, "0", "doubled", preamble="#define TWICE(v) y = v * 2"
    )
    assert float(kernel(xp.arange(5.0))) == 20.0


@pytest.mark.parametrize(
    "post", ["return a * 2", "return a * 2;", "if (a > 0) a = 1;", "a; b", "T t = a; t += 1 // y"]
)
def test_post_maps_that_assign_nothing(post: str) -> None:
    with pytest.raises(
        ValueError, match=r"`lost`: post_map_expr '.*' assigns none of the outputs y: write y ="
    ):
        gs.ReductionKernel("T x", "T y", "x", "a + b", post, "0", "lost")


def test_post_maps_that_end_by_a_macro_keep_what_is_there(xp: ModuleType) -> None:
    kernel = gs.ReductionKernel(
        "T x", "T y", "x", "a + b", "LEAVE(a); y = a", "0", "positive_sums",
        preamble="#define LEAVE(v) if (v < 0) return",
    )  # fmt: skip
    x, out = values((40, 300), "f4", 1), xp.full(40, 7, "f4")
    kernel(xp.asarray(x), out, axis=1)
    np.testing.assert_array_equal(gs.asnumpy(out), np.where(x.sum(1) < 0, 7, x.sum(1)))


def test_several_outputs_need_a_post_map() -> None:
    with pytest.raises(ValueError, match="must assign them"):
        gs.ReductionKernel("T x", "T y, T z", "x", "a + b", identity="0")
    with pytest.raises(ValueError, match="assigns none"):
        gs.ReductionKernel("T x", "T y, T z", "x", "a + b", "a * 2", "0")


def test_outputs_can_be_passed_in_two_ways(xp: ModuleType) -> None:
    x, out = xp.arange(6.0).reshape(2, 3), xp.zeros(3)
    assert TOTAL(x, out, axis=0) is out
    np.testing.assert_array_equal(gs.asnumpy(out), [3, 5, 7])
    with pytest.raises(TypeError, match="twice"):
        TOTAL(x, out, axis=0, out=out)
    with pytest.raises(ValueError, match="non-broadcastable"):
        TOTAL(x, axis=1, out=out)


def test_outputs_that_are_blocks_of_one_array(xp: ModuleType) -> None:
    x, out = values((6, 5, 8), "f8", 1), xp.zeros((6, 9))
    MOMENTS(xp.asarray(x), axis=2, out=(out[:, :5], xp.zeros((6, 5))))
    MOMENTS(xp.asarray(x[:, :4]), axis=2, out=(out[:, :4], out[:, 5:]))
    np.testing.assert_allclose(gs.asnumpy(out)[:, :5], x.mean(2), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gs.asnumpy(out)[:, 5:], x[:, :4].var(2), rtol=1e-10)


def test_every_output_has_the_shape_of_the_result(xp: ModuleType) -> None:
    x, mean, variance = xp.ones((2, 3)), xp.zeros(3), xp.zeros(2)
    for out in ((mean, variance), (variance, mean)):
        with pytest.raises(ValueError, match=r"non-broadcastable output: '\w+' has the shape \(2,\)"):
            MOMENTS(x, axis=0, out=out)
    assert not gs.asnumpy(mean).any()


def test_an_input_that_shares_memory_with_the_output(xp: ModuleType) -> None:
    x = xp.arange(12.0).reshape(3, 4)
    TOTAL(x, axis=0, out=x[1])
    np.testing.assert_array_equal(gs.asnumpy(x[1]), [12, 15, 18, 21])


class SomeAxis:
    """An axis that changes, and shows nothing of it."""

    value = 0

    def __index__(self) -> int:
        return self.value


def test_calls_like_earlier_ones_look_at_their_own_arguments(xp: ModuleType) -> None:
    x = xp.arange(6.0).reshape(2, 3)
    assert TOTAL(x, axis=1).shape == (2,)
    with pytest.raises(TypeError, match="axis must be"):
        TOTAL(x, axis=1.0)
    assert TOTAL(x, axis=0, keepdims=1).shape == (1, 3)
    assert TOTAL(x, axis=0, keepdims=np.True_).shape == (1, 3)
    np.testing.assert_array_equal(gs.asnumpy(TOTAL(x + 1, axis=1)), [6, 15])
    axis = SomeAxis()
    for axis.value in (0, 1):
        np.testing.assert_array_equal(gs.asnumpy(TOTAL(x, axis=axis)), gs.asnumpy(x).sum(axis.value))
    for length in (70_000, 70_001):
        np.testing.assert_array_equal(gs.asnumpy(TOTAL(xp.ones(length, "i4"))), length)
    with pytest.raises(ValueError, match="no identity"):
        LARGEST(xp.zeros((0, 3)), axis=0)


def test_unknown_keywords_are_refused_by_the_names_that_there_are(xp: ModuleType) -> None:
    with pytest.raises(TypeError, match=r"`total`: a call has no keyword 'axes'; did you mean 'axis'\?"):
        TOTAL(xp.ones(3), axes=0)
    assert list(inspect.signature(TOTAL).parameters) == ["args", "axis", "keepdims", "dtype", "out", "stream"]


def test_what_kernels_tell_of_themselves(xp: ModuleType) -> None:
    assert ([each.name for each in PLACE.params], PLACE.nargs, PLACE.__name__) == (
        ["x", "k", "v"],
        3,
        "argmax",
    )
    assert (PLACE.reduce_type, PLACE.identity, PLACE.options, PLACE.type_preamble) == (
        "candidate",
        None,
        (),
        "",
    )
    assert "struct candidate" in PLACE.preamble
    kernel = gs.ReductionKernel("T x", "T y", "x", "a + b", identity="0", name="told")
    assert kernel.cached_codes == {}
    kernel(xp.ones(3, "f4"))
    assert list(kernel.cached_codes) == [(np.dtype("f4"),)]
    assert kernel.cached_code == kernel.cached_codes[np.dtype("f4"),]
    assert "a + b" in kernel.cached_code


def test_kernels_can_be_pickled(xp: ModuleType) -> None:
    copied = pickle.loads(pickle.dumps(TOTAL))
    assert (copied.name, copied.nin, copied.nout, float(copied(xp.arange(4.0)))) == ("total", 1, 1, 6.0)


@pytest.mark.parametrize("name", ["double", "2x", "a b", "square sum"])
def test_case_p120_names_that_cannot_be(name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a kernel"):
        gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", name)


# ---- what went wrong elsewhere ----


def test_case_p15_no_axis(xp: ModuleType) -> None:
    rms = gs.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "rms")
    x = xp.asarray(np.array([[1.0, -2, 3], [4, -5, 6]]))
    np.testing.assert_array_equal(gs.asnumpy(rms(x, axis=())), [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize("axis", [(0, 0), (0, -2)])
def test_case_p16_an_axis_named_twice(xp: ModuleType, axis: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="duplicate axis"):
        TOTAL(xp.ones((2, 3)), axis=axis)


def test_case_p16_an_axis_that_is_not_there(xp: ModuleType) -> None:
    with pytest.raises(np.exceptions.AxisError, match="axis 2 is out of bounds for arrays of 2"):
        TOTAL(xp.ones((2, 3)), axis=2)


def test_case_p17_a_pair_of_results(xp: ModuleType) -> None:
    kernel = gs.ReductionKernel(
        "T x", "int32 k, T v", "best{x, int(_J)}", "a.v >= b.v ? a : b", "k = a.k; v = a.v", name="best_of",
        reduce_type="best", preamble="struct best { T v; int k; };",
    )  # fmt: skip
    x = xp.asarray(np.array([[3, 0, 0], [0, 4, 0], [0, 0, 5]]))
    places, best = kernel(x, axis=1)
    np.testing.assert_array_equal(gs.asnumpy(places), [0, 1, 2])
    np.testing.assert_array_equal(gs.asnumpy(best), [3, 4, 5])
    outs = xp.zeros(3, "i4"), xp.zeros(3, "i8")
    assert kernel(x, axis=1, out=outs)[0] is outs[0]
    np.testing.assert_array_equal(gs.asnumpy(outs[1]), [3, 4, 5])


@pytest.mark.parametrize("wide", ["complex64", "complex128"])
def test_case_p19_float16_into_complex_numbers(xp: ModuleType, wide: str) -> None:
    kernel = gs.ReductionKernel("float16 x", f"{wide} y", "x", "a + b", "y = a", "0", "complex_total")
    assert complex(kernel(xp.ones(3, "f2"))) == 3 + 0j


def test_case_p22_a_sum_of_squares(xp: ModuleType) -> None:
    kernel = gs.ReductionKernel("T x", "T y", "x * x", "a + b", "y = a", "0", "square_sum")
    assert float(kernel(xp.ones((300, 300, 300)))) == 27000000.0


@pytest.mark.usefixtures("optimized")
def test_case_p24_folds_longer_than_an_int(xp: ModuleType) -> None:
    count = gs.ReductionKernel("T x", "int64 y", "1", "a + b", "y = a", "0", "count")
    length = 2**31 + 8
    one = xp.broadcast_to(xp.asarray(np.uint8(1)), length)
    assert int(count(one)) == length
    last = gs.ReductionKernel(
        "T x", "int64 y", "_J <= 2147483653 ? _J : 0", "a > b ? a : b", "y = a", "0", "last"
    )
    assert int(last(one)) == 2147483653


@pytest.mark.parametrize("order", ["C", "F"])
def test_case_p25_keepdims_along_every_axis(xp: ModuleType, order: Any) -> None:
    x = xp.asarray(np.ones((2, 3, 4), order=order))
    assert TOTAL(x, axis=None, keepdims=True).shape == (1, 1, 1)


def test_case_p119_a_newline_in_a_string(xp: ModuleType) -> None:
    kernel = gs.ReductionKernel("T x", "T y", "x", "a + b", 'y = a;\nprintf("hi\n");', "0", "greeting")
    with pytest.raises(gs.CompileError, match="use a raw string") as caught:
        kernel(xp.ones(2))
    assert "post_map_expr of greeting, line 2" in str(caught.value)


def test_case_p122_a_typo_in_the_post_map(xp: ModuleType) -> None:
    kernel = gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a\n  + aa", "0", "typo")
    with pytest.raises(gs.CompileError) as caught:
        kernel(xp.ones(2, "f4"))
    message = str(caught.value)
    assert "post_map_expr of typo, line 2" in message
    assert "      + aa\n        ^" in message
    assert "T = float32" in message


def test_case_p122_a_typo_in_the_map(xp: ModuleType) -> None:
    with pytest.raises(gs.CompileError, match="map_expr of typo, line 1"):
        gs.ReductionKernel("T x", "T y", "xx", "a + b", "y = a", "0", "typo")(xp.ones(2, "f4"))


# ---- programs ----


@pytest.mark.parametrize(("longest", "dtype"), [(8, "int8"), *cases_in_soak((64, "float32"))])
def test_a_thousand_shapes_and_twelve_layouts_compile_a_few_texts(
    xp: ModuleType, monkeypatch: pytest.MonkeyPatch, loaded_texts: list[object], longest: int, dtype: str
) -> None:
    monkeypatch.setattr(writers, "reads_little", READS_LITTLE)
    call_in_twelve_layouts(xp, dtype, longest, f"total_up_to_{longest}")
    assert 1 <= len(loaded_texts) <= 6


@pytest.mark.parametrize("of", ["sums", "places", "flags"])
def test_usual_folds_in_one_text_give_the_same_bits(
    xp: ModuleType, monkeypatch: pytest.MonkeyPatch, loaded_texts: list[Any], folds_of_much: None, of: str
) -> None:
    monkeypatch.setattr(usual_folds, "_SHAPES", ((40, 30, 20), (3, 300, 301), (300, 3, 301), (301, 300, 3)))
    dtype = "float32" if of == "sums" else "int16" if of == "places" else "bool"
    found = []
    for most in (1 << 30, 0):
        monkeypatch.setattr(usual_folds, "_MOST_ALONE", most)
        name = f"{of}_of_{'texts' if most else 'one_text'}"
        kernel = place_kernel(name) if of == "places" else gs.ReductionKernel(
            "T x", "T y", "x", "a || b" if of == "flags" else "a + b", "y = a", "0", name
        )  # fmt: skip
        results = []
        for shape in usual_folds._SHAPES:
            x = (xp.arange(math.prod(shape)).reshape(shape) % 1009 / 7).astype(dtype)
            for view, axis in layouts(x):
                result = kernel(view, axis=axis)
                results += [gs.asnumpy(each) for each in (result if of == "places" else (result,))]
                if of == "sums":
                    np.testing.assert_allclose(results[-1], gs.asnumpy(view).sum(axis=axis), rtol=1e-5)
        found.append(results)
    for alone, together in zip(*found, strict=True):
        np.testing.assert_array_equal(alone, together)
    assert len(loaded_texts) > 2


def layouts(x: Any) -> list[tuple[Any, Any]]:
    """Return the same array in several layouts, each with the axes that are folded."""
    return [
        (x, None), (x, 0), (x, 1), (x, 2), (x, (0, 2)), (x.T, 0), (x.transpose(1, 0, 2), 1), (x[::2], 2),
        (x[..., ::2], 2), (x[::-1], 0), (x[..., ::-1], None),
    ]  # fmt: skip


def call_in_twelve_layouts(
    xp: ModuleType, dtype: str, longest: int, name: str, are_places: bool = False
) -> None:
    """Call a new kernel with a thousand shapes of axes up to a length, in one of twelve layouts each."""
    fresh = (
        place_kernel(name)
        if are_places
        else gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", name)
    )
    random = np.random.default_rng(1)
    for count in range(1000):
        x = xp.ones(tuple(random.integers(1, longest, 3, endpoint=True).tolist()), dtype)
        views = [*layouts(x), (x[0], 1)]
        view, axis = views[count % 12]
        fresh(view, axis=axis)


def test_documents_variance(xp: ModuleType) -> None:
    kernel = gs.ReductionKernel(
        "T x, T mean", "T variance", "(x - mean) * (x - mean)", "a + b", "0", "variance_kernel"
    )
    data = xp.asarray(np.random.default_rng(1).normal(0, 1, 100_000))
    variance = kernel(data, xp.mean(data)) / (data.size - 1)
    np.testing.assert_allclose(float(variance), gs.asnumpy(data).var(ddof=1))


def test_documents_root_of_the_mean_square(xp: ModuleType) -> None:
    kernel = gs.ReductionKernel("T x", "T rms", "x * x", "a + b", "sqrt(a / _in_ind.size())", "0")
    data = xp.array([1, 2, 3, 4, 5], dtype=xp.float32)
    np.testing.assert_allclose(float(kernel(data)), np.sqrt(11), rtol=1e-6)


def test_the_program_of_a_target_that_runs_nothing(target: Target) -> None:
    with gs.use_target("null"):
        assert TOTAL(np.ones((3, 4), "f4"), axis=0).shape == (4,)
