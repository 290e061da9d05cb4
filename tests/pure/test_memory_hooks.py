"""Hooks that watch pools, and hooks that watch launches."""

import io
import re
import sys
import threading

import fake_cupy
import pytest
from fake_target import FakeTarget, make_default

from gridstride import cuda
from gridstride._runtime import hooks

pytestmark = pytest.mark.usefixtures("each_way")

UNIT = 512
EVENTS = [f"{what}_{when}process" for what in ("alloc", "malloc", "free") for when in ("pre", "post")]


class Log(cuda.MemoryHook):
    """Note every event with its keywords, as CuPy's hooks do; `super().__init__` is not called."""

    name = "Log"

    def __init__(self):
        self.events = []


for event in EVENTS:
    setattr(Log, event, lambda self, event=event, **keywords: self.events.append((event, keywords)))


class Tracker(cuda.MemoryHook):
    """Take the memory itself."""

    def __init__(self):
        self.announced = self.allocated = self.freed = 0

    def alloc_preprocess(self, **kwargs):
        self.announced += kwargs["mem_size"]

    def alloc_postprocess(self, mem):
        assert mem.ptr
        assert mem.device_id == 0
        self.allocated += mem.size

    def free_preprocess(self, mem):
        self.freed += mem.size


@pytest.fixture
def fake(monkeypatch):
    target = FakeTarget()
    make_default(monkeypatch, target)
    return target


@pytest.fixture
def pool(fake):
    return cuda.MemoryPool()


def test_events_and_their_keywords(pool):
    with Log() as log:
        pointer = pool.malloc(100)
        address, number = pointer.ptr, id(pointer.mem)
        del pointer
        again = pool.malloc(200)
    del again
    common = {"device_id": 0, "mem_size": UNIT}
    given = {**common, "mem_ptr": address, "pmem_id": number}
    assert log.events[:6] == [
        ("malloc_preprocess", {**common, "size": 100}),
        ("alloc_preprocess", common),
        ("alloc_postprocess", {**common, "mem_ptr": address}),
        ("malloc_postprocess", {**given, "size": 100}),
        ("free_preprocess", given),
        ("free_postprocess", given),
    ]
    assert [event for event, _ in log.events[6:]] == ["malloc_preprocess", "malloc_postprocess"]
    assert hooks.entered == 0


def test_a_hook_that_takes_the_memory_balances(pool):
    with Tracker() as tracker:
        for _ in range(3):
            pointer = pool.malloc(1000)
            del pointer
    assert (tracker.announced, tracker.allocated, tracker.freed) == (3072, 3072, 3072)


def test_a_hook_may_be_entered_again_but_not_twice(pool):
    tracker = Tracker()
    for _ in range(2):
        with tracker:
            pool.malloc(1)
    assert tracker.allocated == 2 * UNIT
    with tracker, pytest.raises(RuntimeError, match="entered already"):
        tracker.__enter__()
    assert hooks.entered == 0


def test_hooks_nest(pool):
    with Log() as outer:
        pool.malloc(1)
        with Log() as inner:
            pool.malloc(1)
        pool.malloc(1)
    names = [[event for event, _ in log.events].count("malloc_preprocess") for log in (outer, inner)]
    assert names == [3, 1]


def test_hooks_watch_their_own_thread(pool):
    with Log() as log:
        thread = threading.Thread(target=lambda: pool.malloc(1))
        thread.start()
        thread.join()
    assert log.events == []


def test_a_method_set_on_the_object_is_called(pool):
    hook, seen = cuda.MemoryHook(), []
    hook.free_postprocess = lambda mem: seen.append(mem.size)
    with hook:
        pool.malloc(1)
    assert seen == [UNIT]


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_exceptions_in_hooks_leave_the_books_right(pool, fake, event):
    hook = cuda.MemoryHook()

    def fail(**keywords):
        raise RuntimeError(event)

    setattr(hook, event, fail)
    with Log() as log, hook:
        if event.startswith("free"):
            pointer = pool.malloc(UNIT)
            with pytest.raises(RuntimeError, match=event):
                pool.free(pointer)
            assert [name for name, _ in log.events][-2:] == ["free_preprocess", "free_postprocess"]
        else:
            with pytest.raises(RuntimeError, match=event):
                pool.malloc(UNIT)
    assert pool.used_bytes() == 0
    assert pool.total_bytes() == sum(map(len, fake.memory.values()))
    assert pool.malloc(UNIT).size == UNIT
    pool.free_all_blocks()
    assert (pool.total_bytes(), fake.memory) == (0, {})


