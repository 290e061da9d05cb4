"""What a compiler is handed: the text around the user's text, and the options."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gridstride import config
from gridstride.targets.base import Program
from gridstride.targets.cuda.includes import PRELUDE, Includes
from gridstride.targets.options import CompileOptions

_DEFAULT_STANDARD = "c++17"


class Request(NamedTuple):
    """Ask for a lowered name: `expression` is NVRTC's name expression, `instance` the same for nvcc."""

    expression: str
    template: str
    arguments: str

    def instance(self, index: int) -> str:
        """Return the variable whose mangled name tells the answer."""
        return f"{self.template}_at<{index}, {self.arguments}>"


def compose(program: Program, includes: Includes) -> str:
    """Return the text to compile.

    Headers of ours come first, then the user's macros, then the user's headers and text: no macro
    can break a header of ours. Lines of the user's text keep their numbers.
    """
    options = program.options
    head = [
        *(f"#include <{name}>" for name in (PRELUDE, *includes.own)),
        *(f"#undef {name}" for name in options.undefines),
        *(f"#define {name} {'1' if value is None else value}" for name, value in options.defines),
        *(f"#include <{name}>" for name in program.includes if name not in includes.own),
        f'#line 1 "{_escaped(display_path(program))}"',
    ]
    return "\n".join(head) + "\n" + program.text


def display_path(program: Program) -> str:
    """Return the file name that messages use for a program's text."""
    return program.path or f"{program.name}.cu"


def nvrtc_options(program: Program, includes: Includes, arch: str) -> list[str]:
    """Return NVRTC's options for a program and an arch (``sm_90``, or ``compute_90`` for PTX)."""
    options = program.options
    flags = [
        f"--gpu-architecture={arch}",
        f"--std={standard(options)}",
        f"--fmad={'true' if options.contraction else 'false'}",
        # NVRTC 13.0 takes lambdas of `auto` for functions of the host, which it refuses otherwise.
        "--device-as-default-execution-space",
        *code_options(options),
    ]
    if options.extra_vectorization:
        flags.append("--extra-device-vectorization")
    if includes.uses_nvidia:
        flags.append("--diag-suppress=47")  # NVIDIA's headers and ours both define INT_MAX and the like
    return [*flags, *(f"--include-path={folder}" for folder in includes.folders)]


def code_options(options: CompileOptions) -> Iterable[str]:
    """Yield the options that NVRTC and nvcc spell alike."""
    if options.debug:
        yield "--device-debug"
    elif options.line_info or config.debug():
        yield "--generate-line-info"
    if options.fast_math:
        yield "--use_fast_math"
    if options.max_registers:
        yield f"--maxrregcount={options.max_registers}"
    if options.optimization and not options.debug:
        yield f"--ptxas-options=-O{options.optimization}"
    if not options.warnings:
        yield "--disable-warnings"


def standard(options: CompileOptions) -> str:
    """Return the C++ standard to compile for."""
    return options.std or _DEFAULT_STANDARD


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace('"', '\\"')
