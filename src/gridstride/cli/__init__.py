"""The ``gridstride`` command. Each subcommand is a module with a function ``main(arguments) -> exit code``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

import gridstride

COMMANDS = {
    "info": "say what this machine offers, and prove each target by running a small kernel on it",
    "run": "launch a kernel of a .cu file on files, random arrays and numbers; show and save what it wrote",
    "show": "list the kernels of a .cu file; show what one becomes: C++, PTX, machine code",
    "demo": "process pictures with CUDA C++ kernels, check every stage, and print a table",
    "cache": "show or clear the compile cache",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand and return the exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.
    """
    parser = argparse.ArgumentParser(
        prog="gridstride",
        description="Run CUDA C++ kernels on an NVIDIA GPU or on the CPU.",
        epilog="commands:\n" + "".join(f"  {name:<8}{what}\n" for name, what in COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"gridstride {gridstride.__version__}")
    parser.add_argument("command", choices=COMMANDS, metavar="command", help="one of those below")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the command takes; try --help")
    given = sys.argv[1:] if arguments is None else arguments
    if not given:
        parser.print_help(sys.stderr)
        return 2
    parsed = parser.parse_args(given)
    command = import_module(f"gridstride.cli.{parsed.command}")
    try:
        return int(command.main(parsed.arguments))
    except BrokenPipeError:  # the reader, for example `head`, has seen enough
        sys.stderr.close()
        return 1
