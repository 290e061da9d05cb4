"""Choose the array library that names are forwarded to.

A block's choice (`use_backend`) comes first, then the process's (`set_backend`), then
``GRIDSTRIDE_BACKEND``, then CuPy where it imports and a device answers, then NumPy. Nothing is
imported before the first use.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType

from gridstride import arrays, config

_BACKENDS = ("numpy", "cupy")
_HOST, _DEVICE = _BACKENDS

_in_block: ContextVar[str | None] = ContextVar("gridstride_backend", default=None)
_of_process: str | None = None
#: By the text of ``GRIDSTRIDE_BACKEND``.
_defaults: dict[str, str] = {}


def set_backend(backend: str | None, strict: bool = False) -> None:
    """Choose the array library for the process.

    Parameters
    ----------
    backend : str or None
        ``"numpy"`` or ``"cupy"``, in any case; None goes back to the automatic choice.
    strict : bool
        Whether CuPy that cannot be used is an error; else a warning says so and NumPy is chosen.

    Raises
    ------
    ValueError
        For another name; the choice stays what it was.
    ImportError
        With `strict`, where CuPy is not installed or sees no device.
    """
    global _of_process
    _of_process = None if backend is None else _usable(backend, "set_backend", strict)


def get_backend() -> str:
    """Return the name of the active array library: ``"numpy"`` or ``"cupy"``."""
    return _in_block.get() or _of_process or _default()


@contextmanager
def use_backend(backend: str, strict: bool = False) -> Iterator[ModuleType]:
    """Choose the array library inside a ``with`` block, for the calling thread or task.

    Parameters
    ----------
    backend : str
        ``"numpy"`` or ``"cupy"``, in any case.
    strict : bool
        See `set_backend`.

    Yields
    ------
    module
        The array library.

    Raises
    ------
    ValueError, ImportError
        As for `set_backend`.
    """
    token = _in_block.set(_usable(backend, "use_backend", strict))
    try:
        yield active_library()
    finally:
        _in_block.reset(token)


def active_library() -> ModuleType:
    """Return the module of the active array library."""
    return arrays.library_module(get_backend())


def _default() -> str:
    named = config.text("GRIDSTRIDE_BACKEND")
    found = _defaults.get(named)
    if found is None:
        found = _usable(named, "GRIDSTRIDE_BACKEND", strict=False) if named else _automatic()
        _defaults[named] = found
    return found


def _automatic() -> str:
    return _HOST if _missing_device() else _DEVICE


def _usable(backend: str, asked_by: str, strict: bool) -> str:
    name = backend.strip().lower()
    if name not in _BACKENDS:
        raise ValueError(f"{asked_by}: {backend!r} is none of the array libraries {', '.join(_BACKENDS)}")
    missing = _missing_device() if name == _DEVICE else None
    if missing is None:
        return name
    message = f"{asked_by}: {name} cannot be used: {missing}"
    if strict:
        raise ImportError(message)
    warnings.warn(f"{message}; {_HOST} is used instead", RuntimeWarning, stacklevel=3)
    return _HOST


def _missing_device() -> str | None:
    """Return why CuPy cannot be used, or None."""
    try:
        cupy = arrays.library_module(_DEVICE)
    except ImportError as error:
        return f"it cannot be imported ({error})"
    return None if cupy.is_available() else "no CUDA device answers"
