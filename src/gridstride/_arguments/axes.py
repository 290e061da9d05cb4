"""Axes: broadcasting, the order in which loops walk them, and which of them are one."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from gridstride.arrays.view import ArrayView

Ints = tuple[int, ...]


def broadcast_shapes(kernel: str, shapes: Sequence[tuple[str, Ints]]) -> Ints:
    """Return the shape to which shapes broadcast; ValueError names each where they do not."""
    found = []
    # NumPy's own function knows 32 axes at most.
    for axis in range(-max(len(shape) for _, shape in shapes), 0):
        lengths = {shape[axis] for _, shape in shapes if len(shape) >= -axis} - {1}
        if len(lengths) > 1:
            listing = ", ".join(f"{name} {shape}" for name, shape in shapes)
            raise ValueError(
                f"`{kernel}`: the shapes do not broadcast together: {listing}: each axis must have one length, or 1"
            )
        found.append(lengths.pop() if lengths else 1)
    return tuple(found)


def strides_of(view: ArrayView) -> Ints:
    """Return a view's strides in bytes, also where its elements lie C-contiguous."""
    return c_strides(view.shape, view.dtype.itemsize) if view.strides is None else view.strides


def c_strides(shape: Sequence[int], itemsize: int) -> Ints:
    """Return the strides of C-contiguous elements."""
    strides = []
    for length in reversed(shape):
        strides.append(itemsize)
        itemsize *= length
    return tuple(reversed(strides))


def broadcast_strides(shape: Ints, strides: Ints, to: Ints) -> Ints:
    """Return the strides of an array broadcast to a shape: 0 along axes that it does not have."""
    missing = len(to) - len(shape)
    return (0,) * missing + tuple(
        0 if length == 1 else stride for length, stride in zip(shape, strides, strict=True)
    )


def collapse(
    shape: Sequence[int], strides: Sequence[Ints], order: Sequence[Ints] | None = None
) -> tuple[Ints, list[Ints]]:
    """Return the fewest axes that walk the same elements, innermost first.

    Parameters
    ----------
    shape : sequence of int
    strides : sequence of tuple of int
        Of each operand, one for each axis.
    order : sequence of tuple of int, optional
        Of the operands by whose strides axes are ordered, the most important first; all operands by default.

    Returns
    -------
    lengths : tuple of int
        At least one; axes of length 1 are left out. One of length 0 where there are no elements.
    strides : list of tuple of int
        Of each operand, along those axes.
    """
    if 0 in shape:
        return (0,), [(0,) for _ in strides]
    by = strides if order is None else order
    axes = [axis for axis, length in enumerate(shape) if length != 1]
    axes.sort(key=lambda axis: (*(abs(each[axis]) for each in by), -axis))
    lengths: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for axis in axes:
        length = shape[axis]
        if lengths and all(
            each[axis] == taken[-1] * lengths[-1] for each, taken in zip(strides, steps, strict=True)
        ):
            lengths[-1] *= length
            continue
        lengths.append(length)
        for each, taken in zip(strides, steps, strict=True):
            taken.append(each[axis])
    if not lengths:
        return (1,), [(0,) for _ in strides]
    return tuple(lengths), [tuple(taken) for taken in steps]


def elements(shape: Sequence[int]) -> int:
    """Return the number of elements."""
    return prod(shape)