def test_asynchronous_pools_and_their_hooks(fake):
    pool = cuda.MemoryAsyncPool()
    with Tracker() as tracker, Log() as log:
        pool.malloc(100)
    assert (tracker.announced, tracker.allocated, tracker.freed) == (100, 100, 100)
    assert [event for event, _ in log.events] == [
        "malloc_preprocess", "alloc_preprocess", "alloc_postprocess", "malloc_postprocess",
        "free_preprocess", "free_postprocess",
    ]  # fmt: skip


def test_pinned_memory_is_not_watched(fake):
    with Log() as log:
        cuda.PinnedMemoryPool().malloc(10)
    assert log.events == []


def test_printing(pool, capsys):
    file = io.StringIO()
    with cuda.DebugPrintHook(file):
        pointer = pool.malloc(1000)
        address = pointer.ptr
        del pointer
    assert file.getvalue().splitlines() == [
        "malloc of 1000 bytes on device 0",
        f"alloc of 1024 bytes on device 0: {address:#x}",
        f"malloc of 1000 bytes on device 0: 1024 bytes at {address:#x}",
        f"free of 1024 bytes on device 0: {address:#x}",
    ]
    with cuda.DebugPrintHook():
        pool.malloc(1000)
    assert capsys.readouterr().out.startswith("malloc of 1000 bytes")


def test_a_profile_of_lines(pool, capsys):
    def take_one():
        return pool.malloc(1024)

    def take_two():
        return take_one(), take_one()

    with cuda.LineProfileHook(max_depth=0) as hook:
        kept = take_two(), take_one()
    assert (hook.used_bytes, hook.acquired_bytes) == (3072, 3072)
    hook.print_report()
    report = capsys.readouterr().out
    lines = re.findall(r"^( *).*test_memory_hooks\.py:\d+:(\w+) \((\S+), (\S+)\)$", report, re.MULTILINE)
    assert [line[1:] for line in lines] == [
        ("test_a_profile_of_lines", "3.00KB", "3.00KB"),
        ("take_two", "2.00KB", "2.00KB"),
        ("take_one", "2.00KB", "2.00KB"),
        ("take_one", "1.00KB", "1.00KB"),
    ]
    assert len(lines[1][0]) == len(lines[0][0]) + 2
    assert "pool.py" not in report
    del kept


def test_a_shallow_profile(pool):
    file = io.StringIO()
    with cuda.LineProfileHook(max_depth=1) as hook:
        pool.malloc(3 << 20)
    hook.print_report(file)
    assert len(file.getvalue().splitlines()) == 1
    assert "3.00MB" in file.getvalue()


def test_hooks_of_launches(fake):
    class Launches(cuda.LaunchHook):
        def __init__(self):
            self.seen = []

        def launch_preprocess(self, work):
            self.seen.append(("before", work.what, len(fake.calls)))

        def launch_postprocess(self, work):
            self.seen.append(("after", work.what, len(fake.calls)))

    pointer = cuda.alloc(8)
    issued = len(fake.calls)
    with Launches() as launches:
        pointer.memset(0)
        pointer.copy_from_host(b"12345678")
        cuda.Stream(target=fake).launch_host_func(print, None)
    pointer.memset(0)
    assert [seen[:2] for seen in launches.seen] == [
        (when, what)
        for what in ("fill of 8 bytes", "copy of 8 bytes", "host function")
        for when in ("before", "after")
    ]
    assert launches.seen[0][2] == issued
    assert launches.seen[1][2] == issued + 1


def test_a_launch_hook_can_refuse(fake):
    class Refuse(cuda.LaunchHook):
        def launch_preprocess(self, work):
            raise RuntimeError("no")

    pointer = cuda.alloc(8)
    with Refuse(), pytest.raises(RuntimeError, match="no"):
        pointer.memset(0)
    assert not fake.made("fill")
    pointer.memset(0)


def test_cupys_pools_tell_our_hooks(pool, monkeypatch):
    module = fake_cupy.make_module()
    monkeypatch.setitem(sys.modules, "cupy", module)
    theirs = module.get_default_memory_pool()
    with Tracker() as tracker, Log() as log:
        pointer = theirs.malloc(100)
        del pointer
        pool.malloc(1)
    theirs.malloc(100)
    assert (tracker.allocated, tracker.freed) == (2 * UNIT, 2 * UNIT)
    assert [event for event, _ in log.events].count("free_postprocess") == 2
