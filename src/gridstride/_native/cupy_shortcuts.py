"""Find short ways to what CuPy tells of arrays and of its current stream.

An array's five attributes take longer to be read than all the rest of a call. CuPy promises no
place for them: each is searched in the memory of sample arrays, and counts only where just one place
agrees with all samples. The current stream comes from a function that CuPy offers to compiled code;
it is tried beside the public one. What is not found is read as attributes.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, NamedTuple

import numpy as np

from gridstride._native import _launcher
from gridstride._native.memory_search import INT, POINTER, memories, place_of

_STREAM_MODULE, _STREAM_FUNCTION = "cupy_backends.cuda.stream", "get_stream_ptr"

_Shape = tuple[int, ...]


class Layout(NamedTuple):
    """Tell where fields are, in bytes from the start of their object, in the order in which the C code reads it.

    Attributes
    ----------
    array_class, pointer_class : type
        Of arrays that are laid out so, and of their ``data``.
    data, dtype, size, c_contiguous : int
        In an array.
    ptr, device_id : int
        In ``array.data``.
    lengths, steps : int
        In an array: where pointers to the first length or step, and behind the last, are. Both are 0
        where a place is in doubt.
    """

    array_class: type
    pointer_class: type
    data: int
    dtype: int
    size: int
    c_contiguous: int
    ptr: int
    device_id: int
    lengths: int = 0
    steps: int = 0


def learn(cupy: Any) -> None:
    """Give the C code the short ways that a module ``cupy`` has."""
    try:
        layout = find_layout(cupy)
    except Exception:  # the samples are beyond what this CuPy takes
        layout = None
    if layout is not None:
        _launcher.know_cupy_layout(layout)
    learn_stream(cupy)


def learn_stream(cupy: Any) -> bool:
    """Give the C code the function that names the current stream, and return whether there is one."""
    try:
        agree = _launcher.know_cupy_stream(_stream_function()) and _streams_agree(cupy)
    except Exception:  # there is no device, or not what is tried
        agree = False
    if not agree:
        _launcher.know_cupy_stream(None)
    return agree


def find_layout(cupy: Any) -> Layout | None:
    """Return where CuPy's fields are, or None where a place is in doubt."""
    arrays = _samples(cupy)
    pointers = [array.data for array in arrays]
    array_class, pointer_class = cupy.ndarray, cupy.cuda.MemoryPointer
    if {*map(type, arrays)} != {array_class} or {*map(type, pointers)} != {pointer_class}:
        return None
    header = object.__basicsize__
    held = memories([id(array) for array in arrays], array_class.__basicsize__)
    held_pointers = memories([id(pointer) for pointer in pointers], pointer_class.__basicsize__)
    places = (
        place_of(held, [id(pointer) for pointer in pointers], start=header),
        place_of(held, [id(array.dtype) for array in arrays], start=header),
        place_of(held, [array.size for array in arrays], start=header),
        place_of(held, [int(array._c_contiguous) for array in arrays], INT, header),
        place_of(held_pointers, [pointer.ptr for pointer in pointers], start=header),
        place_of(held_pointers, [pointer.device_id for pointer in pointers], INT, header),
    )
    axes = (
        _place_of_vector(held, [array.shape for array in arrays]),
        _place_of_vector(held, [array.strides for array in arrays]),
    )
    return Layout(array_class, pointer_class, *places, *(axes if all(axes) else ())) if all(places) else None


def _place_of_vector(held: list[bytes], values: list[_Shape]) -> int:
    """Return the one offset at which each sample points to its numbers and behind them; 0 where there is not one."""
    places = [
        at
        for at in range(object.__basicsize__, len(held[0]) - 3 * POINTER + 1, POINTER)
        if all(_points_to(memory, at, numbers) for memory, numbers in zip(held, values, strict=True))
    ]
    return places[0] if len(places) == 1 else 0


def _points_to(memory: bytes, at: int, numbers: _Shape) -> bool:
    """Return whether three pointers (first, behind the last, end of the room) stand there, for just these numbers.

    Memory is followed only where the three are those of a vector of that length.
    """
    first, behind, end = (
        int.from_bytes(memory[at + k * POINTER : at + (k + 1) * POINTER], sys.byteorder) for k in range(3)
    )
    if behind - first != len(numbers) * POINTER or end < behind or first % POINTER or (numbers and not first):
        return False
    content = ctypes.string_at(first, behind - first) if numbers else b""
    return content == b"".join(number.to_bytes(POINTER, sys.byteorder, signed=True) for number in numbers)


def untouchable(cupy: Any) -> Any:
    """Return a float32 array on device 0 over memory that is not there."""
    memory = cupy.cuda.UnownedMemory(2**20, 4, None, 0)
    return cupy.ndarray((1,), np.float32, cupy.cuda.MemoryPointer(memory, 0))


def _samples(cupy: Any) -> list[Any]:
    """Return arrays that differ in each field, over memory that nobody touches."""
    shapes: tuple[tuple[_Shape, _Shape | None], ...] = (
        ((5,), None),
        ((3, 4), None),
        ((3, 4), (2, 6)),
        ((2, 7), (512, 64)),
        ((0, 3), None),
        ((2**33,), None),
        ((), None),
    )
    arrays = []
    for k, (shape, strides) in enumerate(shapes):
        memory = cupy.cuda.UnownedMemory(2**20 * (k + 1), 2**16, None, (3 * k + 1) % len(shapes))
        pointer = cupy.cuda.MemoryPointer(memory, 16 * k)
        arrays.append(cupy.ndarray(shape, (np.float64, np.int8, np.int16)[k % 3], pointer, strides))
    return arrays


def _stream_function() -> object:
    return getattr(sys.modules.get(_STREAM_MODULE), "__pyx_capi__", {}).get(_STREAM_FUNCTION)


def _streams_agree(cupy: Any) -> bool:
    """Return whether C code finds the stream that CuPy names, also while another one is current."""
    device = cupy.cuda.runtime.getDevice()

    def agree() -> bool:
        return bool(_launcher.cupy_stream(device) == cupy.cuda.get_current_stream(device).ptr)

    found = agree()
    # Leaving a block of CuPy's makes the stream of the block around it current, not one that is in use.
    current = cupy.cuda.get_current_stream(device)
    try:
        for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream.ptds):
            stream.use()
            found &= agree()
    finally:
        current.use()
    return found
