"""From a program to object code: one call of the host compiler for an ordinary kernel."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from gridstride import _syntax
from gridstride._syntax import lexical
from gridstride.errors import CompileError, CUDAError
from gridstride.targets.base import FunctionRecord, ObjectCode, Program, TierObstacle
from gridstride.targets.cpu import (
    abi,
    calling,
    columns,
    core_library,
    diagnostics,
    host,
    implicit,
    library,
    prelude,
    rewrite,
    signatures,
    toolchain,
    unit,
)
from gridstride.targets.cpu.diagnostics import Diagnostic
from gridstride.targets.cpu.edits import Refusal, Rewritten
from gridstride.targets.cpu.flat import flatten
from gridstride.targets.cpu.shared import SharedLayout

# What the host has in its headers, a device has not.
_OWN_HEADERS_ONLY = ("-nostdinc", "-nostdinc++")
_ENTRY_HEADER = os.path.join("gridstride_cpu", "entry.h")
#: Of a log whose errors are not understood, so much is part of the message.
_SHOWN_LINES, _SHOWN_COLUMNS = 20, 300
_ROOM = "Make room, or let TMPDIR name another folder"
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"\n]+)[>\"]", re.MULTILINE)
#: The tiers of this target.
FLAT, FIBERS = "flat", "fibers"
_UNCLOSED = re.compile(r"^(.+):(\d+):(\d+): note: to match this '\{'", re.MULTILINE)
_HAS_INCLUDE = re.compile(rb"\b__has_include\b")
_MARKER = re.compile(rb'^# (\d+) "((?:[^"\\]|\\.)*)"(.*)$', re.MULTILINE)


def compile_program(program: Program) -> ObjectCode:
    """Compile a program; raise `CompileError` that points at the user's lines."""
    compiler = toolchain.find_toolchain()
    try:
        with tempfile.TemporaryDirectory(prefix="gridstride-", ignore_cleanup_errors=True) as folder:
            compilation = _Compilation(program, compiler, Path(folder))
            try:
                return compilation.run()
            finally:
                compilation.wait_for_runtime()
    except OSError as error:
        raise CompileError(
            f"{program.name}: the compiler's temporary files cannot be kept: {error}. {_ROOM}",
            name=program.name,
            source=program.text,
            command=shlex.join(compiler.command),
        ) from error


def list_program(program: Program, form: str) -> str:
    """Return a program as the compiler gets it ("source") or makes it ("assembly")."""
    compiler = toolchain.find_toolchain()
    with tempfile.TemporaryDirectory(prefix="gridstride-") as folder:
        return _Compilation(program, compiler, Path(folder)).listing(form)


class _Region(NamedTuple):
    """A run of lines of a preprocessed text: bytes from start to end come from a file, from a line on."""

    start: int
    end: int
    path: str
    line: int
    system: bool


