"""Whole kernels: an index, a guard, a body with fragments of chosen features, and stores of what was computed.

Every kernel is safe whatever its guard says: all arrays are larger than any index can be, each thread
writes elements that are its own, and atomic operations are such that their order makes no difference.
No signed number overflows, and floating-point numbers are converted to integers in their range only.
So any difference between two ways to run one is a fault of one of them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from generated_kernels import fragments
from generated_kernels.indexing import AXES, write_index
from generated_kernels.writer import FLOATING, INTEGERS, OUTPUTS, SCALARS, Writer

#: Fragments by the feature they bring, with the share of kernels in which each is planted.
_FRAGMENTS: dict[str, tuple[float, Callable[[Writer, fragments.Place], None]]] = {
    "loop": (0.35, fragments.counted_loop),
    "loop of uniform length": (0.3, fragments.uniform_loop),
    "break": (0.2, fragments.loop_with_break),
    "continue": (0.2, fragments.loop_with_continue),
    "return in a loop": (0.16, fragments.loop_with_return),
    "while": (0.18, fragments.while_loop),
    "do while": (0.15, fragments.do_while_loop),
    "nested loops": (0.15, fragments.nested_loops),
    "branch": (0.5, fragments.branch),
    "switch": (0.15, fragments.switch),
    "early return": (0.2, fragments.early_return),
    "capital names": (0.25, fragments.capital_names),
    "index variable": (0.35, fragments.index_variable),
    "reference": (0.2, fragments.reference),
    "reference parameter": (0.2, fragments.reference_parameter),
    "pointer to a local": (0.16, fragments.pointer_to_local),
    "local array": (0.2, fragments.local_array),
    "vector type": (0.2, fragments.vector_type),
    "atomic": (0.2, fragments.atomic),
    "narrow types": (0.35, fragments.narrow_types),
    "compound assignment": (0.4, fragments.compound_assignments),
    "increment": (0.25, fragments.increments),
    "thread numbers": (0.18, fragments.thread_numbers),
    "structure": (0.15, fragments.structure),
    "lambda": (0.14, fragments.lambda_),
    "store between": (0.3, fragments.store_between),
    "macro": (0.25, fragments.macro),
}
#: What a kernel may have besides: of the index and guard, and of expressions.
_OTHERS = (
    "one axis", "two axes", "three axes", "grid stride", "offset", "unsigned index", "wide index",
    "bounds guard", "interval guard", "scattered guard", "guard of data", "guard that returns", "guard macro",
    "no guard", "device function", "math", "exact function", "ternary", "cast", "wrap", "bitwise", "shift",
    "division", "gather", "floating",
)  # fmt: skip
FEATURES = (*_FRAGMENTS, *_OTHERS)


class GeneratedKernel(NamedTuple):
    """A kernel: its name and text, its parameters in order, its features, and bytes of dynamic shared memory."""

    name: str
    text: str
    parameters: tuple[str, ...]
    features: frozenset[str]
    shared_mem: int = 0


class Batch(NamedTuple):
    """Kernels that are compiled together and launched alike.

    Attributes
    ----------
    seed : int
    kernels : tuple of GeneratedKernel
    grid, block : tuple of int
    uniforms : dict
        The values of the parameters that are numbers.
    """

    seed: int
    kernels: tuple[GeneratedKernel, ...]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    uniforms: dict[str, float]

    @property
    def text(self) -> str:
        """The text of all kernels."""
        return "\n".join(kernel.text for kernel in self.kernels)


def places_of_few(kernels: Sequence[GeneratedKernel]) -> list[int]:
    """Return the places of few kernels that have, together, all features of all of them."""
    places: list[int] = []
    left = {feature for kernel in kernels for feature in kernel.features}
    while left:
        places.append(max(range(len(kernels)), key=lambda k: len(left & kernels[k].features)))
        left -= kernels[places[-1]].features
    return sorted(places)


def generate_batch(seed: int, count: int = 40, *, has_math: bool = True) -> Batch:
    """Return kernels that a seed determines, with a launch configuration for all of them.

    Without mathematical functions they give the same bits on every target.
    """
    rng = random.Random(seed)
    axes = rng.choices((1, 2, 3), (5, 3, 2))[0]
    block = rng.choice(AXES[axes])
    grid = tuple(rng.randint(1, most) for most in ((12,), (5, 4), (3, 3, 3))[axes - 1])
    kernels = tuple(_generate(rng, f"generated_{seed}_{k}", axes, has_math) for k in range(count))
    return Batch(seed, kernels, grid, block, _uniforms(rng, grid, block))


def _uniforms(rng: random.Random, grid: tuple[int, ...], block: tuple[int, ...]) -> dict[str, float]:
    threads = math.prod(grid) * math.prod(block)
    extents = [g * b for g, b in zip(grid, block, strict=True)] + [1, 1]
    return {
        "n": max(1, threads - rng.choice((0, 0, 1, 5, threads // 3))),
        "m": rng.randint(0, 6),
        "low": rng.randint(0, 9),
        "high": rng.randint(threads // 2, threads + 3),
        "factor": rng.choice((0.5, -1.25, 0.1, 3.0)),
        "mask": rng.choice((0x0F, 0xFF00FF, 0xFFFFFFFF)),
        "width": max(1, extents[0] - rng.choice((0, 0, 1, 3))),
        "height": max(1, extents[1] - rng.choice((0, 0, 1))),
        "pitch": extents[0],
        "rows": extents[1],
    }


def _generate(rng: random.Random, name: str, axes: int, has_math: bool) -> GeneratedKernel:
    used: set[str] = set()
    writer = Writer(rng, used)
    place = fragments.Place(name)
    writer.has_math = writer.chance(0.3) and has_math
    if writer.chance(0.35):
        fragments.device_functions(writer, place)
    planted = [each for each, (share, _) in _FRAGMENTS.items() if writer.chance(share)]
    rng.shuffle(planted)
    with write_index(writer, place, axes) as index:
        place.index = index
        _write_body(writer, place, planted)
    head = f'extern "C" __global__ void {name}({", ".join(writer.parameters.values())})'
    text = "\n".join([*place.preamble, f"{head} {{", *writer.lines, "}", *place.ending, ""])
    return GeneratedKernel(name, text, tuple(writer.parameters), frozenset(used))


def _write_body(writer: Writer, place: fragments.Place, planted: list[str]) -> None:
    for type_ in (*writer.rng.sample(SCALARS, 3), "int", "float", writer.pick(*FLOATING)):
        writer.declare(type_, writer.expression(type_))
    for feature in planted:
        writer.used.add(feature)
        _FRAGMENTS[feature][1](writer, place)
    for name in writer.rng.sample(list(OUTPUTS), writer.rng.randint(2, 4)):
        type_ = OUTPUTS[name]
        sources = writer.variables(*(FLOATING if type_ in FLOATING else INTEGERS))
        chosen = [each.name for each in writer.rng.sample(sources, min(len(sources), 3))]
        if type_ in INTEGERS:
            chosen = [f"(unsigned long long){each}" for each in chosen]
        value = f" {writer.pick('+', '-', '^') if type_ in INTEGERS else '+'} ".join(chosen)
        writer.line(f"{fragments.own_element(writer, place, name)} = {value};")
