"""Programs in few words for the tests of the CPU target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pytest

from gridstride import _native
from gridstride.targets import registry
from gridstride.targets.base import Limits, Program
from gridstride.targets.block_loops.writers import BlockLoops
from gridstride.targets.cpu.target import CpuTarget
from gridstride.targets.options import parse_options
from gridstride.targets.walks import FoldLoop, FoldWalk


class MakeProgram(Protocol):
    def __call__(
        self, text: str, *kernels: str, options: tuple[str, ...] = ..., **fields: Any
    ) -> Program: ...


@pytest.fixture
def make_program() -> MakeProgram:
    """A function that makes a program named ``test`` of a text, the kernels' names and options."""

    def make(text: str, *kernels: str, options: tuple[str, ...] = (), **fields: Any) -> Program:
        return Program(text, "test", parse_options(options, target="cpu"), kernels=kernels, **fields)

    return make


@pytest.fixture(scope="session")
def cpu_target() -> CpuTarget:
    """The target of the whole session."""
    return CpuTarget()


@pytest.fixture
def block_folds(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FoldLoop]]:
    """Let folds take loops for blocks of threads, as on two multiprocessors; return those that are taken."""
    taken: list[FoldLoop] = []
    choose = BlockLoops.reduction

    def chosen(self: BlockLoops, walk: FoldWalk, limits: Limits) -> FoldLoop:
        taken.append(choose(self, walk, limits._replace(multiprocessors=2)))
        return taken[-1]

    monkeypatch.setattr(BlockLoops, "reduction", chosen)
    monkeypatch.setattr(type(registry.get("cpu")), "writers", None)
    _native.targets_forgotten()
    yield taken
    _native.targets_forgotten()
