"""Any walk has a loop for blocks of threads, whatever its sides, strides and operands: plans need no GPU."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from random import Random

import pytest

from gridstride._arguments import axes
from gridstride.targets import registry
from gridstride.targets.block_loops.writers import BlockLoops
from gridstride.targets.values import LaunchConfig
from gridstride.targets.walks import ElementWalk, FoldWalk, Walked

Ints = tuple[int, ...]

LIMITS = registry.get("cpu").limits(0)._replace(multiprocessors=132)
SIDES = (1, 1, 2, 3, 5, 7, 8, 9, 12, 15, 16, 31, 32, 33, 64, 100, 127, 128, 255, 256, 300, 1000, 4096)
SIZES = (1, 1, 2, 4, 8, 16, 2, 4, 12, 3, 40)
WALKS = 1000
#: Elements of the axes that are kept, or folded.
MOST = 1 << 30


class Walks:
    """Makes walks of any kind, of axes as the pipeline merges them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def one_in(self, number: int) -> bool:
        return self.random.randrange(number) == 0

    def size(self) -> int:
        return self.random.choice(SIZES)

    def address(self, size: int) -> int:
        return (1 << 40) + size * self.random.choice((0, 0, 0, 1, 3))

    def sides(self, least: int, most: int) -> Ints:
        sides = [self.random.choice(SIDES) for _ in range(self.random.randint(least, most))]
        if self.one_in(2):  # some of each are worth a loop of their own
            at = self.random.randrange(len(sides))
            sides[at] = max(1, self.random.choice((1 << 16, 1 << 22, 1 << 28)) * sides[at] // prod(sides))
        while prod(sides) > MOST:
            sides[sides.index(max(sides))] = 2
        return tuple(sides)

    def strides(self, sides: Ints, size: int, written: bool) -> Ints:
        order = list(range(len(sides)))[::-1]  # from the closest on
        if self.one_in(3):
            self.random.shuffle(order)
        elif self.one_in(3):
            order = [*order[1:], order[0]]
        strides, step = [0] * len(sides), size * (2 if self.one_in(8) else 1)
        for axis in order:
            strides[axis] = step if written else self.random.choice((step,) * 12 + (0, 0, -step))
            step *= sides[axis]
        return tuple(strides)

    def elements(self) -> ElementWalk:
        sides, count = self.sides(1, 5), self.random.randint(0, 4)
        sizes = [self.size() for _ in range(count)]
        written = [k == count - 1 and not self.one_in(9) for k in range(count)]
        strides = [self.strides(sides, size, out) for size, out in zip(sizes, written, strict=True)]
        numbers = axes.c_strides(sides, self.random.randint(0, 1))
        lengths, (walked, *steps) = axes.collapse(sides, [numbers, *strides], [*strides[::-1], numbers])
        operands = zip(sizes, steps, written, strict=True)
        return ElementWalk(
            lengths, walked, tuple(Walked(self.address(size), size, each, (), out) for size, each, out in operands)
        )  # fmt: skip

    def fold(self) -> FoldWalk:
        kept, fold = self.sides(1, 3), (0,) if self.one_in(20) else self.sides(1, 3)
        sizes, size = [self.size() for _ in range(self.random.randint(1, 3))], self.size()
        sides, split = (kept + fold, len(kept)) if self.one_in(2) else (fold + kept, len(fold))
        numbers = axes.c_strides(sides, self.random.randint(0, 1))
        both = [
            (each[:split], each[split:])
            for each in (numbers, *(self.strides(sides, of, False) for of in sizes))
        ]
        own, folded = zip(*(both if sides[:split] == kept else [each[::-1] for each in both]), strict=True)
        results, positions = axes.c_strides(kept, 1), axes.c_strides(fold, self.random.randint(0, 1))
        out = self.strides(kept, size, True)
        lengths, (result, number, *kept_steps, stored) = axes.collapse(
            kept, [results, *own, out], [*own[1:], out, results]
        )
        fold_lengths, (position, fold_number, *fold_steps) = axes.collapse(
            fold, [positions, *folded], [*folded[1:], positions]
        )
        return FoldWalk(
            lengths, fold_lengths, number, fold_number, position, result,
            self.inputs(sizes, kept_steps, fold_steps), (Walked(self.address(size), size, stored, (), True),),
            in_structures=self.one_in(3), has_identity=self.one_in(2), keeps_places=self.one_in(8),
        )  # fmt: skip

    def inputs(self, sizes: Sequence[int], kept: Sequence[Ints], fold: Sequence[Ints]) -> tuple[Walked, ...]:
        return tuple(
            Walked(self.address(size), size, *steps) for size, *steps in zip(sizes, kept, fold, strict=True)
        )


def check_launch(configuration: LaunchConfig) -> None:
    x, y, z = configuration.grid
    assert 0 < x < 1 << 31
    assert 0 < y < 1 << 16
    assert 0 < z < 1 << 16
    assert 0 < configuration.threads <= 1024


@pytest.mark.parametrize("seed", range(8))
def test_elements(seed: int) -> None:
    walks, writers = Walks(seed), BlockLoops()
    for _ in range(WALKS):
        walk = walks.elements()
        for loop in (writers.elementwise(walk, LIMITS), writers.any_elementwise(walk, LIMITS)):
            assert len(loop.operands) == len(walk.operands), walk
            check_launch(loop.configuration)


@pytest.mark.parametrize("seed", range(8))
def test_folds(seed: int) -> None:
    walks, writers = Walks(seed), BlockLoops()
    for _ in range(WALKS):
        walk = walks.fold()
        for loop in (writers.reduction(walk, LIMITS), writers.large_reduction(walk, LIMITS, 300)):
            assert len(loop.operands) == len(walk.inputs) + len(walk.outputs), walk
            assert loop.parts >= 1
            check_launch(loop.configuration)
