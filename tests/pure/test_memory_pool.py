"""Memory pools on a target whose memory can run out and whose streams can be busy."""

import gc
import sys
import threading

import numpy as np
import pytest
from fake_target import SmallTarget, make_default

from gridstride import cuda, get_default_memory_pool
from gridstride._runtime import tracking
from gridstride.errors import CUDAError, OutOfMemoryError

pytestmark = pytest.mark.usefixtures("each_way")

UNIT = 512


@pytest.fixture
def small():
    return SmallTarget()


@pytest.fixture
def pool(small):
    return cuda.MemoryPool(target=small)


def numbers(pool):
    return pool.used_bytes(), pool.free_bytes(), pool.total_bytes(), pool.n_free_blocks()


def test_memory_is_used_again(pool, small):
    first = pool.malloc(1000)
    assert (first.size, first.mem.size) == (1000, 1024)
    assert numbers(pool) == (1024, 0, 1024, 0)
    address = first.ptr
    del first
    assert numbers(pool) == (0, 1024, 1024, 1)
    again = pool.malloc(800)
    assert again.ptr == address
    assert len(small.memory) == 1


def test_memory_lives_as_long_as_something_points_to_it(pool):
    pointer = pool.malloc(1024)
    shown = np.asarray(pointer + 512)
    del pointer
    assert pool.used_bytes() == 1024
    del shown
    gc.collect()
    assert pool.used_bytes() == 0


def test_free_segments_go_back_to_the_device(pool, small):
    kept, dropped = pool.malloc(UNIT), pool.malloc(4 * UNIT)
    del dropped
    pool.free_all_blocks()
    assert numbers(pool) == (UNIT, 0, UNIT, 0)
    assert len(small.memory) == 1
    del kept
    pool.free_all_free()
    assert numbers(pool) == (0, 0, 0, 0)
    assert not small.memory


def test_a_block_is_cut_in_halves_and_becomes_one_again(pool, small):
    whole = pool.malloc(4 * UNIT)
    address = whole.ptr
    del whole
    head, tail = pool.malloc(2 * UNIT), pool.malloc(2 * UNIT)
    assert (head.ptr, tail.ptr) == (address, address + 2 * UNIT)
    del head
    assert pool.n_free_blocks() == 1
    del tail
    assert numbers(pool) == (0, 4 * UNIT, 4 * UNIT, 1)
    assert len(small.memory) == 1


def test_little_that_would_be_left_over_is_handed_out_too(pool):
    del_me = pool.malloc(64 * UNIT)
    del del_me
    pointer = pool.malloc(60 * UNIT)
    assert (pointer.size, pointer.mem.size) == (60 * UNIT, 64 * UNIT)
    assert numbers(pool) == (64 * UNIT, 0, 64 * UNIT, 0)


def test_the_block_that_fits_best_is_taken(pool):
    sizes = [8, 4, 6]
    pieces = [pool.malloc(size * UNIT) for size in sizes]
    addresses = [piece.ptr for piece in pieces]
    del pieces
    assert pool.malloc(5 * UNIT).ptr == addresses[2]


def test_small_requests_do_not_cut_large_blocks():
    """P58: with a limit of 8, memory of 1 and 4, the 4 given back and 1 taken, there is room for 1 and 4."""
    for small_size, large_size in [(1, 4), (2, 4), (3, 4), (1, 6)]:
        pool = cuda.MemoryPool(target=SmallTarget())
        pool.set_limit(8 * UNIT)
        kept = [pool.malloc(UNIT)]
        large = pool.malloc(large_size * UNIT)
        del large
        if small_size + large_size < 8:
            kept.append(pool.malloc(small_size * UNIT))
            kept.append(pool.malloc(large_size * UNIT))
            rest = 8 - 1 - small_size - large_size
            kept += [pool.malloc(UNIT) for _ in range(rest)]
        assert pool.used_bytes() <= 8 * UNIT
        assert pool.fragmentation().ratio == 0


def test_a_large_block_is_cut_before_a_request_fails(pool):
    pool.set_limit(8 * UNIT)
    head, tail = pool.malloc(8 * UNIT), None
    del head
    pieces = [pool.malloc(7 * UNIT)]  # handed out whole, as little is left over
    assert pool.used_bytes() == 8 * UNIT
    pieces.clear()
    pieces = [pool.malloc(5 * UNIT), pool.malloc(UNIT), pool.malloc(2 * UNIT)]
    assert pool.used_bytes() == 8 * UNIT
    with pytest.raises(OutOfMemoryError):
        tail = pool.malloc(UNIT)
    assert tail is None


