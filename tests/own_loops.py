"""Loops of their own for the layouts of elementwise calls, also where a kernel has had others."""

from __future__ import annotations

from typing import Any

from gridstride.targets.base import Limits
from gridstride.targets.walks import ElementWalk


def own_loop(_: Any, writers: Any, walk: ElementWalk, limits: Limits) -> Any:
    """Return the loop that is made for a walk, however many the kernel has, in place of ``chosen_loop``."""
    return writers.elementwise(walk, limits)
