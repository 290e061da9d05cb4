"""The surface of the compiled fast path without it: every call goes to the pipeline."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from threading import get_ident
from typing import Any, TypeVar

from gridstride._native.entry import Launch

Function = TypeVar("Function", bound=Callable[..., Any])


class Launcher:
    """Launch a kernel by asking `_launch`.

    `_launch` takes the arguments of a call, makes it, and returns what it made, which offers
    ``native_entry()`` and ``replayed_form()``.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        global _misses
        _misses += 1
        self._launch(*args, **kwargs)

    def _launch(self, grid: Any, block: Any, args: Any = (), shared_mem: Any = 0, stream: Any = None) -> Any:
        raise NotImplementedError

    def _forget(self) -> None:
        """Forget the launches that could be replayed: there are none."""


class ArrayLauncher:
    """Call an array kernel by asking `_launch`.

    `_launch` takes the arguments of a call, makes it, and returns what it made: what the call returns as
    ``result``, and ``outputs``, ``workspace``, ``native_record()`` and ``replayed_form()``.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        global _misses
        _misses += 1
        return self._launch(*args, **kwargs).result

    def _launch(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


class PreparedLaunch:
    """Make one launch again at every call, with the arguments and the stream it was prepared with.

    Made by ``kernel.prepare(...)``; it keeps the arrays alive.
    """

    def __init__(self, run: Callable[[], object], record: Launch | None, /) -> None:
        self._run = run

    def __call__(self) -> None:
        global _misses
        _misses += 1
        self._run()


class DriverFunction:
    """Call a C function that takes integers or addresses and returns a code.

    Parameters
    ----------
    address : int
    has_result : bool
        Whether its first argument is where it writes an integer, which a call returns.
    fail : callable
        Is given every code but 0; what it returns is what the call returns. NotImplemented: the
        function is called once more.
    """

    _MOST_VALUES = 5

    def __init__(self, address: int, has_result: bool, fail: Callable[[int], object], /) -> None:
        self._function = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_uint64] * self._MOST_VALUES)(address)
        self._has_result = has_result
        self._fail = fail

    def call(self, *values: int | bytes | None) -> Any:
        """Call the function; None stands for 0, and bytes for their address: a NUL follows them."""
        result = ctypes.c_uint64()
        given = [ctypes.addressof(result)] if self._has_result else []
        given += [_address_of(value) if isinstance(value, bytes) else value or 0 for value in values]
        if len(given) > self._MOST_VALUES:
            raise TypeError(f"a driver function takes at most {self._MOST_VALUES} values, got {len(given)}")
        given += [0] * (self._MOST_VALUES - len(given))
        code = self._function(*given)
        if code:
            answer = self._fail(code)
            if answer is not NotImplemented:
                return answer
            code = self._function(*given)
            if code:
                return self._fail(code)
        return result.value if self._has_result else None


class Contexts:
    """Know devices by their contexts.

    Parameters
    ----------
    get, set : int
        Addresses of functions of a driver: one writes the current context behind its argument, the other
        makes its argument the current one.
    find : callable
        Returns the current device where its context is not known.
    enter : callable
        Makes a device current whose context is not known, or which cannot be made current.
    """

    def __init__(
        self, get: int, set: int, find: Callable[[], int], enter: Callable[[int], object], /
    ) -> None:
        self._get = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(get)
        self._set = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(set)
        self._find, self._enter = find, enter
        self._contexts: dict[int, int] = {}
        self._devices: dict[int, int] = {}

    def know(self, device: int, context: int, /) -> None:
        """Remember the context of a device."""
        self._contexts[device] = context
        self._devices[context] = device

    def current_device(self) -> int:
        """Return the calling thread's current device."""
        device = self._devices.get(self._current())
        return self._find() if device is None else device

    def set_device(self, device: int, /) -> None:
        """Make a device the calling thread's current one."""
        context = self._contexts.get(device)
        if context is None or (self._current() != context and self._set(context)):
            self._enter(device)

    def _current(self) -> int:
        context = ctypes.c_void_p()
        return 0 if self._get(ctypes.addressof(context)) else context.value or 0


class Entries:
    """Keep what a context manager has to put back, for each thread and each time it was entered."""

    __slots__ = ("_by_thread",)

    def __init__(self) -> None:
        self._by_thread: dict[int, list[Any]] = {}

    def push(self, value: object, /) -> None:
        """Remember a value at entry."""
        self._by_thread.setdefault(get_ident(), []).append(value)

    def pop(self) -> Any:
        """Return the value of the calling thread's last entry and forget it."""
        values = self._by_thread.get(get_ident())
        if not values:
            raise RuntimeError("this thread is not inside a block of this object")
        return values.pop()


class DeviceRecord:
    """Keep the fields of a device."""

    __slots__ = ("_entries", "id", "target")


class StreamRecord:
    """Keep the fields of a stream."""

    __slots__ = ("_device", "_entries", "_handle", "_per_thread", "target")


