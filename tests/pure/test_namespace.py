"""Names that are forwarded to the active array library."""

import subprocess
import sys
import threading
from types import SimpleNamespace

import fake_cupy
import numpy as np
import pytest
from fake_target import FakeTarget, make_default

import gridstride as gs
from gridstride import cuda
from gridstride.namespace import backend, forward, forwarded_names
from gridstride.namespace.numpy_random import TAKING_DTYPE


@pytest.fixture(autouse=True)
def _no_choice(monkeypatch):
    """Start with NumPy, whatever the machine has, and forget what a test chose."""
    monkeypatch.setenv("GRIDSTRIDE_BACKEND", "numpy")
    monkeypatch.setattr(backend, "_defaults", {})
    yield
    gs.set_backend(None)


@pytest.fixture
def cupy(monkeypatch):
    module = fake_cupy.make_module()
    module.zeros = lambda *shape: "CuPy's zeros"
    module.random = SimpleNamespace(seed="CuPy's seed")
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


@pytest.fixture
def no_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)


def test_unknown_names_are_numpy_s():
    assert gs.zeros is np.zeros
    assert gs.float32 is np.float32
    assert gs.linalg is np.linalg
    assert gs.pi == np.pi


def test_a_name_that_neither_has_is_an_attribute_error():
    with pytest.raises(AttributeError, match="neither gridstride nor numpy has an attribute 'zeroz'"):
        gs.zeroz  # noqa: B018
    assert not hasattr(gs, "_zeros")


def test_our_names_win():
    assert gs.ndarray is not np.ndarray
    assert gs.cuda is cuda
    for name in gs.__all__:
        assert getattr(gs, name) is not getattr(np, name, None)


def test_forwarded_names_are_listed():
    assert {"zeros", "random", "float32"} <= set(forwarded_names())
    assert {"zeros", "random", "RawKernel", "cuda"} <= set(dir(gs))
    assert all(forward(name) is not None for name in ("zeros", "random"))


def test_names_follow_the_backend(cupy):
    assert gs.get_backend() == "numpy"
    gs.set_backend(" CuPy ")
    assert (gs.get_backend(), gs.zeros(3), gs.random.seed) == ("cupy", "CuPy's zeros", "CuPy's seed")
    gs.set_backend("numpy")
    assert gs.zeros is np.zeros


def test_a_block_s_backend_ends_with_it_also_by_an_exception(cupy):
    with gs.use_backend("cupy") as library:
        assert (gs.get_backend(), library) == ("cupy", cupy)
        with pytest.raises(KeyError), gs.use_backend("numpy"):
            raise KeyError
        assert gs.get_backend() == "cupy"
    assert gs.get_backend() == "numpy"


def test_a_block_s_backend_is_the_thread_s_own(cupy):
    seen = []
    with gs.use_backend("cupy"):
        thread = threading.Thread(target=lambda: seen.append(gs.get_backend()))
        thread.start()
        thread.join()
    assert seen == ["numpy"]


def test_an_unknown_backend_is_refused_and_changes_nothing(cupy):
    gs.set_backend("cupy")
    for choose in (gs.set_backend, lambda name: gs.use_backend(name).__enter__()):
        with pytest.raises(ValueError, match="'torch' is none of the array libraries numpy, cupy"):
            choose("torch")
    assert gs.get_backend() == "cupy"


def test_a_missing_cupy_is_a_warning_or_with_strict_an_error(no_cupy):
    with pytest.raises(ImportError, match="set_backend: cupy cannot be used: it cannot be imported"):
        gs.set_backend("cupy", strict=True)
    with pytest.warns(RuntimeWarning, match="numpy is used instead") as caught:
        gs.set_backend("cupy")
    assert caught[0].filename == __file__
    assert gs.get_backend() == "numpy"


def test_a_cupy_without_device_cannot_be_used(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.make_module(available=False))
    with pytest.raises(ImportError, match="no CUDA device answers"), gs.use_backend("cupy", strict=True):
        pass
    monkeypatch.setenv("GRIDSTRIDE_BACKEND", "")
    assert gs.get_backend() == "numpy"


