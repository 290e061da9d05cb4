"""Programs in few words for the tests of the CPU target."""

from __future__ import annotations

from typing import Any, Protocol

import pytest

from gridstride.targets.base import Program
from gridstride.targets.cpu.target import CpuTarget
from gridstride.targets.options import parse_options


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
