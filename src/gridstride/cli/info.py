"""``gridstride info``: versions, settings, the cache, array libraries, and a proof of every target."""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Iterator, Sequence
from importlib import metadata, util

import numpy as np

import gridstride
from gridstride import config
from gridstride._store import open_store
from gridstride.cli.cache import describe
from gridstride.errors import GridstrideError, TargetUnavailable
from gridstride.targets import registry
from gridstride.targets.base import Program, Target
from gridstride.targets.options import CompileOptions

_SIZE = 1000
_KERNEL = r"""
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] += a * x[i];
    }
}
"""
_PACKAGES = ("numpy", "tree-sitter", "tree-sitter-cuda", "cuda-bindings", "nvidia-cuda-nvrtc", "ziglang")
_ARRAY_LIBRARIES = ("numpy", "cupy", "torch", "jax", "ml_dtypes")


def main(arguments: Sequence[str]) -> int:
    """Print what this machine offers; the exit code is 0 where a target runs kernels."""
    description = "Say what this machine offers, and prove each target by running a small kernel on it."
    argparse.ArgumentParser(prog="gridstride info", description=description).parse_args(arguments)
    for title, lines in (
        ("versions", _versions()),
        ("settings", _settings()),
        ("compile cache", _cache()),
        ("array libraries", _array_libraries()),
    ):
        _print_section(title, lines)
    proofs = {name: _proof(name) for name in registry.names()}
    width = max(map(len, proofs)) + 2
    _print_section("targets", (f"{name:<{width}}{text}" for name, (_, text) in proofs.items()))
    runs_kernels = [name for name in registry.candidates() if proofs[name][0]]
    if not runs_kernels:
        print("No target runs kernels on this machine; the lines above say what to do.")
        return 1
    print(f"Kernels run here. Calls without arrays go to target '{_default_name()}'.")
    return 0


def _print_section(title: str, lines: Iterator[str]) -> None:
    print(title)
    for line in lines:
        print(f"  {line}")
    print(flush=True)


def _versions() -> Iterator[str]:
    yield f"{'gridstride':<18}{gridstride.__version__}"
    yield f"{'python':<18}{platform.python_version()} on {platform.platform(terse=True)}, {platform.machine()}"
    for package in _PACKAGES:
        try:
            yield f"{package:<18}{metadata.version(package)}"
        except metadata.PackageNotFoundError:
            yield f"{package:<18}not installed"


def _settings() -> Iterator[str]:
    for name, meaning in config.VARIABLES.items():
        value = os.environ.get(name)
        yield f"{name}={value}" if value is not None else f"{name} is not set ({meaning})"


def _cache() -> Iterator[str]:
    store = open_store()
    if store is None:
        yield f"cannot be used: {config.cache_directory()} cannot be made private and written to"
        return
    yield from describe(store)


def _array_libraries() -> Iterator[str]:
    distributions = metadata.packages_distributions()
    for library in _ARRAY_LIBRARIES:
        if util.find_spec(library) is None or library not in distributions:
            yield f"{library:<10}not installed"
        else:
            yield f"{library:<10}{metadata.version(distributions[library][0])}"


def _proof(name: str) -> tuple[bool, str]:
    """Return whether a target gave the right values, and what to tell the user."""
    try:
        with registry.use_target(name) as target:
            compiler = target.compiler_name()
            compile_time = _compile(target)
            run_time, right = _run()
            limits = target.limits(target.current_device())
    except TargetUnavailable as error:
        return False, f"not available: {error.reason}. {error.remedy}"
    except GridstrideError as error:
        return False, f"FAILED: {error}"
    if name not in set(registry.candidates()):
        return True, "OK: recorded the calls of a small kernel (it runs nothing)"
    if not right:
        return False, "FAILED: a small kernel gave wrong values. Please report this with the lines above."
    return True, (
        f"OK: {compiler} compiled a small kernel in {1000 * compile_time:.0f} ms; it ran, from start to end, "
        f"in {1000 * run_time:.0f} ms on {limits.name} ({limits.arch})"
    )


def _compile(target: Target) -> float:
    """Compile the kernel whatever the caches hold; return the seconds."""
    program = Program(_KERNEL, "saxpy", CompileOptions(), kernels=("saxpy",))
    begin = time.perf_counter()
    target.compile(program, target.arch(target.current_device()))
    return time.perf_counter() - begin


def _run() -> tuple[float, bool]:
    """Run the kernel on memory of the default target; return the seconds and whether the values are right."""
    x = np.arange(_SIZE, dtype=np.float32)
    y = np.ones(_SIZE, dtype=np.float32)
    result = np.empty_like(y)
    kernel = gridstride.RawKernel(_KERNEL, "saxpy")
    begin = time.perf_counter()
    device_x, device_y = (gridstride.cuda.alloc(_SIZE * x.itemsize) for _ in range(2))
    device_x.copy_from_host(x)
    device_y.copy_from_host(y)
    kernel((-(-_SIZE // 256),), (256,), (2.0, device_x, device_y, _SIZE))
    device_y.copy_to_host(result)
    return time.perf_counter() - begin, bool(np.array_equal(result, 2 * x + y))


def _default_name() -> str:
    return registry.default().name
