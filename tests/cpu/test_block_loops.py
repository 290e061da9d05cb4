"""The loops for blocks of threads, which GPUs have, run on the CPU target: the same texts, without a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gridstride as gs
from gridstride.targets import registry
from tests.array_strategies import values
from tests.every_target import test_elementwise as elementwise
from tests.every_target import test_reduction as reduction

FEW = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(autouse=True)
def _block_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(registry.get("cpu")), "writers", None)


@given(st.data(), st.lists(st.sampled_from((1, 2, 3, 5, 17)), max_size=3).map(tuple))
@FEW
def test_every_layout(data: st.DataObject, shape: tuple[int, ...]) -> None:
    elementwise.check_layouts(np, data, shape)


@given(st.data(), st.lists(st.sampled_from((0, 1, 2, 3, 5, 17)), max_size=3).map(tuple))
@FEW
def test_every_sum(data: st.DataObject, shape: tuple[int, ...]) -> None:
    reduction.check_sums(np, data, shape)


@given(st.data(), st.lists(st.sampled_from((0, 1, 2, 3, 5, 17)), max_size=3).map(tuple))
@FEW
def test_every_place(data: st.DataObject, shape: tuple[int, ...]) -> None:
    reduction.check_places(np, data, shape)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float64", "complex128"])
def test_tiles(dtype: str) -> None:
    x, y = values((3, 77, 45), dtype, 1), values((3, 45, 77), dtype, 2)
    np.testing.assert_array_equal(elementwise.ADD(x.transpose(0, 2, 1), y), x.transpose(0, 2, 1) + y)
    out = np.empty((3, 77, 45), dtype).transpose(0, 2, 1)
    elementwise.ADD(x.transpose(0, 2, 1), y, out)
    np.testing.assert_array_equal(out, x.transpose(0, 2, 1) + y)


@pytest.mark.parametrize("offset", range(5))
def test_rows_that_start_between_two_words(offset: int) -> None:
    whole = values((3, 101), "f4", 1)
    x, out = whole[:, offset:], np.zeros((3, 104), "f4")
    elementwise.ADD(x, x, out[:, 2 : 2 + x.shape[1]])
    np.testing.assert_array_equal(out[:, 2 : 2 + x.shape[1]], x + x)
    assert not out[:, :2].any()
    assert not out[:, 2 + x.shape[1] :].any()


@pytest.mark.parametrize("shape", [(20_011,), (129, 131), (5000, 3), (3, 5000), (8, 65, 66)])
def test_parts_of_large_folds(shape: tuple[int, ...]) -> None:
    x: Any = values(shape, "f4", 1)
    for axis in (None, *range(len(shape))):
        np.testing.assert_array_equal(reduction.TOTAL(x, axis=axis), x.sum(axis, dtype="f8").astype("f4"))
    mean, variance = reduction.MOMENTS(x)
    np.testing.assert_allclose(
        [float(mean), float(variance)], [x.mean(dtype="f8"), x.var(dtype="f8")], rtol=1e-10
    )


def test_raw_and_empty() -> None:
    np.testing.assert_array_equal(
        gs.ElementwiseKernel("", "raw float64 y", "y[i] = i", "raw_only")(size=5), np.arange(5.0)
    )
    assert float(reduction.TOTAL(np.zeros((0,), "f4"))) == 0
