"""Make the page about public kernels of what was measured.

python -m kernel_battery.page [REPORT.json ...]   # in tools/: keeps the figures of reports and writes the page

A report is what ``public_kernels.py --json`` writes; one with a GPU gives the page's last column alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from string import Template
from typing import Any

from kernel_battery import battery
from kernel_battery.row import Row

_ROOT = Path(__file__).parents[2]
PAGE = _ROOT / "docs" / "reference" / "public-kernels.md"
_TEMPLATE = Path(__file__).with_name("page.md")
_OUTCOMES = Path(__file__).with_name("outcomes.json")


def page() -> str:
    """Return the text of the page."""
    outcomes = json.loads(_OUTCOMES.read_text())
    rows = [_line(row, outcomes[row.key]) for row in battery.ROWS]
    right = [row for row in battery.ROWS if outcomes[row.key]["state"] == "right"]
    refused = [row for row in battery.ROWS if outcomes[row.key]["state"] == "refused"]
    sources = [_source(row, outcomes[row.key]) for row in battery.ROWS if row.sources]
    return Template(_TEMPLATE.read_text()).substitute(
        rows="\n".join(rows),
        sources="\n".join(sources),
        right=len(right),
        kernels=sum(row.kernels for row in right),
        refused=len(refused),
    )


def keep(told: dict[str, Any]) -> None:
    """Keep what the page needs of a report: how the CPU target ran rows; of one with a GPU, how far it is apart."""
    outcomes = json.loads(_OUTCOMES.read_text()) if _OUTCOMES.exists() else {}
    for row in battery.ROWS:
        found = told.get(row.key, {})
        kept = outcomes.setdefault(row.key, {})
        if "cuda" in found:
            kept["cuda"] = {key: found["cuda"].get(key) for key in ("state", "distance", "agrees")}
        elif "cpu" in found:
            kept |= {key: found["cpu"][key] for key in ("state", "tiers", "seconds")}
            kept["digests"] = found["digests"]
    _OUTCOMES.write_text(json.dumps(outcomes, indent=1) + "\n")


def _line(row: Row, outcome: dict[str, Any]) -> str:
    tiers = ", ".join(outcome["tiers"])
    time = f"{outcome['seconds'] * 1000:.0f} ms" if outcome["state"] == "right" else ""
    state = outcome["state"]
    cells = [row.key, _name(row), str(row.kernels), tiers, state, row.told, time, _agreement(outcome)]
    return "| " + " | ".join(cells) + " |"


def _name(row: Row) -> str:
    owner = row.sources[-1].repository.partition("/")[2] if row.sources else ""
    return f"{owner}, `{row.title}`" if owner else row.title


def _agreement(outcome: dict[str, Any]) -> str:
    found = outcome.get("cuda")
    if found is None:
        return ""
    if found["distance"] is None:
        return "not right there"
    if found["distance"] == 0:
        return "same bits"
    return f"within {found['distance']:.0e}" if found["agrees"] else f"apart by {found['distance']:.0e}"


def _source(row: Row, outcome: dict[str, Any]) -> str:
    parts = [
        f"{source.repository} `{source.path}` of {source.commit[:12]} ({outcome['digests'][source.path][:12]})"
        for source in row.sources
    ]
    return f"| {row.key} | {'; '.join(parts)} |"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        keep(json.loads(Path(name).read_text()))
    PAGE.write_text(page())
