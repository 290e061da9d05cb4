"""With contraction on, no result is further from the operations as written than the roundings of products left out."""

from __future__ import annotations

import numpy as np
import pytest
from generated_kernels import Batch, generate_batch, places_of_few
from generated_kernels.contraction import ranges
from generated_kernels.kernels import GeneratedKernel
from generated_kernels.running import Outputs, run_batch

import gridstride as gs

SHORT, SOAK = 1, (2, *range(100, 150))
SHORT_KERNELS, SOAK_KERNELS = 10, 40
#: Tiers and levels of optimization, between which compilers choose other products.
WAYS = (
    {},
    {"tier": "fibers"},
    {"tier": "fibers", "options": ("-O1",)},
    {"options": ("--fmad=false",)},
)


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSTRIDE_TARGET", "cpu")


def test_contraction_leaves_out_roundings_of_products_alone() -> None:
    batch = generate_batch(SHORT, SHORT_KERNELS, has_math=False)
    check(batch._replace(kernels=tuple(batch.kernels[place] for place in places_of_few(batch.kernels))))


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", SOAK)
def test_contraction_leaves_out_roundings_of_products_alone_for_long(seed: int) -> None:
    check(generate_batch(seed, SOAK_KERNELS, has_math=False))


def check(batch: Batch) -> None:
    results = [list(run_batch(gs.RawModule(code=batch.text, **way), batch)) for way in WAYS]
    decided = 0
    for kernel, allowed, *found in zip(batch.kernels, ranges(batch), *results, strict=True):
        if allowed.is_decided:
            decided += 1
            assert all(map(allowed.has, found)), kernel.text
    assert decided >= len(batch.kernels) * 0.8


@pytest.mark.parametrize(
    ("expression", "fused"),
    [
        ("x * y + z", True),
        ("z - x * y", True),
        ("x * y - z * x", True),
        ("(x + y) * z", False),
        ("x / y + z", False),
        ("sqrtf(fabsf(x * y)) + z", False),
        ("-(x * y) + z", True),
    ],
)
def test_the_range_of_an_expression(expression: str, fused: bool) -> None:
    batch = small_batch(expression)
    (allowed,) = ranges(batch)
    assert allowed.is_decided
    assert bool((allowed.low["out_float"] < allowed.high["out_float"]).any()) is fused
    rounded, contracted = (written(batch, option) for option in ("--fmad=false", "--fmad=true"))
    assert allowed.has(rounded)
    assert allowed.has(contracted)
    assert bool((rounded["out_float"] != contracted["out_float"]).any()) is fused
    rounded["out_float"][:] = np.nextafter(allowed.high["out_float"], np.float32(np.inf))
    assert not allowed.has(rounded)


def test_sums_and_differences_in_turn_are_not_contracted() -> None:
    """Vectors have an operation for them, which compilers take for complex numbers."""
    random = np.random.default_rng(0)
    z, w = (random.random(1001) + 1j * random.random(1001) for _ in range(2))
    assigned = "q = complex<double>(z.real() * w.real() - z.imag(), z.imag() * w.real() + w.imag())"
    kernel = gs.ElementwiseKernel(
        "complex128 z, complex128 w", "complex128 q", assigned, "in_turn", options=("--fmad=false",)
    )
    for size in (1, 1001):
        found = kernel(z[:size], w[:size])
        np.testing.assert_array_equal(found.real, z[:size].real * w[:size].real - z[:size].imag)
        np.testing.assert_array_equal(found.imag, z[:size].imag * w[:size].real + w[:size].imag)
    raw = gs.RawKernel(
        """extern "C" __global__ void in_turn(const double* z, const double* w, double* q) {
            const int i = blockIdx.x * blockDim.x + threadIdx.x;
            q[2 * i] = z[2 * i] * w[2 * i] - z[2 * i + 1];
            q[2 * i + 1] = z[2 * i + 1] * w[2 * i] + w[2 * i + 1];
        }""", "in_turn", options=("--fmad=false",),
    )  # fmt: skip
    for tier in ({}, {"tier": "fibers"}):
        found = np.empty(1001, "c16")
        raw = gs.RawKernel(raw.code, "in_turn", options=("--fmad=false",), **tier)
        raw(7, 143, (z.view("f8"), w.view("f8"), found.view("f8")))
        np.testing.assert_array_equal(found.real, z.real * w.real - z.imag)
        np.testing.assert_array_equal(found.imag, z.imag * w.real + w.imag)


def test_what_contraction_decides_is_known() -> None:
    """A comparison between bounds, and an integer that they do not agree on."""
    for expression in ("(x * y - x * y > 0 ? 1.0f : 2.0f)", "(float)(int)((x * y - x * y) * 1e20f)"):
        assert not next(ranges(small_batch(expression))).is_decided


def small_batch(expression: str) -> Batch:
    """Return a kernel of one expression of three elements."""
    text = (
        'extern "C" __global__ void k(const float* in_float, float* out_float) {\n'
        "    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    const float x = in_float[i], y = in_float[i + 1000], z = in_float[i + 2000];\n"
        f"    out_float[i] = {expression};\n}}\n"
    )
    kernel = GeneratedKernel("k", text, ("in_float", "out_float"), frozenset())
    return Batch(1, (kernel,), (4,), (64,), {})


def written(batch: Batch, option: str) -> Outputs:
    return next(run_batch(gs.RawModule(code=batch.text, options=(option,)), batch))
