"""What shapes object code besides the program, told without importing the compiler."""

from __future__ import annotations

from gridstride.targets.base import Program
from gridstride.targets.cpu import abi, library, toolchain


def fingerprint(program: Program) -> str:
    """Return the fingerprint of a compilation: compiler, processor, flags, headers of ours."""
    compiler = toolchain.find_toolchain()
    flags = " ".join(compiler.compile_flags(program.options))
    return f"{abi.ABI_VERSION}; {compiler.fingerprint()}; {flags}; {library.digest_of_sources()}"
