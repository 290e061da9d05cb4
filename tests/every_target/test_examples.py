"""Every program under ``examples/`` runs as it is; each checks its own results."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import ModuleType

import pytest

import gridstride as gs
from gridstride.targets.base import Target

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path, target: Target, xp: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with gs.use_backend(xp.__name__, strict=True):
        runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out


def test_there_are_examples() -> None:
    assert {"array_kernels", "saxpy", "reduction", "structs", "templates"} <= {path.stem for path in EXAMPLES}
