"""Loops inside kernels that strips of threads make together: which ones, and that they give what fibers give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride.targets.cpu.flat import flatten

UNFUSED = ("--fmad=false",)
INDEX = "const int i = blockIdx.x * blockDim.x + threadIdx.x;"
GUARD = f"{INDEX} if (i >= w) return;"
SUM = "float s = 0; for (int k = 0; k < n; ++k) s += a[k] * b[k * w + i]; c[i] = s;"


@pytest.fixture(autouse=True)
def cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSTRIDE_TARGET", "cpu")


def kernel(body: str, parameters: str = "const float* a, const float* b, float* c, int n, int w") -> str:
    return f'extern "C" __global__ void f({parameters}) {{ {body} }}'


def is_in_strips(text: str) -> bool:
    return b"gridstride_run_strips_f" in flatten(text.encode(), ["f"]).text.text


def run(
    text: str, tier: str, grid: Any, block: Any, arguments: Sequence[Any], options: tuple[str, ...] = UNFUSED
) -> bytes:
    """Launch on a copy of a buffer that all arrays are views of; return its bytes."""
    buffer = next(item for item in arguments if isinstance(item, np.ndarray)).base.copy()
    whole = next(item for item in arguments if isinstance(item, np.ndarray)).base
    own = [
        buffer[(item.ctypes.data - whole.ctypes.data) // item.itemsize :][: item.size]
        if isinstance(item, np.ndarray)
        else item
        for item in arguments
    ]
    gs.RawKernel(text, "f", tier=tier, options=options)(grid, block, own)
    return bytes(buffer.tobytes())


def both(text: str, grid: Any, block: Any, arguments: Sequence[Any]) -> bytes:
    """Run a kernel flat and among fibers; all memory must agree in every bit."""
    flat = run(text, "flat", grid, block, arguments)
    assert flat == run(text, "fibers", grid, block, arguments)
    return flat


def operands(n: int, w: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return arrays of a matrix's sizes in one buffer."""
    buffer = np.random.default_rng(seed).standard_normal(2 * n + n * w + 2 * w + 8).astype(np.float32)
    return buffer[:n], buffer[n : n + n * w], buffer[n + n * w :][: 2 * w]


