"""Threads that are interrupted so that others get on, wherever they are: the runtime asks for it by a signal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import gridstride as gs

#: What the runtime pokes its threads with.
POKE = signal.SIGURG
BLOCKS, THREADS = 10000, 64
#: `more` keeps the kernel from running as loops: each thread is interrupted for itself.
ONCE = r"""
extern "C" __global__ void once(int* counts) {
    volatile int more = 1;
    while (more) {
        counts[blockIdx.x * blockDim.x + threadIdx.x] += 1;
        more = 0;
    }
    WAIT
}
"""


@contextmanager
def interrupted_again_and_again() -> Iterator[None]:
    """Poke the thread that calls this, many times in the time that a launch takes."""
    thread, is_done = threading.get_ident(), threading.Event()

    def poke() -> None:
        while not is_done.wait(0.0001):
            signal.pthread_kill(thread, POKE)

    poking = threading.Thread(target=poke)
    poking.start()
    try:
        yield
    finally:
        is_done.set()
        poking.join()


@pytest.mark.parametrize("wait", ["", "__syncthreads();", "__syncwarp();"])
def test_every_thread_runs_once_wherever_it_is_interrupted(
    wait: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRIDSTRIDE_TARGET", "cpu")
    kernel = gs.RawKernel(ONCE.replace("WAIT", wait), "once")
    counts = np.zeros(BLOCKS * THREADS, np.int32)
    kernel((BLOCKS,), (THREADS,), (counts,))
    with interrupted_again_and_again():
        for launch in range(2, 40):
            kernel((BLOCKS,), (THREADS,), (counts,))
            np.testing.assert_array_equal(counts, launch)
