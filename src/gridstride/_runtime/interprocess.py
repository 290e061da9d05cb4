"""Memory of another process of the same machine."""

from __future__ import annotations

import sys
from collections.abc import Callable

from gridstride._runtime.memory import BaseMemory
from gridstride.targets.base import Target


class InterprocessMemory(BaseMemory):
    """Open memory of another process on the current device; it is given up with the object.

    The other process must keep its memory until then. Neither process waits for the other's work: order it
    with an event made with ``interprocess=True``, or wait before the other is told to go on.

    Parameters
    ----------
    handle : bytes
        The other process' `Memory.ipc_handle`.
    size : int
        Bytes to use of it, from its beginning; the handle does not say how many there are.
    target : Target, optional
        The default target unless given.

    Raises
    ------
    NotImplementedError
        On a target that shares no memory between processes.
    ValueError
        For bytes that are no handle.
    CUDAError
        Where the driver cannot open it, in the process that made it for one.
    """

    __slots__ = ("_is_open",)

    def __init__(self, handle: bytes, size: int, *, target: Target | None = None) -> None:
        self._is_open = False
        super().__init__(size, target=target)
        self.ptr = self.target.open_memory_handle(handle, self.device_id)
        self._is_open = True

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if self._is_open and not finalizing():
            self._is_open = False
            self.target.close_memory_handle(self.ptr, self.device_id)
