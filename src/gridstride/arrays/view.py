"""What the rest of the package knows of an array."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

Shape = tuple[int, ...]

#: DLPack's device types.
HOST, CUDA, PINNED, MANAGED = 1, 2, 3, 13
#: Stands for the device of an array whose library does not say.
UNKNOWN_DEVICE = -1


class ArrayView(NamedTuple):
    """Say where an array's memory is and what it holds.

    Views compare by content: the owner is left out. A named tuple, since one is made for every
    argument of every launch and a frozen dataclass takes four times as long to make.

    Attributes
    ----------
    owner : object
        What must stay alive while the memory is used; the array itself where its library owns it.
    address : int
        Of the element at index 0 of every axis.
    dtype : numpy.dtype
    shape : tuple of int
    strides : tuple of int or None
        In bytes; None where the elements lie C-contiguous.
    device_type : int
        DLPack's number: `HOST`, `CUDA`, `PINNED` or `MANAGED`.
    device : int
        Index among the devices of its target, or `UNKNOWN_DEVICE`.
    read_only : bool
    library : str
        Name of the adapter: numpy, cupy, torch, jax, interface, dlpack, buffer; or memory for a
        memory pointer of ours, whose bytes have no type of their own (dtype uint8).
    lazy : bool
        Whether the values differ from the stored bytes (a conjugate or negative view); see `resolved`.
    producer_stream : int or None
        The stream that still writes to the memory, where the array announces one.
    """

    owner: Any
    address: int
    dtype: np.dtype[Any]
    shape: Shape
    strides: Shape | None
    device_type: int
    device: int
    read_only: bool
    library: str
    lazy: bool = False
    producer_stream: int | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrayView) and self[1:] == other[1:]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self[1:])

    def __repr__(self) -> str:
        layout = "C-contiguous" if self.strides is None else f"strides {self.strides}"
        writing = ", read-only" if self.read_only else ""
        return (
            f"<ArrayView of a {self.library} array: {self.dtype.name} {self.shape}, {layout}{writing}, "
            f"at {self.address:#x} on device {self.device} of type {self.device_type}>"
        )

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, gaps between them not counted."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def c_contiguous(self) -> bool:
        """Whether the elements lie one after the other, last axis fastest."""
        return self.strides is None

    @property
    def aligned(self) -> bool:
        """Whether every element lies at a multiple of its dtype's alignment."""
        alignment = self.dtype.alignment
        return self.address % alignment == 0 and (
            self.strides is None
            or all(
                stride % alignment == 0
                for stride, length in zip(self.strides, self.shape, strict=True)
                if length > 1
            )
        )

    @property
    def extent(self) -> tuple[int, int]:
        """Address of the lowest byte that an element reaches, and of the first byte beyond the highest."""
        if self.strides is None:
            return self.address, self.address + self.nbytes
        if not self.size:
            return self.address, self.address
        low = high = self.address
        for length, stride in zip(self.shape, self.strides, strict=True):
            if stride < 0:
                low += (length - 1) * stride
            else:
                high += (length - 1) * stride
        return low, high + self.dtype.itemsize


#: Make a view from a tuple of all its fields, in half the time that the class itself takes.
make_view: Callable[[tuple[Any, ...]], ArrayView] = partial(tuple.__new__, ArrayView)


def strides_unless_contiguous(shape: Shape, strides: Shape | None, itemsize: int) -> Shape | None:
    """Return strides in bytes, or None where they are those of C-contiguous elements."""
    if strides is None or 0 in shape:
        return None
    expected = itemsize
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != expected:
            return tuple(strides)
        expected *= length
    return None
