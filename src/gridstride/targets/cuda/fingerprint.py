"""What shapes object code besides the program, told without opening the compiler."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from gridstride import config
from gridstride.targets.base import Program
from gridstride.targets.cuda.nvrtc import Nvrtc

#: The package's device headers; `includes` says in which order they are searched.
HEADER_ROOTS = (Path(__file__).resolve().parents[2] / "include", Path(__file__).resolve().parent / "include")
#: Raised when the same program would be compiled to something else.
_VERSION = 1


def fingerprint(nvrtc: Nvrtc, program: Program, arch: str) -> str:
    """Return the fingerprint of a compilation: compiler, arch, headers of ours, debug mode."""
    return f"cuda {_VERSION}; {_compiler_identity(nvrtc, program)}; {arch}; {own_headers()}; debug {config.debug()}"


@cache
def own_headers() -> str:
    """Return a digest over names, sizes and times of the package's headers, which are too many to read."""
    stamps = sorted(stamp for root in HEADER_ROOTS for stamp in _stamps(str(root)))
    return hashlib.sha256("\n".join(stamps).encode()).hexdigest()


def _compiler_identity(nvrtc: Nvrtc, program: Program) -> str:
    if program.options.compiler != "nvcc":
        return nvrtc.identity
    from gridstride.targets.cuda import nvcc

    return nvcc.find().identity()


def _stamps(folder: str) -> Iterator[str]:
    for entry in os.scandir(folder):
        if entry.is_dir():
            yield from _stamps(entry.path)
        else:
            status = entry.stat()
            yield f"{entry.path} {status.st_size} {status.st_mtime_ns}"
