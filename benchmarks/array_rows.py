"""The calls that array kernels are timed with: layouts of elementwise calls, shapes and axes of reductions.

Operands are views of flat arrays, so that one layout serves every array library over the same memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, isqrt, prod
from typing import Any, NamedTuple

#: Layouts of which PyTorch's has been copied into order.
FLIPPED = ("reversed", "flipped_pixels")
#: Of reductions.
KINDS = ("sum", "max", "mean", "var", "argmax")
SECTOR = 32  # bytes that a GPU's memory moves at once


class Layout(NamedTuple):
    """An elementwise call over views of flat arrays x, y and z.

    Attributes
    ----------
    id : str
    operation : str
        A key of `array_kernels`' texts, or "distances"; the last operand is the output.
    operands : tuple of array
    bytes : int
        That must move.
    goal : float or None
        Fraction of the copy rate, by `bytes`; None: by the sectors touched.
    operations : int
        Additions, subtractions and multiplications that numbers take together, a multiplication that is added as one,
        where these may take longer than memory does; 0: where memory always does.
    of_one : bool
        Whether the inputs are parts of one array, of which each has about all.
    """

    id: str
    operation: str
    operands: tuple[Any, ...]
    bytes: int
    goal: float | None
    operations: int = 0
    of_one: bool = False


class Fold(NamedTuple):
    """A reduction of a contiguous array along axes (None: all); goal as in `Layout`, if small in microseconds."""

    id: str
    shape: tuple[int, ...]
    axis: int | tuple[int, ...] | None
    goal: float | None = None
    kind: str = "sum"

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that are folded."""
        if self.axis is None:
            return tuple(range(len(self.shape)))
        return self.axis if isinstance(self.axis, tuple) else (self.axis,)

    @property
    def folded(self) -> int:
        """How many elements become one."""
        return prod(self.shape[axis] for axis in self.axes)

    def result_bytes(self, dtype: str, itemsize: int) -> int:
        """Return how many bytes the outputs have: of places 8 each, beside the elements, and of sums of integers."""
        if self.kind == "argmax":
            itemsize += 8
        elif self.kind == "sum" and dtype.startswith("int"):
            itemsize = 8
        return prod(self.shape) // self.folded * itemsize


