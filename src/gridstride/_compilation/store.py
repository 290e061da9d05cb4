"""The compile cache on disk: content-addressed entries that no other process can break.

An entry is written to a temporary name in its folder and renamed, so a reader sees all of it or
nothing; it begins with the digest of the rest, so a damaged one is a miss. There are no locks.
Because object code that lies here is run, folders that others can write to are refused.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from typing import NamedTuple

from gridstride import config

_MAGIC = b"gridstride object code 2\n"
_HEAD = len(_MAGIC) + 32
_SUFFIX = ".bin"
_TEMPORARY = ".writing-"
_UNREADABLE = re.compile(r"\W+", re.ASCII)
#: Seconds after which a temporary file of a dead writer is removed.
_STALE = 3600.0
#: A hit renews an entry's time at most this often (seconds).
_RENEW = 3600.0
#: The cap is enforced at the first store of a process and then after this many.
_STORES_BETWEEN_CHECKS = 64


class Store:
    """Keep entries under a folder.

    Parameters
    ----------
    directory : str or path
        Made with mode 0700 when first written to.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = os.fspath(directory)
        self._stores = 0

    def read(self, key: str, group: str, name: str) -> bytes | None:
        """Return an entry's content, or None: absent, unreadable, damaged, or not ours."""
        path = self._path(key, group, name)
        try:
            data, status = _read_private(path)
            if time.time() - status.st_mtime > _RENEW:
                os.utime(path)
        except OSError:
            return None
        content = data[_HEAD:]
        return content if data[:_HEAD] == _MAGIC + _digest(content) else None

    def write(self, key: str, group: str, name: str, content: bytes) -> bool:
        """Store an entry; return False where the disk refuses (full, read-only), leaving nothing behind."""
        path = self._path(key, group, name)
        temporary = None
        try:
            for folder in (self.directory, os.path.join(self.directory, group), os.path.dirname(path)):
                make_private(folder)
            temporary = os.path.join(os.path.dirname(path), _TEMPORARY + os.urandom(8).hex())
            with open(temporary, "xb") as file:
                file.write(_MAGIC + _digest(content) + content)
            os.replace(temporary, path)
        except OSError:
            if temporary is not None:
                _remove(temporary)
            return False
        if self._stores % _STORES_BETWEEN_CHECKS == 0:
            self.trim(config.cache_size())
        self._stores += 1
        return True

    def entries(self) -> Iterator[Entry]:
        """Yield every entry; those that vanish meanwhile are left out."""
        for group, path, status in sorted(self._files(), key=lambda file: file[1]):
            if path.endswith(_SUFFIX):
                yield Entry(path, group, status.st_size, status.st_mtime)

    def trim(self, cap: int) -> int:
        """Remove the entries used least recently until the rest is below `cap` bytes; return how many."""
        for _, path, status in self._files():
            if os.path.basename(path).startswith(_TEMPORARY) and time.time() - status.st_mtime > _STALE:
                _remove(path)
        total = removed = 0
        for entry in sorted(self.entries(), key=lambda entry: entry.used, reverse=True):
            total += entry.size
            if total > cap and _remove(entry.path):
                removed += 1
        return removed

    def clear(self) -> int:
        """Remove every entry; return how many."""
        return sum(_remove(entry.path) for entry in self.entries())

    def _path(self, key: str, group: str, name: str) -> str:
        is_readable = name.isascii() and name.isidentifier()
        readable = name[:40] if is_readable else _UNREADABLE.sub("-", name).strip("-")[:40] or "kernel"
        return f"{self.directory}/{group}/{key[:2]}/{readable}-{key}{_SUFFIX}"

    def _files(self) -> Iterator[tuple[str, str, os.stat_result]]:
        """Yield target, path and status of every file two folders down."""
        for group in _listed(self.directory):
            for folder in _listed(os.path.join(self.directory, group)):
                for name in _listed(os.path.join(self.directory, group, folder)):
                    path = os.path.join(self.directory, group, folder, name)
                    try:
                        yield group, path, os.stat(path)
                    except OSError:
                        continue


class Entry(NamedTuple):
    """Describe an entry: its file, the target it is for, size in bytes, time of last use."""

    path: str
    group: str
    size: int
    used: float


def open_store() -> Store | None:
    """Return the store at the configured place or its stand-in in the temporary folder; None for neither."""
    key = tuple(told() for told in _SETTINGS)
    found = _opened.get(key) or _open()
    if found is not None:
        _opened[key] = found
    return found


#: What `config.cache_directory` reads, and the stores by what it read.
_SETTINGS = tuple(map(config.teller, ("GRIDSTRIDE_CACHE_DIR", "XDG_CACHE_HOME", "HOME")))
_opened: dict[tuple[object, ...], Store] = {}


def _open() -> Store | None:
    for directory in (config.cache_directory, _stand_in):
        place = directory()
        try:
            make_private(place)
        except OSError:
            continue
        return Store(place)
    return None


def make_private(directory: str) -> None:
    """Make a folder with mode 0700; PermissionError where it exists and others may write to it."""
    try:
        status = os.lstat(directory)
    except FileNotFoundError:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        status = os.lstat(directory)
    if not stat.S_ISDIR(status.st_mode) or not _is_private(status):
        raise PermissionError(f"{directory} belongs to another user, is no folder, or others may write to it")
    if not os.access(directory, os.R_OK | os.X_OK):
        raise PermissionError(f"{directory} cannot be read")


def _read_private(path: str) -> tuple[bytes, os.stat_result]:
    """Return a file's content and status; PermissionError where others may write to it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not _is_private(status):
            raise PermissionError(f"others may write to {path}")
        data = os.read(descriptor, status.st_size)
        while len(data) < status.st_size and (rest := os.read(descriptor, status.st_size - len(data))):
            data += rest
        return data, status
    finally:
        os.close(descriptor)


def _digest(content: bytes) -> bytes:
    import hashlib

    return hashlib.sha256(content).digest()


def _stand_in() -> str:
    import tempfile  # a slow import that few programs need

    return os.path.join(tempfile.gettempdir(), f"gridstride-{os.getuid()}")


def _is_private(status: os.stat_result) -> bool:
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True
