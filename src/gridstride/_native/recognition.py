"""Tell the C code about classes of arrays when it meets them for the first time.

No library is imported for that. NumPy's memory layout is compared with the attributes of real
arrays; where anything differs the C code never hears of the class, and the pipeline does the calls.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Any

import numpy as np

from gridstride._native import _launcher
from gridstride._native.entry import DTYPES

_NUMPY_NUMBERS = 24
_TARGET_VARIABLE = "GRIDSTRIDE_TARGET"

_USUAL_SCALARS = np.float32(), np.float64(), np.int32(), np.int64(), np.uint32(), np.uint64(), np.bool_()

#: Classes that were looked at: whether the C code can look at their objects.
_met: dict[type, bool] = {}


def start() -> None:
    """Let the C code ask `recognize`, and replay only while the environment chooses the same target."""
    values = getattr(os.environ, "_data", None)
    if isinstance(values, dict) and _has_declared_layout():
        _launcher.watch_environment(values, os.fsencode(_TARGET_VARIABLE))
        _launcher.know_numpy(np.ndarray, np.dtype, _codes_by_number())
        _launcher.set_recognizer(recognize)


def recognize(kind: type, value: object) -> bool:
    """Return whether the C code can look at objects of a class, or at arrays of a dtype, from now on."""
    if isinstance(value, np.dtype):
        return _introduce_dtype(value)
    known = _met.get(kind)
    if known is None:
        known = _met[kind] = _introduce(kind, value)
    return known


def meet() -> Any:
    """Look at the classes that first launches bring, where their library is loaded, so that none waits for it.

    Returns
    -------
    array or None
        A float32 array of one of them on device 0, over memory that must not be touched.
    """
    for scalar in _USUAL_SCALARS:
        recognize(type(scalar), scalar)
    cupy = sys.modules.get("cupy")
    kind = getattr(cupy, "ndarray", None)
    if kind is None or not recognize(kind, None):
        return None
    from gridstride._native import cupy_shortcuts

    return cupy_shortcuts.untouchable(cupy)


def _introduce(kind: type, value: Any) -> bool:
    if issubclass(kind, np.generic):
        return _introduce_scalar(kind, value)
    torch = sys.modules.get("torch")
    if torch is not None and kind in (torch.Tensor, torch.nn.Parameter):
        from gridstride._native import torch_shortcuts

        torch_shortcuts.learn(torch)
        return _launcher.know_torch(kind, value, partial(torch_shortcuts.learn_stream, torch))
    cupy = sys.modules.get("cupy")
    if cupy is not None and kind is cupy.ndarray:
        from gridstride._native import cupy_shortcuts

        cupy_shortcuts.learn(cupy)
        return _launcher.know_cupy(kind, cupy.cuda.get_current_stream)
    return False


def _introduce_dtype(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype that is none of NumPy's own is one that the C code knows from now on."""
    is_bfloat16 = dtype.name == "bfloat16" and dtype.itemsize == 2
    if is_bfloat16:
        _launcher.know_bfloat16(dtype)
    return is_bfloat16


def _introduce_scalar(kind: type, value: Any) -> bool:
    name = value.dtype.name
    if name not in DTYPES or kind is not value.dtype.type:
        return False
    if _launcher.scalar_bytes(value, value.nbytes) != value.tobytes():
        return False
    return _launcher.know_scalar(kind, DTYPES.index(name))


def _codes_by_number() -> tuple[int, ...]:
    """Return the position in `DTYPES` for each of NumPy's type numbers, -1 where there is none."""
    codes = [-1] * _NUMPY_NUMBERS
    for character in np.typecodes["All"]:
        dtype = np.dtype(character)
        if dtype.name in DTYPES and dtype.num < _NUMPY_NUMBERS:
            codes[dtype.num] = DTYPES.index(dtype.name)
    return tuple(codes)


def _has_declared_layout() -> bool:
    """Return whether the C declarations read from arrays and dtypes what their attributes say."""
    trial = np.zeros((3, 4), np.float32)
    read_only = trial[1:]
    read_only.flags.writeable = False
    arrays = trial, trial[:, ::2], trial.T, read_only, np.zeros(()), np.zeros(2, ">i2"), np.zeros(0, bool)
    return all(_reads_as(array) for array in arrays)


def _reads_as(array: np.ndarray[Any, Any]) -> bool:
    dtype = array.dtype
    address: int = array.__array_interface__["data"][0]
    # The shape is behind a pointer, and so are the dtype's fields: followed only once the rest is right.
    return (
        _launcher.array_fields(array) == (address, array.ndim, array.flags.num, id(dtype))
        and _launcher.array_shape(array) == (array.shape, array.strides)
        and _launcher.dtype_fields(dtype) == (dtype.num, dtype.byteorder)
    )
