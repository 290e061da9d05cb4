"""The command line: what needs no compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gridstride
from gridstride import cli, config
from gridstride._store import Store, open_store
from gridstride.cli.cache import readable_bytes


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("GRIDSTRIDE_CACHE_DIR", str(tmp_path / "cache"))
    opened = open_store()
    assert opened is not None
    return opened


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gridstride", *arguments],
        check=False,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


def test_cache_info_counts_entries_and_bytes_of_each_target(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    store.write("a" * 64, "cpu", "one", b"x" * 3000)
    store.write("b" * 64, "cpu", "two", b"x" * 3000)
    store.write("c" * 64, "cuda", "three", b"x" * 10)
    assert cli.main(["cache", "info"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"folder   {store.directory}" in lines
    assert next(line for line in lines if line.startswith("entries")).startswith("entries  3, 6.")
    assert any(line.startswith("  cpu") and " 2, 6.0 KiB" in line for line in lines)
    assert any(line.startswith("  cuda") and " 1, 69 bytes" in line for line in lines)


def test_cache_clear_leaves_nothing(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    store.write("a" * 64, "cpu", "one", b"x")
    assert cli.main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"Removed 1 entries from {store.directory}\n"
    assert not list(store.entries())


def test_a_cache_that_cannot_be_used_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("GRIDSTRIDE_CACHE_DIR", str(shared))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "file"))
    (tmp_path / "file").write_text("no folder")
    assert cli.main(["cache", "info"]) == 1
    assert "GRIDSTRIDE_CACHE_DIR" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (1 << 30, "1.0 GiB"), (1 << 41, "2048.0 GiB")],
)
def test_bytes_are_readable(count: int, text: str) -> None:
    assert readable_bytes(count) == text


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["--help"])
    assert left.value.code == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in cli.COMMANDS)


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    shown = capsys.readouterr()
    assert all(f"  {name} " in shown.err for name in cli.COMMANDS)
    assert not shown.out


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main([name, "--help"])
    assert left.value.code == 0
    assert f"gridstride {name}" in capsys.readouterr().out


def test_an_unknown_command_is_refused_with_the_known_ones() -> None:
    done = command("infos")
    assert done.returncode == 2
    assert "info" in done.stderr


def test_the_version_is_shown() -> None:
    assert command("--version").stdout == f"gridstride {gridstride.__version__}\n"


def test_info_without_a_compiler_says_what_to_do_and_fails(tmp_path: Path) -> None:
    done = command("info", GRIDSTRIDE_CXX=str(tmp_path / "no-compiler"), CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 1
    assert "No target runs kernels on this machine" in done.stdout
    row = next(line for line in done.stdout.splitlines() if line.startswith("  cpu "))
    assert "no-compiler" in row
    assert "GRIDSTRIDE_CXX" in row
    assert not done.stderr


def test_info_shows_every_setting() -> None:
    done = command("info", GRIDSTRIDE_CXX="/nonexistent", GRIDSTRIDE_NUM_THREADS="3")
    assert all(f"  {name}" in done.stdout for name in config.VARIABLES)
    assert "  GRIDSTRIDE_NUM_THREADS=3\n" in done.stdout
