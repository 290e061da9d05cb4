"""Look up names in the active array library, with the small differences between libraries evened out."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gridstride.namespace.backend import active_library, get_backend

#: Names that a library lacks or spells differently, by library: the module of ours that stands in.
COMPATIBILITIES: dict[str, dict[str, str]] = {
    "numpy": {"random": "gridstride.namespace.numpy_random"},
    "cupy": {"random": "gridstride.namespace.cupy_random"},
}


def forward(name: str) -> Any:
    """Return what a name means in the active array library.

    Raises
    ------
    AttributeError
        Where the library has no such name.
    """
    backend = get_backend()
    stand_in = COMPATIBILITIES[backend].get(name)
    if stand_in is not None:
        return import_module(stand_in)
    try:
        return getattr(active_library(), name)
    except AttributeError:
        raise AttributeError(f"neither gridstride nor {backend} has an attribute {name!r}") from None


def forwarded_names() -> list[str]:
    """Return the public names that `forward` finds, sorted."""
    names = {*dir(active_library()), *COMPATIBILITIES[get_backend()]}
    return sorted(name for name in names if not name.startswith("_"))
