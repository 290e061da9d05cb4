"""From a program to object code: one call of the host compiler for an ordinary kernel."""

from __future__ import annotations

import os
import shlex
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from gridstride import _syntax
from gridstride._syntax import lexical
from gridstride.errors import CompileError
from gridstride.targets.base import ObjectCode, Program, TierObstacle
from gridstride.targets.cpu import (
    account,
    calling,
    core_library,
    diagnostics,
    implicit,
    library,
    object_code,
    passages,
    prelude,
    preprocessed,
    rewrite,
    toolchain,
    unit,
    user_files,
)
from gridstride.targets.cpu.account import line_and_column
from gridstride.targets.cpu.edits import Refusal, Rewritten
from gridstride.targets.cpu.flat import flatten
from gridstride.targets.cpu.object_code import FIBERS, FLAT

# What the host has in its headers, a device has not.
_OWN_HEADERS_ONLY = ("-nostdinc", "-nostdinc++")


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
            f"{program.name}: the compiler's temporary files cannot be kept: {error}. {account.ROOM}",
            name=program.name,
            source=program.text,
            command=shlex.join(compiler.command),
        ) from error


def list_program(program: Program, form: str) -> str:
    """Return a program as the compiler gets it ("source") or makes it ("assembly")."""
    compiler = toolchain.find_toolchain()
    with tempfile.TemporaryDirectory(prefix="gridstride-") as folder:
        return _Compilation(program, compiler, Path(folder)).listing(form)


