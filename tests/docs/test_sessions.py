"""Every terminal session in the documentation runs and prints what is shown, times and the processor aside."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from gridstride.targets.cuda import nvrtc

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SESSION = "```console"
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if SESSION in page.read_text()]
#: What differs from one run and one machine to the next.
VARYING = (
    (re.compile(r"\b[\d.e+-]+ (?:us|ms|s|GB/s)\b"), "TIME"),
    (re.compile(r"(?<= on cpu )\([^\n]*\)$", re.MULTILINE), "(PROCESSOR)"),
)


class Step(NamedTuple):
    """A command and what it printed."""

    command: str
    shown: str


def steps(text: str) -> Iterator[Step]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield Step(command, shown)


def settled(text: str) -> str:
    for pattern, replacement in VARYING:
        text = pattern.sub(replacement, text)
    return text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sessions_print_what_is_shown(page: Path, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GRIDSTRIDE_TARGET": "cpu",
    }
    checked = 0
    for language, title, body in BLOCK.findall(page.read_text()):
        if title:
            (tmp_path / title).write_text(body)
        for step in steps(body) if language == "console" else ():
            if "--target cuda" in step.command and nvrtc.find() is None:
                continue
            done = subprocess.run(
                ["bash", "-c", step.command],
                check=False, cwd=tmp_path, env=environment, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            assert settled(done.stdout) == settled(step.shown), step.command
            checked += 1
    assert checked


def test_there_are_sessions() -> None:
    """Else the test above would silently test nothing."""
    assert "command-line" in {page.stem for page in PAGES}
