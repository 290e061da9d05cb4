"""Kernels of the public interface on the CUDA target, over the recording stub of the driver."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from cuda_support import Stub

import gridstride as gs
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
