"""How many host threads run kernels, on the targets that use host threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, cast

from gridstride import _native
from gridstride.errors import TargetUnavailable
from gridstride.targets import registry


class ThreadedTarget(Protocol):
    """Run kernels on host threads; such a target has the feature ``"threads"``."""

    name: str

    def num_threads(self) -> int:
        """Return how many threads run a kernel."""
        ...

    def set_num_threads(self, count: int) -> None:
        """Let this many threads run a kernel."""
        ...


def set_num_threads(count: int) -> None:
    """Set how many host threads run a kernel.

    It holds for the whole process and for the launches that follow.

    Parameters
    ----------
    count : int
        At least 1.

    Raises
    ------
    ValueError
        For a smaller number.
    TargetUnavailable
        Where no usable target runs kernels on host threads.
    """
    if count != int(count) or count < 1:
        raise ValueError(f"the number of threads must be a whole number of at least 1, got {count!r}")
    for target in _threaded_targets():
        target.set_num_threads(int(count))
    _native.targets_forgotten()  # array kernels choose their launches by the number of threads


def get_num_threads() -> int:
    """Return how many host threads run a kernel.

    Raises
    ------
    TargetUnavailable
        Where no usable target runs kernels on host threads.
    """
    return next(_threaded_targets()).num_threads()


def _threaded_targets() -> Iterator[ThreadedTarget]:
    reasons = []
    found = False
    for name in registry.candidates():
        try:
            target = registry.get(name)
        except TargetUnavailable as error:
            reasons.append(str(error))
            continue
        if "threads" in target.features:
            found = True
            yield cast(ThreadedTarget, target)
    if not found:
        reason = "; ".join(reasons) or "no target runs kernels on host threads"
        raise TargetUnavailable("with threads", reason, "Run `gridstride info`.")
