"""Remember what functions returned, per device where asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from gridstride import _forks
from gridstride.targets import registry

P = ParamSpec("P")
R = TypeVar("R")

_caches: list[dict[Any, Any]] = []
_lock = _forks.Lock()


def memoize(for_each_device: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a decorator that keeps a function's results, one for each distinct call.

    The first call with given arguments runs the function, also when several threads make it at
    once; the others wait for it. Arguments must be hashable.

    Parameters
    ----------
    for_each_device : bool
        Keep results apart by the default target's current device.

    Examples
    --------
    >>> import gridstride as gs
    >>> @gs.memoize(for_each_device=True)
    ... def table(n):
    ...     return gs.arange(n)
    >>> table(3) is table(3)
    True
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        results: dict[Any, R] = {}
        lock = _forks.RLock()
        with _lock:
            _caches.append(results)

        @functools.wraps(function)
        def remembered(*args: P.args, **kwargs: P.kwargs) -> R:
            key = (args, tuple(sorted(kwargs.items())), _device() if for_each_device else None)
            if key not in results:
                with lock:
                    if key not in results:
                        results[key] = function(*args, **kwargs)
            return results[key]

        return remembered

    return decorate


def clear_memo() -> None:
    """Forget everything that functions decorated with `memoize` returned."""
    with _lock:
        for results in _caches:
            results.clear()


def _device() -> tuple[str, int]:
    target = registry.default()
    return target.name, target.current_device()
