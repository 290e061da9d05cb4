"""Where static shared variables lie in a block's arena.

Variables outside of kernels come first, one after the other, since any kernel may reach them. Behind
them every kernel has the whole rest for itself, and so has every instance of a kernel template: what
one declaration becomes in all instances has one place, as large as the largest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gridstride._syntax import base_name
from gridstride.targets.cpu.abi import SharedSlot


@dataclass(slots=True)
class SharedLayout:
    """Place the slots of a library.

    Attributes
    ----------
    common : int
        Bytes that every kernel needs.
    ends : dict of kernel name to int
        Bytes that a kernel needs, `common` included.
    """

    common: int = 0
    ends: dict[str, int] = field(default_factory=dict)

    def place(self, slots: Iterable[SharedSlot]) -> None:
        """Give every slot its offset."""
        declarations: dict[tuple[str, int], list[SharedSlot]] = {}
        for slot in slots:
            number, _, kernel = slot.function.decode().partition(" ")
            declarations.setdefault((kernel, int(number)), []).append(slot)
        for (kernel, _), instances in sorted(declarations.items()):  # "", outside of kernels, is the first
            if kernel:
                self.ends[kernel] = self._place_together(instances, self.ends.get(kernel, self.common))
            else:
                for slot in instances:
                    self.common = self._place_together([slot], self.common)

    def bytes_of(self, name: str) -> int:
        """Return the bytes that a kernel needs; it may be named without its namespaces."""
        base = base_name(name)
        fitting = [end for kernel, end in self.ends.items() if f"::{kernel}".endswith(f"::{base}")]
        return max(fitting, default=self.common)

    def total(self) -> int:
        """Return the bytes of the arena."""
        return max(self.ends.values(), default=self.common)

    @staticmethod
    def _place_together(slots: list[SharedSlot], end: int) -> int:
        alignment: int = max(slot.alignment for slot in slots)
        offset = -(-end // alignment) * alignment
        for slot in slots:
            slot.offset = offset
        return int(offset + max(slot.size for slot in slots))
