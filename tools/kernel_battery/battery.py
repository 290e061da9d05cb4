"""All rows, and what came out of running them on targets and in tiers."""

from __future__ import annotations

import time
import traceback
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gridstride as gs
from kernel_battery import cupy_kernels, others, ported, refused, samples
from kernel_battery.bench import Bench
from kernel_battery.cutting import device_part, digest
from kernel_battery.row import Results, Row

ROWS: tuple[Row, ...] = (*samples.ROWS, *others.ROWS, *cupy_kernels.ROWS, *ported.ROWS, *refused.ROWS)


class Outcome(NamedTuple):
    """What running a row on one target gave.

    Attributes
    ----------
    seconds : float
        Of a run with all programs compiled.
    tiers : dict of kernel to tier
    error : str
        What went wrong, with its traceback; "" where all values were right.
    results : mapping of name to array
    """

    seconds: float
    tiers: dict[str, str]
    error: str
    results: Results


def missing(row: Row, folder: Path) -> list[str]:
    """Return the sources of a row that the folder lacks."""
    paths = (folder / source.repository / source.path for source in row.sources)
    return [str(path) for path in paths if not path.exists()]


def run(row: Row, folder: Path, target: str, tier: str = "") -> Outcome:
    """Run a row on a target twice, or once where it ends the GPU's context; the last run is timed."""
    try:
        with gs.use_target(target):
            if target == "cpu" or not row.alone:
                row.check(Bench(folder, row, target, tier))
            bench = Bench(folder, row, target, tier)
            start = time.perf_counter()
            results = row.check(bench)
            return Outcome(time.perf_counter() - start, bench.tiers, "", results)
    except Exception:
        return Outcome(0.0, {}, traceback.format_exc(), {})


def distance(one: Results, other: Results) -> float:
    """Return how far apart results are, relative to the largest value of each array; 0 for equal bits."""
    apart = 0.0
    for key, expected in one.items():
        found = other[key]
        if found.tobytes() == expected.tobytes():
            continue
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        with np.errstate(invalid="ignore"):
            apart_here = np.where(same, 0.0, np.abs(found - expected)).max() / np.abs(expected).max()
        apart = max(apart, float(apart_here) if np.isfinite(apart_here) else np.inf)
    return apart


def digests(row: Row, folder: Path) -> dict[str, str]:
    """Return the digest of each source of a row, as the folder has it."""
    found = {}
    for source in row.sources:
        text = (folder / source.repository / source.path).read_text(encoding="utf-8")
        found[source.path] = digest(device_part(text, row.without) if row.cut else text)
    return found


def report(row: Row, folder: Path, targets: list[str]) -> dict[str, Any]:
    """Run a row on targets, on the CPU target also among fibers alone, and return what the page needs."""
    absent = missing(row, folder)
    if absent:
        return {"error": f"not in the folder: {', '.join(absent)}"}
    told: dict[str, Any] = {"digests": digests(row, folder)}
    outcomes = {target: run(row, folder, target) for target in targets if target == "cpu" or not row.refused}
    if "cpu" in outcomes and not row.refused:
        outcomes["cpu in fibers"] = run(row, folder, "cpu", "fibers")
    for name, outcome in outcomes.items():
        told[name] = {
            "seconds": round(outcome.seconds, 4),
            "tiers": sorted(set(outcome.tiers.values())),
            "kernels": len(outcome.tiers),
            "error": outcome.error,
        }
        told[name]["state"] = "failed" if outcome.error else "refused" if row.refused else "right"
    first = outcomes.get("cpu")
    for name, outcome in outcomes.items():
        if first and name != "cpu" and not (first.error or outcome.error):
            apart = distance(first.results, outcome.results)
            told[name]["distance"] = apart
            told[name]["agrees"] = apart <= row.tolerance
    return told
