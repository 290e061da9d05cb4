"""CuPy's and JAX's adapters, driven through stand-ins that record what is asked of them."""

import os
import subprocess
import sys
import threading
import time
import weakref
from importlib import import_module
from pathlib import Path
from types import ModuleType

import fake_cupy
import numpy as np
import pytest

from gridstride import arrays
from gridstride.errors import ArgumentTypeError


def test_a_cupy_view(cupy):
    with cupy.cuda.Device(1):
        x = cupy.ndarray((2, 3), np.float32)
    seen = arrays.view(x)
    assert seen.owner is x
    assert seen[1:9] == (x.data.ptr, np.float32, (2, 3), None, arrays.CUDA, 1, False, "cupy")
    turned = cupy.ndarray((3, 2), np.float32, x.data, strides=(4, 12))
    assert arrays.view(turned).strides == (4, 12)
    assert arrays.library_of(x) == "cupy"


def test_cupy_allocates_on_the_array_s_device_in_stream_order(cupy):
    adapter = arrays.adapter_of("cupy")
    with cupy.cuda.Device(1):
        x = cupy.ndarray((2,))
    made = adapter.allocate(x, (5,), np.dtype("i4"), 99)
    assert fake_cupy.State.allocated_on == [(1, 99)]
    assert (made.shape, made.dtype) == ((5,), np.int32)
    assert (fake_cupy.State.device, adapter.current_stream(1)) == (0, 0)
    with cupy.cuda.Device(1):
        adapter.allocate(None, (5,), np.dtype("i4"), 99)
    assert fake_cupy.State.allocated_on == [(1, 99)] * 2


def test_cupy_streams_come_and_go(cupy):
    adapter = arrays.adapter_of("cupy")
    current, of, use, *_ = adapter.stream_switch()
    with cupy.cuda.Device(1):
        before = current(1)
        use(of(7, 1))
        assert (adapter.current_stream(1), adapter.current_stream(0)) == (7, 0)
        assert current(1) is of(7, 1)
        use(before)
    assert (adapter.current_stream(1), fake_cupy.State.device) == (0, 0)


def test_memory_of_cupy_is_followed_by_the_array_it_was_made_for(cupy):
    x = cupy.ndarray(4, np.float32)
    part = cupy.ndarray(2, np.float32, x.data)
    part.base = x
    assert arrays.memory_of(x) is arrays.memory_of(part) is weakref.ref(x)()
    with pytest.raises(TypeError, match="weak reference"):
        weakref.ref(x.data.mem)


def test_cupys_allocator_is_put_back_at_exit_where_nobody_did():
    """Left to the interpreter, CuPy's context managers fail when the functions that they call are gone."""
    program = """
import ctypes, sys
from gridstride import arrays
import fake_cupy
sys.modules["cupy"] = fake_cupy.make_module()
arrays.leaves = [arrays.adapter_of("cupy").enter_allocator(None) for _ in range(2)]
for module in (arrays, fake_cupy):  # the interpreter empties what lives on, the last one first
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    ended = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment
    )
    assert ended.stderr == ""


def test_a_library_that_another_thread_is_importing_is_waited_for(tmp_path, monkeypatch):
    name = "slowly_imported_library"
    (tmp_path / f"{name}.py").write_text("import time\ntime.sleep(0.2)\nvalue = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    importer = threading.Thread(target=import_module, args=(name,))
    importer.start()
    while name not in sys.modules:
        time.sleep(0.001)
    try:
        assert arrays.library_module(name).value == 1
    finally:
        importer.join()
        del sys.modules[name]


def test_cupy_wraps_memory_on_a_device(cupy):
    class Memory:
        def __gridstride_view__(self):
            return arrays.ArrayView(self, 4096, np.dtype("u1"), (64,), None, arrays.CUDA, 1, False, "memory")

    adapter, memory = arrays.adapter_of("cupy"), Memory()
    over = adapter.wrap(memory, (2, 4), np.dtype("f8"))
    assert (over.data.ptr, over.data.device_id, over.data.mem.size) == (4096, 1, 64)
    assert over.data.mem.owner is memory
    with pytest.raises(TypeError, match="CUDA memory"):
        adapter.wrap(bytearray(64), (2, 4), np.dtype("f8"))


class JAXArray:
    """Stands for a JAX array on one or more devices."""

    def __init__(self, values, *platforms):
        self.values, self.waited = values, False
        self.places = [JAXDevice(platform) for platform in platforms]

    def devices(self):
        return set(self.places)

    def block_until_ready(self):
        self.waited = True

    def __array__(self, dtype=None, copy=None):
        return self.values


class JAXArrayOnGPU(JAXArray):
    @property
    def __cuda_array_interface__(self):
        return {"shape": (2,), "typestr": "<f4", "data": (4096, False), "version": 2, "stream": 1}


class JAXDevice:
    local_hardware_id = 1

    def __init__(self, platform):
        self.platform = platform

    def __repr__(self):
        return self.platform


for kind in (JAXArray, JAXArrayOnGPU):
    kind.__name__, kind.__module__ = "ArrayImpl", "jaxlib._jax"


def test_a_jax_array_on_the_host_is_read_only_and_waited_for():
    values = np.arange(6.0).reshape(2, 3)
    x = JAXArray(values, "cpu")
    seen = arrays.view(x)
    assert x.waited
    assert seen.owner[0] is x
    assert seen._replace(library="numpy", read_only=False) == arrays.view(values)
    assert (seen.read_only, seen.library) == (True, "jax")


def test_a_jax_array_on_a_gpu():
    seen = arrays.view(JAXArrayOnGPU(None, "gpu"))
    assert seen[1:9] == (4096, np.float32, (2,), None, arrays.CUDA, 1, True, "jax")
    assert seen.producer_stream is None


def test_jax_arrays_elsewhere_and_spread_are_refused():
    with pytest.raises(ArgumentTypeError, match="on tpu"):
        arrays.view(JAXArray(None, "tpu"))
    with pytest.raises(ArgumentTypeError, match="2 devices"):
        arrays.view(JAXArray(np.zeros(2), "cpu", "cpu"))


def test_a_jax_tracer_is_refused_with_a_way_out():
    tracer = type("Tracer", (), {"__module__": "jax._src.core"})
    traced = type("DynamicJaxprTracer", (tracer,), {"__module__": "jax._src.interpreters.partial_eval"})
    with pytest.raises(ArgumentTypeError, match="pure_callback"):
        arrays.view(traced())


def test_new_jax_arrays_are_made_from_host_memory(monkeypatch):
    numpy_of_jax = ModuleType("jax.numpy")
    numpy_of_jax.asarray = lambda x: ("jax", x)
    monkeypatch.setitem(sys.modules, "jax.numpy", numpy_of_jax)
    adapter = arrays.adapter_of("jax")
    made = adapter.allocate(JAXArray(np.zeros(2), "cpu"), (2, 3), np.dtype("f4"), 0)
    made[:] = 3
    library, values = adapter.wrap(made, (2, 3), np.dtype("f4"))
    assert library == "jax"
    np.testing.assert_array_equal(values, np.full((2, 3), 3, np.float32))
    with pytest.raises(TypeError, match="pass the output arrays"):
        adapter.allocate(JAXArrayOnGPU(None, "gpu"), (2,), np.dtype("f4"), 0)
