"""What gridstride needs of an array library."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from gridstride.arrays.view import ArrayView, Shape

Leave = Callable[[], None]


class Allocation(NamedTuple):
    """Say how an array is made: by a call, or by one that allocates memory and another that makes an array of it.

    Attributes
    ----------
    call : callable
    arguments : tuple
    keywords : dict
    wrap : callable or None
        Takes what `call` returned, which shows its address as ``ptr`` and its device as ``device_id``; None: `call`
        returned the array.
    """

    call: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    wrap: Callable[[Any], Any] | None = None


#: Takes a size in bytes, returns a pointer with ``ptr``, ``size`` and ``device_id`` that keeps the memory.
Malloc = Callable[[int], Any]


class StreamSwitch(NamedTuple):
    """Say how the current stream of a library is switched.

    Attributes
    ----------
    current : callable
        Takes a device; returns the library's object for the calling thread's current stream there.
    of : callable
        Takes a raw handle and a device; returns the library's object for that stream.
    use : callable
        Takes such an object, of the current device, and makes it the current stream.
    enter, leave : callable
        Take such an object where a block of it begins and ends, for libraries that keep count of their blocks:
        those inside make the stream current again that the block around them has. After `leave` whichever
        stream may be current. Others need but `use`.
    """

    current: Callable[[int], Any]
    of: Callable[[int, int], Any]
    use: Callable[[Any], object]
    enter: Callable[[Any], object]
    leave: Callable[[Any], object] | None = None


class Adapter(ABC):
    """Look at the arrays of one library, make new ones, and follow its streams.

    Streams are raw handles, 0 the default one. The methods for streams have a meaning here for
    libraries that know none.
    """

    #: The library's name, and of the module that `library_module` imports.
    name: str
    #: Whether new arrays can be made beside those of the library.
    makes_outputs: bool = True
    #: DLPack device type of the streams that the library keeps a current one of; None: it keeps none.
    stream_device_type: int | None = None
    #: DLPack device type of the memory that the library can be made to take elsewhere; None: it cannot.
    allocation_device_type: int | None = None

    @abstractmethod
    def recognizes(self, kind: type, array: object) -> bool:
        """Return whether objects of a class are this library's arrays, without importing the library."""

    def refusal(self, kind: type) -> str | None:
        """Return why no array of a class can be an argument and what to do instead; None where they can."""
        return None

    @abstractmethod
    def view(self, array: Any) -> ArrayView | None:
        """Return what is known of an array; None where this object shows none after all.

        Raises
        ------
        ArgumentTypeError
            For an array that no kernel can take, with what to do instead.
        """

    @abstractmethod
    def allocate(self, like: Any, shape: Shape, dtype: np.dtype[Any], stream: int) -> Any:
        """Return memory for new results beside an array: on its device, in the order of a stream.

        Beside None it is on the current device. It can be viewed and written, and is an array of the library
        except where `wrap` says otherwise.
        """

    def allocation(self, like: Any, shape: Shape, dtype: np.dtype[Any]) -> Allocation | None:
        """Return what makes the same array where device and stream are the library's current ones, or None."""
        return None

    def floating_dtype(self) -> np.dtype[Any] | None:
        """Return the dtype of Python's floats, for libraries that promote by the kinds of numbers; None: as NumPy."""
        return None

    def own_dtype(self, dtype: np.dtype[Any]) -> Any:
        """Return what the library's arrays have as their `dtype`."""
        return dtype

    def current_stream(self, device: int) -> int | None:
        """Return the calling thread's current stream on a device, or None."""
        return None

    def stream_switch(self) -> StreamSwitch | None:
        """Return how the library's current stream is switched; None where it has none on this machine."""
        return None

    def retain(self, array: Any, stream: int) -> bool:
        """Tell the library that a stream uses an array's memory; False: the caller must hold the array."""
        return False

    def memory_of(self, array: Any) -> object | None:
        """Return an object that lives as long as an array's memory and can be referred to weakly, or None.

        An array that views hold will do.
        """
        return None

    def enter_allocator(self, malloc: Malloc | None) -> Leave:
        """Let the library take its memory from `malloc` in the calling thread; the result puts back what was before.

        None stands for what the library does by itself without a pool.

        Raises
        ------
        NotImplementedError
            Where the library cannot follow, with the reason.
        """
        return _nothing

    def set_allocator(self, malloc: Malloc | None) -> None:
        """Let the library take its memory from `malloc` from now on."""
        self.enter_allocator(malloc)

    def default_pool(self) -> Any:
        """Return the library's own memory pool, or None."""
        return None

    def default_pinned_pool(self) -> Any:
        """Return the library's own pool of pinned memory, or None."""
        return None

    def release_cached(self) -> None:  # noqa: B027 - most libraries hold nothing
        """Let the library, which is loaded, give back device memory that it holds free."""

    def wrap(self, memory: Any, shape: Shape, dtype: np.dtype[Any], strides: Shape | None = None) -> Any:
        """Return an array of the library over memory that `view` understands; it keeps the memory alive."""
        raise TypeError(f"{self.name} makes no arrays over memory of others")

    def resolve(self, array: Any) -> Any:
        """Return an array whose bytes are its values, for one whose view is lazy."""
        return array


def library_module(name: str) -> ModuleType:
    """Return the module of an array library; ImportError where it is not installed."""
    module = sys.modules.get(name)
    if module is None or getattr(module.__spec__, "_initializing", False):
        return import_module(name)  # waits where another thread is importing it
    return module


def descends_from(kind: type, root: str, names: frozenset[str]) -> bool:
    """Return whether a class or one it is derived from has one of the names in the package `root`."""
    return any(base.__name__ in names and base.__module__.partition(".")[0] == root for base in kind.__mro__)


def _nothing() -> None:
    pass
