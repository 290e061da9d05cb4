"""``gridstride cache``: what lies in the compile cache, and clearing it."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence

from gridstride import config
from gridstride._store import Store, open_store


def main(arguments: Sequence[str]) -> int:
    """Run ``gridstride cache info`` or ``gridstride cache clear``."""
    parser = argparse.ArgumentParser(prog="gridstride cache", description="Show or clear the compile cache.")
    parser.add_argument("action", choices=("info", "clear"))
    action = parser.parse_args(arguments).action
    store = open_store()
    if store is None:
        print(
            f"The compile cache cannot be used: neither {config.cache_directory()} nor the temporary folder"
        )
        print("can be made private and written to. Set GRIDSTRIDE_CACHE_DIR to a folder of your own.")
        return 1
    for line in describe(store) if action == "info" else _clear(store):
        print(line)
    return 0


def describe(store: Store) -> list[str]:
    """Return lines on a store's place, and on the entries and bytes of each target."""
    entries = list(store.entries())
    sizes: dict[str, list[int]] = defaultdict(list)
    for entry in entries:
        sizes[entry.group].append(entry.size)
    total = sum(entry.size for entry in entries)
    return [
        f"folder   {store.directory}",
        f"cap      {readable_bytes(config.cache_size())} (GRIDSTRIDE_CACHE_SIZE)",
        f"entries  {len(entries)}, {readable_bytes(total)}",
        *(f"  {group:<9} {len(each)}, {readable_bytes(sum(each))}" for group, each in sorted(sizes.items())),
        *([f"kept by compilers  {readable_bytes(kept)}"] if (kept := store.size_of_folders()) else []),
    ]


def readable_bytes(count: int) -> str:
    """Return a number of bytes as people write it."""
    if count < 1024:
        return f"{count} bytes"
    size, unit = float(count), "bytes"
    for unit in ("KiB", "MiB", "GiB"):  # noqa: B007 - the last unit is used after the loop
        size /= 1024
        if size < 1024:
            break
    return f"{size:.1f} {unit}"


def _clear(store: Store) -> list[str]:
    removed = store.clear()
    left = sum(1 for _ in store.entries())
    lines = [f"Removed {removed} entries from {store.directory}"]
    return [*lines, f"{left} entries could not be removed"] if left else lines
