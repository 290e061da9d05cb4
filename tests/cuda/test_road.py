"""Kernels of the public interface on the CUDA target, over the recording stub of the driver."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_support import Stub, program

import gridstride as gs
from gridstride.errors import SymbolNotFound
from gridstride.targets import registry
from gridstride.targets.base import ObjectCode, Program
from gridstride.targets.cuda.compiler import Compiler
from gridstride.targets.cuda.runtime import CudaTarget

TEXT = 'extern "C" __global__ void k(float* x, char c, double d) { x[0] = c + d; }'


class DeviceArray:
    """Show memory of the stub as an array library would."""

    def __init__(self, address: int, shape: tuple[int, ...]) -> None:
        self.__cuda_array_interface__: dict[str, Any] = {
            "shape": shape, "typestr": "<f4", "data": (address, False), "version": 3,
        }  # fmt: skip


@pytest.fixture
def array(cuda: CudaTarget, monkeypatch: pytest.MonkeyPatch) -> DeviceArray:
    """An array on device 0 of the stub, which is the CUDA target for the length of a test."""
    monkeypatch.setitem(registry._targets, "cuda", cuda)
    monkeypatch.setattr(registry, "_found", {})
    return DeviceArray(cuda.allocate(64, 0), (16,))


def test_arguments_are_converted_by_the_signature(array: DeviceArray, stub: Stub) -> None:
    gs.RawKernel(TEXT, "k")((2, 3), (32,), (array, 65, 2), shared_mem=100)
    (launch,) = stub.calls("cuLaunchKernel")
    assert (launch["grid"], launch["block"], launch["shared"]) == ([2, 3, 1], [32, 1, 1], 100)
    address = array.__cuda_array_interface__["data"][0]
    assert bytes.fromhex(launch["arguments"]) == struct.pack("<Qb7xd", address, 65, 2.0)


def test_a_refused_argument_launches_nothing(array: DeviceArray, stub: Stub) -> None:
    with pytest.raises(OverflowError):
        gs.RawKernel(TEXT, "k")((1,), (1,), (array, 300, 2.0))
    assert stub.calls("cuLaunchKernel") == []


def test_kernels_made_again_and_again_compile_and_load_once(
    array: DeviceArray, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Program] = []
    compile_once = Compiler.compile

    def counted(self: Compiler, program: Program, arch: str) -> ObjectCode:
        compiled.append(program)
        return compile_once(self, program, arch)

    monkeypatch.setattr(Compiler, "compile", counted)
    text = TEXT + "  // compiled by this test alone"
    for _ in range(50):
        gs.RawKernel(text, "k")((1,), (1,), (array, 1, 2.0))
    assert len(compiled) == 1
    assert len(stub.calls("cuModuleLoadDataEx")) == 1
    assert len(stub.calls("cuLaunchKernel")) == 50


def test_a_cooperative_kernel_is_launched_as_one(array: DeviceArray, stub: Stub) -> None:
    gs.RawKernel(TEXT, "k", enable_cooperative_groups=True)((1,), (32,), (array, 1, 2.0))
    (launch,) = stub.calls("cuLaunchKernel", "cuLaunchKernelEx")
    assert (launch["call"], launch["cooperative"]) == ("cuLaunchKernelEx", 1)


@pytest.mark.parametrize(("form", "arch"), [("cubin", "sm_90"), ("ptx", "sm_9999")])
def test_object_code_of_users(
    form: str, arch: str, array: DeviceArray, stub: Stub, compiler: Compiler, tmp_path: Path
) -> None:
    code = compiler.compile(program(TEXT, "k"), arch).code
    path = tmp_path / f"kernels.{form}"
    path.write_bytes(code)
    address = array.__cuda_array_interface__["data"][0]
    for module in (gs.RawModule(code), gs.RawModule(path=str(path)), gs.RawModule(**{form: code})):
        stub.clear()
        module.get_function("k")((2,), (32,), (array, np.int8(65), np.float64(2)))
        (launch,) = stub.calls("cuLaunchKernel")
        assert (launch["grid"], launch["block"]) == ([2, 1, 1], [32, 1, 1])
        assert bytes.fromhex(launch["arguments"]) == struct.pack("<Qb7xd", address, 65, 2.0)
        with pytest.raises(SymbolNotFound, match="no kernel 'other'; available: k"):
            module.get_function("other")


def test_fatbins_of_users(array: DeviceArray, stub: Stub) -> None:
    module = gs.RawModule(bytes.fromhex("50ed55ba") + b"_Z4fillPfi")
    module.get_function("_Z4fillPfi")((1,), (1,), (array, 3))
    (launch,) = stub.calls("cuLaunchKernel")
    address = array.__cuda_array_interface__["data"][0]
    assert bytes.fromhex(launch["arguments"]) == struct.pack("<Qi", address, 3)


def test_fatbins_need_a_driver_that_tells_what_they_hold(
    array: DeviceArray, cuda: CudaTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cuda.driver._addresses, "cuFuncGetParamInfo", 0)
    with pytest.raises(NotImplementedError, match=r"before CUDA 12\.4"):
        gs.RawModule(bytes.fromhex("50ed55ba") + b"_Z4fillPfi").compile()


def test_the_name_of_a_cubins_file_is_no_cubin() -> None:
    with pytest.raises(TypeError, match="a file is given as path"):
        gs.RawModule(cubin="kernels.cubin")  # type: ignore[arg-type]
