"""The walk-throughs of CONTRIBUTING lead where they say, followed step by step in a temporary folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
#: Of the tests that a third target passes: those that look targets up, and that run kernels of few texts.
SOME = (
    "tests/pure/test_registry.py", "tests/pure/test_native_places.py", "tests/pure/test_native_target_methods.py",
    "tests/every_target/test_info.py", "tests/every_target/test_raw_structs.py",
)  # fmt: skip


class Block:
    """A fenced block with a title: the file it belongs to."""

    def __init__(self, language: str, title: str, body: str) -> None:
        self.language, self.title, self.body = language, title, body

    def apply(self, folder: Path) -> None:
        """Write the file, or for a diff insert its new lines into the file."""
        path = folder / self.title
        if self.language == "diff":
            old = "".join(f"{line[1:]}\n" for line in self.body.splitlines() if line[0] == " ")
            new = "".join(f"{line[1:]}\n" for line in self.body.splitlines() if line[0] in " +")
            text = path.read_text()
            assert text.count(old) == 1, f"{self.title} no longer has the lines around the change"
            path.write_text(text.replace(old, new))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.body)


def blocks(heading: str) -> list[Block]:
    section = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0]
    return [
        Block(*found) for found in re.findall(r'^```(\w+) title="(.+?)"\n(.*?)^```$', section, re.M | re.S)
    ]


def run(command: list[str], environment: Mapping[str, str], folder: Path = ROOT) -> str:
    done = subprocess.run(
        command,
        check=False,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-5000:]}\n{done.stderr[-5000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def third_target(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the target of the walk-through is installed; the project is untouched."""
    project, site = tmp_path_factory.mktemp("counting"), tmp_path_factory.mktemp("site")
    for block in blocks("Add a target"):
        if block.language != "sh":
            block.apply(project)
    install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--target",
    ]
    run([sys.executable, *install, str(site), str(project)], {}, project)
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH"), str(ROOT / "src")]))
    return {"PYTHONPATH": path, "GRIDSTRIDE_TARGET": "counting"}


def test_the_commands_are_those_that_are_tested() -> None:
    (proof,) = (block for block in blocks("Add a target") if block.language == "sh")
    assert proof.body.splitlines() == [
        "gridstride info",
        "GRIDSTRIDE_TARGET=counting pytest tests/pure $(cat tests/every_target/acceptance.txt)",
    ]


def test_a_third_target_proves_itself(third_target: dict[str, str]) -> None:
    output = run([sys.executable, "-m", "gridstride", "info"], third_target)
    assert re.search(r"counting +OK: .+ compiled a small kernel", output)


@pytest.mark.parametrize("all_of_them", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_a_third_target_passes_the_tests_without_a_change(
    third_target: dict[str, str], all_of_them: bool
) -> None:
    accepted = (ROOT / "tests" / "every_target" / "acceptance.txt").read_text().split()
    everything = ["tests/pure", *accepted]
    assert all(each in everything or str(Path(each).parent) in everything for each in SOME)
    chosen = everything if all_of_them else SOME
    output = run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *chosen], third_target)
    assert re.search(r"^  counting: available$", output, re.M)
    assert " passed" in output
    assert "failed" not in output


def test_a_third_target_does_the_work(third_target: dict[str, str]) -> None:
    code = (
        "import numpy as np, gridstride as gs; from gridstride.targets import registry\n"
        "k = gs.RawKernel('extern \"C\" __global__ void k(int* x) { x[threadIdx.x] = COUNT; }', 'k', ('-DCOUNT=7',))\n"
        "x = np.zeros(3, np.int32); k(1, 3, (x,)); k(1, 3, (x,)); print(x, registry.get('counting').compilations)"
    )
    assert run([sys.executable, "-c", code], third_target).strip() == "[7 7 7] 1"


def test_an_array_library_is_added_by_one_file_and_a_line(tmp_path: Path) -> None:
    for folder in ("src", "tests"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    steps = blocks("Add an array library")
    for block in steps:
        block.apply(tmp_path)
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(tmp_path / "src")])}
    tests = [block.title for block in steps if block.title.startswith("tests/")]
    tests += ["tests/pure/test_house_architecture.py"]
    output = run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests], environment, tmp_path
    )
    assert "failed" not in output
