"""Tell a profiler which part of a program to look at."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from gridstride.targets import registry


def start() -> None:
    """Let a profiler that waits for it (``nsys profile -c cudaProfilerApi``) collect from now on.

    Nothing happens where none is attached, and on targets without a GPU.
    """
    registry.default().start_profiler()


def stop() -> None:
    """Let the profiler collect no more."""
    registry.default().stop_profiler()


@contextmanager
def collect() -> Iterator[None]:
    """Let the profiler collect inside a ``with`` block."""
    start()
    try:
        yield
    finally:
        stop()


@contextmanager
def profile() -> Iterator[None]:
    """Let the profiler collect inside a ``with`` block.

    .. deprecated:: 0.1
        Use `gridstride.cuda.profiler.collect`.
    """
    warnings.warn(
        "gridstride.cuda.profile() is deprecated: use gridstride.cuda.profiler.collect()",
        DeprecationWarning,
        stacklevel=3,
    )
    with collect():
        yield
