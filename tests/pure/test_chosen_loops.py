"""Kernels have a loop of their own for each of a few layouts, and one for any other where little moves."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod

import pytest

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
    chosen = [chosen_loop(kernel, writers, walk, LIMITS).loop.name for walk in walks]
    assert chosen == [chosen_loop(kernel, writers, walk, LIMITS).loop.name for walk in walks]
    return chosen, [writers.elementwise(walk, LIMITS).name for walk in walks]


def test_two_loops_are_kept_and_then_little_work_takes_those_for_any_layout() -> None:
    chosen, own = loops_of_calls("many", 101)
    assert len(set(own)) == 6
    in_order, others, tiles = (
        "rows<unsigned, 4, true>",
        "rows<unsigned, 4, false>",
        "tiles<false, true, 1, 64, 64>",
    )
    assert chosen == [*own[:2], in_order, tiles, others, tiles]


@pytest.mark.parametrize(
    ("side", "itemsize", "address", "loop"),
    [
        (16, 4, 0, "tiles<false, true, 1, 64, 64>"),
        (15, 4, 0, "rows<unsigned, 4, false>"),
        (16, 4, 1, "rows<unsigned, 4, false>"),
        (16, 16, 0, "tiles<false, true, 1, 32, 32>"),
        (16, 1, 0, "tiles<false, false, 16, 256, 128>"),
        (16, 1, 1, "tiles<false, false, 16, 256, 128>"),
    ],
)
def test_tiles_for_any_turned_operand(side: int, itemsize: int, address: int, loop: str) -> None:
    rows, columns = (itemsize, side * itemsize), (side * itemsize, itemsize)
    operands = tuple(
        Walked((1 << 20) + address, itemsize, each, (), each is rows) for each in (columns, rows)
    )
    chosen = BlockLoops().any_elementwise(ElementWalk((side, side), (1, side), operands), LIMITS)
    assert (chosen.name, chosen.capacity) == (loop, 8)


@pytest.mark.parametrize(
    ("row", "itemsize", "is_little"), [(15, 4, False), (16, 4, True), (63, 1, False), (64, 1, True)]
)
def test_less_is_much_along_short_rows(row: int, itemsize: int, is_little: bool) -> None:
    rows = (1 << 20) // (row * itemsize)
    column = Walked(1 << 20, itemsize, (0, itemsize))
    out = Walked(1 << 20, itemsize, (itemsize, row * itemsize), (), True)
    walk = ElementWalk((row, rows), (1, row), (column, out))
    assert chosen_loop(f"along rows of {row}", BlockLoops(), walk, LIMITS).is_final is is_little


def test_much_work_has_loops_of_its_own_when_it_comes_again() -> None:
    writers, walks = BlockLoops(), [walk_of(layout, 900) for layout in LAYOUTS]
    own = [writers.elementwise(walk, LIMITS) for walk in walks]
    of_any = [writers.any_elementwise(walk, LIMITS) for walk in walks]
    first = [chosen_loop("kernel of much", writers, walk, LIMITS) for walk in walks]
    has = list(dict.fromkeys(loop.name for loop in own))[:2]
    expected = [mine if mine.name in has else shared for mine, shared in zip(own, of_any, strict=True)]
    assert [each.loop for each in first] == expected != own
    again = [chosen_loop("kernel of much", writers, walk, LIMITS, came_again=True) for walk in walks]
    assert [each.loop for each in again] == own
    assert not any(each.is_final for each in first)
    assert all(each.is_final for each in again)


def test_much_work_has_loops_of_its_own_at_once_where_calls_come_again() -> None:
    writers = BlockLoops()
    for layout in LAYOUTS:
        walk = walk_of(layout, 900)
        for came_again in (False, True):
            choice = chosen_loop("kernel of the same calls", writers, walk, LIMITS, came_again)
            assert choice == (writers.elementwise(walk, LIMITS), came_again)


def test_little_work_shares_loops_though_nobody_knows_whether_it_comes_again() -> None:
    """As copies and arrays whose elements are unaligned are walked: such calls are not kept."""
    writers, walks = BlockLoops(), [walk_of(layout, 102) for layout in LAYOUTS]
    chosen = [chosen_loop("kernel of copies", writers, walk, LIMITS, came_again=True).loop for walk in walks]
    assert len({loop.name for loop in chosen} - {writers.any_elementwise(w, LIMITS).name for w in walks}) <= 2
    assert chosen[2:] == [writers.any_elementwise(walk, LIMITS) for walk in walks[2:]]


def test_one_call_that_comes_again_among_many_others_has_a_loop_of_its_own() -> None:
    """And they go on sharing: most are of new shapes."""
    writers, kernel = BlockLoops(), "kernel of new shapes"
    row, column, turned = (walk_of(layout, 901) for layout in ("row", "column", "turned"))
    for layout in ("contiguous", "reversed"):
        chosen_loop(kernel, writers, walk_of(layout, 900), LIMITS)
    first = [chosen_loop(kernel, writers, walk, LIMITS).loop for walk in (row, column)]
    assert first == [writers.any_elementwise(walk, LIMITS) for walk in (row, column)]
    assert chosen_loop(kernel, writers, row, LIMITS, came_again=True).loop == writers.elementwise(row, LIMITS)
    choice = chosen_loop(kernel, writers, turned, LIMITS)
    assert choice == (writers.any_elementwise(turned, LIMITS), False)


def test_a_device_that_does_not_know_its_cache_takes_all_work_for_much() -> None:
    limits = LIMITS._replace(attributes={"L2CacheSize": 0})
    assert not chosen_loop("kernel without a cache", BlockLoops(), walk_of("row", 10), limits).is_final


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("inputs", [1, 2])
def test_a_loop_is_found_for_arrays_that_are_turned_any_way(itemsize: int, inputs: int) -> None:
    random_ = random.Random(itemsize * inputs)
    for _ in range(600):
        count = random_.randint(2, 4)
        shape = tuple(random_.choice((2, 3, 7, 16, 31, 64, 100, 300, 1000, 4096)) for _ in range(count))
        if prod(shape) * itemsize > 1 << 36:
            continue
        operands = [
            Walked(
                1 << 20, itemsize, strides_in(random_.sample(range(count), count), shape, itemsize), (), False
            )
            for _ in range(inputs)
        ]
        result = Walked(1 << 20, itemsize, strides_in(range(count), shape, itemsize), (), True)
        loop = BlockLoops().elementwise(ElementWalk(shape, (0,) * count, (*operands, result)), LIMITS)
        assert 1 <= loop.configuration.grid[0] < 2**31
        assert loop.configuration.shared_mem <= LIMITS.shared_memory_per_block_optin


def strides_in(order: Sequence[int], shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the strides of an array whose axes lie in an order, the innermost one first."""
    strides, step = [0] * len(shape), itemsize
    for axis in order:
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)
