"""What loops are told of the walks of folds."""

from __future__ import annotations

import pytest

from gridstride.targets import registry
from gridstride.targets.block_loops.spaces import counter_of
from gridstride.targets.block_loops.writers import BlockLoops
from gridstride.targets.walks import THREADS, FoldLoop, FoldWalk, Walked


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


def fold_of_rows(
    rows: int, width: int, itemsize: int, address: int = 0, in_structures: bool = False
) -> FoldLoop:
    """Return the loop for a fold of each row of an array on a device of 132 multiprocessors."""
    array = Walked(address, itemsize, (width * itemsize,), (itemsize,))
    walk = FoldWalk(
        (rows,), (width,), (width,), (1,), (1,), (1,), (array,), (Walked(0, 8, (8,), written=True),), in_structures
    )  # fmt: skip
    return BlockLoops().reduction(walk, registry.get("cpu").limits(0)._replace(multiprocessors=132))


@pytest.mark.parametrize(
    ("width", "itemsize", "address", "in_structures", "name"),
    [
        (100, 4, 0, False, "fold_lines"),
        (100, 4, 4, False, "fold_short"),
        (101, 4, 0, False, "fold_short"),
        (64, 4, 0, False, "fold_short"),
        (112, 1, 0, False, "fold_short"),
        (50, 8, 0, False, "fold_short"),
        (304, 1, 0, False, "fold_lines"),
        (304, 1, 0, True, "fold_short"),
    ],
)
def test_rows_of_many_small_elements_are_lines_where_they_are_whole_words(
    width: int, itemsize: int, address: int, in_structures: bool, name: str
) -> None:
    assert fold_of_rows(1 << 20, width, itemsize, address, in_structures).name.startswith(name)


@pytest.mark.parametrize(
    ("rows", "width", "itemsize", "in_structures", "threads"),
    [
        (1 << 20, 175, 4, False, 4),  # of 8 a turn more would find nothing left
        (1 << 20, 400, 4, False, 16),
        (1 << 20, 400, 4, True, 8),
        (1 << 20, 700, 1, True, 2),
        (1000, 700, 1, True, 8),
        (1000, 175, 4, False, 8),
    ],
)
def test_how_many_threads_share_a_short_line(
    rows: int, width: int, itemsize: int, in_structures: bool, threads: int
) -> None:
    grid = fold_of_rows(rows, width, itemsize, in_structures=in_structures).configuration.grid
    assert grid == (-(-rows * threads // THREADS), 1, 1)
