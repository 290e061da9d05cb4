"""Places of the largest and the smallest element of a row, which the CPU target looks for once it knows that one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride._array_pipeline import folding
from tests.crosses import in_turns
from tests.every_target.test_places import kernel

DTYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "bfloat16"]
KINDS = [("argmax", "first"), ("argmax", "last"), ("argmin", "first")]
SHAPES = [
    ((3, 5003), 1),
    ((300, 97), 1),
    ((40, 131), 1),
    ((2, 70_003), 1),
    ((70_003,), None),
    ((3, 5003), 0),
    ((700, 131), 0),
    ((1030, 300), 0),
    ((5, 7, 300), (0, 2)),
]


def place(x: np.ndarray[Any, Any], kept: str, side: str, axis: Any) -> Any:
    if isinstance(axis, tuple):
        x, axis = np.moveaxis(x, axis, (-2, -1)).reshape(x.shape[1], -1), 1
    if side == "first":
        return getattr(x, kept)(axis)
    length = x.size if axis is None else x.shape[axis]
    return length - 1 - getattr(np.flip(x, axis), kept)(axis)


def named(dtype: str) -> Any:
    return pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else np.dtype(dtype)


def check(kernel_: gs.ReductionKernel, x: Any, kept: str, side: str, axis: Any) -> None:
    places, values = kernel_(x, axis=axis)
    wide = x.astype("f4") if x.dtype.name == "bfloat16" else x
    np.testing.assert_array_equal(places, place(wide, kept, side, axis))
    best = wide.max(axis) if kept == "argmax" else wide.min(axis)
    np.testing.assert_array_equal(values.astype(wide.dtype) if values.shape else values, best)


@pytest.mark.parametrize(("dtype", "kind"), in_turns(DTYPES, KINDS, others=[("argmin", "last")]))
def test_every_dtype(dtype: str, kind: tuple[str, str]) -> None:
    kept, side = kind
    found = kernel(kept, side)
    for few in (5, 120):
        for shape, axis in SHAPES:
            generator = np.random.default_rng(few)
            x = generator.integers(0 if dtype.startswith("u") else -few, few, shape).astype(named(dtype))
            check(found, x, kept, side, axis)
            if len(shape) == 2:
                check(found, x[:, ::-1], kept, side, axis)
                check(found, np.repeat(x, 2, 1)[:, ::2], kept, side, axis)


def test_the_loop_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    load = folding.load_explained

    def noted(program: Any, *rest: Any) -> Any:
        texts.append(program.text)
        return load(program, *rest)

    monkeypatch.setattr(folding, "load_explained", noted)
    x = np.arange(1400, dtype="f4").reshape(2, 700)
    kernel("argmax", "last")(x, axis=1)
    kernel("argmax", "last")(x, axis=0)
    assert [text.count("as_found_extreme<true, false, ") for text in texts] == [1, 1]


@pytest.mark.parametrize(("dtype", "kind"), in_turns(DTYPES, KINDS, others=[("argmin", "last")]))
def test_the_ends_of_what_a_dtype_holds(dtype: str, kind: tuple[str, str]) -> None:
    (kept, side), of = kind, named(dtype)
    low, high = (-np.inf, np.inf) if dtype[0] in "fb" else (np.iinfo(of).min, np.iinfo(of).max)
    extreme, other = (low, high) if kept == "argmax" else (high, low)
    x = np.full((3, 700), extreme, of)
    for better in (extreme, other):
        x[1, 600] = better
        check(kernel(kept, side), x, kept, side, 1)
        check(kernel(kept, side), x, kept, side, 0)


@pytest.mark.parametrize("dtype", ["f2", "f4", "bfloat16"])
def test_zeros_of_both_signs_are_equal(dtype: str) -> None:
    x = np.zeros((2, 700), named(dtype))
    x[0, :300] = x[1, 300:] = -0.0
    places, _ = kernel("argmax", "first")(x, axis=1)
    np.testing.assert_array_equal(places, 0)
    places, _ = kernel("argmin", "last")(x, axis=1)
    np.testing.assert_array_equal(places, 699)


@pytest.mark.parametrize("dtype", ["f2", "f4", "bfloat16"])
def test_what_is_no_number_has_a_place(dtype: str) -> None:
    x = np.full((700, 700), np.nan, named(dtype))
    for axis in (0, 1):
        places, values = kernel("argmax", "first")(x, axis=axis)
        assert ((places >= 0) & (places < 700)).all()
        assert np.isnan(values.astype("f4")).all()


def test_members_of_another_type_compare_as_such() -> None:
    x = np.array([[2**31, 1] * 300] * 2, "u4")
    places, _ = kernel("argmax", "first", "int")(x, axis=1)
    np.testing.assert_array_equal(places, 1)
    doubles = gs.ReductionKernel(
        "float64 x", "int64 k", "kept{x, _J}", "a.x > b.x || (a.x == b.x && a.at < b.at) ? a : b", "k = a.at", None,
        "of_doubles", "kept", preamble="struct kept { double x; long long at; };",
    )  # fmt: skip
    x = np.array([[2**53, 2**53 + 1] * 300] * 2, "i8")  # one number as float64
    np.testing.assert_array_equal(doubles(x, axis=1), 0)