class EventRecord:
    """Keep the fields of an event."""

    __slots__ = ("_handle", "_recorded", "_times", "device_id", "target")


class MemoryRecord:
    """Keep the fields of memory."""

    __slots__ = ("_block", "_is_held", "_stream", "device_id", "pool", "ptr", "size", "target")


class PointerRecord:
    """Keep the fields of a pointer to memory."""

    __slots__ = ("mem", "owner", "ptr", "size")


class BlockRecord:
    """Keep the fields of a block of a pool."""

    __slots__ = ("arena", "following", "is_free", "previous", "ptr", "segment", "size")


class DevicePoolRecord:
    """Keep those fields of the pool of a device that a request looks at."""

    __slots__ = ("_arenas", "_has_streams", "device", "returned", "target")


class PoolRecord:
    """Keep the fields of a pool."""

    __slots__ = ("_devices", "target")


class AsyncPoolRecord:
    """Keep the fields of an asynchronous pool."""

    __slots__ = ("_handles", "_limits", "target")


class GraphRecord:
    """Keep the fields of a graph."""

    __slots__ = ("_capture", "_content", "target")


class ContentRecord:
    """Keep those fields of what a graph holds that a launch looks at."""

    __slots__ = ("device", "executable", "streams", "target")


class Buffer:
    """Show a range of memory through the buffer protocol: that of Python 3.12 and later."""

    def _show(self, address: int, size: int, /) -> None:
        """Set the range; whoever derives from this keeps it valid."""
        self._shown = (ctypes.c_ubyte * size).from_address(address)

    def __buffer__(self, flags: int, /) -> memoryview:
        return memoryview(self._shown).cast("B")


def shortcut(definition: Function, /) -> Function:
    """Return the function itself: there are no shortcuts."""
    return definition


def definition_of(name: str, /) -> Callable[..., Any]:
    """Raise KeyError: there are no shortcuts."""
    raise KeyError(f"there is no shortcut for {name}")


def use_shortcuts(flag: bool, /) -> bool:
    """Return False: there are no shortcuts."""
    return False


def know_pooled_memory(memory: type, pointer: type, /) -> None:
    """Set the classes of what a pool hands out."""


def know_async_memory(memory: type, streams: dict[int, object], /) -> None:
    """Set the class of what an asynchronous pool hands out."""


def hooks_entered(delta: int, /) -> int:
    """Add to the count of memory hooks that are entered."""
    return _change("hooks_entered", delta)


def thread_streams() -> dict[Any, dict[int, Any]]:
    """Return the calling thread's streams, by target and device."""
    return _threads.streams


def meet() -> None:
    """Look at classes of arrays before the first launch: nothing looks at them."""


def know_null_streams(streams: dict[Any, Any], /) -> None:
    """Set the dictionary of each target's default stream."""


def follow_libraries(names: tuple[str, ...], find: Callable[[Any], tuple[Any, ...]], /) -> None:
    """Set which libraries have streams, and what finds their switches."""


def watchers(delta: int, /) -> int:
    """Add to the count of watchers; while it is above 0 nothing is replayed."""
    return _change("watchers", delta)


def streams_entered(delta: int, /) -> int:
    """Add to the count of streams of ours that are current."""
    return _change("streams_entered", delta)


def targets_chosen(delta: int, /) -> int:
    """Add to the count of blocks that choose a target."""
    return _change("targets_chosen", delta)


def set_keeper(keeper: Callable[..., object], /) -> None:
    """Call keeper(target, device, stream, arguments) after every replay on a GPU: there is none."""


def targets_forgotten() -> None:
    """Replay nothing that was launched on a target until now: nothing is."""


def statistics() -> tuple[int, int]:
    """Return how many calls were hits and how many misses."""
    return 0, _misses


def cuda_launch_routine() -> None:
    """Return None: there is no routine."""


def nothing_routine() -> None:
    """Return None: there is no routine."""


def know_bfloat16(dtype: object, /) -> None:
    """Set the dtype that stands for bfloat16."""


def numpy_handler(allocate: object, reallocate: object, release: object, /) -> object:
    """Raise NotImplementedError: NumPy takes functions of C only."""
    raise NotImplementedError(
        "NumPy takes its memory from an allocator only through the compiled extension of gridstride, which is not "
        "installed here: install a wheel, or have a C compiler when gridstride is built"
    )


def exchange_numpy_handler(api: object, handler: object | None, /) -> None:
    """Return None: NumPy has never had another handler than its own."""


class _Threads(threading.local):
    def __init__(self) -> None:
        self.streams: dict[Any, dict[int, Any]] = {}


_threads = _Threads()
_misses = 0
_counts = {"watchers": 0, "streams_entered": 0, "targets_chosen": 0, "hooks_entered": 0}


def _address_of(content: bytes) -> int:
    return ctypes.cast(ctypes.c_char_p(content), ctypes.c_void_p).value or 0


def _change(name: str, delta: int) -> int:
    _counts[name] += delta
    return _counts[name]
