"""Launch generated kernels, and compare what they wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

import gridstride as gs
from generated_kernels.kernels import Batch, GeneratedKernel
from generated_kernels.writer import CAPACITY, COUNTERS, INPUTS, OUTPUTS, SPARE_COUNTER

_DTYPES = {
    "int": "int32", "unsigned": "uint32", "long long": "int64", "unsigned long long": "uint64", "short": "int16",
    "unsigned char": "uint8", "float": "float32", "double": "float64",
}  # fmt: skip
_UNTOUCHED = 77

Outputs = dict[str, np.ndarray]


class Difference(NamedTuple):
    """Where two ways to run a kernel part: an output, how many elements, and the first of them."""

    kernel: GeneratedKernel
    output: str
    count: int
    index: int
    first: Any
    second: Any

    def __str__(self) -> str:
        return (
            f"{self.kernel.name}: {self.count} elements of {self.output} differ, first [{self.index}]: "
            f"{self.first!r} and {self.second!r}\n{self.kernel.text}"
        )


def run_batch(module: gs.RawModule, batch: Batch, xp: ModuleType = np) -> Iterator[Outputs]:
    """Launch each kernel of a batch on fresh outputs and yield what it wrote."""
    inputs = {name: xp.asarray(array) for name, array in inputs_of(batch.seed).items()}
    for kernel in batch.kernels:
        written = {name: xp.asarray(array) for name, array in outputs_of(kernel).items()}
        values: Mapping[str, Any] = {**inputs, **written, **batch.uniforms}
        launched = module.get_function(kernel.name)
        arguments = tuple(values[name] for name in kernel.parameters)
        launched(batch.grid, batch.block, arguments, shared_mem=kernel.shared_mem)
        yield {name: np.asarray(getattr(array, "get", lambda: array)()) for name, array in written.items()}  # noqa: B023


def difference(kernel: GeneratedKernel, first: Outputs, second: Outputs) -> Difference | None:
    """Return where two results differ in a bit; NaN is one value."""
    for name, array in first.items():
        same = array == second[name]
        if array.dtype.kind == "f":
            bits = f"i{array.dtype.itemsize}"
            same = (array.view(bits) == second[name].view(bits)) | (np.isnan(array) & np.isnan(second[name]))
        if not same.all():
            index = int(np.argmin(same))
            return Difference(kernel, name, int((~same).sum()), index, array[index], second[name][index])
    return None


def inputs_of(seed: int) -> Outputs:
    """Return inputs with small numbers, extreme ones, zeros, infinities and NaN."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for name, type_ in INPUTS.items():
        dtype = np.dtype(_DTYPES[type_])
        if dtype.kind == "f":
            array = rng.normal(0, 2, CAPACITY).astype(dtype)
            array[rng.integers(0, CAPACITY, 40)] = rng.choice(
                [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, 1e-40], 40
            )
        else:
            limits = np.iinfo(dtype)
            array = rng.integers(max(limits.min, -60), min(limits.max, 120), CAPACITY).astype(dtype)
            array[rng.integers(0, CAPACITY, CAPACITY // 20)] = rng.choice(
                [limits.min, limits.max, 1], CAPACITY // 20
            )
        arrays[name] = array
    return arrays


def outputs_of(kernel: GeneratedKernel) -> Outputs:
    """Return what a kernel's outputs hold before it runs."""
    arrays = {}
    for name in kernel.parameters:
        if name in OUTPUTS:
            arrays[name] = np.full(CAPACITY, _UNTOUCHED, _DTYPES[OUTPUTS[name]])
        elif name in COUNTERS:
            arrays[name] = np.arange(SPARE_COUNTER + 1).astype(_DTYPES[COUNTERS[name]]) * 1000
    return arrays
