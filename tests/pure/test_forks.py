"""Locks in forked children."""

import os
import threading
import warnings

import pytest

from gridstride import _forks


@pytest.mark.parametrize("make", [_forks.Lock, _forks.RLock, lambda: _forks.Locks().of("key")])
def test_a_lock_that_another_thread_holds_is_free_in_a_child(make):
    lock, taken, done = make(), threading.Event(), threading.Event()

    def hold():
        with lock:
            taken.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        child = os.fork()
    if child == 0:
        os._exit(0 if lock.acquire(timeout=10) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not lock.acquire(blocking=False)
    done.set()
    holder.join()
    assert lock.acquire(blocking=False)


def test_each_key_has_one_lock():
    locks = _forks.Locks()
    assert locks.of("a") is locks.of("a")
    assert locks.of("a") is not locks.of("b")
    with locks.of("a"), locks.of("a"), locks.of("b"):
        pass
