"""``gridstride demo``: process a picture with CUDA C++ kernels, check every stage, and print a table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gridstride.demo.table import table
from gridstride.demo.tour import Report, Settings, run
from gridstride.errors import GridstrideError

_SIZE, _STEPS = 1024, 400
_QUICK_SIZE, _QUICK_STEPS = 256, 100


def main(arguments: Sequence[str]) -> int:
    """Run the demonstration; the exit code is 0 where every kernel gave what it should."""
    try:
        settings = _settings(arguments)
        report = run(settings, sys.stdout)
    except (GridstrideError, ImportError, OSError, ValueError) as error:
        print(f"gridstride demo: {error}", file=sys.stderr)
        return 1
    _show(report, settings.output)
    return 0 if report.passed else 1


def _settings(arguments: Sequence[str]) -> Settings:
    parser = argparse.ArgumentParser(
        prog="gridstride demo",
        description="Process a picture with CUDA C++ kernels of many kinds, on the GPU where there is one and "
        "else on the CPU. Every stage is checked against NumPy, timed, and drawn before and after.",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("demo-output"),
        metavar="DIR",
        help="folder for pictures and table (default: %(default)s)",
    )
    parser.add_argument(
        "--image", type=Path, metavar="FILE", help="a picture to use (default: a rendered scene)"
    )
    parser.add_argument("--size", type=int, metavar="N", help=f"pixels of a side (default: {_SIZE})")
    parser.add_argument("--steps", type=int, metavar="N", help=f"steps of the reaction (default: {_STEPS})")
    parser.add_argument(
        "--quick", action="store_true", help=f"{_QUICK_SIZE} pixels and {_QUICK_STEPS} steps unless given"
    )
    parsed = parser.parse_args(arguments)
    size, steps = (_QUICK_SIZE, _QUICK_STEPS) if parsed.quick else (_SIZE, _STEPS)
    return Settings(
        output=parsed.output,
        size=size if parsed.size is None else parsed.size,
        steps=steps if parsed.steps is None else parsed.steps,
        image=parsed.image,
    )


def _show(report: Report, output: Path) -> None:
    lines = list(table(report))
    (output / "table.txt").write_text("\n".join(lines) + "\n")
    print()
    print("\n".join(lines))
    print(
        f"\n{report.seconds:.1f} s in all; pictures and table are in {output}; look at {report.sheet} first"
    )
    if not report.passed:
        print("At least one kernel gave a WRONG RESULT.", file=sys.stderr)