def test_without_a_choice_a_working_cupy_is_taken(cupy, monkeypatch):
    monkeypatch.setenv("GRIDSTRIDE_BACKEND", "")
    assert gs.get_backend() == "cupy"


def test_the_environment_chooses(cupy, monkeypatch):
    monkeypatch.setenv("GRIDSTRIDE_BACKEND", "CUPY")
    assert gs.get_backend() == "cupy"
    monkeypatch.setenv("GRIDSTRIDE_BACKEND", "jax")
    with pytest.raises(ValueError, match="GRIDSTRIDE_BACKEND: 'jax' is none"):
        gs.zeros  # noqa: B018


def test_an_environment_that_asks_in_vain_warns_once(no_cupy, monkeypatch):
    monkeypatch.setenv("GRIDSTRIDE_BACKEND", "cupy")
    with pytest.warns(RuntimeWarning, match="GRIDSTRIDE_BACKEND: cupy cannot be used"):
        assert gs.get_backend() == "numpy"
    assert gs.get_backend() == "numpy"


def test_the_choice_is_made_at_the_first_use():
    program = """
import sys
import gridstride as gs
assert "cupy" not in sys.modules
sys.modules["cupy"] = None
assert gs.get_backend() == "numpy"
"""
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": ":".join(sys.path)})


# compatibilities, one test each


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(
    ("name", "arguments", "keywords"),
    [
        ("rand", (4, 5), {}),
        ("randn", (4, 5), {}),
        ("random", ((4, 5),), {}),
        ("random_sample", ((4, 5),), {}),
        ("ranf", ((4, 5),), {}),
        ("sample", ((4, 5),), {}),
        ("standard_normal", ((4, 5),), {}),
        ("uniform", (-1, 1, (4, 5)), {}),
        ("normal", (), {"loc": 1.0, "scale": 2.0, "size": (4, 5)}),
        ("exponential", (2.0,), {"size": (4, 5)}),
        ("poisson", (3.0, (4, 5)), {}),
    ],
)
def test_random_functions_take_a_dtype(name, arguments, keywords, dtype):
    gs.random.seed(7)
    drawn = getattr(gs.random, name)(*arguments, **keywords, dtype=dtype)
    np.random.seed(7)
    expected = getattr(np.random, name)(*arguments, **keywords)
    assert (drawn.shape, drawn.dtype) == ((4, 5), dtype)
    np.testing.assert_array_equal(drawn, expected.astype(dtype))
    np.random.seed(7)
    np.testing.assert_array_equal(getattr(gs.random, name)(*arguments, **keywords), expected)


def test_every_random_function_of_the_list_is_numpy_s():
    for name in TAKING_DTYPE:
        assert getattr(gs.random, name).__name__ == name
        assert callable(getattr(np.random, name))


def test_a_single_random_number_takes_a_dtype():
    assert gs.random.rand(dtype=np.float32).dtype == np.float32
    assert gs.random.normal(dtype="f4").shape == ()
    assert isinstance(gs.random.rand(), float)


def test_rounded_draws_stay_below_one(monkeypatch):
    monkeypatch.setattr(np.random, "random_sample", lambda size: np.full(size, 1 - 2.0**-53))
    forget = __import__("gridstride.namespace.numpy_random", fromlist=["_converting"])._converting.cache_clear
    forget()
    try:
        for dtype in (np.float32, np.float16):
            assert gs.random.random_sample(3, dtype=dtype).max() < 1
        with pytest.raises(TypeError, match="must be a float type"):
            gs.random.random_sample(3, dtype=np.int32)
    finally:
        forget()


def test_other_random_names_are_numpy_s():
    assert gs.random.default_rng is np.random.default_rng
    assert gs.random.randint(0, 5, 3, dtype=np.int32).dtype == np.int32
    assert {"rand", "default_rng", "seed"} <= set(dir(gs.random))


def test_asnumpy(cupy):
    x = np.arange(6.0).reshape(2, 3)
    assert gs.asnumpy(x) is x
    assert gs.asnumpy([1, 2]).tolist() == [1, 2]
    assert gs.asnumpy(x, order="F").flags.f_contiguous
    out = np.zeros((2, 3))
    assert gs.asnumpy(x, out=out) is out
    np.testing.assert_array_equal(out, x)
    device_array = cupy.ndarray((2,), np.int32)
    assert type(gs.asnumpy(device_array)) is np.ndarray


