"""The compiled fast path: it replays launches that look like earlier ones, and is optional.

A kernel is a `Launcher`. Its ``__call__`` looks at the arguments, checks, packs and launches in C
where an `Entry` from an earlier launch fits (a *hit*); anything else is a *miss* and goes to the
kernel's `_launch`, the readable pipeline. An array kernel is an `ArrayLauncher`, which replays an
`ArrayCall` for arguments of the same dtypes, shapes and strides. Hits and misses do the same:
``GRIDSTRIDE_NATIVE=verify`` sends every hit through both and compares.

The runtime's objects keep their fields in records, and Python functions decorated with `shortcut` have
a C function in front of them, which does the usual call and hands any other to the Python one.
``GRIDSTRIDE_NATIVE=0`` at the start of the process switches these off as well.

Where the extension is not built, `stand_in` offers the same names and every call is a miss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gridstride import config
from gridstride._native.entry import (
    DTYPES,
    MOST_BYTES,
    MOST_MADE,
    MOST_STEPS,
    NOTHING,
    ONE,
    TUPLE,
    ArrayCall,
    ArrayStep,
    Entry,
    Extent,
    Launch,
    Making,
    Pair,
    Parameter,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gridstride._native.stand_in import (
        ArrayLauncher,
        AsyncPoolRecord,
        BlockRecord,
        Buffer,
        ContentRecord,
        Contexts,
        DevicePoolRecord,
        DeviceRecord,
        DriverFunction,
        Entries,
        EventRecord,
        GraphRecord,
        Launcher,
        MemoryRecord,
        PointerRecord,
        PoolRecord,
        PreparedLaunch,
        StreamRecord,
        shortcut,
    )

    def exchange_numpy_handler(api: object, handler: object | None, /) -> object: ...
    def numpy_handler(
        allocate: Callable[[int], int],
        reallocate: Callable[[int, int], int],
        release: Callable[[int], None],
        /,
    ) -> object: ...
    def cuda_launch_routine() -> int | None: ...
    def know_bfloat16(dtype: object, /) -> None: ...
    def definition_of(name: str, /) -> Callable[..., Any]: ...
    def follow_libraries(names: tuple[str, ...], find: Callable[[Any], tuple[Any, ...]], /) -> None: ...
    def meet() -> Any: ...
    def nothing_routine() -> int | None: ...
    def know_null_streams(streams: dict[Any, Any], /) -> None: ...
    def hooks_entered(delta: int, /) -> int: ...
    def know_async_memory(memory: type, streams: dict[int, object], /) -> None: ...
    def know_pooled_memory(memory: type, pointer: type, /) -> None: ...
    def set_keeper(keeper: Callable[..., object], /) -> None: ...
    def statistics() -> tuple[int, int]: ...
    def streams_entered(delta: int, /) -> int: ...
    def targets_chosen(delta: int, /) -> int: ...
    def targets_forgotten() -> None: ...
    def thread_streams() -> dict[Any, dict[int, Any]]: ...
    def use_shortcuts(flag: bool, /) -> bool: ...
    def watchers(delta: int, /) -> int: ...

else:
    try:
        from gridstride._native import _launcher as _surface
    except ImportError:
        from gridstride._native import stand_in as _surface

        meet = _surface.meet
    else:
        from gridstride._native import recognition

        recognition.start()
        meet = recognition.meet

    ArrayLauncher = _surface.ArrayLauncher
    Buffer = _surface.Buffer
    Contexts = _surface.Contexts
    DeviceRecord = _surface.DeviceRecord
    DriverFunction = _surface.DriverFunction
    Entries = _surface.Entries
    Launcher = _surface.Launcher
    PreparedLaunch = _surface.PreparedLaunch
    StreamRecord = _surface.StreamRecord
    cuda_launch_routine = _surface.cuda_launch_routine
    definition_of = _surface.definition_of
    exchange_numpy_handler = _surface.exchange_numpy_handler
    follow_libraries = _surface.follow_libraries
    know_bfloat16 = _surface.know_bfloat16
    know_null_streams = _surface.know_null_streams
    nothing_routine = _surface.nothing_routine
    numpy_handler = _surface.numpy_handler
    set_keeper = _surface.set_keeper
    shortcut = _surface.shortcut
    statistics = _surface.statistics
    streams_entered = _surface.streams_entered
    targets_chosen = _surface.targets_chosen
    targets_forgotten = _surface.targets_forgotten
    thread_streams = _surface.thread_streams
    use_shortcuts = _surface.use_shortcuts
    watchers = _surface.watchers
    EventRecord = _surface.EventRecord
    MemoryRecord = _surface.MemoryRecord
    PointerRecord = _surface.PointerRecord
    BlockRecord = _surface.BlockRecord
    DevicePoolRecord = _surface.DevicePoolRecord
    PoolRecord = _surface.PoolRecord
    AsyncPoolRecord = _surface.AsyncPoolRecord
    GraphRecord = _surface.GraphRecord
    ContentRecord = _surface.ContentRecord
    know_pooled_memory = _surface.know_pooled_memory
    know_async_memory = _surface.know_async_memory
    hooks_entered = _surface.hooks_entered
    use_shortcuts(config.native_mode() != "off")


def is_compiled() -> bool:
    """Return whether the extension is in use."""
    return cuda_launch_routine() is not None


__all__ = [
    "DTYPES",
    "MOST_BYTES",
    "MOST_MADE",
    "MOST_STEPS",
    "NOTHING",
    "ONE",
    "TUPLE",
    "ArrayCall",
    "ArrayLauncher",
    "ArrayStep",
    "Making",
    "Pair",
    "Buffer",
    "Contexts",
    "DeviceRecord",
    "DriverFunction",
    "Entries",
    "Entry",
    "Extent",
    "Launch",
    "Launcher",
    "Parameter",
    "PreparedLaunch",
    "StreamRecord",
    "cuda_launch_routine",
    "definition_of",
    "exchange_numpy_handler",
    "follow_libraries",
    "is_compiled",
    "know_bfloat16",
    "know_null_streams",
    "meet",
    "nothing_routine",
    "set_keeper",
    "shortcut",
    "statistics",
    "streams_entered",
    "targets_chosen",
    "targets_forgotten",
    "thread_streams",
    "use_shortcuts",
    "EventRecord",
    "MemoryRecord",
    "PointerRecord",
    "BlockRecord",
    "DevicePoolRecord",
    "PoolRecord",
    "AsyncPoolRecord",
    "GraphRecord",
    "ContentRecord",
    "know_pooled_memory",
    "know_async_memory",
    "hooks_entered",
    "watchers",
]
