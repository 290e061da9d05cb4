"""Fusion: a Python function of arrays becomes one kernel.

The function is run once with objects in place of its arguments (arguments.py): `Traced` for arrays (traced.py),
`Number` for numbers (numbers.py). What is done to arrays is written on a `Tape` (tape.py) as statements of CUDA C++
(functions.py, and composed.py for NumPy's functions that are made of several); what numbers alone come to is
calculated by Python at every call (steps.py). A `Trace` (trace.py) makes kernels of the tape and calls them.
"""

from gridstride.families.fuse.fused import FusedFunction, fuse

__all__ = ["FusedFunction", "fuse"]
