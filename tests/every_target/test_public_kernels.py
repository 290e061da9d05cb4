"""Kernels of public projects, where a folder of their sources is given: ``GRIDSTRIDE_PUBLIC_KERNELS``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from kernel_battery import battery


@pytest.fixture
def folder(row) -> Path:
    given = os.environ.get("GRIDSTRIDE_PUBLIC_KERNELS")
    if given is None and row.sources:
        pytest.skip("GRIDSTRIDE_PUBLIC_KERNELS names no folder of sources")
    folder = Path(given or ".")
    if absent := battery.missing(row, folder):
        pytest.skip(f"the folder lacks {absent[0]}")
    return folder


@pytest.mark.parametrize("row", battery.ROWS, ids=lambda row: row.key)
def test_values(target, row, folder):
    if "gpu" in target.features and (row.refused or row.alone):
        pytest.skip("refused on the CPU target, or an end of the GPU's context")
    # The last tier takes every kernel.
    for tier in ("", target.tiers[-1]) if len(target.tiers) > 1 and not row.refused else ("",):
        outcome = battery.run(row, folder, target.name, tier)
        assert outcome.error == ""