BODIES = [
    f"{GUARD} {SUM}",
    f"{INDEX} if (i < w) {{ {SUM} }}",
    f"{GUARD} float s = c[i], t = 1; for (int k = 1; k < n; k += 2) {{ s -= a[k]; t *= b[k + i] + s; }} "
    "c[i] = s + t * c[i];",
    f"{GUARD} double s = 0; for (unsigned k = 0; k < n; k++) {{ if (b[i] > a[k]) s += a[k]; else s -= 1; }} c[i] = s;",
    f"{GUARD} float4 s = make_float4(a[0], b[i], 0, 1); for (int k = 0; k < n; ++k) "
    "{ s.x += a[k]; s.z = s.z * 0.5f + s.y; } if (s.x > 0) c[i] = s.x + s.z; else c[i] += s.w;",
    f"{GUARD} const float4 me = {{b[i], a[1], 2, 3}}; float s = 0; "
    "for (int k = 0; k < n; ++k) s += expf(-me.x * a[k]) * me.y; c[i] = s;",
    f"{GUARD} int s = i; for (long k = 0; k < n; ++k) {{ const int t = s ^ (int)k; s = t * 3 + (a[k] > 0); }} "
    "c[i] = s % 1000;",
    f"{GUARD} float s = 0; for (int k = 0; n > k; ++k) s = fmaxf(s, a[k] * b[i]); c[i] = s; c[i + w] = -s;",
    f"{GUARD} bool is_large = false; unsigned char steps = 3; for (int k = 0; k < n; ++k) "
    "{ steps += a[k] > b[k * w + i]; is_large = is_large || steps > 9; } c[i] = is_large ? steps : -1;",
]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(("n", "w"), [(9, 1), (4, 31), (5, 32), (7, 33), (3, 100), (0, 40), (1, 65)])
def test_strips_agree_with_fibers(body: str, n: int, w: int) -> None:
    text = kernel(body)
    assert is_in_strips(text)
    both(text, -(-w // 24), 24, (*operands(max(n, 2), w), n, w))


@pytest.mark.parametrize(("ctype", "dtype"), [("float", "f4"), ("double", "f8"), ("int", "i4")])
def test_variables_of_a_templates_type(ctype: str, dtype: str) -> None:
    text = (
        f"template <typename T> __global__ void f(const T* a, const T* b, T* c, int n, int w) {{ {GUARD} T s = 0; "
        "size_t m = 1; for (int k = 0; k < n; ++k) { s += a[k] * b[k * w + i]; m += k; } c[i] = s + (T)m; }"
    )
    assert is_in_strips(text)
    buffer = np.random.default_rng(3).uniform(-9, 9, 700).astype(dtype)
    results = []
    for tier in ("flat", "fibers"):
        module = gs.RawModule(text, name_expressions=(f"f<{ctype}>",), tier=tier, options=UNFUSED)
        whole = buffer.copy()
        module.get_function(f"f<{ctype}>")(2, 25, (whole[:6], whole[6 : 6 + 240], whole[300:340], 6, 40))
        results.append(whole.tobytes())
    assert results[0] == results[1] != buffer.tobytes()


def test_a_grid_of_two_axes_and_indices_within_blocks() -> None:
    body = (
        "const int x = threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y; float s = 0; "
        "for (int k = 0; k < n; ++k) s += a[y * n + k] * b[k * w + x]; c[y * w + x] = s;"
    )
    text = kernel(body)
    assert is_in_strips(text)
    n, w, height = 6, 40, 6
    buffer = np.random.default_rng(4).standard_normal(height * n + n * w + height * w).astype(np.float32)
    parts = np.split(buffer, [height * n, height * n + n * w])
    arrays = [buffer[: height * n], buffer[height * n :][: parts[1].size], buffer[height * n + n * w :]]
    both(text, (1, 3), (40, 2), (*arrays, n, w))


@pytest.mark.parametrize("shift", [-70, -33, -1, 0, 1, 5, 40])
def test_what_is_written_may_be_read_by_later_threads(shift: int) -> None:
    """With `c` over `b` each thread reads what threads before it wrote."""
    n, w = 4, 70
    buffer = np.random.default_rng(6).standard_normal(n + 6 * w * n).astype(np.float32)
    at = n + 2 * w
    arrays = buffer[:n], buffer[at : at + n * w], buffer[at + shift : at + shift + 2 * w]
    for body in (
        f"{GUARD} {SUM}",
        f"{GUARD} float s = b[i]; for (int k = 0; k < n; ++k) s += a[k]; c[i] = s;",
    ):
        text = kernel(body, "const float* a, float* b, float* c, int n, int w")
        assert is_in_strips(text)
        both(text, 2, 35, (*arrays, n, w))


@pytest.mark.parametrize(
    "body",
    [
        "s += a[k] * b[i * n + k];",  # neighbors are far apart
        "s += b[(int)a[k] & 3];",
        "if (a[k] > 1) break; s += a[k];",
        "if (a[k] > 1) continue; s += a[k];",
        "if (a[k] > 1) return; s += a[k];",
        "c[i] += a[k];",
        "s += a[k]; ++k;",
        "for (int j = 0; j < 3; ++j) s += a[k];",
        "atomicAdd(&c[i], a[k]);",
        "s += *(a + k);",
        "s += outside[k];",
        "s += twice(a[k]);",
        "float& r = s; r += a[k];",
        "float own[2] = {1, 2}; s += own[k % 2];",
    ],
)
def test_other_loops_are_made_thread_by_thread(body: str) -> None:
    text = "__device__ float outside[4]; __device__ float twice(float x) { return 2 * x; }" + kernel(
        f"{GUARD} float s = 0; for (int k = 0; k < n; ++k) {{ {body} }} c[i] = s;"
    )
    assert not is_in_strips(text)
    both(text, 2, 35, (*operands(4, 60), 4, 60))


@pytest.mark.parametrize(
    "body",
    [
        f"{GUARD} for (int k = 0; k < n; ++k) c[i] = a[k];",
        f"{GUARD} float s = 0; for (int k = 0; k < 8; ++k) s += a[k & 1]; c[i] = s;",
        f"{GUARD} float s = 0; for (int k = i; k < n; ++k) s += a[k]; c[i] = s;",
        f"{GUARD} float s = 0; for (int k = 0; k < n; ++k) s += a[k]; c[(int)s & 1] = s;",
        f"{GUARD} float s = 0; for (int k = 0; k < n; ++k) s += a[k]; float* p = c + i; *p = s;",
        f"{GUARD} float s = 0; for (int k = 0; k < n; ++k) s += a[k]; atomicAdd(&c[i], s);",
        f"{GUARD} float s = 0; c[i] = 1; for (int k = 0; k < n; ++k) s += a[k]; c[i] = s;",
        f"{GUARD} float s[1] = {{0}}; for (int k = 0; k < n; ++k) s[0] += a[k]; c[i] = s[0];",
        f"{INDEX} if (i >= w || a[1] > 5) return; {SUM}",
    ],
)
def test_kernels_that_do_more_are_run_thread_by_thread(body: str) -> None:
    text = kernel(body)
    assert not is_in_strips(text)
    both(text, 2, 35, (*operands(4, 60), 4, 60))


def test_indices_that_wrap_are_made_thread_by_thread() -> None:
    index = "(k * 65536 * 16384 * 4 + i) & -1"
    body = f"{GUARD} float s = 0; for (int k = 0; k < n; ++k) s += b[{index}]; c[i] = s;"
    wrapping = body.replace("int k", "unsigned k").replace(index, "(k - 3u) * 65536u * 65536u + i")
    assert is_in_strips(kernel(wrapping))
    for text in (kernel(body), kernel(wrapping)):
        both(text, 2, 35, (*operands(4, 60), 4, 60))


def test_fused_sums_do_not_depend_on_the_place() -> None:
    """The thread's place in the row, the block's shape and the number of threads make no difference."""
    n, w = 50, 300
    buffer = np.random.default_rng(8).standard_normal(n + n * w + w).astype(np.float32)
    buffer[n : n + n * w].reshape(n, w)[:] = buffer[n : n + n][:, None]
    arrays = buffer[:n], buffer[n : n + n * w], buffer[n + n * w :]
    results = set()
    for block in (7, 32, 100, 300):
        written = np.frombuffer(
            run(kernel(f"{GUARD} {SUM}"), "flat", -(-w // block), block, (*arrays, n, w), ()), np.float32
        )
        results.update(written[n + n * w :].tolist())
    fused = np.float32(0)
    for x, y in zip(arrays[0], buffer[n : n + n * w].reshape(n, w)[:, 0], strict=True):
        fused = np.float32(np.float64(x) * np.float64(y) + np.float64(fused))
    assert results == {float(fused)}
