"""Name parts of a program for profilers.

Ranges are handed to the package ``nvtx`` where it is installed; else only their nesting is checked.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

_COLORS = ("green", "blue", "yellow", "purple", "rapids", "red", "white", "darkgreen", "orange")


class _Ranges(threading.local):
    def __init__(self) -> None:
        self.open: list[str] = []


_ranges = _Ranges()


def RangePush(message: str, id_color: int = -1) -> int:  # noqa: N802 - CuPy's spelling
    """Begin a range of the calling thread.

    Parameters
    ----------
    message : str
    id_color : int
        Index of a color; a negative one leaves the choice to the profiler.

    Returns
    -------
    int
        How many ranges are open around it.
    """
    _call("push_range", message, id_color)
    _ranges.open.append(message)
    return len(_ranges.open) - 1


def RangePop() -> int:  # noqa: N802 - CuPy's spelling
    """End the range that was begun last in the calling thread.

    Returns
    -------
    int
        How many ranges are still open.

    Raises
    ------
    RuntimeError
        Where none is open.
    """
    if not _ranges.open:
        raise RuntimeError("RangePop() without RangePush(): no range is open in this thread")
    _ranges.open.pop()
    library = _library()
    if library is not None:
        library.pop_range()
    return len(_ranges.open)


def Mark(message: str, id_color: int = -1) -> None:  # noqa: N802 - CuPy's spelling
    """Mark a moment.

    Parameters
    ----------
    message : str
    id_color : int
        As for `RangePush`.
    """
    _call("mark", message, id_color)


@contextmanager
def range(message: str, id_color: int = -1) -> Iterator[None]:
    """Name what happens inside a ``with`` block.

    Parameters
    ----------
    message : str
    id_color : int
        As for `RangePush`.
    """
    RangePush(message, id_color)
    try:
        yield
    finally:
        RangePop()


def open_ranges() -> tuple[str, ...]:
    """Return the messages of the calling thread's open ranges, outermost first."""
    return tuple(_ranges.open)


def _call(function: str, message: str, id_color: int) -> None:
    library = _library()
    if library is not None:
        color: dict[str, Any] = {} if id_color < 0 else {"color": _COLORS[id_color % len(_COLORS)]}
        getattr(library, function)(message, **color)


@cache
def _library() -> ModuleType | None:
    try:
        return import_module("nvtx")
    except ImportError:
        return None
