"""Random calls of array kernels give what NumPy gives: at least 2,000 of each family, 50,000 in long runs.

A family's checks draw dtypes, shapes with zeros and ones, layouts, broadcasting, overlap, axes and outputs. The
kernels and dtypes are few, so that one compilation serves hundreds of calls; long runs have all dtypes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride import _dtypes
from tests.array_values import Array
from tests.every_target.test_elementwise import ADD, MIXED, NUMBER
from tests.every_target.test_reduction import DOT, LARGEST, MOMENTS, NUMBERS, PLACE, TOTAL
from tests.long_runs import in_parts
from tests.random_arrays import LENGTHS, Axis, Draw, Operand, compare_examples, compare_part

IN_TESTS, IN_LONG_RUNS = 2_000, 50_000

SMALLEST = gs.ReductionKernel("T x", "T y", "x", "a < b ? a : b", name="smallest")
PRODUCT = gs.ReductionKernel("T x", "T y", "x", "a * b", "y = a", "1", "product")
ANY = gs.ReductionKernel("T x", "bool y", "x != T(0)", "a || b", "y = a", "false", "any_of")
ALL = gs.ReductionKernel("T x", "bool y", "x != T(0)", "a && b", "y = a", "true", "all_of")
NORM = gs.ReductionKernel("T x", "float64 y", "double(x) * double(x)", "a + b", "y = sqrt(a)", "0", "norm_of")

JOIN = gs.ElementwiseKernel("P p, P q", "P r", "r = p; r.v = q.k + p.v", "join")
#: Padded, packed, and of a size that no word has.
STRUCTURES = [
    np.dtype([("flag", "?"), ("k", "i2"), ("v", "f8")], align=True),
    np.dtype([("flag", "?"), ("k", "i2"), ("v", "f8")]),
    np.dtype([("k", "i2"), ("v", "u1")]),
]

NUMERIC = [name for name in _dtypes.SCALAR_NAMES if name not in ("bool", "bfloat16")]
REAL = [name for name in NUMERIC if not name.startswith("complex")]

#: A check draws its example; `every` says whether dtypes may be any, each of which is compiled.
Check = Callable[[ModuleType, bool, Draw], None]


def narrowed(every: bool, all_dtypes: list[str], few: tuple[str, ...]) -> list[str]:
    return all_dtypes if every else list(few)


def dtype_of(name: str) -> np.dtype[Any]:
    if name == "bfloat16":
        return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    return np.dtype(name)


def same(got: Any, expected: Any) -> None:
    """Compare shapes, dtypes and all values."""
    expected = np.asarray(expected)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(gs.asnumpy(got), expected)


def same_memory(out: Operand, expected: Any) -> None:
    """Compare an output with what it must hold, and the memory around its elements with what it held."""
    out.host[...] = expected
    np.testing.assert_array_equal(gs.asnumpy(out.given_whole), out.whole)


# ---- elementwise ----


def check_layouts(xp: ModuleType, every: bool, draw: Draw, shape: tuple[int, ...] | None = None) -> None:
    """Sums of operands of any layout, into outputs of any layout or new ones."""
    every_dtype = ["bool", *NUMERIC, *(["bfloat16"] if xp is np else [])]
    dtype = dtype_of(draw.pick(every_dtype if every else ["float32", "int8", "complex64", "bfloat16"]
                               if xp is np else ["float32", "int8", "complex64"]))  # fmt: skip
    shape = draw.shape(least=int(dtype != np.float32 and not every)) if shape is None else shape
    x, y = draw.operand(xp, shape, dtype), draw.operand(xp, shape if draw.one_in(2) else shape[1:], dtype)
    expected = x.host + y.host
    if draw.one_in(2):
        out = draw.array(xp, np.shape(expected), dtype)
        assert ADD(x.given, y.given, out.given) is out.given
        same_memory(out, expected)
    else:
        same(ADD(x.given, y.given), np.asarray(expected, dtype))


def check_mixed_dtypes(xp: ModuleType, every: bool, draw: Draw) -> None:
    """Two dtypes in, two out, one of which is made by the placeholder."""
    pairs = [("int16", "float32"), ("bool", "uint8")]
    if every:
        pairs = [(x, y) for x in ("int16", "bool", "float16", "uint32") for y in REAL]
    dtypes, shape = draw.pick(pairs), draw.shape()
    x, y = (draw.operand(xp, shape, dtype) for dtype in dtypes)
    z, w = MIXED(x.given, y.given)
    whole = np.broadcast_shapes(x.host.shape, y.host.shape)
    same(z, np.broadcast_to(x.host * np.float64(2) + y.host, whole))
    same(w, np.broadcast_to(x.host, whole))


def check_overlap(xp: ModuleType, every: bool, draw: Draw) -> None:
    """Outputs that share memory with their inputs get what NumPy gives, which copies."""
    dtype = draw.pick(narrowed(every, NUMERIC, ("int32", "int8")))
    rows, columns = draw.number(1, 9), draw.number(1, 9)
    base = np.arange(400).astype(dtype)
    own = xp.asarray(base.copy())

    def view(whole: Any, at: int, how: int) -> Any:
        part = whole[at : at + rows * columns]
        if how == 0:
            return part.reshape(rows, columns)
        if how == 1:
            return part.reshape(columns, rows).T
        if how == 2:
            return part[::-1].reshape(rows, columns)
        if how == 3:
            return whole[at : at + 2 * rows * columns : 2].reshape(rows, columns)
        return xp_of(whole).broadcast_to(part[:columns], (rows, columns))

    def xp_of(whole: Any) -> ModuleType:
        return np if whole is base else xp

    picks = [(draw.number(0, 60), draw.number(0, 4)) for _ in range(2)]
    picks.append((draw.number(0, 60), draw.number(0, 3)))
    x, y, z = (view(base, *pick) for pick in picks)
    expected = x + y
    ADD(*(view(own, *pick) for pick in picks))
    z[...] = expected
    np.testing.assert_array_equal(gs.asnumpy(own), base)


def check_overlap_of_dtypes(xp: ModuleType, every: bool, draw: Draw) -> None:
    """The same where the output's elements are larger than those of the inputs."""
    base = np.arange(1024, dtype="u1")
    own = xp.asarray(base.copy())
    count, starts, step = draw.number(1, 40), [draw.number(0, 60) for _ in range(3)], draw.pick((1, 2, -1))

    def views(whole: Any) -> list[Any]:
        small, large = whole.view("i4"), whole.view("i8")
        inputs = [small[start : start + 2 * count][::step][:count] for start in starts[:2]]
        return [*inputs, large[starts[2] : starts[2] + count]]

    x, y, z = views(base)
    with np.errstate(all="ignore"):
        expected = x + y
    ADD(*views(own))
    z[...] = expected
    np.testing.assert_array_equal(gs.asnumpy(own), base)


