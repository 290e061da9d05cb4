"""Loops of their own for the layouts of elementwise calls, also where a kernel has had others."""

from __future__ import annotations

from typing import Any

from gridstride._array_pipeline.choosing import Choice
from gridstride.targets.base import Limits
from gridstride.targets.walks import ElementWalk


def own_loop(_: Any, writers: Any, walk: ElementWalk, limits: Limits, came_again: bool = False) -> Choice:
    """Return the loop that is made for a walk, however many the kernel has, in place of ``chosen_loop``."""
    return Choice(writers.elementwise(walk, limits), True)
