"""What is kept on disk: the compile cache."""

import errno
import marshal
import os
import stat
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from gridstride import _dtypes, _native
from gridstride import _store as store
from gridstride._compilation import functions
from gridstride._compilation.encoding import decode, encode
from gridstride._store import Store, make_private, open_store
from gridstride.targets.base import CType, FunctionRecord, ObjectCode, Parameter, Program
from gridstride.targets.null import NullTarget
from gridstride.targets.options import CompileOptions

KEY = "ab" + "0" * 62


pytestmark = pytest.mark.usefixtures("each_way")


@pytest.fixture
def cache(tmp_path):
    return Store(tmp_path / "cache")


def path_of(cache):
    (entry,) = cache.entries()
    return Path(entry.path)


def files_in(folder):
    return [path for path in Path(folder).rglob("*") if not path.is_dir()]


@contextmanager
def umask(mask):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """The folder that stands in where the configured one, which is below a file, cannot be made."""
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("GRIDSTRIDE_CACHE_DIR", str(blocker / "cache"))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path / f"gridstride-{os.getuid()}"


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


@pytest.mark.parametrize("mask", [0, 0o002, 0o022, 0o077])
def test_no_umask_gives_others_the_right_to_write(tmp_path, mask):
    cache = Store(tmp_path / "missing" / "cache")
    with umask(mask):
        assert cache.write(KEY, "cpu", "k", b"content")
    assert cache.read(KEY, "cpu", "k") == b"content"
    assert stat.S_IMODE(path_of(cache).stat().st_mode) == 0o600
    for folder in (cache.directory, tmp_path / "missing"):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


def test_a_link_of_the_users_own_is_followed_to_a_private_folder(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    cache = Store(tmp_path / "link")
    assert cache.write(KEY, "cpu", "k", b"content")
    assert cache.read(KEY, "cpu", "k") == b"content"
    (tmp_path / "real").chmod(0o777)
    with pytest.raises(PermissionError):
        make_private(str(tmp_path / "link"))
    (tmp_path / "real").chmod(0o700)
    monkeypatch.setattr(store.os, "getuid", lambda: 1 + os.stat(tmp_path).st_uid)
    with pytest.raises(PermissionError, match="another user"):
        make_private(str(tmp_path / "link"))


def test_a_link_in_an_entrys_place_is_a_miss(cache, tmp_path):
    cache.write(KEY, "cpu", "k", b"content")
    path_of(cache).rename(tmp_path / "elsewhere")
    (Path(cache.directory) / "cpu" / "ab" / f"k-{KEY}.bin").symlink_to(tmp_path / "elsewhere")
    assert cache.read(KEY, "cpu", "k") is None
    assert cache.write(KEY, "cpu", "k", b"content")
    assert not path_of(cache).is_symlink()


def test_what_belongs_to_others_is_not_read(cache, monkeypatch):
    cache.write(KEY, "cpu", "k", b"content")
    _native.use_shortcuts(False)
    monkeypatch.setattr(store.os, "getuid", lambda: 1 + os.stat(cache.directory).st_uid)
    assert cache.read(KEY, "cpu", "k") is None
    assert not cache.write(KEY, "cpu", "k", b"content")


def test_an_entry_under_the_name_of_another_is_a_miss(cache):
    cache.write(KEY, "cpu", "k", b"content")
    other = "ab" + "1" * 62
    path_of(cache).rename(path_of(cache).parent / f"k-{other}.bin")
    assert cache.read(other, "cpu", "k") is None


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_keeps_no_reader_waiting(cache, make):
    cache.write(KEY, "cpu", "k", b"content")
    path = path_of(cache)
    path.unlink()
    make(path)
    assert cache.read(KEY, "cpu", "k") is None
    assert cache.write(KEY, "cpu", "k", b"content") == (make is os.mkfifo)


def test_an_old_entry_is_read_where_its_time_cannot_be_renewed(cache, monkeypatch):
    cache.write(KEY, "cpu", "k", b"content")
    old = time.time() - 7200
    os.utime(path_of(cache), (old, old))

    def read_only(*args):
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patched:
        patched.setattr(store.os, "utime", read_only)
        assert cache.read(KEY, "cpu", "k") == b"content"
    assert cache.read(KEY, "cpu", "k") == b"content"
    assert path_of(cache).stat().st_mtime > old + 3600


class FailingOs:
    """Be the module `os`, but fail at one of the calls that touch the disk."""

    TOUCHING = ("makedirs", "mkdir", "lstat", "access", "open", "fstat", "replace", "utime", "listdir")

    def __init__(self, fails_at, error):
        self.calls, self.fails_at, self.error = 0, fails_at, error

    def __getattr__(self, name):
        function = getattr(os, name)
        if name not in self.TOUCHING:
            return function

        def call(*args, **kwargs):
            self.calls += 1
            if self.calls == self.fails_at:
                raise OSError(self.error, os.strerror(self.error))
            return function(*args, **kwargs)

        return call


@pytest.mark.parametrize(
    "error", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO, errno.ESTALE]
)
def test_a_disk_that_refuses_at_any_call_leaves_an_old_entry_or_a_new_one(tmp_path, monkeypatch, error):
    def write_with(failing, directory, content):
        with monkeypatch.context() as patched:
            patched.setattr(store, "os", failing)
            return Store(directory).write(KEY, "cpu", "k", content)

    counting = FailingOs(0, error)
    assert write_with(counting, tmp_path / "counted", b"new")
    assert counting.calls > 10
    for call in range(1, counting.calls + 1):
        cache = Store(tmp_path / str(call))
        stored = write_with(FailingOs(call, error), cache.directory, b"old")
        assert cache.read(KEY, "cpu", "k") == (b"old" if stored else None)
        assert cache.write(KEY, "cpu", "k", b"old")
        stored = write_with(FailingOs(call, error), cache.directory, b"new")
        assert cache.read(KEY, "cpu", "k") == (b"new" if stored else b"old")
        assert len(files_in(cache.directory)) == 1


