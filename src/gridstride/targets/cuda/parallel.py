"""Compile many programs at once. NVRTC makes threads wait for each other, so this takes processes."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from gridstride import _forks
from gridstride.errors import CompileError, GridstrideError
from gridstride.targets.base import ObjectCode, Program
from gridstride.targets.cuda.compiler import Compiler
from gridstride.targets.cuda.nvrtc import Nvrtc

Result = ObjectCode | GridstrideError
_WORKER = "from gridstride.targets.cuda.parallel import serve; serve()"
_SOURCE_ROOT = Path(__file__).resolve().parents[3]


def compile_many(
    compiler: Compiler, programs: Sequence[Program], arch: str, jobs: int | None = None
) -> list[Result]:
    """Compile programs in parallel processes.

    Parameters
    ----------
    compiler : Compiler
    programs : sequence of Program
    arch : str
    jobs : int, optional
        Number of processes; the cores this process may use by default.

    Returns
    -------
    list of ObjectCode or GridstrideError
        In the order of the programs: what was compiled, or why it was not. One refused program
        does not stop the others, nor one whose process ends.
    """
    jobs = min(jobs or len(os.sched_getaffinity(0)), len(programs))
    if jobs <= 1:
        return [_attempt(compiler, program, arch) for program in programs]
    results: dict[int, Result] = {}
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for index in range(len(programs)):
        waiting.put(index)

    def work() -> None:
        worker = None
        for index in _taken(waiting):
            worker = worker or _Worker(compiler, arch)
            results[index] = worker.compile(programs[index])
            if worker.has_ended:
                worker.end()
                worker = None
        if worker is not None:
            worker.end()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results.get(index, CompileError("the compiling process ended")) for index in range(len(programs))]


def serve() -> None:
    """Answer the programs that arrive on standard input, until it ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing that a library prints gets between the answers
    path, arch = pickle.load(sys.stdin.buffer)
    compiler = Compiler(Nvrtc(path))
    while True:
        try:
            program = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(_attempt(compiler, program, arch), answers)
        answers.flush()


class _Worker:
    """Own a process that compiles."""

    def __init__(self, compiler: Compiler, arch: str) -> None:
        path = os.pathsep.join(filter(None, [str(_SOURCE_ROOT), *sys.path]))
        self.has_ended = False
        with _forks.starting:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": path},
            )  # fmt: skip
        self._first: object = (compiler.nvrtc.path, arch)

    def end(self) -> None:
        """End the process; what it was asked for has been answered, or never will be."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # there may be words left for a process that is gone
                self._pipe(pipe).close()
        self._process.wait()

    def compile(self, program: Program) -> Result:
        try:
            if self._first is not None:
                self._send(self._first)
                self._first = None
            self._send(program)
            result: Result = pickle.load(self._pipe(self._process.stdout))
        except (OSError, EOFError, pickle.UnpicklingError) as error:  # also in the middle of an answer
            self.has_ended = True
            return CompileError(f"{program.name}: the compiling process ended ({error})", name=program.name)
        return result

    def _send(self, item: object) -> None:
        pipe = self._pipe(self._process.stdin)
        pickle.dump(item, pipe)
        pipe.flush()

    @staticmethod
    def _pipe(pipe: object) -> BinaryIO:
        assert pipe is not None
        return pipe  # type: ignore[return-value]


def _attempt(compiler: Compiler, program: Program, arch: str) -> Result:
    try:
        return compiler.compile(program, arch)
    except GridstrideError as error:
        return error


def _taken(waiting: queue.SimpleQueue[int]) -> Iterator[int]:
    while True:
        try:
            yield waiting.get_nowait()
        except queue.Empty:
            return
