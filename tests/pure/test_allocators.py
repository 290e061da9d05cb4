"""The current allocator, for `alloc`, NumPy and CuPy; allocators made of functions; pools of array libraries."""

import ctypes
import gc
import sys
import threading

import fake_cupy
import numpy as np
import pytest
from fake_target import FakeTarget, SmallTarget, make_default
from native_support import follows_numpy, shows_buffers

import gridstride as gs
from gridstride import _native, cuda
from gridstride._runtime import allocator as allocator_room
from gridstride.errors import OutOfMemoryError

pytestmark = pytest.mark.usefixtures("each_way")

UNIT = 512


def use(monkeypatch, target):
    make_default(monkeypatch, target)
    monkeypatch.setattr(allocator_room._process, "allocator", allocator_room._DEFAULT)
    return target


@pytest.fixture
def fake(monkeypatch):
    return use(monkeypatch, FakeTarget())


@pytest.fixture
def gpu(monkeypatch):
    """A target with CUDA arrays, and CuPy."""
    target = FakeTarget()
    target.device_types = frozenset({2})
    target.array_protocol, target.memory_device_type = "__cuda_array_interface__", 2
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.make_module())
    return use(monkeypatch, target)


@pytest.fixture
def pool(fake):
    return cuda.MemoryPool()


# ---- what is current ----


@follows_numpy
def test_blocks_restore_what_was_current(fake, pool):
    other = cuda.MemoryPool()
    default = cuda.get_allocator()
    with cuda.using_allocator(pool.malloc):
        assert cuda.get_allocator() == pool.malloc
        with cuda.using_allocator(other.malloc):
            assert cuda.alloc(1).mem.pool is other._devices[0]
        with cuda.using_allocator():
            assert type(cuda.alloc(1).mem) is cuda.Memory
        with pytest.raises(OutOfMemoryError), cuda.using_allocator(other.malloc):
            cuda.alloc(1 << 62)
        assert cuda.get_allocator() == pool.malloc
    assert cuda.get_allocator() == default == gs.get_default_memory_pool().malloc


@follows_numpy
def test_one_block_may_be_entered_again(fake, pool):
    block = cuda.using_allocator(pool.malloc)
    with block, block:
        assert cuda.get_allocator() == pool.malloc
    assert cuda.get_allocator() != pool.malloc


@follows_numpy
def test_blocks_are_the_threads_own(fake, pool):
    seen = []
    with cuda.using_allocator(pool.malloc):
        thread = threading.Thread(target=lambda: seen.append((cuda.get_allocator(), np.zeros(100))))
        thread.start()
        thread.join()
    assert seen[0][0] != pool.malloc
    assert pool.total_bytes() == 0


@follows_numpy
def test_the_allocator_of_the_process(fake, pool):
    cuda.set_allocator(pool.malloc)
    try:
        assert cuda.get_allocator() == pool.malloc
        x = np.zeros(100)
        assert pool.used_bytes() == 1024
        with cuda.using_allocator(), pytest.raises(ValueError, match="inside a using_allocator block"):
            cuda.set_allocator(None)
    finally:
        cuda.set_allocator()
    assert type(cuda.alloc(1).mem) is cuda.Memory
    y = np.zeros(100)
    assert pool.used_bytes() == 1024
    del x, y


def test_what_is_no_allocator(fake):
    for wrong in (5, cuda.Memory(8)):
        with pytest.raises(TypeError, match="function of a size"):
            cuda.using_allocator(wrong)
        with pytest.raises(TypeError, match="function of a size"):
            cuda.set_allocator(wrong)
        for pool in (cuda.MemoryPool, cuda.MemoryAsyncPool, cuda.PinnedMemoryPool):
            with pytest.raises(TypeError, match="function of a size"):
                pool(wrong)


@follows_numpy
def test_what_an_allocator_returns(fake):
    with cuda.using_allocator(cuda.Memory):
        assert cuda.alloc(8).size == 8
    with cuda.using_allocator(lambda size: None), pytest.raises(TypeError, match="returns a MemoryPointer"):
        cuda.alloc(8)


# ---- NumPy ----


@follows_numpy
def test_numpys_arrays_come_from_the_pool_and_go_back(pool):
    with cuda.using_allocator(pool.malloc):
        x = np.zeros((100, 10))
        y = x + 1
        z = np.empty(0)
        assert pool.used_bytes() == 2 * 8192 + UNIT
    assert (y == 1).all()
    z = x.copy()
    assert pool.used_bytes() == 2 * 8192 + UNIT - UNIT
    part = y[5:]
    del x, y, z
    assert pool.used_bytes() == 8192
    del part
    assert pool.used_bytes() == 0
    with cuda.using_allocator(pool.malloc):
        again = np.ones((100, 10))
        assert not np.zeros((100, 10)).any()  # also where the memory was used before
    assert pool.total_bytes() <= 2 * 8192 + 2 * UNIT
    del again


