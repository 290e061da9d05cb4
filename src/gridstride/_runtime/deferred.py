"""Deferred mode: work of a target without a GPU runs only at calls that synchronize."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, cast

from gridstride._runtime.stream import get_current_stream
from gridstride.errors import TargetUnavailable
from gridstride.targets import registry
from gridstride.targets.base import Target


class DeferringTarget(Protocol):
    """Run work at once or later; such a target has the feature ``"deferred mode"``."""

    name: str
    #: Whether work waits now.
    is_deferred: bool

    def defer(self, seed: int | None) -> int | None:
        """Let work wait for calls that synchronize (None: run at once); return what was set before."""
        ...


@contextmanager
def asynchronous_cpu(seed: int = 0) -> Iterator[None]:
    """Let work of the CPU target run only at calls that synchronize, as late as its order allows.

    Kernels, copies, fills, callbacks and events wait in their streams; a call that synchronizes runs
    what it has to wait for and no more, in a random order among all that stream order allows. A
    program that forgets to synchronize, or to order two streams, then goes wrong here as it may on a
    GPU, and in the same way every time. Host arrays behave like pinned memory: what a kernel writes
    shows in them after a synchronization. Failures of kernels are raised by the call that runs them.

    It holds for all threads. Leaving runs all work that is left.

    Parameters
    ----------
    seed : int
        Of the order.

    Raises
    ------
    TargetUnavailable
        Where the CPU target cannot be used.

    Examples
    --------
    >>> import gridstride as gs
    >>> import numpy as np
    >>> out = np.zeros(4, np.uint8)
    >>> with gs.cuda.asynchronous_cpu(seed=1):
    ...     memory = gs.cuda.alloc(4)
    ...     memory.memset_async(7)
    ...     memory.copy_to_host_async(out)
    ...     early = out.copy()
    ...     gs.cuda.get_current_stream().synchronize()
    >>> early, out
    (array([0, 0, 0, 0], dtype=uint8), array([7, 7, 7, 7], dtype=uint8))
    """
    target = _deferring_target()
    before = target.defer(seed)
    try:
        yield
    except BaseException as error:
        try:
            target.defer(before)
        except Exception as failure:
            error.add_note(f"Work that was left failed too: {failure}")
        raise
    target.defer(before)


def catch_up() -> None:
    """Run what the current stream of a target in deferred mode has left, as reading its memory on a GPU would."""
    for target in registry.created():
        if "deferred mode" in target.features and cast(DeferringTarget, target).is_deferred:
            get_current_stream(target=target).synchronize()


def _deferring_target() -> DeferringTarget:
    reasons = []
    for name in registry.candidates():
        try:
            target: Target = registry.get(name)
        except TargetUnavailable as error:
            reasons.append(str(error))
            continue
        if "deferred mode" in target.features:
            return cast(DeferringTarget, target)
    reason = "; ".join(reasons) or "no target has a deferred mode"
    raise TargetUnavailable("with a deferred mode", reason, "Run `gridstride info`.")
