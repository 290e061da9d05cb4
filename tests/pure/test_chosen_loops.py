"""Kernels have a loop of their own for each of a few layouts, and one for any other where little moves."""

from __future__ import annotations

from gridstride._array_pipeline.choosing import bytes_moved, chosen_loop
from gridstride.targets import registry
from gridstride.targets.block_loops.writers import BlockLoops
from gridstride.targets.walks import ElementWalk, Walked

LIMITS = registry.get("cpu").limits(0)._replace(multiprocessors=132, attributes={"L2CacheSize": 1 << 20})
#: Strides of two inputs of four bytes, for rows of so many bytes.
LAYOUTS = {
    "contiguous": lambda row: ((4, row), (4, row)),
    "row": lambda row: ((4, row), (4, 0)),
    "column": lambda row: ((4, row), (0, 4)),
    "turned": lambda row: ((4, row), (row, 4)),
    "reversed": lambda row: ((4, row), (-4, -row)),
    "both turned": lambda row: ((row, 4), (row, 4)),
}


def walk_of(layout: str, side: int) -> ElementWalk:
    strides = (*LAYOUTS[layout](4 * side), (4, 4 * side))
    return ElementWalk(
        (side, side), (1, side), tuple(Walked(1 << 20, 4, each, (), k == 2) for k, each in enumerate(strides))
    )


def test_what_moves() -> None:
    assert bytes_moved(walk_of("contiguous", 10)) == 3 * 400
    assert bytes_moved(walk_of("row", 10)) == 2 * 400 + 40


def loops_of_calls(kernel: str, side: int) -> tuple[list[str], list[str]]:
    """Return the loops that walks have one after another, and those that are made for them."""
    writers, walks = BlockLoops(), [walk_of(layout, side) for layout in LAYOUTS]
    chosen = [chosen_loop(kernel, writers, walk, LIMITS).name for walk in walks]
    assert chosen == [chosen_loop(kernel, writers, walk, LIMITS).name for walk in walks]
    return chosen, [writers.elementwise(walk, LIMITS).name for walk in walks]


def test_three_loops_are_kept() -> None:
    chosen, own = loops_of_calls("few", 100)
    assert len(set(own)) == 3
    assert chosen == own


def test_after_three_loops_little_work_takes_one_for_any_layout() -> None:
    chosen, own = loops_of_calls("many", 101)
    assert len(set(own)) == 6
    assert chosen == [*own[:3], *["rows<unsigned, 4, false>"] * 3]


def test_much_work_has_loops_of_its_own() -> None:
    writers = BlockLoops()
    for layout in LAYOUTS:
        walk = walk_of(layout, 700)
        assert chosen_loop("kernel of much", writers, walk, LIMITS) == writers.elementwise(walk, LIMITS)
