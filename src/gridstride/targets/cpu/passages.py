"""What moves elements in the loops of this target, whatever a kernel does: compiled once, and linked to kernels."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from gridstride import _store, config
from gridstride.targets.cpu import calling, library, toolchain
from gridstride.targets.options import CompileOptions
from gridstride.targets.walks import Walked

#: Says to the headers that the passages of these sizes are linked.
MACRO = "GRIDSTRIDE_LINKS_PASSAGES"
_SIZES = (1, 2, 4, 8, 16)
_SOURCE = library.FOLDER / "templates" / "passages.cpp"
#: Group of the entries on disk.
_STORED_AS = "cpu-runtime"
_known: dict[str, bytes] = {}


def linked_for(operands: Iterable[Walked]) -> tuple[str, ...]:
    """Return what a loop that moves elements of operands may link, by their sizes."""
    sizes = sorted({operand.itemsize for operand in operands})
    return tuple(f"passages {size}" for size in sizes if size in _SIZES)


def find(name: str, compiler: toolchain.Toolchain) -> bytes | None:
    """Return an object file, if it was compiled before."""
    key = _key(name, compiler.fingerprint())
    if key not in _known:
        found = _store.read(key, _STORED_AS, "passages")
        if found is None:
            return None
        _known[key] = found
    return _known[key]


def build(name: str, compiler: toolchain.Toolchain) -> None:
    """Compile an object file for `find`; where that fails kernels go on without."""
    if config.compilation_forbidden():
        return
    key = _key(name, compiler.fingerprint())
    try:
        with tempfile.TemporaryDirectory(prefix="gridstride-", ignore_cleanup_errors=True) as folder:
            done = compiler.run(_arguments(name, compiler), Path(folder))
            if done.returncode == 0:
                _known[key] = Path(folder, "passages.o").read_bytes()
                _store.write(key, _STORED_AS, "passages", _known[key])
    except (OSError, calling.CompilerFailed):
        return


def _arguments(name: str, compiler: toolchain.Toolchain) -> Sequence[str]:
    return [
        *compiler.compile_flags(CompileOptions()),
        *compiler.wide_vector_flags(),
        *(f"-I{folder}" for folder in library.INCLUDE_FOLDERS),
        f"-DGRIDSTRIDE_SIZE={name.split()[-1]}",
        "-x", "c++", str(_SOURCE), "-c", "-o", "passages.o",
    ]  # fmt: skip


@cache
def _key(name: str, fingerprint: str) -> str:
    return hashlib.sha256(f"{name}; {fingerprint}; {library.digest_of_sources()}".encode()).hexdigest()
