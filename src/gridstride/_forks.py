"""Locks that a forked child finds free, whoever held them when it was made, and locks that a fork waits for."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable
from typing import Any
from weakref import WeakSet


def Lock() -> threading.Lock:  # noqa: N802 - named like what it stands for
    """Return a lock that is free in every forked child."""
    return _renewed(threading.Lock())  # type: ignore[no-any-return]


def RLock() -> threading.RLock:  # noqa: N802
    """Return a reentrant lock that is free in every forked child."""
    return _renewed(threading.RLock())  # type: ignore[no-any-return]


def awaited_lock() -> threading.RLock:
    """Return a reentrant lock that a fork waits for, whatever thread holds it."""
    lock = threading.RLock()
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


class Locks:
    """Give each key a reentrant lock of its own, free in every forked child and kept for good."""

    def __init__(self) -> None:
        self._of: dict[object, threading.RLock] = {}
        _tables.append(self)

    def of(self, key: Hashable) -> threading.RLock:
        """Return the lock of a key."""
        return self._of.get(key) or self._of.setdefault(key, _RLock())

    def _renew(self) -> None:
        for lock in self._of.values():
            lock._at_fork_reinit()  # type: ignore[attr-defined]


_RLock = type(threading.RLock())
_locks: WeakSet[Any] = WeakSet()
_tables: list[Locks] = []


def _renewed(lock: Any) -> Any:
    _locks.add(lock)
    return lock


def _renew_all() -> None:
    # Python's own modules renew theirs by the same method. The thread that held a lock is not in the child.
    for lock in _locks:
        lock._at_fork_reinit()
    for table in _tables:
        table._renew()


os.register_at_fork(after_in_child=_renew_all)

#: Held while a process is started. A child that is forked meanwhile would keep the ends of its pipes open, and whoever
#: reads what the process says would wait for the child's end too.
starting = awaited_lock()
