"""What is promised of kernels made from a few lines: the form of their constructors, and words of their texts."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gridstride as gs

#: Parameters in their order, and the defaults of those that have one.
ELEMENTWISE = (
    "in_params out_params operation name=kernel reduce_dims=True preamble= type_preamble= no_return=False "
    "return_tuple=False options=() loop_prep= after_loop="
)
REDUCTION = (
    "in_params out_params map_expr reduce_expr post_map_expr=None identity=None name=reduce_kernel reduce_type=None "
    "reduce_dims=True preamble= type_preamble= options=()"
)
RAW = (
    "code name options=() headers=() backend=nvrtc translate_cucomplex=False enable_cooperative_groups=False "
    "jitify=False"
)


def form(function: Any) -> str:
    """Return the parameters of a call that may be positional."""
    parameters = inspect.signature(function).parameters.values()
    return " ".join(
        each.name if each.default is each.empty else f"{each.name}={each.default}"
        for each in parameters
        if each.kind is each.POSITIONAL_OR_KEYWORD
    )


@pytest.mark.parametrize(
    ("kernel", "promised"),
    [(gs.ElementwiseKernel, ELEMENTWISE), (gs.ReductionKernel, REDUCTION), (gs.RawKernel, RAW)],
)
def test_constructors(kernel: Any, promised: str) -> None:
    assert form(kernel) == promised


def test_functions_that_make_kernels(xp: ModuleType) -> None:
    x = xp.arange(6.0).reshape(2, 3)
    double = gs.create_elementwise_kernel("T x", "T y", "y = 2 * x", "double_of", return_tuple=True)
    assert isinstance(double, gs.ElementwiseKernel)
    (doubled,) = double(x)
    np.testing.assert_array_equal(gs.asnumpy(doubled), 2 * gs.asnumpy(x))
    total = gs.create_reduction_kernel("T x", "T y", "x", "a + b", "y = a", "0", "total_of")
    assert isinstance(total, gs.ReductionKernel)
    np.testing.assert_array_equal(gs.asnumpy(total(x, axis=0)), gs.asnumpy(x).sum(0))


def test_types_come_before_everything_and_the_preamble_knows_the_placeholders(xp: ModuleType) -> None:
    kernel = gs.ElementwiseKernel(
        "T x, pair p", "T y", "y = first(p) + x", "types_first",
        type_preamble="struct pair { float a; int b; };",
        preamble="__device__ T first(pair p) { return static_cast<T>(p.a * p.b); }",
    )  # fmt: skip
    pair = np.array((1.5, 4), np.dtype([("a", "f4"), ("b", "i4")], align=True))
    x = xp.arange(5, dtype="i2")
    result = kernel(x, pair)
    assert result.dtype == np.int16
    np.testing.assert_array_equal(gs.asnumpy(result), np.arange(5) + 6)


def test_types_that_a_reduction_names(xp: ModuleType) -> None:
    sizes = gs.ReductionKernel(
        "T x, U w", "V y, int64 in_size, int64 out_size, int64 folded_size",
        "static_cast<type_in0_raw>(x * 2.75) + 0 * w", "a + b",
        "y = type_out0_raw(a); in_size = sizeof(type_in0_raw); out_size = sizeof(type_out0_raw); "
        "folded_size = sizeof(_type_reduce)",
        "0", "type_sizes", reduce_type="double",
    )  # fmt: skip
    x = xp.arange(5, dtype="i2")
    total, *found = sizes(x, xp.ones(5, "i8"), dtype="f4")
    assert total.dtype == np.float32
    assert total.item() == np.trunc(np.arange(5) * 2.75).sum()
    assert [each.item() for each in found] == [2, 4, 8]


@pytest.mark.parametrize(("reduce_type", "size"), [(None, 4), ("float16", 2), ("float64", 8)])
def test_halves_are_folded_in_float_unless_it_is_said(
    xp: ModuleType, reduce_type: str | None, size: int
) -> None:
    kernel = gs.ReductionKernel(
        "float16 x", "float16 y, int64 size", "x", "a + b", "y = a; size = sizeof(_type_reduce)", "0", "halves",
        reduce_type=reduce_type,
    )  # fmt: skip
    total, found = kernel(xp.ones(100, xp.float16))
    assert (total.dtype, total.item(), found.item()) == (np.float16, 100, size)


def test_sizes_of_a_fold(xp: ModuleType) -> None:
    kernel = gs.ReductionKernel(
        "T x", "T y, int64 inputs, int64 outputs, int64 fold", "x", "a + b",
        "y = a; inputs = _in_ind.size(); outputs = _out_ind.size(); fold = _fold_size", "0", "sizes_of_fold",
    )  # fmt: skip
    for axis, counts in ((0, (24, 12, 2)), ((0, 2), (24, 3, 8)), (None, (24, 1, 24)), ((), (24, 24, 1))):
        _, *found = kernel(xp.ones((2, 3, 4)), axis=axis)
        assert tuple(int(each.ravel()[0]) for each in found) == counts