@pytest.mark.parametrize(
    "error", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO, errno.ESTALE, errno.EMFILE]
)
def test_a_disk_that_fails_at_any_call_of_a_reader_is_a_miss(cache, monkeypatch, error):
    cache.write(KEY, "cpu", "k", b"content")
    os.utime(path_of(cache), (0, 0))
    _native.use_shortcuts(False)
    counting = FailingOs(0, error)
    monkeypatch.setattr(store, "os", counting)
    assert cache.read(KEY, "cpu", "k") == b"content"
    for call in range(1, counting.calls + 1):
        os.utime(path_of(cache), (0, 0))
        monkeypatch.setattr(store, "os", FailingOs(call, error))
        assert cache.read(KEY, "cpu", "k") in (None, b"content")
        monkeypatch.setattr(store, "os", os)
    assert cache.read(KEY, "cpu", "k") == b"content"


def test_a_full_disk_stops_a_write_half_way(tmp_path):
    program = f"""
import resource
from gridstride._store import Store
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
cache = Store({str(tmp_path / "cache")!r})
print(cache.write({KEY!r}, "cpu", "k", b"x" * 20000), cache.write({KEY!r}, "cpu", "k", b"small"))
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "False True\n"
    assert Store(tmp_path / "cache").read(KEY, "cpu", "k") == b"small"
    assert len(files_in(tmp_path / "cache")) == 1


def test_an_interrupt_leaves_nothing(cache, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(store.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cache.write(KEY, "cpu", "k", b"content")
    assert files_in(cache.directory) == []


def test_an_unwritable_home_falls_back_to_a_private_folder(stand_in):
    opened = open_store()
    assert opened is not None
    assert opened.directory == str(stand_in)
    assert stat.S_IMODE(stand_in.stat().st_mode) == 0o700


def test_a_stand_in_that_others_may_write_is_refused(stand_in):
    stand_in.mkdir()
    stand_in.chmod(0o777)
    assert open_store() is None
    assert store.private_folder("compiler") is None
    assert not store.write(KEY, "cpu", "k", b"content")
    assert store.read(KEY, "cpu", "k") is None


def test_a_link_in_the_place_of_the_stand_in_leads_to_no_folder_of_others(stand_in, tmp_path):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs").chmod(0o777)
    stand_in.symlink_to(tmp_path / "theirs")
    assert open_store() is None
    assert files_in(tmp_path / "theirs") == []


def test_what_the_configured_place_refuses_is_kept_in_the_stand_in(stand_in):
    assert store.write(KEY, "cpu", "k", b"content")
    assert store.read(KEY, "cpu", "k") == b"content"
    assert path_of(Store(stand_in)).is_relative_to(stand_in)
    folder = store.private_folder("compiler")
    assert folder == str(stand_in / "folders" / "compiler")
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


def test_a_warm_folder_that_is_full_is_read_and_the_stand_in_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("GRIDSTRIDE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    assert store.write(KEY, "cpu", "k", b"content")
    put = Store._put
    monkeypatch.setattr(
        Store, "_put", lambda self, *args: not self.directory.endswith("cache") and put(self, *args)
    )
    other = "cd" + KEY[2:]
    assert store.write(other, "cpu", "k", b"other")
    assert store.read(KEY, "cpu", "k") == b"content"
    assert store.read(other, "cpu", "k") == b"other"


@pytest.mark.parametrize("home", ["", "relative", "/nonexistent/home", "/dev/null", "/proc"])
@pytest.mark.parametrize("temporary", ["usable", "missing"])
def test_strange_homes_keep_nothing_or_use_the_stand_in(tmp_path, home, temporary):
    program = f"""
