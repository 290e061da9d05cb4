"""Which target serves arrays where the default one cannot be used."""

from __future__ import annotations

import pytest

from gridstride.arrays import CUDA, HOST
from gridstride.errors import TargetUnavailable
from gridstride.targets import registry


@pytest.fixture(autouse=True)
def no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `cuda` the default target on a machine that has none, beside one for host arrays."""
    monkeypatch.setitem(registry._targets, "cuda", TargetUnavailable("cuda", "no driver", "Install one."))
    monkeypatch.setattr(registry, "candidates", lambda: iter(("cuda", "null")))
    monkeypatch.setattr(registry, "_found", {})
    monkeypatch.setenv("GRIDSTRIDE_TARGET", "cuda")


def test_host_arrays_need_no_other_target() -> None:
    assert registry.serving(HOST) is registry.get("null")


def test_calls_without_arrays_and_arrays_of_the_missing_one_say_what_is_missing() -> None:
    for ask in (registry.default, lambda: registry.serving(CUDA)):
        with pytest.raises(TargetUnavailable, match=r"no driver\. Install one"):
            ask()


def test_a_default_that_nobody_knows_is_an_error_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSTRIDE_TARGET", "cudda")
    for ask in (registry.default, lambda: registry.serving(HOST)):
        with pytest.raises(ValueError, match="unknown target 'cudda'"):
            ask()


def test_the_default_target_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "candidates", lambda: iter(("cpu", "null")))
    with registry.use_target("null") as target:
        assert registry.serving(HOST) is target
