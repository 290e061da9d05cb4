"""What loops are told of the walks of folds."""

from __future__ import annotations

import pytest

from gridstride.targets.block_loops.spaces import counter_of
from gridstride.targets.walks import FoldWalk


@pytest.mark.parametrize(
    ("fold", "positions", "counter"),
    [
        ((5,), (1,), "int"),
        ((1,), (0,), "int"),
        ((2**31 - 1,), (1,), "int"),
        ((2**31,), (1,), "long long"),
        ((4, 3), (1, 4), "int"),
        ((2**16, 2**15), (1, 2**16), "long long"),
        ((3, 4), (4, 1), "long long"),
    ],
)
def test_places_are_counted_in_the_smallest_type_that_holds_them(
    fold: tuple[int, ...], positions: tuple[int, ...], counter: str
) -> None:
    walk = FoldWalk((1,), fold, (1,), positions, positions, (1,), (), (), in_structures=True)
    assert counter_of(walk) == counter
    assert counter_of(walk._replace(in_structures=False)) == "long long"
