"""Long tests come in parts that run beside each other; what one part makes differs from what the others make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

PARTS = 14
in_parts = pytest.mark.parametrize("part", range(PARTS))
_steps: Counter[type] = Counter()


def share(count: int) -> int:
    """Return how many of so many examples or steps a part makes."""
    return -(-count // PARTS)


def count_step(machine: type) -> None:
    """Note a step of a state machine, from an invariant of it."""
    _steps[machine] += 1


def until_steps(machine: type, count: int) -> Iterator[None]:
    """Yield until a state machine has made so many steps since the start."""
    end = _steps[machine] + count
    while _steps[machine] < end:
        yield