def check_structures(xp: ModuleType, every: bool, draw: Draw) -> None:
    """Structures are read and stored whole, padded or packed, in any layout."""
    dtype, shape = draw.pick(STRUCTURES), draw.shape()
    p, q = draw.structures(xp, shape, dtype), draw.structures(xp, shape, dtype)
    expected = p.host.copy()
    expected["v"] = q.host["k"] + p.host["v"].astype("f8")
    same(JOIN(p.given, q.given), expected)


def check_numbers_of_elements(xp: ModuleType, every: bool, draw: Draw) -> None:
    """Elements are numbered in the order of the axes, however they lie."""
    shape = draw.shape()
    x = draw.array(xp, shape, draw.pick(narrowed(every, NUMERIC, ("float32",))))
    out = draw.array(xp, shape, "int64")
    NUMBER(x.given, out.given)
    same_memory(out, np.arange(x.host.size).reshape(shape))


def check_python_numbers(xp: ModuleType, every: bool, draw: Draw) -> None:
    """Numbers take part in promotion as in NumPy."""
    dtype, shape = draw.pick(narrowed(every, REAL, ("int8",))), draw.shape()
    x = draw.array(xp, shape, dtype)
    number = draw.pick((1, 2.5, True, np.float32(3), np.int64(2), np.array(4, "i2")))
    same(ADD(x.given, number), np.add(x.host, number))


# ---- reductions ----


