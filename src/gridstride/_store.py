"""What is kept on disk between runs: content-addressed entries that no other process can break.

An entry is written to a temporary name in its folder and renamed, so a reader sees all of it or
nothing; it begins with the length and the digest of the rest, so a damaged one is a miss. There are
no locks. Because object code that lies here is run, folders and entries that others can write to
are refused.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from typing import NamedTuple

from gridstride import _native, config

_MAGIC = b"gridstride entry 2\n"
_LENGTH = 8
_DIGEST = 32
_HEAD = len(_MAGIC) + _LENGTH + _DIGEST
_SUFFIX = ".bin"
_TEMPORARY = ".writing-"
#: Folder of the folders that compilers keep, which hold no entries.
_FOLDERS = "folders"
_UNREADABLE = re.compile(r"\W+", re.ASCII)
#: Seconds after which a temporary file of a dead writer is removed.
_STALE = 3600.0
#: A hit renews an entry's time at most this often (seconds).
_RENEW = 3600.0
#: The cap is enforced at a process's first store, and whenever it has stored this part of it. What is
#: left fills less than the cap by as much as sixteen processes can store in between.
_PART_BETWEEN_CHECKS = 1 / 64
_PART_LEFT = 3 / 4


class Store:
    """Keep entries under a folder.

    Parameters
    ----------
    directory : str or path
        Made with mode 0700 when first written to.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = os.fspath(directory)

    def read(self, key: str, group: str, name: str) -> bytes | None:
        """Return an entry's content, or None: absent, unreadable, damaged, or not ours."""
        path = self._path(key, group, name)
        found = _read_private(self.directory, path)
        if found is None:
            return None
        data, changed = found
        content = unpack(key, data)
        if content is not None and time.time() - changed > _RENEW:
            _renew(path)
        return content

    def write(self, key: str, group: str, name: str, content: bytes) -> bool:
        """Store an entry; return False where the disk refuses (full, read-only), leaving nothing behind."""
        cap = config.cache_size()
        size = _HEAD + len(content)
        if size > cap or not self._put(self._path(key, group, name), pack(key, content)):
            return False
        unchecked = _unchecked.get(self.directory)
        _unchecked[self.directory] = (unchecked or 0) + size
        if unchecked is None or unchecked + size > cap * _PART_BETWEEN_CHECKS:
            self.trim(int(cap * _PART_LEFT))
            _unchecked[self.directory] = 0
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
        for number, entry in enumerate(sorted(self.entries(), key=lambda entry: entry.used, reverse=True)):
            total += entry.size
            # The newest stays: it is below the cap by itself.
            if total > cap and number and _remove(entry.path):
                removed += 1
        return removed

    def clear(self) -> int:
        """Remove every entry, and the folders that compilers keep; return how many entries."""
        import shutil

        shutil.rmtree(os.path.join(self.directory, _FOLDERS), ignore_errors=True)
        return sum(_remove(entry.path) for entry in self.entries())

    def folder(self, name: str) -> str:
        """Return a folder for files that a compiler keeps; OSError where it cannot be made."""
        place = os.path.join(self.directory, _FOLDERS, name)
        for folder in (self.directory, os.path.dirname(place), place):
            make_private(folder)
        if not os.access(place, os.W_OK):
            raise PermissionError(f"{place} cannot be written to")
        return place

    def size_of_folders(self) -> int:
        """Return the bytes in the folders that compilers keep."""
        places = os.walk(os.path.join(self.directory, _FOLDERS))
        return sum(_size(os.path.join(place, name)) for place, _, names in places for name in names)

    def _put(self, path: str, data: bytes) -> bool:
        """Write a file that others see whole or not at all."""
        folder = os.path.dirname(path)
        temporary = os.path.join(folder, _TEMPORARY + os.urandom(8).hex())
        try:
            for place in (self.directory, os.path.dirname(folder), folder):
                make_private(place)
            # The mode is told here, because a umask may leave others the right to write.
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                with open(descriptor, "wb") as file:
                    file.write(data)
                os.replace(temporary, path)
            except BaseException:
                _remove(temporary)
                raise
        except OSError:
            return False
        return True

    def _path(self, key: str, group: str, name: str) -> str:
        is_readable = name.isascii() and name.isidentifier()
        readable = name[:40] if is_readable else _UNREADABLE.sub("-", name).strip("-")[:40] or "kernel"
        return f"{self.directory}/{group}/{key[:2]}/{readable}-{key}{_SUFFIX}"

    def _files(self) -> Iterator[tuple[str, str, os.stat_result]]:
        """Yield group, path and status of every file two folders down."""
        for group in _listed(self.directory):
            if group == _FOLDERS:
                continue
            for folder in _listed(os.path.join(self.directory, group)):
                for name in _listed(os.path.join(self.directory, group, folder)):
                    path = os.path.join(self.directory, group, folder, name)
                    try:
                        yield group, path, os.lstat(path)
                    except OSError:
                        continue


