"""Find what NVIDIA ships: libraries, headers and nvcc, in wheels or in a toolkit."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_LIBRARY_FOLDERS = ("lib64", "lib", "bin")
_INCLUDE_FOLDERS = ("include", "include/cccl")
#: A header that shows that a folder holds the runtime's headers, and one for the C++ core libraries.
_RUNTIME_HEADER = "cuda_fp16.h"
_CORE_HEADER = "cuda/std/type_traits"
#: Headers whose text changes with the version of everything beside them.
_VERSION_HEADERS = ("cuda_runtime_api.h", "cuda/std/__cccl/version.h", "cuda/std/detail/__config")


def library_files(name: str) -> list[Path]:
    """Return the files of a shared library (``libnvrtc.so``), those preferred first.

    Wheels come before toolkits; in one folder, newer major versions before older ones.
    """
    pattern = re.compile(re.escape(name) + r"\.(\d+)")
    found: list[Path] = []
    for root in _roots():
        for folder in _LIBRARY_FOLDERS:
            matches = [
                (int(match[1]), file)
                for file in _list(root / folder)
                if (match := pattern.fullmatch(file.name))
            ]
            found += [file for _, file in sorted(matches, reverse=True)]
    return found


@cache
def include_folders() -> tuple[Path, ...]:
    """Return the folders with the runtime's headers and the C++ core libraries; () if there are none."""
    folders: list[Path] = []
    for header in (_RUNTIME_HEADER, _CORE_HEADER):
        candidates = (root / folder for root in _roots() for folder in _INCLUDE_FOLDERS)
        found = next((folder for folder in candidates if (folder / header).is_file()), None)
        if found is not None and found not in folders:
            folders.append(found)
    return tuple(folders)


@cache
def version_headers() -> tuple[Path, ...]:
    """Return the files whose content stands for the versions of all of NVIDIA's headers."""
    files = (folder / header for folder in include_folders() for header in _VERSION_HEADERS)
    return tuple(file for file in files if file.is_file())


def nvcc() -> Path | None:
    """Return NVIDIA's offline compiler, or None."""
    return program("nvcc")


def program(name: str) -> Path | None:
    """Return one of NVIDIA's programs by its name, or None."""
    folders = [root / "bin" for root in _environment_roots()]
    folders += map(Path, os.get_exec_path())
    folders += (root / "bin" for root in _roots())
    return next((folder / name for folder in folders if os.access(folder / name, os.X_OK)), None)


def _roots() -> Iterator[Path]:
    yield from _wheel_roots()
    yield from _environment_roots()
    yield Path("/usr/local/cuda")


def _wheel_roots() -> Iterator[Path]:
    for entry in dict.fromkeys(sys.path):
        yield from sorted(_list(Path(entry or ".") / "nvidia"), reverse=True)


def _environment_roots() -> Iterator[Path]:
    for variable in ("CUDA_PATH", "CUDA_HOME"):
        value = os.environ.get(variable)
        if value:
            yield Path(value)


def _list(folder: Path) -> list[Path]:
    try:
        return [Path(entry.path) for entry in os.scandir(folder)]
    except OSError:
        return []
