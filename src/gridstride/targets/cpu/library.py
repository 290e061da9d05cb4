"""Shared libraries: the runtime's, built once by the kernel compiler, and the kernels'.

The structures are those of ``include/gridstride_cpu/abi.h`` and ``_native/launch_abi.h``.
"""

from __future__ import annotations

import ctypes
import enum
import hashlib
import os
import tempfile
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from gridstride import config
from gridstride.errors import CompileError, CUDAError
from gridstride.targets.cpu import host, toolchain
from gridstride.targets.options import CompileOptions

ABI_VERSION = 1
FOLDER = Path(__file__).parent
#: Include folders of ours, in the order in which they are searched.
INCLUDE_FOLDERS = (
    FOLDER / "include",
    FOLDER.parents[1] / "include",
    FOLDER.parents[1] / "include" / "std",
)

_RUNTIME_FOLDER = FOLDER / "runtime"
_SEAM_FOLDER = FOLDER.parents[1] / "_native"


class Kind(enum.IntEnum):
    """Kinds of C++ types in a signature table."""

    VOID = 0
    BOOL = 1
    CHAR = 2
    SIGNED = 3
    UNSIGNED = 4
    FLOAT = 5
    BFLOAT16 = 6
    COMPLEX = 7
    VECTOR = 8
    STRUCT = 9
    POINTER = 10
    FUNCTION = 11
    ENUM = 12


class FailureCode(enum.IntEnum):
    """What a launch returns besides 0."""

    SEGMENTATION = 1
    BUS = 2
    ARITHMETIC = 3
    ILLEGAL = 4
    STACK_OVERFLOW = 5
    DIVERGENCE = 6
    ASSERTION = 7
    TRAP = 8
    TIMEOUT = 9
    INTERRUPTED = 10
    TOO_MANY_BLOCKS = 11
    OUT_OF_MEMORY = 12
    UNSUPPORTED = 13


class Type(ctypes.Structure):
    """Mirror ``gridstride_type``."""


Type._fields_ = [
    ("kind", ctypes.c_uint),
    ("is_const", ctypes.c_uint),
    ("size", ctypes.c_uint),
    ("alignment", ctypes.c_uint),
    ("components", ctypes.c_uint),
    ("component_kind", ctypes.c_uint),
    ("pointee", ctypes.POINTER(Type)),
    ("pretty", ctypes.c_char_p),
]


class ParameterRecord(ctypes.Structure):
    """Mirror ``gridstride_parameter``."""

    _fields_ = (("offset", ctypes.c_uint), ("type", ctypes.POINTER(Type)))


class Kernel(ctypes.Structure):
    """Mirror ``gridstride_kernel``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("run", ctypes.c_void_p),
        ("parameter_count", ctypes.c_uint),
        ("parameter_bytes", ctypes.c_uint),
        ("parameters", ctypes.POINTER(ParameterRecord)),
    )


class Global(ctypes.Structure):
    """Mirror ``gridstride_global``."""

    _fields_ = (("name", ctypes.c_char_p), ("address", ctypes.c_void_p), ("size", ctypes.c_ulong))


class Constant(ctypes.Structure):
    """Mirror ``gridstride_constant``."""

    _fields_ = (("name", ctypes.c_char_p), ("value", ctypes.c_longlong))


class SharedSlot(ctypes.Structure):
    """Mirror ``gridstride_shared_slot``."""


SharedSlot._fields_ = [
    ("function", ctypes.c_char_p),
    ("size", ctypes.c_uint),
    ("alignment", ctypes.c_uint),
    ("offset", ctypes.c_uint),
    ("next", ctypes.POINTER(SharedSlot)),
]


class Table(ctypes.Structure):
    """Mirror ``gridstride_library_table``."""

    _fields_ = (
        ("abi_version", ctypes.c_uint),
        ("kernel_count", ctypes.c_uint),
        ("global_count", ctypes.c_uint),
        ("constant_count", ctypes.c_uint),
        ("kernels", ctypes.POINTER(Kernel)),
        ("globals", ctypes.POINTER(Global)),
        ("constants", ctypes.POINTER(Constant)),
        ("shared_slots", ctypes.POINTER(ctypes.POINTER(SharedSlot))),
        ("static_shared_bytes", ctypes.POINTER(ctypes.c_uint)),
    )


class FunctionContext(ctypes.Structure):
    """Mirror ``gridstride_function``."""

    _fields_ = (
        ("kernel", ctypes.POINTER(Kernel)),
        ("name", ctypes.c_char_p),
        ("static_shared_bytes", ctypes.c_uint),
        ("source_path", ctypes.c_char_p),
    )


class Failure(ctypes.Structure):
    """Mirror ``gridstride_failure``."""

    _fields_ = (
        ("code", ctypes.c_int),
        ("block", ctypes.c_uint * 3),
        ("thread", ctypes.c_uint * 3),
        ("has_thread", ctypes.c_uint),
        ("has_address", ctypes.c_uint),
        ("address", ctypes.c_ulong),
        ("message", ctypes.c_char * 4000),
    )


class Configuration(ctypes.Structure):
    """Mirror ``gridstride_configuration``."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_mem", ctypes.c_uint),
        ("flags", ctypes.c_uint),
    )


