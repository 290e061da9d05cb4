"""Write the tables of the documentation from the newest results; ``--check`` only says whether they are current."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent / "docs" / "reference" / "benchmarks.md"
BEGIN, END = "<!-- from here on written by benchmarks/report.py -->\n", "<!-- to here -->\n"
#: Topics whose rows are shown as they are, and what their tables are called.
_PLAIN_TOPICS = {
    "array-launch": "Host time of a call of an array kernel",
    "array-start": "First call of an array kernel",
}
_ARRAY_TOPICS = {
    "array-kernels-gpu": "Array kernels on a GPU",
    "array-kernels-cpu": "Array kernels on the CPU target",
}
#: Of ours, beside "microseconds".
_OWN_TIMES = ("device", "given an output")
_PEERS = ("native", "PoCL", "numba", "numexpr", "NumPy")


def main() -> int:
    current = PAGE.read_text()
    wanted = page(current)
    if "--check" in sys.argv[1:]:
        return int(current != wanted)
    PAGE.write_text(wanted)
    return 0


def page(current: str) -> str:
    """Return the page with its tables made anew."""
    before, _, rest = current.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n".join(["", *tables(), ""]) + END + after


def tables() -> Iterator[str]:
    """Yield the lines of all tables."""
    for record in records("cpu-kernels"):
        yield from kernel_table(record)
    for record in records("cpu-start"):
        yield from start_table(record)
    for topic, title in _PLAIN_TOPICS.items():
        for record in records(topic):
            yield from plain_table(title, record)
    for topic, title in _ARRAY_TOPICS.items():
        for record in records(topic):
            yield from array_table(title, record)


def records(topic: str) -> Iterator[dict[str, Any]]:
    """Yield the newest record of a topic, and of each of its variants (``topic-clang``)."""
    newest: dict[str, Path] = {}
    for path in sorted((FOLDER / "results").glob(f"{topic}*.json")):
        newest[path.stem[: -len("-2026-01-31")]] = path
    for _, path in sorted(newest.items()):
        yield json.loads(path.read_text())


def kernel_table(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield milliseconds of gridstride and of native code, and the times that each takes of native code's."""
    calls = len(record["rows"][0]["seconds"]["ours"])
    yield from _heading("Kernels", record, f" Medians of {calls} calls.")
    yield f"| kernel | tier | ms | native ms | gridstride | {' | '.join(_PEERS[1:])} | of copy | goal |"
    yield "| --- |" + " --- |" * (len(_PEERS) + 6 - 1)
    rows = [row for row in record["rows"] if "native" in row["seconds"]]
    yield from map(_kernel_row, rows)
    yield ""
    for row in record["rows"]:
        if "median_ns" in row:
            yield f"{row['title'].capitalize()}: {row['median_ns']:.3g} ns (goal: {row['goal_ns']:g} ns)."
        elif "ours, one core" in row["seconds"]:
            ratio = _median(row, "ours") / _median(row, "ours, one core")
            yield f"{row['title']}: all cores take {ratio:.2f} times what one core takes."
    yield ""


