"""Generated kernels whose threads work together write on each target what they mean, contraction off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest
from generated_kernels import COOPERATIONS, CooperatingBatch, generate_cooperating, places_of_few
from generated_kernels.lockstep import Block, Tile
from generated_kernels.running import Difference, difference, run_batch

import gridstride as gs

#: Seeds of the batches for every run of the tests, of which few kernels are taken, and for the long one: 2000 kernels.
SHORT, SOAK = range(1, 3), range(100, 150)
SHORT_KERNELS, SOAK_KERNELS = 20, 40
ROUNDED = {"options": ("--fmad=false",)}


@pytest.mark.parametrize("seed", SHORT)
def test_threads_that_work_together_write_what_they_mean(xp: ModuleType, seed: int) -> None:
    made = generate_cooperating(seed, SHORT_KERNELS)
    places = places_of_few(made.batch.kernels)
    batch = made.batch._replace(kernels=tuple(made.batch.kernels[place] for place in places))
    assert not differences(CooperatingBatch(batch, tuple(made.meanings[place] for place in places)), xp)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", SOAK)
def test_threads_that_work_together_write_what_they_mean_for_long(xp: ModuleType, seed: int) -> None:
    assert not differences(generate_cooperating(seed, SOAK_KERNELS), xp)


@pytest.mark.parametrize("seeds", [SOAK[::5], pytest.param(SOAK, marks=pytest.mark.soak)], ids=len)
def test_every_feature_is_in_a_tenth_of_the_kernels(seeds: range) -> None:
    kernels = [kernel for seed in seeds for kernel in generate_cooperating(seed, SOAK_KERNELS).batch.kernels]
    counted = Counter(feature for kernel in kernels for feature in kernel.features)
    assert set(counted) == set(COOPERATIONS)
    assert not {feature: count for feature, count in counted.items() if count < len(kernels) / 10}


def test_a_seed_determines_a_batch() -> None:
    first, second = (generate_cooperating(7, 5) for _ in range(2))
    assert first.batch == second.batch
    for one, other in zip(first.expected(), second.expected(), strict=True):
        assert all(
            np.array_equal(one[name], other[name], equal_nan=one[name].dtype.kind == "f") for name in one
        )


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("__shfl_up_sync", "__shfl_down_sync"),
        ("__syncthreads_count(", "__syncthreads_and("),
        ("__any_sync", "__all_sync"),
        ("atomicMax(", "atomicMin("),
        ("value += tile[(t + ", "value += tile[(t + 1 + "),
        ("k >>= 1", "k = 0"),
        ("return;", ";"),
    ],
)
def test_another_program_is_found_out(xp: ModuleType, right: str, wrong: str) -> None:
    assert any(differences(made, xp) for made in changed_batches(right, wrong))


def changed_batches(right: str, wrong: str) -> Iterator[CooperatingBatch]:
    """Yield the kernels whose texts have something, with something else in its place."""
    for seed in range(1, 7):
        made = generate_cooperating(seed, 10)
        chosen = [
            (kernel._replace(text=kernel.text.replace(right, wrong)), meaning)
            for kernel, meaning in zip(made.batch.kernels, made.meanings, strict=True)
            if right in kernel.text
        ]
        if chosen:
            kernels, meanings = zip(*chosen, strict=True)
            yield CooperatingBatch(made.batch._replace(kernels=kernels), meanings)


def test_races_are_found_out() -> None:
    block = Block(4, 0, 1, {}, {})
    block.tiles["x"] = tile = Tile(4, "int")
    tile.write(block, block.place, block.place)
    with pytest.raises(AssertionError, match="a race"):
        tile.read(block, 3 - block.place)
    block.barrier()
    assert tile.read(block, 3 - block.place).tolist() == [3, 2, 1, 0]
    with pytest.raises(AssertionError, match="a race"):
        tile.change(block, np.add, block.place, block.place)
    block.barrier()
    with pytest.raises(AssertionError, match="a race"):
        tile.write(block, block.place // 2, block.place)


def test_barriers_that_threads_miss_are_found_out() -> None:
    block = Block(4, 0, 1, {}, {})
    with block.only(block.place < 2), pytest.raises(AssertionError, match="a barrier"):
        block.barrier()
    with block.only(block.place < 2):
        block.leave_kernel()
    block.barrier()
    with pytest.raises(AssertionError, match="takes no part"):
        block.shuffled(block.place, block.place - 2)


def differences(made: CooperatingBatch, xp: ModuleType) -> list[Difference]:
    """Return where kernels write something else than they mean."""
    module = gs.RawModule(code=made.batch.text, **ROUNDED)
    found = zip(made.batch.kernels, made.expected(), run_batch(module, made.batch, xp), strict=True)
    return [different for each in found if (different := difference(*each)) is not None]