def test_what_is_cached_is_given_back_before_a_limit_is_an_error(pool):
    """P55: limit 1 GiB, memory of 512 MiB given back, then 768 MiB."""
    pool.set_limit(1 << 20)
    half = pool.malloc(512 << 10)
    del half
    large = pool.malloc(768 << 10)
    assert numbers(pool) == (768 << 10, 0, 768 << 10, 0)
    del large
    with pytest.raises(OutOfMemoryError) as caught:
        pool.malloc(2 << 20)
    assert pool.used_bytes() == 0
    kept = pool.malloc(600 << 10)
    with pytest.raises(
        MemoryError, match=r"524288 bytes on fake device 0.*614400 bytes in use.*limit is 1048576"
    ):
        pool.malloc(512 << 10)
    error = caught.value
    assert (error.size, error.used, error.cached, error.limit) == (2 << 20, 0, 0, 1 << 20)
    assert (error.name, isinstance(error, CUDAError)) == ("CUDA_ERROR_OUT_OF_MEMORY", True)
    del kept
    assert pool.used_bytes() == 0


def test_garbage_is_collected_before_a_request_fails(pool):
    pool.set_limit(8 * UNIT)
    gc.collect()
    gc.disable()
    try:
        cycle = [pool.malloc(8 * UNIT)]
        cycle.append(cycle)
        del cycle
        assert pool.malloc(4 * UNIT).size == 4 * UNIT
    finally:
        gc.enable()


def test_a_full_device_is_asked_again_after_cached_memory_went_back():
    pool = cuda.MemoryPool(target=SmallTarget(capacity=8 * UNIT))
    half = pool.malloc(5 * UNIT)
    del half
    large = pool.malloc(6 * UNIT)
    with pytest.raises(OutOfMemoryError, match="it has no limit"):
        pool.malloc(4 * UNIT)
    assert numbers(pool) == (6 * UNIT, 0, 6 * UNIT, 0)
    del large
    assert pool.malloc(8 * UNIT).size == 8 * UNIT


def test_other_errors_of_the_device_are_not_hidden(pool, small, monkeypatch):
    def fail(size, device):
        raise CUDAError("the device is lost", code=46)

    monkeypatch.setattr(small, "allocate", fail)
    with pytest.raises(CUDAError, match="lost"):
        pool.malloc(UNIT)
    assert numbers(pool) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("given", "limit"), [({"size": 1000}, 1000), ({"fraction": 0.5}, 1 << 29), ({"size": 0}, 0), ({}, 0)]
)
def test_limits(pool, given, limit):
    pool.set_limit(77)
    pool.set_limit(**given)
    assert pool.get_limit() == limit


@pytest.mark.parametrize(
    "given", [{"size": -1}, {"fraction": 1.5}, {"fraction": -0.1}, {"size": 1, "fraction": 1}]
)
def test_wrong_limits(pool, given):
    pool.set_limit(77)
    with pytest.raises(ValueError, match=r"limit|fraction"):
        pool.set_limit(**given)
    assert pool.get_limit() == 77


def test_each_device_has_its_own_books(pool, small):
    on_first = pool.malloc(UNIT)
    with cuda.Device(1, target=small):
        on_second = pool.malloc(2 * UNIT)
        pool.set_limit(4 * UNIT)
        assert (pool.used_bytes(), on_second.device_id) == (2 * UNIT, 1)
    assert (pool.used_bytes(), pool.get_limit(), on_first.device_id) == (UNIT, 0, 0)


def test_memory_can_be_given_back_by_hand(pool):
    pointer, memory = pool.malloc(UNIT), pool.malloc(UNIT).mem
    pool.free(pointer)
    pool.free(memory)
    assert pool.used_bytes() == 0
    with pytest.raises(ValueError, match="before"):
        pool.free(pointer)
    del pointer, memory
    assert numbers(pool) == (0, 2 * UNIT, 2 * UNIT, 2)
    with pytest.raises(ValueError, match="not come from this pool"):
        pool.free(cuda.MemoryPool(target=pool.target).malloc(1))
    with pytest.raises(ValueError, match="not come from this pool"):
        pool.free(cuda.Memory(8, target=pool.target))


