"""Arrays whose elements lie at no multiples of their size: results are NumPy's, and nothing is lost."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride import _native
from gridstride.targets.base import Target
from tests.array_values import Array, values
from tests.every_target.test_elementwise import ADD, MIXED
from tests.every_target.test_reduction import DOT, LARGEST, TOTAL

DTYPES = ("int16", "float16", "float32", "int64", "complex64", "complex128")
SHAPES = ((1,), (1000,), (33, 70), (3, 5, 129))


@pytest.fixture(params=["as it is", "aligned accesses alone"])
def reach(request: pytest.FixtureRequest, target: Target, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The target, and the target as if its devices reached nothing but aligned elements."""
    if request.param == "as it is":
        yield
        return
    limits = target.limits
    monkeypatch.setattr(
        target, "limits", lambda device: limits(device)._replace(largest_unaligned=1), raising=False
    )
    _native.targets_forgotten()
    yield
    _native.targets_forgotten()


@dataclasses.dataclass
class Placed:
    """An array somewhere in bytes of a library, and the same on the host."""

    given: Any
    host: Array
    given_bytes: Any
    host_bytes: Array

    def check(self, expected: Any) -> None:
        """Compare what was written, and the bytes around it, which nobody may change."""
        self.host[...] = expected
        np.testing.assert_array_equal(gs.asnumpy(self.given_bytes), self.host_bytes)


def placed(xp: ModuleType, content: Array, offset: int = 1, gap: int = 0, transposed: bool = False) -> Placed:
    """Return an array of a content that begins `offset` bytes behind a word, with so many bytes between elements."""
    axes = content.shape if transposed else content.shape[::-1]
    strides = [
        *itertools.accumulate(axes, lambda step, length: step * length, initial=content.itemsize + gap)
    ]
    strides = strides[:-1] if transposed else strides[-2::-1]
    host_bytes = np.full(content.size * (content.itemsize + gap) + offset + 16, 7, np.uint8)

    def view(whole: Any, library: ModuleType) -> Any:
        first = whole[offset : offset + content.itemsize].view(content.dtype)
        return library.lib.stride_tricks.as_strided(first, content.shape, strides)

    host = view(host_bytes, np)
    host[...] = content
    given_bytes = xp.asarray(host_bytes)
    given_bytes = given_bytes.copy() if given_bytes is host_bytes else given_bytes
    return Placed(view(given_bytes, xp), host, given_bytes, host_bytes)


@pytest.mark.usefixtures("reach")
@pytest.mark.parametrize("dtype", DTYPES)
def test_elementwise(xp: ModuleType, dtype: str) -> None:
    for shape, offset, gap in itertools.product(SHAPES, (1, 2, 8), (0, 1)):
        x, y = values(shape, dtype, 1), values(shape[-1:], dtype, 2)
        first, second = placed(xp, x, offset, gap), placed(xp, y, 3)
        out = placed(xp, x, 5, gap, transposed=True)
        for _ in range(4):  # the last calls could be replays
            sums = ADD(first.given, second.given)
            np.testing.assert_array_equal(gs.asnumpy(sums), x + y)
            assert ADD(first.given, xp.asarray(y), out.given) is out.given
            out.check(x + y)


@pytest.mark.usefixtures("reach")
@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions(xp: ModuleType, dtype: str) -> None:
    for shape, gap in itertools.product(SHAPES, (0, 1)):
        x = values(shape, dtype, 3)
        given = placed(xp, x, 1, gap).given
        for axis in (None, 0, -1):
            expected = x.sum(axis, dtype={"i": "i8", "f": "f8", "c": "c16"}[x.dtype.kind]).astype(dtype)
            out = placed(xp, np.zeros_like(expected), 3)
            np.testing.assert_array_equal(gs.asnumpy(TOTAL(given, axis=axis)), expected)
            TOTAL(given, axis=axis, out=out.given)
            out.check(expected)


@pytest.mark.usefixtures("reach")
def test_an_aligned_call_after_an_unaligned_one_and_back(xp: ModuleType) -> None:
    x = values((1000,), "f4", 4)
    given = [placed(xp, x, offset).given for offset in (16, 1, 4, 17, 16, 1)]
    for each in 5 * given:
        np.testing.assert_array_equal(gs.asnumpy(ADD(each, each)), x + x)
        np.testing.assert_array_equal(gs.asnumpy(TOTAL(each)), x.sum(dtype="f8").astype("f4"))


@pytest.mark.usefixtures("reach")
def test_fields_of_packed_structures(xp: ModuleType) -> None:
    packed = np.dtype([("tag", "i1"), ("x", "f8"), ("y", "i4")])
    host = np.zeros(999, packed)
    host["x"], host["y"] = values((999,), "f8", 5), values((999,), "i4", 6)
    rows = xp.asarray(host.view(np.uint8).reshape(999, 13).copy())
    stretch = rows.shape, rows.strides

    def field(at: int, dtype: str) -> Any:
        first = rows.reshape(-1)[at : at + np.dtype(dtype).itemsize].view(dtype)
        return xp.lib.stride_tricks.as_strided(first, (999,), (13,))

    x, y = field(1, "f8"), field(9, "i4")
    np.testing.assert_array_equal(gs.asnumpy(MIXED(y, x)[0]), 2.0 * host["y"] + host["x"])
    assert LARGEST(x).item() == host["x"].max()
    assert DOT(x, y, 2).item() == 2 * (host["x"] * host["y"]).sum()
    ADD(x, y, x)
    host["x"] += host["y"]
    np.testing.assert_array_equal(gs.asnumpy(rows), host.view(np.uint8).reshape(999, 13))
    assert (rows.shape, rows.strides) == stretch


