"""Find targets by name, by entry point, and by the arrays they run on."""

from __future__ import annotations

import contextvars
import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, cast

from gridstride import _forks, _native, config
from gridstride.errors import GridstrideError, TargetUnavailable
from gridstride.targets.base import Listings, Target, TargetFactory

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: Built-in targets in the order in which they are preferred as default.
_BUILT_IN: dict[str, str] = {
    "cuda": "gridstride.targets.cuda:create",
    "cpu": "gridstride.targets.cpu:create",
    "null": "gridstride.targets.null:create",
}
#: Never chosen without being named: it runs nothing.
IDLE = "null"
_BY_NAME_ONLY = frozenset({IDLE})
#: Libraries of drivers, and a function that returns 0 once somebody initialized the driver.
_DRIVERS: dict[str, tuple[str, str]] = {"cuda": ("libcuda.so.1", "cuCtxGetCurrent")}
_ENTRY_POINTS = "gridstride.targets"

_lock = _forks.RLock()
_targets: dict[str, Target | TargetUnavailable] = {}
_chosen: contextvars.ContextVar[str | None] = contextvars.ContextVar("gridstride_target", default=None)
_environment = config.teller("GRIDSTRIDE_TARGET")
#: By what the block or the environment says and by the device type of arrays; None: the default target.
_found: dict[tuple[object, int | None], Target] = {}


def names() -> tuple[str, ...]:
    """Return the names of all known targets, built in ones first."""
    return (*_BUILT_IN, *(name for name in _entry_points() if name not in _BUILT_IN))


def candidates() -> Iterator[str]:
    """Yield the names of the targets that run what they are given, in the order of preference."""
    for name in _BUILT_IN:
        if name not in _BY_NAME_ONLY:
            yield name
    for name in _entry_points():  # asked for last: reading the entry points costs an import
        if name not in _BUILT_IN:
            yield name


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


def listings(name: str) -> Listings:
    """Return what shows programs as a target compiles them; the target itself need not be available.

    Raises
    ------
    NotImplementedError
        The target shows none.
    TargetUnavailable
        Its compiler cannot be used on this machine.
    """
    module = _factory_module(name)
    try:
        found = import_module(f"{module}.listings")
    except ModuleNotFoundError:
        raise NotImplementedError(f"target {name!r} does not show what programs become") from None
    return cast(Listings, found.create())


def created() -> tuple[Target, ...]:
    """Return the targets that were asked for so far and can be used."""
    return tuple(target for target in _targets.values() if not isinstance(target, TargetUnavailable))


@_native.shortcut
def default() -> Target:
    """Return the default target: `use_target`, else ``GRIDSTRIDE_TARGET``, else the first that answers."""
    key = (_chosen.get() or _environment(), None)
    return _found.get(key) or _remember(key, get(_named() or _first_available()))


def serving(device_type: int) -> Target:
    """Return the target for arrays of a DLPack device type: the default one where it serves them.

    Raises
    ------
    TargetUnavailable
        Where the target for such arrays cannot be used on this machine.
    TypeError
        Where no known target serves them.
    """
    key = (_chosen.get() or _environment(), device_type)
    return _found.get(key) or _remember(key, _find_server(_named(), device_type))


@contextmanager
def use_target(name: str) -> Iterator[Target]:
    """Make a target the default inside a ``with`` block, for the current thread or task.

    Parameters
    ----------
    name : str
        ``"cuda"``, ``"cpu"``, ``"null"`` (launches nothing), or that of an installed target.

    Yields
    ------
    Target

    Raises
    ------
    ValueError
        There is no such target.
    TargetUnavailable
        It cannot be used on this machine: the error says why, and what to do.
    """
    target = get(name)
    token = _chosen.set(name)
    _native.targets_chosen(+1)
    try:
        yield target
    finally:
        _native.targets_chosen(-1)
        _chosen.reset(token)


@contextmanager
def rehearsing(target: Target) -> Iterator[None]:
    """Make a target, ours or not, the default one inside a ``with`` block, for the current thread."""
    before = _targets.get(target.name)
    _targets[target.name] = target
    try:
        with use_target(target.name):
            yield
    finally:
        if before is None:
            del _targets[target.name]
        else:
            _targets[target.name] = before
        if before is not target:
            for key in [key for key, found in _found.items() if found is target]:
                del _found[key]


def anticipate() -> list[Target]:
    """Create the targets whose devices this process uses already; return one for each to rehearse launches on.

    The first launch then need not. Nothing is loaded or initialized for it: a process that does not
    use a device stays free to fork.
    """
    rehearsals = []
    for name, (library, initialized) in _DRIVERS.items():
        try:
            driver = ctypes.CDLL(library, mode=os.RTLD_NOLOAD)
        except OSError:
            continue
        if driver[initialized](ctypes.byref(ctypes.c_void_p())) == 0:
            with suppress(GridstrideError, ValueError):  # a launch meets them again and reports them
                target = get(name)
                rehearsals.append(target.warm_up() or get(IDLE))
                for device_type in target.device_types:
                    serving(device_type)
    return rehearsals


def forget() -> None:
    """Forget which targets answered, so that the next use asks again."""
    with _lock:
        _targets.clear()
        _found.clear()
        _native.targets_forgotten()
        _entry_points.cache_clear()


def _named() -> str | None:
    return _chosen.get() or config.text("GRIDSTRIDE_TARGET") or None


def _remember(key: tuple[object, int | None], target: Target) -> Target:
    _found[key] = target
    return target


def _first_available() -> str:
    unavailable = []
    for name in candidates():
        try:
            get(name)
        except TargetUnavailable as error:
            unavailable.append(str(error))
            continue
        return name
    raise TargetUnavailable("any", "; ".join(unavailable), "Run `gridstride info`.")


def _find_server(chosen: str | None, device_type: int) -> Target:
    unavailable = None
    for name in chain((chosen,) if chosen else (), candidates()):
        try:
            target = get(name)
        except TargetUnavailable as error:
            unavailable = error
            continue
        if device_type in target.device_types:
            return target
    if unavailable is not None:
        raise unavailable
    raise TypeError(
        f"no target runs on arrays of DLPack device type {device_type}; known are {', '.join(names())}"
    )


def _create(name: str) -> Target | TargetUnavailable:
    try:
        return _factory(name)()
    except TargetUnavailable as unavailable:
        return unavailable


def _factory(name: str) -> TargetFactory:
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        return cast(TargetFactory, getattr(import_module(module), attribute))
    return cast(TargetFactory, _entry_point(name).load())


def _factory_module(name: str) -> str:
    return (_BUILT_IN[name] if name in _BUILT_IN else _entry_point(name).value).partition(":")[0].strip()


def _entry_point(name: str) -> EntryPoint:
    point = _entry_points().get(name)
    if point is None:
        raise ValueError(f"unknown target {name!r}; known are {', '.join(names())}")
    return point


@cache
def _entry_points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=_ENTRY_POINTS)}
