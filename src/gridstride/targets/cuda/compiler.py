"""From CUDA C++ to object code for NVIDIA's devices."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from functools import partial

from gridstride import _syntax
from gridstride.errors import CompileError
from gridstride.targets.base import FunctionRecord, ObjectCode, Program, Signature
from gridstride.targets.cuda import elf, source
from gridstride.targets.cuda.includes import Includes, walk
from gridstride.targets.cuda.nvrtc import Compilation, Nvrtc
from gridstride.targets.cuda.source import Request

#: Leaves out textures, surfaces, launches by kernels and the runtime's types, which takes a seventh less time; and lets
#: all cores optimize a text of so many kernels, with the same instructions as their result.
_SHORT, _IN_THREADS, _MANY_KERNELS = "--minimal", "--split-compile=0", 8
_QUICK_SINCE = (12, 4)


class Compiler:
    """Compile programs; needs no device.

    Parameters
    ----------
    nvrtc : Nvrtc
    """

    def __init__(self, nvrtc: Nvrtc) -> None:
        self.nvrtc = nvrtc

    def warm_up(self) -> None:
        """Load NVRTC and the parser."""
        _syntax.kernels("")
        self.nvrtc.architectures  # noqa: B018 - asking opens the library

    def compile(self, program: Program, arch: str) -> ObjectCode:
        """Compile a program.

        Parameters
        ----------
        program : Program
        arch : str
            ``sm_90`` and the like. Where NVRTC does not know it yet, the result is PTX for the
            newest arch below it, which the driver translates.

        Raises
        ------
        CompileError
        """
        includes = walk(program)
        requests = _requests(program)
        form, compilation = self._compile(program, includes, arch, requests)
        log = _readable(compilation.log)
        if compilation.code is None:
            raise _refusal(program, log, self._command(program, includes, arch))
        if form == "cubin":
            _check_kernels(program, compilation)
        return ObjectCode(
            format=form,
            code=compilation.code,
            functions=dict(_functions(program, compilation)),
            globals={name: compilation.lowered_names[_variable(name).expression] for name in program.globals},
            constants={
                text: _value(compilation.lowered_names[_constant(text).expression])
                for text in program.constants
            },
            dependencies=includes.dependencies,
            log=log,
        )

    def ptx(self, program: Program, arch: str) -> tuple[str, list[str]]:
        """Return the PTX of a program for an arch that NVRTC knows, and the lowered names of its kernels."""
        includes = walk(program)
        requests = _requests(program)
        compilation = self.nvrtc.compile(
            source.compose(program, includes),
            source.display_path(program),
            source.nvrtc_options(program, includes, arch.replace("sm_", "compute_")),
            expressions=[request.expression for request in requests],
            headers=program.headers,
            form="ptx",
        )
        if compilation.code is None:
            raise _refusal(program, _readable(compilation.log), self._command(program, includes, arch))
        names = [compilation.lowered_names[_kernel(kernel).expression] for kernel in program.kernels]
        return compilation.code.rstrip(b"\0").decode(), names

    def _compile(
        self, program: Program, includes: Includes, arch: str, requests: Sequence[Request]
    ) -> tuple[str, Compilation]:
        if program.options.compiler == "nvcc":
            from gridstride.targets.cuda import nvcc  # rarely asked for, and it costs more than the rest

            return "cubin", nvcc.find().compile(program, includes, arch, requests)
        form, known_arch = self._form(arch)
        options = source.nvrtc_options(program, includes, known_arch)
        compile_with = partial(
            self.nvrtc.compile,
            source.compose(program, includes),
            source.display_path(program),
            expressions=[request.expression for request in requests],
            headers=program.headers,
            form=form,
        )
        for quick in self._quick_options(program, includes):
            found = compile_with(options=[*options, *quick])
            if found.code is not None:
                return form, found
        return form, compile_with(options=options)

    def _quick_options(self, program: Program, includes: Includes) -> list[list[str]]:
        """Return options that save time, the best first; each fails for some texts that compile without it."""
        if self.nvrtc.version < _QUICK_SINCE:
            return []
        short = [] if includes.names_runtime or includes.uses_nvidia else [_SHORT]
        tried = [[_IN_THREADS, *short]] if len(program.kernels) >= _MANY_KERNELS else []
        return [*tried, short] if short else tried

    def _command(self, program: Program, includes: Includes, arch: str) -> str:
        """Return the call as one would write it in a shell."""
        options = source.nvrtc_options(program, includes, arch)
        return shlex.join([program.options.compiler, *options, source.display_path(program)])

    def _form(self, arch: str) -> tuple[str, str]:
        """Return the format and the arch to compile for."""
        match = re.fullmatch(r"sm_(\d+)([af]?)", arch)
        if not match:
            raise ValueError(f"arch must be like 'sm_90', got {arch!r}")
        wanted, known = int(match[1]), self.nvrtc.architectures
        if wanted in known:
            return "cubin", arch
        below = [number for number in known if number < wanted]
        if not below:
            raise CompileError(
                f"{arch} is older than what NVRTC {'.'.join(map(str, self.nvrtc.version))} compiles for "
                f"(sm_{known[0]} and newer). Install an older NVRTC: pip install 'gridstride[cuda12]'",
                command="nvrtc",
            )
        return "ptx", f"compute_{below[-1]}"


def _requests(program: Program) -> list[Request]:
    return [
        *map(_kernel, program.kernels),
        *(map(_arguments, program.kernels) if program.is_signed else ()),
        *map(_variable, program.globals),
        *map(_constant, program.constants),
    ]


def _kernel(name: str) -> Request:
    entity = _bare(name)
    return Request(entity, "gridstride_entity", f"decltype(&{entity}), &{entity}")


def _arguments(name: str) -> Request:
    arguments = f"gridstride_arguments_t<decltype(&{_bare(name)})>"
    return Request(f"gridstride_signature<{arguments}>", "gridstride_signature", arguments)


def _variable(name: str) -> Request:
    entity = _bare(name)
    return Request(f"&{entity}", "gridstride_entity", f"decltype(&{entity}), &{entity}")


def _constant(text: str) -> Request:
    return Request(f"gridstride_constant<(long long)({text})>", "gridstride_constant", f"(long long)({text})")


def _bare(name: str) -> str:
    return name.strip().removeprefix("&").strip()


def _functions(program: Program, compilation: Compilation) -> Iterable[tuple[str, FunctionRecord]]:
    lowered = compilation.lowered_names
    names = _parameter_names(program.text) if program.is_signed else {}
    for kernel in program.kernels:
        signature = None
        if program.is_signed:
            signature = _signature(
                lowered[_arguments(kernel).expression], names.get(_syntax.base_name(kernel), ())
            )
        yield kernel, FunctionRecord(lowered[_kernel(kernel).expression], signature)


# What reads names and messages is imported where there are some: launches of elementwise kernels need neither.


def _signature(mangled: str, names: Sequence[str]) -> Signature | None:
    from gridstride.targets.cuda.itanium import UnknownMangling
    from gridstride.targets.cuda.signatures import read_signature

    try:
        return read_signature(mangled, names)
    except UnknownMangling:
        return None


def _value(mangled: str) -> int:
    from gridstride.targets.cuda.signatures import read_constant

    return read_constant(mangled)


def _readable(log: str) -> str:
    if not log:
        return ""
    from gridstride.targets.cuda.log import readable_log

    return readable_log(log)


def _parameter_names(text: str) -> dict[str, tuple[str, ...]]:
    return {
        kernel.name: tuple(parameter.name for parameter in kernel.parameters)
        for kernel in _syntax.kernels(text)
    }


def _check_kernels(program: Program, compilation: Compilation) -> None:
    assert compilation.code is not None
    entries = elf.parameter_layouts(compilation.code)
    for kernel in program.kernels:
        if compilation.lowered_names.get(_kernel(kernel).expression) not in entries:
            raise CompileError(
                f"{program.name}: {kernel!r} is not a __global__ function. {_available(program)}",
                name=program.name,
                source=program.text,
            )


def _refusal(program: Program, log: str, command: str) -> CompileError:
    from gridstride.targets.cuda.log import first_error, place_of_ptx

    message = f"{program.name}: {program.options.compiler} refused the text:\n{first_error(log)}"
    place = place_of_ptx(log, program.text, source.display_path(program))
    if place:
        message += f"\n{place}"
    if "name expression: " in message:
        message += f"\n{_available(program)}"
    return CompileError(message, name=program.name, log=log, source=program.text, command=command)


def _available(program: Program) -> str:
    names = [kernel.name for kernel in _syntax.kernels(program.text)]
    return f"Kernels in the text: {', '.join(names)}" if names else "The text declares no kernel"