@pytest.mark.usefixtures("reach")
def test_overlap(xp: ModuleType) -> None:
    for dtype in DTYPES:
        x = placed(xp, values((500,), dtype, 7))
        shifted = x.host[1:] + x.host[:-1]
        ADD(x.given[1:], x.given[:-1], x.given[1:])
        x.host[1:] = shifted
        x.check(x.host.copy())
        ADD(x.given, x.given[::-1], x.given)
        x.check(x.host + x.host[::-1])


@pytest.mark.usefixtures("reach")
def test_what_the_body_does_not_assign_is_kept(xp: ModuleType) -> None:
    kernel = gs.ElementwiseKernel("T x", "T y, T z", "if (x > 0) y = x; z += x", "some")
    x = values((700,), "f4", 8)
    y, z = placed(xp, x - 5, 1), placed(xp, x + 5, 2)
    kernel(xp.asarray(x), y.given, z.given)
    y.check(np.where(x > 0, x, x - 5))
    z.check(x + 5 + x)


@pytest.mark.usefixtures("reach")
def test_repeated_elements(xp: ModuleType) -> None:
    x = values((3,), "f8", 9)
    given = xp.broadcast_to(placed(xp, x).given, (500, 3))
    np.testing.assert_array_equal(gs.asnumpy(ADD(given, 1.0)), np.tile(x + 1, (500, 1)))
    np.testing.assert_array_equal(gs.asnumpy(TOTAL(given, axis=0)), 500 * x)


@pytest.mark.usefixtures("reach")
def test_structures(xp: ModuleType) -> None:
    if xp is not np:
        pytest.skip("CuPy has no structured dtypes")
    for align in (False, True):
        point = np.dtype([("x", "f4"), ("k", "i8")], align=align)
        p = np.zeros(100, point)
        p["x"], p["k"] = np.arange(100), np.arange(100)
        given, out = placed(xp, p, 3), placed(xp, p, 5)
        gs.ElementwiseKernel("P p", "P r", "r = p; r.k = p.k + 1", "next_point")(given.given, out.given)
        p["k"] += 1
        out.check(p)
        declared = "struct __attribute__((packed)) point { float x; long long k; };" if not align else (
            "struct point { float x; long long k; };"
        )  # fmt: skip
        last = gs.ElementwiseKernel("point p", "int64 k", "k = p.k", "ks", type_preamble=declared)
        np.testing.assert_array_equal(gs.asnumpy(last(given.given)), p["k"] - 1)


@pytest.mark.usefixtures("reach")
def test_raw_arrays_work_or_are_refused(target: Target, xp: ModuleType) -> None:
    double = gs.ElementwiseKernel("raw T x, int64 k", "T y", "y = x[k] + x[k]", "double_at")
    first = gs.ReductionKernel("T x, raw T w", "T y", "x * w[_J]", "a + b", "y = a", "0", "weighted")
    x, numbers = values((50,), "f8", 10), np.arange(50)
    given = placed(xp, x).given
    calls = [
        (lambda: double(given, xp.asarray(numbers)), x + x),
        (lambda: first(xp.asarray(x), given), (x * x).sum()),
    ]
    for (call, expected), (kernel, parameter) in zip(
        calls, (("double_at", "x"), ("weighted", "w")), strict=True
    ):
        if target.limits(0).largest_unaligned >= 8:
            np.testing.assert_array_equal(gs.asnumpy(call()), expected)
        else:
            with pytest.raises(
                TypeError, match=rf"`{kernel}`: .*`{parameter}`.*float64.*multiples of 8 bytes.*copy"
            ):
                call()
    np.testing.assert_array_equal(gs.asnumpy(ADD(xp.asarray(x), 1.0)), x + 1)  # nothing was lost


@pytest.mark.usefixtures("reach")
def test_graphs_keep_the_copies_and_make_them_anew(xp: ModuleType) -> None:
    x, out, total = placed(xp, np.zeros(300)), placed(xp, np.zeros(300), 3), xp.zeros(())
    ADD(x.given, x.given, out.given)  # compiled before the capture
    TOTAL(x.given, out=total)
    stream = gs.cuda.Stream()
    with stream:
        stream.begin_capture()
        ADD(x.given, x.given, out.given)
        TOTAL(x.given, out=total)
        graph = stream.end_capture()
    for seed in (1, 2):
        x.host[...] = values((300,), "f8", seed)
        x.given_bytes[...] = xp.asarray(x.host_bytes)
        gs.cuda.synchronize()
        graph.launch(stream)
        stream.synchronize()
        out.check(x.host + x.host)
        assert total.item() == x.host.sum()


@pytest.mark.usefixtures("reach")
def test_debug_mode_checks_such_folds_too(xp: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSTRIDE_DEBUG", "1")
    x = values((100,), "f8", 11)
    assert TOTAL(placed(xp, x).given).item() == x.sum()
    with pytest.raises(ValueError, match="not associative"):
        gs.ReductionKernel("T x", "T y", "x", "a - b", "y = a", "0", "differences")(placed(xp, x).given)
