"""Objects with a buffer: bytes, bytearray, memoryview, array.array, mmap, ctypes arrays ..."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from gridstride.arrays._interface import refuse_to_allocate
from gridstride.arrays._numpy import NumPyAdapter
from gridstride.arrays.adapter import Adapter
from gridstride.arrays.view import ArrayView, Shape

#: ctypes values that have a buffer and yet are scalars, pointers or structures.
_VALUES = (ctypes._SimpleCData, ctypes._Pointer, ctypes.Structure, ctypes.Union)


class BufferAdapter(Adapter):
    """Host memory shown by the buffer protocol; the view's owner holds the buffer."""

    name = "buffer"
    makes_outputs = False

    def recognizes(self, kind: type, array: object) -> bool:
        if issubclass(kind, _VALUES):
            return False
        try:
            memoryview(array)  # type: ignore[arg-type]
        except TypeError:
            return False
        except (ValueError, BufferError):
            pass  # it has a buffer that cannot be shown now, as a released memoryview
        return True

    def view(self, array: Any) -> ArrayView:
        return _arrays.view(np.asarray(memoryview(array)))._replace(library="buffer")

    def allocate(self, like: Any, shape: Shape, dtype: np.dtype[Any], stream: int) -> Any:
        refuse_to_allocate(like)


_arrays = NumPyAdapter()
