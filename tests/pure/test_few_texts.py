"""A kernel that is called with many shapes and layouts compiles few texts. Nothing runs, so arrays may be large."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride.targets import registry
from tests.every_target import test_elementwise as elementwise
from tests.every_target import test_reduction as reduction

#: Arrays that nobody reads.
UNWRITTEN: Any = SimpleNamespace(ones=np.empty)
CACHE = 50 << 20


@pytest.fixture(params=["blocks of threads", "cores"])
def compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is compiled with the loops of a GPU or of the CPU target."""
    null, cpu = type(registry.get("null")), registry.get("cpu")
    limits = registry.get("null").limits(0)._replace(multiprocessors=132, attributes={"L2CacheSize": CACHE})
    if request.param == "cores":
        monkeypatch.setattr(null, "writers", cpu.writers)
        limits = cpu.limits(0)
    monkeypatch.setattr(null, "limits", lambda self, device: limits)
    texts: list[object] = []
    compile_ = null.compile
    monkeypatch.setattr(
        null, "compile", lambda self, program, arch: texts.append(program) or compile_(self, program, arch)
    )
    return texts


@pytest.mark.parametrize(
    ("longest", "dtype"), [(64, "float32"), (64, "complex128"), (200, "float32"), (200, "int8")]
)
@pytest.mark.parametrize("what", ["elements", "sums", "places"])
def test_a_thousand_shapes_in_twelve_layouts(
    compiled: list[object], request: pytest.FixtureRequest, what: str, longest: int, dtype: str
) -> None:
    name = f"{what}_of_{longest}_by_{request.node.callspec.params['compiled'].replace(' ', '_')}"
    with gs.use_target("null"):
        if what == "elements":
            elementwise.call_in_twelve_layouts(UNWRITTEN, dtype, longest, name)
        else:
            reduction.call_in_twelve_layouts(UNWRITTEN, dtype, longest, name, are_places=what == "places")
    assert 1 <= len(compiled) <= 6
