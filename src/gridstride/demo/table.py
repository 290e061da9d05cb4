"""Print what was measured as a table."""

from __future__ import annotations

from collections.abc import Iterator

from gridstride.demo.tour import Report
from gridstride.demo.workbench import Measurement

_HEADINGS = ("kernel", "target", "tier", "time ms", "GB/s", "of copy", "largest error", "allowed", "")


def table(report: Report) -> Iterator[str]:
    """Yield the lines of a report: a row for each kernel, then what the numbers refer to."""
    rows = [_HEADINGS, *(_row(measurement, report) for measurement in report.measurements)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    for row in rows:
        names, numbers = row[:3], row[3:]
        left = [name.ljust(width) for name, width in zip(names, widths[:3], strict=True)]
        right = [number.rjust(width) for number, width in zip(numbers, widths[3:], strict=True)]
        yield "  ".join([*left, *right]).rstrip()
    yield ""
    yield f"device: {report.device}; a plain copy moves {report.copy_bandwidth / 1e9:.1f} GB/s"
    yield "largest error: the largest difference from NumPy, over the largest magnitude"


def _row(measurement: Measurement, report: Report) -> tuple[str, ...]:
    times = f" x {measurement.launches}" if measurement.launches > 2 else ""
    return (
        measurement.kernel + times,
        report.target,
        report.tier,
        f"{measurement.milliseconds:.3f}",
        f"{measurement.bandwidth / 1e9:.2f}",
        f"{measurement.bandwidth / report.copy_bandwidth:.3f}",
        f"{measurement.error:.1e}",
        f"{measurement.tolerance:.1e}",
        "ok" if measurement.passed else "WRONG",
    )
