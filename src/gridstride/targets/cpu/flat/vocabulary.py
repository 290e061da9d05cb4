"""The names that the flat tier knows: what they do depends on their arguments and the thread alone.

Kernels see no headers but ours, so the functions of the headers below are all there are besides those
that wait, tell threads apart, or look at a clock.
"""

from __future__ import annotations

import re
from functools import cache

from gridstride.targets.cpu.prebuilt import FOLDER

#: Headers of ours all of whose functions are computations on their arguments.
PURE_HEADERS = (
    "bits.h", "casts.h", "conversions.h", "dim3.h", "elementary_functions.h", "half_formats.h", "half_operations.h",
    "half_template.h", "integer_intrinsics.h", "math_functions.h", "rounding.h", "saturation.h", "simd_in_word.h",
    "special_functions.h", "vectors.h",
)  # fmt: skip
LOADS = frozenset({"__ldg", "__ldca", "__ldcg", "__ldcs", "__ldlu"})
STORES = frozenset({"__stwb", "__stcg", "__stcs", "__stwt", "memcpy", "memset"})
ATOMICS = frozenset(
    f"atomic{name}{scope}"
    for name in ("Add", "Sub", "Min", "Max", "Inc", "Dec", "And", "Or", "Xor", "Exch", "CAS")
    for scope in ("", "_block", "_system")
)
CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast", "gridstride_cast"})
CONSTANTS = frozenset(
    {"warpSize", "INFINITY", "NAN", "FLT_MAX", "FLT_MIN", "FLT_EPSILON", "DBL_MAX", "DBL_MIN", "DBL_EPSILON"}
    | {"INT_MAX", "INT_MIN", "UINT_MAX", "LLONG_MAX", "LLONG_MIN", "ULLONG_MAX", "M_PI", "true", "false"}
)
INDICES = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim"})

_VECTOR = re.compile(r"(?:u?(?:char|short|int|long|longlong)|float|double)[1-4](?:_16a|_32a)?|dim3|uint3")
_NAME = re.compile(r"\b[A-Za-z_]\w*")


@cache
def pure_functions() -> frozenset[str]:
    """Return the names in the headers of computations, with the suffix that macros add."""
    folder = f"{FOLDER}/include/gridstride_cpu"
    names: set[str] = set()
    for header in PURE_HEADERS:
        with open(f"{folder}/{header}") as file:
            names.update(_NAME.findall(file.read()))
    return frozenset(names | {f"{name}f" for name in names})


def is_vector(name: str) -> bool:
    """Return whether a type is one of CUDA's vectors."""
    return _VECTOR.fullmatch(name) is not None


def is_computation(name: str) -> bool:
    """Return whether a function is known to depend on its arguments alone."""
    return is_vector(name.removeprefix("make_")) or name in LOADS or name in CASTS or name in pure_functions()