class _Compilation:
    """One program on its way through the compiler, in a folder of its own.

    Attributes
    ----------
    rewritten : Rewritten or None
    texts : list of str
        What declarations are looked for in: the user's text, and the same with its headers.
    flat_names : dict of kernel to name of its flat form
    obstacles : dict of kernel to TierObstacle
        What kept the others from a flat form.
    """

    def __init__(self, program: Program, compiler: toolchain.Toolchain, folder: Path) -> None:
        self.program = program
        self.compiler = compiler
        self.folder = folder
        self.started = time.time_ns()
        self.commands: list[str] = []
        self.log = ""
        self.rewritten: Rewritten | None = None
        self._expanded = b""  # what is compiled of a preprocessed text
        self.flat_names: dict[str, str] = {}
        self.obstacles: dict[str, TierObstacle] = {}
        self._takes_flat_forms = program.tier != FIBERS
        self._takes_whole_prelude = False
        self._headers = prelude.WHOLE
        self.texts: list[str] = []
        self._converts = False
        self._building: threading.Thread | None = None
        self._core_folders: tuple[Path, ...] = ()

    def run(self) -> ObjectCode:
        try:
            source = self._source()
            code = self._compile(source)
        except CompileError as error:
            if not self.flat_names and self._headers == prelude.WHOLE:
                raise
            self._simplify(error)
            source = self._source()
            code = self._compile(source)
        if self._converts:
            code = self._saturating(source, code)
        if not self.program.options.warnings:
            self.log = ""
        return self._object_code(code)

    def listing(self, form: str) -> str:
        """Return the text that is compiled, or the assembly it becomes."""
        source = self._source()
        if form == "assembly":
            arguments = [*self._flags(), "-fno-asynchronous-unwind-tables", "-x", self._language(source)]
            self._call([*arguments, source.name, "-S", "-o", "listing"])
            source = self.folder / "listing"
        return source.read_text(errors="replace")

    def _source(self) -> Path:
        """Write what is compiled."""
        self._write_headers()
        self._find_core_library()
        self.texts = [self.program.text]
        with_options = "\n".join([*unit.option_lines(self.program), self.program.text])
        if self._reads_user_headers() or rewrite.needs_preprocessing(with_options.encode()):
            return self._preprocessed()
        return self._direct()

    # ---- the two ways to a text without __shared__ ----

    def _direct(self) -> Path:
        text = self._without_shared()
        if self._takes_flat_forms:
            text = self._flattened(text)
        if not self._takes_whole_prelude:
            self._headers = unit.needed_headers(self.program, text.decode())
        whole = unit.translation_unit(self.program, text.decode(), self.flat_names, self._headers)
        return self._write("program.cpp", whole.encode())

    def _flattened(self, text: bytes) -> bytes:
        macros = [(name, value or "1") for name, value in self.program.options.defines]
        path = unit.path_of(self.program)
        try:
            flattened = flatten(text, self.program.kernels, macros)
        except RecursionError:
            reason = "it is nested too deeply to be understood"
            self.obstacles = {kernel: TierObstacle(FLAT, reason, path, 0) for kernel in self.program.kernels}
            return text
        self.flat_names = flattened.names
        self.obstacles = {
            kernel: TierObstacle(FLAT, obstacle.reason, path, lexical.line_of(text, obstacle.position))
            for kernel, obstacle in flattened.obstacles.items()
        }
        return flattened.text.text

    def _simplify(self, error: CompileError) -> None:
        """Go on with the kernels themselves, where a flat form may be refused, and with all that messages name."""
        said = next((item.text for item in diagnostics.parse(error.log) if item.kind != "warning"), "")
        reason = f"the compiler refuses its flat form: {said}"
        path = unit.path_of(self.program)
        self.obstacles |= {kernel: TierObstacle(FLAT, reason, path, 0) for kernel in self.flat_names}
        self.flat_names = {}
        self._takes_flat_forms = False
        self._takes_whole_prelude = True
        self._headers = prelude.WHOLE
        self.log = ""

    def _without_shared(self) -> bytes:
        text = self.program.text.encode()
        try:
            self.rewritten = rewrite.rewrite(text, self._kernel_names())
        except Refusal as refusal:
            raise self._refused(
                refusal, unit.path_of(self.program), *_line_and_column(text, refusal.position)
            ) from None
        return self.rewritten.text

    def _preprocessed(self) -> Path:
        whole = unit.translation_unit(self.program, self.program.text, headers=(*prelude.WHOLE, "ptx.h"))
        source = self._write("whole.cpp", whole.encode())
        self._call([*self._flags(), "-x", "c++", "-E", source.name, "-o", "whole.ii", *_dependency_flags()])
        text = self._output("whole.ii")
        regions = _regions(text)
        view = self._view(text, regions)
        self.texts.append(view.decode(errors="replace"))
        try:
            rewritten = rewrite.rewrite(text, self._kernel_names(), view)
        except Refusal as refusal:
            region = next(region for region in regions if region.start <= refusal.position < region.end)
            line, column = _line_and_column(text[region.start :], refusal.position - region.start)
            raise self._refused(refusal, region.path, region.line + line - 1, column) from None
        self._expanded = rewritten.text
        return self._write("program.ii", rewritten.text)

    def _kernel_names(self) -> set[str]:
        """Return the names that stand for kernels and for nothing else."""
        functions = _syntax.functions(self.program.text) if "__shared__" in self.program.text else ()
        others = {function.name for function in functions if not function.is_kernel}
        return {function.name for function in functions if function.is_kernel} - others

    def _view(self, text: bytes, regions: list[_Region]) -> bytes:
        """Blank out what is not the user's."""
        view = bytearray(lexical.blank(text))
        for region in regions:
            if _is_the_users(region):
                view[region.start : region.end] = text[region.start : region.end]
        return bytes(view)

    # ---- calling the compiler ----

    def _flags(self) -> list[str]:
        options = self.program.options
        flags = [*self.compiler.compile_flags(options), *_OWN_HEADERS_ONLY]
        if self.flat_names.keys() >= set(self.program.kernels):
            flags += self.compiler.wide_vector_flags()
        flags += [unit.define("-D{}={}", *item) for item in options.defines if unit.is_for_headers(item[0])]
        flags += [f"-U{name}" for name in options.undefines if unit.is_for_headers(name)]
        folders = [
            self.folder / "headers",
            *library.INCLUDE_FOLDERS,
            *map(_absolute, options.include_dirs),
        ]
        flags += [f"-I{folder}" for folder in folders]
        flags += [f"-isystem{folder}" for folder in self._core_folders]
        if os.path.isfile(self.program.path):
            flags += ["-iquote", os.path.dirname(_absolute(self.program.path))]
        return flags

    def _compile(self, source: Path) -> bytes:
        preprocessed = source.suffix == ".ii"
        arguments = [*self._flags(), "-x", self._language(source)]
        arguments += [] if self.compiler.kind == "zig" else ["-pipe"]
        # Those of a text that has its calls are left.
        arguments += [implicit.WARNING] if self.compiler.kind == "gcc" and not self._converts else []
        arguments += [
            source.name,
            "-o",
            "kernel.so",
            *self.compiler.link_flags(),
        ]
        self._call(arguments if preprocessed else [*arguments, *_dependency_flags()], self._prepare_launch)
        return self._output("kernel.so")

    def _language(self, source: Path) -> str:
        """Return what a source is; zig knows no name for what has been preprocessed, which is C++ as well."""
        is_preprocessed = source.suffix == ".ii" and self.compiler.kind != "zig"
        return "c++-cpp-output" if is_preprocessed else "c++"

    def _saturating(self, source: Path, code: bytes) -> bytes:
        """Compile once more, with conversions to integers that nobody wrote as the device makes them.

        Where that cannot be, as for a bit field, they stay as the processor makes them.
        """
        log = self.log
        try:
            text = self._with_saturation(source)
            return self._compile(self._write("saturating.ii", text)) if text else code
        except CompileError:
            self.log = log
            return code

    def _with_saturation(self, source: Path) -> bytes:
        """Return the preprocessed text with these conversions as calls; empty where none is of the user's."""
        text = source.read_bytes()
        if source.suffix != ".ii":
            calls = ["-include", "gridstride_cpu/casts.h"]
            self._call([*self._flags(), *calls, "-x", "c++", "-E", source.name, "-o", "expanded.ii"])
            text = self._output("expanded.ii")
        # Without markers, lines are those of this text.
        probe = self._write("probe.ii", _MARKER.sub(b"", text))
        arguments = [*self._flags(), *implicit.PROBE, "-x", "c++-cpp-output", probe.name]
        said = self.compiler.run(arguments, self.folder, None).stdout
        places = [(region.start, region.end) for region in _regions(text) if _is_the_users(region)]
        edits = implicit.edits(text, said, places)
        return Rewritten(text, edits).text if edits else b""

    def _prepare_launch(self) -> None:
        """Do beside the compiler what comes after it: the runtime, and parsing for the parameters' names."""
        if not library.runtime_is_loaded():
            self._building = threading.Thread(target=_build_runtime_quietly)
            self._building.start()
        for text in self.texts:
            _syntax.functions(text)

    def wait_for_runtime(self) -> None:
        """Wait for what was started beside the compiler."""
        if self._building is not None:
            self._building.join()

    def _call(self, arguments: list[str], meanwhile: Callable[[], None] | None = None) -> None:
        try:
            done = self.compiler.run(arguments, self.folder, meanwhile)
        except calling.CompilerFailed as failure:
            self.commands.append(failure.command)
            self.log += failure.log
            raise self._error(f"{failure}{_tail(failure.log)}") from failure.__cause__
        self.commands.append(shlex.join(done.args))
        self._converts |= implicit.told_of(done.stdout)
        self.log += implicit.without(done.stdout)
        if done.returncode != 0:
            raise self._rejected()

    def _output(self, name: str) -> bytes:
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            raise self._error(f"the compiler reported success and wrote no {name}{_tail(self.log)}") from None

    # ---- what the compiler said ----

    def _object_code(self, code: bytes) -> ObjectCode:
        try:
            kernel_library = library.KernelLibrary(code, self.program.name)
        except CUDAError as error:
            raise self._error(f"what the compiler wrote is no kernel library: {error}") from error
        try:
            self._check_kernels()
            self._check_shared(kernel_library)
            functions = {
                name: self._record(name, kernel) for name, kernel in kernel_library.kernels().items()
            }
            globals_ = {name: name for name in kernel_library.globals()}
            constants = kernel_library.constants()
        finally:
            kernel_library.close()
        return ObjectCode(
            "shared object", code, functions, globals_, constants, self._dependencies(), self.log
        )

    def _record(self, name: str, kernel: abi.Kernel) -> FunctionRecord:
        signature = signatures.signature(kernel, self._parameter_names(name, kernel))
        obstacle = self.obstacles.get(name)
        tier = FLAT if name in self.flat_names else FIBERS
        return FunctionRecord(name, signature, tier, (obstacle,) if obstacle else ())

    def _parameter_names(self, name: str, kernel: abi.Kernel) -> list[str]:
        """Return the names of a kernel's parameters as far as its declaration is found."""
        wanted = (_syntax.normalize_name(name), _syntax.base_name(name))
        for text in self.texts:
            for function in _syntax.functions(text):
                if function.name in wanted and len(function.parameters) == kernel.parameter_count:
                    return [parameter.name for parameter in function.parameters]
        return []

    def _dependencies(self) -> tuple[tuple[str, str], ...] | None:
        """Return the files of the user's that were read; None where it cannot be told what was read of them."""
        digests = {}
        texts = [self.program.text.encode(), *(text.encode() for _, text in self.program.headers)]
        for path in self._files_read():
            try:
                content = Path(path).read_bytes()
                changed = os.stat(path).st_mtime_ns
            except OSError:
                return None
            if changed >= self.started:
                return None  # perhaps after the compiler had read it
            digests[path] = hashlib.sha256(content).hexdigest()
            texts.append(content)
        if any(_HAS_INCLUDE.search(lexical.mask(text)) for text in texts):
            return None  # a header that appears later would change the text
        return tuple(sorted({**dict.fromkeys(self._shadows(list(digests)), ""), **digests}.items()))

    def _files_read(self) -> Iterator[str]:
        text = os.fsdecode(self._output("program.d"))
        reads_core_library = False
        for name in re.findall(r"(?:\\.|[^\s\\])+", text.partition(":")[2].replace("\\\n", " ")):
            path = os.path.normpath(self.folder / re.sub(r"\\(.)", r"\1", name).replace("$$", "$"))
            if any(Path(path).is_relative_to(place) for place in self._core_folders):
                reads_core_library = True
            elif not _is_ours(path) and not path.startswith(f"{self.folder}{os.sep}"):
                yield path
        if reads_core_library:
            yield str(core_library.version_header())

    def _shadows(self, paths: list[str]) -> Iterator[str]:
        """Yield files that would be read instead of these if they were there."""
        folders = self._user_folders()
        beside = {os.path.dirname(path) for path in paths}
        for path in paths:
            for number, folder in enumerate(folders):
                if path.startswith(folder + os.sep):
                    name = os.path.relpath(path, folder)
                    places = {os.path.join(place, name) for place in {*folders[:number], *beside}}
                    yield from (place for place in places if not os.path.exists(place))

    def _rejected(self) -> CompileError:
        errors = [item for item in diagnostics.parse(self.log) if item.kind != "warning"]
        unclosed = _UNCLOSED.search(self.log)
        if (
            unclosed
            and errors[0].path == unit.REQUESTS
            and any("expected '}'" in item.text for item in errors)
        ):
            place = Diagnostic(
                unclosed[1], int(unclosed[2]), int(unclosed[3]), "error", "this '{' is not closed"
            )
            errors = [place]
        asked = re.search(re.escape(unit.REQUESTS) + r":(\d+):", self.log)
        if "No space left on device" in self.log:
            return self._error(f"there is no room for what the compiler writes{_tail(self.log)}\n{_ROOM}")
        if asked and errors and (errors[0].path == unit.REQUESTS or errors[0].path.endswith(_ENTRY_HEADER)):
            return self._error(self._missing(int(asked[1]), errors[0].text))
        shown = [self._located(item) for item in errors if item.path != unit.REQUESTS] or errors
        if not shown:
            return self._error(f"{self.compiler.version} failed on the program{_tail(self.log)}")
        described = diagnostics.describe(shown, self._source_line)
        return self._error(f"{self.compiler.version} rejected the program\n{described}")

    def _missing(self, line: int, reason: str) -> str:
        """Say that the name asked for in a line is not there, and what is."""
        kinds = [("kernel", name) for name in self.program.kernels]
        kinds += [("variable", name) for name in self.program.globals]
        kinds += [("constant", name) for name in self.program.constants]
        kind, name = kinds[line - 1] if line <= len(kinds) else ("name", "")
        if kind == "kernel":
            return _missing_kernel(name, reason, _syntax.functions(self.program.text))
        known = [item.name for item in _syntax.globals_(self.program.text)] if kind == "variable" else []
        there = f"; the text declares: {', '.join(known)}" if known else ""
        return f"there is no {kind} {name!r}{there} ({reason})"

    def _check_kernels(self) -> None:
        """Refuse device functions that were asked for as kernels, which the compiler cannot tell apart."""
        functions = _syntax.functions(self.program.text) if self.program.kernels else ()
        devices = {function.name for function in functions if function.is_device}
        devices -= {function.name for function in functions if function.is_kernel}
        for name in self.program.kernels:
            if _syntax.base_name(name) in devices:
                raise self._error(_missing_kernel(name, "", functions))

    def _check_shared(self, kernel_library: library.KernelLibrary) -> None:
        """Refuse kernels with more static shared memory than a device gives them."""
        layout = SharedLayout()
        layout.place(kernel_library.shared_slots())
        for name in self.program.kernels:
            size = layout.bytes_of(name) - layout.common
            if size > host.SHARED_MEMORY_PER_BLOCK:
                raise self._error(
                    f"kernel {name!r} declares {size} bytes of __shared__ memory, and "
                    f"{host.SHARED_MEMORY_PER_BLOCK} is the most; declare it extern and pass shared_mem"
                )

    def _located(self, error: Diagnostic) -> Diagnostic:
        """Return an error at its place in the user's text rather than the rewritten one."""
        if self._expanded:
            number = lexical.physical_line(self._expanded, "", error.path, error.line)
            compiled = self._expanded.split(b"\n")[number - 1] if number else b""
            users = self._source_line(error).encode()
            return error._replace(column=columns.in_the_users_line(error.column, compiled, users))
        if self.rewritten is None or not self.rewritten.edits or error.path != unit.path_of(self.program):
            return error
        lines = self.rewritten.text.split(b"\n")
        physical = lexical.physical_line(self.rewritten.text, error.path, error.path, error.line)
        if physical is None:
            return error
        position = sum(len(line) + 1 for line in lines[: physical - 1]) + max(error.column - 1, 0)
        _, column = _line_and_column(self.program.text.encode(), self.rewritten.origin(position))
        return error._replace(column=column)

    def _source_line(self, error: Diagnostic) -> str:
        headers = dict(self.program.headers)
        name = os.path.relpath(self.folder / error.path, self.folder / "headers")
        text, own_path = self.program.text, unit.path_of(self.program)
        line = lexical.physical_line(text.encode(), own_path, error.path, error.line)
        if line is None:
            if name in headers:
                text = headers[name]
            else:
                try:
                    text = (self.folder / error.path).read_text(errors="replace")
                except OSError:
                    return ""
            line = lexical.physical_line(text.encode(), error.path, error.path, error.line) or 0
        lines = text.split("\n")
        return lines[line - 1] if 0 < line <= len(lines) else ""

    def _refused(self, refusal: Refusal, path: str, line: int, column: int) -> CompileError:
        error = Diagnostic(path, line, column, "error", str(refusal))
        return self._error(diagnostics.show(error, self._source_line(error)))

    def _error(self, message: str) -> CompileError:
        name = self.program.name
        return CompileError(
            f"{name}: {message}",
            name=name,
            log=self.log,
            source=self.program.text,
            command=self.commands[-1] if self.commands else shlex.join(self.compiler.command),
        )

    # ---- headers ----

    def _write_headers(self) -> None:
        for name, text in self.program.headers:
            path = Path(os.path.normpath(self.folder / "headers" / name))
            if not path.is_relative_to(self.folder / "headers"):
                raise self._error(f"the header name {name!r} leaves the folder of headers")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def _find_core_library(self) -> None:
        """Show the compiler the headers of the core libraries where the text or what it includes may ask for them."""
        text = self.program.text.encode()
        named = [self.program.text, *(text for _, text in self.program.headers)]
        named += [f"#include <{name}>" for name in self.program.includes]
        if not (any(map(core_library.is_named, named)) or self._reads_user_headers()):
            return
        try:
            core_library.refuse_others(text, self._user_folders())
        except Refusal as refusal:
            place = unit.path_of(self.program), *_line_and_column(text, refusal.position)
            raise self._refused(refusal, *place) from None
        self._core_folders = core_library.write_wrappers(self.folder / "core")

    def _reads_user_headers(self) -> bool:
        """Return whether the text includes files of the user's, in which anything may stand."""
        given = {name for name, _ in self.program.headers}
        folders = self._user_folders()
        names = [*self.program.includes, *(match[2] for match in _INCLUDE.finditer(self.program.text))]
        return any(
            name in given
            or (
                not _resolves_to_ours(name)
                and any(os.path.isfile(os.path.join(folder, name)) for folder in folders)
            )
            for name in names
        )

    def _user_folders(self) -> list[str]:
        """Return the folders of the user's in which headers are looked for."""
        beside = [os.path.dirname(_absolute(self.program.path))] if self.program.path else []
        return [*beside, *map(_absolute, self.program.options.include_dirs)]

    def _write(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content)
        return path


