"""Kernels with a planted fault, and others that only look wrong: read from their files and run.

A file begins with a comment that holds TOML: the launch, the arrays, the values to expect.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gridstride as gs

FOLDER = Path(__file__).parent / "cpu" / "faults"


class Planted(NamedTuple):
    """One file: its name, what its header says, its text."""

    name: str
    header: dict[str, Any]
    text: str

    @property
    def is_sound(self) -> bool:
        return bool(self.header["verdict"] != "faulty")


def read_all() -> list[Planted]:
    """Return all files, in the order of their names."""
    found = []
    for path in sorted(FOLDER.glob("*.cu")):
        text = path.read_text()
        match = re.search(r"/\*CASE\n(.*?)\n\*/", text, re.DOTALL)
        assert match is not None, path
        found.append(Planted(path.stem, tomllib.loads(match[1]), text))
    return found


def run(planted: Planted, tier: str = "") -> set[str]:
    """Launch what a file says, compare with the values that it expects, and return the tiers that were taken."""
    memory = _Memory(planted.header)
    before = memory.values()
    module = gs.RawModule(code=planted.text, options=("--std=c++17",), tier=tier)
    tiers = set()
    defaults = {key: planted.header.get(key) for key in ("kernel", "grid", "block", "shared", "cooperative")}
    names = [entry["name"] for entry in planted.header["args"]]
    for step in planted.header.get("steps", [{}]):
        if "free" in step:
            memory.free(step["free"])
            continue
        how = defaults | {key: value for key, value in step.items() if key in ("grid", "block", "shared")}
        kernel = module.get_function(step.get("run", how["kernel"]))
        tiers.add(kernel.explain().tier)
        arguments = [memory.argument(name) for name in step.get("args", names)]
        kernel(tuple(how["grid"]), tuple(how["block"]), tuple(arguments), shared_mem=how["shared"] or 0)
    if planted.is_sound:
        for name, formula in planted.header.get("expect", {}).items():
            expected = eval(formula, {"np": np, **before})
            np.testing.assert_array_equal(
                eval(name, {"np": np}, memory.arrays), expected, f"{planted.name}: {name}"
            )
    return tiers


class _Memory:
    """The arrays of a file, filled in the order in which they stand.

    They lie far apart in one piece of memory, so that a fault damages nothing but this.
    """

    _APART = 1 << 20

    def __init__(self, header: dict[str, Any]) -> None:
        self._piece = np.zeros(12 * self._APART, np.uint8)
        self._used = self._APART
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self._others: dict[str, object] = {}
        random = np.random.default_rng(header.get("seed"))
        for entry in [*header.get("buffers", []), *header["args"]]:
            self._add(entry, random)

    def argument(self, name: str) -> object:
        return self._others[name] if name in self._others else self.arrays[name]

    def values(self) -> dict[str, object]:
        """Return copies of the arrays, and the scalars."""
        return self._others | {name: array.copy() for name, array in self.arrays.items()}

    def free(self, name: str) -> None:
        del self.arrays[name]

    def _add(self, entry: dict[str, Any], random: np.random.Generator) -> None:
        name = entry["name"]
        if "view" in entry:
            self.arrays[name] = self.arrays[entry["view"]].reshape(-1)[entry["start"] : entry["stop"]]
        elif "scalar" in entry:
            self._others[name] = np.dtype(entry["scalar"]).type(entry["value"])
        elif entry.get("null"):
            self._others[name] = None
        elif "addresses" in entry:
            addresses = [self.arrays[other].ctypes.data if other else 0 for other in entry["addresses"]]
            self.arrays[name] = np.array(addresses, np.uint64)
        else:
            shape, dtype = tuple(entry["shape"]), np.dtype(entry["dtype"])
            array = (
                self._piece[self._used :][: dtype.itemsize * int(np.prod(shape))].view(dtype).reshape(shape)
            )
            self._used += self._APART
            if entry["fill"] != "empty":
                array[...] = eval(entry["fill"], {"np": np, "rng": random, "shape": shape})
            self.arrays[name] = array
