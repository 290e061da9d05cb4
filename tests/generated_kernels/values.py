"""Expressions of what is in scope in a kernel, each with its text and with what it means."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from generated_kernels.lockstep import DTYPES, Array, Block, Expression
from generated_kernels.writer import INPUTS, Writer

WHOLE = ("int", "unsigned", "long long", "unsigned long long")
REAL = ("float", "double")
TYPES = WHOLE + REAL
_LITERALS: dict[str, tuple[tuple[str, Any], ...]] = {
    "int": (("0", 0), ("1", 1), ("-7", -7), ("12345", 12345), ("0x7fffffff", 2**31 - 1)),
    "unsigned": (("0u", 0), ("5u", 5), ("0x80000000u", 2**31), ("4294967295u", 2**32 - 1)),
    "long long": (("1ll", 1), ("-3ll", -3), ("4294967296ll", 2**32)),
    "unsigned long long": (("9ull", 9), ("18446744073709551615ull", 2**64 - 1)),
    # No zero: g++ takes `0.0f - x` for `-x` where x was an integer, and gives its zero the other sign.
    "float": (("1.0f", 1.0), ("-1.5f", -1.5), ("0.1f", 0.1), ("100.0f", 100.0)),
    "double": (("2.0", 2.0), ("-0.7", -0.7), ("1e-5", 1e-5)),
}
_BOUNDS = {
    "int": (-1e6, 1e6),
    "unsigned": (0.0, 1e6),
    "long long": (-1e12, 1e12),
    "unsigned long long": (0.0, 1e12),
}
_ARITHMETIC = {"+": np.add, "-": np.subtract, "*": np.multiply}
_BITWISE = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}
_COMPARISONS = {"<": np.less, "<=": np.less_equal, ">": np.greater, "!=": np.not_equal}


class Local(NamedTuple):
    """A variable of each thread.

    Attributes
    ----------
    is_uniform : bool
        Whether all threads of a block hold the same, a small number that is not negative.
    """

    name: str
    type: str
    is_uniform: bool = False
    is_mutable: bool = True


@dataclass
class SharedArray:
    """An array in shared memory, and what threads may do to it until the next barrier.

    Attributes
    ----------
    phase : str
        "own": each touches the element at its own place; "read": nobody writes; else an atomic function.
    is_reversed : bool
        Whether a thread's own place is counted from the end.
    columns : int
        Of an array with two axes; 0 for one axis.
    """

    name: str
    type: str
    size: int
    phase: str = "own"
    is_reversed: bool = False
    columns: int = 0

    def element(self, index: str) -> str:
        if self.columns:
            return f"{self.name}[({index}) / {self.columns}][({index}) % {self.columns}]"
        return f"{self.name}[{index}]"

    def own(self) -> Expression:
        """Return the place that belongs to a thread."""
        if self.is_reversed:
            return Expression("int", "threads - 1 - t", lambda block: block.threads - 1 - block.place)
        return Expression("int", "t", lambda block: block.place)


class Values:
    """Make expressions.

    Parameters
    ----------
    rng : random.Random
    used : set of str
        Features that were planted.
    """

    def __init__(self, rng: random.Random, used: set[str]) -> None:
        self.rng, self.used = rng, used
        self.arrays: list[SharedArray] = []
        self._scopes: list[list[Local]] = [[]]
        self._names = 0
        self._casts = Writer(rng, set())

    # ---- what is in scope ----

    def name(self) -> str:
        self._names += 1
        return f"{self.rng.choice('acdes')}{self._names}"

    def bring(self, local: Local) -> Local:
        self._scopes[-1].append(local)
        return local

    @contextmanager
    def scope(self) -> Iterator[None]:
        self._scopes.append([])
        yield
        self._scopes.pop()

    def locals(self, *types: str, mutable: bool = False, uniform: bool = False) -> list[Local]:
        return [
            each
            for scope in self._scopes
            for each in scope
            if (not types or each.type in types) and each.is_mutable >= mutable and each.is_uniform >= uniform
        ]

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # ---- expressions ----

    def expression(self, type_: str, depth: int = 2) -> Expression:
        if depth == 0 or self.chance(0.15):
            return self._leaf(type_)
        forms = [self._arithmetic, self._arithmetic, self._ternary, self._conversion]
        forms += (
            [self._bitwise, self._shift, self._quotient] if type_ in WHOLE else [self._division, self._root]
        )
        return self.rng.choice(forms)(type_, depth - 1)

    def condition(self, depth: int = 1) -> Expression:
        """Return a condition that holds for some threads only, as far as chance has it."""
        if depth and self.chance(0.2):
            first, second = self.condition(depth - 1), self.condition(depth - 1)
            symbol, both = self.rng.choice((("&&", np.logical_and), ("||", np.logical_or)))
            return Expression(
                "bool",
                f"({first.text} {symbol} {second.text})",
                lambda block: both(first.value(block), second.value(block)),
            )
        if self.chance(0.4):
            divisor, rest = self.rng.choice((2, 3, 5, 7)), self.rng.choice((0, 1))
            return Expression("bool", f"t % {divisor} == {rest}", lambda block: block.place % divisor == rest)
        type_ = self.rng.choice(("int", "float", "unsigned", "double"))
        left, right = self.expression(type_, depth), self.literal(type_)
        symbol, compare = self.rng.choice(list(_COMPARISONS.items()))
        return Expression(
            "bool",
            f"({left.text} {symbol} {right.text})",
            lambda block: compare(left.value(block), right.value(block)),
        )

    def uniform(self) -> Expression:
        """Return a small number that is the same for all threads of a block."""
        known = self.locals("int", uniform=True)
        local, factor, rest = self.rng.choice(known), self.rng.randint(0, 3), self.rng.choice((1, 3, 3, 7))
        return Expression(
            "int",
            f"(({local.name} + b * {factor} + m) & {rest})",
            lambda block: (block.variables[local.name] + block.index * factor + block.numbers["m"]) & rest,
        )

    def uniform_condition(self) -> Expression:
        value, most = self.uniform(), self.rng.choice((0, 1, 2))
        return Expression("bool", f"({value.text} > {most})", lambda block: value.value(block) > most)

    def below(self, bound: str, count: Callable[[Block], Any], depth: int = 1) -> Expression:
        """Return a number from 0 to below a bound, given as text and as what computes it."""
        value = self.expression("unsigned", depth)
        return Expression(
            "int",
            f"(int)({value.text} % (unsigned){bound})",
            lambda block: value.value(block).astype("i8") % count(block),
        )

    def literal(self, type_: str) -> Expression:
        text, value = self.rng.choice(_LITERALS[type_])
        constant = DTYPES[type_].type(value)
        return Expression(type_, text, lambda block: np.full(block.threads, constant))

    def converted(self, value: Expression, type_: str) -> Expression:
        if value.type == type_:
            return value
        dtype, text = DTYPES[type_], self._casts.cast(value.text, value.type, type_)
        if value.type in REAL and type_ in WHOLE:
            least, most = (DTYPES[value.type].type(bound) for bound in _BOUNDS[type_])
            return Expression(
                type_, text, lambda block: np.fmin(np.fmax(value.value(block), least), most).astype(dtype)
            )
        return Expression(type_, text, lambda block: value.value(block).astype(dtype))

    def combined(self, first: Expression, symbol: str, second: Expression) -> Expression:
        text = self._casts.combined(first.type, first.text, symbol, second.text)
        operation = _ARITHMETIC[symbol]
        return Expression(first.type, text, lambda block: operation(first.value(block), second.value(block)))

    def read(self, array: SharedArray) -> Expression:
        """Return an element that a thread may read in the present phase."""
        index = array.own() if array.phase == "own" else self._any_place(array.size)
        return Expression(
            array.type,
            array.element(index.text),
            lambda block: block.tiles[array.name].read(block, index.value(block)),
        )

    def of(self, local: Local) -> Expression:
        return Expression(local.type, local.name, lambda block: block.variables[local.name])

    def _any_place(self, size: int) -> Expression:
        if self.chance(0.4):
            return self.below("threads", lambda block: block.threads)
        shift = self.rng.randint(1, 40)
        return Expression("int", f"(t + {shift}) % threads", lambda block: (block.place + shift) % size)

    def _leaf(self, type_: str) -> Expression:
        draw = self.rng.random()
        readable = [
            each for each in self.arrays if each.type == type_ and not each.phase.startswith("atomic")
        ]
        if readable and draw < 0.3:
            return self.read(self.rng.choice(readable))
        own = self.locals(type_)
        if own and draw < 0.6:
            return self.of(self.rng.choice(own))
        if draw < 0.72 and (others := self.locals(*TYPES)):
            return self.converted(self.of(self.rng.choice(others)), type_)
        if draw < 0.78:
            return self.converted(self._thread_number(), type_)
        return self._load(type_) if draw < 0.92 else self.literal(type_)

    def _load(self, type_: str) -> Expression:
        names = [name for name, element in INPUTS.items() if element == type_]
        name = self.rng.choice(names or ["in_int", "in_float"])
        shift = self.rng.choice((0, 0, 1, 40))
        text = f"{name}[g + {shift}]" if shift else f"{name}[g]"
        loaded = Expression(
            INPUTS[name],
            text,
            lambda block: block.memory[name][block.index * block.threads + block.place + shift],
        )
        return self.converted(loaded, type_)

    def _thread_number(self) -> Expression:
        numbers: dict[str, Any] = {
            "t": lambda block: block.place, "lane": lambda block: block.lane, "warp": lambda block: block.warp,
            "b": lambda block: np.full(block.threads, block.index),
        }  # fmt: skip
        name = self.rng.choice(list(numbers))
        return Expression("int", name, lambda block: numbers[name](block).astype("i4"))

    def _arithmetic(self, type_: str, depth: int) -> Expression:
        symbol = self.rng.choice(list(_ARITHMETIC))
        return self.combined(self.expression(type_, depth), symbol, self.expression(type_, depth))

    def _ternary(self, type_: str, depth: int) -> Expression:
        chosen, first, second = (
            self.condition(0),
            self.expression(type_, depth),
            self.expression(type_, depth),
        )
        return Expression(
            type_,
            f"({chosen.text} ? {first.text} : {second.text})",
            lambda block: np.where(chosen.value(block), first.value(block), second.value(block)),
        )

    def _conversion(self, type_: str, depth: int) -> Expression:
        return self.converted(self.expression(self.rng.choice(TYPES), depth), type_)

    def _bitwise(self, type_: str, depth: int) -> Expression:
        symbol, operation = self.rng.choice(list(_BITWISE.items()))
        first, second = self.expression(type_, depth), self.expression(type_, depth)
        return Expression(
            type_,
            f"({first.text} {symbol} {second.text})",
            lambda block: operation(first.value(block), second.value(block)),
        )

    def _shift(self, type_: str, depth: int) -> Expression:
        """Shift by bits of the width: to the left unsigned, for then every bit that is lost is defined."""
        value, dtype, bits = self.expression(type_, depth), DTYPES[type_], self.expression("int", 0)
        most, unsigned = 8 * dtype.itemsize - 1, np.dtype(f"u{dtype.itemsize}")
        count = f"({bits.text} & {most})"

        def places(block: Block) -> Array:
            return bits.value(block) & most

        if self.chance(0.5):
            return Expression(
                type_,
                f"({value.text} >> {count})",
                lambda block: np.right_shift(value.value(block), places(block).astype(dtype)),
            )
        wide = "unsigned long long" if dtype.itemsize == 8 else "unsigned"
        return Expression(
            type_,
            f"({type_})(({wide})({value.text}) << {count})",
            lambda block: np.left_shift(
                value.value(block).astype(unsigned), places(block).astype(unsigned)
            ).astype(dtype),
        )

    def _quotient(self, type_: str, depth: int) -> Expression:
        """Divide by 2 or more, rounded toward zero."""
        value, divisor, dtype = self.expression(type_, depth), self.rng.randint(2, 11), DTYPES[type_].type
        is_rest = self.chance(0.5)

        def divided(block: Block) -> Array:
            number = value.value(block)
            rest = np.fmod(number, dtype(divisor))
            return rest if is_rest else (number - rest) // dtype(divisor)

        return Expression(type_, f"({value.text} {'%' if is_rest else '/'} {divisor})", divided)

    def _division(self, type_: str, depth: int) -> Expression:
        first, second = self.expression(type_, depth), self.expression(type_, depth)
        return Expression(
            type_,
            f"({first.text} / {second.text})",
            lambda block: np.divide(first.value(block), second.value(block)),
        )

    def _root(self, type_: str, depth: int) -> Expression:
        value, suffix = self.expression(type_, depth), "f" if type_ == "float" else ""
        return Expression(
            type_,
            f"sqrt{suffix}(fabs{suffix}({value.text}))",
            lambda block: np.sqrt(np.abs(value.value(block))),
        )
