"""Vector types, mathematical constants and cuComplex.h."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from device_cases.case import CTYPES, Case
from device_cases.inputs import F32_2, F64_2, S64, Array
from device_cases.oracle import Oracle, can_compile

# ---- vector types: every component, also after a trip through memory ----

_COMPONENTS = {
    "char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16", "int": "int32", "uint": "uint32",
    "long": "int64", "ulong": "uint64", "longlong": "int64", "ulonglong": "uint64", "float": "float32",
        "double": "float64",
}  # fmt: skip
_SPELLED = {"long": "long", "ulong": "unsigned long"}
VECTOR_PREAMBLE = """
template <class V> __device__ V there_and_back(V value) {
    alignas(V) char place[sizeof(V)];
    *reinterpret_cast<volatile char*>(place) = 0;
    *reinterpret_cast<V*>(place) = value;
    return *reinterpret_cast<const V*>(place);
}
"""


def _of_component(place: int, dtype: str) -> Callable[[Array], Array]:
    return lambda x: (x + place * 11).astype(dtype)


def _vectors() -> list[Case]:
    cases = []
    for (name, dtype), count in itertools.product(_COMPONENTS.items(), (1, 2, 3, 4)):
        suffixes = (
            ("_16a", "_32a")
            if count == 4 and name in ("long", "ulong", "longlong", "ulonglong", "double")
            else ()
        )
        component = _SPELLED.get(name, CTYPES[dtype])
        for vector in (f"{name}{count}", *(f"{name}4{suffix}" for suffix in suffixes)):
            arguments = ", ".join(f"({component})(a + {place * 11})" for place in range(count))
            for place in range(count):
                call = (
                    f"({CTYPES[dtype]})there_and_back<{vector}>(make_{vector}({arguments})).{'xyzw'[place]}"
                )
                cases += [
                    Case(f"{word}{vector}", call, dtype, (_WRAPPED,), _of_component(place, dtype))
                    for word in ("make_", "")
                ][: 1 if place else 2]
    cases.append(Case("dim3",
        "dim3((unsigned)a, 2).x * 100 + dim3((unsigned)a, 2).y * 10 + dim3((unsigned)a, 2).z", "uint32",
                      (_WRAPPED,), lambda x: x.astype(np.uint32) * np.uint32(100) + np.uint32(21)))  # fmt: skip
    return cases


_WRAPPED = np.concatenate([np.arange(0, 100, dtype=np.int64), np.arange(1000, 1100, dtype=np.int64)]) % 87
VECTORS = _vectors()

# ---- constants ----

_STAND_INS = """
#ifndef __CUDACC__
#include <string.h>
template <class To, class From> static To of_bits(From from) { To to; memcpy(&to, &from, sizeof to); return to; }
static float __int_as_float(int x) { return of_bits<float>(x); }
static double __longlong_as_double(long long x) { return of_bits<double>(x); }
static double __hiloint2double(int high, int low) { return of_bits<double>((long long)high << 32 | (unsigned)low); }
#endif
#include <math_constants.h>
"""
CONSTANT_PREAMBLE = _STAND_INS


def constants(names: tuple[str, ...]) -> list[Case]:
    """Return a case for each constant of NVIDIA's header."""
    cases = [
        Case(name, f"({'float' if name.endswith('_F') else 'double'}){name}",
            "float32" if name.endswith("_F") else "float64",
             S64[:1], lambda *_: 0) for name in names
    ]  # fmt: skip
    return Oracle(cases, _STAND_INS).cases() if can_compile() else []


# ---- cuComplex.h ----

COMPLEX_PREAMBLE = "#include <cuComplex.h>\n"


