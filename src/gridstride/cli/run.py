"""``gridstride run``: launch a kernel of a .cu file from the shell."""

from __future__ import annotations

import argparse
import json
import math
import re
import shlex
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from gridstride._compilation.tiers import Explanation
from gridstride.cli import kernel_file
from gridstride.cli.arguments import ARRAY_FORMS, Argument, Arguments, is_array
from gridstride.cli.expressions import evaluate, whole
from gridstride.cli.failures import report
from gridstride.cli.kernel_file import KernelFile, UsageError
from gridstride.cli.launching import Measured, measure, signature_of
from gridstride.cli.style import bold
from gridstride.targets import registry
from gridstride.targets.base import Parameter, Signature, Target

#: Threads of a block along x, y and z, by the axes of the launch's size.
_BLOCKS = {1: (256,), 2: (32, 8), 3: (32, 4, 2)}
_SHOWN_ELEMENTS = 6

_EPILOG = f"""\
Each parameter gets a value by its name:
  a=2.5  n=1e6  n=1<<20  n=x.size  rows=x.shape[0]  v=1,2,3,4 (a built-in vector)
Arrays take the dtype of the parameter, and the shape of --size where they name none:
{ARRAY_FORMS}
SHAPE is 1000, 480x640 or rows,cols. A dtype may follow (zeros:1000:f64) where the parameter tells none.

Grid and block follow from --size, or from the largest array.

examples:
  gridstride run saxpy.cu n=1e6 a=2 x=random:n y=ones:n --out y=result.npy
  gridstride run image.cu:blur in=photo.npy out=zeros:480x640 width=640 height=480 --size 640x480
  gridstride run saxpy.cu n=1e7 a=2 x=random:n y=random:n --repeat 50
"""


class Shape(NamedTuple):
    """Hold grid and block of a launch, and the size they follow from (() where they were given)."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    size: tuple[int, ...]


class Result(NamedTuple):
    """Hold what is told of a run."""

    kernel: str
    target: Target
    explanation: Explanation
    shape: Shape
    arguments: list[Argument]
    measured: Measured


def main(arguments: Sequence[str]) -> int:
    """Launch a kernel and show what it wrote; the exit code is 2 for a wrong call, 1 for a failure."""
    return report("run", lambda: _run(_parse(arguments)))


def _run(parsed: argparse.Namespace) -> int:
    file = kernel_file.choose(kernel_file.read(parsed.kernel))
    texts = _assignments(parsed.values)
    with ExitStack() as stack:
        if parsed.target:
            stack.enter_context(registry.use_target(parsed.target))
        target = registry.default()
        function = file.function(parsed.options, cooperative=parsed.cooperative, tier=parsed.tier)
        compiled, signature = signature_of(function)
        _explain_missing(file, signature, texts)
        arguments = Arguments(file.kernel, signature, texts, parsed.size, parsed.seed).all()
        outputs = _outputs(parsed.out, arguments)
        shape = _shape(file, parsed, arguments)
        measured = measure(
            target, function, shape.grid, shape.block, parsed.shared_mem, arguments, parsed.repeat
        )
        measured = measured._replace(prepared=measured.prepared + compiled)
        result = Result(file.kernel, target, function.explain(), shape, arguments, measured)
    for argument, path in outputs:
        np.save(path, measured.results[argument.name])
    if parsed.json:
        print(json.dumps(_record(result), indent=1))
    else:
        print("\n".join(_lines(result, {argument.name: path for argument, path in outputs})))
    return 0


# ---- the command line ----


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="gridstride run",
        usage="gridstride run FILE.cu[:KERNEL] NAME=VALUE ... [options]",
        description="Launch a CUDA C++ kernel and show what it wrote.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("kernel", metavar="FILE.cu[:KERNEL]", help=kernel_file.HELP)
    parser.add_argument("values", nargs="*", metavar="NAME=VALUE", help="a parameter and its value")
    launch = parser.add_argument_group("launch")
    launch.add_argument(
        "--size", type=extents, default=(), metavar="N[xM[xK]]", help="threads wanted, x first"
    )
    launch.add_argument("--grid", type=extents, metavar="X[xY[xZ]]", help="blocks of the grid")
    launch.add_argument(
        "--block", type=extents, metavar="X[xY[xZ]]", help="threads of a block (default: 256 in all)"
    )
    launch.add_argument("--shared-mem", type=_whole, default=0, metavar="BYTES", help="dynamic shared memory")
    launch.add_argument("--cooperative", action="store_true", help="let this_grid().sync() work")
    launch.add_argument(
        "--target", choices=registry.names(), help="where to run (default: the GPU if there is one)"
    )
    launch.add_argument("--tier", default="", help="how to run: flat or fibers (cpu); default: the fastest")
    launch.add_argument(
        "--repeat", type=_whole, default=0, metavar="N", help="launch N times more, and time it"
    )
    launch.add_argument("--seed", type=_whole, default=0, metavar="N", help="of random arrays (default: 0)")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--out",
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="save an array after the first launch",
    )
    output.add_argument("--json", action="store_true", help="print numbers for programs")
    add_compiler_options(parser)
    return parser.parse_intermixed_args(arguments)


def add_compiler_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that go to the compiler, collected in ``options``."""
    group = parser.add_argument_group("compiler")

    def add(*flags: str, **settings: Any) -> None:
        group.add_argument(*flags, dest="options", action=_CompilerOption, default=(), **settings)

    add("-D", metavar="NAME[=VALUE]", help="define a macro")
    add("-I", metavar="FOLDER", help="look for headers there")
    add("--std", metavar="c++NN", help="the standard of C++")
    add("--fmad", choices=("true", "false"), help="whether a * b + c may be rounded once")
    add("--use_fast_math", nargs=0, help="faster and less exact functions")
    add("--option", metavar="OPTION", help="any other option of the vocabulary, such as --option=-lineinfo")


