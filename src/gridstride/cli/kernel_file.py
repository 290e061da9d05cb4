"""What the commands call ``FILE.cu[:KERNEL]``: a CUDA C++ file, and a kernel of it."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from gridstride._lazy_module import LazyModule
from gridstride._module import Function
from gridstride._source.raw import RawSource, declared_kernels
from gridstride._syntax import KernelDeclaration, base_name

HELP = (
    "a CUDA C++ file and, behind a colon, a kernel or template instance of it: saxpy.cu, 'k.cu:scale<float>'"
)
_AXIS = re.compile(r"\b(?:threadIdx|blockIdx)\s*\.\s*([xyz])\b")


class UsageError(ValueError):
    """Report a command line that cannot be followed, with what to write instead."""


class KernelFile(NamedTuple):
    """Hold a file, its text, and the kernel that was named ("" for none)."""

    path: Path
    text: str
    kernel: str

    @property
    def declared(self) -> tuple[KernelDeclaration, ...]:
        """The kernels that the text declares."""
        return declared_kernels(self.source())

    def source(self, options: Sequence[str] = (), *, cooperative: bool = False, tier: str = "") -> RawSource:
        """Return the text as a program's source; messages name the file."""
        return RawSource(
            self.text,
            base_name(self.kernel) or self.path.stem,
            options=tuple(options),
            cooperative=cooperative,
            path=str(self.path),
            tier=tier,
        )

    def function(self, options: Sequence[str], *, cooperative: bool, tier: str) -> Function:
        """Return the kernel, ready to be compiled."""
        source = self.source(options, cooperative=cooperative, tier=tier)
        function = Function.__new__(Function)
        function._bind(LazyModule(source, (self.kernel,)), self.kernel)
        return function

    def axes(self) -> int:
        """Return how many axes of threads and blocks the kernel's text speaks of, at least 1."""
        kernel = next((each for each in self.declared if each.name == base_name(self.kernel)), None)
        start, end = kernel.body if kernel else (0, 0)
        used = set(_AXIS.findall(self.text.encode()[start:end].decode(errors="replace")))
        return 3 if "z" in used else 2 if "y" in used else 1


def read(argument: str) -> KernelFile:
    """Return the file that ``FILE.cu[:KERNEL]`` names, and the kernel as far as it is named."""
    path, kernel = _split(argument)
    if not path.is_file():
        raise UsageError(f"there is no file {str(path)!r}")
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        raise UsageError(f"{path} is no text; the commands take CUDA C++ source") from None
    return KernelFile(path, text, kernel)


def choose(file: KernelFile) -> KernelFile:
    """Return the file with its kernel named: the one asked for, or the only one.

    Raises
    ------
    UsageError
        There are none or several, or the one asked for is not there; it lists them.
    """
    declared = file.declared
    if not declared and not file.kernel:
        raise UsageError(f"{file.path} declares no __global__ function")
    if not file.kernel:
        if len(declared) > 1:
            raise UsageError(
                "\n".join([f"{file.path} has {len(declared)} kernels; name one:", *listing(file)])
            )
        file = file._replace(kernel=declared[0].name)
    _check_named(file, declared)
    return file


def listing(file: KernelFile) -> Iterator[str]:
    """Yield a line for each kernel: how to name it, its parameters, its line."""
    names = {kernel: _spelled(file.path, kernel) for kernel in file.declared}
    width = max(map(len, names.values()), default=0)
    for kernel, name in names.items():
        yield f"  {name:<{width}}  ({parameters(kernel)})  line {kernel.line}"


def parameters(kernel: KernelDeclaration) -> str:
    """Return a kernel's parameters as written."""
    return ", ".join(f"{each.type} {each.name}".strip() for each in kernel.parameters)


def _split(argument: str) -> tuple[Path, str]:
    """Split at the first colon behind which no file goes on: names of kernels may hold colons too."""
    if Path(argument).is_file():
        return Path(argument), ""
    for match in re.finditer(":", argument):
        if Path(argument[: match.start()]).is_file():
            return Path(argument[: match.start()]), argument[match.end() :].strip()
    return Path(argument.partition(":")[0]), ""


def _check_named(file: KernelFile, declared: Sequence[KernelDeclaration]) -> None:
    """Refuse a template without arguments, and a name that no declaration comes near."""
    found = [kernel for kernel in declared if kernel.name == base_name(file.kernel)]
    if found and found[0].is_template and "<" not in file.kernel:
        raise UsageError(
            f"{file.kernel} is a template; name an instance of it, for example "
            f"{shlex.quote(f'{file.path}:{file.kernel}<float>')}"
        )
    if not found and declared:
        near = difflib.get_close_matches(base_name(file.kernel), [kernel.name for kernel in declared], 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError("\n".join([f"{file.path} declares no kernel {file.kernel!r}{hint}", *listing(file)]))


def _spelled(path: Path, kernel: KernelDeclaration) -> str:
    return shlex.quote(f"{path}:{kernel.name}<...>") if kernel.is_template else f"{path}:{kernel.name}"
