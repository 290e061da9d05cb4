"""The cases of each section of the table of device names."""

from __future__ import annotations

from device_cases import halves, integer, mathematics, plain_types, random_numbers, rounded, simd
from device_cases.case import Case
from gridstride.targets.cpu import device_names


def names_of(key: str) -> tuple[str, ...]:
    """Return the names that a section of the table supports."""
    return next(section for section in device_names.sections() if section.key == key).supported()


def on_a_gpu(cases: list[Case]) -> list[Case]:
    """Leave out the cases whose calls use a name that programs for a GPU lack."""
    absent = {name for section in device_names.sections() for name in section.absent_on_cuda}
    return [case for case in cases if not any(name in case.call for name in absent)]


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