class KernelLibrary:
    """Hold a loaded kernel library and its tables. Its code stays mapped as long as the object lives."""

    def __init__(self, code: bytes, name: str) -> None:
        self._library = open_library(code, name)
        self.table = Table.in_dll(self._library, "gridstride_library")
        self.source_path = ctypes.c_char_p.in_dll(self._library, "gridstride_source_path").value or b""
        if self.table.abi_version != ABI_VERSION:
            raise CUDAError(
                f"{name}: made for version {self.table.abi_version} of the CPU runtime, this is {ABI_VERSION}",
                name="CUDA_ERROR_INVALID_IMAGE",
                code=200,
                call="load",
            )

    def bind(self, services: int) -> None:
        """Give the kernels the runtime's services."""
        self._library.gridstride_bind(ctypes.c_void_p(services))

    def kernels(self) -> dict[str, Kernel]:
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

    def shared_slots(self) -> list[SharedSlot]:
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
            ctypes.POINTER(Configuration),
            ctypes.c_char_p,
            ctypes.c_ulong,
            ctypes.c_ulonglong,
        )
        self.launch.restype = ctypes.c_int
        self.launch_address: int = ctypes.cast(self.launch, ctypes.c_void_p).value or 0
        library.gridstride_runtime_services.restype = ctypes.c_void_p
        self.services: int = library.gridstride_runtime_services()
        self._last_failure = library.gridstride_last_failure
        self._last_failure.restype = ctypes.POINTER(Failure)
        library.gridstride_set_launch_timeout.argtypes = (ctypes.c_double,)
        library.gridstride_set_launch_timeout(config.launch_timeout())

    def last_failure(self) -> Failure:
        """Return what the calling thread's last launch failed with."""
        return self._last_failure().contents  # type: ignore[no-any-return]

    def set_num_threads(self, count: int) -> None:
        """Set how many threads run a launch."""
        self._library.gridstride_set_num_threads(ctypes.c_int(count))

    def max_resident_blocks(self, threads: int, shared_bytes: int) -> int:
        """Return how many blocks of a cooperative launch can be resident."""
        return int(
            self._library.gridstride_max_resident_blocks(ctypes.c_uint(threads), ctypes.c_uint(shared_bytes))
        )


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
                loaded = RuntimeLibrary(_runtime_code())
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
_lock = threading.Lock()


@cache
def digest_of_sources() -> str:
    """Return the digest of every header and runtime source of ours."""
    digest = hashlib.sha256()
    for folder in (*INCLUDE_FOLDERS[:2], _RUNTIME_FOLDER, FOLDER / "templates"):
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def open_library(code: bytes, name: str) -> ctypes.CDLL:
    """Load a shared library from bytes; no file of it remains.

    Raises
    ------
    CUDAError
        The loader refused it.
    """
    _load_mathematics()
    readable = "".join(character if character.isalnum() else "_" for character in name)[:40]
    with tempfile.TemporaryDirectory(prefix="gridstride-", ignore_cleanup_errors=True) as folder:
        path = (
            Path(folder) / f"{readable}-{next(_numbers)}.so"
        )  # the loader takes equal names for one library
        path.write_bytes(code)
        try:
            return ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            return _open_in_memory(code, readable, error)


def _open_in_memory(code: bytes, name: str, refusal: OSError) -> ctypes.CDLL:
    """Load from memory where the temporary folder forbids execution; the descriptor stays open."""
    descriptor = os.memfd_create(name)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(code)
        return ctypes.CDLL(f"/proc/self/fd/{descriptor}", mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError:
        os.close(descriptor)
        raise CUDAError(
            f"{name}: the library cannot be loaded: {refusal}",
            name="CUDA_ERROR_INVALID_IMAGE",
            code=200,
            call="load",
        ) from refusal


def _counter() -> Iterator[int]:
    number = 0
    while True:
        number += 1
        yield number


_numbers = _counter()


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
        f"{ABI_VERSION}; {compiler.fingerprint()}; {digest_of_sources()}".encode()
    ).hexdigest()
    folder = toolchain.private_folder("cpu-runtime")
    path = folder / f"runtime-{key[:32]}.so" if folder else None
    if path is not None:
        code = _read_verified(path)
        if code is not None:
            return code
    if config.compilation_forbidden():
        raise CompileError(
            "the CPU runtime is not in the cache and compilation is forbidden (GRIDSTRIDE_FORBID_COMPILATION); "
            "run once without it to fill the cache",
            name="runtime",
        )
    code = build_runtime(compiler)
    if path is not None:
        toolchain.store(path, hashlib.sha256(code).digest() + code)
    return code


def _read_verified(path: Path) -> bytes | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    code = content[32:]
    return code if hashlib.sha256(code).digest() == content[:32] else None


def build_runtime(compiler: toolchain.Toolchain) -> bytes:
    """Compile the runtime's sources; CompileError with the compiler's log if they are refused."""
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
        done = compiler.run(arguments, folder)
        if done.returncode != 0:
            raise CompileError(
                f"the CPU runtime could not be built with {compiler.version}:\n{done.stdout}",
                name="runtime",
                log=done.stdout,
                command=" ".join(done.args),
            )
        return (folder / "runtime.so").read_bytes()
