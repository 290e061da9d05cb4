"""Which headers a text needs, found without a preprocessor: NVRTC does not say what it read.

The walk is conservative. It follows every ``#include`` line, also those that a condition switches
off; a header that it cannot name (``#include MACRO``) makes the dependencies unknown.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

from gridstride._syntax import lexical
from gridstride.targets import toolkit
from gridstride.targets.base import Program
from gridstride.targets.cuda.fingerprint import HEADER_ROOTS

#: The device headers of gridstride, on every target and on this one.
DEVICE_FOLDERS = HEADER_ROOTS
#: Headers that NVRTC lacks and nvcc has: small standard headers, and names of the CUDA runtime's.
NVRTC_FOLDERS = (HEADER_ROOTS[0] / "std", HEADER_ROOTS[1] / "nvrtc")
#: Headers for where NVIDIA's own, which come first, are not installed.
FALLBACK_FOLDER = HEADER_ROOTS[0] / "fallback"
PRELUDE = "gridstride_cuda/prelude.h"

_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include(_next)?\b[ \t]*(<|\")?", re.MULTILINE)
#: Begins the names of CUDA's runtime, and of the macros by which a text can ask what there is of it.
_RUNTIME = re.compile(rb"cuda|CUDACC|DRIVER_TYPES")
_HAS_INCLUDE = re.compile(rb"\b__has_include\b")


class Includes(NamedTuple):
    """Hold what a walk found.

    Attributes
    ----------
    own : tuple of str
        Headers of ours that texts of the user include, by the names they use.
    folders : tuple of pathlib.Path
        Where the compiler shall look, in this order.
    dependencies : tuple of (path, SHA-256) or None
        The other files that are read; None where they cannot be told.
    uses_nvidia : bool
        Whether headers of NVIDIA are among them.
    names_runtime : bool
        Whether the texts that are not ours have a name that can be one of CUDA's runtime, such as
        ``cudaTextureObject_t``; so it is where not all of them are known.
    """

    own: tuple[str, ...]
    folders: tuple[Path, ...]
    dependencies: tuple[tuple[str, str], ...] | None
    uses_nvidia: bool
    names_runtime: bool


def walk(program: Program) -> Includes:
    """Find the headers a program needs."""
    search = _Search(program)
    search.run()
    return Includes(
        own=tuple(search.own),
        folders=search.folders,
        dependencies=search.dependencies(),
        uses_nvidia=search.uses_nvidia,
        names_runtime=search.names_runtime or not search.is_known,
    )


class _Include(NamedTuple):
    name: str
    quoted: bool


class _Search:
    """Follow the includes of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.own: dict[str, None] = {}
        self.own_files: set[Path] = set()
        self.files: dict[Path, str] = {}
        #: What would be read instead of a file if it were there.
        self.shadows: set[Path] = set()
        self.uses_nvidia = False
        self.names_runtime = False
        self.is_known = True

    @cached_property
    def folders(self) -> tuple[Path, ...]:
        beside = [Path(self.program.path).parent] if self.program.path else []
        mine = map(Path, self.program.options.include_dirs)
        return (*beside, *mine, *DEVICE_FOLDERS, *NVRTC_FOLDERS, *toolkit.include_folders(), FALLBACK_FOLDER)

    def run(self) -> None:
        self._follow((_Include(name, False) for name in self.program.includes), None)
        self._scan(self.program.text.encode(), None)
        for _, text in self.program.headers:
            self._scan(text.encode(), None)

    def dependencies(self) -> tuple[tuple[str, str], ...] | None:
        if not self.is_known:
            return None
        nvidia = (
            {path: _digest_of(path.read_bytes()) for path in toolkit.version_headers()}
            if self.uses_nvidia
            else {}
        )
        absent = dict.fromkeys(sorted(self.shadows), "")
        return tuple((str(path), digest) for path, digest in (absent | self.files | nvidia).items())

    def _scan(self, text: bytes, folder: Path | None, *, from_own: bool = False) -> None:
        # Headers of ours have no includes in comments, and to look for comments takes longer than all else.
        masked = text if from_own else lexical.mask(text)
        if not from_own and _RUNTIME.search(masked):
            self.names_runtime = True
        found = list(_includes(text, masked))
        if None in found:
            self.is_known = False
        resolved = self._follow(
            (include for include in found if include is not None), folder, from_own=from_own
        )
        if not resolved and _HAS_INCLUDE.search(masked):
            self.is_known = False  # a header that appears later would change the text

    def _follow(self, includes: Iterable[_Include], folder: Path | None, *, from_own: bool = False) -> bool:
        found = [self._find(include, folder, from_own=from_own) for include in includes]
        return all(found)

    def _find(self, include: _Include, folder: Path | None, *, from_own: bool) -> bool:
        if any(name == include.name for name, _ in self.program.headers):
            return True
        nvidia = toolkit.include_folders()
        for place in (folder if include.quoted else None, *self.folders):
            if place is None:
                continue
            if not (place / include.name).is_file():
                if place not in nvidia and not _is_own(place):
                    self.shadows.add((place / include.name).absolute())
                continue
            if place in nvidia:
                self.uses_nvidia = True
            elif _is_own(place):
                self._read_own(include.name, place / include.name, from_own)
            else:
                self._read(place / include.name)
            return True
        return False

    def _read_own(self, name: str, path: Path, from_own: bool) -> None:
        if not from_own:
            self.own.setdefault(name)
        if path not in self.own_files:
            self.own_files.add(path)
            self._scan(path.read_bytes(), path.parent, from_own=True)

    def _read(self, path: Path) -> None:
        path = path.absolute()
        if path not in self.files:
            content = path.read_bytes()
            self.files[path] = _digest_of(content)
            self._scan(content, path.parent)


def _includes(text: bytes, masked: bytes) -> Iterator[_Include | None]:
    """Yield the includes of a text; None for one whose name a macro gives."""
    for match in _INCLUDE.finditer(masked):
        opening = match[2]
        end = text.find(b">" if opening == b"<" else b'"', match.end()) if opening else -1
        if match[1] or end < 0:
            yield None
        else:
            yield _Include(
                text[match.end() : end].decode("utf-8", "surrogateescape").strip(), opening == b'"'
            )


@lru_cache(maxsize=256)
def _is_own(folder: Path) -> bool:
    return any(folder.resolve().is_relative_to(root) for root in HEADER_ROOTS)


def _digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
