"""Elementwise kernels of many operands: each way in which elements are come by, and compile times about linear."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gridstride as gs
from gridstride.targets.cpu import tiles

#: More than are handled by code of their own, and more than a stack has room for.
COUNTS = [13, 20, 60]
DTYPES = ["?", "i1", "u2", ml_dtypes.bfloat16, "f2", "i4", "f4", "f8"]


@pytest.fixture(params=[False, True], ids=["kept", "streamed"])
def _streamed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "_is_streamed", lambda *_: request.param)


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSTRIDE_TARGET", "cpu")


def total(count: int, types: Sequence[str] = ("T",)) -> gs.ElementwiseKernel:
    """Return the sum of so many inputs, and the number of each element."""
    names = [f"x{k}" for k in range(count)]
    inputs = ", ".join(f"{types[k % len(types)]} {name}" for k, name in enumerate(names))
    return gs.ElementwiseKernel(
        inputs, "float64 y, int64 number", f"y = {' + '.join(names)}; number = i", "total"
    )


def check(kernel: gs.ElementwiseKernel, arrays: Sequence[Any]) -> None:
    y, number = kernel(*arrays)
    np.testing.assert_array_equal(y, sum(np.asarray(array, "f8") for array in arrays))
    np.testing.assert_array_equal(number, np.arange(y.size).reshape(y.shape))


@pytest.mark.usefixtures("_streamed")
@pytest.mark.parametrize("count", COUNTS)
def test_elements_wherever_they_lie(count: int) -> None:
    x = np.random.default_rng(count).integers(-60, 60, (9, 40, 130)).astype("f4")
    layouts = [
        x, x[::-1, :, ::-1], np.asfortranarray(x), x.transpose(1, 0, 2).copy().transpose(1, 0, 2), x[:1],
        x[:, :1], x[..., :1], x.repeat(2, 2)[..., ::2],
    ]  # fmt: skip
    kernel = total(count)
    for first in range(len(layouts)):
        check(kernel, [layouts[(first + k * (k > 5)) % len(layouts)] for k in range(count)])
    for each in layouts[:4]:
        check(kernel, [each] * count)


@pytest.mark.parametrize("count", COUNTS)
def test_elements_of_any_size(count: int) -> None:
    arrays = [np.arange(3 * 501).reshape(3, 501) % 2 for _ in range(count)]
    mixed = [array.astype(DTYPES[k % len(DTYPES)]) for k, array in enumerate(arrays)]
    names = [np.dtype(dtype).name for dtype in DTYPES]
    kernel = total(count, names)
    check(kernel, mixed)
    check(kernel, [np.asfortranarray(array) if k % 3 else array[:, :1] for k, array in enumerate(mixed)])


def test_pairs_of_bfloat16() -> None:
    names = [f"x{k}" for k in range(13)]
    kernel = gs.ElementwiseKernel(", ".join(f"T {name}" for name in names), "T y", f"y = {' + '.join(names)}")
    x = (np.arange(1001) % 5).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(kernel(*[x] * 13), (np.arange(1001) % 5 * 13).astype(ml_dtypes.bfloat16))


def test_results_that_are_read_or_lie_apart() -> None:
    names = [f"x{k}" for k in range(12)]
    kernel = gs.ElementwiseKernel("T x", ", ".join(f"T {name}" for name in names), " ".join(
        f"{name} += x * {k};" for k, name in enumerate(names)
    ))  # fmt: skip
    x = np.arange(70 * 50.0).reshape(70, 50)
    memory = np.ones((12, 50, 140))
    kernel(x, *memory[:, :, ::2].transpose(0, 2, 1))
    expected = np.ones_like(memory)
    expected[:, :, ::2] += np.arange(12)[:, None, None] * x.T
    np.testing.assert_array_equal(memory, expected)


@pytest.mark.usefixtures("optimized")
def test_compile_times_do_not_grow_with_the_square_of_operands() -> None:
    few, many = seconds_to_compile(20), seconds_to_compile(80)
    assert many < 6 * few


def seconds_to_compile(count: int) -> float:
    """Return the processor's time that a compiler takes for a kernel of so many inputs."""
    kernel = total(count)
    kernel(*[np.ones(1, "f4")] * count)  # what is compiled once is there
    fresh = gs.ElementwiseKernel(
        ", ".join(f"T {parameter.name}" for parameter in kernel.in_params), "T y",
        f"y = {' - '.join(parameter.name for parameter in kernel.in_params)}", f"difference{count}",
    )  # fmt: skip
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    fresh(*[np.ones(1, "f4")] * count)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