@follows_numpy
def test_numpys_arrays_change_their_size(pool):
    with cuda.using_allocator(pool.malloc):
        x = np.arange(100)
        x.resize(1000, refcheck=False)
        assert (x[:100] == np.arange(100)).all()
        assert not x[100:].any()
        assert pool.used_bytes() == 8192
        x.resize(10, refcheck=False)
    assert (x == np.arange(10)).all()
    x.resize(2000, refcheck=False)  # outside: where it came from
    assert pool.used_bytes() == 16384
    del x
    assert pool.used_bytes() == 0


@follows_numpy
def test_numpy_says_why_there_was_no_memory(pool):
    pool.set_limit(4096)
    with pytest.raises(MemoryError) as caught, cuda.using_allocator(pool.malloc):
        np.zeros(1000)
    assert isinstance(caught.value.__cause__, OutOfMemoryError)
    assert "limit is 4096" in caught.value.__notes__[0]

    def fail(size):
        raise RuntimeError("not today")

    with pytest.raises(MemoryError) as caught, cuda.using_allocator(fail):
        np.zeros(1000)
    assert isinstance(caught.value.__cause__, RuntimeError)
    with cuda.using_allocator(pool.malloc):
        assert np.zeros(100).sum() == 0


@follows_numpy
def test_an_array_may_go_while_an_exception_is_on_its_way(pool):
    def fail():
        x = np.zeros(100)
        raise KeyError(x.size)

    with cuda.using_allocator(pool.malloc), pytest.raises(KeyError, match="100"):
        fail()
    gc.collect()
    assert pool.used_bytes() == 0


@follows_numpy
def test_numpys_own_memory_is_back_after_the_block(pool):
    handler = np._core.multiarray.get_handler_name
    before = handler()
    with cuda.using_allocator(pool.malloc):
        assert handler() == "gridstride"
        with cuda.using_allocator(None):
            assert handler() == before
        assert handler(np.zeros(3)) == "gridstride"
    assert handler() == before == "default_allocator"


@follows_numpy
def test_the_namespace_allocates_from_the_pool(pool):
    with gs.use_backend("numpy"), cuda.using_allocator(pool.malloc):
        x = gs.zeros((10, 100))
        assert pool.used_bytes() == 8192
    del x


def test_without_the_extension_numpy_cannot_follow(fake, pool, monkeypatch):
    from gridstride._native import stand_in

    monkeypatch.setattr(_native, "numpy_handler", stand_in.numpy_handler)
    monkeypatch.setattr(_native, "exchange_numpy_handler", stand_in.exchange_numpy_handler)
    with pytest.raises(NotImplementedError, match="compiled extension"), cuda.using_allocator(pool.malloc):
        pass
    with pytest.raises(NotImplementedError, match="compiled extension"):
        cuda.set_allocator(pool.malloc)
    assert cuda.get_allocator() != pool.malloc
    with cuda.using_allocator(None):
        assert type(cuda.alloc(1).mem) is cuda.Memory


def test_numpy_takes_no_memory_of_a_target_that_has_none():
    with gs.use_target("null"):
        pool = cuda.MemoryPool()
        with cuda.using_allocator(pool.malloc):
            assert np.zeros(3).sum() == 0
            assert cuda.alloc(100).size == 100
        assert pool.total_bytes() == UNIT


# ---- CuPy ----


def test_cupy_follows(gpu):
    pool = cuda.MemoryPool()
    with cuda.using_allocator(pool.malloc):
        theirs = fake_cupy.State.allocators[-1](1000)
        assert theirs.mem.size == 1000
        assert pool.used_bytes() == 1024
        with cuda.using_allocator():
            assert fake_cupy.State.allocators[-1] is None
    assert fake_cupy.State.allocators == ["CuPy's own"]
    assert pool.used_bytes() == 1024
    del theirs
    assert pool.used_bytes() == 0
    cuda.set_allocator(pool.malloc)
    theirs = fake_cupy.State.allocators[0](1000)
    assert theirs.ptr
    assert pool.used_bytes() == 1024


