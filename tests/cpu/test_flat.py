"""The flat tier: which kernels it takes, and that they give what fibers give, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride.errors import CompileError

pytestmark = pytest.mark.usefixtures("cpu")


@pytest.fixture
def cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSTRIDE_TARGET", "cpu")


def run(kernel: gs.RawKernel, grid: Any, block: Any, arguments: Sequence[Any]) -> list[np.ndarray]:
    """Launch on copies of the arrays; return them."""
    own = [item.copy() if isinstance(item, np.ndarray) else item for item in arguments]
    kernel(grid, block, own)
    return [item for item in own if isinstance(item, np.ndarray)]


def both(
    text: str, grid: Any, block: Any, arguments: Sequence[Any], name: str = "f", **how: Any
) -> list[np.ndarray]:
    """Run a kernel flat and among fibers; the arrays must agree in every bit."""
    flat = run(gs.RawKernel(text, name, tier="flat", **how), grid, block, arguments)
    fibers = run(gs.RawKernel(text, name, tier="fibers", **how), grid, block, arguments)
    for ours, theirs in zip(flat, fibers, strict=True):
        assert ours.tobytes() == theirs.tobytes()
    return flat


def obstacle(text: str, name: str = "f", **how: Any) -> tuple[str, int]:
    """Return why a kernel is not flat, and the line."""
    explanation = gs.RawKernel(text, name, **how).explain()
    assert explanation.tier == "fibers"
    [found] = explanation.obstacles
    return found.reason, found.line


INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"


def kernel(body: str, parameters: str = "float* y, const float* x, int n") -> str:
    return f'extern "C" __global__ void f({parameters}) {{ {body} }}'


@pytest.mark.parametrize(
    "body",
    [
        f"{INDEX} if (i < n) y[i] = 2 * x[i];",
        f"{INDEX} if (i >= n) return; y[i] = 2 * x[i];",
        f"{INDEX} if (i >= n || i < 3) {{ return; }} y[i] = x[i - 3] + x[i];",
        f"const {INDEX} if (n > i && i > 0) {{ y[i - 1] = x[n - 1 - i]; }}",
        "unsigned i = threadIdx.x + blockDim.x * blockIdx.x; if (i < n) y[i] = x[i];",
        "size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; if (i < (size_t)n) y[i] = x[i];",
        "long i = blockIdx.x * (long)blockDim.x + threadIdx.x; if (i < n / 2) { y[2 * i + 1] = x[i]; }",
        "auto i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= unsigned(n)) return; y[i] = x[i];",
        "if (blockIdx.x * blockDim.x + threadIdx.x < n) y[blockIdx.x * blockDim.x + threadIdx.x] = 1;",
        "int t = threadIdx.x, i = blockIdx.x * blockDim.x + t; if (i < n) y[i] = x[t] + blockIdx.x;",
        f"{INDEX} if (i == 7) y[i] = x[i];",
        f"{INDEX} if (i != n - 1) return; y[i] = x[i];",
        f"{INDEX} if (i < n && x[i] > 0) y[i] = 1;",
        f"{INDEX} if (x[i % (n + 1)] > 0) return; if (i < n) y[i] = 1;",
        f"{INDEX} n -= 5; if (i < n) y[i] = x[i];",
        f"{INDEX} if (i >= n) return; n = 1; i += n; if (i < 40) y[i] = x[i];",
        f"{INDEX} if (i < n) for (int k = 0; k < 4; ++k) {{ if (x[i] < k) return; y[i] += k; }}",
        f"{INDEX} if (i < n) for (int k = 0; k < 4; ++k) {{ if (k > i) break; if (k == 2) continue; y[i] += k; }}",
        f"{INDEX} if (i < n) {{ int i = 3; y[i + threadIdx.x] = 4; }}",
        f"{INDEX} int* p = &i; *p = n - 1 - i; if (i >= 0) y[i] = x[i];",
        f"{INDEX} int& r = i; r = n - 1 - r; if (i >= 0 && i < n) y[i] = x[i];",
        f"{INDEX} auto flip = [&](int k) {{ i = k - i; }}; flip(n - 1); if (i >= 0) y[i] = x[i];",
        f"{INDEX} if (i - 5 < n - 10) if (i > 4) y[i] = x[i];",
        f"{INDEX} if ((unsigned)i - 5u < 20u) y[i] = x[i];",
        f"{INDEX} if (i < n) y[i] = (int)x[i] + static_cast<unsigned char>(x[i]) + 7 / (i + 1);",
        f"{INDEX} int N = n, TWO = i; if (i < N) y[TWO] = x[i];",
        f"{INDEX} switch (i % 3) {{ case 0: if (i < n) y[i] = 1; break; default: if (i < n) y[i] = x[i]; }}",
        f"{INDEX} float own[3] = {{1, 2, 3}}; if (i < n) y[i] = own[i % 3] + own[0]; own[i % 3] = 4;",
        f"{INDEX} if (i < n) y[i] = i < 5 ? x[i] : -x[i]; else y[n - 1] = 0;",
    ],
)
@pytest.mark.parametrize(("grid", "block"), [(1, 64), (3, 17)])
def test_kernels_agree_with_fibers(body: str, grid: int, block: int) -> None:
    rng = np.random.default_rng(5)
    y, x = (4 * rng.standard_normal((2, 70))).astype(np.float32)
    for n in (0, 1, 33, 50) if "n - 1" not in body or "==" in body else (50,):
        both(kernel(body), grid, block, (y, x, n))


ALL = "blockDim.x * gridDim.x"
FIRST = "blockIdx.x * blockDim.x + threadIdx.x"
STRIDE = f"for (int i = {FIRST}; i < n; i += {ALL})"


@pytest.mark.parametrize(
    "body",
    [
        f"{STRIDE} y[i] = 2 * x[i] + 1;",
        f"int s = {ALL}, t = {FIRST}; for (unsigned i = t; i < n; i += s) {{ if (i % 3) continue; "
        "for (int k = 0; k < 3; ++k) { if (k == 1) continue; y[i] += x[i + 1] * k; } }",
        f"for (size_t i = {FIRST}; n > i; i += {ALL}) {{ y[i] = x[n - 1 - i]; }}",
        f"float a = 0; {STRIDE} a += x[i]; y[{FIRST}] = a;",
        f"float a = 0; {STRIDE} {{ a += x[i]; y[i] = a; }}",
        f"float a = 0, *p = &a; {STRIDE} {{ *p += x[i]; y[i] = a; }}",
        f"float a = 0; auto add = [&](float v) {{ a += v; }}; {STRIDE} {{ add(x[i]); y[i] = a; }}",
        f"float own[2] = {{0, 0}}; {STRIDE} {{ own[i & 1] += 1; y[i] = own[0]; }}",
        f"{STRIDE} {{ if (i > 40) break; y[i] = 1; }}",
        f"{STRIDE} {{ switch (i % 3) {{ case 0: y[i] = 1; break; default: break; }} }}",
        f"{STRIDE} {{ if (i > 40) return; y[i] = 1; }}",
        f"int t = {FIRST}; {STRIDE} y[t] += x[i];",
        f"{STRIDE} {{ n = 30; y[i] = 1; }}",
        f"{STRIDE} {{ i += 1; y[i] = 1; }}",
        f"{STRIDE} {{ int& r = i; r += 2; y[i] = 1; }}",
        f"{STRIDE} {{ y[i] = 3; y++; }}",
        f"if ({FIRST} > 20) return; {STRIDE} y[i] = i;",
        f"int s = 0; for (int i = {FIRST}; i < n; i += s) {{ y[i] = 1; s = 1 + i % 3; }}",
        "for (int i = threadIdx.x; i < n; i += blockDim.x) if (i % gridDim.x == blockIdx.x) y[i] = x[i];",
    ],
)
def test_stride_loops_agree_with_fibers(body: str) -> None:
    x = np.arange(300, dtype=np.float32)
    for n in (0, 7, 50, 120):
        both(kernel(body), 3, 17, (np.zeros(300, np.float32), x, n))


@pytest.mark.parametrize(
    ("macros", "body"),
    [
        ("#define I (blockIdx.x * blockDim.x + \\\n threadIdx.x)", "if (I < n) y[I] = x[I];"),
        ("#define LEAVE_IF(c) if (c) return", f"{INDEX} LEAVE_IF(i >= n); y[i] = x[i];"),
        (
            "#define AT(a, i) a[(i)]\n#define MIN(a, b) ((a) < (b) ? (a) : (b))",
            f"{INDEX} if (i < n) AT(y, MIN(i, MIN(9, n))) = i;",
        ),
        (
            "#define N 7\n#define REAL float\n#define RESTRICT __restrict__",
            f"{INDEX} const REAL* RESTRICT p = x; if (i < N) y[i] = p[i] + N;",
        ),
        ("#define i 3", f"int k = {FIRST}; if (k < n) y[k + i] = x[i];"),
        ("#define N 1\n#undef N\n#define N n", f"{INDEX} if (i < N) y[i] = 1;"),
    ],
)  # fmt: skip
def test_macros_are_seen_through(macros: str, body: str) -> None:
    x = np.arange(80, dtype=np.float32)
    both(f"{macros}\n{kernel(body)}", 2, 32, (np.zeros(80, np.float32), x, 50))


@pytest.mark.parametrize(
    "macros", ["#if 1\n#define LEAVE(c) if (c) return\n#endif", "#define LEAVE(c) if (0 * sizeof(#c)) return"]
)
def test_macros_that_only_a_preprocessor_knows_are_an_obstacle(macros: str) -> None:
    text = f"{macros}\n" + kernel("LEAVE(n < 0);\n y[0] = 1;")
    assert obstacle(text)[0] == macro("LEAVE")


def test_the_tier_is_part_of_the_kernel_and_can_be_asked_for() -> None:
    text = kernel(f"{INDEX} if (i < n) y[i] = 2 * x[i];")
    explanation = gs.RawKernel(text, "f").explain()
    assert (explanation.tier, explanation.obstacles, explanation.target) == ("flat", (), "cpu")
    assert str(explanation) == "kernel 'f' on target 'cpu': tier 'flat'"
    assert gs.RawKernel(text, "f", tier="fibers").explain().tier == "fibers"
    module = gs.RawModule(text, tier="fibers")
    assert module.get_function("f").explain().tier == "fibers"


def test_a_tier_that_does_not_take_a_kernel_is_an_error_with_reason_and_line() -> None:
    text = 'extern "C" __global__ void f(float* y) {\n  y[0] = 1;\n  __syncthreads();\n}'
    forced = gs.RawKernel(text, "f", tier="flat")
    with pytest.raises(
        CompileError, match=r"tier 'flat', which was asked for: calls `__syncthreads` \(f\.cu:3\)"
    ):
        forced(1, 1, (np.zeros(1, np.float32),))
    with pytest.raises(CompileError, match="cannot run in tier 'flat'"):
        forced.compile()
    assert "not 'flat': calls `__syncthreads` (f.cu:3)" in repr(forced.explain())


def test_the_environment_asks_for_a_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    text = kernel(f"{INDEX} if (i < n) y[i] = 3 * x[i];")
    monkeypatch.setenv("GRIDSTRIDE_CPU_TIER", "fibers")
    assert gs.RawKernel(text, "f").explain().tier == "fibers"
    monkeypatch.setenv("GRIDSTRIDE_CPU_TIER", "fast")
    with pytest.raises(ValueError, match="GRIDSTRIDE_CPU_TIER='fast' is none of the tiers: flat, fibers"):
        gs.RawKernel(text, "f").explain()


def test_an_unknown_tier_is_an_error() -> None:
    with pytest.raises(ValueError, match="tier 'fast' is none of target 'cpu', which has 'flat', 'fibers'"):
        gs.RawKernel(kernel("y[0] = 1;"), "f", tier="fast").explain()
    with pytest.raises(TypeError, match="tier must be the name"):
        gs.RawKernel(kernel("y[0] = 1;"), "f", tier=1)  # type: ignore[arg-type]


VOLATILE = "uses `volatile` memory, which threads may wait for"
SHARED = "uses `__shared__` memory, with which threads wait for each other"
WAITING = "looks at what `atomicCAS` returns in a loop, perhaps to wait for other threads"
OPERATOR = "struct S { int v; __device__ int operator+(int k) { __syncthreads(); return v + k; } };\n"


def macro(name: str) -> str:
    return f"uses the macro `{name}`, which is more than a number or a type"


def unknown(written: str, kind: str) -> str:
    return f"`{written}` ({kind}) is not known to the flat tier"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (kernel("__syncthreads(); y[0] = 1;"), "calls `__syncthreads`"),
        (kernel("y[0] = __shfl_sync(~0u, x[0], 1);"), "calls `__shfl_sync`"),
        (kernel("volatile float* p = y; p[0] = 1;"), VOLATILE),
        (kernel("y[0] = 1;", "volatile float* y"), VOLATILE),
        (kernel("__shared__ float s[4]; s[0] = 1; y[0] = s[0];"), SHARED),
        (kernel('printf("%d", n);'), "calls `printf`"),
        (kernel("while (atomicCAS((int*)y, 0, 1)) {}"), WAITING),
        (kernel("__threadfence(); y[0] = 1;"), "calls `__threadfence`"),
        (kernel("uint3 t = threadIdx; y[t.x] = 1;"), "uses `threadIdx` other than by its members"),
        ("#define SYNC __syncthreads()\n" + kernel("SYNC; y[0] = 1;"), "calls `__syncthreads`"),
        ("#define SLOW volatile\n" + kernel("SLOW float* p = y; p[0] = 1;"), VOLATILE),
        (
            "__device__ int me() { int t = threadIdx.x; return t; }\n" + kernel("y[me()] = 1;"),
            "uses `threadIdx.x` in a function that is called",
        ),
        (OPERATOR + kernel("S s{n}; y[0] = s + 1;"), "calls `__syncthreads`"),
        (kernel("again: y[0] = 1; if (n) goto again;"), unknown("again: y[0] = 1;", "labeled statement")),
        (kernel("static int k; y[k] = 1;"), unknown("static", "storage class specifier")),
    ],
)
def test_what_is_not_understood_runs_among_fibers(text: str, reason: str) -> None:
    assert obstacle(text)[0] == reason


def test_the_line_of_an_obstacle_is_that_of_the_text() -> None:
    text = "#define LONG " + "1 + " * 50 + "1\n" + kernel("\ny[0] = LONG;\ny[1] = LONG;\n__threadfence();")
    assert obstacle(text) == ("calls `__threadfence`", 5)


HELPERS = """
__device__ __forceinline__ int column() { return blockIdx.x * blockDim.x + threadIdx.x; }
static __device__ unsigned
row(void) {
    return (blockIdx.y * blockDim.y + threadIdx.y);  // not column()
}
__device__ long all_columns() { return gridDim.x * (long)1 * blockDim.x; }
__device__ long columns() { return gridDim.x * blockDim.x; }
"""


@pytest.mark.parametrize(
    "body",
    [
        "int i = column(); if (i < n) y[i] = x[i] + row();",
        "if (column() < n) y[column()] = columns();",
        "for (int i = column(); i < n; i += columns()) y[i] = 2 * x[i];",
        "int j = (column(\n)) + (int)row(); if (j < n) y[j] = x[j] - 1;",
    ],
)
def test_functions_that_return_an_index_are_seen_through(body: str) -> None:
    rng = np.random.default_rng(5)
    y, x = rng.standard_normal((2, 70)).astype(np.float32)
    both(HELPERS + kernel(body), (3, 1), 17, (y, x, 50))


@pytest.mark.parametrize(
    ("helper", "body"),
    [
        ("__device__ int me(int k) { return threadIdx.x + k; }", "y[me(1)] = 1;"),
        (
            "__device__ int me() { return threadIdx.x; } struct S { int me() { return 1; } };",
            "S s; y[s.me()] = 1;",
        ),
        ("__device__ int me() { return threadIdx.x; }", "auto f = me; y[f()] = me();"),
        ("__device__ int me() { return threadIdx.x % 7; }", "y[me()] = 1;"),
        ("__device__ float me() { return threadIdx.x; }", "y[(int)me()] = 1;"),
        ("namespace a { __device__ int me() { return threadIdx.x; } }", "y[a::me()] = 1;"),
    ],
)
def test_other_functions_with_indices_are_not(helper: str, body: str) -> None:
    assert gs.RawKernel(f"{helper}\n{kernel(body)}", "f").explain().tier == "fibers"


def test_what_is_nested_too_deeply_runs_among_fibers() -> None:
    text = kernel("y[0] = " + "(" * 3000 + "1" + ")" * 3000 + ";")
    assert obstacle(text, options=("-O1",))[0] in (
        "is nested too deeply",
        "the parser does not understand this",
    )


def test_a_fault_names_the_thread() -> None:
    text = kernel(f"{INDEX} if (i < n) y[i] = x[i] + (i == 777 ? *(const float*)64 : 0.0f);")
    fault = gs.RawKernel(text, "f", tier="flat")
    y, x = np.zeros((2, 1000), np.float32)
    with pytest.raises(
        gs.LaunchError, match=r"invalid memory access .*block \(3, 0, 0\), thread \(9, 0, 0\)"
    ) as caught:
        fault(4, 256, (y, x, 1000))
    assert (caught.value.block, caught.value.thread, caught.value.address) == ((3, 0, 0), (9, 0, 0), 64)
    text = kernel(f"{INDEX} if (i < n) y[i] = 100 / (i - 500);")
    with pytest.raises(gs.LaunchError, match="integer division by zero") as caught:
        gs.RawKernel(text, "f", tier="flat")(4, 256, (y, x, 1000))
    assert (caught.value.block, caught.value.thread) == ((1, 0, 0), (244, 0, 0))
    gs.RawKernel(kernel(f"{INDEX} if (i < n) y[i] = 5;"), "f", tier="flat")(4, 256, (y, x, 1000))
    assert (y == 5).all()


def test_a_kernel_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSTRIDE_LAUNCH_TIMEOUT", "0.3")
    endless = gs.RawKernel(kernel("unsigned k = 1; while (k != 0) k += 2; y[k] = 1;"), "f", tier="flat")
    with pytest.raises(gs.LaunchError, match="no block finished within the launch time-out") as caught:
        endless(64, 32, (np.zeros(9, np.float32), None, 0))
    assert caught.value.name == "CUDA_ERROR_LAUNCH_TIMEOUT"


def test_indices_that_do_not_fit_run_among_fibers() -> None:
    """A product of ints wraps around between two threads, and their elements are far from each other."""
    text = kernel(f"{INDEX} if (i < n) y[(unsigned)(i * 0x10000001) >> 28] += 1; y[i * 0x20000000 & 63] = 2;")
    both(text, 1, 40, (np.zeros(80, np.float32), np.zeros(1, np.float32), 40))
    text = kernel(f"{INDEX} if (i * 0x30000000 < n) y[i] = 1;")
    both(text, 1, 40, (np.zeros(80, np.float32), np.zeros(1, np.float32), 40))
    text = kernel(f"unsigned i = {FIRST}; if (i - 5u < (unsigned)n) y[i] = 1;")
    for n in (-1, -2, 3):
        both(text, 1, 40, (np.zeros(80, np.float32), np.zeros(1, np.float32), n))
    text = kernel(f"unsigned i = {FIRST}; if (i < n) y[i] = 1;")
    both(text, 1, 40, (np.zeros(80, np.float32), np.zeros(1, np.float32), -7))


def test_arguments_may_be_one_array() -> None:
    text = kernel(f"{INDEX} if (i + 1 < n) {{ y[i + 1] = x[i] + 1; }}", "float* y, float* x, int n")
    y = [np.zeros(1000, np.float32) for _ in range(2)]
    for array, tier in zip(y, ("flat", "fibers"), strict=True):
        gs.RawKernel(text, "f", tier=tier)(1, 1000, (array, array, 1000))
    assert (y[0] == np.arange(1000)).all()
    assert (y[1] == y[0]).all()
