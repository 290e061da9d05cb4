"""Locks in forked children."""

import os
import subprocess
import threading
import warnings

import pytest

from gridstride import _forks
from gridstride.targets.cpu.calling import call


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


def test_a_fork_waits_until_a_process_is_started(monkeypatch, tmp_path):
    """A child that had the ends of its pipes would keep whoever reads from the process waiting."""
    opened, told, outputs = threading.Event(), threading.Event(), []
    execute = subprocess.Popen._execute_child

    def execute_late(self, *args):
        opened.set()
        told.wait(0.3)  # let the other thread fork, if nothing keeps it from that
        execute(self, *args)

    monkeypatch.setattr(subprocess.Popen, "_execute_child", execute_late)
    work = ["sh", "-c", "echo done"]
    caller = threading.Thread(
        target=lambda: outputs.append(call(work, tmp_path, os.environ, time_limit=60).stdout)
    )
    caller.start()
    opened.wait()
    alive, end = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        child = os.fork()
    if child == 0:
        os.close(end)
        os.read(alive, 1)  # until the parent lets go
        os._exit(0)
    caller.join(5)
    is_waiting = caller.is_alive()
    os.close(end)
    os.waitpid(child, 0)
    caller.join()
    assert not is_waiting
    assert outputs == ["done\n"]
