"""A row of the benchmarks that fails, hangs or ends the measuring process costs itself alone, and is named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

MACHINE = """
import os, time
from typing import NamedTuple

class Case(NamedTuple):
    id: str
    what: str

ROWS = {"good": "", "late": "", "wrong": "wrong", "dead": "dead", "stuck": "stuck", "last": ""}

def begin():
    return [{"id": "machine"}]

def cases(dtype, plan):
    return [Case(f"fake.{name}.{dtype}", what) for name, what in ROWS.items()]

def line(case):
    if case.what == "wrong":
        raise ValueError("another result")
    if case.what == "dead":
        os.kill(os.getpid(), 9)
    while case.what == "stuck":
        time.sleep(0.1)
    return {"id": case.id, "seconds": 1.0}

def shown(line):
    return line["id"]

def clean():
    pass
"""

PROGRAM = """
import sys
from pathlib import Path
import measure
measure.RESULTS = Path("results")
import supervise

if __name__ == "__main__":
    plan = supervise.Plan("fake_machine", (), ("a", "b"), {rows}, ends={ends}, row_seconds=3)
    outcome = supervise.measure(plan, measure.Record("fake", is_partial={partial}))
    sys.exit(len(outcome.failed))
"""


@pytest.fixture
def program(tmp_path: Path):
    """Start a program that measures rows of a made-up machine."""
    (tmp_path / "fake_machine.py").write_text(MACHINE)

    def start(
        rows: list[str] | None, ends: str = "float('inf')", partial: bool = False
    ) -> subprocess.Popen[str]:
        (tmp_path / "program.py").write_text(PROGRAM.format(rows=rows, ends=ends, partial=partial))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(BENCHMARKS)])}
        return subprocess.Popen(
            [sys.executable, "-u", "program.py"], cwd=tmp_path, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    return start


def _rows(folder: Path) -> list[str]:
    (path,) = (folder / "results").glob("fake-*.json")
    return [row["id"] for row in json.loads(path.read_text())["rows"]]


def test_every_other_row_is_measured_and_kept(program, tmp_path: Path) -> None:
    run = program(["good", "wrong", "dead", "stuck", "last"])
    out, error = run.communicate(timeout=50)
    assert run.returncode == 6, error
    assert "fake.wrong.a: ValueError: another result" in out
    assert "ended at fake.dead.b: killed by SIGKILL" in out
    assert "ended at fake.stuck.a: no end after 3 s" in out
    assert "4 rows measured, 6 failed, 0 not run" in out
    assert _rows(tmp_path) == ["machine", "fake.good.a", "fake.last.a", "fake.good.b", "fake.last.b"]


def test_rows_of_a_part_join_the_file_of_the_day(program, tmp_path: Path) -> None:
    for rows in (["good", "late"], ["late", "last"]):
        run = program(rows, partial=True)
        _, error = run.communicate(timeout=30)
        assert run.returncode == 0, error
    kept = _rows(tmp_path)
    assert len(kept) == len(set(kept)) == 7
    assert {"fake.good.a", "fake.late.b", "fake.last.a"} < set(kept)


def test_what_there_was_no_time_for_is_listed(program) -> None:
    out, _ = program(["good", "last"], ends="0.0").communicate(timeout=30)
    assert "4 not run" in out
    assert "not run: fake.good.a fake.last.a fake.good.b fake.last.b" in out


def test_a_program_that_is_stopped_says_where(program, tmp_path: Path) -> None:
    run = program(["good", "stuck", "last"])
    for line in run.stdout:
        if "fake.good.a" in line:
            break
    time.sleep(0.3)
    run.send_signal(signal.SIGTERM)
    out, error = run.communicate(timeout=30)
    assert run.returncode != 0
    assert "not run: fake.stuck.a fake.last.a" in out
    assert "not begun: b" in out
    assert "SIGTERM" in error
    assert "fake.good.a" in _rows(tmp_path)