def check_sums(xp: ModuleType, every: bool, draw: Draw, shape: tuple[int, ...] | None = None) -> None:
    """Sums along any axes, into outputs of any layout or new ones."""
    few = ("float32", "int8", "complex64", *(["bfloat16"] if xp is np else []))
    dtype = dtype_of(draw.pick(narrowed(every, [*NUMERIC, *few[3:]], few)))
    shape = draw.shape(least=int(dtype != np.float32 and not every)) if shape is None else shape
    x = draw.operand(xp, shape, dtype)
    axis, keepdims = draw.axes(x.host.ndim), draw.one_in(2)
    wide = "f8" if dtype.itemsize == 2 and dtype.kind not in "iu" else dtype
    expected = np.asarray(np.sum(x.host.astype(wide), axis=axis, keepdims=keepdims, dtype=wide)).astype(dtype)
    if draw.one_in(2):
        out = draw.array(xp, expected.shape, dtype)
        assert TOTAL(x.given, axis=axis, keepdims=keepdims, out=out.given) is out.given
        same_memory(out, expected)
    else:
        same(TOTAL(x.given, axis=axis, keepdims=keepdims), expected)


def check_overlap_of_folds(xp: ModuleType, every: bool, draw: Draw) -> None:
    """Results that are written into the memory of the input are those of what it held."""
    dtype = draw.pick(narrowed(every, NUMERIC, ("int32", "int8")))
    shape = draw.pick(((6, 7), (5, 1, 4), (40,), (3, 4, 5)))
    base = (np.arange(300) * 7 % 23).astype(dtype)  # sums that no dtype rounds
    own, axis, at, step = (
        xp.asarray(base.copy()),
        draw.axes(len(shape)),
        draw.number(0, 60),
        draw.number(1, 3),
    )
    order = draw.pick((tuple(range(len(shape))), tuple(range(len(shape)))[::-1]))

    def views(whole: Any) -> tuple[Any, Any]:
        x = whole[20 : 20 + math.prod(shape)].reshape(shape).transpose(order)
        result = np.sum(np.ones(x.shape), axis=axis).shape
        return x, whole[at : at + step * math.prod(result) : step].reshape(result)

    x, out = views(base)
    expected = np.sum(x, axis=axis, dtype=dtype)
    TOTAL(views(own)[0], axis=axis, out=views(own)[1])
    out[...] = expected
    np.testing.assert_array_equal(gs.asnumpy(own), base)


def empty_folds(x: Array, axis: Axis) -> bool:
    """Return whether there are results of which each has nothing to fold."""
    return not x.size and bool(np.sum(x, axis=axis).size)


def check_extremes(xp: ModuleType, every: bool, draw: Draw) -> None:
    """The largest and the smallest, which nothing has where nothing is folded."""
    kernel, numpys, dtypes = draw.pick(
        ((LARGEST, np.max, ("int16", "float64")), (SMALLEST, np.min, ("float16", "uint32")))
    )
    x = draw.operand(xp, draw.shape(), draw.pick(narrowed(every, REAL, dtypes)))
    axis = draw.axes(x.host.ndim)
    if empty_folds(x.host, axis):
        with pytest.raises(ValueError, match="no identity"):
            kernel(x.given, axis=axis)
    else:
        how = numpys if x.host.size else np.sum  # no result: their shape alone
        same(kernel(x.given, axis=axis), np.asarray(how(x.host, axis=axis), x.host.dtype))


def check_products(xp: ModuleType, every: bool, draw: Draw) -> None:
    """Products of signs, or of zeros and ones, which no dtype rounds."""
    dtype = np.dtype(draw.pick(narrowed(every, NUMERIC, ("int64", "complex128"))))
    x = draw.array(xp, draw.shape(), dtype, high=2)
    given = x.given // 2 if dtype.kind == "u" else x.given * -2 + 3  # of 1 and 2 make 0 and 1, or 1 and -1
    host, axis = gs.asnumpy(given).astype(dtype), draw.axes(x.host.ndim)
    same(PRODUCT(given.astype(dtype), axis=axis), np.asarray(np.prod(host, axis=axis, dtype=dtype)))


def check_any_and_all(xp: ModuleType, every: bool, draw: Draw) -> None:
    """Whether any element, or every one, is not zero."""
    kernel, numpys, dtypes = draw.pick(((ANY, np.any, ("int32", "bool")), (ALL, np.all, ("uint8",))))
    x = draw.operand(xp, draw.shape(), draw.pick(narrowed(every, ["bool", *REAL], dtypes)))
    axis, keepdims = draw.axes(x.host.ndim), draw.one_in(2)
    same(kernel(x.given, axis=axis, keepdims=keepdims), numpys(x.host, axis=axis, keepdims=keepdims))


