"""What all tests of every target share."""

from __future__ import annotations

import pytest

from gridstride._array_pipeline import launching
from gridstride.targets.block_loops import writers
from tests.own_loops import own_loop

READS_LITTLE = writers.reads_little


@pytest.fixture(autouse=True)
def _either_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give half of the shapes the loops that long folds have: those for any layout are taken where little is read."""
    monkeypatch.setattr(writers, "reads_little", lambda walk: sum(walk.kept) % 2 == 0 and READS_LITTLE(walk))


@pytest.fixture(autouse=True)
def _own_loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each layout its own loop, which later ones of a kernel share, except where texts are counted."""
    if "loaded_texts" not in request.fixturenames:
        monkeypatch.setattr(launching, "chosen_loop", own_loop)
