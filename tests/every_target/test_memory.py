"""Memory, pools, pinned memory and hooks, with kernels that use them."""

import gc

import numpy as np
import pytest
from native_support import shows_buffers

import gridstride as gs
from gridstride import _native, cuda
from gridstride.errors import OutOfMemoryError

N = 1000
SIZE = 4 * N
ROUNDED = 4096

ADD = gs.RawKernel(
    'extern "C" __global__ void add(float* x, float value, int n)'
    "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += value; }",
    "add",
)
LEAST = gs.RawKernel(
    'extern "C" __global__ void least(const float* x, float* result, int n)'
    "{ *result = x[0]; for (int i = 1; i < n; ++i) *result = min(*result, x[i]); }",
    "least",
)

pytestmark = pytest.mark.usefixtures("target")


def add(pointer, value, **where):
    ADD((-(-N // 256),), (256,), (pointer, np.float32(value), N), **where)


def floats(pointer):
    out = np.empty(pointer.size // 4, np.float32)
    pointer.copy_to_host(out)
    return out


@pytest.fixture
def arrays_of_allocator(xp):
    """The array library, where it can be made to take its memory elsewhere."""
    if xp is np and not _native.is_compiled():
        pytest.skip("NumPy follows through the compiled extension")
    return xp


@pytest.fixture
def pool():
    made = cuda.MemoryPool()
    yield made
    gc.collect()
    assert made.used_bytes() == 0
    made.free_all_blocks()
    assert (made.total_bytes(), made.n_free_blocks()) == (0, 0)


@pytest.mark.parametrize("native", ["0", "1", "verify"])
def test_memory_that_was_given_back_is_passed_to_no_kernel(pool, monkeypatch, native):
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", native)
    pointer = pool.malloc(SIZE)
    later = pointer + 4
    add(pointer, 1)
    pool.free(pointer)
    for freed in (pointer, later):
        with pytest.raises(ValueError, match=r"`add`: argument 0: .* given back to their pool"):
            add(freed, 1)
        with pytest.raises(ValueError, match="given back to their pool"):
            freed.__gridstride_view__()
        with pytest.raises(ValueError, match="given back to their pool"):
            getattr(freed, pointer.target.array_protocol)
    add(pool.malloc(SIZE), 1)


def test_pinned_memory_that_was_given_back_is_no_array():
    pool = cuda.PinnedMemoryPool()
    pointer = pool.malloc(SIZE)
    assert pointer.__gridstride_view__().shape == (SIZE,)
    pool.free(pointer)
    with pytest.raises(ValueError, match="given back to their pool"):
        pointer.__gridstride_view__()


@pytest.mark.parametrize(
    "allocate",
    [
        cuda.alloc,
        cuda.malloc_managed,
        cuda.malloc_async,
        lambda size: cuda.MemoryPointer(cuda.Memory(size), 0),
        lambda size: cuda.MemoryPool().malloc(size),
        lambda size: cuda.MemoryPool(cuda.malloc_managed).malloc(size),
        lambda size: cuda.MemoryAsyncPool().malloc(size),
        lambda size: cuda.MemoryPointer(cuda.alloc_pinned_memory(size), 0, size),
        lambda size: cuda.PythonFunctionAllocator(lambda n, arg: cuda.Memory(n), None).malloc(size),
    ],
    ids=["alloc", "managed", "async", "raw", "pool", "managed pool", "async pool", "pinned", "function"],
)
def test_kernels_use_memory_of_every_kind(allocate):
    pointer = allocate(SIZE)
    pointer.memset_async(0)
    add(pointer, 2)
    add(pointer + 4 * (N // 2), 0)
    assert pointer.size == SIZE
    assert (floats(pointer) == 2).all()


def test_memory_that_another_stream_reads_is_not_overwritten(pool):
    """P52."""
    first, second = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    with first:
        pointer, result = pool.malloc(SIZE), cuda.malloc_managed(4)
        pointer.copy_from_host(np.arange(5, 5 + N, dtype=np.float32))
    for _ in range(200):
        add(pointer, 0, stream=second)
    LEAST((1,), (1,), (pointer, result, N), stream=second)
    del pointer
    with first:
        other = pool.malloc(SIZE)
        other.memset_async(0, stream=first)
    second.synchronize()
    first.synchronize()
    assert floats(result)[0] == 5
    del other


def test_arrays_come_from_the_current_allocator(arrays_of_allocator, pool):
    xp = arrays_of_allocator
    with cuda.using_allocator(pool.malloc):
        x = xp.zeros(N, dtype=xp.float32)
        y = xp.full((10, 100), 3, dtype=xp.float32)
        assert pool.used_bytes() >= 2 * ROUNDED
    add(x, 1)
    add(y, 1)
    assert (gs.asnumpy(x) == 1).all()
    assert (gs.asnumpy(y) == 4).all()
    pool.free_all_blocks()  # what is in use stays
    z = x + y.ravel()
    del x, y
    assert pool.used_bytes() == 0
    assert (gs.asnumpy(z) == 5).all()


def test_used_memory_is_handed_out_again_as_zeros(arrays_of_allocator, pool):
    xp = arrays_of_allocator
    for value in (1, 2):
        with cuda.using_allocator(pool.malloc):
            x = xp.zeros((64, 64))
        assert not gs.asnumpy(x).any()
        x += value
        del x
    assert pool.total_bytes() == 64 * 64 * 8


def test_a_limit(pool):
    pool.set_limit(1 << 20)
    half = pool.malloc(512 << 10)
    del half
    large = pool.malloc(768 << 10)
    with pytest.raises(OutOfMemoryError, match=r"limit is 1048576 bytes"):
        pool.malloc(512 << 10)
    large.memset(1)
    del large


def test_more_than_the_device_has(pool):
    with pytest.raises(OutOfMemoryError) as caught:
        pool.malloc(1 << 60)
    assert (caught.value.size, caught.value.used, caught.value.code) == (1 << 60, 0, 2)


def test_each_graph_has_memory_of_its_own():
    """P61: the second capture must not take over what the first graph writes."""
    x = cuda.alloc(SIZE)
    x.copy_from_host(np.arange(1, 1 + N, dtype=np.float32))
    stream = cuda.Stream(non_blocking=True)
    captured = []
    for _ in range(2):
        with stream, cuda.Graph() as graph:
            result = cuda.alloc(4)
            LEAST((1,), (1,), (x, result, N), stream=stream)
        captured.append((graph, result))
    (first, least), (second, least_later) = captured
    first.launch(stream)
    stream.synchronize()
    x.copy_from_host(np.full(N, 2, np.float32))
    second.launch(stream)
    stream.synchronize()
    assert (floats(least)[0], floats(least_later)[0]) == (1, 2)


def test_temporaries_of_a_graph_live_as_long_as_it():
    """P65."""
    stream = cuda.Stream(non_blocking=True)
    result = cuda.alloc(4)
    with stream, cuda.Graph() as graph:
        temporary = cuda.alloc(SIZE)
        temporary.memset_async(0, stream=stream)
        add(temporary, 7, stream=stream)
        LEAST((1,), (1,), (temporary, result, N), stream=stream)
    del temporary
    gs.get_default_memory_pool().free_all_blocks()
    others = [cuda.alloc(SIZE) for _ in range(8)]
    for other in others:
        other.memset(255)
    for _ in range(3):
        graph.launch(stream)
    stream.synchronize()
    assert floats(result)[0] == 7
    assert all(np.isnan(floats(other)).all() for other in others)


@shows_buffers
def test_pinned_memory_as_array_and_in_copies(xp):
    pinned = cuda.alloc_pinned_memory(8 * N)
    on_host = np.frombuffer(pinned, np.float64, N)
    on_host[:] = np.arange(N)
    with gs.use_backend(xp.__name__):
        x = gs.ndarray((N,), dtype=gs.float64, memptr=cuda.MemoryPointer(pinned, 0, 8 * N))
    assert isinstance(x, xp.ndarray)
    x += 1
    cuda.synchronize()
    assert (on_host == np.arange(1, N + 1)).all()
    device, stream = cuda.alloc(8 * N), cuda.Stream()
    device.copy_from_host_async(pinned, stream=stream)
    back = cuda.alloc_pinned_memory(8 * N)
    device.copy_to_host_async(back, stream=stream)
    stream.synchronize()
    assert (np.frombuffer(back, np.float64) == on_host).all()


def test_a_hook_sees_what_arrays_take(arrays_of_allocator, pool):
    xp = arrays_of_allocator

    class Tracker(cuda.MemoryHook):
        def __init__(self):
            self.allocated = self.freed = 0

        def alloc_postprocess(self, mem):
            self.allocated += mem.size

        def free_preprocess(self, mem):
            self.freed += mem.size

    with Tracker() as tracker, cuda.using_allocator(pool.malloc):
        x = xp.zeros((100, 100))
        allocated = tracker.allocated
        del x
    assert allocated >= 80000
    assert tracker.freed == tracker.allocated


def test_launch_hooks_see_kernels():
    class Names(cuda.LaunchHook):
        def __init__(self):
            self.names = []

        def launch_postprocess(self, work):
            self.names.append(work.what)

    pointer = cuda.alloc(SIZE)
    with Names() as launches:
        pointer.memset(0)
        add(pointer, 1)
        add(pointer, 1)
    assert launches.names == [f"fill of {SIZE} bytes", "kernel `add`", "kernel `add`"]


def test_the_default_pool():
    pool = gs.get_default_memory_pool()
    before = pool.used_bytes()
    pointer = cuda.alloc(SIZE)
    assert pool.used_bytes() == before + ROUNDED
    assert pool.total_bytes() >= pool.used_bytes()
    del pointer
    assert pool.used_bytes() == before
    pool.free_all_free()


def test_no_memory_is_lost(arrays_of_allocator):
    xp = arrays_of_allocator
    for _ in range(3):
        pool, ordered = cuda.MemoryPool(), cuda.MemoryAsyncPool()
        with cuda.using_allocator(pool.malloc):
            kept = [xp.ones(size) for size in (10, 1000, 100000)]
        kept += [ordered.malloc(1 << 20), cuda.malloc_managed(1 << 20), cuda.alloc_pinned_memory(1 << 20)]
        kept.clear()
        gc.collect()
        cuda.synchronize()
        assert (pool.used_bytes(), ordered.used_bytes()) == (0, 0)
