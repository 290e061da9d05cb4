"""How much the texts of array kernels are optimized while they are tested: compilers take most of the time.

Not at all, but for a sample, and where a test asks for the fixture `optimized`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from zlib import crc32

from gridstride.targets.base import Program
from gridstride.targets.cpu.target import CpuTarget

_Method = Callable[[CpuTarget, Program, str], Any]

#: One of so many texts is optimized as users' are, so that what is undefined shows where only an optimizer sees it:
#: of those with the processor's own loops, and of those for blocks of threads, which no user waits for on a CPU.
_OWN, _FOR_BLOCKS = 16, 32

#: Whether all are, for the fixture to set.
are_all_optimized = False


def optimize_less() -> None:
    """Let the CPU target optimize few texts of array kernels in this process, where their options say nothing."""
    CpuTarget.fingerprint = _with_less(CpuTarget.fingerprint)  # type: ignore[method-assign]
    CpuTarget.compile = _with_less(CpuTarget.compile)  # type: ignore[method-assign]


def _with_less(method: _Method) -> _Method:
    @wraps(method)
    def with_less(target: CpuTarget, program: Program, arch: str) -> Any:
        if not (program.options.optimization or program.options.debug) and not _is_optimized(program):
            program = program._replace(options=program.options._replace(optimization="0"))
        return method(target, program, arch)

    return with_less


def _is_optimized(program: Program) -> bool:
    if are_all_optimized:
        return True
    header = program.includes[0] if program.includes else ""
    if not header.startswith(("gridstride/", "gridstride_cpu/")):
        return True  # not of an array kernel
    return crc32(program.text.encode()) % (_OWN if header.startswith("gridstride_cpu/") else _FOR_BLOCKS) == 0
