"""Shared libraries: the runtime's, built with the package or once by the kernel compiler, and the kernels'."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from gridstride import _forks, _store, config
from gridstride.errors import CompileError, CUDAError
from gridstride.targets.cpu import abi, calling, host, toolchain
from gridstride.targets.cpu.prebuilt import prebuilt_runtime
from gridstride.targets.options import CompileOptions

FOLDER = Path(__file__).parent
#: Include folders of ours, in the order in which they are searched.
INCLUDE_FOLDERS = (
    FOLDER / "include",
    FOLDER.parents[1] / "include",
    FOLDER.parents[1] / "include" / "std",
    FOLDER.parents[1] / "include" / "fallback",
)

_SYNTAX_FOLDER = FOLDER.parents[1] / "_syntax"
_RUNTIME_FOLDER = FOLDER / "runtime"
#: Group of the runtime's entries on disk.
_STORED_AS = "cpu-runtime"
_SEAM_FOLDER = FOLDER.parents[1] / "_native"


class KernelLibrary:
    """Hold a loaded kernel library and its tables. Its code stays mapped as long as the object lives."""

    def __init__(self, code: bytes, name: str) -> None:
        self._library = open_library(code, name)
        try:
            self.table = abi.Table.in_dll(self._library, "gridstride_library")
            self.source_path = ctypes.c_char_p.in_dll(self._library, "gridstride_source_path").value or b""
        except ValueError as error:
            raise _invalid_image(f"{name}: the library lacks a symbol: {error}") from None
        if self.table.abi_version != abi.ABI_VERSION:
            raise _invalid_image(
                f"{name}: made for version {self.table.abi_version} of the CPU runtime, this is {abi.ABI_VERSION}"
            )

    def bind(self, services: int) -> None:
        """Give the kernels the runtime's services."""
        self._library.gridstride_bind(ctypes.c_void_p(services))

    def kernels(self) -> dict[str, abi.Kernel]:
        """Return the kernels under the names they were asked for by."""
        items = (self.table.kernels[index] for index in range(self.table.kernel_count))
        return {item.name.decode(): item for item in items}

    def globals(self) -> dict[str, tuple[int, int]]:
        """Return address and size in bytes of the variables that were asked for."""
        items = (self.table.globals[index] for index in range(self.table.global_count))
        return {item.name.decode(): (item.address or 0, item.size) for item in items}

    def constants(self) -> dict[str, int]:
        """Return the values of the constants that were asked for."""
        items = (self.table.constants[index] for index in range(self.table.constant_count))
        return {item.name.decode(): item.value for item in items}

    def shared_slots(self) -> list[abi.SharedSlot]:
        """Return the static shared variables; their offsets may be changed as long as nothing runs."""
        found = []
        slot = self.table.shared_slots.contents
        while slot:
            found.append(slot.contents)
            slot = slot.contents.next
        return found

    def close(self) -> None:
        """Unload the code; nothing of it may be used afterwards."""
        _close(self._library._handle)


class RuntimeLibrary:
    """Hold the loaded runtime, one in a process."""

    def __init__(self, code: bytes) -> None:
        self._library = library = open_library(code, "gridstride-runtime")
        self.launch = library.gridstride_cpu_launch
        self.launch.argtypes = (
            ctypes.c_void_p,
            ctypes.POINTER(abi.Configuration),
            ctypes.c_char_p,
            ctypes.c_ulong,
            ctypes.c_ulonglong,
        )
        self.launch.restype = ctypes.c_int
        self.launch_address: int = ctypes.cast(self.launch, ctypes.c_void_p).value or 0
        library.gridstride_runtime_services.restype = ctypes.c_void_p
        self.services: int = library.gridstride_runtime_services()
        self._last_failure = library.gridstride_last_failure
        self._last_failure.restype = ctypes.POINTER(abi.Failure)

    def last_failure(self) -> abi.Failure:
        """Return what the calling thread's last launch failed with."""
        return self._last_failure().contents  # type: ignore[no-any-return]

    def set_launch_timeout(self, seconds: float) -> None:
        """Set after how many seconds without progress a launch is ended; 0: never."""
        self._library.gridstride_set_launch_timeout(ctypes.c_double(seconds))

    def set_num_threads(self, count: int) -> None:
        """Set how many threads run a launch."""
        self._library.gridstride_set_num_threads(ctypes.c_int(count))


def runtime() -> RuntimeLibrary:
    """Return the runtime: loaded before, from the cache, or built now.

    Raises
    ------
    CompileError
        It could not be built.
    TargetUnavailable
        There is no compiler.
    """
    global _runtime
    if _runtime is None:
        with _lock:
            if _runtime is None:
                loaded = RuntimeLibrary(prebuilt_runtime() or _runtime_code())
                loaded.set_num_threads(num_threads())
                _runtime = loaded
    return _runtime


def runtime_is_loaded() -> bool:
    """Return whether `runtime` would return at once."""
    return _runtime is not None


def num_threads() -> int:
    """Return how many threads run a launch; asking builds and starts nothing."""
    return _threads or config.num_threads() or host.usable_processors()


