"""Where CUDA and ROCm are installed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from gridstride.cuda.forwarding import bindings
from gridstride.errors import CUDAError


def get_local_runtime_version() -> int:
    """Return the version of the installed CUDA runtime library, for example 13000 for 13.0.

    Raises
    ------
    TargetUnavailable
        Where ``cuda.bindings`` or the library is not installed.
    """
    code, version = bindings("runtime").getLocalRuntimeVersion()
    if int(code) != 0:
        raise CUDAError(
            f"the CUDA runtime does not say its version: {code.name}",
            name=code.name,
            code=int(code),
            call="getLocalRuntimeVersion",
        )
    return int(version)


def get_cuda_path() -> str | None:
    """Return the folder of the CUDA toolkit, or None: ``CUDA_PATH``, ``CUDA_HOME``, else where nvcc is."""
    return _installation(("CUDA_PATH", "CUDA_HOME"), "nvcc", Path("/usr/local/cuda"))


def get_nvcc_path() -> str | None:
    """Return the path of nvcc, or None: ``NVCC``, else in the CUDA toolkit, else on PATH."""
    return os.environ.get("NVCC") or _program(get_cuda_path(), "nvcc")


def get_rocm_path() -> str | None:
    """Return the folder of ROCm, or None: ``ROCM_HOME``, ``ROCM_PATH``, else where hipcc is."""
    return _installation(("ROCM_HOME", "ROCM_PATH"), "hipcc", Path("/opt/rocm"))


def get_hipcc_path() -> str | None:
    """Return the path of hipcc, or None: in ROCm's folder, else on PATH."""
    return _program(get_rocm_path(), "hipcc")


def _installation(variables: tuple[str, ...], program: str, usual: Path) -> str | None:
    for variable in variables:
        if os.environ.get(variable):
            return os.environ[variable]
    found = shutil.which(program)
    if found:
        return str(Path(found).resolve().parent.parent)
    return str(usual) if usual.is_dir() else None


def _program(folder: str | None, program: str) -> str | None:
    inside = Path(folder, "bin", program) if folder else None
    if inside is not None and os.access(inside, os.X_OK):
        return str(inside)
    return shutil.which(program)
