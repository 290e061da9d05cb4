"""Find targets by name, by entry point, and by the arrays they run on."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import cast

from gridstride import config
from gridstride.errors import TargetUnavailable
from gridstride.targets.base import Target, TargetFactory

#: Built-in targets in the order in which they are preferred as default.
_BUILT_IN: dict[str, str] = {
    "cuda": "gridstride.targets.cuda:create",
    "cpu": "gridstride.targets.cpu:create",
    "null": "gridstride.targets.null:create",
}
_ENTRY_POINTS = "gridstride.targets"

_lock = threading.RLock()
_targets: dict[str, Target | TargetUnavailable] = {}
_chosen: contextvars.ContextVar[str | None] = contextvars.ContextVar("gridstride_target", default=None)
_automatic: list[str] = []


def names() -> tuple[str, ...]:
    """Return the names of all known targets, built in ones first."""
    return (*_BUILT_IN, *sorted(set(_entry_points()) - set(_BUILT_IN)))


def get(name: str) -> Target:
    """Return a target by name.

    Raises
    ------
    ValueError
        For an unknown name.
    TargetUnavailable
        With reason and remedy, where the target cannot be used on this machine.
    """
    found = _targets.get(name)
    if found is None:
        with _lock:
            found = _targets.get(name)
            if found is None:
                found = _targets[name] = _create(name)
    if isinstance(found, TargetUnavailable):
        raise TargetUnavailable(found.target, found.reason, found.remedy)
    return found


def default() -> Target:
    """Return the default target: `use_target`, else ``GRIDSTRIDE_TARGET``, else the first that answers."""
    chosen = _chosen.get() or config.text("GRIDSTRIDE_TARGET")
    if chosen:
        return get(chosen)
    if not _automatic:
        _automatic.append(_first_available())
    return get(_automatic[0])


def serving(device_type: int) -> Target:
    """Return the target for arrays of a DLPack device type: the default one where it serves them."""
    chosen = _chosen.get() or config.text("GRIDSTRIDE_TARGET")
    if chosen:
        preferred = get(chosen)
        if device_type in preferred.device_types:
            return preferred
    for name in names():
        try:
            target = get(name)
        except TargetUnavailable:
            continue
        if device_type in target.device_types:
            return target
    raise TypeError(
        f"no available target runs on arrays of DLPack device type {device_type}; "
        f"`gridstride info` says which targets answer and why the others do not"
    )


@contextmanager
def use_target(name: str) -> Iterator[Target]:
    """Make a target the default inside a ``with`` block, for the current thread or task.

    Parameters
    ----------
    name : str
        A name of `names`.

    Yields
    ------
    Target
    """
    target = get(name)
    token = _chosen.set(name)
    try:
        yield target
    finally:
        _chosen.reset(token)


def forget() -> None:
    """Forget which targets answered, so that the next use asks again."""
    with _lock:
        _targets.clear()
        _automatic.clear()


def _first_available() -> str:
    reasons = []
    for name in names():
        try:
            get(name)
        except TargetUnavailable as unavailable:
            reasons.append(str(unavailable))
            continue
        return name
    raise TargetUnavailable("any", "; ".join(reasons), "Run `gridstride info`.")


def _create(name: str) -> Target | TargetUnavailable:
    try:
        return _factory(name)()
    except TargetUnavailable as unavailable:
        return unavailable


def _factory(name: str) -> TargetFactory:
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        return cast(TargetFactory, getattr(import_module(module), attribute))
    entry_points = _entry_points()
    if name not in entry_points:
        raise ValueError(f"unknown target {name!r}; known are {', '.join(names())}")
    return entry_points[name]


def _entry_points() -> dict[str, TargetFactory]:
    from importlib.metadata import entry_points

    return {point.name: _Lazy(point) for point in entry_points(group=_ENTRY_POINTS)}


class _Lazy:
    def __init__(self, point: object) -> None:
        self.point = point

    def __call__(self) -> Target:
        return cast(Target, self.point.load()())  # type: ignore[attr-defined]
