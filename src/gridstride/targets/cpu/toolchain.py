"""The host compiler: where it is, what it is, how its options are spelled, and running it."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from gridstride import _store, config
from gridstride.errors import TargetUnavailable
from gridstride.targets.cpu import calling
from gridstride.targets.options import CompileOptions

#: Seconds after which a compiler call is ended.
TIME_LIMIT = 600.0

#: Group of the entries on disk that say what a compiler is.
_STORED_AS = "cpu-compiler"
_ON_PATH = ("g++", "clang++", "c++")
_REMEDY = (
    "Install a C++ compiler (apt install g++, dnf install gcc-c++, conda install -c conda-forge gxx), "
    "or the one that comes as a Python package (pip install 'gridstride[compiler]'), "
    "or let GRIDSTRIDE_CXX name one"
)
_COMMON_FLAGS = (
    "-x", "c++", "-fPIC", "-fvisibility=hidden", "-fno-math-errno", "-fno-trapping-math", "-fwrapv",
    "-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti", "-fno-stack-protector", "-fno-threadsafe-statics",
    # Each page of a large frame is touched, so that none steps over the guard below a stack.
    "-fstack-clash-protection",
    "-Wno-attributes", "-U_FORTIFY_SOURCE",
    # Names that no program for a GPU finds taken.
    "-Ulinux", "-Uunix",
)  # fmt: skip
_CLANG_FLAGS = (
    # Numbers that become integers saturate.
    "-fno-strict-float-cast-overflow",
    "-fno-color-diagnostics", "-fno-caret-diagnostics", "-Wno-unknown-attributes", "-Wno-unused-value",
    "-Werror=invalid-pp-token",
    # An endless loop is a time-out to report, not undefined behavior.
    "-fno-finite-loops",
)  # fmt: skip
_KIND_FLAGS = {
    # Unique symbols would tie the statics of all loaded kernels together and keep them loaded for ever.
    # Without tracking of macros an error stands where the macro is used.
    "gcc": (
        "-fno-gnu-unique", "-ftrack-macro-expansion=0", "-fdiagnostics-color=never", "-fno-diagnostics-show-option",
        "-fno-diagnostics-show-caret",
        # Columns count bytes: it takes tabs for eight.
        "-ftabstop=1",
        # Arrays may overlap: loops ask at run time, also those of stencils with many neighbors.
        "--param=vect-max-version-for-alias-checks=200",
        # For some processors it leaves sums in loops uncontracted, and then only where they are not made vectors.
        "--param=avoid-fma-max-bits=0",
        # g++ 12 takes the wrong ones out of 256 parameters and more.
        "-fno-ipa-sra",
    ),
    "clang": _CLANG_FLAGS,
    # It traps undefined behavior, and takes optimization for a release without assertions.
    "zig": (*_CLANG_FLAGS, "-fno-sanitize=all", "-UNDEBUG"),
}  # fmt: skip
_MACHINE_FLAGS = {
    # A fiber switch pushes on the stack of the function it is inlined in.
    "x86_64": ("-mno-red-zone", "-fcf-protection=none"),
    "aarch64": (),
}
#: Processors that have this do not slow down while they use vectors of 512 bits, which compilers fear.
_FULL_SPEED_AT_512_BITS = "avx512_vbmi2"
_X86_LEVELS = (
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    ("x86-64-v3", {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}),
    ("x86-64-v2", {"cx16", "popcnt", "sse4_1", "sse4_2", "ssse3"}),
)


class Toolchain(NamedTuple):
    """Call one host C++ compiler.

    Attributes
    ----------
    command : tuple of str
        What starts it.
    kind : str
        "gcc", "clang" or "zig".
    version : str
        First line of what it says of itself.
    stamp : str
        Size and time of its file, which tell one build of it from another.
    """

    command: tuple[str, ...]
    kind: str
    version: str
    stamp: str = ""

    def fingerprint(self) -> str:
        """Return what makes its output differ from another compiler's on another processor."""
        call = f"{' '.join(self.command)}; {self.stamp}"
        return f"{self.kind}; {self.version}; {call}; {platform.machine()}; {cpu_features()}"

    def compile_flags(self, options: CompileOptions) -> list[str]:
        """Translate options to flags; include folders and macros are the caller's."""
        flags = [*_COMMON_FLAGS, *_KIND_FLAGS[self.kind], *_MACHINE_FLAGS.get(platform.machine(), ())]
        flags.append(f"-std={(options.std or 'c++17').replace('c++', 'gnu++')}")
        flags.append("-O0" if options.debug else f"-O{options.optimization or '3'}")
        flags.append("-march=native")
        contracts = options.contraction or options.fast_math
        flags.append(f"-ffp-contract={'fast' if contracts else 'off'}")
        if self.kind == "gcc" and not contracts:
            # GCC 12 makes one operation of products with sums and differences in turn, whatever it is told.
            flags.append("-fno-tree-vectorize")
        if options.debug:
            flags.append("-g")
        elif options.line_info or config.debug():
            flags.append("-g1")
        if options.fast_math:
            # The linker must not see it: it would switch the loading thread to flushing subnormals.
            flags += ["-freciprocal-math", "-fno-signed-zeros", "-D__USE_FAST_MATH__=1"]
        return flags

    def wide_vector_flags(self) -> list[str]:
        """Return the flags for code that is all vector loops; fibers are better off without."""
        return ["-mprefer-vector-width=512"] if _FULL_SPEED_AT_512_BITS in _feature_set() else []

    def own_loop_flags(self) -> list[str]:
        """Return the flags for loops of ours, in which lanes are no memory to copy.

        GCC copies a vector by two halves, for whose sum a processor waits long when it loads both at once.
        """
        return ["-fno-tree-loop-distribute-patterns"] if self.kind == "gcc" else []

    def link_flags(self) -> list[str]:
        """Return the flags that make a shared library of one translation unit.

        The C++ library is left out, and the C library's symbols are found in the process that loads
        the result, which makes linking a few milliseconds faster. The mathematical library is named
        for the versions of its symbols: without them the loader takes the oldest, which are slower.
        """
        libraries = [] if self.kind == "zig" else ["-lm", "-lgcc"]
        return ["-shared", "-Wl,-Bsymbolic", "-nostdlib", *libraries]

    def run(
        self, arguments: Sequence[str], folder: Path, meanwhile: Callable[[], None] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the compiler in a folder; what it started ends with it at the latest after `TIME_LIMIT`.

        Parameters
        ----------
        arguments : sequence of str
        folder : pathlib.Path
        meanwhile : callable, optional
            Is called while the compiler runs.

        Raises
        ------
        CompilerFailed
            It came to no answer: not started, not done in time, or ended by a signal.
        """
        return calling.call(
            [*self.command, *arguments], folder, self._environment(folder), TIME_LIMIT, meanwhile
        )

    def _environment(self, folder: Path) -> dict[str, str]:
        # Without a PATH a compiler does not find its linker where it was found itself.
        environment = {"PATH": os.defpath, **os.environ, "LC_ALL": "C", "TMPDIR": str(folder)}
        if self.kind == "zig":
            # What it builds once for all kernels is kept, what belongs to one kernel is not.
            kept = _store.private_folder("zig") or folder
            environment.setdefault("ZIG_GLOBAL_CACHE_DIR", str(kept))
            environment["ZIG_LOCAL_CACHE_DIR"] = str(folder / "zig")
        return environment


def find_toolchain() -> Toolchain:
    """Return the compiler to use: ``GRIDSTRIDE_CXX``, else g++, clang++, c++, else the ziglang package.

    Raises
    ------
    TargetUnavailable
        There is none, or the one that ``GRIDSTRIDE_CXX`` names does not run.
    """
    return _find(config.text("GRIDSTRIDE_CXX"), os.environ.get("PATH", os.defpath))


@cache
def _find(chosen: str, search_path: str) -> Toolchain:
    if chosen:
        words = _words(chosen)
        program = shutil.which(words[0], path=search_path)
        if program is None:
            raise TargetUnavailable("cpu", f"GRIDSTRIDE_CXX names {words[0]!r}, which is no program", _REMEDY)
        return _identify((program, *words[1:]))
    for name in _ON_PATH:
        program = shutil.which(name, path=search_path)
        if program:
            try:
                return _identify((program,))
            except TargetUnavailable:  # a broken one must not hide the next
                continue
    zig = _packaged_zig()
    if zig:
        return _identify((zig, "c++"))
    reason = "no C++ compiler was found (g++, clang++ or c++ on PATH, or the ziglang package)"
    raise TargetUnavailable("cpu", reason, _REMEDY)


def _words(chosen: str) -> list[str]:
    import shlex

    try:
        words = shlex.split(chosen)
    except ValueError as error:  # a quotation mark without its partner
        raise TargetUnavailable(
            "cpu", f"GRIDSTRIDE_CXX={chosen!r} cannot be read: {error}", _REMEDY
        ) from None
    return words or [""]


def _packaged_zig() -> str | None:
    import importlib.util

    found = importlib.util.find_spec("ziglang")
    folders = found.submodule_search_locations if found else None
    for folder in folders or ():
        program = Path(folder) / "zig"
        if program.exists():
            return str(program)
    return None


def _identify(command: tuple[str, ...]) -> Toolchain:
    """Ask a compiler what it is, unless it was asked before."""
    try:
        stamp = _stamp(command[0])
    except OSError as error:
        raise TargetUnavailable(
            "cpu", f"the compiler {' '.join(command)} is gone: {error}", _REMEDY
        ) from error
    key = hashlib.sha256(repr((command, os.path.realpath(command[0]), stamp)).encode()).hexdigest()
    known = _store.read(key, _STORED_AS, "compiler")
    if known is not None:
        kind, _, version = known.decode().partition("\n")
        return Toolchain(command, kind, version, stamp)
    found = _ask(command, stamp)
    _store.write(key, _STORED_AS, "compiler", f"{found.kind}\n{found.version}".encode())
    return found


def _stamp(program: str) -> str:
    status = os.stat(os.path.realpath(program))
    return f"{status.st_size} {status.st_mtime_ns}"


def _ask(command: tuple[str, ...], stamp: str) -> Toolchain:
    try:
        environment = {**os.environ, "LC_ALL": "C"}
        answer = subprocess.run(
            [*command, "--version"], check=False, capture_output=True, text=True, errors="replace",
            stdin=subprocess.DEVNULL, timeout=60, env=environment,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise TargetUnavailable(
            "cpu", f"the compiler {' '.join(command)} does not run: {error}", _REMEDY
        ) from error
    if answer.returncode != 0 or not answer.stdout.strip():
        reason = f"{' '.join(command)} --version failed: {(answer.stderr or answer.stdout).strip()[:200]}"
        raise TargetUnavailable("cpu", reason, _REMEDY)
    version = answer.stdout.strip().splitlines()[0]
    if any(Path(word).name.startswith("zig") for word in command):
        return Toolchain(command, "zig", version, stamp)
    return Toolchain(command, "clang" if "clang" in answer.stdout.lower() else "gcc", version, stamp)


@cache
def cpu_features() -> str:
    """Return a digest of the processor's features, which shape code made for this processor."""
    return hashlib.sha256(" ".join(sorted(_feature_set())).encode()).hexdigest()[:16]


@cache
def host_arch() -> str:
    """Return the level of this processor, such as ``x86-64-v3`` or ``aarch64``."""
    machine = platform.machine()
    if machine != "x86_64":
        return machine
    features = _feature_set()
    return next((level for level, needed in _X86_LEVELS if needed <= features), "x86-64")


@cache
def _feature_set() -> frozenset[str]:
    try:
        with open("/proc/cpuinfo") as file:
            text = file.read(16384)  # the first processor's lines
    except OSError:
        return frozenset({platform.processor()})
    match = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    model = re.findall(r"^(?:cpu family|model|CPU implementer|CPU part)\s*:\s*(\S+)", text, re.MULTILINE)
    return frozenset([*(match[1].split() if match else ()), *(f"model:{value}" for value in model[:4])])
