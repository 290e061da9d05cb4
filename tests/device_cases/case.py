"""Calls of device functions with their references, run many at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from device_support import distance_in_ulp

import gridstride as gs

LETTERS = "abcd"
CTYPES = {
    "int8": "signed char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short", "int32": "int",
    "uint32": "unsigned", "int64": "long long", "uint64": "unsigned long long", "float32": "float",
    "float64": "double", "bool": "bool",
}  # fmt: skip
#: Stores any value of at most eight bytes, and lets no conversion happen on the way.
PREAMBLE = """
template <class T, class U> struct exactly { static constexpr bool value = false; };
template <class T> struct exactly<T, T> { static constexpr bool value = true; };
template <class T, class U> __device__ void store(unsigned long long* place, U value) {
    static_assert(exactly<T, U>::value, "the function returns another type");
    *reinterpret_cast<T*>(place) = value;
}
"""


@dataclass(frozen=True)
class Case:
    """One call.

    Attributes
    ----------
    name : str
        The device name it is about.
    call : str
        An expression of `a`, `b`, `c`, `d`, the elements of the inputs.
    result : str
        Its dtype.
    inputs : tuple of arrays
    reference : callable
        Takes the inputs, returns the expected values, perhaps in a wider type.
    ulp : float
        How many units in the last place the result may be away; 0 also compares the signs of zeros.
    absolute : float
        A distance that is near enough whatever the ulp.
    is_other : callable, optional
        Takes the inputs, says where the target is known to give another value.
    """

    name: str
    call: str
    result: str
    inputs: tuple[np.ndarray[Any, Any], ...]
    reference: Callable[..., Any]
    ulp: float = 0.0
    absolute: float = 0.0
    is_other: Callable[..., Any] | None = None

    def check(self, got: np.ndarray[Any, Any]) -> None:
        """Compare the values that a target gave with the reference's."""
        with np.errstate(all="ignore"):
            expected = np.asarray(self.reference(*self.inputs))
        assert expected.shape == got.shape, self.call
        wrong = self._wrong(got, expected)
        if self.is_other is not None:
            wrong &= ~self.is_other(*self.inputs)
        if wrong.any():
            k = int(np.argmax(wrong))
            arguments = ", ".join(repr(array[k]) for array in self.inputs)
            raise AssertionError(
                f"{self.call} of {arguments} gave {got[k]!r}, not {expected[k]!r} ({wrong.sum()} wrong)"
            )

    def _wrong(self, got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if got.dtype.kind != "f":
            return np.asarray(got != expected.astype(got.dtype))
        if self.ulp == 0:
            with np.errstate(all="ignore"):
                exact = expected.astype(got.dtype)
            bits = f"u{got.dtype.itemsize}"
            return np.asarray((got.view(bits) != exact.view(bits)) & ~(np.isnan(got) & np.isnan(exact)))
        far = distance_in_ulp(got, expected) > self.ulp
        with np.errstate(all="ignore"):
            return np.asarray(far & ~(np.abs(got - expected) <= self.absolute))


def each(function: Callable[..., int]) -> Callable[..., np.ndarray[Any, Any]]:
    """Make a reference of a function of Python integers; the result keeps its low 64 bits."""

    def reference(*arrays: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        rows = zip(*(array.tolist() for array in arrays), strict=True)
        return np.array([int(function(*row)) & (2**64 - 1) for row in rows], np.uint64)

    return reference


def program(cases: Sequence[Case], preamble: str = "") -> tuple[str, list[list[Case]]]:
    """Return a text with one kernel for all cases of the same inputs, and the cases of each kernel."""
    groups: dict[tuple[int, ...], list[Case]] = {}
    for case in cases:
        groups.setdefault(tuple(id(array) for array in case.inputs), []).append(case)
    kernels = [_kernel(f"group_{number}", group) for number, group in enumerate(groups.values())]
    return "\n".join([preamble, PREAMBLE, *kernels]), list(groups.values())


def run(xp: ModuleType, cases: Sequence[Case], preamble: str = "") -> None:
    """Run cases on the default target and check them all."""
    text, groups = program(cases, preamble)
    module = gs.RawModule(code=text, options=("--std=c++17", "--fmad=false"))
    failures = []
    for number, group in enumerate(groups):
        size = group[0].inputs[0].size
        assert size >= 64, group[0].call
        out = xp.zeros((len(group), size), np.uint64)
        arrays = [xp.asarray(array) for array in group[0].inputs]
        module.get_function(f"group_{number}")(((size + 127) // 128,), (128,), (*arrays, out, np.int32(size)))
        for case, row in zip(group, gs.asnumpy(out), strict=True):
            width = np.dtype(case.result).itemsize
            try:
                case.check(np.ascontiguousarray(row.view(case.result)[:: 8 // width]))
            except AssertionError as error:
                failures.append(str(error))
    assert not failures, "\n".join(failures)


def _kernel(name: str, cases: Iterable[Case]) -> str:
    cases = list(cases)
    letters = LETTERS[: len(cases[0].inputs)]
    types = [CTYPES[array.dtype.name] for array in cases[0].inputs]
    parameters = "".join(f"const {ctype}* {letter}s, " for letter, ctype in zip(letters, types, strict=True))
    values = " ".join(
        f"{ctype} {letter} = {letter}s[i];" for letter, ctype in zip(letters, types, strict=True)
    )
    stores = "\n".join(
        f"    store<{CTYPES[case.result]}>(out + {k} * n, {case.call});" for k, case in enumerate(cases)
    )
    return f"""extern "C" __global__ void {name}({parameters}unsigned long long* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out += i;
    {values}
{stores}
}}"""
