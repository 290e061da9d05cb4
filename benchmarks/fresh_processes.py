"""Time programs in processes of their own, which print how long they took."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Mapping

from measure import save, table


def run(program: str, cache: str) -> float:
    """Return the seconds that a program prints last, its kernels being cached below a folder."""
    # An installed package has its bytecode; here the first process writes it.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = {**inherited, "GRIDSTRIDE_CACHE_DIR": f"{cache}/ours", "CUPY_CACHE_DIR": f"{cache}/cupy"}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return float(result.stdout.split()[-1])


def report(topic: str, times: Mapping[str, list[float]], goals: Mapping[str, float]) -> None:
    """Show and keep the times of each program, in seconds."""
    rows = [
        {"id": f"cuda.start.{name}", "median": statistics.median(values), "minimum": min(values),
         "maximum": max(values), "goal": goals.get(name, "")}
        for name, values in sorted(times.items())
    ]  # fmt: skip
    print(table(rows))
    print("written to", save(topic, rows))
