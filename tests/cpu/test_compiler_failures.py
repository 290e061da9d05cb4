"""Compilers that crash, hang, vanish, talk too much or lie: complete errors, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gridstride.errors import CompileError
from gridstride.targets.cpu import calling, compiler, library, toolchain

from .conftest import MakeProgram

TEXT = 'extern "C" __global__ void k(int* x) { x[0] = 1; }'


@pytest.fixture
def fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_program: MakeProgram):  # type: ignore[no-untyped-def]
    """A function that compiles with a shell script as the compiler and returns the error."""
    monkeypatch.setattr(compiler, "_build_runtime_quietly", lambda: None)
    monkeypatch.setenv("GRIDSTRIDE_CACHE_DIR", str(tmp_path / "cache"))
    script = tmp_path / "compiler"

    def compile_with(body: str, *, vanishes: bool = False) -> CompileError:
        script.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "g++ (Fake) 1" && exit\n{body}\n')
        script.chmod(0o755)
        monkeypatch.setenv("GRIDSTRIDE_CXX", str(script))
        toolchain._find.cache_clear()
        toolchain.find_toolchain()
        if vanishes:
            script.unlink()
        with pytest.raises(CompileError) as caught:
            compiler.compile_program(make_program(TEXT, "k"))
        assert (caught.value.name, caught.value.source) == ("test", TEXT)
        assert str(script) in caught.value.command
        return caught.value

    yield compile_with
    toolchain._find.cache_clear()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("kill -SEGV $$", "ended by signal 11 (SIGSEGV)"),
        ("echo 'out of luck' >&2; kill -KILL $$", "ended by signal 9 (SIGKILL)\nout of luck"),
        (
            "echo 'x.cpp:1:1: internal compiler error: Aborted'; exit 4",
            "failed on the program\nx.cpp:1:1: internal",
        ),
        ("exit 1", "g++ (Fake) 1 failed on the program"),
        (
            "echo '<requested names>:2:1: fatal error: closing program.d: No space left on device'; exit 1",
            "there is no room for what the compiler writes",
        ),
        ("printf 'caf\\351 \\377\\n'; exit 1", "caf\ufffd \ufffd"),
        ("exit 0", "reported success and wrote no kernel.so"),
        ("touch kernel.so program.d", "no kernel library"),
        ("echo text > kernel.so; touch program.d", "no kernel library"),
        ("echo 'int x;' | g++ -x c++ -shared -fPIC - -o kernel.so; touch program.d", "lacks a symbol"),
    ],
)
def test_compilers_that_fail(fail, body: str, words: str) -> None:  # type: ignore[no-untyped-def]
    assert words in str(fail(body))


def test_a_compiler_that_vanished_is_named(fail) -> None:  # type: ignore[no-untyped-def]
    assert "cannot be started" in str(fail("exit 0", vanishes=True))


def test_a_huge_log_is_cut(fail, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(calling, "LOG_LIMIT", 100_000)
    error = fail("yes 'a long line of the log' | head -n 1000000; exit 1")
    assert 100_000 <= len(error.log) < 101_000
    assert "cut after" in error.log
    assert len(str(error)) < 10_000


def test_what_holds_the_output_open_keeps_nobody_waiting(
    fail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # type: ignore[no-untyped-def]
    """A process that left the compiler's group is not ended with it, and its output is not waited for."""
    monkeypatch.setattr(toolchain, "TIME_LIMIT", 1.0)
    start = time.monotonic()
    error = fail(f"setsid sh -c 'echo $$ > {tmp_path}/escaped; exec sleep 120' &\nsleep 120")
    assert "ended after 1 seconds" in str(error)
    assert time.monotonic() - start < 60
    os.kill(int((tmp_path / "escaped").read_text()), signal.SIGKILL)


def test_a_server_that_a_compiler_leaves_behind_is_not_waited_for(tmp_path: Path) -> None:
    """It holds the compiler's output open, as those of compiler caches may."""
    script = f"sleep 120 & echo $! > {tmp_path}/server; echo what it says; exit 3"
    start = time.monotonic()
    done = calling.call(["sh", "-c", script], tmp_path, os.environ, 100)
    assert time.monotonic() - start < 60
    assert (done.returncode, done.stdout) == (3, "what it says\n")
    os.kill(int((tmp_path / "server").read_text()), signal.SIGKILL)