def layouts(x: Any, y: Any, z: Any, itemsize: int) -> Iterator[Layout]:
    """Yield the rows of the elementwise table, then those beyond it."""
    n = x.shape[0]
    side = even_side(n)
    whole = side * side
    square, other, to = (each[:whole].reshape(side, side) for each in (x, y, z))
    moved = whole * itemsize
    yield Layout("axpy", "axpy", (x, y, z), 3 * n * itemsize, 1.0)
    yield Layout("outer", "multiply", (x[:side].reshape(side, 1), y[:side].reshape(1, side), to), moved, 0.85)
    yield Layout("row_broadcast", "add", (square, y[:side].reshape(1, side), to), 2 * moved, 0.97)
    yield Layout("column_broadcast", "add", (square, y[:side].reshape(side, 1), to), 2 * moved, None)
    yield Layout("transposed", "add", (permuted(square, (1, 0)), square, to), 3 * moved, 0.85)
    yield Layout("transposed_alone", "increment", (permuted(square, (1, 0)), to), 2 * moved, None)
    yield from _uneven(x, y, z, itemsize)
    half = z[: whole // 2].reshape(side, side // 2)
    yield Layout("every_second", "increment", (square[:, ::2], half), moved + moved // 2, 0.90)
    lengths = (64, 256, n >> 20, 64) if n >> 20 else (4, 8, n >> 11, 64)
    four = permuted(x[: prod(lengths)].reshape(*lengths), (0, 2, 1, 3))
    out = z[: prod(lengths)].reshape(*four.shape)
    yield Layout("permuted", "increment", (four, out), 2 * prod(lengths) * itemsize, 0.92)
    yield Layout("off_by_one", "axpy", (x[1:], y[1:], z[1:]), 3 * (n - 1) * itemsize, None)
    yield Layout("one_off_by_one", "axpy", (x[1:], y[:-1], z[:-1]), 3 * (n - 1) * itemsize, None)
    prime = side - 3
    yield Layout(
        "odd_rows",
        "increment",
        (square[:prime, :prime], to[:prime, :prime]),
        2 * prime * prime * itemsize,
        None,
    )
    odd = (side // 2 - 1) * 2 - 1
    rest = odd * odd
    yield Layout(
        "odd_transposed", "add",
        (permuted(x[:rest].reshape(odd, odd), (1, 0)), y[:rest].reshape(odd, odd), z[:rest].reshape(odd, odd)),
        3 * rest * itemsize, None,
    )  # fmt: skip
    yield Layout(
        "both_transposed", "add", (permuted(square, (1, 0)), permuted(other, (1, 0)), to), 3 * moved, None
    )
    sides = (side // 32, 8, 4, 32, side // 32)
    five = x[: prod(sides)].reshape(*sides)
    for order in ((4, 1, 3, 0, 2), (2, 4, 0, 3, 1), (3, 0, 4, 2, 1)):
        source = permuted(five, order)
        yield Layout(
            f"permuted{''.join(map(str, order))}", "increment",
            (source, z[: prod(sides)].reshape(*source.shape)), 2 * prod(sides) * itemsize, None,
        )  # fmt: skip
    yield from _odd_permuted(x, z, itemsize)
    pixels = n // 3
    yield Layout(
        "channels", "increment",
        (permuted(x[: pixels * 3].reshape(pixels, 3), (1, 0)), z[: pixels * 3].reshape(3, pixels)),
        2 * pixels * 3 * itemsize, None,
    )  # fmt: skip
    yield from _narrow(x, z, itemsize)
    yield from _repeated(x, y, z, itemsize)
    row = n // 3
    yield Layout(
        "long_row_broadcast", "add",
        (x[: row * 3].reshape(3, row), y[:row].reshape(1, row), z[: row * 3].reshape(3, row)),
        7 * row * itemsize, None,
    )  # fmt: skip
    yield Layout("reversed", "increment", (flipped(x, 0), z), 2 * n * itemsize, None)
    yield from _planes(x, z, itemsize)
    points = isqrt(n)
    of_points = (x[: points * 3].reshape(points, 1, 3), y[: points * 3].reshape(1, points, 3))
    yield Layout(
        "distances", "distances", (*of_points, z[: points * points].reshape(points, points)),
        points * points * itemsize, None, 6 * points * points,
    )  # fmt: skip


def _planes(x: Any, z: Any, itemsize: int) -> Iterator[Layout]:
    """Yield planes that are turned, images whose lines go backwards, from pixels into planes, and many channels."""
    n = x.shape[0]
    side = 200 if n >> 20 else 20
    count = n // side // side
    source = permuted(x[: count * side * side].reshape(count, side, side), (0, 2, 1))
    out = z[: count * side * side].reshape(count, side, side)
    yield Layout("small_planes", "increment", (source, out), 2 * count * side * side * itemsize, None)
    side = 512 if n >> 20 else 8
    count = n // (side * side * 3)
    size = count * side * side * 3
    pixels = flipped(x[:size].reshape(count, side, side, 3), 2)
    out = z[:size].reshape(count, 3, side, side)
    yield Layout(
        "flipped_pixels", "increment", (permuted(pixels, (0, 3, 1, 2)), out), 2 * size * itemsize, None
    )
    side, channels = (56 * 56, 64) if n >> 20 else (49, 16)
    count = n // side // channels
    size = count * side * channels
    for name, shape in (("into_pixels", (count, channels, side)), ("of_pixels", (count, side, channels))):
        source = permuted(x[:size].reshape(*shape), (0, 2, 1))
        yield Layout(
            name, "increment", (source, z[:size].reshape(*source.shape)), 2 * size * itemsize, None
        )  # fmt: skip


def _odd_permuted(x: Any, z: Any, itemsize: int) -> Iterator[Layout]:
    """Yield permutations of axes whose lengths are odd, the last of which moves, or not, and of short ones."""
    n = x.shape[0]
    short = (n // (33 * 35), 33, 35), (n // (5 * 7 * 9 * 11), 5, 7, 9, 11), (13, n // (13 * 11), 11)
    five = ((n // (7 * 5 * 31 * 33) - 1) | 1, 7, 5, 31, 33) if n >> 20 else (3, 7, 5, 3, 13)
    four = (63, 255, (n // (63 * 255 * 63) - 1) | 1, 63) if n >> 20 else (3, 9, 5, 63)
    orders = (4, 1, 3, 0, 2), (0, 2, 1, 3), (0, 2, 1), (0, 4, 2, 1, 3), (2, 1, 0)
    rows = [("odd_permuted", *row) for row in zip((five, four, *short), orders, strict=True)]
    for name, sides, order in (*rows, ("planes_permuted", (n // (100 * 60), 100, 60), (0, 2, 1))):
        source = permuted(x[: prod(sides)].reshape(*sides), order)
        yield Layout(
            f"{name}{''.join(map(str, order))}", "increment",
            (source, z[: prod(sides)].reshape(*source.shape)), 2 * prod(sides) * itemsize, None,
        )  # fmt: skip


def _uneven(x: Any, y: Any, z: Any, itemsize: int) -> Iterator[Layout]:
    """Yield the same for rows that start between words."""
    side = uneven_side(x.shape[0])
    whole = side * side
    square, other, to = (each[:whole].reshape(side, side) for each in (x, y, z))
    moved = whole * itemsize
    row, column = y[:side].reshape(1, side), x[:side].reshape(side, 1)
    yield Layout("uneven_outer", "multiply", (column, row, to), moved, None)
    yield Layout("uneven_row_broadcast", "add", (square, row, to), 2 * moved, None)
    yield Layout("uneven_transposed", "add", (permuted(square, (1, 0)), other, to), 3 * moved, None)


def _narrow(x: Any, z: Any, itemsize: int) -> Iterator[Layout]:
    """Yield transposes of arrays of a few rows, and of a few columns."""
    n = x.shape[0]
    for name, shape, start in (
        ("rows3", (3, n // 3), 0),
        ("rows3_off_by_one", (3, n // 3 - 1), 1),
        ("rows20", (20, n // 20), 0),
        ("by20", (n // 20, 20), 0),
        ("by33", (n // 33, 33), 0),
    ):
        source = permuted(x[start : start + prod(shape)].reshape(*shape), (1, 0))
        out = z[start : start + prod(shape)].reshape(*source.shape)
        yield Layout(f"{name}_transposed", "increment", (source, out), 2 * prod(shape) * itemsize, None)


def _repeated(x: Any, y: Any, z: Any, itemsize: int) -> Iterator[Layout]:
    """Yield rows that inputs are repeated for, and pixels of which one part is left out."""
    n = x.shape[0]
    rows = n // 64
    column, row, out = x[:rows].reshape(rows, 1), y[:64].reshape(1, 64), z[: rows * 64].reshape(rows, 64)
    yield Layout("by64_outer", "add", (column, row, out), rows * 65 * itemsize, None)
    images = n // (64 * 49)
    shape = images, 64, 49
    source, to = (each[: images * 64 * 49].reshape(*shape) for each in (x, z))
    yield Layout(
        "channel_bias", "add", (source, y[:64].reshape(1, 64, 1), to), 2 * images * 64 * 49 * itemsize, None
    )
    pixels = n // 4
    fewer = z[: pixels * 3].reshape(pixels, 3)
    four = x[: pixels * 4].reshape(pixels, 4)[:, :3]
    yield Layout("of_four_three", "increment", (four, fewer), 7 * pixels * itemsize, None)
    three, in_four = x[: pixels * 3].reshape(pixels, 3), z[: pixels * 4].reshape(pixels, 4)[:, :3]
    yield Layout("three_of_four", "increment", (three, in_four), 7 * pixels * itemsize, None)


def folds(n: int) -> Iterator[Fold]:
    """Yield the rows of the reduction table, then those beyond it, for arrays of n elements."""
    side = even_side(n)
    yield Fold("all", (n,), None, 0.98)
    yield Fold("square.1", (side, side), 1, 0.98)
    yield Fold("square.0", (side, side), 0, 0.97)
    yield Fold("middle", (64, n // 64 // 256, 256), 1, 0.96)
    yield Fold("tall.1", (n // 16, 16), 1, 0.93)
    yield Fold("tall.0", (n // 16, 16), 0, 0.95)
    yield Fold("wide.1", (16, n // 16), 1, 0.97)
    yield Fold("wide.0", (16, n // 16), 0, 0.93)
    yield Fold("small", (1 << 10,), None, 8.0)
    uneven = uneven_side(n)
    yield Fold("uneven.1", (uneven, uneven), 1)
    yield Fold("uneven.0", (uneven, uneven), 0)
    yield Fold("pairs.1", (n // 2, 2), 1)
    yield Fold("pairs.0", (2, n // 2), 0)
    yield Fold("triples.1", (n // 3, 3), 1)
    yield Fold("triples.0", (n // 3, 3), 0)
    yield Fold("by2.0", (n // 2, 2), 0)
    for width in (7, 33, 100):
        for axis in (0, 1):
            yield Fold(f"by{width}.{axis}", (n // width, width), axis)
    for width in (255, 511):
        yield Fold(f"by{width}.1", (n // width, width), 1)
    prime = _prime_below(side)
    yield Fold("prime.1", (prime, prime), 1)
    yield Fold("prime.0", (prime, prime), 0)
    yield Fold("narrow.0", (n // 1000, 1000), 0)
    yield Fold("narrow.1", (n // 1000, 1000), 1)
    long = min(4096, n // 1024)
    yield Fold("mixed13.02", (long, n // long // 13, 13), (0, 2))
    yield Fold("five.1", (n // 5000, 5, 1000), 1)
    pixels = 56 * 56 if n >> 20 else 7 * 7
    yield Fold("images.02", (32, n // 32 // pixels, pixels), (0, 2))
    yield Fold("images7.023", (n // 64 // 49, 64, 7, 7), (0, 2, 3))
    yield Fold("mixed9.024", (n // 2160, 8, 6, 5, 9), (0, 2, 4))
    yield Fold("four.13", (n // 693, 7, 9, 11), (1, 3))
    for kind in ("sum", "argmax"):
        yield Fold("short5.1", (n // 35, 5, 7), 1, kind=kind)
    inner = (100, 33, 64) if n >> 20 else (10, 3, 64)
    yield Fold("mixed64.02", (n // prod(inner), *inner), (0, 2))
    yield Fold("by7of64.1", (n // 448, 64, 7), 1)
    for kind in KINDS[1:]:
        yield Fold("all", (n,), None, kind=kind)
        yield Fold("square.1", (side, side), 1, kind=kind)
        yield Fold("square.0", (side, side), 0, kind=kind)
    for width in (16, 100, 1001, 5000):
        yield Fold(f"by{width}.1", (n // width, width), 1, kind="argmax")


def takes(kind: str, dtype: str) -> bool:
    """Return whether a kind of reduction is measured for a dtype."""
    if kind == "mean":
        return not dtype.startswith("int")
    return kind == "sum" or (dtype != "complex64" and not (kind == "var" and dtype.startswith("int")))


def even_side(n: int) -> int:
    """Return the side of a square of n elements whose rows all start at words, as those of 16384 do."""
    return int(n**0.5) // 32 * 32


def uneven_side(n: int) -> int:
    """Return the side of a square whose rows, of small elements, start between words of 16 bytes."""
    return even_side(n) - 14


def permuted(array: Any, order: tuple[int, ...]) -> Any:
    """Return an array of any library with its axes in another order."""
    return array.permute(*order) if hasattr(array, "permute") else array.transpose(*order)


def flipped(array: Any, axis: int) -> Any:
    """Return an array backwards along an axis; by PyTorch, which has no negative steps, a copy."""
    if hasattr(array, "permute"):
        return array.flip(axis)
    return array[(slice(None),) * axis + (slice(None, None, -1),)]


def sectors(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, is_written: bool) -> int:
    """Return the bytes of the distinct sectors that an array touches, had it been allocated at a sector's start.

    Of what is written sectors that are covered in part count twice: memory that corrects errors fetches them first. On
    an H200 a store to every second word takes 2.0 times as long as one to all words of the same sectors.
    """
    run, axes = itemsize, []
    for step, length in sorted(zip(map(abs, strides), shape, strict=True)):
        if step == run:
            run *= length
        elif axes and step == axes[-1][0] * axes[-1][1]:
            axes[-1] = axes[-1][0], axes[-1][1] * length
        elif length > 1 and step:
            axes.append((step, length))
    (step, length), *further = axes or [(run, 1)]
    alike = SECTOR // gcd(step, SECTOR)  # runs after which the next begins at the same place of a sector
    touched = whole = end = 0
    for begin in range(0, alike * step, step):
        first, end = max(begin // SECTOR, end), -(-(begin + run) // SECTOR)
        touched += max(0, end - first)
        whole += max(0, (begin + run) // SECTOR - -(-begin // SECTOR))
    moved = 2 * touched - whole if is_written else touched
    return moved * SECTOR * length // alike * prod(count for _, count in further)


def _prime_below(number: int) -> int:
    while any(number % k == 0 for k in range(2, int(number**0.5) + 1)):
        number -= 1
    return number
