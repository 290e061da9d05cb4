"""NVIDIA's offline compiler, for programs that ask for it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gridstride.errors import CompileError
from gridstride.targets import toolkit
from gridstride.targets.base import Program
from gridstride.targets.cuda import elf, source
from gridstride.targets.cuda.includes import DEVICE_FOLDERS, Includes
from gridstride.targets.cuda.itanium import Symbol, UnknownMangling, parse, spell
from gridstride.targets.cuda.nvrtc import Compilation
from gridstride.targets.cuda.signatures import entity
from gridstride.targets.cuda.source import Request


class Nvcc(NamedTuple):
    """Compile texts with an nvcc."""

    path: Path

    def identity(self) -> str:
        """Return what tells this compiler from another one."""
        status = os.stat(self.path)
        return f"nvcc {self.path.resolve()} {status.st_size} {status.st_mtime_ns}"

    def compile(
        self, program: Program, includes: Includes, arch: str, requests: Sequence[Request]
    ) -> Compilation:
        """Compile a program to a cubin; lowered names are found in its symbol table."""
        text = source.compose(program, includes) + '\n#line 1 "name expressions"\n'
        text += "".join(
            f"template __device__ char {request.instance(index)};\n" for index, request in enumerate(requests)
        )
        with tempfile.TemporaryDirectory(prefix="gridstride-nvcc-") as folder:
            for name, content in program.headers:
                _write(Path(folder, name), content)
            _write(Path(folder, "program.cu"), text)
            command = [str(self.path), *_options(program, includes, arch, folder)]
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
            log = (done.stdout + done.stderr).strip()
            if done.returncode:
                return Compilation(None, {}, log)
            code = Path(folder, "program.cubin").read_bytes()
        return Compilation(code, _lowered_names(code, requests), log)


def find() -> Nvcc:
    """Return nvcc; CompileError with the remedy if there is none."""
    path = toolkit.nvcc()
    if path is None:
        raise CompileError(
            "backend='nvcc' was asked for, but there is no nvcc in CUDA_PATH, on PATH or in /usr/local/cuda. "
            "Install the CUDA toolkit, or use backend='nvrtc'",
            command="nvcc",
        )
    return Nvcc(path)


def _options(program: Program, includes: Includes, arch: str, folder: str) -> list[str]:
    options = program.options
    beside = [str(Path(program.path).parent.absolute())] if program.path else []
    mine = [str(Path(path).absolute()) for path in options.include_dirs]
    places = [folder, *beside, *mine, *map(str, DEVICE_FOLDERS)]
    flags = ["--extra-device-vectorization"] if options.extra_vectorization else []
    return [
        "-cubin", "-arch", arch, f"-std={source.standard(options)}", f"--fmad={str(options.contraction).lower()}",
        *source.code_options(options), *flags, *(f"-I{place}" for place in places), "-o", "program.cubin", "program.cu",
    ]  # fmt: skip


def _lowered_names(cubin: bytes, requests: Sequence[Request]) -> dict[str, str]:
    symbols = {symbol: parsed for symbol in elf.symbols(cubin) if (parsed := _parsed(symbol)) is not None}
    by_text = {spell(parsed): symbol for symbol, parsed in symbols.items()}
    answers: dict[int, str] = {}
    for symbol, parsed in symbols.items():
        name = parsed.name
        if name.text.startswith("gridstride_") and name.text.endswith("_at") and name.arguments:
            index = int(spell(name.arguments[0]))
            answers[index] = (
                _entity_symbol(symbol, by_text) if name.text == "gridstride_entity_at" else symbol
            )
    return {request.expression: answers[index] for index, request in enumerate(requests) if index in answers}


def _entity_symbol(mangled: str, by_text: dict[str, str]) -> str:
    """Return the symbol of the entity whose address a mangled name holds; a C symbol has no parameters."""
    found = entity(mangled)
    return by_text.get(spell(found)) or by_text.get(spell(Symbol(found.name)), spell(found.name))


def _parsed(symbol: str) -> Symbol | None:
    try:
        return parse(symbol)
    except UnknownMangling:
        return None


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
