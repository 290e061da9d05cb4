"""Launch kernels, time them with events, and compare what they give with what they should give."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import gridstride as gs

KERNELS = Path(__file__).with_name("kernels")

_REPEATS = 3


@dataclass(frozen=True, slots=True)
class Measurement:
    """Hold what is known of one kernel.

    Attributes
    ----------
    kernel : str
    launches : int
        How many launches the time is for.
    milliseconds : float
        The median of a few runs, from events.
    moved : int
        The bytes that must be read and written, counted once each.
    error : float
        The largest difference from the reference, over the largest magnitude.
    tolerance : float
        The largest error that is accepted.
    """

    kernel: str
    launches: int
    milliseconds: float
    moved: int
    error: float
    tolerance: float

    @property
    def passed(self) -> bool:
        """Whether the error is within the tolerance; NaN is not."""
        return self.error <= self.tolerance

    @property
    def bandwidth(self) -> float:
        """Bytes moved per second."""
        return self.moved / (self.milliseconds * 1e-3) if self.milliseconds > 0 else float("inf")


class Workbench:
    """Run the kernels of the files in ``kernels/`` and collect a `Measurement` of each.

    Parameters
    ----------
    tell : callable
        Is told what happens at the moment.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.measurements: list[Measurement] = []
        self.tell = tell

    def module(self, name: str, name_expressions: Sequence[str] = ()) -> Any:
        """Return the module of a file, compiled when first used."""
        return gs.RawModule(path=KERNELS / f"{name}.cu", name_expressions=tuple(name_expressions))

    def run(
        self,
        kernel: str,
        work: Callable[[], None],
        *,
        moved: int,
        result: Callable[[], npt.ArrayLike],
        expected: Callable[[], npt.ArrayLike],
        tolerance: float,
        magnitude: float | None = None,
        warm_up: Callable[[], None] | None = None,
        launches: int = 1,
        repeats: int = _REPEATS,
    ) -> None:
        """Time a kernel and check it.

        Parameters
        ----------
        kernel : str
            For the table.
        work : callable
            Launches it, `launches` times; called `repeats` times, so each call must start afresh.
        warm_up : callable, optional
            Called first, so that compiling is not timed; `work` by default.
        moved : int
            Bytes that one call must read and write.
        result, expected : callable
            Return the values on the host: the kernel's, and the reference's.
        tolerance : float
            The largest accepted error.
        magnitude : float, optional
            What errors are relative to; the reference's largest magnitude by default. Differences of
            large numbers need it: they may be small themselves.
        """
        self.tell(f"{kernel}: running")
        milliseconds = _time(work, warm_up or work, repeats)
        self.tell(f"{kernel}: comparing with NumPy")
        error = _largest_error(np.asarray(result()), np.asarray(expected()), magnitude)
        self.measurements.append(Measurement(kernel, launches, milliseconds, moved, error, tolerance))

    def copy_bandwidth(self, size: int) -> float:
        """Return the bytes per second, read and written, of the array library's own copy of `size` bytes."""
        source, destination = gs.ones(size, dtype=np.uint8), gs.empty(size, dtype=np.uint8)

        def copy() -> None:
            gs.copyto(destination, source)

        return 2 * size / (_time(copy, copy, 5) * 1e-3)


def _time(work: Callable[[], None], warm_up: Callable[[], None], repeats: int) -> float:
    """Return the median of the milliseconds between two events around the work."""
    warm_up()
    times = []
    for _ in range(repeats):
        start, end = gs.cuda.Event(), gs.cuda.Event()
        start.record()
        work()
        end.record()
        times.append(gs.cuda.get_elapsed_time(start, end))
    return statistics.median(times)


def _largest_error(result: npt.NDArray[Any], expected: npt.NDArray[Any], magnitude: float | None) -> float:
    """Return the largest difference over a magnitude, by default the largest expected; NaN where there is one."""
    if result.shape != expected.shape:
        raise ValueError(f"the result has shape {result.shape}, the reference {expected.shape}")
    if magnitude is None:
        magnitude = float(np.abs(expected).max()) or 1.0
    return float(np.abs(result.astype(np.float64) - expected).max()) / magnitude
