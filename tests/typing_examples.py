"""What a type checker must infer for typical uses, and that our targets are targets; checked, never run."""

from __future__ import annotations

from typing import assert_type

import numpy as np

import gridstride as gs
from gridstride.targets.base import Target
from gridstride.targets.cpu.target import CpuTarget
from gridstride.targets.cuda.runtime import CudaTarget
from gridstride.targets.null import NullTarget


def kernels() -> None:
    kernel = gs.RawKernel("__global__ void k() {}", "k", options=("-DN=4",))
    assert_type(kernel, gs.RawKernel)
    assert_type(kernel.name, str)
    assert_type(kernel.attributes["num_regs"], int)
    assert_type(kernel((1,), (1,), (np.zeros(3), 2.0, None), shared_mem=16), None)
    assert_type(kernel(1, 1), None)


def modules() -> None:
    module = gs.RawModule(code="...", name_expressions=["f<float>"])
    assert_type(module, gs.RawModule)
    assert_type(module.get_function("f<float>"), gs.RawKernel)


def targets(cpu: CpuTarget, cuda: CudaTarget, null: NullTarget) -> list[Target]:
    return [cpu, cuda, null]


def errors(error: gs.LaunchError) -> None:
    assert_type(error.kernel, str)
    assert_type(error.block, tuple[int, int, int] | None)
    assert_type(error.code, int)


def settings() -> None:
    assert_type(gs.get_num_threads(), int)
    assert_type(gs.get_backend(), str)
    with gs.use_target("cpu") as target:
        assert_type(target.name, str)


@gs.memoize(for_each_device=True)
def remembered(n: int) -> str:
    return str(n)


def memo() -> None:
    assert_type(remembered(1), str)
