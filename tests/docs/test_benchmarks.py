"""The benchmark tables in the documentation are those of the newest results, and the benchmarks run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.crosses import in_soak

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import array_rows  # noqa: E402
import report  # noqa: E402


def test_the_tables_are_current() -> None:
    text = report.PAGE.read_text()
    assert report.page(text) == text, "run benchmarks/report.py"


def test_the_newest_results_of_each_topic_are_shown(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(report, "FOLDER", tmp_path)
    machine = {"processor": "p", "cores": 2, "compiler": "g++ 1", "python": "3", "packages": {}}
    seconds = {"ours": [0.3, 0.2, 0.4], "native": [0.2], "copy": [0.1]}
    row = {
        "id": "cpu.kernels.x",
        "title": "x",
        "tier": "flat",
        "moved_bytes": 80_000_000,
        "goal": 2.0,
        "seconds": seconds,
    }
    for name, middle in (
        ("cpu-kernels-2026-01-01", 9.0),
        ("cpu-kernels-2026-02-01", 0.3),
        ("cpu-kernels-zig-2026-01-01", 0.1),
    ):
        record = {"topic": name, "date": name[-10:], "machine": machine,
                  "rows": [{**row, "seconds": {**seconds, "ours": [middle]}}]}  # fmt: skip
        (tmp_path / "results" / f"{name}.json").write_text(json.dumps(record))
    lines = [line for line in report.tables() if line.startswith("| x ")]
    assert lines == [
        "| x | flat | 300 | 200 | 1.5x | - | - | - | - | 0.33 | 2x |",
        "| x | flat | 100 | 200 | 0.5x | - | - | - | - | 1.00 | 2x |",
    ]


def test_array_kernels_are_a_table_of_rows_and_dtypes() -> None:
    machine = {"processor": "p", "cores": 2, "compiler": "g++ 1", "python": "3", "packages": {}}
    rows = [
        {"id": "cuda.copy", "GB/s": 4200.0},
        {"id": "cuda.axpy.float32", "microseconds": 700.0, "of copy": 1.0, "of sectors": 1.1, "torch of copy": 0.9,
         "CuPy of copy": 0.3, "goal": 1.0, "is met": True},
        {"id": "cuda.axpy.int8", "microseconds": 900.0, "of copy": 0.7, "of sectors": 0.7, "goal": 1.0,
         "is met": False},
        {"id": "cuda.sum.by7.1.int8", "microseconds": 9.0, "of copy": 0.4, "of sectors": 0.8,
         "torch of copy": 0.2, "goal": "", "is met": False},
        {"id": "cuda.sum.small.int8", "microseconds": 6.0, "torch microseconds": 11.0, "CuPy microseconds": 15.0,
         "device microseconds": 2.0, "goal": 8.0, "is met": True},
    ]  # fmt: skip
    lines = list(report.array_table("t", {"topic": "x", "date": "d", "machine": machine, "rows": rows}))
    assert "cuda.copy: 4.2e+03 GB/s." in lines
    assert lines[lines.index("| row | goal | float32 | int8 |") :] == [
        "| row | goal | float32 | int8 |",
        "| --- | --- | --- | --- |",
        "| axpy | 1 | 1.00 (0.90) | **0.70** |",
        "| sum.by7.1 |  |  | **0.80** (0.40) |",
        "| sum.small | 8 |  | 6.0 us (11.0 us) |",
        "",
    ]


@pytest.mark.parametrize("rows", [["axpy", "max.all"], *in_soak(["axpy", "*.mixed13*", "max.all"])])
def test_array_kernels_are_measured_and_checked(rows: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "benchmarks/array_kernels.py", "cpu", "float32", "--rows", *rows],
        check=False, cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "LOG2_ELEMENTS": "14", "REPEATS": "1", "GRIDSTRIDE_TARGET": "cpu"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rows)} rows measured, 0 failed, 0 not run" in done.stdout


@pytest.mark.parametrize(
    ("shape", "strides", "itemsize"),
    [((64, 3), (16, 4), 4), ((64, 99), (400, 4), 4), ((32, 5), (64, 8), 8), ((640,), (2,), 1), ((64, 3), (1, 64), 1),
     ((4, 32, 50), (6400, 200, 4), 2), ((64, 48), (256, 4), 4)],
)  # fmt: skip
def test_sectors_are_counted_as_they_are_touched(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> None:
    covered = np.zeros(32 * 1024, bool)
    places = sum(index * step for index, step in zip(np.indices(shape), strides, strict=True))
    covered[np.add.outer(places, np.arange(itemsize))] = True
    each = covered.reshape(-1, 32)
    touched, whole = 32 * int(each.any(1).sum()), 32 * int(each.all(1).sum())
    assert array_rows.sectors(shape, strides, itemsize, is_written=False) == touched
    assert array_rows.sectors(shape, strides, itemsize, is_written=True) == 2 * touched - whole


def test_every_id_of_the_plan_has_a_file() -> None:
    plan = (ROOT / "benchmarks" / "README.md").read_text()
    files = {path.name for path in (ROOT / "benchmarks").glob("*.py")} - {
        "fresh_processes.py",
        "measure.py",
        "report.py",
        "supervise.py",
        "workloads.py",
    }
    assert {name for name in files if f"`{name}`" not in plan} == set()


def test_a_workload_is_measured_and_checked_with_what_is_installed() -> None:
    done = subprocess.run(
        [sys.executable, "benchmarks/cpu_kernels.py", "--only", "axpy", "--repeats", "1"],
        check=False, cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "BENCH_QUICK": "1", "GRIDSTRIDE_TARGET": "cpu"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "cpu.kernels.axpy" in done.stdout