def set_num_threads(count: int) -> None:
    """Set how many threads run a launch."""
    global _threads
    with _lock:
        _threads = count
        if _runtime is not None:
            _runtime.set_num_threads(count)


_runtime: RuntimeLibrary | None = None
_threads = 0
_lock = _forks.Lock()


@cache
def digest_of_sources() -> str:
    """Return a digest over names, sizes and times of what object code is made with.

    These are our headers, the parser and this target, which are many files to read.
    """
    folders = FOLDER, INCLUDE_FOLDERS[1], _SYNTAX_FOLDER
    stamps = sorted(stamp for folder in folders for stamp in _stamps(str(folder)))
    return hashlib.sha256("\n".join(stamps).encode()).hexdigest()


def _stamps(folder: str) -> Iterator[str]:
    for entry in os.scandir(folder):
        if not entry.is_dir():
            yield _stamp(entry.path, entry.stat())
        elif entry.name != "__pycache__":
            yield from _stamps(entry.path)


def _stamp(path: str, status: os.stat_result) -> str:
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def open_library(code: bytes, name: str) -> ctypes.CDLL:
    """Load a shared library from bytes; no file of it remains.

    Raises
    ------
    CUDAError
        The loader refused it.
    """
    _load_mathematics()
    readable = "".join(character if character.isalnum() else "_" for character in name)[:40]
    # The loader takes equal names for one library.
    file_name = f"{readable}-{next(_numbers)}.so"
    try:
        with tempfile.TemporaryDirectory(prefix="gridstride-", ignore_cleanup_errors=True) as folder:
            path = Path(folder, file_name)
            path.write_bytes(code)
            return ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        return _open_in_memory(code, readable, error)


def _open_in_memory(code: bytes, name: str, refusal: OSError) -> ctypes.CDLL:
    """Load from memory where the temporary folder is full or forbids execution; the descriptor stays open."""
    try:
        descriptor = os.memfd_create(name)
    except OSError:
        raise _invalid_image(f"{name}: the library cannot be loaded: {refusal}") from refusal
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(code)
        return ctypes.CDLL(f"/proc/self/fd/{descriptor}", mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError:
        os.close(descriptor)
        raise _invalid_image(f"{name}: the library cannot be loaded: {refusal}") from refusal


def _invalid_image(message: str) -> CUDAError:
    return CUDAError(message, name="CUDA_ERROR_INVALID_IMAGE", code=200, call="load")


_numbers = itertools.count()


@cache
def _load_mathematics() -> None:
    """Make the symbols of the mathematical libraries findable for kernels, which are linked without."""
    for name in ("libm.so.6", "libmvec.so.1", "libgcc_s.so.1"):
        try:
            ctypes.CDLL(name, mode=os.RTLD_GLOBAL)
        except OSError:
            continue  # not every C library has all of them; a kernel that needs one says so when loaded


def _close(handle: int) -> None:
    close = ctypes.CDLL(None).dlclose
    close.argtypes = (ctypes.c_void_p,)
    close(handle)


def _runtime_code() -> bytes:
    compiler = toolchain.find_toolchain()
    key = hashlib.sha256(
        f"{abi.ABI_VERSION}; {compiler.fingerprint()}; {digest_of_sources()}".encode()
    ).hexdigest()
    code = _store.read(key, _STORED_AS, "runtime")
    if code is not None:
        return code
    if config.compilation_forbidden():
        raise CompileError(
            "the CPU runtime is not in the cache and compilation is forbidden (GRIDSTRIDE_FORBID_COMPILATION); "
            "run once without it to fill the cache",
            name="runtime",
        )
    code = build_runtime(compiler)
    _store.write(key, _STORED_AS, "runtime", code)
    return code


def build_runtime(compiler: toolchain.Toolchain) -> bytes:
    """Compile the runtime's sources; CompileError with the compiler's log if they are refused."""
    import shlex

    source = _RUNTIME_FOLDER / "runtime.cpp"
    with tempfile.TemporaryDirectory(prefix="gridstride-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        arguments = [
            *compiler.compile_flags(CompileOptions(optimization="2")),
            "-x",
            "c++",
            *(f"-I{path}" for path in (*INCLUDE_FOLDERS[:2], _SEAM_FOLDER, _RUNTIME_FOLDER)),
            str(source),
            "-o",
            "runtime.so",
            *compiler.link_flags(),
        ]
        try:
            done = compiler.run(arguments, folder)
            if done.returncode == 0:
                return (folder / "runtime.so").read_bytes()
            reason, log, command = f"\n{done.stdout}", done.stdout, shlex.join(done.args)
        except calling.CompilerFailed as failure:
            reason, log, command = f" {failure}", failure.log, failure.command
        except FileNotFoundError:
            reason, log, command = (
                " it reported success and wrote no output",
                done.stdout,
                shlex.join(done.args),
            )
    raise CompileError(
        f"the CPU runtime could not be built with {compiler.version}:{reason}",
        name="runtime",
        log=log,
        command=command,
    )