class _Compilation:
    """One program on its way through the compiler, in a folder of its own.

    Attributes
    ----------
    account : Account
        Of what the compiler was asked and said.
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
        self.account = account.Account(program, compiler, folder)
        self.flat_names: dict[str, str] = {}
        self.obstacles: dict[str, TierObstacle] = {}
        self._takes_flat_forms = program.tier != FIBERS
        self._takes_whole_prelude = False
        self._headers = prelude.WHOLE
        self.texts: list[str] = []
        self._converts = False
        self._building: threading.Thread | None = None
        self._links = bool(program.linked)
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
            self.account.log = ""
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
        if user_files.has_headers(self.program) or rewrite.needs_preprocessing(with_options.encode()):
            return self._preprocessed()
        return self._direct()

    def _object_code(self, code: bytes) -> ObjectCode:
        made = object_code.read(code, self.account, self.texts, self.flat_names, self.obstacles)
        listing = self._output(user_files.LISTING)
        files = user_files.dependencies(self.program, listing, self.folder, self._core_folders, self.started)
        return made._replace(dependencies=files)

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
        self.account.log = ""

    def _without_shared(self) -> bytes:
        text = self.program.text.encode()
        try:
            rewritten = rewrite.rewrite(text, self._kernel_names())
        except Refusal as refusal:
            raise self.account.refused_in_text(refusal) from None
        self.account.rewritten = rewritten
        return rewritten.text

    def _preprocessed(self) -> Path:
        whole = unit.translation_unit(self.program, self.program.text, headers=(*prelude.WHOLE, "ptx.h"))
        source = self._write("whole.cpp", whole.encode())
        self._call(
            [*self._flags(), "-x", "c++", "-E", source.name, "-o", "whole.ii", *user_files.LISTING_FLAGS]
        )
        text = self._output("whole.ii")
        regions = preprocessed.regions(text)
        view = preprocessed.users_part(text, regions)
        self.texts.append(view.decode(errors="replace"))
        try:
            rewritten = rewrite.rewrite(text, self._kernel_names(), view)
        except Refusal as refusal:
            region = next(region for region in regions if region.start <= refusal.position < region.end)
            line, column = line_and_column(text[region.start :], refusal.position - region.start)
            raise self.account.refused(refusal, region.path, region.line + line - 1, column) from None
        self.account.expanded = rewritten.text
        return self._write("program.ii", rewritten.text)

    def _kernel_names(self) -> set[str]:
        """Return the names that stand for kernels and for nothing else."""
        functions = _syntax.functions(self.program.text) if "__shared__" in self.program.text else ()
        others = {function.name for function in functions if not function.is_kernel}
        return {function.name for function in functions if function.is_kernel} - others

    # ---- calling the compiler ----

    def _flags(self) -> list[str]:
        options = self.program.options
        flags = [*self.compiler.compile_flags(options), *_OWN_HEADERS_ONLY]
        if self.flat_names.keys() >= set(self.program.kernels):
            flags += self.compiler.wide_vector_flags()
        if self.program.includes:
            flags += self.compiler.own_loop_flags()
        flags += [f"-D{passages.MACRO}"] if self._links else []
        flags += [unit.define("-D{}={}", *item) for item in options.defines if unit.is_for_headers(item[0])]
        flags += [f"-U{name}" for name in options.undefines if unit.is_for_headers(name)]
        folders = [
            self.folder / "headers",
            *library.INCLUDE_FOLDERS,
            *map(user_files.absolute, options.include_dirs),
        ]
        flags += [f"-I{folder}" for folder in folders]
        flags += [f"-isystem{folder}" for folder in self._core_folders]
        if os.path.isfile(self.program.path):
            flags += ["-iquote", os.path.dirname(user_files.absolute(self.program.path))]
        return flags

    def _compile(self, source: Path) -> bytes:
        arguments = [*self._flags(), "-x", self._language(source)]
        arguments += [] if self.compiler.kind == "zig" else ["-pipe"]
        # Those of a text that has its calls are left.
        arguments += [implicit.WARNING] if self.compiler.kind == "gcc" and not self._converts else []
        arguments.append(source.name)
        if source.suffix != ".ii":
            arguments += user_files.LISTING_FLAGS
        linked = self._find_linked() if self._links else []
        if self._links and not linked:
            return self._compile_beside(source, arguments)
        self._call([*arguments, "-x", "none", *linked, *self._linking()], self._prepare_launch)
        return self._output("kernel.so")

    def _linking(self) -> list[str]:
        return ["-o", "kernel.so", *self.compiler.link_flags()]

    def _compile_beside(self, source: Path, arguments: list[str]) -> bytes:
        """Compile while what is linked is compiled as well, for the first time."""
        builds = [
            self._start(passages.build, name, self.compiler)
            for name in self.program.linked
            if not passages.find(name, self.compiler)
        ]
        try:
            self._call([*arguments, "-c", "-o", "kernel.o"], self._prepare_launch)
        finally:
            for build in builds:
                build.join()
        linked = self._find_linked()
        if not linked:
            self._links = False
            return self._compile(source)
        self._call(["kernel.o", *linked, *self._linking()])
        return self._output("kernel.so")

    def _find_linked(self) -> list[str]:
        """Write what is linked to files; nothing is where any of it was not compiled yet."""
        found = [passages.find(name, self.compiler) for name in self.program.linked]
        if None in found:
            return []
        return [self._write(f"linked{place}.o", code or b"").name for place, code in enumerate(found)]

    def _language(self, source: Path) -> str:
        """Return what a source is; zig knows no name for what has been preprocessed, which is C++ as well."""
        is_preprocessed = source.suffix == ".ii" and self.compiler.kind != "zig"
        return "c++-cpp-output" if is_preprocessed else "c++"

    def _saturating(self, source: Path, code: bytes) -> bytes:
        """Compile once more, with conversions to integers that nobody wrote as the device makes them.

        Where that cannot be, as for a bit field, they stay as the processor makes them.
        """
        log = self.account.log
        try:
            text = self._with_saturation(source)
            return self._compile(self._write("saturating.ii", text)) if text else code
        except CompileError:
            self.account.log = log
            return code

    def _with_saturation(self, source: Path) -> bytes:
        """Return the preprocessed text with these conversions as calls; empty where none is of the user's."""
        text = source.read_bytes()
        if source.suffix != ".ii":
            calls = ["-include", "gridstride_cpu/casts.h"]
            self._call([*self._flags(), *calls, "-x", "c++", "-E", source.name, "-o", "expanded.ii"])
            text = self._output("expanded.ii")
        # Without markers, lines are those of this text.
        probe = self._write("probe.ii", preprocessed.without_markers(text))
        arguments = [*self._flags(), *implicit.PROBE, "-x", "c++-cpp-output", probe.name]
        said = self.compiler.run(arguments, self.folder, None).stdout
        places = [(region.start, region.end) for region in preprocessed.regions(text) if region.is_the_users]
        edits = implicit.edits(text, said, places)
        return Rewritten(text, edits).text if edits else b""

    def _prepare_launch(self) -> None:
        """Do beside the compiler what comes after it: the runtime, and parsing for the parameters' names."""
        if not library.runtime_is_loaded():
            self._building = self._start(_build_runtime_quietly)
        for text in self.texts:
            _syntax.functions(text)

    @staticmethod
    def _start(build: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=build, args=arguments)
        thread.start()
        return thread

    def wait_for_runtime(self) -> None:
        """Wait for what was started beside the compiler."""
        if self._building is not None:
            self._building.join()

    def _call(self, arguments: list[str], meanwhile: Callable[[], None] | None = None) -> None:
        try:
            done = self.compiler.run(arguments, self.folder, meanwhile)
        except calling.CompilerFailed as failure:
            self.account.commands.append(failure.command)
            self.account.log += failure.log
            raise self.account.error(str(failure), failure.log) from failure.__cause__
        self.account.commands.append(shlex.join(done.args))
        self._converts |= implicit.told_of(done.stdout)
        self.account.log += implicit.without(done.stdout)
        if done.returncode != 0:
            raise self.account.rejected()

    def _output(self, name: str) -> bytes:
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            raise self.account.error(
                f"the compiler reported success and wrote no {name}", self.account.log
            ) from None

    # ---- headers ----

    def _write_headers(self) -> None:
        for name, text in self.program.headers:
            path = Path(os.path.normpath(self.folder / "headers" / name))
            if not path.is_relative_to(self.folder / "headers"):
                raise self.account.error(f"the header name {name!r} leaves the folder of headers")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def _find_core_library(self) -> None:
        """Show the compiler the headers of the core libraries where the text or what it includes may ask for them."""
        text = self.program.text.encode()
        named = [self.program.text, *(text for _, text in self.program.headers)]
        named += [f"#include <{name}>" for name in self.program.includes]
        if not (any(map(core_library.is_named, named)) or user_files.has_headers(self.program)):
            return
        try:
            core_library.refuse_others(text, user_files.folders(self.program))
        except Refusal as refusal:
            raise self.account.refused_in_text(refusal) from None
        self._core_folders = core_library.write_wrappers(self.folder / "core")

    def _write(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content)
        return path


def _build_runtime_quietly() -> None:
    try:
        library.runtime()
    except Exception:  # whoever launches first meets it again and reports it
        return
