"""The cases of each section of the table of device names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from device_cases import halves, integer, mathematics, plain_types, random_numbers, rounded, simd
from device_cases.case import Case
from gridstride.targets.cpu import device_names


def names_of(key: str) -> tuple[str, ...]:
    """Return the names that a section of the table supports."""
    return next(section for section in device_names.sections() if section.key == key).supported()


def on_a_gpu(cases: list[Case]) -> list[Case]:
    """Leave out the calls that use a name that programs for a GPU lack, and what CUDA's functions are known for."""
    absent = {name for section in device_names.sections() for name in section.absent_on_cuda}
    here = [case for case in cases if not any(name in case.call for name in absent)]
    others = CUDA_GIVES_OTHERS
    return [replace(case, is_other=others[case.call]) if case.call in others else case for case in here]


def _below(limit: float) -> Callable[..., Any]:
    return lambda a: np.abs(a) < limit


def _near_the_largest(a: Any, b: Any) -> Any:
    return np.maximum(np.abs(a), np.abs(b)) > (1 - 2**-20) * np.finfo(a.dtype).max


#: Where CUDA 13.0 on an H200 gives values that the mathematical function does not have.
CUDA_GIVES_OTHERS: dict[str, Callable[..., Any]] = {
    # Not a number: a high power of the reciprocal is infinite.
    "jnf(2, a)": _below(1e-9),
    "jn(2, a)": _below(1e-60),
    "yn(2, a)": _below(2.3e-308),
    # A result that would round to the largest number becomes infinite.
    "hypot(a, b)": _near_the_largest,
}

#: Section: what the calls need, the calls.
VALUES: dict[str, tuple[str, list[Case]]] = {
    "integer": ("", integer.CASES),
    "simd": (simd.PREAMBLE, simd.CASES),
    "single": (mathematics.PREAMBLE, mathematics.SINGLE),
    "double": (mathematics.PREAMBLE, mathematics.DOUBLE),
    "classification": ("", mathematics.CLASSIFICATION),
    "fast": ("", mathematics.FAST),
    "rounding": ("", rounded.ROUNDING),
    "casts": ("", rounded.CASTS),
    "vectors": (plain_types.VECTOR_PREAMBLE, plain_types.VECTORS),
    "half": (halves.HALF.preamble, halves.HALF_CASES),
    "bfloat16": (halves.BFLOAT16.preamble, halves.BFLOAT16_CASES),
    "constants": (plain_types.CONSTANT_PREAMBLE, plain_types.constants(names_of("constants"))),
    "cuComplex": (plain_types.COMPLEX_PREAMBLE, plain_types.COMPLEX),
    "curand": (random_numbers.PREAMBLE, random_numbers.CASES),
}
