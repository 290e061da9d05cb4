"""Crosses of two factors of which the tests take a part, and long runs all of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def in_turns(
    rows: Iterable[Any], columns: Sequence[Any], times: int = 1, others: Sequence[Any] = ()
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
    ] + [pytest.param(row, column, marks=pytest.mark.soak) for row in rows for column in others]