def _tail(log: str) -> str:
    """Return the last lines of a log for a message, on lines of their own."""
    lines = log.rstrip().splitlines()[-_SHOWN_LINES:]
    return "".join(f"\n{line[:_SHOWN_COLUMNS]}" for line in lines)


def _missing_kernel(name: str, reason: str, functions: tuple[_syntax.FunctionDeclaration, ...]) -> str:
    base = _syntax.base_name(name)
    same = [function for function in functions if function.name == base]
    kernels = sorted(
        {
            function.name + ("<...>" if function.is_template else "")
            for function in functions
            if function.is_kernel
        }
    )
    there = (
        f"the text defines: {', '.join(kernels)}" if kernels else "the text defines no __global__ function"
    )
    if same and not any(function.is_kernel for function in same):
        return f"{name!r} is a function but not a kernel (__global__ void); {there}"
    if same and same[0].is_template and "<" not in name:
        return f"{name!r} is a template: ask for an instance, for example {name}<float> ({reason})"
    if same:
        return f"the kernel {name!r} cannot be taken: {reason}"
    return f"there is no kernel {name!r}; {there}"


def _regions(text: bytes) -> list[_Region]:
    markers = list(_MARKER.finditer(text))
    ends = [marker.start() for marker in markers[1:]] + [len(text)]
    return [
        _Region(
            marker.end() + 1,
            end,
            re.sub(r"\\(.)", r"\1", marker[2].decode(errors="replace")),
            int(marker[1]),
            b" 3" in marker[3],
        )
        for marker, end in zip(markers, ends, strict=True)
    ]


def _is_the_users(region: _Region) -> bool:
    return not region.system and not region.path.startswith("<") and not _is_ours(region.path)


def _is_ours(path: str) -> bool:
    return any(path.startswith(f"{folder}{os.sep}") for folder in library.INCLUDE_FOLDERS)


def _resolves_to_ours(name: str) -> bool:
    return any((folder / name).is_file() for folder in library.INCLUDE_FOLDERS)


def _dependency_flags() -> list[str]:
    # All headers, because one that calls itself a system header is left out with what it includes otherwise.
    return ["-MD", "-MF", "program.d"]


def _absolute(path: str) -> str:
    """Return a path from the root; as it is where the current folder is gone, in which nothing can be found."""
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        return path


def _line_and_column(text: bytes, position: int) -> tuple[int, int]:
    return lexical.line_of(text, position), position - (text.rfind(b"\n", 0, position) + 1) + 1


def _build_runtime_quietly() -> None:
    try:
        library.runtime()
    except Exception:  # whoever launches first meets it again and reports it
        return
