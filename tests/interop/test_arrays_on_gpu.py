"""The libraries' arrays and streams on a real GPU."""

import numpy as np
import pytest

import gridstride as gs
from gridstride import arrays, cuda
from gridstride._runtime.launch_stream import resolve_stream
from gridstride.targets import registry

pytestmark = pytest.mark.gpu


@pytest.fixture
def gpu(monkeypatch):
    target = registry.serving(arrays.CUDA)
    monkeypatch.setenv("GRIDSTRIDE_TARGET", target.name)
    return target


@pytest.fixture
def cupy(gpu):
    return pytest.importorskip("cupy")


@pytest.fixture
def torch(gpu):
    return pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", ["bool", "i1", "u4", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_cupy_views(cupy, dtype):
    x = cupy.zeros((3, 4), dtype)
    for y in (x, x.T, x[1:, ::2], x[::-1], x[:0], x[0, 0]):
        seen, shown = arrays.view(y), y.__cuda_array_interface__
        assert (seen.shape, seen.dtype, seen.device) == (y.shape, np.dtype(dtype), y.device.id)
        assert (seen.device_type, seen.read_only, seen.library) == (arrays.CUDA, False, "cupy")
        assert seen.strides == (None if y.flags.c_contiguous else y.strides)
        assert y.size == 0 or seen.address == shown["data"][0]


def test_torch_views(torch):
    x = torch.zeros((3, 4), device="cuda", dtype=torch.bfloat16)
    for y in (x, x.T, x[1:, ::2], x[:0]):
        seen = arrays.view(y)
        assert (seen.shape, seen.address, seen.device) == (tuple(y.shape), y.data_ptr(), 0)
        assert (seen.device_type, seen.c_contiguous) == (arrays.CUDA, y.is_contiguous())


def test_jax_views(gpu):
    jax = pytest.importorskip("jax")
    x = jax.device_put(np.arange(6, dtype=np.float32).reshape(2, 3), jax.devices("gpu")[0])
    seen = arrays.view(x)
    assert (seen.shape, seen.dtype, seen.device_type, seen.device) == ((2, 3), np.float32, arrays.CUDA, 0)
    assert seen.read_only
    memory = cuda.MemoryPointer(cuda.UnownedMemory(seen.address, seen.nbytes, x), 0)
    np.testing.assert_array_equal(gs.asnumpy(memory).view(np.float32), np.arange(6))


def test_jax_views_on_the_host(gpu):
    jax = pytest.importorskip("jax")
    x = jax.device_put(np.arange(6, dtype=np.float32), jax.devices("cpu")[0])
    seen = arrays.view(x)
    assert (seen.device_type, seen.read_only, seen.library) == (arrays.HOST, True, "jax")
    assert seen.address == x.unsafe_buffer_pointer()
    made = arrays.adapter_of("jax").allocate(x, (3,), np.dtype("f4"), 0)
    made[:] = 2
    result = arrays.adapter_of("jax").wrap(made, (3,), np.dtype("f4"))
    assert isinstance(result, jax.Array)
    assert result.tolist() == [2, 2, 2]
    refused = []

    def traced(y):
        with pytest.raises(TypeError, match="pure_callback") as caught:
            arrays.view(y)
        refused.append(caught)
        return y

    jax.jit(traced)(x)
    jax.grad(lambda y: traced(y).sum())(x)
    assert len(refused) == 2


def test_one_array_seen_by_all_protocols(cupy, torch):
    x = cupy.arange(12, dtype="f4").reshape(3, 4)[:, 1:3]

    class ByInterface:
        __cuda_array_interface__ = x.__cuda_array_interface__

    class ByDLPack:
        def __dlpack__(self, **keywords):
            return x.__dlpack__(**keywords)

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    wanted = arrays.view(x)
    for other in (ByInterface(), ByDLPack(), torch.as_tensor(x)):
        seen = arrays.view(other)
        assert seen._replace(library="cupy", device=0, producer_stream=None) == wanted


def test_a_block_makes_our_stream_the_libraries_own(cupy, torch):
    stream = cuda.Stream(non_blocking=True)
    outside = cupy.cuda.Stream()
    with outside:
        with stream:
            assert cupy.cuda.get_current_stream().ptr == stream.ptr
            assert torch.cuda.current_stream().cuda_stream == stream.ptr
            views = [arrays.view(cupy.zeros(1)), arrays.view(torch.zeros(1, device="cuda"))]
            assert resolve_stream(views, None, stream.target, 0) == stream.ptr
        assert cupy.cuda.get_current_stream().ptr == outside.ptr
        with pytest.raises(ValueError, match="pass stream="):
            resolve_stream(views, None, stream.target, 0)
        assert resolve_stream(views[:1], None, stream.target, 0) == outside.ptr
    assert torch.cuda.current_stream().cuda_stream == cupy.cuda.get_current_stream().ptr == 0


def test_streams_of_the_libraries_are_taken(cupy, torch, gpu):
    of_cupy, of_torch = cupy.cuda.Stream(), torch.cuda.Stream()
    assert resolve_stream([], of_cupy, gpu, 0) == of_cupy.ptr
    assert resolve_stream([], of_torch, gpu, 0) == of_torch.cuda_stream


def test_library_kernels_in_a_block_are_ordered_with_our_copies(cupy):
    stream, out = cuda.Stream(non_blocking=True), np.zeros(1 << 20, np.float32)
    with stream:
        x = cupy.full(1 << 20, 3, "f4")
        for _ in range(50):
            x = x * 2 / 2
        cuda.MemoryPointer(cuda.UnownedMemory(x.data.ptr, x.nbytes, x), 0).copy_to_host_async(out)
    stream.synchronize()
    assert (out == 3).all()


def test_new_arrays_of_the_libraries(cupy, torch):
    stream = cuda.Stream()
    for library, like in (("cupy", cupy.zeros(1)), ("torch", torch.zeros(1, device="cuda"))):
        adapter = arrays.adapter_of(library)
        made = adapter.allocate(like, (2, 3), np.dtype("f4"), stream.ptr)
        seen = arrays.view(made)
        assert (seen.library, seen.shape, seen.dtype, seen.device) == (library, (2, 3), np.float32, 0)
        pointer = cuda.alloc(24)
        pointer.copy_from_host(np.arange(6, dtype=np.float32))
        over = adapter.wrap(pointer, (2, 3), np.dtype("f4"))
        assert arrays.view(over).address == pointer.ptr
        np.testing.assert_array_equal(gs.asnumpy(over), np.arange(6).reshape(2, 3))
        assert adapter.retain(made, stream.ptr) is (library == "torch")


def test_the_namespace_is_cupy_s(cupy):
    with gs.use_backend("cupy", strict=True):
        x = gs.random.rand(10, dtype=gs.float32)
        assert isinstance(x, gs.ndarray)
        assert gs.get_array_module(x) is cupy
        pointer = cuda.alloc(80)
        over = gs.ndarray((10,), dtype=gs.float64, memptr=pointer)
        over[...] = 1
        np.testing.assert_array_equal(gs.asnumpy(over), np.ones(10))
        assert cuda.is_available()
        assert cuda.get_cublas_handle() != 0
