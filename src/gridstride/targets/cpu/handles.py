"""The numbers by which events and graphs are known at the seam."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from gridstride.targets.cpu import host

Value = TypeVar("Value")


class Handles(Generic[Value]):
    """Hold objects of one kind by their numbers.

    Parameters
    ----------
    what : str
        The kind, as messages call it.
    numbers : iterator of int
        Of which each is given once, to whatever kind.
    """

    def __init__(self, what: str, numbers: Iterator[int]) -> None:
        self._what, self._numbers = what, numbers
        self._known: dict[int, Value] = {}

    def __len__(self) -> int:
        return len(self._known)

    def add(self, value: Value) -> int:
        """Return the number of a new object."""
        handle = next(self._numbers)
        self._known[handle] = value
        return handle

    def get(self, handle: int, call: str) -> Value:
        """Return the object of a number; a CUDAError of the call where there is none."""
        try:
            return self._known[handle]
        except KeyError:
            raise unknown(self._what, handle, call) from None

    def remove(self, handle: int, call: str) -> None:
        """Forget an object."""
        if self._known.pop(handle, None) is None:
            raise unknown(self._what, handle, call)


def unknown(what: str, handle: int, call: str) -> Exception:
    """Return the error of a call that was given a number of nothing."""
    return host.device_error("CUDA_ERROR_INVALID_HANDLE", f"{handle:#x} is no {what} that exists", call)
