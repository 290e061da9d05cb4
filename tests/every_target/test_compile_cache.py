"""The compile cache among processes, threads and forks, without a home, on full disks, and damaged."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from cache_support import Users, can_mount, use_at_once

import gridstride as gs
from gridstride._compilation import functions
from gridstride._compilation.encoding import decode, encode
from gridstride._store import Store
from gridstride.targets.base import ObjectCode, Target

needs_mounts = pytest.mark.skipif(not can_mount(), reason="no mounts without the superuser's rights here")
TEXT = 'extern "C" __global__ void k(int* x) { x[threadIdx.x] = 7; }'


@pytest.fixture
def users(target: Target, tmp_path: Path) -> Users:
    return Users(target.name, tmp_path)


def proves_warm(users: Users, kernels: int, **changes: str) -> bool:
    return users.succeed(kernels, GRIDSTRIDE_FORBID_COMPILATION="1", **changes) == 0


# ---- processes, threads, forks ----


@pytest.mark.parametrize(
    ("processes", "kernels", "killed"), [(3, 4, 1), pytest.param(10, 20, 4, marks=pytest.mark.soak)]
)
def test_processes_with_one_empty_cache_some_killed_half_way(
    users: Users, processes: int, kernels: int, killed: int
) -> None:
    """P110, P114, P115: nobody fails or waits for the dead, and nobody compiles afterwards."""
    use_at_once(users, processes, kernels, killed)
    assert proves_warm(users, kernels)
    assert users.succeed(kernels, "threads", GRIDSTRIDE_FORBID_COMPILATION="1") == 0
    assert users.succeed(kernels, "fork", GRIDSTRIDE_FORBID_COMPILATION="1") == 0


@pytest.mark.parametrize("how", ["threads", "fork"])
def test_an_empty_cache_and_threads_or_forks(users: Users, how: str) -> None:
    compiled = users.succeed(4, how)
    assert compiled <= 4, "what is compiled once in a process is compiled for all of its threads"
    assert users.damaged() == []
    assert proves_warm(users, 4)


def test_later_runs_compile_nothing_and_leave_nothing(users: Users) -> None:
    """P112, P117: entries lie in subfolders under names that say what they are."""
    assert users.succeed(2) == 2
    files = sorted(path for path in users.folder.rglob("*") if path.is_file())
    for _ in range(2):
        assert users.succeed(2) == 0
    assert sorted(path for path in users.folder.rglob("*") if path.is_file()) == files
    assert list(users.temporary.iterdir()) == []
    names = sorted(str(path.relative_to(users.cache)) for path in users.entries())
    assert len(names) == 2
    for name in names:
        group, folder, file = name.split("/")
        assert group == users.target
        assert file.startswith("add_")
        assert file.rpartition("-")[2].startswith(folder)


# ---- strange places ----


def test_a_home_that_cannot_be_written_to(users: Users, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    changes = {"HOME": str(home), "GRIDSTRIDE_CACHE_DIR": "", "XDG_CACHE_HOME": ""}
    assert users.succeed(2, drop_privileges=True, **changes) == 2
    assert list(home.iterdir()) == []
    assert proves_warm(users, 2, drop_privileges=True, **changes)
    stand_in = users.temporary / f"gridstride-{os.getuid()}"
    assert len(list(users.entries(stand_in))) == 2
    shutil.rmtree(stand_in)
    stand_in.write_text("in the way")
    for _ in range(2):
        assert users.succeed(2, drop_privileges=True, **changes) == 2


def test_a_warm_home_becomes_read_only(users: Users, tmp_path: Path) -> None:
    assert users.succeed(2) == 2
    for entry in users.entries():
        os.utime(entry, (0, 0))
    folders = [path for path in [users.cache, *users.cache.rglob("*")] if path.is_dir()]
    for folder in folders:
        folder.chmod(0o500)
    assert proves_warm(users, 2, drop_privileges=True)
    assert users.succeed(4, drop_privileges=True) == 2
    assert proves_warm(users, 4, drop_privileges=True)
    for folder in folders:
        folder.chmod(0o700)


def test_no_umask_keeps_entries_from_being_found(users: Users) -> None:
    shell = ["sh", "-c", 'umask 002; exec "$0" "$@"']
    plain = users.command
    users_with_mask = type(
        "Masked", (Users,), {"command": lambda self, *args, **kw: [*shell, *plain(*args, **kw)]}
    )(*users)
    assert users_with_mask.succeed(1) == 1
    assert proves_warm(users_with_mask, 1)


# ---- disks ----


@needs_mounts
@pytest.mark.parametrize("size", ["16k"])
def test_the_disk_of_the_cache_is_full(users: Users, size: str) -> None:
    users.cache.mkdir(mode=0o700)
    mount = f'mount -t tmpfs -o mode=0700,size={size} none "$GRIDSTRIDE_CACHE_DIR"'
    warm = 'eval "GRIDSTRIDE_FORBID_COMPILATION=1 $worker"'
    assert users.succeed(4, around=f'{mount}; eval "$worker"; {warm}') == 0


@needs_mounts
@pytest.mark.parametrize("size", ["4k", "200k"])
def test_every_disk_is_full(users: Users, size: str) -> None:
    users.cache.mkdir(mode=0o700)
    mounts = "; ".join(
        f'mount -t tmpfs -o mode=0700,size={size} none "${place}"'
        for place in ("GRIDSTRIDE_CACHE_DIR", "TMPDIR")
    )
    done = users.run(4, around=f'{mounts}; eval "$worker"')
    fails_clearly(done.returncode, done.stdout, done.stderr)


def fails_clearly(returncode: int, shown: str, problems: str) -> None:
    assert (returncode == 3 and "Error: " in shown) or returncode == 0, shown + problems
    assert problems == ""
    if returncode:
        assert any(
            words in shown for words in ("TMPDIR", "No space left", "too large", "SIGXFSZ", "limit")
        ), shown


@pytest.mark.parametrize("kilobytes", [1, 20])
def test_no_file_may_grow(users: Users, kilobytes: int) -> None:
    shell = ["bash", "-c", f'ulimit -f {kilobytes}; exec "$0" "$@"']
    limited = type(
        "Limited", (Users,), {"command": lambda self, *args, **kw: [*shell, *users.command(*args, **kw)]}
    )(*users)
    done = limited.run(2)
    fails_clearly(done.returncode, done.stdout, done.stderr)
    assert users.damaged() == []
    assert users.succeed(2) <= 2
    assert proves_warm(users, 2)


@needs_mounts
def test_nothing_may_be_executed_from_the_temporary_folder(users: Users) -> None:
    users.cache.mkdir(mode=0o700)
    mounts = "; ".join(
        f'mount -t tmpfs -o mode=0700,noexec none "${place}"' for place in ("GRIDSTRIDE_CACHE_DIR", "TMPDIR")
    )
    assert users.succeed(2, around=f'{mounts}; eval "$worker"') == 2


# ---- damage ----


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("GRIDSTRIDE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return Store(tmp_path / "cache")


@pytest.fixture
def compiled(target: Target, monkeypatch: pytest.MonkeyPatch) -> list[ObjectCode]:
    """What the target compiled; from the second time on it answers the same without a compiler."""
    results: list[ObjectCode] = []
    compile_ = target.compile

    def compile_once(*args: object) -> ObjectCode:
        results.append(results[0] if results else compile_(*args))  # type: ignore[arg-type]
        return results[-1]

    monkeypatch.setattr(target, "compile", compile_once)
    return results


def use() -> None:
    """Use the kernel as a new process would."""
    functions.forget_programs()
    gs.RawKernel(TEXT, "k").compile()


def entry_of(cache: Store, target: Target) -> Path:
    (path,) = (Path(entry.path) for entry in cache.entries() if entry.group == target.name)
    return path


def test_damaged_entries_are_rebuilt(target: Target, cache: Store, compiled: list[ObjectCode]) -> None:
    use()
    path = entry_of(cache, target)
    whole = path.read_bytes()
    code = whole.index(compiled[0].code[:64])
    places = {
        "magic": 0, "length": 20, "digest": 40, "description": 59, "code": code,
        "middle of the code": code + len(compiled[0].code) // 2, "end": len(whole) - 1,
    }  # fmt: skip
    damaged = {f"flipped {name}": _flipped(whole, place) for name, place in places.items()}
    damaged |= {f"cut before {name}": whole[:place] for name, place in places.items()}
    damaged |= {
        "longer": whole + b"\0",
        "twice": whole * 2,
        "zeros": bytes(len(whole)),
        "text": b"not an entry",
    }
    for number, (how, content) in enumerate(damaged.items(), 2):
        path.write_bytes(content)
        use()
        assert len(compiled) == number, how
        assert path.read_bytes() == whole, how
        use()
        assert len(compiled) == number, f"{how}: compiled though the entry is whole again"


def _flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :]


@pytest.mark.parametrize("code", [b"", b"no object code", b"\x7fELF" + bytes(100)])
def test_an_entry_that_no_device_takes_is_compiled_and_stored_anew(
    target: Target, cache: Store, compiled: list[ObjectCode], monkeypatch: pytest.MonkeyPatch, code: bytes
) -> None:
    use()
    path = entry_of(cache, target)
    whole = path.read_bytes()
    name, _, key = path.stem.rpartition("-")
    content = cache.read(key, target.name, name)
    assert content is not None
    assert cache.write(key, target.name, name, encode(decode(content)._replace(code=code)))
    use()
    assert len(compiled) == 2
    assert path.read_bytes() == whole
    assert decode(cache.read(key, target.name, name) or b"").code == compiled[0].code
    monkeypatch.setenv("GRIDSTRIDE_FORBID_COMPILATION", "1")
    use()


@pytest.mark.parametrize(
    "content", [b"", b"x", bytes(8) + b"{}", (2).to_bytes(8, "little") + b"[]", b"\xff" * 30]
)
def test_whole_entries_of_another_form_are_misses(
    target: Target, cache: Store, compiled: list[ObjectCode], content: bytes
) -> None:
    use()
    path = entry_of(cache, target)
    whole = path.read_bytes()
    name, _, key = path.stem.rpartition("-")
    assert cache.write(key, target.name, name, content)
    use()
    assert len(compiled) == 2
    assert path.read_bytes() == whole


def test_a_forbidden_compilation_says_how_to_allow_it(
    target: Target, cache: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRIDSTRIDE_FORBID_COMPILATION", "1")
    with pytest.raises(gs.CompileError, match="GRIDSTRIDE_FORBID_COMPILATION"):
        use()
    monkeypatch.delenv("GRIDSTRIDE_FORBID_COMPILATION")
    use()
    monkeypatch.setenv("GRIDSTRIDE_FORBID_COMPILATION", "1")
    use()
