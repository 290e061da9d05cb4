"""``gridstride info`` proves a target by its values."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from gridstride import cli
from gridstride.targets.base import Target


def test_info_proves_the_target(target: Target, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info"]) == 0
    shown = capsys.readouterr().out
    row = next(line for line in shown.splitlines() if line.startswith(f"  {target.name} "))
    assert re.search(
        r"OK: .+ compiled a small kernel in \d+ ms; it ran, from start to end, in \d+ ms on ", row
    )
    assert f"go to target '{target.name}'" in shown


def test_info_works_as_a_command_of_its_own(target: Target) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gridstride", "info"],
        check=True,
        env=os.environ,
        capture_output=True,
        text=True,
    )
    assert f"go to target '{target.name}'" in done.stdout
    assert "\x1b" not in done.stdout
    assert not done.stderr


def test_info_reports_wrong_values(
    target: Target, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(np, "array_equal", lambda *arrays: False)
    monkeypatch.setattr("gridstride.targets.registry.candidates", lambda: [target.name])
    assert cli.main(["info"]) == 1
    assert "FAILED: a small kernel gave wrong values" in capsys.readouterr().out
