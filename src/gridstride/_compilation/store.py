"""The compile cache on disk: content-addressed entries that no other process can break.

An entry is written to a temporary name in its folder and renamed, so a reader sees all of it or
nothing; it begins with the digest of the rest, so a damaged one is a miss. There are no locks.
Because object code that lies here is run, folders that others can write to are refused.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gridstride import config

_MAGIC = b"gridstride object code 1\n"
_DIGEST = hashlib.sha256().digest_size
_SUFFIX = ".bin"
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
    directory : pathlib.Path
        Made with mode 0700 when first written to.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._stores = 0

    def read(self, key: str, group: str, name: str) -> bytes | None:
        """Return an entry's content, or None: absent, unreadable, damaged, or not ours."""
        path = self._path(key, group, name)
        try:
            with open(path, "rb") as file:
                status = os.fstat(file.fileno())
                if not _is_private(status):
                    return None
                data = file.read()
            if time.time() - status.st_mtime > _RENEW:
                os.utime(path)
        except OSError:
            return None
        content = data[len(_MAGIC) + _DIGEST :]
        intact = (
            data[: len(_MAGIC)] == _MAGIC
            and data[len(_MAGIC) :][:_DIGEST] == hashlib.sha256(content).digest()
        )
        return content if intact else None

    def write(self, key: str, group: str, name: str, content: bytes) -> bool:
        """Store an entry; return False where the disk refuses (full, read-only), leaving nothing behind."""
        path = self._path(key, group, name)
        temporary = None
        try:
            for folder in (self.directory, path.parent.parent, path.parent):
                make_private(folder)
            handle, temporary = tempfile.mkstemp(prefix=".writing-", dir=path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(content).digest() + content)
            os.replace(temporary, path)
        except OSError:
            if temporary is not None:
                _remove(Path(temporary))
            return False
        if self._stores % _STORES_BETWEEN_CHECKS == 0:
            self.trim(config.cache_size())
        self._stores += 1
        return True

    def entries(self) -> Iterator[Entry]:
        """Yield every entry; those that vanish meanwhile are left out."""
        for path in sorted(self.directory.glob(f"*/*/*{_SUFFIX}")):
            try:
                status = path.stat()
            except OSError:
                continue
            yield Entry(path, path.parent.parent.name, status.st_size, status.st_mtime)

    def trim(self, cap: int) -> int:
        """Remove the entries used least recently until the rest is below `cap` bytes; return how many."""
        self._remove_stale_temporaries()
        entries = sorted(self.entries(), key=lambda entry: entry.used, reverse=True)
        total = removed = 0
        for entry in entries:
            total += entry.size
            if total > cap and _remove(entry.path):
                removed += 1
        return removed

    def clear(self) -> int:
        """Remove every entry; return how many."""
        return sum(_remove(entry.path) for entry in self.entries())

    def _path(self, key: str, group: str, name: str) -> Path:
        readable = re.sub(r"\W+", "-", name, flags=re.ASCII).strip("-")[:40] or "kernel"
        return self.directory / group / key[:2] / f"{readable}-{key}{_SUFFIX}"

    def _remove_stale_temporaries(self) -> None:
        for path in self.directory.glob("*/*/.writing-*"):
            try:
                if time.time() - path.stat().st_mtime > _STALE:
                    _remove(path)
            except OSError:
                continue


@dataclass(frozen=True, slots=True)
class Entry:
    """Describe an entry: its file, the target it is for, size in bytes, time of last use."""

    path: Path
    group: str
    size: int
    used: float


def open_store() -> Store | None:
    """Return the store at the configured place or its stand-in in the temporary folder; None for neither."""
    for directory in (config.cache_directory(), Path(tempfile.gettempdir()) / f"gridstride-{os.getuid()}"):
        try:
            make_private(directory)
        except OSError:
            continue
        return Store(directory)
    return None


def make_private(directory: Path) -> None:
    """Make a folder with mode 0700; PermissionError where it exists and others may write to it."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_private(directory.lstat()):
        raise PermissionError(f"{directory} belongs to another user, is a link, or others may write to it")
    if not os.access(directory, os.R_OK | os.X_OK):
        raise PermissionError(f"{directory} cannot be read")


def _is_private(status: os.stat_result) -> bool:
    return (
        status.st_uid == os.getuid()
        and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        and not stat.S_ISLNK(status.st_mode)
    )


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True
