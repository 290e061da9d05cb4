"""The CPU runtime and hand-made kernels, built and driven without the rest of gridstride."""

from __future__ import annotations

import ctypes
import importlib.util
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

KERNELS = Path(__file__).parent / "cpu" / "execution_kernels.cpp"
PACKAGE = Path(__file__).parents[1] / "src" / "gridstride"
CPU = PACKAGE / "targets" / "cpu"
FLAGS = (
    "-fPIC", "-shared", "-nostdlib", "-fno-exceptions", "-fno-strict-aliasing", "-fwrapv", "-fvisibility=hidden",
    "-Wl,-Bsymbolic", f"-I{CPU / 'include'}", "-UNDEBUG",
)  # fmt: skip
if platform.machine() == "x86_64":
    FLAGS += ("-mno-red-zone",)
_AARCH64_FLAGS = (
    "-std=gnu++17", "-O2", "-fno-exceptions", "-fno-strict-aliasing", "-fwrapv",
    f"-I{CPU / 'include'}", f"-I{PACKAGE / '_native'}",
)  # fmt: skip


class Kernel(ctypes.Structure):
    """Mirror ``gridstride_kernel``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("run", ctypes.c_void_p),
        ("run_row", ctypes.c_void_p),
        ("is_merged", ctypes.c_uint),
        ("may_contend", ctypes.c_uint),
        ("parameter_count", ctypes.c_uint),
        ("parameter_bytes", ctypes.c_uint),
        ("parameters", ctypes.c_void_p),
        ("code", ctypes.c_void_p * 2),
    )


class Table(ctypes.Structure):
    """Mirror the part of ``gridstride_library_table`` that is read here."""

    _fields_ = (
        ("counts", ctypes.c_uint * 4),
        ("kernels", ctypes.POINTER(Kernel)),
        ("others", ctypes.c_void_p * 3),
        ("static_shared_bytes", ctypes.POINTER(ctypes.c_uint)),
    )


class Function(ctypes.Structure):
    """Mirror ``gridstride_function``."""

    _fields_ = (
        ("kernel", ctypes.POINTER(Kernel)),
        ("name", ctypes.c_char_p),
        ("static_shared_bytes", ctypes.c_uint),
        ("source_path", ctypes.c_char_p),
    )


class Configuration(ctypes.Structure):
    """Mirror ``gridstride_configuration``."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_mem", ctypes.c_uint),
        ("flags", ctypes.c_uint),
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


class Machine:
    """Launch the kernels of a folder that `build` filled."""

    def __init__(self, folder: Path) -> None:
        self.runtime = ctypes.CDLL(str(folder / "runtime.so"))
        self.runtime.gridstride_runtime_services.restype = ctypes.c_void_p
        self.runtime.gridstride_last_failure.restype = ctypes.POINTER(Failure)
        self.runtime.gridstride_set_launch_timeout.argtypes = (ctypes.c_double,)
        self.kernels = ctypes.CDLL(str(folder / "kernels.so"))
        self.kernels.gridstride_bind(ctypes.c_void_p(self.runtime.gridstride_runtime_services()))
        table = Table.in_dll(self.kernels, "gridstride_library")
        self.functions = {}
        for kernel in table.kernels[: table.counts[1]]:
            shared = table.static_shared_bytes.contents.value
            self.functions[kernel.name.decode()] = Function(
                ctypes.pointer(kernel), kernel.name, shared, b"kernels.cu"
            )

    def launch(
        self,
        name: str,
        grid: Any,
        block: Any,
        *arguments: Any,
        shared_mem: int = 0,
        cooperative: bool = False,
    ) -> int:
        """Run a kernel and return its failure code; arrays stand for their addresses."""
        configuration = configure(grid, block, shared_mem, cooperative)
        packed = pack(arguments)
        return int(
            self.runtime.gridstride_cpu_launch(
                ctypes.byref(self.functions[name]),
                ctypes.byref(configuration),
                packed,
                ctypes.c_ulong(len(packed)),
                ctypes.c_ulonglong(0),
            )
        )

    def run(self, name: str, grid: Any, block: Any, *arguments: Any, **options: Any) -> None:
        """Run a kernel that must not fail."""
        code = self.launch(name, grid, block, *arguments, **options)
        assert code == 0, self.failure().message.decode()

    def failure(self) -> Failure:
        """Return the calling thread's last failure."""
        return self.runtime.gridstride_last_failure().contents


