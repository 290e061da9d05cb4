"""Find where fields lie in the memory of objects whose library promises no place for them.

A place counts only where it alone agrees with all samples, which the caller makes differ in every
field.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence

POINTER, INT = ctypes.sizeof(ctypes.c_void_p), ctypes.sizeof(ctypes.c_int)


def memories(addresses: Sequence[int], size: int) -> list[bytes]:
    """Return copies of the `size` bytes at each address, which must be readable."""
    return [ctypes.string_at(address, size) for address in addresses]


def place_of(
    samples: Sequence[bytes], values: Sequence[int], width: int = POINTER, start: int = POINTER
) -> int:
    """Return the one offset from `start` on at which each sample holds its integer; 0 where there is not one.

    Parameters
    ----------
    samples : sequence of bytes
    values : sequence of int
        One for each sample; not negative.
    width : int
        Bytes of an integer; it is aligned to them.
    start : int
        Bytes; the header of an object lies before.
    """
    wanted = [value.to_bytes(width, sys.byteorder) for value in values]
    return place_where(samples, lambda *words: list(words) == wanted, width, start)


def place_where(
    samples: Sequence[bytes], agrees: Callable[..., bool], width: int = POINTER, start: int = POINTER
) -> int:
    """Return the one offset from `start` on whose bytes, one argument for each sample, agree; else 0."""
    places = [
        at
        for at in range(start, min(map(len, samples)) - width + 1, width)
        if agrees(*(sample[at : at + width] for sample in samples))
    ]
    return places[0] if len(places) == 1 else 0
