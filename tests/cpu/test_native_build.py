"""Building without compilers, and what that leaves; test_package.py builds with them."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

USE = """
import numpy as np
import gridstride as gs
from gridstride import _native
k = gs.RawKernel('extern "C" __global__ void f(int* x) {}', "f")
for _ in range(3):
    k(1, 32, (np.zeros(4, np.int32),))
print(_native.__file__)
print(_native.is_compiled())
"""

WITHOUT_ZIG = """
import sys
sys.modules["ziglang"] = None
from gridstride.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of what a wheel is built from, without anything built."""
    folder = tmp_path_factory.mktemp("checkout")
    ignored = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


def build_wheel(checkout, destination, **environment):
    """Build a wheel with this interpreter and what is installed beside it; return its path and what was printed."""
    shutil.rmtree(checkout / "build", ignore_errors=True)
    command = [sys.executable, "setup.py", "bdist_wheel", "--dist-dir", str(destination)]
    done = subprocess.run(
        command, cwd=checkout, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = Path(destination).glob("*.whl")
    return wheel, done.stdout + done.stderr


def use(wheel, folder):
    """Run a program with what a wheel holds; return where it was found and whether it is compiled."""
    zipfile.ZipFile(wheel).extractall(folder)
    environment = {**os.environ, "PYTHONPATH": str(folder), "GRIDSTRIDE_TARGET": "null"}
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    path, compiled = done.stdout.splitlines()
    assert Path(path).is_relative_to(folder)
    return compiled == "True"


@pytest.fixture(scope="module")
def plain(checkout, tmp_path_factory):
    """A folder with what a wheel holds that was built without a compiler."""
    folder = tmp_path_factory.mktemp("plain")
    wheel, printed = build_wheel(checkout, folder / "dist", CC="false", CXX="false")
    assert "failed" in printed
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".so")]
    assert not use(wheel, folder / "installed")
    return folder / "installed"


def run_without_compilers(plain, folder, *command):
    """Run the command of a package in a folder, where no compiler is on the path and nothing in the cache."""
    environment = {
        "PATH": str(folder),
        "HOME": str(folder),
        "PYTHONPATH": str(plain),
        "GRIDSTRIDE_TARGET": "cpu",
    }
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_packaged_compiler_alone_runs_the_demo_without_any_extension(plain, tmp_path):
    pytest.importorskip("ziglang")
    done = run_without_compilers(plain, tmp_path, "-m", "gridstride", "demo", "--size", "64", "--steps", "8")
    assert done.returncode == 0, done.stderr
    assert "react x 8" in done.stdout
    assert (tmp_path / "demo-output" / "contact-sheet.png").stat().st_size > 0


@pytest.mark.parametrize("command", [("info",), ("demo", "--size", "64", "--steps", "8")])
def test_without_any_compiler_the_commands_name_the_remedy(plain, tmp_path, command):
    done = run_without_compilers(plain, tmp_path, "-c", WITHOUT_ZIG, *command)
    assert done.returncode != 0
    for remedy in ("apt install g++", "pip install 'gridstride[compiler]'"):
        assert remedy in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
