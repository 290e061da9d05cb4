"""Fusion: a Python function of arrays becomes one kernel.

The function is run once with objects in place of its arguments: `Traced` for arrays (traced.py), `Number` for numbers
(numbers.py). What is done to arrays is written on a `Tape` (tape.py) as statements of CUDA C++ (functions.py, and
composed.py for NumPy's functions that are made of several); numbers alone are calculated by Python at every call.
"""

from gridstride.families.fuse.fused import FusedFunction, fuse

__all__ = ["FusedFunction", "fuse"]
