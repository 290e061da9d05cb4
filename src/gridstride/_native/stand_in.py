"""The surface of the compiled fast path without it: every call goes to the pipeline."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from gridstride._native.entry import Launch


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
    """Call a C function that takes integers and returns a code.

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

    def call(self, *values: int | None) -> Any:
        """Call the function; None stands for 0."""
        result = ctypes.c_uint64()
        given = [ctypes.addressof(result)] if self._has_result else []
        given += [value or 0 for value in values]
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


class Buffer:
    """Show a range of memory through the buffer protocol: that of Python 3.12 and later."""

    def _show(self, address: int, size: int, /) -> None:
        """Set the range; whoever derives from this keeps it valid."""
        self._shown = (ctypes.c_ubyte * size).from_address(address)

    def __buffer__(self, flags: int, /) -> memoryview:
        return memoryview(self._shown).cast("B")


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


_misses = 0
_counts = {"watchers": 0, "streams_entered": 0, "targets_chosen": 0}


def _change(name: str, delta: int) -> int:
    _counts[name] += delta
    return _counts[name]