def _complex(single: bool) -> list[Case]:
    letter, dtype = ("f", "float32") if single else ("", "float64")
    finite = [array[np.isfinite(array) & (np.abs(array) < 1e10) & ((np.abs(array) > 1e-10) | (array == 0))]
              for array in (F32_2 if single else F64_2)]  # fmt: skip
    size = min(array.size for array in finite)
    a, b = (array[:size] for array in finite)
    inputs = (a, b, np.roll(b, 37), np.roll(a, 71))
    z, w = (f"make_cu{'Float' if single else 'Double'}Complex({pair})" for pair in ("a, b", "c, d"))
    real, imaginary = f"cuCreal{letter}", f"cuCimag{letter}"
    x, y = _wide(inputs[0], inputs[1]), _wide(inputs[2], inputs[3])
    near = 1e-5 if single else 1e-13
    values: dict[str, tuple[str, Array]] = {
        f"cuCadd{letter}": (f"cuCadd{letter}({z}, {w})", x + y), f"cuCsub{letter}": (f"cuCsub{letter}({z}, {w})",
            x - y),
        f"cuCmul{letter}": (f"cuCmul{letter}({z}, {w})", x * y), f"cuConj{letter}": (f"cuConj{letter}({z})", x.conj()),
        f"make_cu{'Float' if single else 'Double'}Complex": (z, x),
        f"cuCfma{letter}": (f"cuCfma{letter}({z}, {w}, {z})", x * y + x),
    }  # fmt: skip
    with np.errstate(all="ignore"):
        values[f"cuCdiv{letter}"] = (
            f"cuCdiv{letter}({z}, {w})",
            np.where(y == 0, complex(np.nan, np.nan), x / np.where(y == 0, 1, y)),
        )
    cases = [
        Case(name, f"{part}({call})", dtype, inputs, _with_magnitude(value, which), 4, 0)
        if name.startswith(("make", "cuConj", "cuCadd", "cuCsub")) else
        _NearCase(name, f"{part}({call})", dtype, inputs, _with_magnitude(value, which), near)
        for name, (call, value) in values.items()
        for part, which in ((real, "real"), (imaginary, "imag"))
    ]  # fmt: skip
    cases += [
        Case(real, f"{real}({z})", dtype, inputs, lambda *v: v[0]), Case(imaginary, f"{imaginary}({z})", dtype,
            inputs, lambda *v: v[1]),
        Case(f"cuCabs{letter}", f"cuCabs{letter}({z})", dtype, inputs,
            lambda *v: np.hypot(v[0].astype(np.longdouble), v[1]), 3),
    ]  # fmt: skip
    if single:
        cases.append(Case("make_cuComplex", "cuCimagf(make_cuComplex(a, b))", dtype, inputs, lambda *v: v[1]))
        cases.append(
            Case(
                "cuComplexFloatToDouble",
                "cuCimag(cuComplexFloatToDouble(make_cuComplex(a, b)))",
                "float64",
                inputs,
                lambda *v: v[1].astype(float),
            )
        )
    else:
        cases.append(
            Case(
                "cuComplexDoubleToFloat",
                "cuCimagf(cuComplexDoubleToFloat(make_cuDoubleComplex(a, b)))",
                "float32",
                inputs,
                lambda *v: v[1].astype(np.float32),
            )
        )
    return cases


def _wide(real: Array, imaginary: Array) -> Array:
    return real.astype(np.clongdouble) + 1j * imaginary.astype(np.clongdouble)


def _with_magnitude(value: Array, part: str) -> Callable[..., Any]:
    return lambda *_: getattr(value, part)


class _NearCase(Case):
    """Of products and quotients: near in units of the largest term, since the parts may cancel."""

    def __init__(
        self,
        name: str,
        call: str,
        result: str,
        inputs: tuple[Array, ...],
        reference: Callable[..., Any],
        near: float,
    ) -> None:
        super().__init__(name, call, result, inputs, reference, 4, near)

    def _wrong(self, got: Array, expected: Array) -> Array:
        a, b, c, d = (np.abs(array.astype(float)) for array in self.inputs)
        with np.errstate(all="ignore"):
            size = (a + b) / np.maximum(c, d) if "div" in self.name else (a + b) * (c + d) + a + b
            is_near = np.abs(got - expected) <= self.absolute * size
        return np.asarray(super()._wrong(got, expected) & ~is_near & ~(np.isnan(expected.astype(float))))


COMPLEX = [*_complex(True), *_complex(False)]
