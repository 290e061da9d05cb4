"""NVRTC without a device, and the recording stub of the driver."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from cuda_support import Stub

from gridstride.targets import registry
from gridstride.targets.cuda import create, nvrtc
from gridstride.targets.cuda.compiler import Compiler
from gridstride.targets.cuda.runtime import CudaTarget


@pytest.fixture(scope="session")
def compiler() -> Compiler:
    """The compiler for NVIDIA devices, which needs none."""
    found = nvrtc.find()
    if found is None:
        pytest.skip("there is no NVRTC")
    return Compiler(found)


@pytest.fixture(scope="session")
def stub_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stub, built."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler")
    library = tmp_path_factory.mktemp("stub") / "libcuda.so.1"
    source = Path(__file__).parent / "stub" / "libcuda_stub.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return library


@pytest.fixture(scope="session")
def _stub_target(stub_library: Path, compiler: Compiler) -> CudaTarget:
    return create(str(stub_library))


@pytest.fixture
def stub(_stub_target: CudaTarget) -> Iterator[Stub]:
    """The stub, with nothing recorded and no device current."""
    stub = Stub(_stub_target.driver._library)
    _stub_target.driver.cuCtxSetCurrent(None)
    stub.clear()
    yield stub
    stub.clear()
    _stub_target.driver.cuCtxSetCurrent(None)


@pytest.fixture
def cuda(_stub_target: CudaTarget, stub: Stub) -> CudaTarget:
    """The CUDA target over the stub, its devices' limits and contexts not yet read."""
    return CudaTarget(_stub_target.driver, _stub_target.nvrtc)


@pytest.fixture
def cupy(cuda: CudaTarget, cupy: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What stands for CuPy, on the devices of the stub, device 0 being current."""
    monkeypatch.setitem(registry._targets, "cuda", cuda)
    monkeypatch.setattr(registry, "_found", {})
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", "1")
    cuda.set_device(0)
    return cupy