def configure(grid: Any, block: Any, shared_mem: int = 0, cooperative: bool = False) -> Configuration:
    """Return a launch configuration; grid and block are ints or tuples."""
    three = ctypes.c_uint * 3
    return Configuration(three(*_three(grid)), three(*_three(block)), shared_mem, int(cooperative))


def pack(arguments: Any) -> bytes:
    """Return argument bytes, each argument aligned to its size or 8."""
    packed = b""
    for argument in arguments:
        value = np.uint64(argument.ctypes.data) if isinstance(argument, np.ndarray) else argument
        raw = value.tobytes() if isinstance(value, np.generic) else bytes(value)
        alignment = min(len(raw), 8)
        packed += bytes(-len(packed) % alignment) + raw
    return packed


def compilers() -> dict[str, list[str]]:
    """Return the host compilers of this machine."""
    found = {name: [path] for name in ("g++", "clang++") if (path := shutil.which(name))}
    if importlib.util.find_spec("ziglang"):
        found["zig"] = [sys.executable, "-m", "ziglang", "c++", "-fno-sanitize=all"]
    return found


def build(command: list[str], folder: Path, standard: str = "gnu++17") -> None:
    """Compile the runtime and the kernels into a folder."""
    runtime_flags = ("-std=gnu++17", "-O2", f"-I{PACKAGE / '_native'}")
    _compile([*command, *FLAGS, *runtime_flags, str(CPU / "runtime" / "runtime.cpp")], folder / "runtime.so")
    kernel_flags = (f"-std={standard}", "-O3", "-march=native")
    _compile([*command, *FLAGS, *kernel_flags, str(KERNELS)], folder / "kernels.so")


def build_for_aarch64(folder: Path) -> list[Path]:
    """Compile the runtime and the kernels for 64-bit Arm with the packaged compiler; return the object files."""
    command = [
        sys.executable,
        "-m",
        "ziglang",
        "c++",
        "-target",
        "aarch64-linux-gnu",
        "-fno-sanitize=all",
        "-c",
    ]
    texts = CPU / "runtime" / "runtime.cpp", KERNELS
    objects = [folder / text.with_suffix(".o").name for text in texts]
    for text, compiled in zip(texts, objects, strict=True):
        _compile([*command, *_AARCH64_FLAGS, "-fPIC", str(text)], compiled)
    return objects


def can_emulate_aarch64() -> bool:
    """Return whether `run_emulated_driver` can work."""
    return bool(shutil.which("aarch64-linux-gnu-g++") and _emulator())


def run_emulated_driver(folder: Path) -> str:
    """Build runtime, kernels and a driver for aarch64 and return what the driver prints."""
    compiler = ["aarch64-linux-gnu-g++", *_AARCH64_FLAGS]
    shared = ["-fPIC", "-shared", "-Wl,-Bsymbolic"]
    driver = KERNELS.with_name("execution_driver.cpp")
    libraries = [str(folder / "libruntime.so"), str(folder / "libkernels.so")]
    _compile([*compiler, *shared, str(CPU / "runtime" / "runtime.cpp")], Path(libraries[0]))
    _compile([*compiler, *shared, str(KERNELS)], Path(libraries[1]))
    _compile([*compiler, str(driver), *libraries, f"-Wl,-rpath,{folder}"], folder / "driver")
    command = [str(_emulator()), "-L", "/usr/aarch64-linux-gnu", str(folder / "driver")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _emulator() -> str | None:
    return shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")


def _compile(command: list[str], output: Path) -> None:
    done = subprocess.run([*command, "-o", str(output)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _three(shape: Any) -> tuple[int, ...]:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    return shape + (1,) * (3 - len(shape))
