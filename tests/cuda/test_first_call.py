"""The first call of a kernel: made by the compiled fast path once the function is there, and rehearsed at import."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_cupy
import numpy as np
import pytest
from cuda_support import Stub

import gridstride as gs
from gridstride import _native
from gridstride._runtime.hooks import MemoryHook
from gridstride.errors import CompileError, CUDAError
from gridstride.families.raw import RawKernel
from gridstride.families.rehearsal import rehearse_array_kernels, rehearse_raw_kernels
from gridstride.targets import registry
from gridstride.targets.cuda.compiler import Compiler
from gridstride.targets.cuda.rehearsal import Rehearsal, rehearsal_of
from gridstride.targets.cuda.runtime import CudaTarget

pytestmark = pytest.mark.skipif(not _native.is_compiled(), reason="the extension is not built")

TEXT = 'extern "C" __global__ void k(float* x, float y, int n) { if (n) x[0] = y; }'


def who(call: Callable[[], object]) -> str:
    """Make a call, and say who made it."""
    hits, misses = _native.statistics()
    call()
    made = _native.statistics()
    return {(1, 0): "native", (0, 1): "pipeline"}[made[0] - hits, made[1] - misses]


def test_it_is_made_natively_and_asks_the_driver_for_what_the_pipeline_asks_for(
    cupy: Any, stub: Stub
) -> None:
    x = cupy.empty(16, np.float32)
    arguments = x, np.float32(2), 5
    assert who(lambda: RawKernel(TEXT, "k")((2, 3), (32,), arguments, 100)) == "native"
    _native.watchers(+1)
    assert who(lambda: RawKernel(TEXT, "k")((2, 3), (32,), arguments, 100)) == "pipeline"
    _native.watchers(-1)
    first, second = stub.calls("cuLaunchKernel")
    assert first == second
    assert bytes.fromhex(first["arguments"]) == struct.pack("<Qfi", x.data.ptr, 2, 5)


def test_it_asks_the_driver_for_nothing_twice(cupy: Any, stub: Stub, cuda: CudaTarget) -> None:
    cuda.limits(0)
    cuda._primary_context(0)
    x = cupy.empty(16, np.float32)
    RawKernel(TEXT, "k").compile()
    stub.clear()
    kernel = RawKernel(TEXT + "//", "k")
    kernel(1, 32, (x, 1.0, 5))
    names = [name for name in stub.names() if name.startswith(("cuModule", "cuLaunch", "cuCtxSet"))]
    assert names == ["cuModuleLoadDataEx", "cuModuleGetFunction", "cuLaunchKernel"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("no number", 5), TypeError),
        ((2.0, 5.5), TypeError),
        ((2.0, 1 << 40), OverflowError),
        ((2.0, 5, 6), TypeError),
    ],
)
def test_what_it_cannot_take_is_told_by_the_pipeline(
    cupy: Any, stub: Stub, arguments: tuple[Any, ...], error: type[Exception]
) -> None:
    x = cupy.empty(16, np.float32)
    with pytest.raises(error) as first:
        RawKernel(TEXT, "k")(1, 32, (x, *arguments))
    _native.watchers(+1)
    with pytest.raises(error) as expected:
        RawKernel(TEXT, "k")(1, 32, (x, *arguments))
    _native.watchers(-1)
    assert str(first.value) == str(expected.value)
    assert stub.calls("cuLaunchKernel") == []


def test_a_block_beyond_the_device_is_told_by_the_pipeline(cupy: Any, stub: Stub) -> None:
    with pytest.raises(ValueError, match=r"block\.x = 2048"):
        RawKernel(TEXT, "k")(1, 2048, (cupy.empty(16, np.float32), 1.0, 5))
    assert stub.calls("cuLaunchKernel") == []


def test_a_text_that_is_refused_is_compiled_once_a_call(
    cupy: Any, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[object] = []
    compile_once = Compiler.compile
    monkeypatch.setattr(
        Compiler, "compile", lambda *arguments: compiled.append(1) or compile_once(*arguments)
    )
    kernel = RawKernel(TEXT.replace("int n", "int n, nothing"), "k")
    for count in (1, 2):
        with pytest.raises(CompileError, match=r"k\.cu"):
            kernel(1, 32, (cupy.empty(16, np.float32), 1.0, 5))
        assert len(compiled) == count


def test_a_failure_of_the_driver_is_the_pipelines(cupy: Any, stub: Stub) -> None:
    kernel = RawKernel(TEXT, "k")
    stub.fail("cuLaunchKernel", 701)
    with pytest.raises(CUDAError, match=r"^k: .*cuLaunchKernel"):
        kernel(1, 32, (cupy.empty(16, np.float32), 1.0, 5))


def test_the_pipeline_makes_it_while_somebody_watches(cupy: Any) -> None:
    _native.watchers(+1)
    try:
        assert who(lambda: RawKernel(TEXT, "k")(1, 32, (cupy.empty(16, np.float32), 1.0, 5))) == "pipeline"
    finally:
        _native.watchers(-1)


def test_a_memory_hook_is_no_hindrance(cupy: Any) -> None:
    with MemoryHook():
        assert who(lambda: RawKernel(TEXT, "k")(1, 32, (cupy.empty(16, np.float32), 1.0, 5))) == "native"


@pytest.mark.parametrize("setting", ["GRIDSTRIDE_NATIVE=0", "GRIDSTRIDE_DEBUG=1"])
def test_the_pipeline_makes_it_where_a_setting_says_so(
    cupy: Any, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setenv(*setting.split("="))
    kernel = RawKernel(TEXT, "k")
    for _ in range(2):
        assert who(lambda: kernel(1, 32, (cupy.empty(16, np.float32), 1.0, 5))) == "pipeline"


def test_the_pipeline_makes_it_on_a_device_that_is_not_current(
    cupy: Any, cuda: CudaTarget, stub: Stub
) -> None:
    x = cupy.empty(16, np.float32)
    cuda.set_device(1)
    assert who(lambda: RawKernel(TEXT, "k")(1, 32, (x, 1.0, 5))) == "pipeline"
    assert stub.calls("cuLaunchKernel")[0]["device"] == 0
    assert cuda.current_device() == 1


def test_the_pipeline_makes_it_where_a_parameter_is_beyond_the_fast_path(cupy: Any) -> None:
    point = np.zeros((), np.dtype([("x", np.int32), ("y", np.int32)]))
    text = 'struct Point { int x, y; }; extern "C" __global__ void k(float* x, Point p) { x[0] = p.x; }'
    kernel, x = RawKernel(text, "k"), cupy.empty(16, np.float32)
    for _ in range(2):
        assert who(lambda: kernel(1, 32, (x, point[()]))) == "pipeline"


def test_a_target_that_is_chosen_meanwhile_counts(cupy: Any, cuda: CudaTarget) -> None:
    kernel, x = RawKernel(TEXT, "k"), cupy.empty(16, np.float32)
    with gs.use_target("cuda"):
        assert who(lambda: kernel(1, 32, (x, 1.0, 5))) == "native"
    assert who(lambda: kernel(1, 32, (x, 1.0, 5))) == "pipeline"
    assert who(lambda: kernel(1, 32, (x, 1.0, 5))) == "native"


# ---- rehearsals ----


@pytest.fixture
def rehearsal(cuda: CudaTarget) -> Rehearsal:
    made = rehearsal_of(cuda, 0)
    assert made is not None
    return made


def test_a_rehearsal_goes_all_the_way_and_reaches_no_device(
    cupy: Any, stub: Stub, rehearsal: Rehearsal
) -> None:
    hits, misses = _native.statistics()
    stub.clear()
    rehearse_raw_kernels(rehearsal)
    assert (_native.statistics()[0] > hits, _native.statistics()[1]) == (True, misses)
    assert stub.calls() == []
    assert rehearsal not in (*registry._targets.values(), *registry._found.values())


def test_nothing_is_rehearsed_while_somebody_watches(cupy: Any, rehearsal: Rehearsal) -> None:
    before = _native.statistics()
    _native.watchers(+1)
    rehearse_raw_kernels(rehearsal)
    _native.watchers(-1)
    assert _native.statistics() == before


def test_a_rehearsal_without_a_library_for_the_device_prepares_functions(
    cupy: Any, stub: Stub, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "cupy")
    made: list[object] = []
    monkeypatch.setattr(RawKernel, "_foresee", lambda *arguments: made.append(foresee(*arguments)))
    stub.clear()
    rehearse_raw_kernels(rehearsal)
    assert made
    assert None not in made
    assert stub.calls() == []


foresee = RawKernel._foresee


def test_array_kernels_are_rehearsed_all_the_way_and_reach_no_device(
    cupy: Any, stub: Stub, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = len(fake_cupy.State.allocated_on)
    launches: list[str] = []
    launch = Rehearsal.launch
    monkeypatch.setattr(
        Rehearsal, "launch", lambda *arguments: launches.append(arguments[1].name) or launch(*arguments)
    )
    stub.clear()
    rehearse_array_kernels(rehearsal)
    assert launches == ["rehearsal"] * 2
    assert len(fake_cupy.State.allocated_on) == asked
    assert stub.calls() == []
    assert rehearsal not in (*registry._targets.values(), *registry._found.values())


def test_warming_up_gives_back_what_the_driver_takes_for_a_module(cuda: CudaTarget, stub: Stub) -> None:
    for refused in (False, True):
        stub.clear()
        if refused:
            stub.fail("cuModuleLoadDataEx", 200)
        assert isinstance(cuda.warm_up(), Rehearsal)
        assert len(stub.calls("cuModuleLoadDataEx")) == 1
        assert len(stub.calls("cuModuleUnload")) == (0 if refused else 1)


# ---- fresh processes ----

ARRAYS = """
import ctypes, sys
sys.path.insert(0, {tests!r})
import fake_cupy
import numpy as np
cupy = sys.modules["cupy"] = fake_cupy.make_module()
x = cupy.empty(16, np.float32)
"""
FILL = """
import gridstride as gs
from gridstride.targets import cuda, registry
registry._targets["cuda"] = cuda.create({stub!r})
"""
USE_A_DEVICE = """
driver = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
driver.cuInit(0)
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
driver.cuCtxSetCurrent(context)
import gridstride as gs
before = {*sys.modules}
"""
LAUNCH = f"""
gs.RawKernel({TEXT!r}, "k")((1,), (32,), (x, np.float32(2), np.int32(5)))
"""
TELL = """
from gridstride import _native
print(sorted({*sys.modules} - before), _native.statistics()[1])
"""


def test_a_fresh_process_that_uses_a_device_imports_nothing_for_a_kernel_in_the_cache(
    stub_library: Path, compiler: Compiler, tmp_path: Path
) -> None:
    shutil.copy(stub_library, tmp_path / "not-for-nvrtc.so")
    arrays = ARRAYS.format(tests=str(Path(fake_cupy.__file__).parent))
    environment = {
        **os.environ,
        "GRIDSTRIDE_CACHE_DIR": str(tmp_path / "cache"),
        "GRIDSTRIDE_NATIVE": "1",
        "GRIDSTRIDE_TARGET": "",
    }
    run(arrays + FILL.format(stub=str(tmp_path / "not-for-nvrtc.so")) + LAUNCH, environment)
    environment |= {"LD_LIBRARY_PATH": str(stub_library.parent), "GRIDSTRIDE_FORBID_COMPILATION": "1"}
    assert run(arrays + USE_A_DEVICE + LAUNCH + TELL, environment) == "[] 0\n"


def run(program: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