def test_output_is_read_where_the_system_tells_no_process_by_a_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    done = calling.call(["sh", "-c", "echo what it says; exit 3"], tmp_path, os.environ, 100)
    assert (done.returncode, done.stdout) == (3, "what it says\n")


@pytest.mark.parametrize("how", ["no PATH", "no folder"])
def test_kernels_are_compiled_in_poor_surroundings(tmp_path: Path, how: str) -> None:
    program = f"""
import os
import numpy as np
import gridstride as gs
if {how!r} == "no folder":
    os.rmdir(os.getcwd())
x = np.zeros(1, np.int32)
gs.RawKernel({TEXT!r}, "k")((1,), (1,), (x,))
print(x[0])
"""
    (tmp_path / "folder").mkdir()
    environment = {**os.environ, "GRIDSTRIDE_CACHE_DIR": str(tmp_path / "cache"), "GRIDSTRIDE_TARGET": "cpu"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(os.path.isabs, sys.path))
    if how == "no PATH":
        del environment["PATH"]
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, cwd=tmp_path / "folder",
        env=environment,
    )  # fmt: skip
    assert done.stdout == "1\n", done.stderr


def test_an_interrupt_ends_the_compiler(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(120)"]

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calling.call(command, tmp_path, os.environ, 100, interrupt)
    found = subprocess.run(["ps", "-eo", "args"], check=False, capture_output=True, text=True)
    assert "import time; time.sleep(120)" not in found.stdout


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_compiler_ends_with_the_process(tmp_path: Path, how: signal.Signals) -> None:
    """So does what it started, which is what takes the time."""
    script = f"sleep 120 & echo $$ $! > {tmp_path}/started; mv {tmp_path}/started {tmp_path}/running; wait"
    program = f"""
import os
from pathlib import Path
from gridstride.targets.cpu import calling
calling.call(["sh", "-c", {script!r}], Path({str(tmp_path)!r}), os.environ, 100)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(os.path.isabs, sys.path))}
    with subprocess.Popen([sys.executable, "-c", program], env=environment) as process:
        running = tmp_path / "running"
        wait_until(running.exists)
        process.send_signal(how)
    started = running.read_text().split()
    assert len(started) == 2
    wait_until(lambda: not any(map(is_running, started)))


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_running(process: str) -> bool:
    """Return whether there is such a process, and it has not ended."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", process], check=False, capture_output=True, text=True)
    return done.stdout.strip()[:1] not in ("", "Z")


@pytest.mark.parametrize(
    ("body", "words"), [("kill -KILL $$", "SIGKILL"), ("exit 0", "no output"), ("echo why; exit 1", "why")]
)
def test_a_runtime_that_cannot_be_built(tmp_path: Path, body: str, words: str) -> None:
    script = tmp_path / "compiler"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    with pytest.raises(CompileError, match=words) as caught:
        library.build_runtime(toolchain.Toolchain((str(script),), "gcc", "g++ (Fake) 1"))
    assert str(script) in caught.value.command


def test_what_the_environment_says_to_compilers_is_not_heard(
    make_program: MakeProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "unseen.h").write_text("")
    for name in ("CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH"):
        monkeypatch.setenv(name, str(tmp_path))
    with pytest.raises(CompileError, match=r"unseen\.h"):
        compiler.compile_program(make_program("#include <unseen.h>\n" + TEXT, "k"))


def test_a_header_that_may_have_changed_meanwhile_is_not_trusted(
    make_program: MakeProgram, tmp_path: Path
) -> None:
    header = tmp_path / "value.h"
    header.write_text("#define VALUE 1\n")
    program = make_program(
        '#include "value.h"\n' + TEXT, "k", options=("-I", str(tmp_path)), constants=("VALUE",)
    )
    assert compiler.compile_program(program).dependencies
    later = time.time() + 100
    os.utime(header, (later, later))
    assert compiler.compile_program(program).dependencies is None
