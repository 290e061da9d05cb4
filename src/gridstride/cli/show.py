"""``gridstride show``: the kernels of a .cu file, and what one of them becomes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from gridstride.cli import kernel_file
from gridstride.cli.failures import report
from gridstride.cli.kernel_file import KernelFile, UsageError
from gridstride.cli.run import add_compiler_options
from gridstride.cli.style import bold
from gridstride.targets import registry

#: The form that says in which tier a kernel runs, which every target has.
_TIER = "tier"
_EPILOG = """\
examples:
  gridstride show kernels.cu                         the kernels in the file
  gridstride show kernels.cu:saxpy                   what the default target's compiler gets
  gridstride show kernels.cu:saxpy --form tier       how it runs, and what keeps it from running faster
  gridstride show kernels.cu:saxpy --form assembly
  gridstride show 'kernels.cu:scale<float>' --target cuda --form ptx --arch sm_90
"""


def main(arguments: Sequence[str]) -> int:
    """List the kernels of a file, or print one in a form."""
    return report("show", lambda: _show(_parse(arguments)))


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="gridstride show",
        usage="gridstride show FILE.cu[:KERNEL] [options]",
        description="List the kernels of a file; or show the C++ that a kernel's compiler gets, PTX, SASS or "
        "assembly. No device is needed.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("kernel", metavar="FILE.cu[:KERNEL]", help=kernel_file.HELP)
    parser.add_argument(
        "--form", help="source, ptx or sass (cuda), source or assembly (cpu); default: source"
    )
    parser.add_argument("--target", choices=registry.names(), help="default: the GPU if there is one")
    parser.add_argument("--arch", help="the device to compile for, such as sm_90")
    parser.add_argument(
        "--tier", default="", help="how it shall run: flat or fibers (cpu); default: the fastest"
    )
    parser.add_argument("--cooperative", action="store_true", help="compile for a cooperative launch")
    add_compiler_options(parser)
    return parser.parse_intermixed_args(arguments)


def _show(parsed: argparse.Namespace) -> int:
    file = kernel_file.read(parsed.kernel)
    if not file.kernel and len(file.declared) > 1:
        print(
            "\n".join(
                [
                    bold(f"{file.path} has {len(file.declared)} kernels", sys.stdout),
                    *kernel_file.listing(file),
                ]
            )
        )
        return 0
    print(_listed(kernel_file.choose(file), parsed))
    return 0


def _listed(file: KernelFile, parsed: argparse.Namespace) -> str:
    target = parsed.target or registry.default().name
    if parsed.form == _TIER:
        return _explained(file, parsed, target)
    listings = registry.listings(target)
    form = parsed.form or next(iter(listings.forms))
    if form not in listings.forms:
        known = "; ".join(f"{name}: {what}" for name, what in listings.forms.items())
        raise UsageError(f"target {target!r} has no form {form!r}; it has {known}; {_TIER}: how it runs")
    source = file.source(parsed.options, cooperative=parsed.cooperative, tier=parsed.tier)
    program = source.program(target, (file.kernel,))
    return listings.text(program, parsed.arch or listings.arch(), form).strip("\n")


def _explained(file: KernelFile, parsed: argparse.Namespace, target: str) -> str:
    """Return in which tier a kernel runs, and what keeps it from a faster one."""
    with registry.use_target(target):
        return str(file.function(parsed.options, cooperative=parsed.cooperative, tier=parsed.tier).explain())