@shows_buffers
def test_cupys_pool_is_the_default_one_where_cupy_allocates(gpu):
    pool = gs.get_default_memory_pool()
    assert pool is gs.get_default_memory_pool()
    pointer = cuda.alloc(1000)
    assert isinstance(pointer, cuda.MemoryPointer)
    assert (pointer.size, pointer.mem.size) == (1000, 1024)
    assert isinstance(pointer.mem.owner.mem, fake_cupy.PooledMemory)
    assert pool.used_bytes() == 4242
    pool.free_all_free()
    pool.free_all_blocks()
    assert pool.released == 2
    with cuda.using_allocator(pool.malloc):  # CuPy gets its own pool's memory as it is
        assert isinstance(fake_cupy.State.allocators[-1](8).mem, fake_cupy.PooledMemory)
    pinned = gs.get_default_pinned_memory_pool()
    assert np.frombuffer(cuda.alloc_pinned_memory(16), np.float64).size == 2
    pinned.free_all_blocks()
    assert pinned.released == 1


def test_libraries_give_back_what_they_cache_before_a_device_is_full(monkeypatch):
    target = use(monkeypatch, SmallTarget(capacity=8 * UNIT))
    cupy = fake_cupy.make_module()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    pool = cuda.MemoryPool()
    with pytest.raises(OutOfMemoryError):
        pool.malloc(9 * UNIT)
    assert cupy.get_default_memory_pool().released == 1
    pool.set_limit(UNIT)
    with pytest.raises(OutOfMemoryError):
        pool.malloc(2 * UNIT)
    assert cupy.get_default_memory_pool().released == 1
    assert not target.memory