def check_moments(xp: ModuleType, every: bool, draw: Draw) -> None:
    """Means and variances of one pass, by a structure."""
    x = draw.operand(xp, draw.shape(LENGTHS[1:]), draw.pick(narrowed(every, REAL, ("float32", "int16"))))
    axis = draw.axes(x.host.ndim)
    for got, numpys in zip(MOMENTS(x.given, axis=axis), (np.mean, np.var), strict=True):
        expected = np.asarray(numpys(x.host.astype("f8"), axis=axis))
        assert (got.shape, got.dtype) == (expected.shape, np.float64)
        np.testing.assert_allclose(gs.asnumpy(got), expected, rtol=1e-10, atol=1e-10)


def check_norms(xp: ModuleType, every: bool, draw: Draw) -> None:
    """Roots of the sums of squares: a map before and one after."""
    x = draw.operand(xp, draw.shape(), draw.pick(narrowed(every, REAL, ("float32", "uint16"))))
    axis = draw.axes(x.host.ndim)
    same(NORM(x.given, axis=axis), np.sqrt(np.sum(np.square(x.host.astype("f8")), axis=axis)))


def check_places(xp: ModuleType, every: bool, draw: Draw, shape: tuple[int, ...] | None = None) -> None:
    """Where the largest element stands first, and what it is."""
    x = draw.array(xp, draw.shape() if shape is None else shape, draw.pick(narrowed(every, REAL, ("int32",))))
    axis = draw.pick([None, *range(x.host.ndim)])
    if empty_folds(x.host, axis):
        with pytest.raises(ValueError, match="no identity"):
            PLACE(x.given, axis=axis)
    else:
        place, largest = (
            (np.argmax, np.max) if x.host.size else (np.sum, np.sum)
        )  # no result: their shape alone
        places, best = PLACE(x.given, axis=axis)
        same(places, np.asarray(place(x.host, axis=axis), np.int64))
        same(best, np.asarray(largest(x.host, axis=axis), x.host.dtype))


def check_several_inputs(xp: ModuleType, every: bool, draw: Draw) -> None:
    """Inputs broadcast before they are folded."""
    dtype, shape = (
        draw.pick(narrowed(every, ["int32", "int64", "float32", "float64"], ("int32",))),
        draw.shape(),
    )
    x, y = draw.operand(xp, shape, dtype), draw.operand(xp, shape, dtype)
    axis = draw.axes(len(np.broadcast_shapes(x.host.shape, y.host.shape)))
    expected = np.asarray(np.sum(x.host * y.host, axis=axis, dtype=dtype)) * np.dtype(dtype).type(3)
    same(DOT(x.given, y.given, 3, axis=axis), np.asarray(expected, dtype))


def check_numbers_of_folded(xp: ModuleType, every: bool, draw: Draw) -> None:
    """Elements have the number of their place in the input."""
    x = draw.array(xp, draw.shape(), draw.pick(narrowed(every, NUMERIC, ("float32",))))
    axis = draw.axes(x.host.ndim)
    same(NUMBERS(x.given, axis=axis), np.sum(np.arange(x.host.size).reshape(x.host.shape), axis=axis))


# ---- fused functions ----


def several(x: Any, y: Any) -> tuple[Any, ...]:
    return (
        (x + y) * 2, np.where(x > y, x, y * 2), (x < y) | (x == 3) & (y != x), np.maximum(x, y) + np.minimum(x, 1),
        abs(x) - y, x.astype(np.float32) + y, np.square(y),
    )  # fmt: skip


def with_number(x: Any, y: Any, h: Any) -> Any:
    return (h - x) * 2 + y * h


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, y, axis, keepdims: np.sum(x * 2 + y, axis=axis, keepdims=keepdims),
    "max": lambda x, y, axis, keepdims: np.max(np.where(x > y, x, y), axis=axis, keepdims=keepdims),
    "mean": lambda x, y, axis, keepdims: np.mean(x - y * 2, axis=axis, keepdims=keepdims),
    "any": lambda x, y, axis, keepdims: np.any((x > 5) & (y < 0), axis=axis, keepdims=keepdims),
}
SEVERAL, WITH_NUMBER = gs.fuse(several), gs.fuse(with_number)
FOLDS = {name: gs.fuse(function, kernel_name=f"fused_{name}") for name, function in FUNCTIONS.items()}
FEW_FOLDS = [("sum", ("float32", "float32")), ("mean", ("float64", "int32")), ("max", ("int8", "float32"))]
PAIRS = [pair for _, pair in FEW_FOLDS]
MANY_PAIRS = sorted({(x, y) for x in REAL for y in (x, "float32")})


