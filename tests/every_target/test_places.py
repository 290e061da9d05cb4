"""The places of the largest and the smallest of elements, the first or the last of equal ones, wherever these lie."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from tests.crosses import in_turns, pairs_in_soak

#: Signs that compare numbers, and places of equal ones, for each of what may be kept.
SIGNS = {"argmax": ">", "argmin": "<"}
SIDES = {"first": "<", "last": ">"}
KINDS = [
    ("int8", "argmax", "first"),
    ("int8", "argmin", "last"),
    ("uint8", "argmax", "last"),
    ("uint8", "argmin", "first"),
    ("int16", "argmax", "first"),
    ("float16", "argmin", "last"),
    ("float32", "argmax", "last"),
]


def kernel(kept: str, side: str, ctype: str = "T") -> gs.ReductionKernel:
    return gs.ReductionKernel(
        "T x", "int64 k, T v", "kept{x, _J}",
        f"a.x {SIGNS[kept]} b.x || (a.x == b.x && a.at {SIDES[side]} b.at) ? a : b", "k = a.at; v = a.x", None,
        f"{kept}_{side}", "kept", preamble=f"struct kept {{ {ctype} x; long long at; }};",
    )  # fmt: skip


def expected(x: np.ndarray[Any, Any], kept: str, side: str, axis: int) -> Any:
    if side == "first":
        return getattr(x, kept)(axis)
    return x.shape[axis] - 1 - getattr(np.flip(x, axis), kept)(axis)


@pytest.mark.parametrize(
    ("kind", "shape"),
    in_turns(KINDS, [(70, 64), (3, 40_000), (700, 301), (259, 5000), (1, 70_001), (30_001, 3)], 2),
)
def test_places_wherever_elements_lie(
    xp: ModuleType, kind: tuple[str, str, str], shape: tuple[int, int]
) -> None:
    dtype, kept, side = kind
    find, draw = kernel(kept, side), np.random.default_rng(1)
    whole = np.iinfo("int8" if np.dtype(dtype).kind == "f" else dtype)
    lowest, highest = int(whole.min), int(whole.max)
    for low, high in ((lowest, highest), (0, 2), (lowest, lowest), (highest, highest)):
        x = draw.integers(low, high, shape, endpoint=True).astype(dtype)
        for view in (x, x[::-1], x[:, ::-1], x[:, 1:], x[:, ::2], x.T):
            for axis in (0, 1):
                place, value = find(xp.asarray(view), axis=axis)
                wanted = expected(view, kept, side, axis)
                np.testing.assert_array_equal(gs.asnumpy(place), wanted, f"{low} {high} {view.strides}")
                np.testing.assert_array_equal(
                    gs.asnumpy(value),
                    np.take_along_axis(view, np.expand_dims(wanted, axis), axis).squeeze(axis),
                )


@pytest.mark.parametrize(
    ("kind", "shape"),
    in_turns(
        [kind for kind in KINDS if kind[0] in ("int8", "float16", "float32")],
        [(300, 7, 40), (6, 300, 33), (20, 40, 9000)],
    )
    + pairs_in_soak(
        [kind for kind in KINDS if kind[0] in ("uint8", "int16")],
        [(300, 7, 40), (6, 300, 33), (20, 40, 9000)],
    ),
)
def test_places_along_several_axes(
    xp: ModuleType, kind: tuple[str, str, str], shape: tuple[int, ...]
) -> None:
    dtype, kept, side = kind
    find = kernel(kept, side)
    x = np.random.default_rng(1).integers(0, 100, shape).astype(dtype)
    for view in (x, x[:, ::2], x[::-1, 1:, ::-1]):
        for axes, rest in (((0, 1), 2), ((0, 2), 1), ((1, 2), 0)):
            lines = np.moveaxis(view, rest, -1).reshape(-1, view.shape[rest])
            place, value = find(xp.asarray(view), axis=axes)
            np.testing.assert_array_equal(
                gs.asnumpy(place), expected(lines, kept, side, 0), f"{shape} {axes}"
            )
            np.testing.assert_array_equal(gs.asnumpy(value), getattr(lines, kept[3:])(0))


def test_places_by_the_bits_of_elements(xp: ModuleType) -> None:
    find = gs.ReductionKernel(
        "T x", "int64 k", "kept{x, _J}", "bits(a) > bits(b) || (bits(a) == bits(b) && a.at < b.at) ? a : b",
        "k = a.at", None, "largest_bits", "kept",
        preamble="""struct kept { T x; long long at; };
            __device__ inline int bits(const kept& a) { return *(const uint16_t*)&a.x; }""",
    )  # fmt: skip
    x = np.random.default_rng(2).standard_normal((40, 500)).astype("float16")
    for axis in (0, 1):
        got = gs.asnumpy(find(xp.asarray(x), axis=axis))
        np.testing.assert_array_equal(got, x.view("uint16").argmax(axis))
