"""What all tests of every target share."""

from __future__ import annotations

import pytest

from gridstride.targets.block_loops import writers

READS_LITTLE = writers.reads_little


@pytest.fixture(autouse=True)
def _either_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give half of the shapes the loops that long folds have: those for any layout are taken where little is read."""
    monkeypatch.setattr(writers, "reads_little", lambda walk: sum(walk.kept) % 2 == 0 and READS_LITTLE(walk))