def close(got: Any, expected: Any) -> None:
    """Compare as `same`; floats may be off by a few roundings, as where products and sums become one operation."""
    expected = np.asarray(expected)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    eps = 8 * np.finfo(expected.dtype).eps if expected.dtype.kind in "fc" else 0
    np.testing.assert_allclose(gs.asnumpy(got), expected, rtol=eps, atol=16 * eps)


def two_operands(
    xp: ModuleType, draw: Draw, dtypes: tuple[str, str], lengths: Sequence[int] = LENGTHS
) -> tuple[Operand, Operand]:
    shape = draw.shape(lengths)
    return draw.operand(xp, shape, dtypes[0]), draw.operand(xp, shape, dtypes[1])


def check_functions(xp: ModuleType, every: bool, draw: Draw) -> None:
    """Several results of one function, each of its own shape and dtype."""
    x, y = two_operands(xp, draw, draw.pick(MANY_PAIRS if every else PAIRS[-1:]))
    with np.errstate(all="ignore"):
        expected = several(x.host, y.host)
    for got, wanted in zip(SEVERAL(x.given, y.given), expected, strict=True):
        close(got, wanted)


def check_functions_of_numbers(xp: ModuleType, every: bool, draw: Draw) -> None:
    """Numbers of Python are weak, those of NumPy are not."""
    x, y = two_operands(xp, draw, draw.pick(MANY_PAIRS if every else PAIRS[-1:]))
    h = (
        draw.pick((2, 0, 0.5, -3.0, True, np.float32(1.5), np.int16(3)))
        if every
        else draw.pick((0.5, -3.0, 8.0))
    )
    with np.errstate(all="ignore"):
        expected = with_number(x.host, y.host, h)
    close(WITH_NUMBER(x.given, y.given, h), expected)


def check_fused_folds(xp: ModuleType, every: bool, draw: Draw) -> None:
    """A reduction at the end of a function."""
    what, dtypes = (draw.pick(sorted(FUNCTIONS)), draw.pick(MANY_PAIRS)) if every else draw.pick(FEW_FOLDS)
    x, y = two_operands(xp, draw, dtypes, LENGTHS[1:] if what in ("max", "mean") else LENGTHS)
    axis, keepdims = draw.axes(len(np.broadcast_shapes(x.host.shape, y.host.shape))), draw.one_in(2)
    with np.errstate(all="ignore"):
        expected = np.asarray(FUNCTIONS[what](x.host, y.host, axis, keepdims))
    got = FOLDS[what](x.given, y.given, axis, keepdims)
    if expected.dtype.kind != "f":
        same(got, expected)
        return
    wide = [each.host if each.host.dtype.kind in "iu" else each.host.astype("f8") for each in (x, y)]
    with np.errstate(all="ignore"):  # integers wrap before they are folded
        exact = np.asarray(FUNCTIONS[what](*wide, axis, keepdims)).astype(expected.dtype)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    eps = float(np.finfo(expected.dtype).eps)
    np.testing.assert_allclose(gs.asnumpy(got), exact, rtol=64 * eps, atol=64 * eps)


# ---- how many ----

FAMILIES: dict[str, list[Check]] = {
    "elementwise": [
        check_layouts, check_mixed_dtypes, check_overlap, check_overlap_of_dtypes, check_numbers_of_elements,
        check_python_numbers, check_structures,
    ],
    "reductions": [
        check_sums, check_overlap_of_folds, check_extremes, check_products, check_any_and_all, check_moments,
        check_norms, check_places, check_several_inputs, check_numbers_of_folded,
    ],
    "fuse": [check_functions, check_functions_of_numbers, check_fused_folds],
}  # fmt: skip
CHECKS = [
    pytest.param(check, len(checks), id=f"{family}-{check.__name__[6:]}")
    for family, checks in FAMILIES.items()
    for check in checks
]


@pytest.mark.parametrize(("check", "of"), CHECKS)
def test_random_calls(xp: ModuleType, check: Check, of: int) -> None:
    compare_examples(check, -(-IN_TESTS // of), xp, False)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@in_parts
@pytest.mark.parametrize(("check", "of"), CHECKS)
def test_random_calls_for_long(xp: ModuleType, part: int, check: Check, of: int) -> None:
    compare_part(check, -(-IN_LONG_RUNS // of), part, xp, True)
