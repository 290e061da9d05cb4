"""The elementary functions of float: accurate, and the same for a number wherever it stands and however it is run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import gridstride as gs

FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "expf": np.exp, "exp2f": np.exp2, "exp10f": lambda x: np.longdouble(10) ** x,
    "logf": np.log, "log2f": np.log2, "log10f": np.log10, "sinf": np.sin, "cosf": np.cos, "tanhf": np.tanh,
}  # fmt: skip
#: Functions that the C library computes, one number at a time.
OTHERS = ("erff", "atanf", "cbrtf", "expm1f")
KERNEL = """
extern "C" __global__ void k_{name}(const float* x, float* y, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = {name}(x[i]);
}}
"""
POWER = """
extern "C" __global__ void k_powf(const float* x, const float* e, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = powf(x[i], e[i]);
}
"""
TEXT = "".join(KERNEL.format(name=name) for name in (*FUNCTIONS, *OTHERS)) + POWER
SPECIAL = np.array(
    [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 2.5, 1e-45, -1e-45, 1e-38, 3.4e38, -3.4e38,
     88.7, 89, -103.97, -104, 128, -149, -150, 38.5, -45, 16367173 * 2.0**72, 2**24, 2**25, 0.04, 1e10], np.float32
)  # fmt: skip


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSTRIDE_TARGET", "cpu")


@pytest.fixture(scope="module")
def module() -> gs.RawModule:
    return gs.RawModule(TEXT)


def apply(module: gs.RawModule, name: str, *inputs: np.ndarray, block: int = 256) -> np.ndarray:
    y = np.full_like(inputs[0], np.nan)
    module.get_function(f"k_{name}")(max(1, -(-y.size // block)), block, (*inputs, y, y.size))
    return y


def numbers(rng: np.random.Generator) -> np.ndarray:
    bits = rng.integers(0, 2**32, 20_000, dtype=np.uint32).view(np.float32)
    return np.concatenate([SPECIAL, bits, rng.uniform(-110, 110, 20_000).astype(np.float32)])


def check(ours: np.ndarray, exact: np.ndarray) -> None:
    """Compare with results in long double: within 0.51 units in the last place, the same where not finite."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
    is_finite = np.isfinite(rounded) & np.isfinite(ours)
    same = (rounded == ours) | (np.isnan(rounded) & np.isnan(ours))
    assert (same | is_finite | (np.abs(exact) > np.finfo(np.float32).max)).all()
    smallest = np.finfo(np.float32).smallest_normal
    unit = np.spacing(np.maximum(np.abs(rounded[is_finite]), smallest)).astype(np.longdouble)
    assert (np.abs(ours[is_finite] - exact[is_finite]) / unit).max() < 0.51


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_right_to_the_last_place(module: gs.RawModule, name: str) -> None:
    x = numbers(np.random.default_rng(3))
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name](x.astype(np.longdouble))
    check(apply(module, name, x), exact)
    if name in ("sinf", "tanhf"):
        assert np.signbit(apply(module, name, x)[:2]).tolist() == [False, True]


def test_powers_are_right_to_the_last_place(module: gs.RawModule) -> None:
    rng = np.random.default_rng(4)
    some, negative = numbers(rng), -rng.integers(0, 99, 9000).astype(np.float32)
    base = np.concatenate([np.repeat(SPECIAL, SPECIAL.size), some, negative])
    wild = rng.uniform(-40, 40, some.size).astype(np.float32)
    whole = rng.integers(-20, 20, 9000).astype(np.float32)
    exponent = np.concatenate([np.tile(SPECIAL, SPECIAL.size), wild, whole])
    with np.errstate(all="ignore"):
        exact = np.power(base.astype(np.longdouble), exponent.astype(np.longdouble))
    ours = apply(module, "powf", base, exponent)
    check(ours, exact)
    is_number = ~np.isnan(exact)
    assert (np.signbit(ours) == np.signbit(exact))[is_number].all()


@pytest.mark.parametrize("name", [*FUNCTIONS, *OTHERS])
def test_results_do_not_depend_on_place_block_threads_or_tier(module: gs.RawModule, name: str) -> None:
    rng = np.random.default_rng(5)
    x = np.concatenate([SPECIAL, rng.uniform(-20, 20, 200).astype(np.float32)])
    fibers = apply(gs.RawModule(TEXT, tier="fibers"), name, x)
    threads = gs.get_num_threads()
    assert module.get_function(f"k_{name}").explain().tier == "flat"
    try:
        for size in range(101):
            gs.set_num_threads(1 + size % 3)
            first = int(rng.integers(0, x.size - size + 1))
            part = apply(module, name, x[first : first + size], block=int(rng.integers(1, 130)))
            assert part.tobytes() == fibers[first : first + size].tobytes()
    finally:
        gs.set_num_threads(threads)