def test_sizes(pool):
    assert pool.malloc(0).size == 0
    assert pool.malloc(np.int64(513)).mem.size == 1024
    with pytest.raises(ValueError, match="negative"):
        pool.malloc(-1)
    with pytest.raises(ValueError, match="negative"):
        pool.malloc(-5000)
    with pytest.raises(TypeError):
        pool.malloc(1.5)
    assert pool.used_bytes() == 0


def test_a_pool_takes_its_memory_from_an_allocator(small):
    asked = []

    def allocate(size):
        asked.append(size)
        return cuda.MemoryPointer(cuda.ManagedMemory(size, target=small), 0)

    pool = cuda.MemoryPool(allocate, target=small)
    pointer = pool.malloc(100)
    assert asked == [UNIT]
    assert pointer.mem.is_on_host
    assert not cuda.MemoryPool(target=small).malloc(1).mem.is_on_host
    del pointer
    pool.free_all_blocks()
    assert not small.memory


def test_what_an_allocator_raises_leaves_the_books_right(small):
    def allocate(size):
        raise RuntimeError("not today")

    pool = cuda.MemoryPool(allocate, target=small)
    with pytest.raises(RuntimeError, match="not today"):
        pool.malloc(UNIT)
    assert numbers(pool) == (0, 0, 0, 0)


@pytest.mark.parametrize("name", ["free_all_blocks", "malloc", "used_bytes", "set_limit"])
@pytest.mark.parametrize("kind", [cuda.MemoryPool, cuda.MemoryAsyncPool])
def test_a_method_called_on_the_class_says_how_to_get_a_pool(kind, name):
    """P60."""
    with pytest.raises(TypeError, match=r"get_default_memory_pool\(\)|method of a pool"):
        getattr(kind, name)()
    with pytest.raises(TypeError, match=f"gs.cuda.{kind.__name__}"):
        getattr(kind, name)(5)


def test_pieces_of_growing_size_go_back_without_a_trace(pool, small, capsys):
    """P57: blocks are cut, given back and merged; nothing is left and nothing is ignored."""
    for size in range(1, 1025):
        pool.malloc(size * UNIT)
    whole = pool.malloc(1024 * UNIT)
    del whole
    pieces = [pool.malloc(600 * UNIT), pool.malloc(424 * UNIT)]
    pool.free_all_blocks()
    pieces.pop()
    pool.free_all_blocks()
    del pieces
    assert pool.used_bytes() == 0
    pool.free_all_blocks()
    assert numbers(pool) == (0, 0, 0, 0)
    assert not small.memory
    assert capsys.readouterr().err == ""


def test_fragmentation(pool):
    whole = pool.malloc(16 * UNIT)
    del whole
    pieces = [pool.malloc(8 * UNIT), pool.malloc(4 * UNIT), pool.malloc(4 * UNIT), pool.malloc(UNIT)]
    del pieces[2], pieces[0]
    report = pool.fragmentation()
    assert report == (17 * UNIT, 5 * UNIT, 12 * UNIT, 8 * UNIT, 0, 2, 2)
    assert report.ratio == pytest.approx(1 / 3)
    pieces.clear()
    report = pool.fragmentation()
    assert (report.releasable_bytes, report.segments, report.largest_free) == (17 * UNIT, 2, 16 * UNIT)
    pool.free_all_blocks()
    assert pool.fragmentation().ratio == 0


def test_memory_in_garbage_goes_back_whole(pool, small):
    cycle = [pool.malloc(UNIT)]
    cycle.append(cycle)
    address = cycle[0].ptr
    del cycle
    gc.collect()
    again = pool.malloc(UNIT)
    assert again.ptr == address
    again.memset(1)
    assert address in small.memory


def test_a_finalizer_may_use_the_pool_at_any_moment(pool):
    class Finalized:
        def __init__(self):
            self.itself, self.memory = self, pool.malloc(UNIT)

        def __del__(self):
            pool.malloc(3 * UNIT)
            pool.free_all_blocks()

    for size in range(300):
        Finalized()
        pool.malloc(size * UNIT % (7 * UNIT) + 1)
    gc.collect()
    assert pool.used_bytes() == 0
    pool.free_all_blocks()
    assert pool.total_bytes() == 0


# ---- streams ----


@pytest.fixture
def busy():
    return SmallTarget(features={"asynchronous"})


