"""The files of the user's that a program reads: where they are looked for, and which of them were read."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from gridstride._syntax import lexical
from gridstride.targets.base import Program
from gridstride.targets.cpu import core_library, library

Dependencies = tuple[tuple[str, str], ...]

_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"\n]+)[>\"]", re.MULTILINE)
_HAS_INCLUDE = re.compile(rb"\b__has_include\b")
#: Where the compiler lists what it read. All headers, because one that calls itself a system header is left out with
#: what it includes otherwise.
LISTING = "program.d"
LISTING_FLAGS = ("-MD", "-MF", LISTING)


def absolute(path: str) -> str:
    """Return a path from the root; as it is where the current folder is gone, in which nothing can be found."""
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        return path


def is_ours(path: str) -> bool:
    """Return whether a file is one of the package's headers."""
    return any(path.startswith(f"{folder}{os.sep}") for folder in library.INCLUDE_FOLDERS)


def folders(program: Program) -> list[str]:
    """Return the folders of the user's in which headers are looked for."""
    beside = [os.path.dirname(absolute(program.path))] if program.path else []
    return [*beside, *map(absolute, program.options.include_dirs)]


def has_headers(program: Program) -> bool:
    """Return whether the text includes files of the user's, in which anything may stand."""
    given = {name for name, _ in program.headers}
    places = folders(program)
    names = [*program.includes, *(match[2] for match in _INCLUDE.finditer(program.text))]
    return any(
        name in given
        or (
            not _is_header_of_ours(name)
            and any(os.path.isfile(os.path.join(place, name)) for place in places)
        )
        for name in names
    )


def headers_of_ours(program: Program) -> list[str]:
    """Return the headers of ours that come before the user's macros, none of which can break them then."""
    given = {name for name, _ in program.headers}
    in_text = (match[2] for match in _INCLUDE.finditer(program.text) if match[2].startswith("gridstride/"))
    names = dict.fromkeys((*program.includes, *in_text))
    return [name for name in names if name not in given and _is_header_of_ours(name)]


def dependencies(
    program: Program, listing: bytes, folder: Path, core_folders: Sequence[Path], started: int
) -> Dependencies | None:
    """Return the files of the user's that were read, with digests, and those that would be read before them.

    Parameters
    ----------
    program : Program
    listing : bytes
        Of the compiler (`LISTING_FLAGS`).
    folder : Path
        In which it ran.
    core_folders : sequence of Path
        Of the core libraries, which their version stands for.
    started : int
        When compiling began, in nanoseconds.

    Returns
    -------
    tuple of (path, digest) or None
        The digest is "" where no file is yet. None: it cannot be told what was read of them.
    """
    digests = {}
    texts = [program.text.encode(), *(text.encode() for _, text in program.headers)]
    for path in _files_read(listing, folder, core_folders):
        try:
            content = Path(path).read_bytes()
            changed = os.stat(path).st_mtime_ns
        except OSError:
            return None
        if changed >= started:
            return None  # perhaps after the compiler had read it
        digests[path] = hashlib.sha256(content).hexdigest()
        texts.append(content)
    if any(_HAS_INCLUDE.search(lexical.mask(text)) for text in texts):
        return None  # a header that appears later would change the text
    shadows = _shadows(list(digests), folders(program))
    return tuple(sorted({**dict.fromkeys(shadows, ""), **digests}.items()))


def _files_read(listing: bytes, folder: Path, core_folders: Sequence[Path]) -> Iterator[str]:
    text = os.fsdecode(listing)
    reads_core_library = False
    for name in re.findall(r"(?:\\.|[^\s\\])+", text.partition(":")[2].replace("\\\n", " ")):
        path = os.path.normpath(folder / re.sub(r"\\(.)", r"\1", name).replace("$$", "$"))
        if any(Path(path).is_relative_to(place) for place in core_folders):
            reads_core_library = True
        elif not is_ours(path) and not path.startswith(f"{folder}{os.sep}"):
            yield path
    if reads_core_library:
        yield str(core_library.version_header())


def _shadows(paths: list[str], places: list[str]) -> Iterator[str]:
    """Yield files that would be read instead of these if they were there."""
    beside = {os.path.dirname(path) for path in paths}
    for path in paths:
        for number, place in enumerate(places):
            if path.startswith(place + os.sep):
                name = os.path.relpath(path, place)
                others = {os.path.join(other, name) for other in {*places[:number], *beside}}
                yield from (other for other in others if not os.path.exists(other))


def _is_header_of_ours(name: str) -> bool:
    return any((folder / name).is_file() for folder in library.INCLUDE_FOLDERS)
