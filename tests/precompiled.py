"""Headers of ours, compiled once for all kernels that begin with the same of them, while they are tested with GCC.

What is compiled stays the same: a text that the compiler does not take so is given to it as users' are.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from hashlib import sha256
from pathlib import Path
from typing import Any

from gridstride.targets.cpu.toolchain import Toolchain

_Run = Callable[..., subprocess.CompletedProcess[str]]

#: How often a process meets the same headers and flags until it compiles them: that takes as long as some kernels.
_OFTEN = 4
_SOURCE = "program.cpp"
#: Those of the CPU target: texts for blocks of threads take others behind them, too few of them the same ones.
_HEADERS = re.compile(r"(?:#include <gridstride_cpu/[^>\n]*>\n+)+")
#: The last of those with which the texts of all kernels begin.
_LAST_OF_ALL = "/entry.h>"
#: What is said of the way to a header, which the compiler knows otherwise, or of what it has compiled.
_NAMES_HEADERS = re.compile("In file included from|PCH|internal compiler error")


def precompile(folder: Path) -> None:
    """Let the CPU target's compiler keep compiled headers in a folder, also for other processes."""
    folder.mkdir(exist_ok=True)
    Toolchain.run = _with_headers_of(folder, Toolchain.run)  # type: ignore[method-assign]


def _with_headers_of(kept: Path, run: _Run) -> _Run:
    met: Counter[str] = Counter()

    @wraps(run)
    def with_headers(compiler: Toolchain, arguments: Sequence[str], folder: Path, *rest: Any) -> Any:
        for headers in _beginnings(_first_headers(compiler, arguments, folder)):
            made = kept / _key(compiler, arguments, folder, headers)
            met[made.name] += 1
            if met[made.name] == _OFTEN and not made.exists():
                _make(made, headers, lambda *call: run(compiler, *call), _flags(arguments, folder))
            if made.exists():
                break
        else:
            return run(compiler, arguments, folder, *rest)
        with _shown(made, folder / "headers", headers):
            done = run(compiler, arguments, folder, *rest)
        if _NAMES_HEADERS.search(done.stdout):
            return run(compiler, arguments, folder)
        return done

    return with_headers


def _beginnings(headers: str) -> Iterator[str]:
    """Yield the lines that include headers, then fewer of them, down to those that all kernels have."""
    lines = headers.splitlines(keepends=True)
    while any(_LAST_OF_ALL in line for line in lines):
        yield "".join(lines)
        lines.pop()


@contextmanager
def _shown(made: Path, folder: Path, headers: str) -> Iterator[None]:
    """Put compiled headers where a compiler finds them instead of the first of them."""
    place = folder / f"{_names(headers)[0]}.gch"
    place.parent.mkdir(parents=True)
    place.symlink_to(made)
    try:
        yield
    finally:
        shutil.rmtree(folder)


def _first_headers(compiler: Toolchain, arguments: Sequence[str], folder: Path) -> str:
    """Return the lines a text begins with that include headers of ours; none where they are not to be compiled."""
    takes = compiler.kind == "gcc" and _SOURCE in arguments and "-E" not in arguments
    reads_others = "-iquote" in arguments or any(flag.startswith("-isystem") for flag in arguments)
    if not takes or reads_others or (folder / "headers").exists():
        return ""
    found = _HEADERS.match((folder / _SOURCE).read_text(errors="replace"))
    return found[0] if found else ""


def _key(compiler: Toolchain, arguments: Sequence[str], folder: Path, headers: str) -> str:
    return sha256(repr((compiler, _flags(arguments, folder), _names(headers))).encode()).hexdigest()


def _flags(arguments: Sequence[str], folder: Path) -> list[str]:
    """Return the flags that both a text and its headers are compiled with."""
    flags = arguments[: arguments.index(_SOURCE)]
    return [flag for flag in flags if str(folder) not in flag and flag not in ("-pipe", "-x", "c++")]


def _names(headers: str) -> list[str]:
    return re.findall(r"<(.*)>", headers)


def _make(made: Path, headers: str, run: Callable[[Sequence[str], Path], Any], flags: Sequence[str]) -> None:
    """Compile headers, and give the result its name when it is there as a whole."""
    with tempfile.TemporaryDirectory(dir=made.parent) as name:
        folder = Path(name)
        (folder / "headers.h").write_text(headers)
        done = run([*flags, "-x", "c++-header", "headers.h", "-o", "headers.h.gch"], folder)
        if done.returncode == 0:
            os.replace(folder / "headers.h.gch", made)
