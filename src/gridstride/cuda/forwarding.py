"""Forward the low-level namespaces to NVIDIA's Python bindings and to CuPy, which are imported at first use."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from gridstride import arrays
from gridstride.errors import TargetUnavailable


def bindings(name: str) -> ModuleType:
    """Return a module of ``cuda.bindings``.

    Raises
    ------
    TargetUnavailable
        Where it is not installed.
    """
    try:
        return import_module(f"cuda.bindings.{name}")
    except ImportError as error:
        raise TargetUnavailable(
            "cuda", f"cuda.bindings.{name} cannot be imported ({error})", "Install gridstride[cuda13]."
        ) from error


def forwarder(name: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a module that stands for one of ``cuda.bindings``."""

    def look_up(attribute: str) -> Any:
        if attribute.startswith("__"):  # the import system asks for some
            raise AttributeError(attribute)
        return getattr(bindings(name), attribute)

    def list_names() -> list[str]:
        try:
            return dir(bindings(name))
        except TargetUnavailable:
            return []

    return look_up, list_names


class CuPyNamespace(ModuleType):
    """Stand for a low-level namespace of CuPy.

    Looking up a name raises `TargetUnavailable` where CuPy is not installed.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"gridstride.cuda.{name}", f"The names of ``cupy.cuda.{name}``.")
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # the import system asks for some
            raise AttributeError(attribute)
        try:
            cupy = arrays.library_module("cupy")
        except ImportError as error:
            raise TargetUnavailable(
                "cuda", f"{self._name} is CuPy's, and CuPy cannot be imported ({error})", "Install CuPy."
            ) from error
        return getattr(getattr(cupy.cuda, self._name), attribute)
