"""The package without the compiled fast path: the same surface, the same results."""

import inspect
import os
import subprocess
import sys

import numpy as np
import pytest

import gridstride as gs
from gridstride import _native
from gridstride._native import entry, stand_in

WITHOUT_EXTENSION = """
import sys
sys.modules["gridstride._native._launcher"] = None
import numpy as np
import gridstride as gs
from gridstride import _native
from gridstride.targets import registry
assert not _native.is_compiled()
k = gs.RawKernel('extern "C" __global__ void f(int* x, int n) {}', "f")
x = np.zeros(4, np.int32)
for _ in range(3):
    k((1,), (32,), (x, 4), shared_mem=8)
prepared = k.prepare(2, 32, (x, 5))
prepared()
with gs.cuda.Stream():
    k(1, 32, args=[x, 6])
for wrong in ((x,), (np.zeros(4), 1), (x, 2**40)):
    try:
        k(1, 32, wrong)
    except (TypeError, OverflowError) as error:
        print(error)
print([(call[2].grid, call[2].shared_mem, call[3][8:12]) for call in registry.get("null").calls
       if call[0] == "launch"])
print(_native.statistics())
"""


def test_results_without_the_extension():
    environment = {**os.environ, "GRIDSTRIDE_TARGET": "null"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_EXTENSION],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *messages, launches, statistics = done.stdout.splitlines()
    assert [
        "takes 2 arguments" in messages[0],
        "parameter `x`" in messages[1],
        "cannot hold" in messages[2],
    ] == [True] * 3
    plain = "((1, 1, 1), 8, b'\\x04\\x00\\x00\\x00')"
    assert launches == (
        f"[{plain}, {plain}, {plain}, ((2, 1, 1), 0, b'\\x05\\x00\\x00\\x00'), ((1, 1, 1), 0, b'\\x06\\x00\\x00\\x00')]"
    )
    assert statistics == "(0, 8)"


def test_the_surface_is_the_same():
    if not _native.is_compiled():
        pytest.skip("the extension is not built")
    from gridstride._native import _launcher

    assert inspect.getdoc(_native.meet)
    for name in set(_native.__all__) - {"is_compiled", "meet", *vars(entry)}:
        ours, theirs = getattr(_launcher, name), getattr(stand_in, name)
        assert callable(ours)
        assert callable(theirs)
        assert inspect.getdoc(ours)
        assert inspect.getdoc(theirs)
    for kernel in (_launcher.Launcher, stand_in.Launcher):
        assert callable(kernel())
        assert kernel()._forget() is None


@pytest.mark.parametrize("name", ["watchers", "streams_entered", "targets_chosen"])
def test_counts(name):
    for surface in (_native, stand_in):
        change = getattr(surface, name)
        before = change(0)
        assert change(+2) == before + 2
        assert change(-2) == before


def test_a_prepared_launch_without_the_extension():
    calls = []
    launch = stand_in.PreparedLaunch(lambda: calls.append(1), None)
    assert launch() is None
    launch()
    assert calls == [1, 1]
    with pytest.raises(TypeError):
        launch(1)


def test_a_kernel_tells_how_it_is_called():
    kernel = gs.RawKernel('extern "C" __global__ void f(int* x) {}', "f")
    assert list(inspect.signature(kernel).parameters) == ["grid", "block", "args", "shared_mem", "stream"]
    assert list(inspect.signature(gs.RawKernel).parameters)[:2] == ["code", "name"]


def test_dtypes_have_the_numbers_that_the_c_code_gives_them():
    sizes = [2 if name == "bfloat16" else np.dtype(name).itemsize for name in entry.DTYPES]
    assert sizes == [1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 8, 16]
