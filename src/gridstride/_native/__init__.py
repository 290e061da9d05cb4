"""The compiled fast path: it replays launches that look like earlier ones, and is optional.

A kernel is a `Launcher`. Its ``__call__`` looks at the arguments, checks, packs and launches in C
where an `Entry` from an earlier launch fits (a *hit*); anything else is a *miss* and goes to the
kernel's `_launch`, the readable pipeline. Hits and misses do the same: ``GRIDSTRIDE_NATIVE=verify``
sends every hit through both and compares.

Where the extension is not built, `stand_in` offers the same names and every call is a miss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gridstride._native.entry import DTYPES, MOST_BYTES, Entry, Extent, Launch, Parameter

if TYPE_CHECKING:
    from collections.abc import Callable

    from gridstride._native.stand_in import Buffer, DriverFunction, Launcher, PreparedLaunch

    def exchange_numpy_handler(api: object, handler: object | None, /) -> object: ...
    def numpy_handler(
        allocate: Callable[[int], int],
        reallocate: Callable[[int, int], int],
        release: Callable[[int], None],
        /,
    ) -> object: ...
    def cuda_launch_routine() -> int | None: ...
    def know_bfloat16(dtype: object, /) -> None: ...
    def set_keeper(keeper: Callable[..., object], /) -> None: ...
    def statistics() -> tuple[int, int]: ...
    def streams_entered(delta: int, /) -> int: ...
    def targets_chosen(delta: int, /) -> int: ...
    def targets_forgotten() -> None: ...
    def watchers(delta: int, /) -> int: ...

else:
    try:
        from gridstride._native import _launcher as _surface
    except ImportError:
        from gridstride._native import stand_in as _surface
    else:
        from gridstride._native import recognition

        recognition.start()

    Buffer = _surface.Buffer
    DriverFunction = _surface.DriverFunction
    Launcher = _surface.Launcher
    PreparedLaunch = _surface.PreparedLaunch
    cuda_launch_routine = _surface.cuda_launch_routine
    exchange_numpy_handler = _surface.exchange_numpy_handler
    numpy_handler = _surface.numpy_handler
    know_bfloat16 = _surface.know_bfloat16
    set_keeper = _surface.set_keeper
    statistics = _surface.statistics
    streams_entered = _surface.streams_entered
    targets_chosen = _surface.targets_chosen
    targets_forgotten = _surface.targets_forgotten
    watchers = _surface.watchers


def is_compiled() -> bool:
    """Return whether the extension is in use."""
    return cuda_launch_routine() is not None


__all__ = [
    "DTYPES",
    "MOST_BYTES",
    "Buffer",
    "DriverFunction",
    "Entry",
    "Extent",
    "Launch",
    "Launcher",
    "Parameter",
    "PreparedLaunch",
    "cuda_launch_routine",
    "exchange_numpy_handler",
    "is_compiled",
    "know_bfloat16",
    "set_keeper",
    "statistics",
    "streams_entered",
    "targets_chosen",
    "targets_forgotten",
    "watchers",
]
