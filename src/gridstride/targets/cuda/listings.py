"""What a program becomes on the CUDA target: the text for NVRTC, PTX, and SASS."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from gridstride.errors import CUDAError, TargetUnavailable
from gridstride.targets import toolkit
from gridstride.targets.base import Program
from gridstride.targets.cuda import nvrtc, source
from gridstride.targets.cuda.compiler import Compiler
from gridstride.targets.cuda.includes import walk

#: Listed for where no device says otherwise.
_COMMON_ARCH = "sm_90"
_DISASSEMBLER = "nvdisasm"
_FUNCTION = re.compile(
    r"(?:^[ \t]*// \.(?:globl|weak)[ \t]+\S+\s*)?^(?:\.visible |\.weak )*"
    r"\.(?P<kind>entry|func) +(?:\([^()]*\) *)?(?P<name>[\w$]+).*?^\}\n*",
    re.MULTILINE | re.DOTALL,
)
_SECTION = re.compile(r"\s*//-+ \.text\.(\S+) -+")


class CudaListings:
    """List programs with NVRTC and NVIDIA's disassembler.

    Parameters
    ----------
    compiler : Compiler
    """

    forms = {  # noqa: RUF012 - the protocol's attribute
        "source": "the CUDA C++ that NVRTC gets, without the headers it includes",
        "ptx": "the virtual machine code",
        "sass": "the device's machine code",
    }

    def __init__(self, compiler: Compiler) -> None:
        self.compiler = compiler

    def arch(self) -> str:
        """Return a common one: no device is asked."""
        return _COMMON_ARCH

    def text(self, program: Program, arch: str, form: str) -> str:
        """Return a program in a form."""
        if form == "source":
            return source.compose(program, walk(program))
        if form == "ptx":
            return _only_entries(*self.compiler.ptx(program, arch))
        compiled = self.compiler.compile(program, arch)
        names = [function.lowered_name for function in compiled.functions.values()]
        return "\n".join(_only_sections(_disassembled(compiled.code), names))


def create() -> CudaListings:
    """Return the listings; `TargetUnavailable` where there is no NVRTC."""
    found = nvrtc.find()
    if found is None:
        newest = nvrtc.KNOWN_VERSIONS[0]
        raise TargetUnavailable("cuda", "there is no NVRTC", f"Run `pip install 'gridstride[cuda{newest}]'`")
    return CudaListings(Compiler(found))


def _only_entries(ptx: str, names: Sequence[str]) -> str:
    """Return PTX without the entries of other kernels and the functions that only ask for names."""

    def kept(function: re.Match[str]) -> str:
        wanted = (
            function["name"] in names
            if function["kind"] == "entry"
            else "gridstride_" not in function["name"]
        )
        return function[0] if wanted else ""

    return _FUNCTION.sub(kept, ptx)


def _only_sections(sass: str, names: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a disassembly without the code of other kernels."""
    is_wanted = True
    for line in sass.splitlines():
        section = _SECTION.match(line)
        if section:
            is_wanted = section[1] in names
        if is_wanted:
            yield line


def _disassembled(cubin: bytes) -> str:
    program = toolkit.program(_DISASSEMBLER)
    if program is None:
        raise TargetUnavailable(
            "cuda", f"there is no {_DISASSEMBLER}, which shows SASS", "Run `pip install nvidia-cuda-nvdisasm`"
        )
    with tempfile.TemporaryDirectory(prefix="gridstride-") as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        done = subprocess.run([program, "--print-code", file], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CUDAError(
            f"{_DISASSEMBLER} failed: {done.stderr.strip()}", name=_DISASSEMBLER, call=_DISASSEMBLER
        )
    return done.stdout
