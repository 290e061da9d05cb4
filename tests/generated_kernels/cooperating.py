"""Whole kernels whose threads work together, and what they must leave in memory.

No two threads touch an element of shared memory between two barriers unless all read it or all change it by one
atomic operation; barriers stand where all threads of a block that have not returned come by, collectives
of a warp where all the lanes they name do. What the statements mean is run in lockstep beside them, so that a
result can be checked where there is only one way to run the kernel.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from generated_kernels import cooperation
from generated_kernels.composer import ATOMIC_TYPES, Composer
from generated_kernels.cooperation import Feature
from generated_kernels.kernels import Batch, GeneratedKernel
from generated_kernels.lockstep import Block, Expression
from generated_kernels.running import Outputs, inputs_of, outputs_of
from generated_kernels.values import REAL, TYPES
from generated_kernels.writer import COUNTERS, INPUTS, OUTPUTS, SPARE_COUNTER, UNIFORMS

#: Shapes of blocks, more of them with whole warps than without.
_BLOCKS = ((32,), (64,), (128,), (256,), (96,), (16, 4), (32, 4), (8, 8), (33,), (48,), (7,), (5, 9))
_GRIDS = {1: ((1,), (2,), (3,), (4,)), 2: ((1, 1), (2, 1), (2, 2))}
#: Features with the share of kernels in which each is planted; the statements inside of others bring more.
_PLANTED: dict[Feature, float] = {
    cooperation.barrier: 0.8, cooperation.uniform_branch: 0.3, cooperation.uniform_loop: 0.35,
    cooperation.do_while: 0.18, cooperation.tree_reduction: 0.2, cooperation.scan: 0.16,
    cooperation.barrier_function: 0.25,
    cooperation.shuffle: 0.4, cooperation.vote: 0.3, cooperation.match: 0.16, cooperation.warp_reduction: 0.2,
    cooperation.warp_exchange: 0.2, cooperation.warp_function: 0.2, cooperation.warp_condition: 0.25,
    cooperation.halves: 0.3, cooperation.shared_atomic: 0.4, cooperation.global_atomic: 0.3,
    cooperation.branch: 0.25, cooperation.loop: 0.3, cooperation.shared_store: 0.5,
    cooperation.threads_return: 0.15, cooperation.warps_return: 0.15,
}  # fmt: skip
_OF_WARPS = (
    cooperation.shuffle, cooperation.vote, cooperation.match, cooperation.warp_reduction, cooperation.warp_exchange,
    cooperation.warp_function, cooperation.warp_condition, cooperation.halves,
)  # fmt: skip
COOPERATIONS = (
    "barrier", "barrier that counts", "barrier in a condition", "barrier in a loop", "uniform break",
    "do while over a barrier", "device function with a barrier", "template with a barrier", "tree reduction", "scan",
    "shuffle", "shuffle of part of a warp", "vote", "match", "warp reduction", "warp barrier", "warp function",
    "warp condition", "halves of a warp", "partial warp", "divergent branch", "divergent loop", "shared memory",
    "shared atomic", "global atomic", "padded array", "dynamic shared memory", "threads that return",
    "warps that return", "last block",
)  # fmt: skip
#: Where the last block finds what the others left, and leaves what it made of it.
_LEFT, _MADE = 20_000, 21_000


class CooperatingBatch(NamedTuple):
    """Kernels, and what each means for a block."""

    batch: Batch
    meanings: tuple[Callable[[Block], None], ...]

    def expected(self) -> Iterator[Outputs]:
        """Yield what each kernel must write."""
        batch, blocks = self.batch, math.prod(self.batch.grid)
        given = inputs_of(batch.seed)
        for kernel, meaning in zip(batch.kernels, self.meanings, strict=True):
            written = outputs_of(kernel)
            with np.errstate(all="ignore"):
                for index in range(blocks):
                    block = Block(math.prod(batch.block), index, blocks, {**given, **written}, batch.uniforms)
                    meaning(block)
            yield written


def generate_cooperating(seed: int, count: int = 40) -> CooperatingBatch:
    """Return kernels that a seed determines, with a launch configuration for all of them."""
    rng = random.Random(f"cooperating {seed}")
    block = rng.choice(_BLOCKS)
    grid = rng.choice(_GRIDS[len(block)])
    made = [_compose(rng, f"cooperating_{seed}_{k}", grid, block) for k in range(count)]
    kernels, meanings = zip(*made, strict=True)
    return CooperatingBatch(Batch(seed, kernels, grid, block, {"m": rng.randint(0, 6)}), meanings)


def _compose(
    rng: random.Random, name: str, grid: tuple[int, ...], block: tuple[int, ...]
) -> tuple[GeneratedKernel, Callable[[Block], None]]:
    to = Composer(rng, name, math.prod(block))
    if not to.is_full:
        to.used.add("partial warp")
    _begin(to)
    for feature in _chosen(to):
        feature(to)
    cooperation.barrier(to)
    cooperation.store_all(to)
    if not to.is_thinned and to.values.chance(0.4):
        _last_block(to, math.prod(grid))
    statements = to.statements
    tables = {
        **{k: f"const {v}* {k}" for k, v in INPUTS.items()},
        **{k: f"{v}* {k}" for k, v in (OUTPUTS | COUNTERS).items()},
    }
    parameters = {
        each: text for each, text in tables.items() if each not in ("in_short", "in_byte", "out_short")
    }
    parameters["m"] = f"{UNIFORMS['m']} m"
    text, shared_mem = to.kernel_text(", ".join(parameters.values()), len(block))
    kernel = GeneratedKernel(name, text, tuple(parameters), frozenset(to.used), shared_mem)

    def meaning(threads: Block) -> None:
        to.start(threads)
        threads.run(statements)

    return kernel, meaning


def _begin(to: Composer) -> None:
    for type_ in (
        to.rng.choice(ATOMIC_TYPES),
        to.rng.choice(REAL),
        *to.rng.sample(TYPES, to.rng.randint(0, 2)),
    ):
        to.share(type_)
    first = Expression("int", "b & 1", lambda block: np.full(block.threads, block.index & 1, "i4"))
    to.declare(first, is_uniform=True)
    for type_ in ("int", "unsigned", "float", to.rng.choice(TYPES)):
        to.declare(to.values.expression(type_))


def _chosen(to: Composer) -> list[Feature]:
    """Return features in any order; those of warps come before some of their threads return."""
    planted = [feature for feature, share in _PLANTED.items() if to.values.chance(share)]
    if not to.is_full and cooperation.halves in planted:
        planted.remove(cooperation.halves)
    to.rng.shuffle(planted)
    if cooperation.threads_return in planted:
        planted.sort(key=lambda feature: feature not in _OF_WARPS)
    return planted


def _last_block(to: Composer, blocks: int) -> None:
    """Let the block that comes last add up what the others left."""
    to.used.add("last block")
    flag, value = f"last_{to.values.name()}", to.values.expression("long long", 1)
    end = SPARE_COUNTER * 1000 + blocks - 1
    to.emit(
        f"__shared__ bool {flag};\nif (t == 0) {{\n    out_long[{_LEFT} + b] = {value.text};\n    __threadfence();\n"
        f"    {flag} = atomicAdd(&count_unsigned[{SPARE_COUNTER}], 1u) == {end}u;\n}}\n__syncthreads();\n"
        f"if ({flag}) {{\n    __threadfence();\n    unsigned long long sum = 0;\n"
        f"    for (int k = 0; k < {blocks}; ++k) sum = sum * 3 + ((volatile long long*)out_long)[{_LEFT} + k];\n"
        f"    out_long[{_MADE} + t] = sum + t;\n}}",
        lambda block: _add_up(block, int(value.value(block)[0]), blocks),
    )


def _add_up(block: Block, value: int, blocks: int) -> None:
    out = block.memory["out_long"]
    out[_LEFT + block.index] = value
    block.memory["count_unsigned"][SPARE_COUNTER] += 1
    if block.index == blocks - 1:
        total = 0
        for k in range(blocks):
            total = (total * 3 + int(out[_LEFT + k])) % 2**64
        sums = np.uint64(total) + block.place.astype("u8")
        out[_MADE : _MADE + block.threads] = sums.view("i8")
