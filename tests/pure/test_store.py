"""The compile cache on disk."""

import marshal
import os
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from gridstride import _dtypes
from gridstride._compilation import functions, store
from gridstride._compilation.encoding import decode, encode
from gridstride._compilation.store import Store, make_private, open_store
from gridstride.targets.base import CType, FunctionRecord, ObjectCode, Parameter, Program
from gridstride.targets.null import NullTarget
from gridstride.targets.options import CompileOptions

KEY = "ab" + "0" * 62


@pytest.fixture
def cache(tmp_path):
    return Store(tmp_path / "cache")


def path_of(cache):
    (entry,) = cache.entries()
    return Path(entry.path)


def test_round_trip(cache):
    assert cache.read(KEY, "cpu", "saxpy") is None
    assert cache.write(KEY, "cpu", "saxpy", b"content")
    assert cache.read(KEY, "cpu", "saxpy") == b"content"


def test_entries_have_readable_names_in_subdirectories(cache):
    cache.write(KEY, "cpu", "f<complex<float> >", b"content")
    assert path_of(cache).relative_to(cache.directory).as_posix() == f"cpu/ab/f-complex-float-{KEY}.bin"


def test_nothing_but_the_entry_is_left(cache):
    cache.write(KEY, "cpu", "k", b"content")
    assert [path.name for path in Path(cache.directory).glob("*/*/*")] == [f"k-{KEY}.bin"]


@pytest.mark.parametrize("cut", [0, 1, 10, 40, 60])
def test_a_truncated_entry_is_a_miss(cache, cut):
    cache.write(KEY, "cpu", "k", b"content")
    path_of(cache).write_bytes(path_of(cache).read_bytes()[:cut])
    assert cache.read(KEY, "cpu", "k") is None


def test_any_flipped_bit_is_a_miss(cache):
    cache.write(KEY, "cpu", "k", b"content")
    good = path_of(cache).read_bytes()
    for position in range(len(good)):
        bad = bytearray(good)
        bad[position] ^= 1 << (position % 8)
        path_of(cache).write_bytes(bad)
        assert cache.read(KEY, "cpu", "k") is None
    path_of(cache).write_bytes(good)
    assert cache.read(KEY, "cpu", "k") == b"content"


def test_an_entry_that_others_may_write_is_a_miss(cache):
    cache.write(KEY, "cpu", "k", b"content")
    path_of(cache).chmod(0o622)
    assert cache.read(KEY, "cpu", "k") is None


def test_folders_are_private(cache):
    cache.write(KEY, "cpu", "k", b"content")
    root = Path(cache.directory)
    for folder in (root, root / "cpu", root / "cpu" / "ab"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_that_others_may_write_is_refused(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(PermissionError, match="others may write"):
        make_private(tmp_path)


def test_a_link_is_refused(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(PermissionError):
        make_private(tmp_path / "link")


def test_a_refusing_disk_leaves_nothing(cache, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.os, "replace", full)
    assert not cache.write(KEY, "cpu", "k", b"content")
    assert not list(Path(cache.directory).glob("*/*/*"))
    assert not list(Path(cache.directory).glob("*/*/.*"))


def test_an_unwritable_home_falls_back_to_a_private_folder(tmp_path, monkeypatch):
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("GRIDSTRIDE_CACHE_DIR", str(blocker / "cache"))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    opened = open_store()
    assert opened is not None
    assert opened.directory == str(tmp_path / f"gridstride-{os.getuid()}")


def test_a_stand_in_that_others_may_write_is_refused(tmp_path, monkeypatch):
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("GRIDSTRIDE_CACHE_DIR", str(blocker / "cache"))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    stand_in = tmp_path / f"gridstride-{os.getuid()}"
    stand_in.mkdir()
    stand_in.chmod(0o777)
    assert open_store() is None


def test_the_cap_removes_what_was_used_least_recently(cache):
    for number in range(10):
        cache.write(f"{number:02}" + KEY[2:], "cpu", "k", b"x" * 1000)
    for number, entry in enumerate(cache.entries()):
        os.utime(entry.path, (number, number))
    assert cache.trim(5 * (1000 + 57)) == 5
    assert [Path(entry.path).name[2:4] for entry in cache.entries()] == ["05", "06", "07", "08", "09"]


def test_clear(cache):
    cache.write(KEY, "cpu", "k", b"content")
    cache.write(KEY, "cuda", "k", b"content")
    assert cache.clear() == 2
    assert not list(cache.entries())


def test_stale_temporaries_are_removed_and_fresh_ones_kept(cache):
    cache.write(KEY, "cpu", "k", b"content")
    folder = path_of(cache).parent
    stale, fresh = folder / ".writing-stale", folder / ".writing-fresh"
    stale.write_bytes(b"")
    fresh.write_bytes(b"")
    os.utime(stale, (time.time() - 7200,) * 2)
    cache.trim(1 << 20)
    assert fresh.exists()
    assert not stale.exists()


def test_readers_and_writers_of_one_entry(cache):
    contents = [bytes([number]) * 100_000 for number in range(4)]
    stop = threading.Event()
    problems = []

    def write(content):
        while not stop.is_set():
            cache.write(KEY, "cpu", "k", content)

    def read():
        while not stop.is_set():
            found = cache.read(KEY, "cpu", "k")
            if found is not None and found not in contents:
                problems.append(found)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    threads += [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    stop.set()
    for thread in threads:
        thread.join()
    assert not problems
    assert cache.read(KEY, "cpu", "k") in contents


def test_a_killed_writer_leaves_a_usable_cache(tmp_path):
    program = f"""
import os
from pathlib import Path
from gridstride._compilation import store
store.os.replace = lambda *args: os.kill(os.getpid(), 9)
store.Store(Path({str(tmp_path / "cache")!r})).write({KEY!r}, "cpu", "k", b"half")
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    cache = Store(tmp_path / "cache")
    assert cache.read(KEY, "cpu", "k") is None
    assert cache.write(KEY, "cpu", "k", b"whole")
    assert cache.read(KEY, "cpu", "k") == b"whole"


OBJECT = ObjectCode(
    "cubin",
    bytes(range(256)),
    {
        "f<float>": FunctionRecord(
            "_Z1fIfEvPfi",
            (
                Parameter(
                    "x",
                    CType("pointer", "float *", 8, 8, pointee=CType("scalar", "float", 4, 4, np.dtype("f4"))),
                    0,
                ),
                Parameter("", CType("vector", "float4", 16, 16, np.dtype("f4"), 4), 16),
                Parameter("h", CType("scalar", "__nv_bfloat16", 2, 2, _dtypes.bfloat16(), const=True), 32),
            ),
        ),
        "unknown": FunctionRecord("unknown", None),
    },
    {"counter": "counter"},
    {"sizeof(S)": -1},
    (("/usr/include/x.h", "00"),),
    "warning: äöü",
)


def test_object_code_comes_back_as_it_was():
    assert decode(encode(OBJECT)) == OBJECT
    assert decode(encode(OBJECT._replace(dependencies=None))).dependencies is None


@pytest.mark.parametrize(
    "content", [b"", b"{}", marshal.dumps(1), marshal.dumps(("cubin", b"")), encode(OBJECT)[:-9]]
)
def test_content_of_another_form_is_a_miss(monkeypatch, content):
    monkeypatch.setattr(Store, "read", lambda *_: content)
    assert functions._read(Store("/nowhere"), KEY, NullTarget(), Program("", "f", CompileOptions())) is None