class _CompilerOption(argparse.Action):
    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        flag = option_string or ""
        word = values if flag == "--option" else flag if not values else _joined(flag, values)
        setattr(namespace, self.dest, (*getattr(namespace, self.dest), word))


def _joined(flag: str, value: str) -> str:
    return f"{flag}{'=' if flag.startswith('--') else ''}{value}"


def extents(text: str) -> tuple[int, ...]:
    """Return up to three extents written as ``640x480``; each may be an expression."""
    numbers = tuple(_whole(part) for part in re.split(r"[x,]", text))
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not one to three numbers of at least 1, such as 640x480"
        )
    return numbers


def _whole(text: str) -> int:
    try:
        number = whole(evaluate(text, _nothing))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not isinstance(number, int) or number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 0")
    return number


def _nothing(name: str) -> Any:
    raise ValueError(f"{name!r} is no number")


def _assignments(words: Iterable[str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.isidentifier() or not text:
            raise UsageError(f"{word!r} is not NAME=VALUE, a parameter and its value")
        if name in texts:
            raise UsageError(f"{name} is given twice: {texts[name]} and {text}")
        texts[name] = text
    return texts


def _outputs(words: Iterable[str], arguments: Sequence[Argument]) -> list[tuple[Argument, str]]:
    written = {each.name: each for each in arguments if each.is_written}
    found = []
    for word in words:
        name, _, path = word.partition("=")
        if name not in written:
            raise UsageError(
                f"--out {word}: {name!r} is no array that the kernel writes; those are {', '.join(written) or 'none'}"
            )
        found.append((written[name], path or f"{name}.npy"))
    return found


def _explain_missing(file: KernelFile, signature: Signature, texts: dict[str, str]) -> None:
    """Where nothing was given for a kernel that takes something, say what to write."""
    if texts or not signature:
        return
    declared = ", ".join(f"{each.type.name} {each.name}" for each in signature)
    counts = [each.name for each in signature if each.type.kind == "scalar" and _is_integer(each)]
    values = [
        f"{each.name}={'random:1000' if is_array(each.type) else '1000' if counts == [each.name] else '1'}"
        for each in signature
    ]
    raise UsageError(
        f"{file.kernel}({declared}) needs values. For example:\n"
        f"  gridstride run {shlex.quote(f'{file.path}:{file.kernel}')} {' '.join(values)}\n"
        f"`gridstride run --help` says what values there are"
    )


def _is_integer(parameter: Parameter) -> bool:
    return parameter.type.dtype is not None and parameter.type.dtype.kind in "iu"


def _shape(file: KernelFile, parsed: argparse.Namespace, arguments: Sequence[Argument]) -> Shape:
    if parsed.grid:
        axes = len(parsed.grid)
        return Shape(parsed.grid, parsed.block or _BLOCKS[axes], ())
    size = parsed.size or _size(file, arguments)
    block = parsed.block or _BLOCKS[len(size)]
    threads = (*block, 1, 1)[: len(size)]
    grid = tuple(max(1, -(-extent // count)) for extent, count in zip(size, threads))
    return Shape(grid, block, size)


def _size(file: KernelFile, arguments: Sequence[Argument]) -> tuple[int, ...]:
    """Return a thread for each element of the largest array, along as many axes as the kernel asks for."""
    arrays = [each.value for each in arguments if isinstance(each.value, np.ndarray)]
    if not arrays:
        raise UsageError(f"{file.kernel} takes no array to tell how many threads; add --size or --grid")
    shape = max(arrays, key=lambda array: array.size).shape
    axes = min(file.axes(), max(len(shape), 1))
    leading = math.prod(shape[: len(shape) - axes + 1])
    return tuple(max(1, extent) for extent in (*shape[len(shape) - axes + 1 :][::-1], leading))


# ---- what is told ----


def _lines(result: Result, saved: dict[str, str]) -> Iterator[str]:
    shape, measured = result.shape, result.measured
    device = result.target.limits(result.target.current_device()).name
    wanted = f", {_times(shape.size)} threads wanted" if shape.size else ""
    yield bold(f"{result.kernel} on {result.target.name} ({device})", sys.stdout)
    yield f"  grid {_times(shape.grid)}, block {_times(shape.block)}{wanted}"
    yield f"  tier {result.explanation.tier}"
    yield f"  first launch {readable(measured.first)} (compiling and loading {readable(measured.prepared)})"
    if measured.times:
        low, middle, high = min(measured.times), statistics.median(measured.times), max(measured.times)
        count = len(measured.times)
        yield f"  {count} more: min {readable(low)}, median {readable(middle)}, max {readable(high)}"
        moved = _bytes(result.arguments)
        if moved:
            yield f"  {moved / middle / 1e9:.3g} GB/s at the median, counting {_counted(result.arguments)}"
    for name, array in measured.results.items():
        yield f"{name}  {array.dtype} {array.shape}{_summary(array)}"
        if name in saved:
            yield f"  saved to {saved[name]}"


def _record(result: Result) -> dict[str, Any]:
    measured = result.measured
    return {
        "kernel": result.kernel,
        "target": result.target.name,
        "device": result.target.limits(result.target.current_device()).name,
        "tier": result.explanation.tier,
        "grid": result.shape.grid,
        "block": result.shape.block,
        "prepared_seconds": measured.prepared,
        "first_launch_seconds": measured.first,
        "seconds": measured.times,
        "bytes": _bytes(result.arguments),
        "written": {
            name: {"dtype": str(array.dtype), "shape": array.shape, **_extremes(array)}
            for name, array in measured.results.items()
        },
    }


def _bytes(arguments: Iterable[Argument]) -> int:
    return sum(each.value.nbytes * (each.is_read + each.is_written) for each in arguments if _is_array(each))


def _counted(arguments: Iterable[Argument]) -> str:
    """Say which arrays are taken to be read and which to be written, once each."""
    ways = {(True, False): "read", (False, True): "written", (True, True): "read and written"}
    return ", ".join(
        f"{each.name} {ways[each.is_read, each.is_written]}" for each in arguments if _is_array(each)
    )


def _is_array(argument: Argument) -> bool:
    return isinstance(argument.value, np.ndarray)


def _summary(array: np.ndarray[Any, Any]) -> str:
    if not array.size:
        return "  empty"
    first = np.array2string(
        array.reshape(-1)[:_SHOWN_ELEMENTS], precision=6, separator=" ", max_line_width=200
    )
    more = first.removesuffix("]") + (" ...]" if array.size > _SHOWN_ELEMENTS else "]")
    extremes = "".join(
        f"  {name} {value:.6g}" for name, value in _extremes(array).items() if value is not None
    )
    return f"{extremes}  {more}"


def _extremes(array: np.ndarray[Any, Any]) -> dict[str, float | None]:
    """Return minimum, mean and maximum; nothing for complex numbers, structures and no elements."""
    if not array.size or array.dtype.kind not in "biuf":
        return {}
    wide = array.astype(np.float64)
    with np.errstate(all="ignore"):
        found = {"min": float(wide.min()), "mean": float(wide.mean()), "max": float(wide.max())}
    return {name: value if math.isfinite(value) else None for name, value in found.items()}


def readable(seconds: float) -> str:
    """Return seconds in the unit that people would take."""
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1 or unit == "us":
            return f"{seconds * factor:.3g} {unit}"
    raise AssertionError


def _times(numbers: Iterable[int]) -> str:
    return "x".join(map(str, numbers))