def test_asnumpy_of_memory(monkeypatch):
    target = FakeTarget()
    make_default(monkeypatch, target)
    pointer = cuda.alloc(3)
    pointer.memset(7)
    copy = gs.asnumpy(pointer)
    pointer.memset(0)
    assert copy.tolist() == [7, 7, 7]


def test_get_array_module(cupy):
    assert gs.get_array_module(np.zeros(1), 3) is np
    assert gs.get_array_module() is np
    assert gs.get_array_module(np.zeros(1), cupy.ndarray(1)) is cupy


def test_ndarray_makes_an_array():
    x = gs.ndarray((2, 3), np.float32, order="F")
    assert (type(x), x.shape, x.dtype, x.flags.f_contiguous) == (np.ndarray, (2, 3), np.float32, True)
    assert gs.ndarray(4).dtype == float


def test_ndarray_tells_arrays_of_the_active_library(cupy):
    assert isinstance(np.zeros(1), gs.ndarray)
    assert not isinstance([1], gs.ndarray)
    assert gs.ndarray.sum is np.ndarray.sum
    with gs.use_backend("cupy"):
        assert isinstance(cupy.ndarray(1), gs.ndarray)
        assert not isinstance(np.zeros(1), gs.ndarray)


def test_ndarray_over_memory(monkeypatch):
    target = FakeTarget()
    make_default(monkeypatch, target)
    pointer = cuda.alloc(48)
    x = gs.ndarray((2, 3), dtype=gs.float64, memptr=cuda.MemoryPointer(pointer, 0, 48))
    x[:] = [[1, 2, 3], [4, 5, 6]]
    np.testing.assert_array_equal(gs.ndarray(6, gs.float64, pointer), [1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(gs.ndarray((3, 2), "f8", pointer, order="F"), x.T)
    np.testing.assert_array_equal(gs.ndarray(3, "f8", pointer, strides=(16,)), [1, 3, 5])
    for shape, strides in ((7, None), (4, (16,)), (2, (-8,))):
        with pytest.raises(ValueError, match="of memory of 48"):
            gs.ndarray(shape, "f8", pointer, strides)
    with pytest.raises(TypeError, match="memory pointer, got int"):
        gs.ndarray(3, "f8", 4096)
    del pointer
    assert x[1, 2] == 6
    assert target.memory


def test_ndarray_over_memory_of_a_gpu_is_cupy_s(monkeypatch, cupy):
    target = FakeTarget()
    target.array_protocol, target.memory_device_type = "__cuda_array_interface__", 2
    make_default(monkeypatch, target)
    pointer = cuda.alloc(64)
    x = gs.ndarray((2, 4), "f8", memptr=pointer)
    assert isinstance(x, cupy.ndarray)
    assert x.data.ptr == pointer.ptr


def test_ndarray_over_memory_is_of_numbers_in_memory_of_ours():
    pointer = cuda.alloc(16)
    refused = (
        (ValueError, "negative", ((-1,), "f8", pointer)),
        (TypeError, "not Python objects, got dtype object", ((1,), object, pointer)),
        (TypeError, "not Python objects", ((1,), [("a", "f4"), ("b", object)], pointer)),
        (ValueError, "2 axes need as many strides, got 1", ((1, 2), "f8", pointer, (8,))),
        (ValueError, "order must be 'C' or 'F', got 'Z'", ((1,), "f8", pointer, None, "Z")),
        (ValueError, "of memory of 16", ((1 << 40, 1 << 40), "f8", pointer)),
        (TypeError, "integer", ((1.5,), "f8", pointer)),
        (TypeError, "memory pointer, got bytes", ((3,), "u1", b"abc")),
        (TypeError, "memory pointer, got ndarray", ((3,), "u1", np.zeros(3, "u1"))),
        (TypeError, "memory pointer, got str", ((3,), "u1", "abc")),
    )
    for error, text, arguments in refused:
        with pytest.raises(error, match=text):
            gs.ndarray(*arguments)