def test_each_stream_uses_its_own_memory_again(busy):
    pool = cuda.MemoryPool(target=busy)
    first, second = cuda.Stream(target=busy), cuda.Stream(target=busy)
    with first:
        address = pool.malloc(UNIT).ptr
        assert pool.malloc(UNIT).ptr == address
    with second:
        kept = pool.malloc(UNIT)
        assert kept.ptr != address
        assert kept.mem.stream == second.ptr
    assert pool.n_free_blocks() == 1
    pool.free_all_blocks(second)
    assert pool.n_free_blocks() == 1
    pool.free_all_blocks(first)
    assert pool.n_free_blocks() == 0


def test_memory_of_a_stream_that_is_gone_waits_for_its_work(busy):
    """P49: another stream may get the same handle."""
    pool = cuda.MemoryPool(target=busy)
    handle = 5
    with cuda.ExternalStream(handle, target=busy):
        address, in_use = pool.malloc(UNIT).ptr, pool.malloc(2 * UNIT)
    next_event = 1
    busy.unfinished = set(range(next_event, 1000))
    tracking.destroy_stream(busy, 0, handle)
    with cuda.ExternalStream(handle, target=busy):
        other = pool.malloc(UNIT)
        assert other.ptr != address
        busy.unfinished.clear()
        late = in_use.ptr
        del in_use
        assert pool.malloc(UNIT).ptr == address
        assert pool.malloc(2 * UNIT).ptr == late
    assert busy.made("destroy_event")
    del other
    pool.free_all_blocks()
    assert not busy.memory


def test_blocks_of_several_streams_that_are_gone_become_one_again(busy):
    pool = cuda.MemoryPool(target=busy)
    with cuda.ExternalStream(5, target=busy):
        pool.malloc(8 * UNIT)
        pieces = [pool.malloc(4 * UNIT), pool.malloc(4 * UNIT)]
    tracking.destroy_stream(busy, 0, 5)
    with cuda.ExternalStream(6, target=busy):
        pool.malloc(UNIT)
        pieces.pop()
        pieces.append(pool.malloc(4 * UNIT))
    tracking.destroy_stream(busy, 0, 6)
    pool.malloc(UNIT)
    pieces.clear()
    assert pool.fragmentation().largest_free == 8 * UNIT
    pool.free_all_blocks()
    assert not busy.memory


# ---- threads ----


def test_threads_share_a_pool(pool, small):
    failures = []

    def work(seed):
        random = np.random.default_rng(seed)
        held = []
        try:
            for size in random.integers(1, 20 * UNIT, 400):
                pointer = pool.malloc(int(size))
                pointer.memset(seed)
                held.append(pointer)
                if len(held) > 8:
                    victim = held.pop(int(random.integers(len(held))))
                    if not (np.asarray(victim) == seed).all():
                        failures.append("two threads had the same memory")
                if size % 50 == 0:
                    pool.free_all_blocks()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert pool.used_bytes() == 0
    pool.free_all_blocks()
    assert numbers(pool) == (0, 0, 0, 0)
    assert not small.memory


def test_threads_take_the_same_sizes(pool):
    """The quick way needs no lock: no block may be handed out twice, and none may get lost."""
    failures, in_use = [], set()

    def work():
        try:
            for _ in range(2000):
                pointer = pool.malloc(UNIT)
                address = pointer.ptr
                if address in in_use:
                    failures.append("two threads had the same memory")
                in_use.add(address)
                in_use.discard(address)
                del pointer
                pool.n_free_blocks()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failures
    assert pool.used_bytes() == 0
    assert pool.total_bytes() <= 4 * UNIT


def test_the_default_pool_is_of_the_default_target(small, monkeypatch):
    make_default(monkeypatch, small)
    pool = get_default_memory_pool()
    assert pool is get_default_memory_pool() is cuda.get_default_memory_pool()
    pointer = cuda.alloc(100)
    assert pool.used_bytes() == UNIT
    assert repr(pool) == f"<MemoryPool: {UNIT} of {UNIT} bytes in use>"
    del pointer


def test_a_pool_goes_with_its_memory(small):
    pool = cuda.MemoryPool(target=small)
    pointer = pool.malloc(UNIT)
    pool.malloc(2 * UNIT)
    del pool
    gc.collect()
    pointer.memset(1)
    del pointer
    gc.collect()
    assert not small.memory
