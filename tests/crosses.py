"""Parameters of which the tests take a part, and long runs all."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from typing import Any

import pytest


def in_soak(*cases: Any) -> list[Any]:
    """Return the values of a parameter for long runs."""
    return [pytest.param(case, marks=pytest.mark.soak) for case in cases]


def cases_in_soak(*cases: tuple[Any, ...]) -> list[Any]:
    """Return values of several parameters for long runs."""
    return [pytest.param(*case, marks=pytest.mark.soak) for case in cases]


def pairs_in_soak(rows: Collection[Any], columns: Collection[Any]) -> list[Any]:
    """Return all pairs as two parameters, for long runs."""
    return cases_in_soak(*itertools.product(rows, columns))


def in_turns(
    rows: Collection[Any], columns: Sequence[Any], times: int = 1, others: Collection[Any] = ()
) -> list[Any]:
    """Return pairs as two parameters: each row with so many columns, which take turns; the rest for long runs.

    So are all pairs with `others`.
    """
    return [
        pytest.param(
            row, column, marks=() if (at - times * turn) % len(columns) < times else pytest.mark.soak
        )
        for turn, row in enumerate(rows)
        for at, column in enumerate(columns)
    ] + pairs_in_soak(rows, others)
