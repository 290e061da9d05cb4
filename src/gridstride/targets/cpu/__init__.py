"""The target that runs CUDA C++ on the processor: a host compiler, and threads as fibers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gridstride.targets.base import Target


def create() -> Target:
    """Return the target; it is ready without a compiler, which is looked for at the first compilation."""
    from gridstride.targets.cpu.target import CpuTarget

    return CpuTarget()