def test_without_cupy_the_default_pool_is_ours(gpu, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert isinstance(gs.get_default_memory_pool(), cuda.MemoryPool)
    assert isinstance(gs.get_default_pinned_memory_pool(), cuda.PinnedMemoryPool)


# ---- captures ----


def test_a_graph_owns_what_is_allocated_while_it_is_captured(fake):
    """P61: what another capture or the program allocates later is other memory."""
    default = gs.get_default_memory_pool()
    stream = cuda.Stream()

    def capture():
        with stream, cuda.Graph() as graph:
            pointers = [cuda.alloc(UNIT) for _ in range(2)]
            for pointer in pointers:
                pointer.memset_async(1)
            return graph, {pointer.ptr for pointer in pointers}

    first, addresses = capture()
    second, others = capture()
    used_later = [cuda.alloc(UNIT) for _ in range(3)]
    assert not addresses & others
    assert not (addresses | others) & {pointer.ptr for pointer in used_later}
    assert default.used_bytes() == 3 * UNIT
    default.free_all_blocks()  # P65
    assert addresses | others <= fake.memory.keys()
    del first, second
    gc.collect()
    assert not (addresses | others) & fake.memory.keys()


def test_an_exception_in_a_capture_leaves_allocator_and_pool_as_they_were(fake):
    before = cuda.get_allocator(), len(fake.memory)
    with pytest.raises(ValueError, match="0 to 255"), cuda.Graph():
        cuda.alloc(UNIT).memset_async(256)
    gc.collect()
    assert (cuda.get_allocator(), len(fake.memory)) == before


def test_cupy_allocates_from_the_graphs_pool_too(gpu):
    with cuda.Graph():
        assert len(fake_cupy.State.allocators) == 2
        assert fake_cupy.State.allocators[-1](8).ptr in gpu.memory
    assert fake_cupy.State.allocators == ["CuPy's own"]


# ---- functions ----


def test_a_python_function(fake):
    asked = []

    def allocate(size, arg):
        asked.append((size, arg))
        return arg.malloc(size)

    pool = cuda.MemoryPool()
    allocator = cuda.PythonFunctionAllocator(allocate, pool)
    pointer = allocator.malloc(100)
    assert asked == [(100, pool)]
    assert pointer.mem.size == UNIT
    assert allocator(50).size == 50


def test_what_a_python_function_may_return(fake):
    array = np.arange(16, dtype=np.uint8)
    for returned in (cuda.Memory(16), array, array.ctypes.data):
        pointer = cuda.PythonFunctionAllocator(lambda size, arg: arg, returned).malloc(16)
        assert pointer.size == 16
    assert list(np.asarray(pointer)) == list(range(16))
    for wrong in (None, array[:8], array[::2], "memory"):
        with pytest.raises(TypeError, match="allocating function returns"):
            cuda.PythonFunctionAllocator(lambda size, arg: arg, wrong).malloc(16)
    with pytest.raises(MemoryError, match="16 bytes"):
        cuda.PythonFunctionAllocator(lambda size, arg: 0, None).malloc(16)
    with pytest.raises(TypeError, match="must be a function"):
        cuda.PythonFunctionAllocator(5, None)


def test_a_pair_of_functions_as_cupy_takes_it(fake):
    def allocate(size, device):
        return fake.allocate(size, device)

    def free(address, device):
        fake.free(address, device)

    pointer = cuda.PythonFunctionAllocator(allocate, free).malloc(100)
    pointer.memset(0)
    assert list(fake.memory) == [pointer.ptr]
    del pointer
    gc.collect()
    assert not fake.memory


def test_c_functions(fake):
    held, freed = [], []

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
    def allocate(size, device, arg):
        if size > 1000:
            return None
        held.append(ctypes.create_string_buffer(size))
        return ctypes.addressof(held[-1]) + (arg or 0) * 0

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    def free(address, device, arg):
        freed.append((address, device, arg))

    address = ctypes.cast(allocate, ctypes.c_void_p).value
    for func, arg in ((allocate, 7), (address, ctypes.c_void_p(7))):
        pointer = cuda.CFunctionAllocator(func, arg, free).malloc(100)
        pointer.memset(3)
        assert held[-1].raw[:100] == b"\3" * 100
        expected = (pointer.ptr, 0, 7)
        del pointer
        gc.collect()
        assert freed.pop() == expected
    kept = cuda.CFunctionAllocator(allocate, None)
    kept(10)
    gc.collect()
    assert not freed
    with pytest.raises(MemoryError, match="1001 bytes"):
        kept.malloc(1001)
    with pytest.raises(ValueError, match="cannot be 0"):
        cuda.CFunctionAllocator(0, None)


# ---- other memory ----


def test_managed_and_asynchronous_memory(fake):
    managed, ordered = cuda.malloc_managed(100), cuda.malloc_async(100)
    assert (type(managed.mem), type(ordered.mem)) == (cuda.ManagedMemory, cuda.MemoryAsync)
    managed.memset(1)
    ordered.copy_from_device(managed)
    assert list(np.asarray(ordered)) == [1] * 100
    del managed, ordered
    gc.collect()
    assert len(fake.made("free")) == 1
    assert len(fake.made("free_async")) == 1


def test_asynchronous_memory_goes_back_in_its_stream(fake):
    stream = cuda.Stream()
    with stream:
        ordered = cuda.malloc_async(8)
    cuda.MemoryAsync(8, stream=7)
    del ordered
    gc.collect()
    assert [call[2] for call in fake.made("free_async")] == [7, stream.ptr]


def test_asynchronous_memory_in_garbage_goes_back_before_its_stream_goes(fake):
    cycle = [cuda.MemoryAsync(8, cuda.Stream())]
    cycle.append(cycle)
    del cycle
    gc.collect()
    names = [call[0] for call in fake.calls]
    assert names.index("free_async") < names.index("destroy_stream")


def test_asynchronous_memory_in_a_capture_is_the_graphs(fake):
    stream = cuda.Stream()
    with stream, cuda.Graph() as graph:
        address = cuda.malloc_async(8).ptr
    gc.collect()
    assert address in fake.memory
    del graph
    gc.collect()
    assert address not in fake.memory
    assert not fake.made("free_async")


def test_asynchronous_pools(fake):
    pool = cuda.MemoryAsyncPool()
    pointer, other = pool.malloc(100), pool.malloc(50)
    assert (pool.used_bytes(), pool.total_bytes(), pool.free_bytes()) == (150, 150, 0)
    pool.free(other)
    with pytest.raises(ValueError, match="before"):
        pool.free(other)
    with pytest.raises(ValueError, match="not come from this pool"):
        pool.free(cuda.malloc_async(8))
    assert pool.used_bytes() == 100
    pool.set_limit(120)
    with pytest.raises(OutOfMemoryError, match="limit is 120"):
        pool.malloc(50)
    pool.set_limit()
    assert pool.get_limit() == 0
    with pytest.raises(NotImplementedError, match="free_bytes"):
        pool.n_free_blocks()
    pool.free_all_blocks()
    pool.free_all_free()
    assert len(fake.made("trim_pool")) == 2
    del pointer, other
    assert pool.used_bytes() == 0
    del pool
    gc.collect()
    assert len(fake.made("destroy_pool")) == 1


def test_the_pool_of_the_device_is_not_destroyed(fake):
    pool = cuda.MemoryAsyncPool("current")
    pool.malloc(8)
    del pool
    gc.collect()
    assert not fake.made("destroy_pool")