class Entry(NamedTuple):
    """Describe an entry: its file, the target it is for, size in bytes, time of last use."""

    path: str
    group: str
    size: int
    used: float


def read(key: str, group: str, name: str) -> bytes | None:
    """Return an entry's content from the configured place or its stand-in, or None."""
    for directory in _places():
        content = Store(directory).read(key, group, name)
        if content is not None:
            return content
    return None


def write(key: str, group: str, name: str, content: bytes) -> bool:
    """Store an entry at the configured place, or where that refuses in its stand-in; return whether."""
    return any(Store(directory).write(key, group, name, content) for directory in _places())


def pack(key: str, content: bytes) -> bytes:
    """Return the bytes of an entry."""
    return _head(key, content) + content


def unpack(key: str, data: bytes) -> bytes | None:
    """Return the content of an entry; None where its bytes are damaged or those of another one."""
    content = data[_HEAD:]
    return content if data[:_HEAD] == _head(key, content) else None


def private_folder(name: str) -> str | None:
    """Return a folder that a compiler may keep files in between runs; None where there is none."""
    for directory in _places():
        try:
            return Store(directory).folder(name)
        except OSError:
            continue
    return None


def open_store() -> Store | None:
    """Return the store that is written to first: the configured place or its stand-in; None for neither."""
    for directory in _places():
        try:
            make_private(directory)
        except OSError:
            continue
        return Store(directory)
    return None


def make_private(directory: str) -> None:
    """Make a folder with mode 0700; PermissionError where it exists and others may write to it."""
    try:
        os.makedirs(os.path.dirname(directory), 0o700, exist_ok=True)
        os.mkdir(directory, 0o700)
    except FileExistsError:
        pass
    problem = _problem(directory)
    if problem:
        raise PermissionError(f"{directory} {problem}")


def _problem(directory: str) -> str:
    """Return why a folder is no place for code that we run, or an empty text."""
    status = os.lstat(directory)
    if stat.S_ISLNK(status.st_mode) and status.st_uid == os.getuid():
        status = os.stat(directory)  # a link of the user's own, to another disk
    if not stat.S_ISDIR(status.st_mode) or not _is_private(status):
        return "belongs to another user, is no folder, or others may write to it"
    return "" if os.access(directory, os.R_OK | os.X_OK) else "cannot be read"


def _is_usable(directory: str) -> bool:
    try:
        return not _problem(directory)
    except OSError:
        return False


def _places() -> Iterator[str]:
    """Yield the configured place, and its stand-in in the temporary folder."""
    try:
        directory = config.cache_directory()
        yield os.path.normpath(directory) if directory.startswith("/") else os.path.abspath(directory)
    except OSError:
        pass  # a relative path from a folder that is gone
    import tempfile  # a slow import that few programs need

    try:
        directory = tempfile.gettempdir()
    except OSError:
        return  # there is none that can be written to
    yield os.path.join(directory, f"gridstride-{os.getuid()}")


#: Bytes stored in a folder since its cap was enforced; absent before the first store.
_unchecked: dict[str, int] = {}


def _head(key: str, content: bytes) -> bytes:
    """Return what an entry begins with. The key is in the digest: an entry under another's name is a miss."""
    import hashlib

    digest = hashlib.sha256(key.encode() + content).digest()
    return _MAGIC + len(content).to_bytes(_LENGTH, "little") + digest


@_native.shortcut
def _read_private(directory: str, path: str) -> tuple[bytes, float] | None:
    """Return the content of a file in a store, and the time of its last change (seconds).

    None: it is absent or cannot be read, or others may write to it or to the store.
    """
    if not _is_usable(directory):
        return None
    try:
        data, status = _read_file(path)
    except OSError:
        return None
    return data, status.st_mtime


def _read_file(path: str) -> tuple[bytes, os.stat_result]:
    """Return a file's content and status; PermissionError where others may write to it."""
    # A pipe in its place would keep a reader waiting.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not _is_private(status):
            raise PermissionError(f"{path} is no file, or others may write to it")
        data = os.read(descriptor, status.st_size)
        while len(data) < status.st_size and (rest := os.read(descriptor, status.st_size - len(data))):
            data += rest
        return data, status
    finally:
        os.close(descriptor)


def _is_private(status: os.stat_result) -> bool:
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _renew(path: str) -> None:
    try:
        os.utime(path)
    except OSError:
        pass  # a folder that cannot be written to is read as well


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


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
