"""Call a compiler as a process that can neither hang nor fill the memory of this one."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from gridstride import _forks

#: Bytes of a compiler's output that are kept.
LOG_LIMIT = 4 << 20
#: What shapes a compiler's output from outside, and is no part of any cache key.
_INFLUENCES = frozenset(
    {
        "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH", "CCC_OVERRIDE_OPTIONS",
        "DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "GCC_COMPARE_DEBUG",
    }
)  # fmt: skip


_SHELL = "/bin/sh"
#: Runs a command that ends with all of its group when the standard input closes: with this process, however that ends.
#: What the shell itself says, such as that a command was killed, is none of the output.
_ENDING_WITH_US = """\
exec 3<&0 </dev/null 4>&2 2>/dev/null
(read -r _ <&3 || kill -s KILL 0) >/dev/null 4>&- &
(exec "$@" 2>&4 3<&- 4>&-)
code=$?
kill -s KILL $!
wait $!
[ $code -le 128 ] || kill -$((code - 128)) $$
exit $code
"""
#: What a shell says of programs that it cannot run, or find.
_NOT_STARTED = (126, 127)


class CompilerFailed(Exception):
    """Report a compiler that did not come to an answer.

    Attributes
    ----------
    command : str
        The call.
    log : str
        What it printed before.
    """

    def __init__(self, reason: str, command: Sequence[str], log: str = "") -> None:
        import shlex

        super().__init__(reason)
        self.command = shlex.join(command)
        self.log = log


def call(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    time_limit: float,
    meanwhile: Callable[[], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder; what it started ends at the latest after `time_limit` seconds, or with this process.

    `meanwhile` is called while it runs.

    Raises
    ------
    CompilerFailed
        It could not be started, did not end in time, or was ended by a signal.
    """
    try:
        with _forks.starting:
            process = subprocess.Popen(
                _ending_with_us(command), cwd=folder, env=_without_influences(environment), stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
    except (OSError, ValueError) as error:  # ValueError: a NUL in an argument
        raise CompilerFailed(f"the compiler cannot be started: {error}", command) from error
    assert process.stdin is not None
    assert process.stdout is not None
    output = bytearray()
    try:
        with process.stdin, process.stdout:
            deadline = time.monotonic() + time_limit
            if meanwhile is not None:
                meanwhile()
            _read(process, output, deadline)
            process.wait(max(deadline - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        _end(process)
        reason = f"the compiler was ended after {time_limit:g} seconds"
        raise CompilerFailed(reason, command, _text(output)) from None
    except BaseException:
        _end(process)
        raise
    if process.returncode < 0:
        reason = f"the compiler was ended by signal {_signal_name(-process.returncode)}"
        raise CompilerFailed(reason, command, _text(output))
    if process.returncode in _NOT_STARTED:
        raise CompilerFailed("the compiler cannot be started", command, _text(output))
    return subprocess.CompletedProcess(list(command), process.returncode, _text(output), "")


def _ending_with_us(command: Sequence[str]) -> list[str]:
    shell = [_SHELL, "-c", _ENDING_WITH_US, "sh"] if os.access(_SHELL, os.X_OK) else []
    return [*shell, *command]


def _read(process: subprocess.Popen[bytes], output: bytearray, deadline: float) -> None:
    """Read what a process prints until it ends, and keep what that begins with; TimeoutExpired at the deadline.

    Something that it started, such as the server of a compiler cache, may hold the stream for longer.
    """
    assert process.stdout is not None
    stream = process.stdout.fileno()
    with _end_of(process) as end:
        waiting = select.poll()
        for watched in (stream, *end):
            waiting.register(watched, select.POLLIN)
        while True:
            left = deadline - time.monotonic()
            ready = [descriptor for descriptor, _ in waiting.poll(left * 1000)] if left > 0 else []
            if not ready:
                raise subprocess.TimeoutExpired("", 0)
            chunk = os.read(stream, 1 << 16) if stream in ready else b""
            if not chunk:
                return
            output += chunk[: LOG_LIMIT + 1 - len(output)]


@contextmanager
def _end_of(process: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Yield a descriptor that can be read when a process has ended, where the system has such."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (OSError, AttributeError):  # of a system that has none
        yield []
        return
    try:
        yield [descriptor]
    finally:
        os.close(descriptor)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process with all of its group; its output is not waited for, others may hold it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _text(output: bytearray) -> str:
    text = output[:LOG_LIMIT].decode(errors="replace")
    return text if len(output) <= LOG_LIMIT else f"{text}\n... (cut after {LOG_LIMIT >> 20} MiB)\n"


def _without_influences(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in _INFLUENCES}


def _signal_name(number: int) -> str:
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:
        return str(number)
