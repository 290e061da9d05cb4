"""Where a row is run: its text, a target, arrays on it, and a record of the tiers that were taken."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import gridstride as gs
from kernel_battery.cutting import device_part
from kernel_battery.row import Row, Source


class Bench:
    """Give a row its kernels and arrays.

    Parameters
    ----------
    folder : Path
        Holds the sources, each at ``owner/name/path``.
    row : Row
    target : str
    tier : str
        That kernels are compiled for; "" for the fastest of each.

    Attributes
    ----------
    tiers : dict of kernel to tier
        What was launched.
    xp : module
        The array library of the target.
    """

    def __init__(self, folder: Path, row: Row, target: str, tier: str = "") -> None:
        self.folder = folder
        self.row = row
        self.target = target
        self.tier = tier
        self.tiers: dict[str, str] = {}
        self.xp: ModuleType = import_module("numpy" if target == "cpu" else "cupy")

    @property
    def text(self) -> str:
        """The row's sources without host code, and what it puts around them."""
        parts = map(self._part, self.row.sources)
        return "\n".join([self.row.before, *parts, self.row.after])

    def strings(self, source: Source | None = None) -> dict[str, str]:
        """Return the strings that a Python file assigns at its top level, formatted as it says."""
        tree = ast.parse(self._read(source or self.row.sources[0]))
        found: dict[str, str] = {}
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                value = _string(statement.value, found)
                if value is not None:
                    found[statement.targets[0].id] = value
        return found

    def path(self, source: Source) -> Path:
        """Return where a source lies."""
        return self.folder / source.repository / source.path

    def module(
        self,
        names: Sequence[str] = (),
        text: str | None = None,
        options: Sequence[str] = (),
        before: str = "",
        **more: Any,
    ) -> gs.RawModule:
        """Return the row's text, or another one, as a module with these template instances."""
        code = before + (self.text if text is None else text)
        return gs.RawModule(code=code, options=tuple(options), name_expressions=names, tier=self.tier, **more)

    def kernels(self, names: Sequence[str], **more: Any) -> list[gs.RawKernel]:
        """Return kernels of the row's text by name expression."""
        module = self.module(names, **more)
        return [self.noted(module.get_function(name)) for name in names]

    def noted(self, kernel: gs.RawKernel) -> gs.RawKernel:
        """Return a kernel, with its tier put down."""
        self.tiers[kernel.name] = kernel.explain().tier
        return kernel

    def array(self, values: Any, dtype: Any = None) -> Any:
        """Return a new array of the target with these values."""
        return self.xp.array(np.asarray(values, dtype))

    def zeros(self, shape: Any, dtype: Any = np.float32) -> Any:
        """Return an array of zeros of the target."""
        return self.xp.zeros(shape, dtype)

    def fill(self, pointer: Any, values: np.ndarray) -> None:
        """Copy values to a variable of a module."""
        values = np.ascontiguousarray(values)
        pointer.copy_from_host(values, values.nbytes)

    def _part(self, source: Source) -> str:
        text = self._read(source)
        return device_part(text, self.row.without) if self.row.cut else text

    def _read(self, source: Source) -> str:
        return self.path(source).read_text(encoding="utf-8")


def numpy(array: Any) -> np.ndarray:
    """Return an array's values on the host."""
    return np.array(gs.asnumpy(array))


def _string(node: ast.expr, known: Mapping[str, str]) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _string(node.left, known), _string(node.right, known)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        template = _string(node.func.value, known)
        values = {word.arg: _string(word.value, known) for word in node.keywords if word.arg}
        return None if template is None or None in values.values() else template.format(**values)
    return None
