"""Time callables in turn and keep the raw numbers."""

from __future__ import annotations

import json
import os
import platform
import random
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def interleave(
    cases: Mapping[str, Callable[[], Any]], repeats: int = 15, warmup: int = 2
) -> dict[str, list[float]]:
    """Return the seconds of each case, timed in turn so that drifts of the machine meet all alike.

    Each round has an order of its own: some libraries' threads keep processors busy for a while after a call, which
    would always meet the same case.
    """
    times: dict[str, list[float]] = {name: [] for name in cases}
    shuffled = random.Random(0)
    for round_ in range(warmup + repeats):
        for name, case in shuffled.sample(list(cases.items()), len(cases)):
            start = time.perf_counter()
            case()
            elapsed = time.perf_counter() - start
            if round_ >= warmup:
                times[name].append(elapsed)
    return times


def medians(times: Mapping[str, list[float]]) -> dict[str, float]:
    """Return the median of each case."""
    return {name: statistics.median(values) for name, values in times.items()}


def save(topic: str, rows: Any) -> Path:
    """Write rows with machine, versions and date; return the file."""
    record = Record(topic)
    record.rows = rows
    return record.write()


class Record:
    """The rows of a topic, written into the file of the day.

    Parameters
    ----------
    topic : str
    is_kept : bool
        Whether there is a file at all.
    is_partial : bool
        Whether the rows join those of an earlier run of the day.
    """

    def __init__(self, topic: str, is_kept: bool = True, is_partial: bool = False) -> None:
        self.topic = topic
        self.path = RESULTS / f"{topic}-{time.strftime('%Y-%m-%d')}.json"
        self.rows: list[dict[str, Any]] = []
        self._is_kept = is_kept
        self._machine = machine()
        if is_partial and is_kept and self.path.exists():
            self.rows = json.loads(self.path.read_text())["rows"]

    def add(self, row: dict[str, Any]) -> None:
        """Take in a row, in the place of an earlier one of its id, and write the file."""
        places = [place for place, each in enumerate(self.rows) if each["id"] == row["id"]]
        if places:
            self.rows[places[0]] = row
        else:
            self.rows.append(row)
        if self._is_kept:
            self.write()

    def write(self) -> Path:
        """Write the file, whole or not at all, and return it."""
        self._machine["load"] = os.getloadavg()[0]
        date = time.strftime("%Y-%m-%d %H:%M")
        record = {"topic": self.topic, "date": date, "machine": self._machine, "rows": self.rows}
        RESULTS.mkdir(exist_ok=True)
        unfinished = self.path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(record, indent=1) + "\n")
        unfinished.replace(self.path)
        return self.path


def compiler_suffix() -> str:
    """Return what tells the results of kernels by another compiler than g++ apart."""
    from gridstride.targets.cpu.toolchain import find_toolchain

    kind = find_toolchain().kind
    return "" if kind == "gcc" else f"-{kind}"


def machine() -> dict[str, Any]:
    """Return what the numbers depend on: processor, cores, compiler, Python and packages."""
    from importlib.metadata import PackageNotFoundError, version

    packages = {}
    for name in (
        "numpy",
        "cupy-cuda13x",
        "torch",
        "numba",
        "numexpr",
        "pocl-binary-distribution",
        "nvidia-cuda-nvrtc",
    ):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "compiler": _first_line(["g++", "--version"]),
        "kernel compiler": _without_folder(os.environ.get("GRIDSTRIDE_CXX", "the default")),
        "gpu": _first_line(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]),
        "python": platform.python_version(),
        "packages": packages,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Return rows as aligned text, columns in the order of the first row."""
    columns = list(rows[0])
    texts = [columns, *([_text(row.get(column, "")) for column in columns] for row in rows)]
    widths = [max(len(line[k]) for line in texts) for k in range(len(columns))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in texts
    )


def one_line(row: Mapping[str, Any], short: Callable[[str], str]) -> str:
    """Return a row's id, its numbers with their names made short, and whether it misses its goal."""
    cells = [f"{row['id']:34}"]
    for name, value in row.items():
        if isinstance(value, bool):
            cells.append("" if value else "BELOW")
        elif isinstance(value, float) and name != "goal":
            cells.append(f"{short(name)} {value:.3f}")
    return "  ".join(cells)


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _without_folder(command: str) -> str:
    """Return a command without the folder of its program."""
    program, blank, rest = command.partition(" ")
    return Path(program).name + blank + rest


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _first_line(command: list[str]) -> str:
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "none"
    return (result.stdout.splitlines() or ["none"])[0]