def start_table(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the times of first and later launches."""
    yield from _heading("Launches", record)
    yield "| what | median | least | goal |"
    yield "| --- | --- | --- | --- |"
    for row in record["rows"]:
        cells = (
            row["case"],
            _time(row["median"]),
            _time(row["minimum"]),
            _time(row["goal"]) if row["goal"] else "",
        )
        yield f"| {' | '.join(cells)} |"
    yield ""


def array_table(title: str, record: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each layout or shape, a column for each dtype; rows of no dtype stand before."""
    named = [row for row in record["rows"] if "is met" in row]
    if not named:
        yield from plain_table(title, record)
        return
    yield from _heading(title, record)
    for row in record["rows"]:
        if "is met" not in row:
            yield f"{row['id']}: {', '.join(f'{_cell(row[name])} {name}' for name in row if name != 'id')}."
            yield ""
    dtypes = list(dict.fromkeys(row["id"].rpartition(".")[2] for row in named))
    lines: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in named:
        name, _, dtype = row["id"].partition(".")[2].rpartition(".")
        lines.setdefault(name, {})[dtype] = row
    yield f"| row | goal | {' | '.join(dtypes)} |"
    yield "| --- | --- |" + " --- |" * len(dtypes)
    for name, rows in lines.items():
        goal = next(iter(rows.values()))["goal"]
        cells = (_array_cell(rows[dtype]) if dtype in rows else "" for dtype in dtypes)
        yield f"| {name} | {_cell(goal)} | {' | '.join(cells)} |"
    yield ""


def _array_cell(row: Mapping[str, Any]) -> str:
    """Return ours, and in parentheses the best peer's beside it; bold where the goal is missed."""
    best = ""
    if "of the copy's time" in row:
        ours = f"{row['of the copy' + chr(39) + 's time']:.2f}"
        ratios = [row[name] for name in row if name.startswith("of ") and "the copy" not in name]
        best = f"{max(ratios):.2f}" if ratios else ""
    elif "of copy" in row:
        by = row.get("judged", row["of copy"] if row["goal"] else row["of sectors"])
        ours = f"{by:.2f}"
        peers = [row[name] for name in row if name.endswith(" of copy")]
        best = f"{max(peers) * by / row['of copy']:.2f}" if peers else ""
    else:
        ours = f"{row['microseconds']:.1f} us"
        peers = [
            row[name] for name in row if name.endswith(" microseconds") and not name.startswith(_OWN_TIMES)
        ]
        best = f"{min(peers):.1f} us" if peers else ""
    return (ours if row["is met"] else f"**{ours}**") + (f" ({best})" if best else "")


def plain_table(title: str, record: Mapping[str, Any]) -> Iterator[str]:
    """Yield rows with a column for everything that any of them tells."""
    columns = list(dict.fromkeys(name for row in record["rows"] for name in row))
    yield from _heading(title, record)
    yield f"| {' | '.join(columns)} |"
    yield "| --- |" + " --- |" * (len(columns) - 1)
    for row in record["rows"]:
        yield f"| {' | '.join(_cell(row.get(name, '')) for name in columns)} |"
    yield ""


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _heading(title: str, record: Mapping[str, Any], remark: str = "") -> Iterator[str]:
    machine = record["machine"]
    compiler = machine.get("kernel compiler", "the default")
    yield f"## {title}, {record['topic']}"
    yield ""
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    load = f", load {machine['load']:.1f} at the end" if "load" in machine else ""
    yield (
        f"{record['date']}; {machine['processor']}, {machine['cores']} cores{load}; {machine['compiler']}; kernels by "
        f"{compiler}; Python {machine['python']}; {packages}.{remark}"
    )
    yield ""


def _kernel_row(row: Mapping[str, Any]) -> str:
    base = _median(row, "native")
    ratios = [_ratio(row, name, base) for name in ("ours", *_PEERS[1:])]
    copy = ""
    if "copy" in row["seconds"] and row["moved_bytes"]:
        rate = row["moved_bytes"] / _median(row, "ours")
        copy = f"{rate / (_COPIED / _median(row, 'copy')):.2f}"
    goal = f"{row['goal']:g}x" if row["goal"] else ""
    cells = (row["title"], row["tier"], _ms(row, "ours"), _ms(row, "native"), *ratios, copy, goal)
    return f"| {' | '.join(cells)} |"


#: Bytes that the copy beside a workload moves: ten million floats read and written.
_COPIED = 80_000_000


def _ratio(row: Mapping[str, Any], name: str, base: float) -> str:
    return f"{_median(row, name) / base:.3g}x" if name in row["seconds"] else "-"


def _ms(row: Mapping[str, Any], name: str) -> str:
    return f"{_median(row, name) * 1e3:.3g}"


def _median(row: Mapping[str, Any], name: str) -> float:
    return statistics.median(row["seconds"][name])


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


if __name__ == "__main__":
    sys.exit(main())
