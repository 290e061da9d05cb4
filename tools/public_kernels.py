"""Run kernels of public projects from a folder of their sources.

python tools/public_kernels.py FOLDER                       # all rows on the CPU target, in every tier
python tools/public_kernels.py FOLDER --target cpu --target cuda --jobs 8 --json OUT
python tools/public_kernels.py FOLDER --row K05 --row K21
python tools/public_kernels.py --sources                    # what FOLDER must hold, at owner/name/path
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from kernel_battery import battery
from kernel_battery.row import Row

_SECONDS_OF_A_ROW = 50


def main() -> int:
    """Run what the command line asks for; 1 where a row failed."""
    options = _options()
    rows = [row for row in battery.ROWS if not options.row or row.key in options.row]
    if options.sources:
        for source in sorted({source for row in rows for source in row.sources}):
            print(source.repository, source.path, source.commit)
        return 0
    told: dict[str, Any] = {}
    for row, found in _reports(rows, options):
        told[row.key] = found
        _show(row, found)
        if options.json:  # after each row, so that what was found is there if the rest is not
            options.json.write_text(json.dumps(told, indent=1) + "\n")
    return int(any(_failed(item) for item in told.values()))


def _reports(rows: list[Row], options: argparse.Namespace) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Yield rows with what came out, as they end."""
    # A row that leaves a GPU unusable must not be followed by others.
    apart = [
        row for row in rows if options.jobs or (row.alone and "cuda" in options.target and len(rows) > 1)
    ]
    with ThreadPoolExecutor(max(options.jobs, 1)) as executor:
        largest_first = sorted(apart, key=lambda row: -row.kernels)
        waiting = {executor.submit(_in_a_process, row, options): row for row in largest_first}
        for row in rows:
            if row not in apart:
                yield row, battery.report(row, options.folder, options.target or ["cpu"])
        for future in as_completed(waiting):
            yield waiting[future], future.result()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default=Path())
    parser.add_argument(
        "--target", action="append", default=[], help="cpu (the default), cuda; may be repeated"
    )
    parser.add_argument("--row", action="append", default=[], help="the key of a row; may be repeated")
    parser.add_argument("--json", type=Path, help="a file for what came out")
    parser.add_argument("--jobs", type=int, default=0, help="processes; 0: all rows in this one")
    parser.add_argument("--sources", action="store_true")
    return parser.parse_args()


def _in_a_process(row: Row, options: argparse.Namespace) -> dict[str, Any]:
    path = Path(f"{options.json or 'public_kernels'}.{row.key}")
    command = [sys.executable, __file__, str(options.folder), "--row", row.key, "--json", str(path)]
    for target in options.target:
        command += ["--target", target]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS_OF_A_ROW, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"its process ran for more than {_SECONDS_OF_A_ROW} s"}
    if not path.exists():
        return {"error": f"its process ended with {done.returncode}: {done.stderr[-2000:]}"}
    told: dict[str, Any] = json.loads(path.read_text())[row.key]
    path.unlink()
    return told


def _show(row: Row, told: dict[str, Any]) -> None:
    parts = [told["error"]] if "error" in told else []
    for name, item in told.items():
        if isinstance(item, dict) and "state" in item:
            apart = (
                f", apart {item['distance']:.1e}{'' if item['agrees'] else ' TOO FAR'}"
                if "distance" in item
                else ""
            )
            parts.append(
                f"{name}: {item['state']} in {'/'.join(item['tiers'])} {item['seconds']:.3f} s{apart}"
            )
            if item["error"]:
                parts.append("\n" + item["error"])
    print(f"{row.key:11} {row.title:34} {'; '.join(parts)}", flush=True)


def _failed(told: dict[str, Any]) -> bool:
    if "error" in told:
        return True
    items = [item for item in told.values() if isinstance(item, dict) and "state" in item]
    return any(item["state"] == "failed" or not item.get("agrees", True) for item in items)


if __name__ == "__main__":
    sys.exit(main())
