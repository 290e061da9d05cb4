"""Planes: how a walk is cut whose operands lie along different axes."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from gridstride.targets.block_loops.element_loops import (
    ALONG_Y,
    BETWEEN_WORDS,
    ONE_FOR_A_ROW,
    Steps,
    begins_as,
    element_loop,
)
from gridstride.targets.block_loops.sizes import ceil_div
from gridstride.targets.walks import LARGEST_WORD, ElementWalk, Ints, Loop, Walked, fits_a_word


class Sides(NamedTuple):
    """Hold the axes of the sides of a plane, inner ones first: `x` along packets, `y` along what is turned."""

    x: Ints
    y: Ints


class Plane(NamedTuple):
    """Say how a walk is cut into planes.

    Attributes
    ----------
    walk : ElementWalk
    sides : Sides
    turned : tuple of bool
        Which operands are.
    length : int
        Of packets.
    """

    walk: ElementWalk
    sides: Sides
    turned: tuple[bool, ...]
    length: int

    @property
    def row(self) -> int:
        """How long the side x is."""
        return prod(self.walk.shape[axis] for axis in self.sides.x)

    @property
    def column(self) -> int:
        """How long the side y is."""
        return prod(self.walk.shape[axis] for axis in self.sides.y)

    def operands(self) -> list[Walked]:
        """Return the operands that are turned."""
        return [operand for operand, turned in zip(self.walk.operands, self.turned, strict=True) if turned]

    def is_in_pieces(self) -> bool:
        """Return whether what is along the side x lies backwards, or in several planes."""
        return self.is_backwards() or len(self.sides.x) > 1

    def is_backwards(self) -> bool:
        """Return whether an operand goes backwards along the side x."""
        return any(operand.strides[self.sides.x[0]] < 0 for operand in self.walk.operands)

    def is_shifted(self) -> bool:
        """Return whether rows of the last operand begin between two words, so that parts are shifted to them."""
        last, shape = self.walk.operands[-1], self.walk.shape
        word = self.length * last.itemsize
        if self.length == 1 or self.turned[-1] or any(operand.written for operand in self.operands()):
            return False
        inner, *outer = self.sides.x
        if last.strides[inner] != last.itemsize or word & (word - 1):
            return False
        if any(last.strides[axis] != last.itemsize * shape[inner] for axis in outer):
            return False
        return bool(
            last.address % word
            or any(
                last.strides[axis] % word
                for axis in range(len(shape))
                if axis not in self.sides.x and shape[axis] > 1
            )
        )

    def in_words(self) -> Plane:
        """Return the plane with the longest packets that are words of four bytes or more; else as it is."""
        largest = max(operand.itemsize for operand in self.walk.operands)
        for length in (self.length, self.length // 2, self.length // 4):
            shorter = self._replace(length=length)
            if length * largest >= 4 and shorter.are_words(lines=True):
                return shorter
        return self

    def are_words(self, lines: bool) -> bool:
        """Return whether packets of rows are whole words in memory; those of lines that are turned too, if asked."""
        if self.row % self.length or (lines and self.column % self.length):
            return False
        return all(
            self._has_words(operand, self.sides.y if turned else self.sides.x)
            for operand, turned in zip(self.walk.operands, self.turned, strict=True)
            if lines or not turned
        )

    def _has_words(self, operand: Walked, side: Ints) -> bool:
        strides, shape, word = operand.strides, self.walk.shape, self.length * operand.itemsize
        inner, *outer = side
        if not operand.written and all(strides[axis] == 0 for axis in side):
            return True
        if word & (word - 1) or operand.address % word or strides[inner] != operand.itemsize:
            return False
        is_consecutive = all(strides[axis] == operand.itemsize * shape[inner] for axis in outer)
        if not is_consecutive and shape[inner] % self.length:
            return False
        others = [
            axis for axis in range(len(shape)) if axis != inner and not (is_consecutive and axis in outer)
        ]
        return all(strides[axis] % word == 0 for axis in others if shape[axis] > 1)

    def lies_along_its_side(self, operand: Walked, turned: bool) -> bool:
        """Return whether an operand is consecutive along its side, or one element for a row; turned ones are read."""
        size, strides = operand.itemsize, operand.strides
        if not fits_a_word(size) or operand.address % size or any(each % size for each in strides):
            return False
        if not operand.written and not turned and strides[self.sides.x[0]] == 0:
            return True
        return strides[(self.sides.y if turned else self.sides.x)[0]] == size and not (
            turned and operand.written
        )

    def covered(self, width: int, height: int) -> int:
        """Return how many elements tiles of a shape have, those outside of the plane included."""
        return ceil_div(self.row, width) * width * ceil_div(self.column, height) * height

    def kind(self, operand: Walked, turned: bool) -> int:
        """Return how an operand lies, as headers are told."""
        if turned:
            return ALONG_Y
        if operand.strides[self.sides.x[0]] == 0:
            return ONE_FOR_A_ROW
        return BETWEEN_WORDS + begins_as(
            operand, self.walk.operands[-1], self.walk.shape, LARGEST_WORD // operand.itemsize
        )

    def loop(self, header: str, name: str, width: int, height: int, shared: int) -> Loop:
        """Return a loop whose blocks have parts of a width and a height."""
        x, y = self.sides
        shape = self.walk.shape
        rest = [axis for axis in range(len(shape)) if axis not in (*x, *y)]
        shifted = self.is_shifted()
        across = ceil_div(self.row + (self.length - 1 if shifted else 0), width)
        lengths = (
            across,
            ceil_div(self.column, height),
            shape[x[0]],
            shape[y[0]],
            *(shape[axis] for axis in rest),
        )
        blocks = prod(lengths[:2]) * prod(lengths[4:])

        def ordered(strides: Ints, turned: bool) -> Steps:
            x_outer, y_outer = (strides[side[1]] if len(side) > 1 else 0 for side in self.sides)
            outer = (strides[axis] for axis in rest)
            return strides[x[0]], (strides[y[0]], x_outer, y_outer, int(turned), *outer)

        return element_loop(
            header,
            name,
            self.walk,
            (self.row, self.column, width, int(shifted)),
            lengths,
            lambda strides: ordered(strides, False),
            [
                ordered(operand.strides, turned)
                for operand, turned in zip(self.walk.operands, self.turned, strict=True)
            ],
            count=blocks,
            shared=shared,
        )
