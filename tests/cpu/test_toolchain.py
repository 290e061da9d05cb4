"""Finding, naming and calling the host compiler."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gridstride.errors import TargetUnavailable
from gridstride.targets.cpu import toolchain
from gridstride.targets.cpu.calling import CompilerFailed
from gridstride.targets.options import parse_options

_FAKE = """#!/bin/sh
echo call >> "{log}"
case " $* " in *" --version "*) echo "{version}"; exit 0;; esac
exec sleep 600
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH, with a compiler that only knows its version."""
    monkeypatch.setenv("GRIDSTRIDE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("GRIDSTRIDE_CXX", raising=False)
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    _write_compiler(folder / "g++", "g++ (Fake) 99.1")
    return folder


def _write_compiler(path: Path, version: str) -> None:
    path.write_text(_FAKE.format(log=path.parent / "log", version=version))
    path.chmod(0o755)


def _calls(folder: Path) -> int:
    log = folder / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_without_any_compiler_the_error_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("GRIDSTRIDE_CXX", raising=False)
    monkeypatch.setattr(toolchain, "_packaged_zig", lambda: None)
    with pytest.raises(TargetUnavailable, match="no C\\+\\+ compiler") as caught:
        toolchain.find_toolchain()
    assert caught.value.target == "cpu"
    for word in ("apt install g++", "dnf install", "conda", "gridstride[compiler]", "GRIDSTRIDE_CXX"):
        assert word in caught.value.remedy


@pytest.mark.parametrize("value", ["no-such-compiler", "/bin/false"])
def test_a_chosen_compiler_that_does_not_run_is_named(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSTRIDE_CXX", value)
    with pytest.raises(TargetUnavailable, match=value):
        toolchain.find_toolchain()


def test_the_first_on_the_path_is_taken_and_asked_once(fake: Path) -> None:
    found = toolchain.find_toolchain()
    assert (found.command, found.kind, found.version) == ((str(fake / "g++"),), "gcc", "g++ (Fake) 99.1")
    toolchain._find.cache_clear()
    assert toolchain.find_toolchain() == found
    assert _calls(fake) == 1, "a second process shall not ask again"


def test_another_compiler_under_the_same_name_is_asked_again(fake: Path) -> None:
    toolchain.find_toolchain()
    toolchain._find.cache_clear()
    _write_compiler(fake / "g++", "clang version 100.2, in g++'s place")
    found = toolchain.find_toolchain()
    assert (found.kind, found.version) == ("clang", "clang version 100.2, in g++'s place")


def test_an_unreadable_note_is_written_anew(fake: Path) -> None:
    found = toolchain.find_toolchain()
    (note,) = (fake.parent / "cache" / "cpu-compiler").glob("*/*.bin")
    content = note.read_bytes()
    for unreadable in (b"", b"gcc", content[:-1]):
        note.write_bytes(unreadable)
        toolchain._find.cache_clear()
        assert toolchain.find_toolchain() == found
        assert note.read_bytes() == content


def test_a_broken_compiler_does_not_hide_the_next(fake: Path) -> None:
    (fake / "g++").write_text("#!/bin/sh\nexit 1\n")
    _write_compiler(fake / "clang++", "clang version 7")
    assert toolchain.find_toolchain().kind == "clang"


def test_a_changed_call_of_one_compiler_has_another_fingerprint(
    fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = toolchain.find_toolchain().fingerprint()
    monkeypatch.setenv("GRIDSTRIDE_CXX", "g++ -O0")
    assert toolchain.find_toolchain().fingerprint() != plain
    monkeypatch.delenv("GRIDSTRIDE_CXX")
    toolchain._find.cache_clear()
    _write_compiler(fake / "g++", "g++ (Fake) 99.1\nbuilt anew")
    assert toolchain.find_toolchain().fingerprint() != plain


@pytest.mark.parametrize("chosen", ["g++ '", "''", "g++ --version-of-nothing"])
def test_a_choice_that_cannot_be_called_is_shown(
    fake: Path, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fake / "g++").write_text("#!/bin/sh\n[ $# = 1 ] && echo g++\n")
    monkeypatch.setenv("GRIDSTRIDE_CXX", chosen)
    with pytest.raises(TargetUnavailable, match=r"GRIDSTRIDE_CXX|--version-of-nothing"):
        toolchain.find_toolchain()


def test_a_compiler_that_hangs_is_ended(fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "TIME_LIMIT", 0.5)
    with pytest.raises(CompilerFailed, match=r"ended after 0\.5 seconds"):
        toolchain.find_toolchain().run(["-c", "x.cpp"], tmp_path)
    assert _running_in(tmp_path) == []


def _running_in(folder: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd") == str(folder):
                found.append(process.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("options", "present", "absent"),
    [
        ((), ["-O3", "-std=gnu++17", "-ffp-contract=fast", "-march=native"], ["-g", "-g1"]),
        (("-O1",), ["-O1"], ["-O3"]),
        (("-G",), ["-O0", "-g"], ["-O3"]),
        (("-lineinfo",), ["-g1", "-O3"], ["-g"]),
        (("--fmad=false",), ["-ffp-contract=off"], ["-ffp-contract=fast"]),
        (("--use_fast_math",), ["-ffp-contract=fast", "-freciprocal-math"], ["-ffast-math"]),
        (("-std=c++20",), ["-std=gnu++20"], ["-std=gnu++17"]),
        (("--maxrregcount=32", "--extra-device-vectorization"), ["-O3"], []),
    ],
)
@pytest.mark.parametrize("kind", ["gcc", "clang", "zig"])
def test_options_are_translated(
    options: tuple[str, ...], present: list[str], absent: list[str], kind: str
) -> None:
    flags = toolchain.Toolchain(("c++",), kind, "1").compile_flags(parse_options(options, target="cpu"))
    assert set(present) <= set(flags)
    assert not set(absent) & set(flags)


@pytest.mark.parametrize("kind", ["gcc", "clang", "zig"])
def test_the_linker_never_sees_fast_math(kind: str) -> None:
    """It would link code that makes the loading thread flush subnormal numbers to zero."""
    flags = toolchain.Toolchain(("c++",), kind, "1").link_flags()
    assert not any("fast" in flag or "-O" in flag for flag in flags)


def test_the_arch_is_a_level_of_this_processor() -> None:
    assert toolchain.host_arch() in {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"}