import os, tempfile
from gridstride import _store
if {temporary == "missing"}:
    def gettempdir():
        raise FileNotFoundError("no usable temporary directory")
    tempfile.gettempdir = gettempdir
stored = _store.write({KEY!r}, "cpu", "k", b"content")
print(stored, _store.read({KEY!r}, "cpu", "k") == b"content")
"""
    environment = {"TMPDIR": str(tmp_path), "HOME": home, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    kept = temporary == "usable"
    assert done.stdout == f"{kept} {kept}\n"
    assert len(files_in(tmp_path)) == kept


def test_a_relative_place_is_that_of_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    monkeypatch.setenv("GRIDSTRIDE_CACHE_DIR", "cache")
    monkeypatch.chdir(tmp_path)
    assert store.write(KEY, "cpu", "k", b"content")
    assert path_of(Store(tmp_path / "cache")).is_file()


def test_a_relative_place_in_a_folder_that_is_gone_is_no_failure(tmp_path):
    program = f"""
import os
from gridstride import _store
os.rmdir(os.getcwd())
print(_store.write({KEY!r}, "cpu", "k", b"content"), _store.read({KEY!r}, "cpu", "k"))
"""
    (tmp_path / "gone").mkdir()
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary"), "GRIDSTRIDE_CACHE_DIR": "cache"}
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=tmp_path / "gone",
        env=environment,
    )  # fmt: skip
    assert done.stdout == "True b'content'\n"


def test_the_cap_removes_what_was_used_least_recently(cache):
    for number in range(10):
        cache.write(f"{number:02}" + KEY[2:], "cpu", "k", b"x" * 1000)
    for number, entry in enumerate(cache.entries()):
        os.utime(entry.path, (number, number))
    assert cache.trim(5 * (1000 + 59)) == 5
    assert [Path(entry.path).name[2:4] for entry in cache.entries()] == ["05", "06", "07", "08", "09"]


def test_the_newest_entry_stays_below_the_cap(cache, monkeypatch):
    monkeypatch.setenv("GRIDSTRIDE_CACHE_SIZE", "10000")
    for number in range(30):
        assert cache.write(f"{number:02}" + KEY[2:], "cpu", "k", b"x" * 2000)
        assert cache.read(f"{number:02}" + KEY[2:], "cpu", "k")
        assert sum(entry.size for entry in cache.entries()) <= 10000


def test_an_entry_beyond_the_cap_is_not_stored_and_evicts_nothing(cache, monkeypatch):
    monkeypatch.setenv("GRIDSTRIDE_CACHE_SIZE", "10000")
    assert cache.write(KEY, "cpu", "k", b"content")
    assert not cache.write("cd" + KEY[2:], "cpu", "k", b"x" * 10000)
    assert cache.read(KEY, "cpu", "k") == b"content"
    monkeypatch.setenv("GRIDSTRIDE_CACHE_SIZE", "0")
    assert not cache.write(KEY, "cpu", "k", b"content")


def test_writing_processes_keep_below_the_cap_together(tmp_path):
    cap, size = 200_000, 2000
    program = f"""
import os
from gridstride._store import Store
cache = Store({str(tmp_path / "cache")!r})
while True:
    assert cache.write(os.urandom(32).hex(), "cpu", "k", bytes({size}))
"""
    environment = {**os.environ, "GRIDSTRIDE_CACHE_SIZE": str(cap)}
    writers = [subprocess.Popen([sys.executable, "-c", program], env=environment) for _ in range(4)]
    cache, seen = Store(tmp_path / "cache"), []
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and len(seen) < 100:
            total = sum(entry.size for entry in cache.entries())
            if seen or total > cap / 2:
                seen.append(total)
        assert [writer.poll() for writer in writers] == [None] * 4
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    assert seen
    assert max(seen) <= cap


def test_clear(cache):
    cache.write(KEY, "cpu", "k", b"content")
    cache.write(KEY, "cuda", "k", b"content")
    Path(cache.folder("compiler"), "kept").write_bytes(bytes(100))
    assert cache.size_of_folders() == 100
    assert len(list(cache.entries())) == 2
    assert cache.clear() == 2
    assert files_in(cache.directory) == []


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
from gridstride import _store as store
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
    monkeypatch.setattr(store, "read", lambda *_: content)
    assert functions._read(KEY, NullTarget(), Program("", "f", CompileOptions())) is None
