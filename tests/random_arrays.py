"""Random arguments of array kernels for property tests; a seed draws an example, and a failure names it.

An example is drawn in a few microseconds, so that thousands are compared where a compiler took longer.
"""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tests.array_values import Array, values
from tests.long_runs import share

Axis = int | tuple[int, ...] | None
Some = TypeVar("Some")

LENGTHS = (0, 1, 1, 2, 3, 4, 5, 7, 16, 17, 33)
_MOST_ELEMENTS = 20_000


def compare_examples(check: Callable[..., None], count: int, *fixed: Any) -> None:
    """Call a check with so many draws, the same ones at every call."""
    _compare(check, range(count), fixed)


def compare_part(check: Callable[..., None], count: int, part: int, *fixed: Any) -> None:
    """Call a check with a part's share of so many draws, other ones at every call."""
    first = secrets.randbits(48) + part * count
    _compare(check, range(first, first + share(count)), fixed)


def _compare(check: Callable[..., None], seeds: range, fixed: Sequence[Any]) -> None:
    for seed in seeds:
        try:
            check(*fixed, Draw(seed))
        except (Exception, AssertionError) as error:
            error.add_note(f"the example is Draw({seed})")
            raise


class Operand(NamedTuple):
    """An array that lies the same way on the host and in the library of a target, within its memory."""

    host: Array
    given: Any
    whole: Array
    given_whole: Any


class Draw:
    """Draws what an example needs from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, options: Sequence[Some]) -> Some:
        """Return one of several."""
        return self._random.choice(options)

    def number(self, low: int, high: int) -> int:
        """Return an integer from low to high."""
        return self._random.randint(low, high)

    def one_in(self, count: int) -> bool:
        """Return True once in so many times."""
        return self._random.randrange(count) == 0

    def shape(self, lengths: Sequence[int] = LENGTHS, least: int = 1, most: int = 4) -> tuple[int, ...]:
        """Return a shape of so many axes, zeros and ones among their lengths."""
        shape = [self.pick(lengths) for _ in range(self.number(least, most))]
        while math.prod(shape) > _MOST_ELEMENTS:
            shape.pop()
        return tuple(shape)

    def layout(self, shape: tuple[int, ...]) -> tuple[int, Callable[[Any], Any]]:
        """Return how many elements lie in memory, and what makes an array of a shape of them.

        Axes are permuted, stepped, reversed, and begin anywhere.
        """
        order = self._random.sample(range(len(shape)), len(shape))
        steps = [self.pick((1, 1, 1, 2, -1, -2)) for _ in shape]
        offset, after = self.pick((0, 0, 1)), self.pick((0, 2))
        stored = [shape[axis] * abs(steps[axis]) for axis in order]
        stop, back = offset + math.prod(stored), [order.index(axis) for axis in range(len(shape))]
        index = tuple(slice(None, None, step) for step in steps)

        def arranged(flat: Any) -> Any:
            array = flat[offset:stop].reshape(stored).transpose(back)
            return array[index] if shape else array

        return stop + after, arranged

    def array(self, xp: ModuleType, shape: tuple[int, ...], dtype: Any, high: int = 0) -> Operand:
        """Return an array of any layout; its integers are from 1 to high where that is given."""
        size, arranged = self.layout(shape)
        seed = self.number(0, 2**32)
        if high:
            whole = np.random.default_rng(seed).integers(1, high, size, endpoint=True).astype(dtype)
        else:
            whole = values((size,), dtype, seed)
        given = xp.asarray(whole.copy())
        return Operand(arranged(whole), arranged(given), whole, given)

    def structures(self, xp: ModuleType, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Operand:
        """Return an array of structures of any layout, of small numbers."""
        size, arranged = self.layout(shape)
        whole = np.zeros(size, dtype)
        for name in dtype.names or ():
            whole[name] = values((size,), dtype[name], self.number(0, 2**32))
        given = xp.asarray(whole.copy())
        return Operand(arranged(whole), arranged(given), whole, given)

    def operand(self, xp: ModuleType, shape: tuple[int, ...], dtype: Any) -> Operand:
        """Return an array that broadcasts to a shape: axes are missing, of length 1, or broadcast already.

        Only for a shape without axes it has none, which makes a text of its own.
        """
        missing = self.number(0, max(len(shape) - 1, 0))
        own = tuple(1 if self.one_in(4) else length for length in shape[missing:])
        array = self.array(xp, own, dtype)
        if self.one_in(5):
            return array._replace(
                host=np.broadcast_to(array.host, shape), given=xp.broadcast_to(array.given, shape)
            )
        return array

    def axes(self, ndim: int) -> Axis:
        """Return an axis argument: None, a number, or a tuple in any order, counted from either end."""
        if ndim == 0 or self.one_in(5):
            return None
        chosen = self._random.sample(range(ndim), self.number(0, ndim))
        signed = tuple(axis - ndim if self.one_in(2) else axis for axis in chosen)
        return signed[0] if len(signed) == 1 and self.one_in(2) else signed
