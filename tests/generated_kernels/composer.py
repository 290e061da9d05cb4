"""The body of a kernel while it grows: nested statements, shared arrays, and who may touch them until when."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from textwrap import indent
from typing import NamedTuple

import numpy as np

from generated_kernels.lockstep import DTYPES, WARP, Array, Block, Expression, Statement, Tile
from generated_kernels.values import Local, SharedArray, Values

#: Types of shared arrays that threads may change atomically.
ATOMIC_TYPES = ("int", "unsigned", "unsigned long long")
_PADDED_COLUMNS = 8

Phases = list[tuple[str, bool]]


class Lanes(NamedTuple):
    """The threads that execute a collective together: all of a warp, or a half of one.

    Attributes
    ----------
    mask : str
    count : int
        Lanes in each group.
    """

    mask: str = "mask"
    count: int = WARP

    def group(self, block: Block) -> Array:
        return block.place // self.count


class Composer:
    """Collect statements.

    Parameters
    ----------
    rng : random.Random
    name : str
        Of the kernel.
    threads : int
        In a block.
    """

    def __init__(self, rng: random.Random, name: str, threads: int) -> None:
        self.used: set[str] = set()
        self.rng, self.name, self.threads = rng, name, threads
        self.values = Values(rng, self.used)
        self.preamble: list[str] = []
        #: Arrays for one purpose each, besides those that any statement may use.
        self.dedicated: list[SharedArray] = []
        self.lanes = Lanes()
        #: Whether threads have returned that others of their warp go on without, and whether any have.
        self.is_ragged = self.is_thinned = False
        self.statements: list[Statement] = []
        self.depth = 0

    @property
    def is_full(self) -> bool:
        """Whether every warp has all its lanes."""
        return self.threads % WARP == 0

    def emit(self, text: str, run: Callable[[Block], None]) -> None:
        self.statements.append(Statement(text, run))

    @contextmanager
    def nested(self) -> Iterator[list[Statement]]:
        """Collect statements that the caller puts between braces."""
        outer, self.statements = self.statements, []
        self.depth += 1
        with self.values.scope():
            yield self.statements
        self.depth -= 1
        self.statements = outer

    def declare(self, value: Expression, *, is_uniform: bool = False, is_mutable: bool = True) -> Local:
        local = Local(self.values.name(), value.type, is_uniform, is_mutable and not is_uniform)
        qualifier = "" if local.is_mutable else "const "
        self.emit(
            f"{qualifier}{value.type} {local.name} = {value.text};",
            lambda block: block.assign(local.name, local.type, value.value(block)),
        )
        return self.values.bring(local)

    # ---- shared memory ----

    def share(self, type_: str, *, is_dedicated: bool = False) -> SharedArray:
        array = SharedArray(self.values.name(), type_, self.threads)
        (self.dedicated if is_dedicated else self.values.arrays).append(array)
        if not is_dedicated and self.values.chance(0.25):
            self.used.add("padded array")
            array.columns = _PADDED_COLUMNS
        return array

    def phases(self) -> Phases:
        return [(array.phase, array.is_reversed) for array in self.values.arrays]

    def barrier(self, phases: Phases | None = None) -> None:
        """Write a barrier; behind it every shared array has a phase that is given or drawn."""
        kind = self.rng.choice(("", "", "", "_count", "_and", "_or"))
        if not kind or phases is not None:
            self.emit("__syncthreads();", Block.barrier)
        else:
            self.used.add("barrier that counts")
            self.declare(self.counted(kind), is_uniform=True)
        for array, (phase, is_reversed) in zip(
            self.values.arrays, phases or self._drawn_phases(), strict=True
        ):
            array.phase, array.is_reversed = phase, is_reversed

    def counted(self, kind: str) -> Expression:
        """Return a barrier that yields how many threads, whether all or any have a condition."""
        predicate = self.values.condition()

        def meet(block: Block) -> Array:
            chosen = predicate.value(block)[block.active]
            block.barrier()
            result = {"_count": chosen.sum(), "_and": chosen.all(), "_or": chosen.any()}[kind]
            return np.full(block.threads, int(result), "i4")

        # What is not zero is true; only the number of threads is a number.
        text = f"__syncthreads{kind}({predicate.text})"
        return Expression("int", text if kind == "_count" else f"({text} != 0)", meet)

    def _drawn_phases(self) -> Phases:
        drawn = []
        for array in self.values.arrays:
            phases = ["own", "read", "read"]
            if array.type in ATOMIC_TYPES:
                others = ("atomicMax", "atomicMin", "atomicXor", "atomicOr", "atomicAnd")
                phases += ["atomicAdd", self.rng.choice(others)]
            drawn.append((self.rng.choice(phases), self.values.chance(0.3)))
        return drawn

    # ---- the whole text ----

    def kernel_text(self, parameters: str, axes: int) -> tuple[str, int]:
        """Return the text of the kernel, and the bytes of dynamic shared memory it needs."""
        declared, size = self._declarations()
        place = "threadIdx.y * blockDim.x + threadIdx.x" if axes > 1 else "threadIdx.x"
        number = "blockIdx.y * gridDim.x + blockIdx.x" if axes > 1 else "blockIdx.x"
        head = [
            f"const int t = {place}, b = {number};",
            f"const int threads = {'blockDim.x * blockDim.y' if axes > 1 else 'blockDim.x'};",
            "const int g = b * threads + t, lane = t & 31, warp = t >> 5, live = min(32, threads - (t & ~31));",
            "const unsigned mask = live == 32 ? 0xffffffffu : (1u << live) - 1;",
            *declared,
        ]
        body = "\n".join([*head, *(each.text for each in self.statements)])
        kernel = f'extern "C" __global__ void {self.name}({parameters}) {{\n{indent(body, "    ")}\n}}\n'
        return "\n".join([*self.preamble, kernel]), size

    def start(self, block: Block) -> None:
        """Fill shared memory as the text does first."""
        for array in self._arrays():
            tile = block.tiles[array.name] = Tile(array.size, array.type)
            tile.values[:] = (block.place * 3 + 1).astype(DTYPES[array.type])

    def _arrays(self) -> list[SharedArray]:
        return self.values.arrays + self.dedicated

    def _declarations(self) -> tuple[list[str], int]:
        lines, size = [], 0
        for array in self._arrays():
            if array.columns:
                rows = -(-array.size // array.columns)
                lines.append(f"__shared__ {array.type} {array.name}[{rows}][{array.columns + 1}];")
            elif self.values.chance(0.3):
                self.used.add("dynamic shared memory")
                lines.append(f"{array.type}* const {array.name} = ({array.type}*)(pool + {size // 8});")
                size += -(-array.size * DTYPES[array.type].itemsize // 8) * 8
            else:
                lines.append(f"__shared__ {array.type} {array.name}[{array.size}];")
        if size:
            lines.insert(0, "extern __shared__ unsigned long long pool[];")
        lines += [f"{array.element('t')} = ({array.type})(t * 3 + 1);" for array in self._arrays()]
        return lines, size


def braces(head: str, body: list[Statement]) -> str:
    lines = "\n".join(each.text for each in body)
    return f"{head} {{\n{indent(lines, '    ')}\n}}"
