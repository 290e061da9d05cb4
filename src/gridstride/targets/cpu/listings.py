"""What a program becomes on the CPU target: the C++ that is compiled, and the assembly of its kernels."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

from gridstride._syntax import base_name
from gridstride.targets.base import Program
from gridstride.targets.cpu import toolchain
from gridstride.targets.cpu.compiler import list_program

_FUNCTION = re.compile(r"^([\w.$]+):.*?^\s*\.size\s+\1\s*,.*?$", re.MULTILINE | re.DOTALL)
_MARKER = re.compile(r'^# \d+ "((?:[^"\\]|\\.)*)"')
#: What a line with the flat form of a kernel has.
_FLAT_FORM = " gridstride_lane_"
#: Directives that say nothing about what runs.
_NOISE = re.compile(
    r"^\s*\.(?:cfi_|loc\b|file\b|type\b|size\b|p2align\b|ident\b|section\b|text\b|weak\b|hidden\b)"
)


class CpuListings:
    """List programs with the host compiler."""

    forms = {  # noqa: RUF012 - the protocol's attribute
        "source": "the C++ that is compiled, without the headers it includes",
        "assembly": "the machine code of the kernel's functions",
    }

    def arch(self) -> str:
        """Return this processor's."""
        return toolchain.host_arch()

    def text(self, program: Program, arch: str, form: str) -> str:
        """Return a program in a form."""
        if arch != self.arch():
            raise ValueError(f"the CPU target compiles for this processor, {self.arch()}, not for {arch!r}")
        listed = list_program(program, form)
        if form == "assembly":
            return "\n".join(_assembly(listed, [base_name(name) for name in program.kernels]))
        return _users_part(listed, program)


def create() -> CpuListings:
    """Return the listings."""
    return CpuListings()


def _users_part(text: str, program: Program) -> str:
    """Drop what headers of a preprocessed text brought; the rest is shown as it is."""
    kept, is_ours = [], True
    for line in text.splitlines():
        marker = _MARKER.match(line)
        if marker:
            is_ours = not marker[1].endswith(".h")
        elif is_ours:
            kept.append(line)
    return "\n".join(part for line in kept for part in _broken_up(line))


def _broken_up(line: str) -> Iterator[str]:
    """Yield the flat form of a kernel, which stands on one line, as people would write it; else the line."""
    if _FLAT_FORM not in line:
        yield line
        return
    depth = parentheses = 0
    begin = 0
    for position, character in enumerate(line):
        parentheses += (character == "(") - (character == ")")
        if character not in "{};" or parentheses:
            continue
        part = line[begin : position + 1].strip()
        depth = max(0, depth - (character == "}"))  # the line begins with the end of the kernel
        yield f"{'    ' * depth}{part}"
        depth += character == "{"
        begin = position + 1
    yield line[begin:].strip()


def _assembly(text: str, kernels: list[str]) -> Iterator[str]:
    found = [match for match in _FUNCTION.finditer(text) if any(name in match[1] for name in kernels)]
    readable = _demangled([match[1] for match in found])
    for match, name in zip(found, readable, strict=True):
        yield f"# {name}"
        yield from (line for line in match[0].splitlines() if not _NOISE.match(line))
        yield ""


def _demangled(symbols: list[str]) -> list[str]:
    program = shutil.which("c++filt")
    if program is None or not symbols:
        return symbols
    done = subprocess.run([program, *symbols], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    return lines if len(lines) == len(symbols) else symbols
