"""Wheel and sdist: built, complete, and working in an environment that has the declared dependencies only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: Neither Python nor data of the package: sources of the extension, which users get compiled.
EXTENSION_SOURCE = ".c"
KERNEL = r"""
import numpy as np
import gridstride as gs
kernel = gs.RawKernel('extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }', "twice")
x = np.arange(1000, dtype=np.float32)
kernel((1,), (1000,), (x,))
assert np.array_equal(x, 2 * np.arange(1000))
print(gs.__file__)
print(gs._native.is_compiled())
"""
HAS_STABLE_ABI = not sysconfig.get_config_var("Py_GIL_DISABLED")
WARNINGS = "-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, the wheel that was built from it with all warnings, and what was printed."""
    project = tmp_path_factory.mktemp("project")
    for name in tracked_files():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, project / name)
    dist = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(dist)]
    (dist / "printed").write_text(run(command, project, CFLAGS=WARNINGS))
    return dist


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of an environment with the wheel and, by links, its dependencies."""
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin" / "python"
    wheel = next(built.glob("*.whl"))
    run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "--no-index",
            "--no-deps",
            str(wheel),
        ]
    )
    site = next(environment.glob("lib/python*/site-packages"))
    for name in ("numpy", "tree-sitter", "tree-sitter-cuda"):
        link_distribution(name, site)
    return environment / "bin"


def test_the_wheel_has_every_file_of_the_package(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        packed = {
            name for name in wheel.namelist() if name.startswith("gridstride/") and not name.endswith(".so")
        }
    package = {
        name.removeprefix("src/")
        for name in tracked_files()
        if name.startswith("src/") and not name.endswith(EXTENSION_SOURCE)
    }
    assert packed == package
    assert {"gridstride/py.typed", "gridstride/_native/launch_abi.h"} <= packed


def test_the_wheel_says_what_it_is(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = {name.partition(".dist-info/")[2]: name for name in wheel.namelist() if ".dist-info/" in name}
        about = wheel.read(names["METADATA"]).decode()
        assert wheel.read(names["licenses/LICENSE"]) == (ROOT / "LICENSE").read_bytes()
        assert "gridstride = gridstride.cli:main" in wheel.read(names["entry_points.txt"]).decode()
    assert "License-Expression: Apache-2.0" in about
    assert f"Requires-Python: {PROJECT['requires-python']}" in about
    required = [
        line.removeprefix("Requires-Dist: ") for line in about.splitlines() if "Requires-Dist: " in line
    ]
    assert [line.partition("<")[0].partition(">")[0] for line in required if "extra ==" not in line] == [
        "numpy",
        "tree-sitter",
        "tree-sitter-cuda",
    ]


def test_the_extension_builds_without_warnings(built: Path) -> None:
    of_ours = [line for line in (built / "printed").read_text().splitlines(True) if "_native/" in line]
    assert any(WARNINGS in line for line in of_ours)
    assert "warning:" not in "".join(of_ours)


@pytest.mark.skipif(not HAS_STABLE_ABI, reason="this Python has no stable ABI")
def test_the_wheel_has_the_extensions_for_the_stable_abi(built: Path) -> None:
    wheel = next(built.glob("*.whl"))
    assert "-cp311-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as packed:
        assert {name for name in packed.namelist() if name.endswith(".so")} == {
            "gridstride/_native/_launcher.abi3.so",
            "gridstride/targets/cpu/_prebuilt.abi3.so",
        }


def test_the_sdist_has_everything_that_is_needed_to_build_and_test(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        packed = {name.partition("/")[2] for name in sdist.getnames()}
    wanted = {name for name in tracked_files() if name.startswith(("src/", "tests/", "docs/"))}
    wanted |= {"LICENSE", "README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml", "setup.py", ".ci/run"}
    assert wanted <= packed
    assert not [name for name in packed if name.endswith((".so", ".pyc"))]


@pytest.mark.parametrize("native", ["1", "0"])
def test_a_kernel_runs_from_the_wheel(installed: Path, native: str, tmp_path: Path) -> None:
    shown = run([str(installed / "python"), "-c", KERNEL], tmp_path, GRIDSTRIDE_NATIVE=native)
    path, is_compiled = shown.splitlines()
    assert Path(path).is_relative_to(installed.parent)
    assert is_compiled == str(HAS_STABLE_ABI)


def test_the_command_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    assert "cpu   OK" in run([str(installed / "gridstride"), "info"], tmp_path)


def test_the_demo_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    shown = run([str(installed / "gridstride"), "demo", "--size", "64", "--steps", "8"], tmp_path)
    assert "react x 8" in shown
    assert (tmp_path / "demo-output" / "contact-sheet.png").stat().st_size > 0


@cache
def tracked_files() -> list[str]:
    """Return the files that the repository would hand out, with those that are new; in an sdist all there are."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode == 0:
        return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    return [
        str(path.relative_to(ROOT))
        for top in (".ci", "src", "tests", "docs", "examples", "benchmarks", "changelog.d")
        for path in (ROOT / top).rglob("*")
        if path.is_file() and path.suffix not in {".pyc", ".so"} and ".egg-info" not in str(path)
    ] + [path.name for path in ROOT.iterdir() if path.is_file()]


def link_distribution(name: str, site: Path) -> None:
    """Show an installed distribution, and nothing else of its environment, to another environment."""
    files = metadata.files(name)
    assert files is not None
    for top in {file.parts[0] for file in files if not file.parts[0].startswith(".")}:
        (site / top).symlink_to(Path(str(metadata.distribution(name).locate_file(top))))


def run(command: list[str], folder: Path = ROOT, **environment: str) -> str:
    """Run a command without this process's Python path; return what it printed."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, check=False, cwd=folder, env={**inherited, **environment},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-6000:]}"
    return done.stdout
