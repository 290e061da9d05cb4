"""Find the adapter for an object by its class."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gridstride.arrays._buffer import BufferAdapter
from gridstride.arrays._cupy import CuPyAdapter
from gridstride.arrays._dlpack import DLPackAdapter
from gridstride.arrays._interface import InterfaceAdapter
from gridstride.arrays._jax import JAXAdapter
from gridstride.arrays._numpy import NumPyAdapter
from gridstride.arrays._torch import TorchAdapter
from gridstride.arrays.adapter import Adapter, StreamSwitch, descends_from, library_module
from gridstride.arrays.view import ArrayView
from gridstride.errors import ArgumentTypeError, with_article

Viewer = Callable[[Any], ArrayView | None]

#: In the order in which they are asked: libraries before the protocols that their arrays also speak.
_ADAPTERS: tuple[Adapter, ...] = (
    NumPyAdapter(),
    CuPyAdapter(),
    TorchAdapter(),
    JAXAdapter(),
    InterfaceAdapter(),
    DLPackAdapter(),
    BufferAdapter(),
)
_WITH_STREAMS = tuple(adapter for adapter in _ADAPTERS if adapter.stream_device_type is not None)
LIBRARIES_WITH_STREAMS = tuple(adapter.name for adapter in _WITH_STREAMS)
_BY_NAME: dict[str, Adapter] = {adapter.name: adapter for adapter in _ADAPTERS}
_COLLECTIONS = frozenset({"Array"})
_DASK_REMEDY = (
    "holds tasks, not memory: pass x.compute(), or map the kernel over its chunks with x.map_blocks(...)"
)

_PROTOCOLS = ("__cuda_array_interface__", "__array_interface__", "__dlpack__")

_viewers: dict[type, Viewer] = {}


def view(argument: object) -> ArrayView | None:
    """Return what is known of an array's memory, or None for an object that is no array.

    Objects with a method ``__gridstride_view__`` say it themselves.

    Raises
    ------
    ArgumentTypeError
        For an array that no kernel can take, with what to do instead.
    """
    viewer = _viewers.get(type(argument))
    seen = None if viewer is None else viewer(argument)
    if seen is None and viewer is not _no_array:
        return _look_closely(argument)
    return seen


def resolved(seen: ArrayView) -> ArrayView:
    """Return a view whose bytes are its values: of a copy where the array is a conjugate or negative view."""
    if not seen.lazy:
        return seen
    adapter = _BY_NAME[seen.library]
    again = adapter.view(adapter.resolve(seen.owner))
    assert again is not None
    return again


def library_of(argument: object) -> str | None:
    """Return the name of the library an array belongs to, or None for an object that is no array."""
    found = _adapter_for(type(argument), argument)
    return None if found is None else found.name


def memory_of(array: object) -> object | None:
    """Return an object that lives as long as an array's memory and can be referred to weakly.

    None: the array's library has none, or the object is no array.
    """
    found = _adapter_for(type(array), array)
    return None if found is None else found.memory_of(array)


def adapter_of(library: str) -> Adapter | None:
    """Return the adapter of a view's library; None for memory of ours."""
    return _BY_NAME.get(library)


def makes_outputs(library: str) -> bool:
    """Return whether new arrays can be made beside those of a library."""
    adapter = _BY_NAME.get(library)
    return adapter is not None and adapter.makes_outputs


def allocating_adapters(device_types: frozenset[int]) -> list[Adapter]:
    """Return the adapters of libraries that can be made to take memory of some kinds from elsewhere.

    Those libraries are imported where they are installed.
    """
    found = [adapter for adapter in _ADAPTERS if adapter.allocation_device_type in device_types]
    return [adapter for adapter in found if _is_importable(adapter.name)]


def loaded_adapters() -> list[Adapter]:
    """Return the adapters that follow streams and whose library is loaded in this process."""
    return [adapter for adapter in _WITH_STREAMS if adapter.name in sys.modules]


def stream_switches(device_types: frozenset[int]) -> tuple[StreamSwitch, ...]:
    """Return how to switch the current streams of loaded libraries, for streams of some devices."""
    switches = (
        adapter.stream_switch() for adapter in loaded_adapters() if adapter.stream_device_type in device_types
    )
    return tuple(switch for switch in switches if switch is not None)


def _is_importable(library: str) -> bool:
    try:
        library_module(library)
    except ImportError:
        return False
    return True


def _look_closely(argument: Any) -> ArrayView | None:
    """View an object and remember how for its class.

    Of one class, one object may show memory and another none: a class that can is asked every time.
    """
    kind = type(argument)
    viewer = _viewer_for(kind, argument)
    is_settled = viewer is not _no_array or issubclass(kind, np.generic)
    if is_settled or not may_show_memory(kind):
        _viewers[kind] = viewer
    return viewer(argument)


def may_show_memory(kind: type) -> bool:
    """Return whether objects of a class may be arrays by one of the protocols."""
    return any(hasattr(kind, name) for name in _PROTOCOLS)


def _viewer_for(kind: type, argument: object) -> Viewer:
    if hasattr(kind, "__gridstride_view__"):
        return _own_view
    if descends_from(kind, "dask", _COLLECTIONS):
        return _refuser("a Dask array", _DASK_REMEDY)
    adapter = _adapter_for(kind, argument)
    if adapter is None:
        return _no_array
    refusal = adapter.refusal(kind)
    return adapter.view if refusal is None else _refuser(with_article(kind.__name__), refusal)


def _adapter_for(kind: type, argument: object) -> Adapter | None:
    if issubclass(kind, np.generic | type):
        return None
    return next((adapter for adapter in _ADAPTERS if adapter.recognizes(kind, argument)), None)


def _own_view(argument: Any) -> ArrayView | None:
    seen: ArrayView | None = argument.__gridstride_view__()
    return seen


def _no_array(argument: Any) -> None:
    return None


def _refuser(what: str, reason: str) -> Viewer:
    def refuse(argument: Any) -> ArrayView | None:
        raise ArgumentTypeError(f"{what} {reason}", expected="an array in memory", got=what)

    return refuse
