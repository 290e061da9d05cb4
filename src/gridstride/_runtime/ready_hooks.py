"""Hooks that are ready to use, and hooks for launches."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, TextIO

from gridstride._runtime import tracking
from gridstride._runtime.hooks import MemoryHook
from gridstride._runtime.tracking import Observer, Work

_PACKAGE = str(Path(__file__).parents[1])


class DebugPrintHook(MemoryHook):
    """Print a line for every event of a pool.

    Parameters
    ----------
    file : text file, optional
        ``sys.stdout`` by default.
    flush : bool
        Whether each line is written out at once.

    Examples
    --------
    >>> import gridstride as gs
    >>> pool = gs.cuda.MemoryPool()
    >>> with gs.cuda.DebugPrintHook():  # doctest: +SKIP
    ...     memory = pool.malloc(1000)
    malloc of 1000 bytes on device 0
    alloc of 1024 bytes on device 0: 0x7f6f0c000b80
    malloc of 1000 bytes on device 0: 1024 bytes at 0x7f6f0c000b80
    """

    name = "DebugPrintHook"

    def __init__(self, file: TextIO | None = None, flush: bool = True) -> None:
        self._file = file
        self._flush = flush

    def alloc_postprocess(self, **kwargs: Any) -> None:  # type: ignore[override]
        """Print what was taken from the device."""
        self._print("alloc of {mem_size} bytes on device {device_id}: {mem_ptr:#x}", kwargs)

    def malloc_preprocess(self, **kwargs: Any) -> None:
        """Print a request."""
        self._print("malloc of {size} bytes on device {device_id}", kwargs)

    def malloc_postprocess(self, **kwargs: Any) -> None:
        """Print what was handed out."""
        self._print("malloc of {size} bytes on device {device_id}: {mem_size} bytes at {mem_ptr:#x}", kwargs)

    def free_postprocess(self, **kwargs: Any) -> None:  # type: ignore[override]
        """Print what went back."""
        self._print("free of {mem_size} bytes on device {device_id}: {mem_ptr:#x}", kwargs)

    def _print(self, text: str, values: dict[str, Any]) -> None:
        print(text.format(**values), file=self._file or sys.stdout, flush=self._flush)


class LineProfileHook(MemoryHook):
    """Count the bytes that each line of the program takes from pools, and that pools take from the device.

    `print_report` shows them as a tree of calls.

    Parameters
    ----------
    max_depth : int
        Lines of how many nested calls are counted; 0: of all.

    Examples
    --------
    >>> import gridstride as gs
    >>> hook = gs.cuda.LineProfileHook()
    >>> with hook:
    ...     memory = gs.cuda.MemoryPool().malloc(1000)
    >>> hook.used_bytes, hook.acquired_bytes
    (1024, 1024)
    """

    name = "LineProfileHook"

    def __init__(self, max_depth: int = 0) -> None:
        self._max_depth = max_depth
        self._root = _Line("", 0, "")

    def alloc_preprocess(self, **kwargs: Any) -> None:
        """Count what a pool takes from the device."""
        for line in self._lines():
            line.acquired += kwargs["mem_size"]

    def malloc_preprocess(self, **kwargs: Any) -> None:
        """Count what is taken from a pool."""
        for line in self._lines():
            line.used += kwargs["mem_size"]

    def print_report(self, file: TextIO | None = None) -> None:
        """Print the tree of lines with the bytes that each took.

        Parameters
        ----------
        file : text file, optional
            ``sys.stdout`` by default.
        """
        self._root.print_children(file or sys.stdout, "")

    @property
    def used_bytes(self) -> int:
        """Bytes taken from pools."""
        return self._root.used

    @property
    def acquired_bytes(self) -> int:
        """Bytes that pools took from the device."""
        return self._root.acquired

    def _lines(self) -> list[_Line]:
        """Return the nodes of the current line and the calls it is in, outermost first."""
        path = [self._root]
        for place in _calls()[: self._max_depth or None]:
            path.append(path[-1].child(*place))
        return path


class LaunchHook:
    """Watch what all threads issue to streams, inside a ``with`` block.

    Derive from it and define the methods you need. Kernels, copies, fills, host functions and graphs are
    told, each as an object with ``target``, ``device``, ``stream`` (raw handle; None: the default one,
    and the caller waits), ``what`` (such as ``"kernel `f`"``) and ``accesses`` (the memory it touches).
    Launches take longer meanwhile.

    Examples
    --------
    >>> import gridstride as gs
    >>> class Log(gs.cuda.LaunchHook):
    ...     def launch_preprocess(self, work):
    ...         print(work.what)
    >>> memory = gs.cuda.alloc(8)
    >>> with Log():
    ...     memory.memset_async(0)
    fill of 8 bytes
    """

    _observers: list[_LaunchObserver] | None = None

    def __enter__(self) -> LaunchHook:
        observer = _LaunchObserver(self)
        self._observers = [*(self._observers or ()), observer]
        tracking.watch(observer)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._observers
        tracking.unwatch(self._observers.pop())

    def launch_preprocess(self, work: Work) -> None:
        """Look at work before it is issued; raising keeps it from being issued."""

    def launch_postprocess(self, work: Work) -> None:
        """Look at work that was issued."""


class _LaunchObserver(Observer):
    def __init__(self, hook: LaunchHook) -> None:
        self._hook = hook

    def issuing(self, work: Work) -> None:
        self._hook.launch_preprocess(work)

    def issued(self, work: Work) -> None:
        self._hook.launch_postprocess(work)


class _Line:
    """Count bytes for a line of a program, and the lines of the functions it calls."""

    def __init__(self, file: str, number: int, function: str) -> None:
        self._label = f"{file}:{number}:{function}"
        self._children: dict[tuple[str, int, str], _Line] = {}
        self.used = self.acquired = 0

    def child(self, file: str, number: int, function: str) -> _Line:
        """Return the node of a line in a function that this line calls."""
        key = file, number, function
        found = self._children.get(key)
        if found is None:
            found = self._children[key] = _Line(file, number, function)
        return found

    def print_children(self, file: TextIO, indent: str) -> None:
        """Print the tree below."""
        for line in self._children.values():
            print(
                f"{indent}{line._label} ({_in_units(line.used)}, {_in_units(line.acquired)})",
                file=file,
            )
            line.print_children(file, indent + "  ")


def _calls() -> list[tuple[str, int, str]]:
    """Return file, line and function of the calls that led here, without those of this package, outermost first."""
    found: list[tuple[str, int, str]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            found.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return found[::-1]


def _in_units(size: int) -> str:
    value = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1024:
            return f"{value:.2f}{unit}"
        value /= 1024
    return f"{value:.2f}TB"
